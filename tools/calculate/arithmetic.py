"""Arithmetic in fractions: a written expression to an exact value, within limits. Pure.

Only numbers, four operations, powers and a few functions are read; there are no names.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Callable, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import ceil, floor, isqrt

MAX_EXPRESSION = 500
"""Characters; nobody says a longer one."""
MAX_NODES = 300
MAX_BITS = 4096
"""Of a numerator or denominator: some 1,200 digits, beyond anything an office counts."""
MAX_EXPONENT = 1000
MAX_SHOWN = 60
"""Digits of an exact decimal in the answer; a longer one is given rounded."""
PLACES = 15
"""Significant digits of a rounded answer."""

_UNITS = {
    "万": 10**4,
    "亿": 10**8,
    "千": 1000,
    "百": 100,
    "万亿": 10**12,
    "百万": 10**6,
    "千万": 10**7,
}
_NUMBER = re.compile(r"\d+(?:\.\d*)?(?:e[+-]?\d{1,3})?|\.\d+")
_WORDS = (
    ("乘以", "*"), ("除以", "/"), ("加上", "+"), ("减去", "-"), ("乘", "*"), ("除", "/"),
    ("加", "+"), ("减", "-"), ("打", "*"), ("的和", ""), ("×", "*"), ("✕", "*"), ("✖", "*"),
    ("·", "*"), ("∙", "*"), ("÷", "/"), ("−", "-"), ("–", "-"), ("—", "-"), ("^", "**"),
    ("【", "("), ("】", ")"), ("[", "("), ("]", ")"), ("{", "("), ("}", ")"), ("、", ","),
)  # fmt: skip
"""After NFKC, which takes care of full-width forms."""
_NOISE = re.compile(r"(?:等于)?(?:多少|几)?[?？。]*$|[=＝]\s*[?？]?$|[¥￥$]|人民币|元|块钱?")


_ADDED_PERCENT = re.compile(r"(?:(?<![\d.])(?!1\s*[+\-−])\d[\d.,]*|\))\s*[+\-−]\s*\d[\d.]*\s*%")
PERCENT_ADDED = "（百分数按小数加减，如 10% 就是 0.1；要增减百分之几，写成 100*(1+10%)）"


class CannotCalculate(Exception):
    """Why, a Chinese sentence for the person."""


def calculated(expression: str) -> str:
    """The expression as it was read, and its value: exact, or said to be rounded. Raises
    CannotCalculate."""
    read = _readable(expression)
    if len(read) > 2 * MAX_EXPRESSION:
        raise CannotCalculate("算式太长了，请分成几步算。")
    try:
        tree = ast.parse(read.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise CannotCalculate(
            f"看不懂算式「{_short(expression)}」，请写成 (1200-350)*12 这样。"
        ) from None
    nodes = list(ast.walk(tree))
    if len(nodes) > MAX_NODES:
        raise CannotCalculate("算式太长了，请分成几步算。")
    try:
        evaluation = _Evaluation(read.strip())
        value = evaluation.value(tree.body)
    except ZeroDivisionError:
        raise CannotCalculate("除数是 0，算不出来。") from None
    except RecursionError:
        raise CannotCalculate("括号套得太深了，请分成几步算。") from None
    note = PERCENT_ADDED if _ADDED_PERCENT.search(unicodedata.normalize("NFKC", expression)) else ""
    return f"{_short(' '.join(expression.split()))} = {shown(value, evaluation.rounded)}{note}"


def shown(value: Fraction, rounded: bool = False) -> str:
    """The exact decimal; a recurring or very long one rounded, with the fraction beside it."""
    if rounded:
        return f"{_rounded(value)}（约数）"
    whole = value.denominator
    for prime in (2, 5):
        while whole % prime == 0:
            whole //= prime
    if whole == 1 and (exact := _decimal(value)) is not None:
        return exact
    near = _rounded(value)
    if whole != 1 and len(str(value.denominator)) + len(str(value.numerator)) <= 20:
        return f"{near}（约数，精确值 {value.numerator}/{value.denominator}）"
    return f"{near}（约数）"


def _decimal(value: Fraction) -> str | None:
    """All digits; None when they are too many to read."""
    with localcontext(Context(prec=2 * MAX_BITS)):
        text = f"{Decimal(value.numerator) / Decimal(value.denominator):f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text if len(text) <= MAX_SHOWN else None


def _rounded(value: Fraction) -> str:
    with localcontext(Context(prec=PLACES)):
        number = Decimal(value.numerator) / Decimal(value.denominator)
    text = f"{number:f}" if -7 < number.adjusted() < 25 else f"{number:.{PLACES - 1}e}"
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"


# -- reading


def _readable(expression: str) -> str:
    """The expression as Python would write it: half-width, ×÷, thousands, 万 and 亿, percent."""
    text = unicodedata.normalize("NFKC", expression).strip().lower()
    for word, mark in _WORDS:
        text = text.replace(word, mark)
    text = _NOISE.sub("", text).strip()
    # 1,234,567 is one number, unless it stands among the arguments of a function.
    text = re.sub(r"(?<![\d.,(])\d{1,3}(?:,\d{3})+(?![\d,])", _without_commas, text)
    if not re.search(r"[a-z]\s*\(", text):
        text = re.sub(r"(?<![\d.])\d{1,3}(?:,\d{3})+(?!\d)", _without_commas, text)
    text = re.sub(
        r"√\s*(\d+(?:\.\d+)?|\()", lambda m: f"sqrt{m[1]}" if m[1] == "(" else f"sqrt({m[1]})", text
    )
    text = re.sub(r"百分之(\d+(?:\.\d+)?)", r"\1%", text)
    text = re.sub(r"(\d+)分之(\d+)", r"(\2/\1)", text)
    text = re.sub(r"(?<![\d.])(\d{1,2}(?:\.\d+)?)折", _discount, text)
    text = _with_units(text)
    text = re.sub(r"(?<=[\d%)])\s*的\s*(?=[\d(])", "*", text)
    text = re.sub(r"(\d+(?:\.\d+)?|\))\s*%(?!\s*[\d(.a-z])", r"\1*(1/100)", text)
    return re.sub(r"(?<![\d.e])0+(?=\d)", "", text)


def _without_commas(match: re.Match[str]) -> str:
    return match[0].replace(",", "")


def _discount(match: re.Match[str]) -> str:
    """8折 is 0.8, 85折 0.85."""
    return f"({match[1]}/{100 if len(match[1].split('.')[0]) == 2 else 10})"


def _with_units(text: str) -> str:
    """1亿2000万 is one number, 3.5万 another."""
    names = "|".join(sorted(_UNITS, key=len, reverse=True))
    piece = rf"\d+(?:\.\d+)?\s*(?:{names})"

    def value(match: re.Match[str]) -> str:
        parts = re.findall(rf"(\d+(?:\.\d+)?)\s*({names})?", match[0])
        sizes = [_UNITS[unit] if unit else 1 for _, unit in parts]
        last, bare = parts[-1]
        loose = not bare and len(last) != len(str(sizes[-2])) - 1  # 1万5 is 15000 to most
        if loose or sizes != sorted(set(sizes), reverse=True):
            raise CannotCalculate(f"「{match[0]}」不是一个数，请只用数字写。")
        return (
            "("
            + "+".join(f"{number}*{size}" for (number, _), size in zip(parts, sizes, strict=True))
            + ")"
        )

    return re.sub(rf"(?<![\d.])(?:{piece})+(?:\d+(?:\.\d+)?(?![\d.]))?", value, text)


# -- values


class _Evaluation:
    def __init__(self, text: str) -> None:
        self._text = text
        self.rounded = False
        """A root that is no fraction went into it."""

    def value(self, node: ast.expr) -> Fraction:
        match node:
            case ast.Constant():
                return self._number(node)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.value(operand)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.value(operand)
            case ast.BinOp(left=left, op=op, right=right):
                return _fits(self._operation(op, self.value(left), self.value(right)))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self._call(name, args)
            case ast.Tuple():
                raise CannotCalculate("一次只能算一个式子，几个数求和写 sum(1, 2, 3)。")
            case ast.Name(id=name):
                raise CannotCalculate(f"算式里的「{_short(name)}」不是数字，请换成数字。")
        raise CannotCalculate("算式里有不能算的写法，只能写数字、加减乘除、乘方、括号和几个函数。")

    def _number(self, node: ast.Constant) -> Fraction:
        written = ast.get_source_segment(self._text, node) or ""
        if isinstance(node.value, bool | str | bytes | complex) or not _NUMBER.fullmatch(written):
            raise CannotCalculate(f"算式里的「{_short(written)}」不是十进制的数。")
        return _fits(Fraction(Decimal(written)))

    def _operation(self, op: ast.operator, left: Fraction, right: Fraction) -> Fraction:
        match op:
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
            case ast.Mult():
                return left * right
            case ast.Div():
                return left / right
            case ast.FloorDiv():
                return Fraction(left // right)
            case ast.Pow():
                return self._power(left, right)
            case ast.Mod():
                raise CannotCalculate(
                    "% 后面是数字时说不清是百分号还是求余：百分比写 15%，求余写 mod(17, 5)。"
                )
        raise CannotCalculate("只能算加减乘除和乘方，不能算别的运算。")

    def _call(self, name: str, args: Sequence[ast.expr]) -> Fraction:
        found = _FUNCTIONS.get(name)
        if found is None:
            raise CannotCalculate(
                f"没有「{_short(name)}」这个函数，能用的有 {'、'.join(_FUNCTIONS)}。"
            )
        least, most, function = found
        if not least <= len(args) <= most:
            raise CannotCalculate(f"{name} 要 {least} 到 {most} 个数，写了 {len(args)} 个。")
        numbers = [self.value(arg) for arg in args]
        if name == "sqrt":
            return self._root(numbers[0])
        if name == "pow":
            return self._power(*numbers)
        return _fits(function(numbers))

    def _power(self, base: Fraction, exponent: Fraction) -> Fraction:
        if exponent.denominator != 1:
            if exponent == Fraction(1, 2):
                return self._root(base)
            raise CannotCalculate("乘方的指数要是整数，开平方写 sqrt(…)。")
        power = exponent.numerator
        if abs(power) > MAX_EXPONENT:
            raise CannotCalculate(f"指数太大了，最多 {MAX_EXPONENT}。")
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if bits > 1 and (bits - 1) * abs(power) > MAX_BITS:
            raise CannotCalculate("数太大了，算不了。")
        return base**power

    def _root(self, value: Fraction) -> Fraction:
        """Exact where it is rational, else to 30 digits."""
        if value < 0:
            raise CannotCalculate("负数不能开平方。")
        top, bottom = isqrt(value.numerator), isqrt(value.denominator)
        if top * top == value.numerator and bottom * bottom == value.denominator:
            return Fraction(top, bottom)
        self.rounded = True
        with localcontext(Context(prec=40)):
            return Fraction((Decimal(value.numerator) / Decimal(value.denominator)).sqrt())


def _fits(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise CannotCalculate("数太大了，算不了。")
    return value


def _round(numbers: list[Fraction]) -> Fraction:
    """Half away from zero, as people and spreadsheets round."""
    places = numbers[1] if len(numbers) > 1 else Fraction(0)
    if places.denominator != 1 or abs(places) > 30:
        raise CannotCalculate("round 的第二个数是保留几位小数，0 到 30 的整数。")
    size = Fraction(10) ** int(places)
    scaled = abs(numbers[0]) * size
    whole = Fraction(floor(scaled + Fraction(1, 2))) / size
    return -whole if numbers[0] < 0 else whole


def _mod(numbers: list[Fraction]) -> Fraction:
    return numbers[0] % numbers[1]


def _own(numbers: list[Fraction]) -> Fraction:
    raise AssertionError("the evaluation does it itself")


_MANY = 200
# sqrt and pow may round, which the evaluation has to know: they are its own.
_FUNCTIONS: dict[str, tuple[int, int, Callable[[list[Fraction]], Fraction]]] = {
    "round": (1, 2, _round),
    "sqrt": (1, 1, _own),
    "sum": (1, _MANY, lambda n: sum(n, Fraction(0))),
    "avg": (1, _MANY, lambda n: sum(n, Fraction(0)) / len(n)),
    "min": (1, _MANY, min),
    "max": (1, _MANY, max),
    "abs": (1, 1, lambda n: abs(n[0])),
    "floor": (1, 1, lambda n: Fraction(floor(n[0]))),
    "ceil": (1, 1, lambda n: Fraction(ceil(n[0]))),
    "mod": (2, 2, _mod),
    "pow": (2, 2, _own),
}
