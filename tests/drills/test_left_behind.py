"""A standby whose list of mirrors the roster has left behind: none of the list has the store any
more when the owner ends. It owns the store where that is by then, and makes no empty one."""
import sys

from binding import CREATE, Standby, Store
from drill import HERE, OK, SECONDS, fill, mirror_list, run_command, wait_for
from test_run import LIVES, run  # noqa: F401

CONTENTS = b"\x2a" * 4096

# What it finds, or makes where there is nothing; and by which list.
CREATOR = (sys.executable, "-uc", """
import os, sys
sys.path.insert(0, %r)
from binding import CREATE, Store
with Store(os.environ["PERSEAS_STORE"], os.environ["PERSEAS_MIRRORS"], flags=CREATE) as store:
    store.map("accounts", 4096)
    print(os.environ["PERSEAS_MIRRORS"])
    print(store.read("accounts", 0, 4).hex())
""" % str(HERE))


def begin(mirrors):
    """Four daemons, of which the first two have the store."""
    daemons = mirrors(4)
    fill("bank", daemons[:2], {"accounts": CONTENTS})
    return daemons


def replace_both(daemons):
    """By a live owner. The images of those that leave are dropped, as an operator does."""
    for old, new in zip(daemons[:2], daemons[2:]):
        done = run_command("roster", "replace", "bank", old.address, new.address, mirrors=daemons)
        assert done.status == OK, done
    for old in daemons[:2]:
        assert run_command("drop", "bank", "--yes", mirrors=[old]).status == OK


def test_perseas_run_follows_the_roster(mirrors, run):  # noqa: F811
    daemons = begin(mirrors)
    with Store("bank", mirror_list(daemons[:2])):
        runner = run("bank", daemons[:2], CREATOR)
        runner.wait_said(LIVES)
        replace_both(daemons)
    wait_for(lambda: len(runner.printed()) == 2, SECONDS, "COMMAND's end")
    assert runner.printed() == [mirror_list(daemons[:2]), "2a2a2a2a"]


def test_a_standby_in_a_process_follows_the_roster(mirrors):
    daemons = begin(mirrors)
    with Standby("bank", mirror_list(daemons[:2]), flags=CREATE) as standby:
        with Store("bank", mirror_list(daemons[:2])):
            wait_for(lambda: standby.state() == "owned", SECONDS, "a standby")
            replace_both(daemons)
        with standby.become_owner() as store:
            store.map("accounts", 4096)
            assert store.read("accounts", 0, 4096) == CONTENTS
