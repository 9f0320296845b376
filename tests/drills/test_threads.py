"""Runs drills again with daemons that have one data thread, and with more threads than stores."""
import os

import pytest

from cluster import Mirror
from teller import dice, tellers  # noqa: F401
from test_mirror import (  # noqa: F401
    test_a_mirror_of_three_is_killed_and_comes_back_while_its_owner_commits,
    test_a_stopped_mirror_that_lags_is_dropped_and_copied_while_its_owner_goes_on)
from test_snapshot import test_a_running_store_is_copied_as_of_one_transaction  # noqa: F401
from test_spill import (  # noqa: F401
    test_all_mirrors_shut_down_while_an_owner_commits_and_come_back)
from test_zombie import (  # noqa: F401
    test_an_owner_that_runs_is_fenced_by_the_next,
    test_an_owner_that_was_stopped_is_fenced_and_changes_nothing)


@pytest.fixture(autouse=True, params=[1, 4])
def threads(monkeypatch, request):
    monkeypatch.setattr(Mirror, "more", ["--threads", str(request.param)])
    return request.param


def test_a_daemon_has_the_threads_that_it_is_told(mirrors, threads):
    """In addition to the threads of a daemon without data threads."""
    alone, = mirrors(1, options=("--threads", "1"))
    daemon, = mirrors(1)
    counts = [len(os.listdir("/proc/%d/task" % each.pid)) for each in (alone, daemon)]
    assert counts[1] - counts[0] == (threads if threads > 1 else 0)
