"""Chinese and Arabic numerals as people mix them when they speak of times and amounts. Pure."""

from __future__ import annotations

DIGITS = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_TENS = {"廿": 20, "卅": 30}
_UNITS = {"十": 10, "百": 100, "千": 1000}

NUMERAL = r"(?:\d+|[零〇一二两三四五六七八九十百廿卅]+)"
"""A regular expression of what `read_numeral` is asked about; it matches more than is a number."""


def read_numeral(text: str) -> int | None:
    """The whole number below 10,000 that is written there: `15`, `十五`, `一百零二`, `廿五`, digit
    by digit (`二〇二六`). None when it is none (`三十五十`)."""
    if not text:
        return None
    if text.isascii() and text.isdecimal():
        return int(text) if len(text) <= 8 else None
    if text and all(c in DIGITS for c in text):
        if len(text) == 1:
            return DIGITS[text]
        by_digit = "".join(str(DIGITS[c]) for c in text)
        if len(text) == 2 and by_digit[0] == "0":  # 零五: five past
            return int(by_digit)
        return int(by_digit) if len(text) == 4 and by_digit[0] in "12" else None
    return _with_units(text)


def _with_units(text: str) -> int | None:
    total, last_unit, digit = 0, 10_000, None
    zero = False
    for character in text:
        if character in _TENS:
            if total or digit is not None:
                return None
            total, last_unit = _TENS[character], 10
        elif (unit := _UNITS.get(character)) is not None:
            if unit >= last_unit or digit == 0:
                return None
            if digit is None and total and not zero:
                return None
            total += (1 if digit is None else digit) * unit
            last_unit, digit, zero = unit, None, False
        elif (value := DIGITS.get(character)) is not None:
            if value == 0:
                if digit is not None or not total:
                    return None
                zero = True
                continue
            if digit is not None:
                return None
            digit = value
        else:
            return None
    if zero and digit is None:
        return None
    if digit is not None:
        if last_unit == 10_000 or (last_unit > 10 and not zero):
            return None  # 一百二 is 120 to some and 102 to others
        total += digit
    return total
