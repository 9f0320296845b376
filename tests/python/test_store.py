"""What the package does, against one real mirror: segments, transactions, options, errors, events,
figures.
"""
import asyncio
import ctypes
import os
import queue
import struct
import threading

import numpy
import pytest

from drill import SECONDS, wait_for
import perseas


def array_of(store):
    return store.map("a").array("<i8")


def open_to_doubt(address):
    """A store with a segment, which waits for no commit longer than a moment. Those before took as
    long as they did."""
    with perseas.open("s", address, create=True) as store:
        store.map("a", 4096)
        store.publish()
    return perseas.open("s", address, commit_timeout_ms=100)


# --- transactions ---

def test_what_was_committed_is_there_for_the_next_owner(address):
    with perseas.open("s", address, create=True) as store:
        segment = store.map("a", 4096)
        segment.array("<i8", writable=True)[1] = 7
        store.publish()
        with store.transaction() as tx:
            tx.writable(segment.array("<i8")[2:4])[:] = (8, 9)
            assert tx.is_open
        assert not tx.is_open and tx.token.seq == store.stat().seq
    with perseas.open("s", address) as store:
        assert list(store.map("a").array("<i8")[:5]) == [0, 7, 8, 9, 0]


def test_exactly_the_range_is_declared(store):
    array = array_of(store)
    before = store.stat().range_bytes
    with store.transaction() as tx:
        tx.writable(array[10:20])[:] = 1
    assert store.stat().range_bytes - before == 80
    assert array[9:21].sum() == 10


def test_an_exception_aborts(store):
    array = array_of(store)
    with pytest.raises(KeyError):
        with store.transaction() as tx:
            tx.writable(array[0:2])[:] = 5
            assert array[0] == 5
            raise KeyError("x")
    assert array[0] == 0 and store.stat().aborts == 1 and store.stat().open == 0


def test_arrays_are_read_only_outside_and_writable_views_end(store):
    array = array_of(store)
    with pytest.raises(ValueError):
        array[0] = 1
    with pytest.raises(ValueError):
        array.flags.writeable = True
    with pytest.raises(TypeError):
        store.map("a").view[0] = 1
    with store.transaction() as tx:
        part, raw = tx.writable(array[0:2]), tx.writable(store.map("a").view[100:108])
        raw[:] = b"12345678"
    with pytest.raises(ValueError):
        part[0] = 1
    with pytest.raises(ValueError, match="released"):
        raw[0] = 1


def test_struct_ctypes_and_structured_arrays(store):
    class Point(ctypes.Structure):
        _fields_ = [("x", ctypes.c_int32), ("y", ctypes.c_int32)]

    segment = store.map("a")
    kind = numpy.dtype([("name", "S8"), ("n", "<i4")])
    table = segment.array(kind, 10, offset=1000)
    with store.transaction() as tx:
        tx.pack(segment, 0, "<qd", -3, 2.5)
        point = tx.overlay(Point, segment, 64)
        point.x, point.y = 4, 5
        row = tx.writable(table[3:4])
        row["name"], row["n"] = b"ann", 9
        tx.write(segment, 500, b"text")
        del point
    assert struct.unpack_from("<qd", segment.view) == (-3, 2.5)
    assert Point.from_buffer_copy(segment.view, 64).y == 5
    assert table[3]["name"] == b"ann" and table[3]["n"] == 9
    assert bytes(segment.view[500:504]) == b"text"


def test_fortran_order_and_other_shapes_are_kept(store):
    array = store.map("a").array("<f4", (4, 8))
    with store.transaction() as tx:
        turned = tx.writable(array.T)
        assert turned.shape == (8, 4)
        turned[7, 3] = 2
        view = tx.writable(store.map("a").view[64:128].cast("i", (4, 4)))
        assert view.shape == (4, 4)
    assert array[3, 7] == 2


def test_a_savepoint_takes_a_part_back(store):
    array = array_of(store)
    with store.transaction() as tx:
        tx.writable(array[0:1])[0] = 1
        with pytest.raises(RuntimeError):
            with tx.savepoint():
                tx.writable(array[0:2])[:] = 2
                raise RuntimeError
        assert list(array[:2]) == [1, 0]
        mark = tx.savepoint()
        tx.writable(array[5:6])[0] = 3
        mark.rollback()
    assert list(array[:6]) == [1, 0, 0, 0, 0, 0]


def test_what_is_tracked_needs_no_declaration(address):
    with perseas.open("s", address, create=True, tracked=True) as store:
        store.map("a", 8192)
        store.publish()
        array = store.map("a").array("<i8", writable=True)
        with store.transaction(track=True):
            array[3] = 4
            array[1000] = 5
        with pytest.raises(KeyError):
            with store.transaction(track=True):
                array[3] = 9
                raise KeyError
        assert array[3] == 4
        del array
    with perseas.open("s", address) as store:
        array = store.map("a").array("<i8")
        assert (array[3], array[1000]) == (4, 5)


def test_conflicts_are_tried_again(store):
    """Two threads lock two keys in the other order: the younger one is refused, and transact has it
    do its work again."""
    array, calls = array_of(store), []
    first_has, second_has = threading.Event(), threading.Event()

    def one(tx):
        tx.lock("x")
        first_has.set()
        second_has.wait(SECONDS)
        tx.lock(7)
        tx.writable(array[0:1])[0] += 1

    def other(tx):
        calls.append(1)
        tx.lock(7)
        second_has.set()
        tx.lock("x")
        tx.writable(array[0:1])[0] += 1

    threads = [threading.Thread(target=store.transact, args=(one,))]
    threads[0].start()
    assert first_has.wait(SECONDS)
    threads.append(threading.Thread(target=store.transact, args=(other,)))
    threads[1].start()
    for thread in threads:
        thread.join(SECONDS)
    assert array[0] == 2 and len(calls) >= 2


def test_a_conflict_that_does_not_end_is_raised(address):
    """It is about no lock, and nobody ends what it conflicts with, as in the same thread."""
    with perseas.open("s", address, create=True, tracked=True) as store:
        store.map("a", 4096)
        store.publish()
        heap, calls = store.heap("h", create=True), []
        with store.transaction() as tx:
            made = heap.new(tx, b"x")
        other = store.begin()
        heap.set_root(other, "r", made)
        with pytest.raises(perseas.ConflictError):
            store.transact(lambda tx: (calls.append(1), heap.free(tx, made)))
        assert len(calls) == 17
        with pytest.raises(perseas.ConflictError):
            store.transact(lambda tx: calls.append(1), track=True)
        assert len(calls) == 17 and store.stat().open == 1
        other.abort()
        store.transact(lambda tx: heap.free(tx, made))


def test_locks_are_waited_for_however_many_are_refused(store):
    """Each of them by another transaction, and of a table's part by one more."""
    table, many, tries = store.heap("h", create=True).table("t", value="<q"), [], []
    for key in range(30):
        many.append(store.begin())
        many[-1].lock(key)
    many.append(store.begin())
    table.within(many[-1])["k"] = 1

    def work(tx):
        number = len(tries)
        tries.append(tx)
        if number == len(many):
            return
        try:
            if number < 30:
                tx.lock(number)
            else:
                table.within(tx)["k"] = 2
        finally:
            many[number].abort()

    store.transact(work)
    assert len(tries) == 32 and "k" not in table


def test_serial_transactions_need_no_locks(store):
    array = array_of(store)

    def add(tx):
        value = int(array[0])
        tx.writable(array[0:1])[0] = value + 1

    threads = [threading.Thread(target=lambda: [store.transact(add, serial=True)
                                                for _ in range(100)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert array[0] == 400


def test_a_commit_that_does_not_wait_has_a_token(store):
    array = array_of(store)
    with store.transaction(nowait=True) as tx:
        tx.writable(array[0:1])[0] = 1
    store.wait(tx.token, SECONDS)
    tx.token.wait()
    assert store.posted() == tx.token and hash(store.posted()) == hash(tx.token)
    later = perseas.Token(store, tx.token.epoch, tx.token.seq + 1)
    with pytest.raises(perseas.InvalidArgumentError):
        store.wait(later, 0)
    with pytest.raises(perseas.EpochError):
        store.wait(perseas.Token(store, tx.token.epoch + 1, 1), 0)


def test_asyncio_waits_without_a_thread(store):
    array = array_of(store)

    async def one(number):
        async with store.transaction() as tx:
            tx.writable(array[number:number + 1])[0] = number
        return tx.token

    async def main():
        tx = store.begin(nowait=True)
        tx.writable(array[999:1000])[0] = 5
        token = await tx.commit()
        assert await store.durable(token) is token
        return await asyncio.gather(*(one(number) for number in range(100)))

    threads = threading.active_count()
    tokens = asyncio.run(main())
    assert len(set(tokens)) == 100 and threading.active_count() == threads
    assert list(array[:100]) == list(range(100))
    assert asyncio.run(one(3)).seq > tokens[-1].seq             # another loop, later


def test_asyncio_goes_on_while_a_mirror_does_not_answer(mirrors):
    """What waits is the coroutine alone; a mirror that goes on wakes it. Over tcp: what is in
    shared memory needs no daemon's help."""
    daemon, = mirrors(1)
    ticks = []

    async def tick(token):
        while not token.done():
            ticks.append(1)
            await asyncio.sleep(0.002)
            if len(ticks) == 20:
                daemon.cont()

    async def main(store, array):
        daemon.stop()
        tx = store.begin(nowait=True)
        tx.writable(array[0:1])[0] = 1
        waiting = asyncio.ensure_future(store.durable(tx.commit()))
        await asyncio.gather(tick(waiting), waiting)

    with perseas.open("s", daemon.address, create=True) as store:
        store.map("a", 4096)
        store.publish()
        try:
            asyncio.run(main(store, array_of(store)))
        finally:
            daemon.cont()
    assert len(ticks) >= 20


def test_asyncio_is_told_of_a_store_that_is_closed(mirrors):
    """Who awaits a token meanwhile gets an error, whichever thread closes."""
    daemon, = mirrors(1)
    with open_to_doubt(daemon.address) as store:
        store.map("a")

        async def main():
            tx = store.begin(nowait=True)
            tx.write(store.map("a"), 0, b"x")
            waiting = asyncio.ensure_future(store.durable(tx.commit()))
            await asyncio.sleep(0)
            thread = threading.Thread(target=pytest.raises, args=(perseas.InDoubtError,
                                                                  store.close))
            thread.start()
            with pytest.raises(perseas.ClosedError):
                await asyncio.wait_for(waiting, SECONDS)
            thread.join(SECONDS)

        daemon.stop()
        try:
            asyncio.run(main())
        finally:
            daemon.cont()


# --- segments ---

def test_segments_come_and_go(store):
    made = store.map("b", 5000)
    assert not made.published and len(made) == made.size == 5000
    made.first()[:4] = b"head"
    numbers = made.array("u1", writable=True)
    numbers[4] = 9
    store.publish()
    assert made.published and bytes(made.view[:5]) == b"head\x09"
    with pytest.raises(ValueError):
        numbers[4] = 8
    with pytest.raises(perseas.InvalidArgumentError, match="tx.writable"):
        made.array("u1", writable=True)
    assert [each.name for each in store.segments()] == ["a", "b"]
    assert store.map("b") is made
    del numbers
    store.unmap(made)
    with pytest.raises(perseas.ClosedError, match="not mapped any more"):
        made.view
    store.destroy("b")
    with pytest.raises(perseas.NoSegmentError):
        store.map("b")


def test_a_segment_is_mapped_elsewhere(address):
    with perseas.open("s", address, create=True) as store:
        store.map("a", 4096).first()[:2] = b"hi"
        store.publish()
    with perseas.open("s", address) as store:
        segment = store.map("a", at=0x5a0000000000)
        assert segment.address == 0x5a0000000000 and segment.moved != 0
        with store.transaction() as tx:
            tx.write(segment, 2, b"!")
        assert bytes(segment.view[:3]) == b"hi!"


def test_memory_comes_on_demand(address):
    with perseas.open("s", address, create=True) as store:
        store.map("a", 1 << 20).array("<i8", writable=True)[:] = 3
        store.publish()
    with perseas.open("s", address, recovery="on demand") as store:
        array = store.map("a").array("<i8")
        store.prefetch(array[1000:2000])
        assert array[-1] == 3
        store.wait_whole(SECONDS)
        assert store.stat().missing == 0 and array.sum() == 3 * len(array)


# --- options, errors, figures ---

@pytest.mark.parametrize("given", [dict(log_size=1), dict(ring_size=1), dict(acks=2),
                                   dict(gather_us=2000000), dict(gather_bytes=1)])
def test_ranges_are_those_of_the_library(address, given):
    with pytest.raises(perseas.InvalidArgumentError) as caught:
        perseas.open("s", address, create=True, **given)
    assert caught.value.code == -1 and caught.value.name == "PERSEAS_EINVAL"
    assert len(caught.value.sentence) > 20


def test_options_that_are_none_are_refused(address):
    for given, kind in ((dict(colour=1), TypeError), (dict(acks="2"), TypeError),
                        (dict(acks=-1), perseas.InvalidArgumentError),
                        (dict(acks=1 << 32), perseas.InvalidArgumentError),
                        (dict(log_size=True), TypeError), (dict(size=1), TypeError),
                        (dict(recovery="later"), perseas.InvalidArgumentError),
                        (dict(tls_cert="a\0b"), perseas.InvalidArgumentError)):
        with pytest.raises(kind):
            perseas.open("s", address, **given)
    with pytest.raises(perseas.InvalidArgumentError):
        perseas.open("no/such name", address, create=True)
    with pytest.raises(TypeError):
        perseas.open(7, address)


def test_errors_say_what_to_do(address):
    with pytest.raises(perseas.NoStoreError, match="PERSEAS_ENOSTORE: .*s"):
        perseas.open("s", address)
    with perseas.open("s", [address], create=True):
        with pytest.raises(perseas.BusyError) as caught:
            perseas.open("s", address)
        assert isinstance(caught.value, perseas.PerseasError) and caught.value.code == -9
    perseas.create("t", address, log_size=65536)
    with pytest.raises(perseas.ExistsError):
        perseas.create("t", address)


def test_a_store_says_how_it_is(store, address):
    assert repr(store) == "<perseas.Store 's': epoch 1, transaction %d, 1 of 1 mirrors live, " \
        "W = 1>" % store.stat().seq
    assert address in store._repr_html_()
    stat, mirror = store.stat(), store.mirrors()[0]
    assert (stat.mirrors, stat.acks, stat.live) == (1, 1, 1)
    assert (mirror.address, mirror.fabric, mirror.state) == (address, "shm", "live")
    assert "Latency of 0 commits" in repr(store.latency())
    assert store.latency().percentile_ns(99) == 0
    assert address in store.report()


def test_events_come_in_a_thread_that_may_use_the_store(daemons, address):
    """on_event looks at the store, and commits, which the library's own thread must not."""
    seen = queue.Queue()

    def on_event(event):
        if event.kind == "mirror-live":
            store.transact(lambda tx: tx.write(store.map("a"), 0, b"seen"))
        seen.put((event, threading.current_thread().name))
        raise RuntimeError("of the application's")

    hook, threading.excepthook = threading.excepthook, lambda args: None
    try:
        with perseas.open("s", address, create=True, on_event=on_event) as store:
            store.map("a", 4096)
            store.publish()
            daemons[0].kill9()
            event, thread = seen.get(timeout=SECONDS)
            assert event.kind == "mirror-down" and event.mirror == address and event.text
            assert thread == "perseas events"
            daemons[0].restart()
            wait_for(lambda: seen.get(timeout=SECONDS)[0].kind == "mirror-live", SECONDS, "live")
            assert bytes(store.map("a").view[:4]) == b"seen"
    finally:
        threading.excepthook = hook
    assert not [each for each in threading.enumerate() if each.name == "perseas events"]


def test_the_roster_changes_while_the_store_is_open(mirrors):
    first, second = (mirrors(1)[0].address for _ in range(2))
    with perseas.open("s", first, create=True) as store:
        store.change_roster(add=second, acks=2)
        assert store.stat().acks == 2 and store.stat().mirrors == 2
        with pytest.raises(perseas.InvalidArgumentError):
            store.change_roster(remove="127.0.0.1:1")
        store.change_roster(remove=second)
        assert store.stat().acks == 1


def test_a_majority_stays_one_when_the_roster_changes(mirrors):
    """W is not named: 1 of 1, 2 of 2, 2 of 3, and back. Events tell the sizes."""
    first, second, third = (mirrors(1)[0].address for _ in range(3))
    seen = queue.Queue()

    def on_event(event):
        if event.kind == "roster":
            seen.put(event.text)

    with perseas.open("s", first, create=True, on_event=on_event) as store:
        size = (1, 1)
        for change, after in (({"add": second}, (2, 2)), ({"add": third}, (3, 2)),
                              ({"remove": third}, (2, 2)), ({"remove": second}, (1, 1))):
            store.change_roster(**change)
            assert store.stat().acks == after[1], change
            assert seen.get(timeout=SECONDS) == \
                "the roster has %d mirrors now, W = %d (before: %d, W = %d)" % (*after, *size)
            size = after


def test_a_descriptor_of_the_loop_survives_a_close(mirrors):
    """The store's number is somebody else's when those that awaited a token hear of the close."""
    daemon, = mirrors(1)
    store = open_to_doubt(daemon.address)
    segment = store.map("a")

    async def main():
        tx = store.begin(nowait=True)
        tx.write(segment, 0, b"x")
        waiting = asyncio.ensure_future(store.durable(tx.commit()))
        await asyncio.sleep(0)
        number, heard = store._durability._fd, asyncio.Event()
        with pytest.raises(perseas.InDoubtError):
            store.close()
        reader, writer = os.pipe()
        os.dup2(reader, number)
        asyncio.get_running_loop().add_reader(number, heard.set)
        with pytest.raises(perseas.ClosedError):
            await asyncio.wait_for(waiting, SECONDS)
        os.write(writer, b"x")
        await asyncio.wait_for(heard.wait(), SECONDS)
        asyncio.get_running_loop().remove_reader(number)
        for each in (reader, writer, number):
            os.close(each)

    daemon.stop()
    try:
        asyncio.run(main())
    finally:
        daemon.cont()


def test_asyncio_is_told_of_a_standby_that_is_closed(store, address):
    """Each coroutine that waits for it, whichever thread closes."""
    async def main():
        waiting = [asyncio.ensure_future(standby.owned()) for _ in range(2)]
        await asyncio.sleep(0)
        await asyncio.to_thread(standby.close)
        for each in waiting:
            with pytest.raises(perseas.ClosedError):
                await asyncio.wait_for(each, SECONDS)

    standby = perseas.standby("s", address)
    asyncio.run(main())


def test_a_standby_takes_over(address):
    with perseas.open("s", address, create=True) as store:
        with perseas.standby("s", address, order=1, warm=True) as standby:
            with pytest.raises(perseas.TimeoutExpired):
                standby.wait(0.05)
            wait_for(lambda: standby.stat().state == "owned", SECONDS, "an owner")
            assert "owned" in repr(standby) and standby.mirrors()[0].reached
            store.close()
            with standby.wait(SECONDS) as mine:
                assert mine.stat().epoch == 2

            async def main():
                with await standby.owned() as again:
                    return again.stat().epoch

            assert asyncio.run(asyncio.wait_for(main(), SECONDS)) == 3
            standby.cancel()
            with pytest.raises(perseas.CancelledError):
                standby.wait(SECONDS)
        with pytest.raises(perseas.ClosedError):
            standby.stat()


# --- copies, addresses, and what is open ---

def test_a_copy_has_what_is_committed(store):
    """Of an open transaction it has nothing; arrays come as arrays, and views as bytes."""
    array, view = array_of(store), store.map("a").view[4096:4100]
    with store.transaction() as tx:
        tx.writable(array[0:2])[:] = (7, 8)
    with store.transaction() as tx:
        tx.writable(array[1:3])[:] = 9
        (numbers, text), token = store.copy_committed(array[0:4].reshape(2, 2), view)
        assert array[1] == 9
    assert numbers.tolist() == [[7, 8], [0, 0]] and text == bytearray(4)
    assert token.seq == tx.token.seq - 1
    numbers[0] = 5                                              # it is the caller's
    assert array[0] == 7 and store.copy_committed()[0] == []
    assert store.copy_committed(view[:0], array[:0])[0][0] == b""
    for thing, kind in ((numbers, perseas.RangeError), (array[::2], ValueError), (7, TypeError)):
        with pytest.raises(kind):
            store.copy_committed(thing)


def test_open_transactions_are_listed(store):
    first = store.begin(serial=True)
    second = store.begin()
    second.write(store.map("a"), 0, b"12345")
    second.lock("x")
    rows = store.transactions()
    assert [(each.bytes, each.ranges, each.locks, each.serial, each.track) for each in rows] == [
        (0, 0, 0, True, False), (5, 1, 1, False, False)]
    first.abort()
    second.abort()
    assert store.transactions() == []


def test_pointers_of_a_segment_that_is_elsewhere(address):
    with perseas.open("s", address, create=True) as store:
        recorded = store.map("a", 4096).address
        store.publish()
        assert store.here(recorded) == recorded == store.recorded(recorded)
    with perseas.open("s", address) as store:
        segment = store.map("a", at=0x5a0000000000)
        assert store.here(recorded + 5) == segment.address + 5
        assert store.recorded(segment.address + 4095) == recorded + 4095
        assert store.here(segment.address) is None and store.recorded(recorded + 4096) is None
    for call in (store.here, store.recorded):
        with pytest.raises(perseas.ClosedError):
            call(recorded)


def test_latencies_have_a_histogram(store):
    for number in range(1000):
        store.transact(lambda tx: tx.write(store.map("a"), 0, b"x"))
    found = store.latency()
    histogram = found.histogram()
    assert sum(count for _, count in histogram) == found.count
    assert histogram == sorted(histogram)
    assert all(0 < ns <= found.max_ns for ns, _ in histogram)
