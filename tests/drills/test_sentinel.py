"""sentinel.py: when an attempt is void, how often it is repeated, and how oversleep is measured."""
import contextlib
import types

import pytest

import sentinel
from sentinel import ATTEMPTS, PART, Sentinel, attempt, unless_overslept

BOUND = 1.0
GOOD, VOID = BOUND / PART, BOUND / PART + 0.01


class Clock:
    """Replaces the module `time`. Each sleep takes the requested time plus the next of
    `oversleeps`; the last sleep ends the sentinel."""

    def __init__(self, oversleeps):
        self.now, self.oversleeps, self.watching = 100.0, list(oversleeps), None

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds + self.oversleeps.pop(0)
        self.watching.over = not self.oversleeps


@pytest.fixture
def machine(monkeypatch):
    """machine(seconds...) sets how long the machine oversleeps in each attempt. Returns the list of
    remaining attempts."""
    def oversleeps(*seconds):
        left = list(seconds)

        @contextlib.contextmanager
        def scripted():
            yield types.SimpleNamespace(longest=left.pop(0))

        monkeypatch.setattr(sentinel, "Sentinel", scripted)
        return left
    return oversleeps


def test_an_attempt_on_a_machine_that_stood_still_is_void(machine):
    """Two attempts are void, whatever they took, and the first valid one decides."""
    left, took = machine(VOID, VOID, GOOD, GOOD), [5.0, 5.0, 0.9]
    attempt(BOUND, lambda _: took.pop(0))
    assert not took and len(left) == 1


def test_an_attempt_that_counts_is_the_last(machine):
    """It took too long on a machine that did not oversleep."""
    left = machine(GOOD, GOOD)
    with pytest.raises(AssertionError):
        attempt(BOUND, lambda _: BOUND)
    assert len(left) == 1


def test_after_five_void_attempts_a_test_is_undecided(machine):
    """A skip with the word that tests/run.py counts as undecided, although each attempt was fast
    enough."""
    left = machine(*[VOID] * (ATTEMPTS + 1))
    with pytest.raises(pytest.skip.Exception, match="^UNDECIDED: in each of 5 attempts"):
        attempt(BOUND, lambda _: 0.1)
    assert len(left) == 1


def test_a_failure_of_another_kind_is_final(machine):
    """Even if the machine stood still."""
    left = machine(VOID, VOID)

    def fails(_):
        raise ValueError("lost")

    with pytest.raises(ValueError, match="lost"):
        attempt(BOUND, fails)
    assert len(left) == 1


@pytest.mark.parametrize("oversleeps, longest", [((0, 0.3, 0.1), 0.3), ((0,), 0)])
def test_the_longest_oversleep_is_recorded(monkeypatch, oversleeps, longest):
    """One of the naps takes longer than the others."""
    clock = Clock(oversleeps)
    monkeypatch.setattr(sentinel, "time", clock)
    clock.watching = Sentinel()
    clock.watching.watch()
    assert clock.watching.longest == pytest.approx(longest)


def test_what_was_overslept_before_the_time_under_test_does_not_count(monkeypatch):
    """The time under test begins within a nap that takes half a second too long: only the rest
    counts."""
    clock = Clock([0.5])
    monkeypatch.setattr(sentinel, "time", clock)
    clock.watching = Sentinel()
    clock.watching.began = clock.now + 0.4
    clock.watching.watch()
    assert clock.watching.longest == pytest.approx(0.1)


@pytest.mark.parametrize("failure", [AssertionError, TimeoutError])
def test_a_failure_on_a_machine_that_stood_still_is_undecided(machine, failure):
    machine(VOID)
    with pytest.raises(pytest.skip.Exception, match="^UNDECIDED: .* and then: it was late"):
        with unless_overslept(BOUND):
            raise failure("it was late")


@pytest.mark.parametrize("overslept, failure", [(GOOD, AssertionError), (GOOD, TimeoutError),
                                                (VOID, ZeroDivisionError)])
def test_any_other_failure_is_one(machine, overslept, failure):
    """On a machine that did not oversleep, and for a failure that no delay explains."""
    machine(overslept)
    with pytest.raises(failure):
        with unless_overslept(BOUND):
            raise failure


def test_what_passes_is_decided_however_long_the_machine_slept(machine):
    machine(VOID)
    with unless_overslept(BOUND):
        pass
