"""What calamine does not tell about a sheet of an .xlsx: formulas without a stored result, and
error cells. Both read as empty there, so a sum over them would be silently wrong."""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, BinaryIO
from xml.etree import ElementTree

_CHUNK = 1024 * 1024
_PARTS_CAP = 4 * 1024 * 1024
_CELL_CAP = 1024 * 1024
_EXAMPLES = 3

_ROOT = re.compile(rb"<(\w+:)?worksheet[\s>]")
_FORMULA = re.compile(rb"<(?:\w+:)?f[\s>/]")
_VALUE = re.compile(rb"<(?:\w+:)?v(?:\s[^>]*)?>([^<]*)</")
_REF = re.compile(rb"\br=[\"']([A-Z]{1,3}\d{1,7})[\"']")
_PLACE = re.compile(rb"\br=[\"']([A-Z]{1,3})(\d{1,7})[\"']")
_TYPE = re.compile(rb"\bt=[\"'](\w+)[\"']")

_DIMENSION = re.compile(
    rb"<(?:\w+:)?dimension\s[^>]*?ref=[\"'](?:[A-Z]{1,3}\d{1,7}:)?([A-Z]{1,3})(\d{1,7})[\"']"
)
_CALENDAR = re.compile(rb"<(?:\w+:)?workbookPr\s[^>]*?date1904=[\"'](\w+)[\"']")
_MERGED = re.compile(
    rb"<(?:\w+:)?mergeCell\s+ref=[\"']([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})[\"']\s*/>"
)
_HEAD = 64 * 1024
"""Bytes of a sheet in which its dimension stands: before all rows."""

AREA_CAP = 20_000_000
"""Cells of the rectangle that holds all of a sheet's. calamine lays out every one, 24 bytes each,
and aborts the process that has no room for them; a million rows of 16 columns are below it."""

_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


@dataclass(slots=True)
class Findings:
    """Counts, and the first few places."""

    uncomputed: int = 0
    uncomputed_at: list[str] = field(default_factory=list)
    errors: int = 0
    errors_at: list[str] = field(default_factory=list)


def scan(file: BinaryIO, sheet: str) -> Findings:
    """Streams the sheet's XML once. An archive laid out differently gives empty findings: this
    only adds remarks, the reading itself is calamine's."""
    findings = Findings()
    try:
        with zipfile.ZipFile(file) as archive:
            member = _member(archive, sheet)
            if member is not None:
                with archive.open(member) as part:
                    for attributes, content in _cells(part):
                        _judge(attributes, content, findings)
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, OSError, ElementTree.ParseError):
        return findings
    return findings


def far_cell(file: BinaryIO, sheet: str) -> str | None:
    """Where the sheet ends when it is too large to be laid out (`XFD1048576`), else None.

    A dimension within the cap is believed: one that lies costs the child and not the bot, and
    looking at every cell would cost each honest file a second.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            member = _member(archive, sheet)
            if member is None:
                return None
            with archive.open(member) as part:
                head = part.read(_HEAD)
                claimed = _DIMENSION.search(head)
                if claimed is None or _column(claimed[1]) * int(claimed[2]) <= AREA_CAP:
                    return None
                widest, deepest = _extent(head, part)
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, OSError, ElementTree.ParseError):
        return None
    far = _column(widest) * deepest > AREA_CAP
    return f"{widest.decode()}{deepest}" if far else None


def _extent(head: bytes, part: IO[bytes]) -> tuple[bytes, int]:
    """The last column and the last row that hold a cell."""
    widest, deepest = b"A", 1
    buffer = head
    while buffer:
        chunk = part.read(_CHUNK)
        whole, rest = (buffer, b"") if not chunk else (buffer, buffer[-32:])
        for match in _PLACE.finditer(whole):
            widest = max(widest, match[1], key=lambda name: (len(name), name))
            deepest = max(deepest, int(match[2]))
        buffer = rest + chunk if chunk else b""
    return widest, deepest


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - 64
    return number


def counts_from_1904(file: BinaryIO) -> bool:
    """Whether the workbook's day numbers begin in 1904."""
    try:
        with zipfile.ZipFile(file) as archive, archive.open("xl/workbook.xml") as part:
            found = _CALENDAR.search(part.read(_HEAD))
            return found is not None and found[1] in (b"1", b"true")
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, OSError):
        return False


def merged_ranges(file: BinaryIO, sheet: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Merged cells as (row, column) of their corners, from 0; they stand behind all rows."""
    found = []
    try:
        with zipfile.ZipFile(file) as archive:
            member = _member(archive, sheet)
            if member is None:
                return []
            with archive.open(member) as part:
                buffer = b""
                while chunk := part.read(_CHUNK):
                    buffer += chunk
                    for match in _MERGED.finditer(buffer):
                        left, top, right, bottom = match.groups()
                        corner = (int(top) - 1, _column(left) - 1)
                        found.append((corner, (int(bottom) - 1, _column(right) - 1)))
                    buffer = buffer[max(buffer.rfind(b"<"), len(buffer) - 200, 0) :]
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, OSError, ElementTree.ParseError):
        return found
    return found


def _member(archive: zipfile.ZipFile, sheet: str) -> str | None:
    names = set(archive.namelist())
    if not {"xl/workbook.xml", "xl/_rels/workbook.xml.rels"} <= names:
        return None
    targets = {
        relation.get("Id"): relation.get("Target") or ""
        for relation in _parse(archive, "xl/_rels/workbook.xml.rels")
    }
    for element in _parse(archive, "xl/workbook.xml").iter():
        if element.tag.endswith("}sheet") and element.get("name") == sheet:
            relation = element.get(_RELATION) or next(
                (value for key, value in element.items() if key.endswith("}id")), None
            )
            target = targets.get(relation, "")
            path = target[1:] if target.startswith("/") else posixpath.normpath(f"xl/{target}")
            return path if path in names else None
    return None


def _parse(archive: zipfile.ZipFile, name: str) -> ElementTree.Element:
    with archive.open(name) as part:
        return ElementTree.fromstring(part.read(_PARTS_CAP))


def _cells(part: IO[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Attributes and content of the cells that hold a formula or an error.

    Splitting at the cells' beginnings keeps this linear whatever the file says; parsing the XML
    of 3 million cells would take longer than the job may.
    """
    buffer = part.read(_CHUNK)
    root = _ROOT.search(buffer)
    prefix = root[1] or b"" if root else b""
    opener, formula = b"<" + prefix + b"c ", b"<" + prefix + b"f"
    while buffer:
        chunk = part.read(_CHUNK)
        # The last cell may go on in the next chunk.
        cut = buffer.rfind(opener) if chunk else len(buffer)
        whole, rest = (buffer[:cut], buffer[cut:]) if cut >= 0 else (b"", buffer[-_CHUNK:])
        if formula in whole or b't="e"' in whole or b"t='e'" in whole:
            for piece in whole.split(opener)[1:]:
                attributes, _, content = piece.partition(b">")
                if formula in content or b"e" in attributes:
                    yield attributes, content
        # Excel's cells hold 32,767 characters; a longer one is only there to be slow.
        buffer = (rest if len(rest) <= _CELL_CAP else b"") + chunk


def _judge(attributes: bytes, content: bytes, findings: Findings) -> None:
    kind = _TYPE.search(attributes)
    value = _VALUE.search(content)
    if kind and kind[1] == b"e":
        findings.errors += 1
        _note(findings.errors_at, attributes, value[1].decode("utf-8", "replace") if value else "")
        return
    # A text formula may well have "" as its result; a number cannot.
    may_be_empty = kind is not None and kind[1] == b"str"
    empty = value is None or not value[1].strip()
    if empty and not may_be_empty and _FORMULA.search(content):
        findings.uncomputed += 1
        _note(findings.uncomputed_at, attributes, "")


def _note(places: list[str], attributes: bytes, text: str) -> None:
    reference = _REF.search(attributes)
    if reference and len(places) < _EXAMPLES:
        places.append(f"{reference[1].decode()} {text}".strip())
