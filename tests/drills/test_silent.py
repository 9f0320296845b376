"""An owner drops a silent mirror within twice `mirror_timeout_ms`, whatever silenced it, and uses
it again when it is back. Nothing closes its connections."""
import math
import os
import signal
import time

import pytest

from binding import Store
from cluster import PATIENCE, Cluster, Mirror
from drill import BUILD, SECONDS, WITH_TLS, Daemon, fill, mirror_list, wait_for
from netns import network  # noqa: F401
from sentinel import attempt

TIMEOUT = 0.25 * PATIENCE   # seconds
OPTIONS = {"mirror_timeout_ms": int(1000 * TIMEOUT)}


def begin(store):
    """Returns whether all mirrors are live, and stay live for the time after which one would be
    dropped."""
    store.map("accounts")
    store.write("accounts", 0, b"before")
    wait_for(lambda: store.stat().live == 3, SECONDS, "live mirrors")
    live, until = True, time.monotonic() + TIMEOUT
    while time.monotonic() < until:
        live &= store.stat().live == 3
    return live


def time_to_notice(sentinel, daemons, silence, end):
    """silence() silences one mirror. Returns how soon it is dropped; infinite if a mirror was
    dropped before. Commits continue with two mirrors. The mirror is back after end(). A patient
    owner has published before: this one's mirrors may all be dropped on a busy machine."""
    fill("bank", daemons, {"accounts": bytes(4096)})
    with Store("bank", mirror_list(daemons), **OPTIONS) as store:
        sentinel.begin()
        live = begin(store)
        resyncs = store.stat().resyncs
        silence()
        if live:
            sentinel.begin(os.getpid(), *(each.pid for each in daemons))
        wait_for(lambda: store.stat().live == 2, SECONDS, "a mirror that is left")
        took = sentinel.passed() if live else math.inf
        store.write("accounts", 0, b"meanwhile")
        end()
        wait_for(lambda: store.stat().live == 3, SECONDS, "live mirrors")
        assert store.stat().resyncs == resyncs
    return took


@pytest.mark.parametrize("fabric", WITH_TLS)
def test_a_mirror_that_is_stopped(fabric, mirrors):
    """SIGSTOP: its kernel still runs, and accepts what is sent."""
    def stopped(sentinel):
        daemons = mirrors(3, fabric)
        took = time_to_notice(sentinel, daemons, lambda: os.kill(daemons[0].pid, signal.SIGSTOP),
                              daemons[0].cont)
        for each in daemons:
            each.lose_memory()
        return took

    attempt(2 * TIMEOUT, stopped)


@pytest.mark.parametrize("cuts", ["both", "there", "back"])
def test_a_mirror_that_is_cut_off(network, cuts):  # noqa: F811
    """In both directions or in one; no connection is reset."""
    names = ("m0", "m1", "m2")
    net = network("owner", *names)
    there, back = ("owner", "m0"), ("m0", "owner")
    pairs = {"both": [there, back], "there": [there], "back": [back]}[cuts]

    def cut_off(sentinel):
        with Cluster(BUILD, 0) as cluster:
            for index, name in enumerate(names):
                mirror = Mirror(cluster.build / "perseasd", cluster.folder, index, [],
                                net[name].address)
                cluster.mirrors.append(mirror)
                with net[name].inside():
                    mirror.start()
            daemons = [Daemon(mirror, "tcp") for mirror in cluster.mirrors]
            with net["owner"].inside():
                return time_to_notice(sentinel, daemons, lambda: net.set_cuts(pairs), net.heal)

    attempt(2 * TIMEOUT, cut_off)
