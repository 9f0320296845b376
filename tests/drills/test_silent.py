"""A mirror that says nothing any more is left within twice `mirror_timeout_ms`, whatever silenced
it, and taken up again when it is back. Nothing ends its connections."""
import os
import signal
import time

import pytest

from binding import CREATE, Store
from cluster import PATIENCE, Cluster, Mirror
from drill import BUILD, SECONDS, WITH_TLS, Daemon, mirror_list, wait_for
from netns import network  # noqa: F401

pytestmark = pytest.mark.timing("a silent mirror is noticed within twice the owner's timeout")

TIMEOUT = 0.25 * PATIENCE   # seconds
OPTIONS = {"flags": CREATE, "mirror_timeout_ms": int(1000 * TIMEOUT)}


def begin(store):
    """All its mirrors are live, and stay so for the time after which one would be left."""
    store.map("accounts", 4096)
    store.publish()
    store.write("accounts", 0, b"before")
    wait_for(lambda: store.stat().live == 3, SECONDS, "live mirrors")
    until = time.monotonic() + TIMEOUT
    while time.monotonic() < until:
        assert store.stat().live == 3


def expect_found(store, silence):
    """silence() makes one mirror silent: it is left in time, and commits go on with two."""
    began = time.monotonic()
    silence()
    wait_for(lambda: store.stat().live == 2, SECONDS, "a mirror that is left")
    took = time.monotonic() - began
    print("from its silence to the end of its session: %.3f s" % took)
    assert took < 2 * TIMEOUT
    store.write("accounts", 0, b"meanwhile")


def expect_back(store):
    wait_for(lambda: store.stat().live == 3, SECONDS, "live mirrors")
    assert store.stat().resyncs == 0


@pytest.mark.parametrize("fabric", WITH_TLS)
def test_a_mirror_that_is_stopped(fabric, mirrors):
    """SIGSTOP: its kernel goes on, and takes what is sent."""
    daemons = mirrors(3, fabric)
    pid = daemons[0].mirror.process.pid
    with Store("bank", mirror_list(daemons), **OPTIONS) as store:
        begin(store)
        expect_found(store, lambda: os.kill(pid, signal.SIGSTOP))
        os.kill(pid, signal.SIGCONT)
        expect_back(store)


@pytest.mark.parametrize("cuts", ["both", "there", "back"])
def test_a_mirror_that_is_cut_off(network, cuts):  # noqa: F811
    """In both directions, or in one: nobody resets a connection."""
    names = ("m0", "m1", "m2")
    net = network("owner", *names)
    there, back = ("owner", "m0"), ("m0", "owner")
    pairs = {"both": [there, back], "there": [there], "back": [back]}[cuts]
    with Cluster(BUILD, 0) as cluster:
        for index, name in enumerate(names):
            mirror = Mirror(cluster.build / "perseasd", cluster.folder, index, [],
                            net[name].address)
            cluster.mirrors.append(mirror)
            with net[name].inside():
                mirror.start()
        daemons = [Daemon(mirror, "tcp") for mirror in cluster.mirrors]
        with net["owner"].inside(), Store("bank", mirror_list(daemons), **OPTIONS) as store:
            begin(store)
            expect_found(store, lambda: net.set_cuts(pairs))
            net.heal()
            expect_back(store)
