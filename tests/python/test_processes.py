"""What the system does to a program of Python: forks, the end of the interpreter, and signals. Each
ends in an error that says what to do, or in what anybody would expect, and never in a crash or in
half of a change.
"""
import gc
import os
import signal
import threading
import time

import pytest

from drill import SECONDS, wait_for
from interpreter import is_mapped, script, succeeds
import perseas


# --- processes ---

FORKS = """
import os, sys, perseas
store = perseas.open("s", sys.argv[1], create=True)
standby = perseas.standby("other", sys.argv[1], create=True)
segment = store.map("a", 1 << 20)
segment.array("<i8", writable=True)[:] = 3
store.publish()
array, tx = segment.array("<i8"), store.begin()
part = tx.writable(array[0:1])
part[0] = 4
child = os.fork()
if child == 0:
    names = []
    for call in (store.stat, store.flush, tx.commit, tx.abort, store.begin, standby.stat,
                 lambda: segment.view, lambda: store.map("a"), lambda: tx.writable(array[0:1])):
        try:
            call()
        except perseas.ForkError as error:
            names.append(error.sentence)
    part[0] = 99
    print(len(names), names[0].count("open a store of its own"), array[0], array[1:].sum(),
          repr(store), flush=True)
    store.close()
    del tx, store, standby, array
    sys.exit(0)
status = os.waitpid(child, 0)[1]
tx.commit()
print(status, array[0], store.stat().open)
store.close()
"""


def test_a_child_has_arrays_and_no_store(address):
    """What it has views of is as it was at the fork; what it writes there is its own. Whatever it
    does, its parent goes on."""
    lines = succeeds(FORKS, address).splitlines()
    assert lines == ["9 1 99 393213 <perseas.Store 's': of the parent process>", "0 4 0"]


ENDS = """
import signal, sys, threading, time, perseas
address, how = sys.argv[1:]
store = perseas.open("s", address, create=True, on_event=print)
segment = store.map("a", 4096)
array = segment.array("<i8")
store.publish()
tx = store.begin()
part = tx.writable(array[0:2])
part[0] = 7                             # half of it
def work():
    while True:
        with store.transaction() as inner:
            inner.writable(array[8:10])[:] += 1
def wait():
    with perseas.standby("s", address) as standby:
        standby.wait()
started = threading.Event()
for target in (work, wait):
    threading.Thread(target=target, daemon=True).start()
while array[8] < 20:
    time.sleep(0.001)
if how == "exit":
    sys.exit(0)
if how == "error":
    raise RuntimeError("of the program")
if how == "del":
    del store, segment, tx
"""


@pytest.mark.parametrize("how, status", [("end", 0), ("exit", 0), ("error", 1), ("del", 0)])
def test_an_interpreter_ends_with_stores_that_are_open(address, how, status):
    """And with a transaction, threads inside calls, and a standby. What was not committed is not
    there, and nobody has to wait until the owner is found dead."""
    done = script(ENDS, address, how)
    assert done.returncode == status, done.stderr
    assert "Fatal" not in done.stderr
    with perseas.open("s", address) as store:
        array = store.map("a").array("<i8")
        assert array[0] == 0 and array[8] == array[9] >= 20


HELD_BACK = """
import sys, perseas
store = perseas.open("s", sys.argv[1], create=True, gather_us=1000000)
segment = store.map("a", 4096)
store.publish()
with store.transaction(nowait=True) as tx:
    tx.write(segment, 0, b"sent")
"""


def test_what_is_held_back_is_sent_at_the_end(address):
    """Nobody closes the store, and the commit was to go with those of the next second. Where that
    is over before the end, the mirror has it all the same."""
    succeeds(HELD_BACK, address)
    with perseas.open("s", address) as store:
        assert bytes(store.map("a").view[:4]) == b"sent"


HELD_BY_A_THREAD = HELD_BACK + """
import threading, time
threading.Thread(target=lambda held: time.sleep(1000), args=((store, tx),), daemon=True).start()
del store, segment, tx
"""


def test_a_store_that_a_thread_has_is_closed_at_the_end(address):
    """Nothing collects it: the thread is in the middle of something when the interpreter ends."""
    succeeds(HELD_BY_A_THREAD, address)
    with perseas.open("s", address) as store:
        assert bytes(store.map("a").view[:4]) == b"sent"


# --- signals ---

def interrupt_after(seconds):
    """A timer that sends SIGINT to this process. The test starts it."""
    return threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))


def interrupt_and_go_on(is_time, daemon):
    """When it is time, a signal; the mirror that the main thread waits for goes on only then."""
    wait_for(is_time, SECONDS, "a call that waits for the mirror")
    os.kill(os.getpid(), signal.SIGINT)
    daemon.cont()


def test_a_signal_comes_in_the_middle_of_a_commit(mirrors):
    """The commit is not cut: it is handled when mirrors hold the transaction."""
    daemon, = mirrors(1)
    with perseas.open("s", daemon.address, create=True, commit_timeout_ms=600000) as store:
        segment = store.map("a", 4096)
        store.publish()
        array = segment.array("<i8")
        before = store.stat().seq
        daemon.stop()
        interrupter = threading.Thread(target=interrupt_and_go_on, args=(
            lambda: store.stat().seq > before, daemon))
        interrupter.start()
        with pytest.raises(KeyboardInterrupt):
            with store.transaction() as tx:
                given = tx.writable(array[0:2])
                given[:] = (1, 2)
        assert not given.flags.writeable
        assert tx.token and not tx.is_open and list(array[:2]) == [1, 2]
        store.wait(tx.token, SECONDS)
        with store.transaction() as tx:
            tx.writable(array[0:1])[0] = 5
        interrupter.join()
        del array, given
    with perseas.open("s", daemon.address) as store:
        assert list(store.map("a").view[:16].cast("q")) == [5, 2]


def test_a_signal_comes_in_the_middle_of_a_close(mirrors):
    """The store is closed then, or is by the next close; who has a view keeps the memory."""
    daemon, = mirrors(1)
    store = perseas.open("s", daemon.address, create=True, commit_timeout_ms=600000)
    segment = store.map("a", 4096)
    store.publish()
    array = segment.array("u1")
    daemon.stop()
    with store.transaction(nowait=True) as tx:
        tx.write(segment, 0, b"x")

    def is_closing():
        try:
            return store.stat() is None
        except perseas.ClosedError:
            return True

    interrupter = threading.Thread(target=interrupt_and_go_on, args=(is_closing, daemon))
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        store.close()
    interrupter.join()
    store.close()
    assert array[0] == ord("x") and is_mapped(segment.address)
    del array
    gc.collect()
    assert not is_mapped(segment.address)


def test_waits_without_end_are_ended_by_a_signal(mirrors):
    daemon, = mirrors(1)
    with perseas.open("s", daemon.address, create=True, commit_timeout_ms=600000) as store:
        segment = store.map("a", 4096)
        store.publish()
        with perseas.standby("s", daemon.address) as standby:
            timer = interrupt_after(0.05)
            with pytest.raises(KeyboardInterrupt):
                timer.start()
                standby.wait()
            timer.join()
        daemon.stop()
        with store.transaction(nowait=True) as tx:
            tx.write(segment, 0, b"x")
        timer = interrupt_after(0.05)
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            tx.token.wait()
        timer.join()
        daemon.cont()
        tx.token.wait(SECONDS)


def test_signals_come_at_any_instruction(store):
    """An alarm every fraction of a millisecond raises inside of whatever runs: each transaction is
    there whole or not at all, none is left open, and the handle's own count agrees."""
    class Alarm(Exception):
        pass

    def ring(*_):
        raise Alarm

    array, until, done, rung = store.map("a").array("<i8"), time.monotonic() + 1, 0, 0
    previous = signal.signal(signal.SIGALRM, ring)
    pause = 0.0001
    try:
        while time.monotonic() < until or rung <= 20 or done <= 20:
            try:
                pause = 0.00002 + (pause * 1.37) % 0.0003
                signal.setitimer(signal.ITIMER_REAL, pause)
                for _ in range(100):    # Python swallows one that comes in a destructor
                    with store.transaction() as tx:
                        tx.writable(array[0:1])[0] += 1
                        with tx.savepoint():
                            tx.writable(array[1:2])[0] += 2
                        tx.writable(array[100:101])[0] -= 3
                    done += 1
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Alarm:
                rung += 1
            # At the first instruction of __exit__ it leaves the transaction to the collector.
            tx = None
            assert store.stat().open == 0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    tx = None
    gc.collect()
    assert array[0] + array[1] + array[100] == 0 and array[1] == 2 * array[0]
    stat = store.stat()
    assert stat.open == 0 and stat.commits - 1 <= array[0] <= stat.commits
