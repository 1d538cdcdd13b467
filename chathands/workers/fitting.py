"""Which sheet a question is about when it names none, or columns that are on another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO, TypeVar

from chathands.workers.columns import (
    ColumnFinder,
    NoColumn,
    SeveralColumns,
    UnreadCondition,
    alike,
    called,
    split_names,
)
from chathands.workers.conditions import condition_texts, has_operator
from chathands.workers.near_values import find_strays, stray_sentence
from chathands.workers.protocol import Rejected
from chathands.workers.table import Table
from chathands.workers.workbook import open_tables

Made = TypeVar("Made")

Fit = Callable[[Table, ColumnFinder], Made]
"""Makes something of a table, or raises Rejected because it has no such columns."""

_SHEETS_OPENED = 12
"""Sheets that are opened only to tell where a column is."""

_OWN_ROOM, _OTHERS_ROOM, _OTHER_ROOM = 200, 160, 70
"""Characters for the columns of the sheet asked about, of all others, and of one of them; a
failure longer than 500 characters is cut (toolbox.render)."""


@dataclass(frozen=True, slots=True)
class _Sheet:
    """A sheet that was tried. `refusal` is None when the question fits it."""

    name: str | None
    columns: list[str]
    others: list[str]
    refusal: Rejected | None


def fitting_table(
    payload: dict[str, Any], file: BinaryIO, fit: Fit[Made], *, largest: bool = False
) -> tuple[Table, Made]:
    """The first table that has the columns `fit` looks for, and what `fit` made of it.

    "各产品卖了多少" names no sheet, and the first one is often a summary without products. With
    `largest` it is the one with most rows: counts and means are about records, not about totals.
    Where none has a column of that name, the first one (or the largest) that has it in other words.
    Raises Rejected saying which columns there are, and where.
    """
    sheets: list[_Sheet] = []
    exact: tuple[Table, Made] | None = None
    loose: tuple[Table, Made, ColumnFinder] | None = None
    first: str | None = None
    for table in open_tables(payload, file):
        made, finder, refusal = _tried(table, fit)
        if made is None or finder.guessed:
            sheets.append(_Sheet(table.sheet, list(table.columns), table.others, refusal))
            larger = largest and loose is not None and _rows(table) > _rows(loose[0])
            if made is not None and (loose is None or larger):
                loose = table, made, finder
            continue
        first = first or table.sheet
        if exact is None or _rows(table) > _rows(exact[0]):
            exact = table, made
        if not largest:
            break
    if exact is not None:
        if exact[0].sheet != first:
            exact[0].notes.append(f"没有指定工作表，用了行数最多的「{exact[0].sheet}」")
        return exact
    named = payload.get("sheet") and any(sheet.others for sheet in sheets)
    elsewhere = _elsewhere(payload, file, fit) if named else []
    if loose is not None:
        table, made, finder = loose
        rest = [sheet for sheet in sheets + elsewhere if sheet.name != table.sheet]
        if not any(called(name, sheet.columns) for sheet in rest for name in finder.guessed):
            return table, made
    raise _refusal(payload, file, sheets, elsewhere)


def _tried(table: Table, fit: Fit[Made]) -> tuple[Made | None, ColumnFinder, Rejected | None]:
    """What `fit` made of the table, by the columns' own names if they will do; else why it did not.

    There is a refusal also where only other words made it fit: another sheet may have the names.
    """
    finder = ColumnFinder(table.columns)
    try:
        return fit(table, finder), finder, None
    except NoColumn as refused:
        refusal = refused
    except Rejected as refused:
        return None, finder, refused
    finder = ColumnFinder(table.columns, loose=True)
    try:
        return fit(table, finder), finder, refusal
    except Rejected as refused:
        return None, finder, refused


def _rows(table: Table) -> int:
    return table.declared_rows


def _elsewhere(payload: Mapping[str, Any], file: BinaryIO, fit: Fit[Any]) -> list[_Sheet]:
    """The visible sheets, for a question that named one it does not fit."""
    sheets = []
    tables = open_tables({**payload, "sheet": None}, file, remarks=False)
    for table in islice(tables, _SHEETS_OPENED):
        made, _, refusal = _tried(table, fit)
        refusal = refusal if made is None else None
        sheets.append(_Sheet(table.sheet, list(table.columns), table.others, refusal))
    return sheets


def _refusal(
    payload: Mapping[str, Any], file: BinaryIO, tried: Sequence[_Sheet], elsewhere: Sequence[_Sheet]
) -> Rejected:
    """One refusal for all sheets; what to write instead stands first."""
    if not tried:
        return Rejected("文件里没有数据。")
    own, names = tried[0], {sheet.name for sheet in tried}
    others = [*tried[1:], *(sheet for sheet in elsewhere if sheet.name not in names)]
    for sheet in tried:
        if isinstance(sheet.refusal, SeveralColumns):
            place = f"工作表「{sheet.name}」：" if len(tried) > 1 else ""
            return Rejected(place + sheet.refusal.sentence)
    missed: dict[str, str] = {}
    unread: set[str] = set()
    for sheet in (*tried, *others):
        if isinstance(sheet.refusal, UnreadCondition):
            unread.add(sheet.refusal.wanted)
        if isinstance(sheet.refusal, NoColumn):
            head = missed.get(sheet.refusal.wanted, "")
            missed[sheet.refusal.wanted] = max(head, sheet.refusal.head, key=len)
    if not missed:
        known = f"其他工作表：{'、'.join(own.others)}。" if own.others else ""
        return Rejected(f"{own.refusal.sentence if own.refusal else ''}{known}")
    homes = {name: _homes(name, (own, *others)) for name in missed if name not in unread}
    nowhere = [name for name in missed if not homes.get(name)]
    if nowhere and (advice := _as_values(payload, file)):
        return Rejected(advice)
    if nowhere:
        head = "".join(missed[name] for name in nowhere[:3])
    elif elsewhere:
        head = _on_another_sheet(own, others, homes)
    else:
        places = "，".join(f"「{name}」在「{home[0]}」" for name, home in homes.items())
        head = f"没有一张工作表同时有这些列：{places}。请分开查。"
    return Rejected(head + _listing(own, others))


def _homes(name: str, sheets: Sequence[_Sheet]) -> list[str | None]:
    """Sheets that have a column of this name, else those that have it in other words."""
    plainly = [sheet.name for sheet in sheets if called(name, sheet.columns)]
    return plainly or [sheet.name for sheet in sheets if alike(name, sheet.columns)]


def _on_another_sheet(
    own: _Sheet, others: Sequence[_Sheet], homes: Mapping[str, Sequence[str | None]]
) -> str:
    """For a question that named a sheet: where its columns are, and what to write if one sheet has
    all of them."""
    lacking = {name: home for name, home in homes.items() if not called(name, own.columns)}
    names = "".join(f"「{name}」" for name in lacking)
    fitting = next(
        (
            sheet.name
            for sheet in others
            if sheet.refusal is None and all(sheet.name in home for home in lacking.values())
        ),
        None,
    )
    if fitting is not None:
        return f'没有列{names}，它在工作表「{fitting}」里，请改为 sheet_name="{fitting}"。'
    return "".join(
        f"没有列「{name}」，它在工作表「{home[0]}」里。" for name, home in lacking.items()
    )


def _listing(own: _Sheet, others: Sequence[_Sheet]) -> str:
    """The columns of every sheet, as far as there is room."""
    if not others:
        return f"这张表的列有：{_joined(own.columns, _OWN_ROOM)}。"
    text = f"工作表「{own.name}」的列有：{_joined(own.columns, _OWN_ROOM)}。"
    told: list[str] = []
    for sheet in others:
        entry = f"{sheet.name}（{_joined(sheet.columns, _OTHER_ROOM)}）"
        if told and sum(map(len, told)) + len(entry) > _OTHERS_ROOM:
            break
        told.append(entry)
    more = f" 等 {len(others)} 张" if len(others) > len(told) else ""
    return f"{text}其他工作表：{'、'.join(told)}{more}。"


def _joined(names: Sequence[str], room: int) -> str:
    told: list[str] = []
    for name in names:
        if told and sum(map(len, told)) + len(told) + len(name) > room:
            return f"{'、'.join(told)}……"
        told.append(name)
    return "、".join(told)


def _as_values(payload: Mapping[str, Any], file: BinaryIO) -> str | None:
    """What to write when a value stands where a column belongs; None when that is not the case."""
    if "where" not in payload:
        return None
    texts = split_names(payload.get("group_by") or ()) + split_names(payload.get("columns") or ())
    texts += [text for text in condition_texts(payload["where"]) if not has_operator(text)]
    for table in islice(open_tables(dict(payload), file, remarks=False), _SHEETS_OPENED):
        finder = ColumnFinder(table.columns, loose=True)
        strays = find_strays(table, [text for text in texts if not _is_column(text, finder)])
        if strays:
            return stray_sentence(payload, strays)
    return None


def _is_column(text: str, finder: ColumnFinder) -> bool:
    try:
        finder.find(text)
    except NoColumn:
        return False
    except SeveralColumns:
        return True
    return True
