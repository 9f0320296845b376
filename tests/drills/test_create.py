"""Processes that create the same store at the same time."""
import subprocess

import pytest

from drill import OK, SECONDS, command_line, mirror_list, rounds
from teller import tellers  # noqa: F401

ROUNDS = rounds(4)


@pytest.mark.parametrize("count", [2, 3])
def test_of_two_applications_that_create_together_both_have_the_store_or_are_told(
        mirrors, tellers, perseas, count):
    """Both open with PERSEAS_CREATE; one may be refused since the other one lives."""
    daemons = mirrors(count, "tcp")
    for number in range(ROUNDS):
        store = "books%d" % number
        both = [tellers.run(store, daemons, "create", "transactions=2") for _ in range(2)]
        ends = [each.wait() for each in both]
        assert [status for status, _ in ends].count(0) >= 1, ends
        for status, said in ends:
            assert status == 0 or "EBUSY" in said or "EFENCED" in said, ends
        done = perseas("verify", store, mirrors=daemons)
        assert done.status == OK, done


@pytest.mark.parametrize("count", [2, 3])
def test_of_two_commands_that_create_together_one_succeeds(mirrors, perseas, count):
    """Each says so, or that the other one made it."""
    daemons = mirrors(count, "tcp")
    for number in range(ROUNDS):
        store = "books%d" % number
        words = command_line("create", store, "--mirrors", mirror_list(daemons))
        both = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                for _ in range(2)]
        ends = [(each.communicate(timeout=SECONDS), each.returncode) for each in both]
        assert sorted(code != 0 for _, code in ends) == [False, True], ends
        lost, = (said for (_, said), code in ends if code)
        assert "has a store '%s' already" % store in lost, ends
        done = perseas("verify", store, mirrors=daemons)
        assert done.status == OK, done
