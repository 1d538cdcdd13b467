"""In what messages a reply leaves: texts, pictures, a forward, files, and what stands in for each
when the other side refuses it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from chathands.settings import GroupSettings
from plugins.group_chat.messages import Outgoing, Place
from plugins.group_chat.rendering import Piece, text_of
from plugins.group_chat.rendering_tables import Table
from plugins.group_chat.speech import file_size, not_approval, split
from plugins.group_chat.table_image import Drawn

MAX_PARTS = 8
"""Plain messages of one reply. A model that repeats itself for ever would fill the group with
hundreds, and an account that floods is banned."""
MAX_NODES = 40
"""Entries of one forward; NapCat gives up on forwards of about a hundred."""
FORWARD_MOST = 12_000
"""Characters in a forward; nobody scrolls through more, a file can be searched."""
FILE_MOST = 200_000
"""Characters in a file of text: all that a reply can be."""
OPENING = 150
"""Characters of a long reply that are shown where it is announced."""

NOTHING_LEFT = "这次没有得到可用的回答，请换个说法再问一次。"
"""Instead of a reply that is nothing but marks (an empty table, a fence): never silence."""
CUT = "……（太长了，后面 {left} 字没有发出来，请把问题问得小一些）"
ANNOUNCED = "……\n（全文 {size} 字，见下一条）"
LINKS_BROKEN = "（里面的链接发不出去，所以拆开了：去掉空格就能打开）"
FILE_NOT_SENT = (
    "文件「{name}」（{size}）没能发出来：QQ 那边不接收，可能是群文件满了或者没有权限，"
    "请管理员看一下群文件和日志。"
)
FILES_BELOW = "文件在下面。"

TEXT_FILE, TABLE_FILE = "回答.txt", "表格.csv"

_ADDRESS = re.compile(r"(?:(https?://)|\b(?=www\.))([^\s/?#\"'<>，。；、（）]{3,253})")
_IMAGE_MAGIC = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")
_NO_NAME = re.compile(r"[\x00-\x1f\x7f/\\:*?\"<>|\u200b-\u200f\u202a-\u202e\u2066-\u2069]+")


@dataclass(frozen=True, slots=True)
class Parcel:
    """Something to be shown. A later way is for when the first message of one was refused: then
    nothing of it has been shown."""

    ways: tuple[tuple[Outgoing, ...], ...]


@dataclass(frozen=True, slots=True)
class Wrapping:
    """What all messages of one reply have in common."""

    place: Place
    settings: GroupSettings

    def verbatim(self, text: str) -> list[Parcel]:
        """The text as it is and whole, in as many parts as it takes."""
        return [Parcel(((self._text(part),),)) for part in split(text, self._limit)]

    def reply(self, pieces: Sequence[Piece], drawn: Mapping[int, Drawn]) -> list[Parcel]:
        """The pieces in order; `drawn` has pictures of some tables, by their place in `pieces`."""
        shown = sum(len(self._written(p)) for n, p in enumerate(pieces) if n not in drawn)
        out = self._short(pieces, drawn) if shown <= self._limit else self._long(pieces, drawn)
        tables = (pieces[n] for n, picture in drawn.items() if not picture.whole)
        return out + [self._table_file(table) for table in tables if isinstance(table, Table)]

    def files(self, files: Sequence[tuple[str, bytes]]) -> list[Parcel]:
        """Each as a picture where it is one, else as a file, else a sentence that it is missing."""
        out = []
        for name, data in files:
            name = file_name(name)
            said = FILE_NOT_SENT.format(name=not_approval(name), size=file_size(len(data)))
            ways = [
                (Outgoing(self.place, "", kind="file", file=(name, data)),),
                (self._text(said),),
            ]
            if is_image(data):
                ways.insert(0, (Outgoing(self.place, "", kind="image", image=data),))
            out.append(Parcel(tuple(ways)))
        return out

    def _short(self, pieces: Sequence[Piece], drawn: Mapping[int, Drawn]) -> list[Parcel]:
        out: list[Parcel] = []
        texts: list[Piece] = []
        for number, piece in enumerate(pieces):
            if number not in drawn:
                texts.append(piece)
                continue
            caption = self._joined(texts)
            picture = Outgoing(self.place, caption, kind="image", image=drawn[number].png)
            out.append(Parcel(((picture,), self._parts(self._joined([*texts, piece])))))
            texts = []
        if text := self._joined(texts):
            out.append(Parcel((self._parts(text),)))
        return out

    def _long(self, pieces: Sequence[Piece], drawn: Mapping[int, Drawn]) -> list[Parcel]:
        whole = self._joined(pieces)
        nodes: list[str | bytes] = []
        for number, piece in enumerate(pieces):
            if number in drawn:
                nodes.append(drawn[number].png)
            else:
                nodes.extend(split(not_approval(self._written(piece)), self._limit))
        left = sum(len(node) for node in nodes[MAX_NODES:] if isinstance(node, str))
        if left:
            nodes = [*nodes[:MAX_NODES], CUT.format(left=left)]
        forward = (Outgoing(self.place, "", kind="forward", nodes=tuple(nodes)),)
        content = whole[:FILE_MOST]
        if len(whole) > FILE_MOST:
            content += CUT.format(left=len(whole) - FILE_MOST)
        # The mark at the beginning: without it QQ's viewer on Windows guesses GBK.
        file = (TEXT_FILE, content.encode("utf-8-sig", "replace"))
        as_file = (Outgoing(self.place, "", kind="file", file=file),)
        parts = self._parts(whole)
        match self.settings.long_reply:
            case "parts":
                return [Parcel((parts,))]
            case "forward" if len(whole) <= FORWARD_MOST:
                ways = (forward, as_file, parts)
            case "forward":
                ways = (as_file, forward, parts)
            case "file":
                ways = (as_file, parts)
        return [Parcel(((self._text(_announced(whole)),),)), Parcel(ways)]

    def _table_file(self, table: Table) -> Parcel:
        file = Outgoing(self.place, "", kind="file", file=(TABLE_FILE, table.as_csv()))
        return Parcel(((file,), self._parts("\n".join(table.as_list()))))

    def _parts(self, text: str) -> tuple[Outgoing, ...]:
        """At most MAX_PARTS; the last says how much is missing."""
        parts = split(text, self._limit)
        if left := sum(map(len, parts[MAX_PARTS:])):
            parts = [*parts[: MAX_PARTS - 1], parts[MAX_PARTS - 1] + CUT.format(left=left)]
        return tuple(map(self._text, parts))

    def _joined(self, pieces: Sequence[Piece]) -> str:
        return not_approval(text_of(pieces, lines=self.settings.tables != "list"))

    def _written(self, piece: Piece) -> str:
        return text_of([piece], lines=self.settings.tables != "list")

    def _text(self, text: str) -> Outgoing:
        return Outgoing(self.place, text)

    @property
    def _limit(self) -> int:
        return self.settings.reply_length


def quoting(
    parcels: Sequence[Parcel], quote: str | None, mention: str | None = None
) -> list[Parcel]:
    """The same, the first text or picture quoting, and calling somebody up."""
    if (quote is None and mention is None) or not parcels:
        return list(parcels)
    first, *rest = parcels
    ways = tuple(
        (replace(way[0], quote=quote, mention=mention), *way[1:])
        if way[0].kind in ("text", "image")
        else way
        for way in first.ways
        if way
    )
    return [Parcel(ways), *rest]


def with_broken_links(message: Outgoing) -> Outgoing | None:
    """The message with its addresses pulled apart, so that nothing takes them for links; None when
    there are none. Nothing of them is lost: without the spaces they are what they were."""
    nodes = tuple(_broken(n) if isinstance(n, str) else n for n in message.nodes)
    text = _broken(message.text)
    if (text, nodes) == (message.text, message.nodes):
        return None
    if message.kind == "forward":
        nodes = (*nodes, LINKS_BROKEN)
    else:
        text = f"{text}\n{LINKS_BROKEN}"
    return replace(message, text=text, nodes=nodes)


def _broken(text: str) -> str:
    def apart(found: re.Match[str]) -> str:
        scheme = f"{found[1]} " if found[1] else ""
        return scheme + found[2].replace(".", " .")

    return _ADDRESS.sub(apart, text)


def is_image(data: bytes) -> bool:
    """Whether it is a picture QQ shows, by its first bytes; names lie."""
    return data.startswith(_IMAGE_MAGIC) or (data[:4] == b"RIFF" and data[8:12] == b"WEBP")


def file_name(name: str) -> str:
    """A name fit to be shown and saved: no path, nothing invisible, at most 80 characters."""
    name = _NO_NAME.sub("_", re.split(r"[\\/]", name)[-1]).strip(" ._")
    stem, dot, suffix = name.rpartition(".")
    if dot and len(suffix) <= 10:
        return f"{stem[: 79 - len(suffix)] or '文件'}.{suffix}"
    return name[:80] or "文件"


def _announced(text: str) -> str:
    opening = split(text, OPENING)[0]
    return opening.rstrip("…") + ANNOUNCED.format(size=len(text))
