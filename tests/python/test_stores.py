"""Threads that use two stores at once."""
import threading

import perseas

ROUNDS = 40


def add(store, segment, then=lambda: None):
    """Adds 1 in the store, with its turn, and has that while it does what comes then."""
    def work(tx):
        tx.write(segment, 0, bytes([segment.view[0] + 1]))
        then()
    store.transact(work, serial=True)


def test_two_orders_do_not_deadlock(address):
    """The turn in one store, and then in the other, in either order. A transact inside of another
    one passes on what would deadlock, and the outer one begins again."""
    with perseas.open("left", address, create=True) as left, \
            perseas.open("right", address, create=True) as right:
        done, segments = [], {store: store.map("a", 4096) for store in (left, right)}
        for store in segments:
            store.publish()

        def work(first, second):
            while done.count(first) < ROUNDS:
                try:
                    add(first, segments[first], lambda: add(second, segments[second]))
                    done.append(first)
                except perseas.ConflictError as refused:
                    assert "would deadlock" in str(refused)

        threads = [threading.Thread(target=work, args=stores)
                   for stores in ((left, right), (right, left))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(done) == 2 * ROUNDS
        for segment in segments.values():
            assert segment.view[0] >= 2 * ROUNDS    # an inner one may be done more often
