"""Owners that another has taken the store over from, and that ask before they answer."""
import contextlib

import pytest

from drill import WITH_TLS
from relay import Relay
from teller import LOG, Refused, tellers, until  # noqa: F401

COUNT = 3
SOON = "commit-ms=1000"                 # where an owner must give up


@pytest.fixture
def desks(mirrors, tellers):
    """fabric -> (daemons, an owner's desk, its successor's), of a store with a byte that is 1."""
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
    """False where that is not known within its time."""
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
    """And commits."""
    desk.open("store", daemons, "takeover")
    desk.ask("map", "a", 0)
    desk.transaction("a", 0, 1, 2)
    desk.ask("confirm")


def why(desk):
    """The error that confirm gives, which must give one."""
    return desk.refused("confirm").name


@pytest.mark.parametrize("fabric", WITH_TLS)
def test_an_owner_that_was_stopped_is_not_confirmed(desks, fabric):
    """Its memory is that of before, and it is the first to learn that it has none to speak for."""
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
    """Nothing that it committed is missing anywhere, so a flush returns 0 all the time; and what it
    reads is old. Any mirror that it reaches would tell of the other owner."""
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
    """Two of three are stopped. Nobody else comes."""
    daemons, old, _ = desks("tcp")
    open_and_confirm(old, daemons, SOON)
    for daemon in daemons[1:]:
        daemon.stop()
    until(lambda: "1 of 3 mirrors" in old.refused("confirm").text, "the mirror that is left")
    for daemon in daemons[1:]:
        daemon.cont()
    until(lambda: is_confirmed(old), "mirrors that answer")
