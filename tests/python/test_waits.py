"""That every call which waits lets other threads of Python run. Each waits for something that only
another thread can bring about: if the call kept the interpreter's lock, nothing would.
"""
import threading
import time

import pytest

from drill import SECONDS
import perseas

# Nothing is given up before the mirror goes on.
PATIENT = dict(commit_timeout_ms=60000, connect_timeout_ms=60000, open_timeout_ms=60000,
               mirror_timeout_ms=0xffffffff)


class Waiting(threading.Thread):
    """Calls something, which must not return before it is allowed to."""

    def __init__(self, call):
        super().__init__(daemon=True)
        self.call, self.begins, self.failed = call, threading.Event(), None
        self.start()
        assert self.begins.wait(SECONDS)
        for _ in range(5):
            time.sleep(0.004)           # it needs the interpreter's lock five times
        assert self.is_alive()

    def run(self):
        self.begins.set()
        try:
            self.call()
        except BaseException as error:
            self.failed = error

    def ends(self):
        self.join(SECONDS)
        assert not self.is_alive() and self.failed is None, self.failed


def commit(store, segment):
    with store.transaction() as tx:
        tx.write(segment, 0, b"x")


def send(store, segment):
    with store.transaction(nowait=True) as tx:
        tx.write(segment, 0, b"x")
    return tx.token


def publish(store):
    store.map("b", 4096)
    store.publish()


def heap_grows(store):
    heap = store.heap("h", create=True)
    with store.transaction() as tx:
        heap.alloc(tx, 4096)


# Of a store whose only mirror is stopped until the call is under way.
MIRROR = {
    "commit": commit,
    "flush": lambda store, segment: (send(store, segment), store.flush()),
    "confirm": lambda store, segment: store.confirm(),
    "token": lambda store, segment: send(store, segment).wait(),
    "close": lambda store, segment: (send(store, segment), store.close()),
    "map, publish": lambda store, segment: publish(store),
    "grow": lambda store, segment: store.grow(segment, 8192),
    "unmap": lambda store, segment: (send(store, segment), store.unmap(segment)),
    "destroy": lambda store, segment: store.destroy("gone"),
    "heap": lambda store, segment: heap_grows(store),
    "table": lambda store, segment: store.heap("h", create=True).table("t"),
}


@pytest.mark.parametrize("name", MIRROR)
def test_calls_that_wait_for_a_mirror(name, mirrors):
    daemon, = mirrors(1)
    with perseas.open("s", daemon.address, create=True, **PATIENT) as store:
        segment = store.map("a", 4096, most=1 << 20)
        store.map("gone", 4096)
        store.publish()
        store.unmap("gone")
        daemon.stop()
        waiting = Waiting(lambda: MIRROR[name](store, segment))
        daemon.cont()
        waiting.ends()


@pytest.mark.parametrize("name", ["open", "create"])
def test_calls_that_wait_for_the_first_answer_of_a_mirror(name, mirrors):
    daemon, = mirrors(1)
    daemon.stop()
    waiting = Waiting(lambda: perseas.open("s", daemon.address, create=True, **PATIENT).close()
                      if name == "open" else perseas.create("s", daemon.address, **PATIENT))
    daemon.cont()
    waiting.ends()


def test_memory_that_is_not_here_is_waited_for(address, monkeypatch):
    """It would come in hours; this thread touches it while the other one waits, in one call."""
    monkeypatch.setattr(perseas.store, "SLICE_SECONDS", float(SECONDS))
    with perseas.open("s", address, create=True) as store:
        store.map("a", 32 << 20).array("<i8", writable=True)[:] = 3
        store.publish()
    with perseas.open("s", address, recovery="on demand", fetch_rate=4096) as store:
        array = store.map("a").array("<i8")
        waiting = Waiting(lambda: store.wait_whole(SECONDS))
        assert array.sum() == 3 * len(array)
        waiting.ends()
        assert store.stat().missing == 0
        del array


def test_a_prefetch_does_not_wait(mirrors):
    """It returns while the mirror hangs that has the memory."""
    daemon, = mirrors(1)
    with perseas.open("s", daemon.address, create=True) as store:
        store.map("a", 32 << 20).array("<i8", writable=True)[:] = 3
        store.publish()
    with perseas.open("s", daemon.address, recovery="on demand", fetch_rate=4096,
                      **PATIENT) as store:
        array = store.map("a").array("<i8")
        daemon.stop()
        store.prefetch(array)
        assert store.stat().missing > 0
        daemon.cont()
        assert array.sum() == 3 * len(array)
        del array


def begin_serial(store):
    store.begin(serial=True).abort()


def retry(store):
    """The younger transaction is refused the lock, and waits until the older one has ended."""
    tx = store.begin()
    with pytest.raises(perseas.ConflictError):
        tx.lock("held")
    tx.retry()
    tx.lock("held")
    tx.abort()


@pytest.mark.parametrize("call, modes", [(begin_serial, dict(serial=True)), (retry, {})],
                         ids=["begin", "retry"])
def test_calls_that_wait_for_another_transaction(call, modes, store):
    holder = store.begin(**modes)
    holder.lock("held")
    waiting = Waiting(lambda: call(store))
    holder.abort()
    waiting.ends()


def test_a_lock_that_an_older_transaction_waits_for(store):
    """It waits for the younger one, which has the lock."""
    older, has, may_end = store.begin(), threading.Event(), threading.Event()
    older.lock("first")

    def have_it():
        with store.transaction() as tx:
            tx.lock("held")
            has.set()
            assert may_end.wait(SECONDS)

    def release():
        for _ in range(5):
            time.sleep(0.004)           # meanwhile the main thread is inside of the library
        may_end.set()

    threads = [threading.Thread(target=target, daemon=True) for target in (have_it, release)]
    threads[0].start()
    assert has.wait(SECONDS)
    threads[1].start()
    older.lock("held")
    assert may_end.is_set()
    older.abort()
    for thread in threads:
        thread.join(SECONDS)


def test_a_change_of_the_roster_waits_for_the_new_mirror(mirrors):
    first, second = (mirrors(1)[0] for _ in range(2))
    with perseas.open("s", first.address, create=True, **PATIENT) as store:
        second.stop()
        waiting = Waiting(lambda: store.change_roster(add=second.address))
        second.cont()
        waiting.ends()
        assert store.stat().mirrors == 2


def test_a_standby_waits_for_the_owner(address):
    with perseas.open("s", address, create=True) as store:
        store.map("a", 4096)
        store.publish()
        with perseas.standby("s", address) as standby:
            waiting = Waiting(lambda: standby.wait(SECONDS).close())
            store.close()
            waiting.ends()
