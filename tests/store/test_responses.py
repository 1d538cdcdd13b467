"""Stored responses: whose they are, what a chain holds, and what is forgotten."""

import stat

import pytest

from chathands.errors import StoreError
from chathands.settings import Settings
from chathands.store.responses import FILE, ChainTooLong, Responses

DAY = 24 * 3600


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def opened(directory, **limits) -> Responses:
    return Responses(directory, **({"days": 30, "most": 100, "megabytes": 1} | limits))


async def save(responses, id, previous=None, *, caller="a", text="x"):
    body = {"id": id, "output": [{"text": text}]}
    return await responses.save(caller, id, previous=previous, input=[{"id": id}], body=body)


async def ids(responses, id, caller="a"):
    chain = await responses.chain(caller, id, limit=10**6)
    return chain and [stored.id for stored in chain]


@pytest.fixture
async def responses(tmp_path):
    responses = opened(tmp_path)
    yield responses
    await responses.aclose()


async def test_a_chain_has_everything_before_it_also_after_a_restart(tmp_path):
    for id, previous in (("1", None), ("2", "1"), ("3", "2"), ("2b", "1")):
        responses = opened(tmp_path)
        assert await save(responses, id, previous)
        await responses.aclose()
    responses = opened(tmp_path)
    assert await ids(responses, "3") == ["1", "2", "3"]
    assert await ids(responses, "2b") == ["1", "2b"]
    await responses.aclose()


async def test_another_caller_finds_nothing(responses):
    await save(responses, "1")
    assert await responses.get("b", "1") is None
    assert await ids(responses, "1", "b") is None
    assert not await responses.delete("b", "1")
    assert not await save(responses, "2", "1", caller="b")
    assert await responses.get("b", "2") is None
    assert await responses.get("a", "1") is not None


async def test_what_followed_a_deleted_one_cannot_be_gone_on_from(responses):
    await save(responses, "1")
    await save(responses, "2", "1")
    assert await responses.delete("a", "1")
    assert not await responses.delete("a", "1")
    assert await ids(responses, "2") is None
    assert await responses.get("a", "2") is not None


async def test_deleted_text_is_not_left_in_the_file(tmp_path):
    responses = opened(tmp_path)
    await save(responses, "1", text="SECRET-TEXT" * 500)
    await responses.delete("a", "1")
    await responses.aclose()  # which writes the log back
    assert b"SECRET-TEXT" not in (tmp_path / FILE).read_bytes()
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


async def test_the_conversations_used_last_are_kept_whole(tmp_path):
    responses = opened(tmp_path, most=4, wall=Clock())
    for id, previous in (("a1", None), ("b1", None), ("b2", "b1"), ("a2", "a1"), ("a3", "a2")):
        assert await save(responses, id, previous)
    assert await ids(responses, "a3") == ["a1", "a2", "a3"]
    assert await ids(responses, "b2") is None
    assert await responses.get("a", "b1") is None
    await save(responses, "c1", caller="b")  # another's share is its own
    assert await ids(responses, "a3")
    await responses.aclose()


async def test_they_take_no_more_room_than_they_may(tmp_path):
    responses = opened(tmp_path, megabytes=0.01, wall=Clock())
    for id in ("1", "2", "3"):
        assert await save(responses, id, text="x" * 4000)
    assert [await ids(responses, id) for id in ("1", "2", "3")] == [None, ["2"], ["3"]]
    assert not await save(responses, "4", text="x" * 20_000)
    assert await ids(responses, "3") == ["3"]
    await responses.aclose()


async def test_what_was_not_used_for_long_is_forgotten(tmp_path):
    clock = Clock()
    responses = opened(tmp_path, days=2, wall=clock)
    await save(responses, "a1")
    await save(responses, "b1")
    clock.now += 1.5 * DAY
    await save(responses, "a2", "a1")
    clock.now += 1.5 * DAY
    await save(responses, "c1", caller="b")
    assert await ids(responses, "a2") == ["a1", "a2"]
    assert await ids(responses, "b1") is None
    await responses.aclose()


async def test_a_chain_larger_than_asked_for_is_not_read(responses):
    await save(responses, "1", text="x" * 1000)
    await save(responses, "2", "1", text="x" * 1000)
    with pytest.raises(ChainTooLong):
        await responses.chain("a", "2", limit=1500)


async def test_text_that_utf8_cannot_hold_is_stored_all_the_same(responses):
    assert await save(responses, "1", text="\ud800 \0")
    assert (await responses.get("a", "1")).body["output"] == [{"text": "? \0"}]


async def test_the_same_id_twice_and_a_file_that_is_none_are_errors(responses, tmp_path):
    await save(responses, "1")
    with pytest.raises(StoreError):
        await save(responses, "1")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / FILE).write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreError):
        await save(opened(tmp_path / "other"), "1")


async def test_nothing_is_opened_before_it_is_needed(tmp_path):
    responses = opened(tmp_path)
    await responses.aclose()
    assert not (tmp_path / FILE).exists()


def test_zero_days_mean_that_nothing_is_stored(tmp_path):
    settings = Settings(_env_file=None, state_dir=tmp_path)  # type: ignore[call-arg]
    assert Responses.configured(settings) is not None
    settings.api.response_days = 0
    assert Responses.configured(settings) is None
