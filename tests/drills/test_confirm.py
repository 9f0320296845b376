"""perseas_confirm: owners whose store was taken over, and that ask before they answer clients."""
import contextlib

import pytest

from drill import WITH_TLS
from relay import Relay
from teller import LOG, Refused, tellers, until  # noqa: F401

COUNT = 3
SOON = "commit-ms=1000"                 # timeout after which an owner must give up


@pytest.fixture
def desks(mirrors, tellers):
    """fabric -> (daemons, an owner's desk, its successor's), for a store with a byte of value 1."""
    def start(fabric):
        daemons = mirrors(COUNT, fabric)
        old, new = tellers.desk(), tellers.desk()
        new.open("store", daemons, "create", LOG)
        new.ask("map", "a", 4096)
        new.ask("publish")
        new.transaction("a", 0, 1, 1)
        new.settle()
        new.ask("close")
        return daemons, old, new

    return start


def is_confirmed(desk):
    """Returns False if confirm times out."""
    try:
        desk.ask("confirm")
    except Refused as refused:
        assert refused.name == "PERSEAS_EINDOUBT"
        return False
    return True


def open_and_confirm(desk, addresses, *options):
    desk.open("store", addresses, *options)
    desk.ask("map", "a", 0)
    until(lambda: desk.all_live(COUNT), "live mirrors")
    until(lambda: is_confirmed(desk), "an owner that is confirmed")


def take_over(desk, daemons):
    """Takes the store over and commits."""
    desk.open("store", daemons, "takeover")
    desk.ask("map", "a", 0)
    desk.transaction("a", 0, 1, 2)
    desk.ask("confirm")


def why(desk):
    """Returns the error of confirm, which must fail."""
    return desk.refused("confirm").name


@pytest.mark.parametrize("fabric", WITH_TLS)
def test_an_owner_that_was_stopped_is_not_confirmed(desks, fabric):
    """Its memory is outdated, and confirm is the first call to notice."""
    daemons, old, new = desks(fabric)
    open_and_confirm(old, daemons)
    old.stop()
    take_over(new, daemons)
    old.cont()
    assert why(old) in ("PERSEAS_EFENCED", "PERSEAS_EINDOUBT")
    assert old.ask("load", "a", 0) == "1"
    until(lambda: why(old) == "PERSEAS_EFENCED", "an owner that knows")
    new.ask("confirm")
    assert new.ask("load", "a", 0) == "2"


def test_an_owner_that_is_cut_off_is_not_confirmed(desks):
    """All its commits are on the mirrors, so a flush still returns 0, but what it reads is
    outdated. Any mirror that it reaches would report the other owner."""
    daemons, old, new = desks("tcp")
    with contextlib.ExitStack() as stack:
        relays = [stack.enter_context(Relay(daemon)) for daemon in daemons]
        open_and_confirm(old, relays, SOON)
        for relay in relays:
            relay.hold()
        take_over(new, daemons)
        old.ask("flush")
        assert why(old) == "PERSEAS_EINDOUBT"
        assert old.ask("load", "a", 0) == "1"
        for relay in relays:
            relay.go()
        until(lambda: why(old) == "PERSEAS_EFENCED", "an owner that knows")
        new.ask("confirm")


def test_an_owner_without_r_mirrors_is_confirmed_when_they_are_back(desks):
    """Two of three mirrors are stopped. No other owner comes."""
    daemons, old, _ = desks("tcp")
    open_and_confirm(old, daemons, SOON)
    for daemon in daemons[1:]:
        daemon.stop()
    until(lambda: "1 of 3 mirrors" in old.refused("confirm").text, "the mirror that is left")
    for daemon in daemons[1:]:
        daemon.cont()
    until(lambda: is_confirmed(old), "mirrors that answer")
