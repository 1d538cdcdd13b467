"""What admins set for a group outlives a restart, and nothing else touches it."""

from chathands.conversation import Message
from chathands.store import EVERYWHERE, open_store


async def test_what_was_set_is_there_after_a_restart(tmp_path):
    async with await open_store(tmp_path) as store:
        await store.places.set("g1", "switch", "", "off")
        await store.places.set("g1", "tool", "push", "off")
        await store.places.set("g1", "admin", "42", "member")
        await store.places.set("g1", "quota", "", "10")
        await store.places.set("g1", "quota", "42", "0")
        await store.places.set(EVERYWHERE, "tool", "weather", "off")
    async with await open_store(tmp_path) as store:
        places = store.places
        assert (places.is_on("g1"), places.is_on("g2")) == (False, True)
        assert not places.is_on("g2", default=False)
        assert places.tool_off("g1", "push")
        assert not places.tool_off("g2", "push")
        assert places.tool_off("g2", "weather")
        assert places.admins("g1") == ("42",)
        assert not places.is_admin("g2", "42")
        assert (places.quota("g1", "7"), places.quota("g1", "42")) == (10, 0)
        assert places.quota("g2", "7") is None


async def test_what_was_dropped_stays_dropped(tmp_path):
    async with await open_store(tmp_path) as store:
        await store.places.set("g1", "tool", "push", "off")
        await store.places.set("g1", "tool", "push", None)
        await store.places.set("g1", "admin", "nobody", None)
        assert not store.places.tool_off("g1", "push")
    async with await open_store(tmp_path) as store:
        assert not store.places.tool_off("g1", "push")


async def test_forgetting_a_conversation_leaves_the_groups_rules_alone(tmp_path):
    async with await open_store(tmp_path) as store:
        await store.places.set("g1", "switch", "", "off")
        await store.conversations.append("g1", [Message.user("x")])
        await store.conversations.forget("g1")
        assert not store.places.is_on("g1")


async def test_whom_a_tool_is_left_to_is_kept_by_place_and_for_all(tmp_path):
    async with await open_store(tmp_path) as store:
        await store.places.set("g1", "who", "push", "admin")
        await store.places.set(EVERYWHERE, "who", "push", "10001,10002")
    async with await open_store(tmp_path) as store:
        assert store.places.left_to("g1", "push") == ("admin", "10001,10002")
        assert store.places.left_to("g2", "push") == ("10001,10002",)
        assert store.places.left_to("g1", "look") == ()
        assert store.places.left_to_at("g1", "push") == "admin"
        await store.places.set("g1", "who", "push", None)
        assert store.places.left_to("g1", "push") == ("10001,10002",)
