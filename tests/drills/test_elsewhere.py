"""A store with a mirror at a Unix socket is taken over from a host where that path is the socket of
another of its mirrors: every host has its daemon's socket at the same path."""
import os
import re

import pytest

from binding import TAKEOVER, PerseasError, Store
from drill import OK, PARTLY, fill, mirror_list, wait_even, wait_ownerless


@pytest.fixture
def moved(mirrors):
    """Three mirrors, the first one at its socket, whose path is now the second one's."""
    daemons = mirrors(3)
    local = daemons[0].mirror.socket
    daemons[0].fabric = "shm"
    fill("bank", daemons, {"a": b"kept" * 16}, acks=2)
    wait_ownerless("bank", daemons[1:])
    os.rename(local, str(local) + ".away")
    os.symlink(daemons[1].mirror.socket, local)
    return daemons


def test_another_host_takes_the_store_over(moved, perseas):
    """By an application and by the command. Then the first mirror is used at its port."""
    here, named = moved[0].address, moved[1:]
    same = "%s is the same mirror as %s, seen from this host" % (here, named[0].address)
    done = perseas("status", "bank", mirrors=named)
    assert done.status == PARTLY and "can open: yes" in done.out and same in done.err, done
    assert re.search(re.escape(here) + " +not reached", done.out), done
    told = perseas("status", "bank", "--json", mirrors=named).json()
    assert [m["reachable"] for m in told["mirrors"]] == [True, True, False]
    with Store("bank", mirror_list(named), flags=TAKEOVER) as store:
        store.map("a", 0)
        assert store.read("a", 0, 8) == b"keptkept"
        store.write("a", 0, b"here")
        done = perseas("roster", "replace", "bank", mirror_list(named), here, moved[0].mirror.tcp)
        assert done.status == OK, done
        moved[0].fabric = "tcp"
        wait_even("bank", moved)
    assert perseas("verify", "bank", mirrors=moved).status == OK


def test_what_is_seen_twice_is_not_enough(moved):
    """The third mirror is down: R is two, and only one mirror is there."""
    moved[2].kill9()
    with pytest.raises(PerseasError) as caught:
        Store("bank", moved[1].address, flags=TAKEOVER)
    assert caught.value.name == "PERSEAS_EQUORUM"
    assert "is the same mirror as " + moved[1].address in str(caught.value)


def test_whoever_names_both_opens_the_store(moved):
    """The socket and the port lead to one daemon, which counts once; R others are there."""
    with Store("bank", mirror_list(moved), flags=TAKEOVER) as store:
        assert "is the same mirror as " + moved[1].address in store.report()
        store.map("a", 0)
        assert store.read("a", 0, 8) == b"keptkept"
