"""A daemon comes back with the images of several stores that must be copied to."""
import contextlib
import re

import pytest

from binding import CREATE, Store
from drill import FABRICS, MIB, OK, mirror_list, run_command
from teller import until

STORES = 4
SIZE = 4 * MIB
RING = 16 * MIB
PART = 48 << 10                         # bytes of a transaction
COPIES = re.compile(r"store (\w+): (?:.* (repairs) the image in place|the image is (whole),)")


def copies_of(log):
    """Returns the copies that the log tells of: (store, "repairs") and (store, "whole")."""
    return [(store, begun or done) for store, begun, done in COPIES.findall(log)]


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
        daemons[2].kill9()
        for store in stores:
            def commit(store=store):
                store.write("data", 0, b"x" * PART)
                return True
            until(lambda: commit() and store.stat().live == 2, "a mirror that is missed")
            for _ in range(2 * RING // PART):
                commit()
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
