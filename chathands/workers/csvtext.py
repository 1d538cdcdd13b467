"""CSV and TSV: which encoding, which separator, rows as they are."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator

from chathands.workers.protocol import Rejected

_SEPARATORS = ",\t;|"
_SAMPLE_LINES = 20
_LOOKED_AT = 4096
_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def decode(data: bytes) -> str:
    """By BOM, else UTF-8 if every byte fits, else GB18030, which Excel and WPS write in China.

    Guessers are worse than this order: charset-normalizer calls a short GBK file cp949.
    Raises Rejected when it is no text.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encodings = ("utf-16",)
    elif unmarked := _unmarked_utf16(data):
        encodings = (unmarked,)
    else:
        encodings = ("utf-8-sig", "gb18030")
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if not _CONTROL.search(text):
            return text
    raise Rejected("文件既不是工作簿，也不是能认出编码的文本表格，可能已损坏。")


def _unmarked_utf16(data: bytes) -> str | None:
    """UTF-16 without its mark: one half of each separator and digit is a NUL, always the same."""
    high, low = data[:_LOOKED_AT:2].count(0), data[1:_LOOKED_AT:2].count(0)
    if len(data) % 2 or (high and low) or (high + low) * 16 < min(len(data), _LOOKED_AT):
        return None
    return "utf-16-be" if high else "utf-16-le"


def read_rows(text: str) -> Iterator[list[str]]:
    """Rows of differing lengths, as written. Raises Rejected on what no reader can split."""
    separator, text = _separator(text)
    csv.field_size_limit(len(text) + 1)
    try:
        yield from csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    except csv.Error:
        raise Rejected("CSV 的引号或换行不成对，分不出单元格，请用 Excel/WPS 重新另存。") from None


def _separator(text: str) -> tuple[str, str]:
    """The separator that splits the first lines most evenly, and the text without a `sep=` line."""
    first, _, rest = text.partition("\n")
    named = re.fullmatch(r"sep=(.)", first.strip("\r "))
    if named:
        return named[1], rest
    lines = text.split("\n", _SAMPLE_LINES)[:_SAMPLE_LINES]
    best, most = ",", 0
    for separator in _SEPARATORS:
        widths = Counter(line.count(separator) for line in lines if line.strip())
        widths.pop(0, None)
        if not widths:
            continue
        # Lines that agree on a width count most; the width only breaks ties.
        width, agreeing = max(widths.items(), key=lambda item: (item[1], item[0]))
        score = agreeing * 100 + min(width, 99)
        if score > most:
            best, most = separator, score
    return best, text
