"""Real time on a machine that others use, too: a thread records how long the machine oversleeps,
and an attempt during which the machine stood still is void.

Only the drills run, silent, hung, move and standby use this: only real time shows how soon the
product notices silence. Other drills count events instead.
"""
import contextlib
import threading
import time

import pytest

from drill import BUILD  # noqa: F401, which also finds what is in bench/
from worker import Delays

NAP = 0.01                              # seconds
ATTEMPTS = 5
PART = 4                                # fraction of the bound that an oversleep may reach


class Sentinel:
    """Sleeps NAP repeatedly in a thread. `longest` is the longest oversleep in seconds since
    begin()."""

    def __init__(self):
        self.over = False
        self.begin()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.thread.join()

    def watch(self):
        while not self.over:
            slept_at = time.monotonic()
            time.sleep(NAP)
            now = time.monotonic()
            if now > self.began:
                self.longest = max(self.longest, now - max(slept_at, self.began) - NAP)

    def begin(self, *pids):
        """Starts the time under test. Earlier oversleeps do not count."""
        self.delays = Delays(pids)
        self.longest, self.began = 0, time.monotonic()

    def passed(self):
        """Returns the seconds since begin(), without those for which processors kept its processes
        from running: a sleeper may be woken in time although others take the processor from the
        product."""
        took, before = time.monotonic() - self.began, self.delays.marks[0][1]
        return took - (self.delays.note()[1] - before) / 1e3


def attempt(bound, body):
    """Calls body(sentinel), which returns how many seconds something took, and asserts that this is
    below the bound. Repeats an attempt in which the machine overslept by more than a quarter of the
    bound. After five such attempts the test is undecided, which pytest reports as a skip. Any other
    failure of body() is final, however busy the machine is."""
    for _ in range(ATTEMPTS):
        with Sentinel() as sentinel:
            took = body(sentinel)
        print("took %.3f s, and must take less than %.3f s; the machine overslept %.3f s" %
              (took, bound, sentinel.longest))
        if sentinel.longest <= bound / PART:
            assert took < bound
            return
    pytest.skip("UNDECIDED: in each of %d attempts the machine overslept more than %.3f s" %
                (ATTEMPTS, bound / PART))


@contextlib.contextmanager
def unless_overslept(bound):
    """Guards a body that fails if another process does not run for `bound` seconds, a time limit of
    the product. If it fails while the machine overslept by more than a quarter of the bound, the
    test is undecided, which pytest reports as a skip."""
    with Sentinel() as sentinel:
        try:
            yield
        except (AssertionError, TimeoutError) as failure:
            if sentinel.longest <= bound / PART:
                raise
            pytest.skip("UNDECIDED: the machine overslept %.3f s, and then: %s" %
                        (sentinel.longest, failure))
