"""What a request of the Responses API goes on from: earlier responses, and items it only names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from chathands.protocols.openai import BadRequest, to_json
from chathands.protocols.responses_items import Item, response_of
from chathands.server.gateway import BODY_CAP
from chathands.store.responses import ChainTooLong, Responses

MOST_RESPONSES = 32
"""From which a request may name items beside those it follows; each is read whole. Clients that
name items name those of the last few replies."""

PAGE = 20
LARGEST_PAGE = 100
"""Items of a listing, both as in the protocol."""


class Missing(BadRequest):
    """Something that a request names is not there, or is another caller's."""

    def __init__(self, message: str, field: str | None, *, status: int, code: str | None) -> None:
        super().__init__(message, field)
        self.status = status
        self.code = code

    @classmethod
    def response(cls, id: str) -> Self:
        return cls(f"Response with id '{id[:80]}' not found.", None, status=404, code=None)

    @classmethod
    def previous(cls, id: str) -> Self:
        """400 and this code are what clients know to send everything again for."""
        return cls(
            f"Previous response with id '{id[:80]}' not found.",
            "previous_response_id",
            status=400,
            code="previous_response_not_found",
        )

    @classmethod
    def item(cls, id: str) -> Self:
        message = f"Item with id '{id[:80]}' not found; send the item itself."
        return cls(message, "input", status=404, code=None)


async def what_came_before(store: Responses | None, caller: str, id: str) -> list[Item]:
    """All items up to this response, its output included. Raises Missing, BadRequest, StoreError.

    It may not be larger than a request that carries it all.
    """
    try:
        chain = await store.chain(caller, id, limit=BODY_CAP) if store is not None else None
    except ChainTooLong:
        message = (
            f"previous_response_id: what led to it is larger than {BODY_CAP} bytes;"
            " begin anew with a summary of it"
        )
        raise BadRequest(message, "previous_response_id") from None
    if chain is None:
        raise Missing.previous(id)
    return [item for stored in chain for item in (*stored.input, *stored.body["output"])]


async def resolved(
    items: Sequence[Item], before: Sequence[Item], store: Responses | None, caller: str
) -> list[Item]:
    """`items` with those that are only named (`item_reference`) themselves in their place. Raises
    Missing, BadRequest, StoreError."""
    if all(item["type"] != "item_reference" for item in items):
        return list(items)
    known = {item["id"]: item for item in before}
    read: set[str] = set()
    out: list[Item] = []
    size = 0
    for item in items:
        if item["type"] == "item_reference":
            id = item["id"]
            owner = response_of(id)
            if id not in known and owner is not None and owner not in read and store is not None:
                if len(read) >= MOST_RESPONSES:
                    raise _too_much()
                read.add(owner)
                if stored := await store.get(caller, owner):
                    every = (*stored.input, *stored.body["output"])
                    known |= {one["id"]: one for one in every}
            if id not in known:
                raise Missing.item(id)
            item = known[id]
            size += len(to_json(item))
            if size > BODY_CAP:
                raise _too_much()
        out.append(item)
    return out


def _too_much() -> BadRequest:
    message = "input: more items are only named than can be looked up; send them themselves"
    return BadRequest(message, "input")


def item_list(items: Sequence[Item], query: Mapping[str, str]) -> dict[str, Any]:
    """A page of a listing, the newest first unless `query` says otherwise. Raises BadRequest."""
    order, limit = query.get("order", "desc"), query.get("limit", str(PAGE))
    if order not in ("asc", "desc"):
        raise BadRequest("order: asc or desc", "order")
    if limit not in map(str, range(1, LARGEST_PAGE + 1)):
        raise BadRequest(f"limit: a number from 1 to {LARGEST_PAGE}", "limit")
    ordered = list(items) if order == "asc" else list(reversed(items))
    if after := query.get("after"):
        ids = [item["id"] for item in ordered]
        if after not in ids:
            raise Missing.item(after)
        ordered = ordered[ids.index(after) + 1 :]
    page = ordered[: int(limit)]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": len(page) < len(ordered),
    }
