"""A daemon comes back with the images of several stores that must be copied to."""
import contextlib
import re

import pytest

from binding import CREATE, Store
from drill import FABRICS, MIB, OK, mirror_list, run_command, status_of, wait_even
from teller import until

STORES = 4
SIZE = 4 * MIB
RING = 16 * MIB
PART = 48 << 10                         # bytes of a transaction
COPIES = re.compile(r"store (\w+): (?:.* (repairs) the image in place|the image is (whole),)")


def copies_of(log):
    """Returns the copies that the log tells of: (store, "repairs") and (store, "whole")."""
    return [(store, begun or done) for store, begun, done in COPIES.findall(log)]


def overrun_ring(store):
    """Commits until a mirror is missed, and then more than the ring holds."""
    def commit():
        store.write("data", 0, b"x" * PART)
        return True
    until(lambda: commit() and store.stat().live == 2, "a mirror that is missed")
    for _ in range(2 * RING // PART):
        commit()


@pytest.mark.parametrize("fabric", FABRICS)
@pytest.mark.parametrize("copies", [1, 0])
def test_the_stores_of_a_daemon_that_returns_are_copied_in_turn(mirrors, fabric, copies):
    """One copy goes on at a time, unless the option allows any number. All owners commit meanwhile,
    and all images are equal in the end."""
    daemons = mirrors(3, fabric, ("--copies", str(copies)))
    names = ["store%d" % i for i in range(STORES)]
    with contextlib.ExitStack() as stack:
        stores = [stack.enter_context(Store(name, mirror_list(daemons), flags=CREATE, acks=2,
                                            ring_size=RING)) for name in names]
        for store in stores:
            store.map("data", SIZE)
            store.publish()
        for name in names:
            wait_even(name, daemons)
        daemons[2].kill9()
        for store in stores:
            overrun_ring(store)
        daemons[2].restart()
        until(lambda: all(store.stat().live == 3 for store in stores), "live mirrors")
        assert [store.stat().resyncs for store in stores] == [1] * STORES
        for store in stores:
            store.flush()
    told = copies_of(daemons[2].log())
    assert sorted(store for store, kind in told if kind == "repairs") == names
    if copies == 1:
        assert [kind for _, kind in told] == ["repairs", "whole"] * STORES, told
        assert [store for store, _ in told[::2]] == [store for store, _ in told[1::2]]
    for name in names:
        assert run_command("verify", name, mirrors=daemons).status == OK


def test_scripts_learn_the_place_of_a_mirror_that_waits(mirrors):
    """Of two stores, one waits for the other one's copy, which takes a minute, and has its turn
    when the other one's owner ends."""
    daemons = mirrors(3)
    names = ["store0", "store1"]

    def places():
        """Returns the state of the third mirror and its place, for each store whose owner has
        told them."""
        owners = [status_of(name, daemons)["owner"] or {} for name in names]
        return [(mirror["state"], mirror["copy_place"]) for owner in owners
                for mirror in owner.get("mirrors", ())[2:]]

    with contextlib.ExitStack() as stack:
        stores = [stack.enter_context(Store(name, mirror_list(daemons), flags=CREATE, acks=2,
                                            ring_size=RING, resync_rate=64 << 10))
                  for name in names]
        for store in stores:
            store.map("data", 2 * SIZE)
            store.publish()
        until(lambda: places() == [("live", None)] * 2, "owners that told of their mirrors")
        for name in names:
            wait_even(name, daemons)
        daemons[2].kill9()
        for store in stores:
            overrun_ring(store)
            for at in range(SIZE, 2 * SIZE, MIB):
                store.write("data", at, b"y" * MIB)
        daemons[2].restart()
        until(lambda: set(places()) == {("resyncing", None), ("stale", 1)}, "a mirror that waits")
        stores[places().index(("resyncing", None))].close()
        until(lambda: places() == [("resyncing", None)], "a turn for the mirror that waited")
