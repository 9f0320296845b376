"""Runs drills again with daemons confined as in perseasd.service. A daemon that makes another
system call is killed, which would fail any of these drills."""
import importlib.util
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest

from cluster import Mirror
from drill import SECONDS
from teller import dice, tellers  # noqa: F401
from test_mirror import (  # noqa: F401
    test_a_mirror_of_three_is_killed_and_comes_back_while_its_owner_commits,
    test_a_mirror_that_lost_its_memory_is_made_anew_while_its_owner_goes_on)
from test_snapshot import test_a_running_store_is_copied_as_of_one_transaction  # noqa: F401
from test_spill import (  # noqa: F401
    test_a_damaged_spill_is_named_kept_and_the_others_are_loaded,
    test_all_mirrors_shut_down_while_an_owner_commits_and_come_back)
from test_zombie import test_an_owner_that_was_stopped_is_fenced_and_changes_nothing  # noqa: F401

CONFINED = [sys.executable, str(pathlib.Path(__file__).with_name("service.py")), "--confine"]

pytestmark = [
    pytest.mark.skipif(not shutil.which("systemd-analyze"),
                       reason="systemd-analyze is missing: apt-get install systemd"),
    pytest.mark.skipif(not importlib.util.find_spec("seccomp"),
                       reason="libseccomp's module is missing: apt-get install python3-seccomp")]


@pytest.fixture(autouse=True)
def confined(monkeypatch):
    monkeypatch.setattr(Mirror, "wrap", CONFINED)


def confined_python(program):
    """Runs a program in Python. Returns its exit status."""
    return subprocess.run([*CONFINED, sys.executable, "-c", program], timeout=SECONDS).returncode


@pytest.mark.parametrize("program", [
    "import os; os.nice(1)",                                # @resources
    "import os; os.chroot('/')",                            # @privileged
    "import socket; socket.socket(socket.AF_PACKET)",
    "import mmap; mmap.mmap(-1, 4096, prot=7)",
])
def test_what_the_unit_forbids_ends_a_program(program):
    """This shows that the other drills here can fail."""
    assert confined_python(program) == -signal.SIGSYS


def test_what_the_unit_allows_goes_on():
    """Root has lost root's capabilities."""
    assert confined_python("import mmap, socket; socket.socket(); mmap.mmap(-1, 4096)") == 0
    held = "open('/proc/self/status').read().split('CapEff:')[1].split()[0]"
    assert confined_python("import sys; sys.exit(int(%s, 16) != 0)" % held) == 0
