"""The lifeline: mirrors learn of the end of a killed owner although its connections are still open.
"""
import pytest

from binding import Standby
from drill import SECONDS, mirror_list, status_of, wait_for

NEVER = ("--owner-timeout", "3600")   # s: silence is never taken for an end


def kill_with_child(daemons, owner, monkeypatch, lifelines):
    """Kills an owner after a fork. Its child still has all connections, as a killed process has
    until its memory is freed."""
    monkeypatch.setenv("PERSEAS_LIFELINES", lifelines)
    first = owner("bank", daemons, "map,accounts,4096", "fork,%d" %
                  (len(daemons) if lifelines == "on" else 0))
    first.kill9()
    return first


@pytest.mark.parametrize("fabric", ("tcp", "tls"))
def test_mirrors_hear_of_an_end_whoever_has_the_connections(fabric, bank, owner, monkeypatch):
    daemons = bank(3, fabric, NEVER)
    kill_with_child(daemons, owner, monkeypatch, "on")
    with Standby("bank", mirror_list(daemons)) as standby, standby.become_owner() as store:
        store.map("accounts")
        store.write("accounts", 0, b"here")


def test_without_lifelines_they_do_not(bank, owner, monkeypatch):
    """This shows what lifelines are for."""
    daemons = bank(3, "tcp", NEVER)
    first = kill_with_child(daemons, owner, monkeypatch, "off")
    assert status_of("bank", daemons)["live"]
    # The child ends, and now the mirrors notice.
    first.process.stdin.close()
    wait_for(lambda: not status_of("bank", daemons)["live"], SECONDS, "the end of the owner")
