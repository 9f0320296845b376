"""perseas heap: a mirror shows the same figures of a heap as its owner counts, also while the owner
commits."""
import ctypes
import threading

import pytest

from binding import CREATE, PerseasError, Store
from drill import FAILURE, NO, OK, PARTLY, SECONDS, fill, mirror_list, run_command, wait_for

POINT, LINE, BLOB = 7, 9, 2 ** 63       # types
CHUNK = 65536


class HeapOptions(ctypes.Structure):
    """struct perseas_heap_options."""
    _fields_ = [("size", ctypes.c_size_t), ("flags", ctypes.c_uint32),
                ("first", ctypes.c_uint64), ("most", ctypes.c_uint64)]


class HeapStat(ctypes.Structure):
    """struct perseas_heap_stat."""
    _fields_ = [("extents", ctypes.c_uint32), ("roots", ctypes.c_uint32)] + [
        (name, ctypes.c_uint64) for name in ("size", "objects", "used", "free", "gaps", "large",
                                             "allocated", "freed")]


class Heap:
    """A heap of a Store."""

    def __init__(self, store, name, first=4 * CHUNK):
        self.store, self.library, self.handle = store, store.library, ctypes.c_void_p()
        self.library.perseas_heap_open.argtypes = [ctypes.c_void_p, ctypes.c_char_p,
                                                   ctypes.c_void_p, ctypes.c_void_p]
        self.library.perseas_alloc.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
                                               ctypes.c_uint64, ctypes.c_void_p]
        self.library.perseas_reserve.argtypes = self.library.perseas_alloc.argtypes
        self.library.perseas_free.argtypes = [ctypes.c_void_p] * 3
        self.library.perseas_root_set.argtypes = [ctypes.c_void_p, ctypes.c_void_p,
                                                  ctypes.c_char_p, ctypes.c_uint64,
                                                  ctypes.c_void_p]
        self.library.perseas_heap_stat.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self.library.perseas_heap_trim.argtypes = [ctypes.c_void_p, ctypes.c_uint64,
                                                   ctypes.c_void_p]
        options = HeapOptions(ctypes.sizeof(HeapOptions), CREATE, first, 0)
        self.check(self.library.perseas_heap_open(store.handle, name.encode(),
                                                  ctypes.byref(options),
                                                  ctypes.byref(self.handle)))

    def check(self, rc):
        if rc:
            raise PerseasError(self.library.perseas_error_name(rc).decode(),
                               self.library.perseas_message(self.store.handle).decode())

    def transact(self, wanted=(), freed=(), roots=()):
        """Runs a transaction that allocates `wanted`, (size, type), frees `freed`, and sets
        `roots`, (name, type), to the first objects allocated. Returns their addresses."""
        tx, addresses = ctypes.c_void_p(), []
        self.check(self.library.perseas_begin(self.store.handle, 0, ctypes.byref(tx)))
        for size, kind in wanted:
            address = ctypes.c_void_p()
            get = self.library.perseas_alloc if size < CHUNK else self.library.perseas_reserve
            self.check(get(tx, self.handle, size, kind, ctypes.byref(address)))
            addresses.append(address.value)
        for address in freed:
            self.check(self.library.perseas_free(tx, self.handle, address))
        for name, kind in roots:
            self.check(self.library.perseas_root_set(tx, self.handle, name, kind, addresses[0]))
        self.check(self.library.perseas_commit(tx, 0))
        return addresses

    def trim(self, keep=0):
        """Frees segments. Returns how many bytes."""
        given = ctypes.c_uint64()
        self.check(self.library.perseas_heap_trim(self.handle, keep, ctypes.byref(given)))
        return given.value

    def stat(self):
        stat = HeapStat()
        self.check(self.library.perseas_heap_stat(self.handle, ctypes.byref(stat)))
        return stat


def ask(store, daemon, *words, status=OK):
    """Returns the heaps that the mirror shows, by name."""
    done = run_command("heap", store, *words, "--from", daemon.address, "--json")
    assert done.status == status, done
    return {heap["heap"]: heap for heap in done.json()["heaps"]}


def rows(shown):
    """Returns the number of objects for each (size, type)."""
    return {(row["size"], row["type"]): row["objects"] for row in shown["use"]}


def settled(store, daemon, heap, stat):
    """Returns what the mirror shows, once it has the last commit."""
    return wait_for(lambda: (shown := ask(store, daemon, heap)[heap])["objects"] == stat.objects
                    and shown, SECONDS, "the mirror to catch up")


def same(shown, stat):
    for name in ("extents", "size", "objects", "used", "free", "gaps", "large"):
        assert shown[name] == getattr(stat, name), (name, shown, stat)
    assert len(shown["roots"]) == stat.roots
    assert sum(row["bytes"] for row in shown["use"]) == stat.used
    assert sum(row["gaps"] for row in shown["use"]) == stat.gaps


def test_the_figures_are_those_of_the_owner(mirrors, fabric):
    """Objects of several sizes and types, a large one, a root; then half are freed, and the heap
    grows. The owner is alive all the time."""
    daemons = mirrors(2, fabric)
    with Store("s", mirror_list(daemons), flags=CREATE) as store:
        heap = Heap(store, "h")
        Heap(store, "other")
        made = heap.transact([(100, POINT)] * 300 + [(30000, LINE)] + [(2 * CHUNK - 5, BLOB)],
                             roots=[(b"first", POINT)])
        shown = settled("s", daemons[0], "h", heap.stat())
        same(shown, heap.stat())
        assert rows(shown) == {(112, POINT): 300, (32768, LINE): 1, (None, BLOB): 1}
        assert shown["roots"] == [{"name": "first", "type": POINT}]
        assert shown["free"] == 0 and shown["free_in_a_row"] == 0
        heap.transact([(20 * CHUNK, BLOB)], freed=made[1:300:2] + made[301:])
        for daemon in daemons:
            shown = settled("s", daemon, "h", heap.stat())
            same(shown, heap.stat())
            assert rows(shown) == {(112, POINT): 150, (32768, LINE): 1, (None, BLOB): 1}
            assert shown["extents"] == 2 and shown["free_in_a_row"] == 2 * CHUNK
        assert set(ask("s", daemons[0])) == {"h", "other"}


def test_a_heap_that_gave_segments_back(mirrors, fabric):
    """A mirror shows the rest of the heap and has freed the segments, and the next owner finds the
    same."""
    daemons = mirrors(2, fabric)

    def segments(daemon):
        return len(list((daemon.memory / "s").glob("segment-*")))

    with Store("s", mirror_list(daemons), flags=CREATE) as store:
        heap = Heap(store, "h")
        heap.transact([(100, POINT)], roots=[(b"first", POINT)])
        gone = heap.transact([(20 * CHUNK, BLOB)])
        same(settled("s", daemons[1], "h", heap.stat()), heap.stat())
        assert heap.stat().extents == 2 and [segments(daemon) for daemon in daemons] == [4, 4]
        assert heap.trim() == 0
        heap.transact(freed=gone)
        assert heap.trim() == 20 * CHUNK
        for daemon in daemons:
            wait_for(lambda: segments(daemon) == 2, SECONDS, "the memory to go back")
            same(settled("s", daemon, "h", heap.stat()), heap.stat())
    with Store("s", mirror_list(daemons)) as store:
        heap = Heap(store, "h")
        assert heap.stat().extents == heap.stat().objects == 1
        heap.transact([(20 * CHUNK, BLOB)])
        assert heap.stat().extents == 2
        same(settled("s", daemons[0], "h", heap.stat()), heap.stat())


def test_nothing_of_the_objects_is_read(mirrors):
    """In a heap of 64 MiB only the metadata is read, 0.8 % of it."""
    daemons = mirrors(1)
    with Store("s", mirror_list(daemons), flags=CREATE) as store:
        heap = Heap(store, "h", 64 << 20)
        heap.transact([(100, POINT)])
        done = run_command("heap", "s", "--from", daemons[0].address, "--json")
        assert done.status == OK and done.json()["bytes_read"] < 0.009 * heap.stat().size, done
    text = run_command("heap", "s", "h", "--from", daemons[0].address)
    assert text.status == OK and "64.0 MiB in 1 extent\n" in text.out, text
    assert "1 object takes 112 bytes," in text.out and "0 roots" in text.out


def test_it_is_the_heap_of_one_transaction(mirrors, fabric):  # noqa: F811
    """Each transaction allocates or frees a point and a line, so their numbers are equal in any
    consistent state, and their sizes add up."""
    daemons = mirrors(2, fabric)
    halted, faults, count = threading.Event(), [], [0]

    def work(heap):
        pairs = []
        try:
            while not halted.is_set():
                if len(pairs) < 200 and count[0] % 3:
                    pairs.append(heap.transact([(40, POINT), (3000, LINE)]))
                elif pairs:
                    heap.transact(freed=pairs.pop(0))
                count[0] += 1
        except PerseasError as error:
            faults.append(error)

    with Store("s", mirror_list(daemons), flags=CREATE, log_size=64 << 20) as store:
        heap = Heap(store, "h")
        thread = threading.Thread(target=work, args=(heap,))
        thread.start()
        try:
            for number in range(8):
                before = count[0]
                wait_for(lambda: count[0] > before + 20 or faults, SECONDS, "transactions")
                shown = ask("s", daemons[number % 2], "h")["h"]
                told = rows(shown)
                assert told.get((48, POINT), 0) == told.get((3120, LINE), 0), shown
                assert shown["used"] + shown["gaps"] + shown["free"] == shown["size"]
        finally:
            halted.set()
            thread.join(SECONDS)
        assert not faults
        same(settled("s", daemons[0], "h", heap.stat()), heap.stat())


def test_a_damaged_heap_is_named(mirrors):
    """A bit after the last object of a run is set on the mirror, behind the daemon's back."""
    daemon, = mirrors(1)
    with Store("s", daemon.address, flags=CREATE) as store:
        heap = Heap(store, "h")
        heap.transact([(100, POINT)])
        Heap(store, "sound")
    paths = [path for path in (daemon.memory / "s").glob("segment-*")
             if path.read_bytes()[:7] == b"PSHEAP1"]
    path, = [path for path in paths if path.read_bytes()[3 * 4096] == 1]
    with open(path, "r+b") as file:
        file.seek(3 * 4096 + 500)
        file.write(b"\1")
    done = run_command("heap", "s", "--from", daemon.address)
    assert done.status == NO and "heap 'sound'" in done.out, done
    assert "chunk 0 of heap 'h', extent 0, has objects where none can be" in done.err


@pytest.mark.parametrize("words, said", [
    (["h"], "has no heap 'h'"),
    ([], "has no heap"),
    (["odd"], "'odd.meta.0' has no segment of objects"),
    (["false"], "'false.meta.0' is not the metadata of a heap: its size is another"),
    (["like"], "'like.meta.0' of heap 'like' is not the metadata of a heap"),
])
def test_what_is_no_heap_is_named(mirrors, words, said):
    """An application's segments have the names of a heap's segments. Only one with the size of a
    heap's metadata is read."""
    daemons, segments = mirrors(1), {"odd.meta.0": b"x" * 9000, "wide.meta.0": b"x" * (1 << 20)}
    segments["false.meta.0"], segments["false.heap.0"] = b"x" * 20000, b"x" * CHUNK
    segments["long.meta.0"], segments["long.heap.0"] = b"x" * 4 * 4096, b"x" * (CHUNK + 4096)
    if words == ["like"]:
        segments["like.meta.0"], segments["like.heap.0"] = b"x" * 4 * 4096, b"x" * CHUNK
    fill("s", daemons, segments)
    done = run_command("heap", "s", *words, "--from", daemons[0].address)
    assert done.status == NO and said in done.err and done.out == "", done
    done = run_command("heap", "s", *words, "--from", daemons[0].address, "--json")
    assert done.status == NO and said in done.err and done.json()["heaps"] == [], done
    assert done.json()["bytes_read"] == (4 * 4096 if words == ["like"] else 0), done


def test_a_root_that_leads_nowhere_is_named(mirrors):
    """A root's object was freed, and the root was not removed. The figures are shown anyway, and
    the root's name cannot affect the terminal."""
    daemon, = mirrors(1)
    with Store("s", daemon.address, flags=CREATE) as store:
        heap = Heap(store, "h")
        made, = heap.transact([(100, POINT)], roots=[(b"\033[31mred\nall is well", POINT)])
        heap.transact([(40, LINE)], freed=[made])
        said = "root '?[31mred?all is well' of heap 'h' does not lead to an object of type 7\n"
        settled_at = heap.stat()
        wait_for(lambda: rows(ask("s", daemon, "h", status=NO)["h"]) == {(48, LINE): 1}, SECONDS,
                 "the mirror to catch up")
        same(ask("s", daemon, "h", status=NO)["h"], settled_at)
        text = run_command("heap", "s", "--from", daemon.address)
        assert text.status == NO and text.err.endswith(said), text
        assert "1 object takes 48 bytes," in text.out and "1 root\n" in text.out, text


def test_a_mirror_that_is_not_there_is_named(mirrors):
    """No daemon listens there; or the mirror does not have the store."""
    daemon, = mirrors(1)
    assert run_command("heap", "s", "--from", "127.0.0.1:1").status in (PARTLY, FAILURE)
    done = run_command("heap", "s", "--from", daemon.address)
    assert done.status == NO and "'s'" in done.err, done
