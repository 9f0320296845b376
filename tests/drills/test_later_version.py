"""Mirrors that were downgraded after a later version had raised the level of a store's images
(PROTOCOL.md, "Levels")."""
import pytest

import wire
from binding import PerseasError, Store
from drill import NO, OK, fill, mirror_list, run_command
from test_epochs import add_to_header

ROSTER, LEVEL = 9, 5                    # fields in control.proto
SENTENCE = "a later version of Perseas wrote it, and it is left as it is: use that version here"


def raise_level(daemon):
    """Raises the level as a later version does. Returns the new header file."""
    add_to_header(daemon, "s", wire.field(ROSTER, wire.field(LEVEL, 2)))
    assert "warning: store s: " + SENTENCE in daemon.log()
    return header(daemon)


def header(daemon):
    return (daemon.memory / "s/header").read_bytes()


def refused(*words, mirrors):
    done = run_command(*words, mirrors=mirrors)
    assert done.status != OK and "store s is not served: " + SENTENCE in done.err, done
    return done


def test_an_owner_goes_on_without_a_mirror_that_was_taken_back(mirrors):
    """It does not copy over the downgraded mirror's image, and tells the operator what to do."""
    daemons = mirrors(3)
    fill("s", daemons, {"accounts": b"in good order"})
    before = raise_level(daemons[2])
    with Store("s", mirror_list(daemons)) as store:
        assert store.map("accounts", 13)
        store.write("accounts", 0, b"I")
        done = run_command("status", "s", mirrors=daemons)
        assert done.status == OK and SENTENCE in done.err, done
    done = run_command("recover", "s", mirrors=daemons)
    assert done.status == OK and "on 2 of 3 mirrors" in done.out and SENTENCE in done.err, done
    assert refused("drop", "s", "--yes", mirrors=daemons[2:]).status == NO
    assert header(daemons[2]) == before


def test_nothing_is_done_to_a_store_that_every_mirror_has_of_a_later_version(mirrors):
    """Every request is refused, and no new store of its name is created."""
    daemons = mirrors(2)
    fill("s", daemons, {"accounts": b"in good order"})
    before = [raise_level(daemon) for daemon in daemons]
    with pytest.raises(PerseasError) as caught:
        Store("s", mirror_list(daemons))
    assert caught.value.name == "PERSEAS_EVERSION" and SENTENCE in str(caught.value)
    for words in (("status", "s"), ("recover", "s"), ("drop", "s", "--yes"), ("create", "s")):
        refused(*words, mirrors=daemons)
    assert [header(daemon) for daemon in daemons] == before
