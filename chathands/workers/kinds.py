"""What a file really is, by its first bytes, and whether it may be opened. Names prove nothing:
.xls saved as .xlsx, web pages saved as .xls and text saved as either are everyday cases."""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from typing import BinaryIO, Literal

from chathands.workers.protocol import FILE_CAP, Rejected

Kind = Literal["zip", "ole", "text"]

UNPACKED_CAP = 256 * 1024 * 1024
"""Bytes of all members. A 300,000-row workbook is 129 MB unpacked (measured)."""

RATIO_CAP = 100
RATIO_FROM = 8 * 1024 * 1024
"""Members above this size may not shrink by more than the cap: real sheets stay under 14, a bomb
reaches 1029 (measured)."""

MEMBERS_CAP = 10_000

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_HTML = re.compile(rb"<(!doctype html|html|head|meta|table|body|script|style)\b", re.IGNORECASE)
_OTHERS = (
    (b"%PDF", "文件是 PDF，不是表格。"),
    (b"\x89PNG", "文件是图片，不是表格。"),
    (b"\xff\xd8\xff", "文件是图片，不是表格。"),
    (b"GIF8", "文件是图片，不是表格。"),
    (b"Rar!", "文件是 RAR 压缩包，请解压后再放进来。"),
    (b"7z\xbc\xaf", "文件是 7z 压缩包，请解压后再放进来。"),
    (b"\x1f\x8b", "文件是 gzip 压缩包，请解压后再放进来。"),
)

_MANIFEST = 256 * 1024
"""Bytes of the list that are looked at; it may be a bomb itself."""

CORRUPT = "文件已损坏或没有传完整，打不开。请在 Excel/WPS 里确认能打开并重新保存后再放进来。"
PASSWORD = "文件有密码保护，没有读取。请在 Excel/WPS 里去掉密码另存后再放进来。"
_BOMB = "文件解压后太大（像压缩炸弹），没有读取。"


def kind_of(file: BinaryIO) -> Kind:
    """Leaves the file at its beginning. Raises Rejected when it is no table, or a dangerous one."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size == 0:
        raise Rejected("文件是空的（0 字节），没有内容可读。")
    if size > FILE_CAP:
        raise Rejected(f"文件有 {size >> 20} MB，超过了 {FILE_CAP >> 20} MB 的上限，没有读取。")
    head = file.read(4096)
    file.seek(0)
    if head.startswith(b"PK"):
        _check_zip(file)
        file.seek(0)
        return "zip"
    if head.startswith(_OLE):
        _check_ole(file)
        file.seek(0)
        return "ole"
    for magic, sentence in _OTHERS:
        if head.startswith(magic):
            raise Rejected(sentence)
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if _HTML.match(start):
        raise Rejected(
            "文件其实是网页（HTML），只是改了扩展名。请用 Excel/WPS 打开后另存为 .xlsx。"
        )
    if start.startswith(b"<?xml"):
        raise Rejected("文件其实是 XML 文本，不是工作簿。请用 Excel/WPS 打开后另存为 .xlsx。")
    return "text"


def _check_zip(file: BinaryIO) -> None:
    """Sizes from the directory of the archive, before anything is unpacked."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            locked = _is_locked(archive)
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError, zlib.error):
        raise Rejected(CORRUPT) from None
    total = sum(member.file_size for member in members)
    swollen = any(
        member.file_size > RATIO_FROM and member.file_size > RATIO_CAP * member.compress_size
        for member in members
    )
    if total > UNPACKED_CAP or swollen or len(members) > MEMBERS_CAP:
        raise Rejected(_BOMB)
    if locked:
        raise Rejected(PASSWORD)
    names = {member.filename for member in members}
    if "mimetype" not in names and not any(name.startswith("xl/") for name in names):
        if any(name.startswith(("word/", "ppt/")) for name in names):
            raise Rejected("文件是 Word 或 PPT 文档，不是表格。")
        raise Rejected("文件是压缩包，不是表格。请解压后再放进来。")


def _is_locked(archive: zipfile.ZipFile) -> bool:
    """An OpenDocument says in its list of parts which of them are encrypted."""
    try:
        info = archive.getinfo("META-INF/manifest.xml")
    except KeyError:
        return False
    with archive.open(info) as part:
        return b"encryption-data" in part.read(_MANIFEST)


def _check_ole(file: BinaryIO) -> None:
    """Office puts an encrypted .xlsx into an OLE container, under this stream name."""
    data = file.read()
    if "EncryptedPackage".encode("utf-16-le") in data:
        raise Rejected(PASSWORD)
    if "WordDocument".encode("utf-16-le") in data:
        raise Rejected("文件是 Word 文档，不是表格。")
    if "PowerPoint Document".encode("utf-16-le") in data:
        raise Rejected("文件是 PPT 文档，不是表格。")
