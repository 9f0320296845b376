"""A standby whose mirror list is outdated by the roster: no mirror of the list has the store when
the owner ends. The standby must own the store on its present mirrors, and must not create an empty
one."""
import sys

import wire
from binding import CREATE, Standby, Store
from drill import HERE, OK, SECONDS, fill, mirror_list, run_command, status_of, wait_for
from test_epochs import add_to_header
from test_later_version import LEVEL, ROSTER
from test_run import LIVES, run  # noqa: F401

CONTENTS = b"\x2a" * 4096

# COMMAND finds the store, or creates it if it does not exist; with either list.
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
    """Four daemons, the first two with the store."""
    daemons = mirrors(4)
    fill("bank", daemons[:2], {"accounts": CONTENTS})
    return daemons


def replace(old, new, daemons):
    """Replaces mirrors under a live owner."""
    done = run_command("roster", "replace", "bank", old.address, new.address, mirrors=daemons)
    assert done.status == OK, done


def wait_followed(daemon):
    """Waits until a standby, which needs a name, watches a mirror of the present roster. It may not
    have run since the change, and could not find this mirror if those of its list were dropped."""
    wait_for(lambda: status_of("bank", [daemon])["standbys"], SECONDS, "a standby that follows")


def drop(daemon):
    """Drops the image of a mirror that left, as an operator does."""
    assert run_command("drop", "bank", "--yes", mirrors=[daemon]).status == OK


def replace_both(daemons):
    for old, new in zip(daemons[:2], daemons[2:]):
        replace(old, new, daemons)
    wait_followed(daemons[2])
    for old in daemons[:2]:
        drop(old)


def test_perseas_run_follows_the_roster(mirrors, run):  # noqa: F811
    daemons = begin(mirrors)
    with Store("bank", mirror_list(daemons[:2])):
        runner = run("bank", daemons[:2], CREATOR)
        runner.wait_said(LIVES)
        replace_both(daemons)
    wait_for(lambda: len(runner.printed()) == 2, SECONDS, "COMMAND's end")
    assert runner.printed() == [mirror_list(daemons[:2]), "2a2a2a2a"]


def test_a_mirror_that_refuses_for_a_while_ends_no_perseas_run(mirrors, run):  # noqa: F811
    """The mirror was downgraded for a while. No mirror of the list has the store any more, so a new
    process would not find it."""
    daemons = first, second = mirrors(2)
    fill("bank", [first], {"accounts": CONTENTS})
    with Store("bank", first.address):
        runner = run("bank", [first], CREATOR)
        runner.wait_said(LIVES)
        replace(first, second, daemons)
        wait_followed(second)
        drop(first)
        header = second.memory / "bank" / "header"
        before = header.read_bytes()
        add_to_header(second, "bank", wire.field(ROSTER, wire.field(LEVEL, 2)))
        runner.wait_said("a later version of Perseas wrote it")
    second.kill9()
    header.write_bytes(before)
    second.restart()
    wait_for(lambda: len(runner.printed()) == 2, SECONDS, "COMMAND's end")
    assert runner.printed() == [first.address, "2a2a2a2a"]


def test_a_standby_in_a_process_follows_the_roster(mirrors):
    daemons = begin(mirrors)
    with Standby("bank", mirror_list(daemons[:2]), flags=CREATE, name=b"standby") as standby:
        with Store("bank", mirror_list(daemons[:2])):
            wait_for(lambda: standby.state() == "owned", SECONDS, "a standby")
            replace_both(daemons)
        with standby.become_owner() as store:
            store.map("accounts", 4096)
            assert store.read("accounts", 0, 4096) == CONTENTS


def test_an_older_roster_does_not_make_a_standby_forget(mirrors):
    """The only mirror of its list reports a roster that two newer ones followed, and the mirror
    that has the store now does not answer when the owner stands by again."""
    daemons = first, second, third = mirrors(3)
    fill("bank", [first], {"accounts": CONTENTS})
    with Standby("bank", first.address, flags=CREATE) as standby:
        with standby.become_owner():
            replace(first, second, daemons)
            replace(second, third, daemons)
        drop(second)
        third.kill9()
        assert standby.wait(100) == "PERSEAS_ETIMEOUT"
        wait_for(lambda: standby.stat().reached == 2, SECONDS, "a standby that asks both")
        drop(first)
        assert standby.wait(1000) == "PERSEAS_ETIMEOUT"
        third.restart()
        with standby.become_owner() as store:
            store.map("accounts", 4096)
            assert store.read("accounts", 0, 4096) == CONTENTS


def test_an_image_that_cannot_be_read_is_no_reason_to_make_another(mirrors):
    """The list no longer has the store, and the mirror that has it refuses to report it because its
    image is damaged, until an operator repairs it."""
    daemons = first, second = mirrors(2)
    fill("bank", [first], {"accounts": CONTENTS})
    with Standby("bank", first.address, flags=CREATE, name=b"standby") as standby:
        with Store("bank", first.address):
            wait_for(lambda: standby.state() == "owned", SECONDS, "a standby")
            replace(first, second, daemons)
            wait_followed(second)
        drop(first)
        second.kill9()
        header = second.memory / "bank" / "header"
        whole = header.read_bytes()
        header.write_bytes(bytes(len(whole)))
        second.restart()
        wait_for(lambda: standby.stat().reached == 2, SECONDS, "a standby that asks both")
        assert standby.wait(1000) == "PERSEAS_ETIMEOUT"
        second.kill9()
        header.write_bytes(whole)
        second.restart()
        with standby.become_owner() as store:
            store.map("accounts", 4096)
            assert store.read("accounts", 0, 4096) == CONTENTS
