import pytest

from chathands.agent.deadline import Deadline, run_seconds
from chathands.settings import Settings


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.mark.parametrize(
    ("total", "reserve"), [(30, 6), (180, 36), (15, 4), (6, 3), (1, 0.5), (20, 4)]
)
def test_the_reserve_is_four_seconds_or_a_fifth_but_never_more_than_half(clock, total, reserve):
    assert Deadline(total, clock=clock).reserve == pytest.approx(reserve)


def test_working_time_ends_where_the_reserve_begins(clock):
    deadline = Deadline(30, clock=clock)
    assert deadline.working() == 24
    clock.now += 24
    assert deadline.in_reserve
    assert deadline.working() == 0
    assert deadline.remaining() == 6
    clock.now += 60
    assert deadline.remaining() == 0


def test_it_stands_still_while_a_person_is_asked(clock):
    deadline = Deadline(30, clock=clock)
    clock.now += 10
    deadline.pause()
    deadline.pause()
    clock.now += 500
    assert deadline.remaining() == 20
    deadline.resume()
    deadline.resume()
    clock.now += 5
    assert deadline.remaining() == 15


def test_a_suspended_run_goes_on_with_what_it_had_left(clock):
    deadline = Deadline(30, left=7, clock=clock)
    assert deadline.reserve == 6
    assert deadline.working() == pytest.approx(1)


def test_an_approved_call_gets_its_own_timeout_even_in_the_reserve(clock):
    deadline = Deadline(30, left=2, clock=clock)
    deadline.grant(10)
    assert deadline.working() == pytest.approx(10)
    deadline.grant(3)
    assert deadline.working() == pytest.approx(10)


def test_no_retry_without_time_for_an_answer(clock):
    deadline = Deadline(30, clock=clock)
    assert deadline.allows_retry()
    clock.now += 22.5
    assert deadline.closes_soon
    assert not deadline.allows_retry()
    clock.now += 6
    assert deadline.allows_retry(in_reserve=True)
    clock.now += 1
    assert not deadline.allows_retry(in_reserve=True)


@pytest.mark.parametrize(("local", "seconds"), [(False, 30), (True, 180)])
def test_a_local_model_gets_more_time(local, seconds):
    assert run_seconds(Settings(), local=local) == seconds
    assert run_seconds(Settings(deadline=12), local=local) == 12
