"""Three mirrors are restarted one after the other while their owner commits more than its ring
holds."""
import pytest

from binding import CREATE, Store
from drill import FABRICS, MIB, OK, mirror_list, run_command, wait_even
from teller import until

SIZE = 64 * MIB
RING = 16 * MIB
GRANULE = 64 << 10
PART = 48 << 10                         # bytes of a transaction, in one granule
CHANGED = 20                            # granules that are changed while a mirror is away
LATE = 6                                # transactions while it is copied to, each in one granule


class Owner:
    """Changes the granules 0, 7, 14, ... one after the other."""

    def __init__(self, store):
        self.store, self.number = store, 0

    def commit(self):
        """Returns a true value, for until()."""
        at = self.number % CHANGED * 7 * GRANULE
        self.store.write("data", at, bytes([self.number % 255 + 1]) * PART)
        self.number += 1
        return True

    def commit_until_live(self, count):
        """Waits until `count` mirrors are live, and commits at most LATE times meanwhile."""
        late = iter(range(LATE))

        def live():
            if next(late, None) is not None:
                self.commit()
            return self.store.stat().live == count

        until(live, "%d live mirrors" % count)


@pytest.mark.parametrize("fabric", FABRICS)
def test_mirrors_that_are_restarted_in_turn_are_sent_what_changed(mirrors, fabric):
    """Each is away while the ring is overrun, and comes back while transactions go on. It is sent
    the granules that changed, once or after each change, and all images are equal in the end."""
    daemons = mirrors(3, fabric)
    sent = []
    with Store("books", mirror_list(daemons), flags=CREATE, acks=2, ring_size=RING) as store:
        store.map("data", SIZE)
        store.publish()
        wait_even("books", daemons)     # a mirror that lacks the segment is rightly copied whole
        owner = Owner(store)
        for daemon in daemons:
            before = store.stat()
            assert daemon.terminate() == 0
            until(lambda: owner.commit() and store.stat().live == 2, "a mirror that is missed")
            for _ in range(2 * RING // PART):
                owner.commit()
            daemon.restart()
            owner.commit_until_live(3)
            after = store.stat()
            assert after.resyncs == before.resyncs + 1
            sent.append(after.resync_bytes - before.resync_bytes)
            print("mirror %d: %.2f MiB sent, of %.2f MiB that changed and %d MiB in all" %
                  (len(sent), sent[-1] / MIB, CHANGED * GRANULE / MIB, SIZE / MIB))
        store.flush()
        assert store.stat().in_doubt == store.stat().doubts == 0
        content = store.read("data", 0, SIZE)
    assert all(CHANGED <= each / GRANULE <= CHANGED + LATE for each in sent), sent
    assert run_command("verify", "books", mirrors=daemons).status == OK
    daemons[0].kill9()
    with Store("books", mirror_list(daemons[1:])) as store:
        store.map("data")
        assert store.read("data", 0, SIZE) == content
