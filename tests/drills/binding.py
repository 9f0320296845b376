"""Binds libperseas's C interface for drills: stores that a Python process owns.

Run as a program, it is an owner in its own process, which can be killed, stopped and fenced:

    binding.py STORE LIST COMMAND...

with the commands of `SCRIPT` below. It prints a line after each; "hold" waits forever.
"""
import contextlib
import ctypes
import itertools
import os
import pathlib
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PERSEAS_BUILD", TOP / "build"))

# How long owners, commands and mirrors of drills wait for answers: a busy machine delays them for
# seconds. desk.c has the same value. Drills about a timeout set their own.
ANSWER_MS = 18000
PATIENT = dict(connect_timeout_ms=ANSWER_MS, mirror_timeout_ms=ANSWER_MS,
               commit_timeout_ms=ANSWER_MS, open_timeout_ms=5 * ANSWER_MS)
EMULATED = "PERSEAS_GUEST" in os.environ
# Default options of every Store and Standby. In an emulated machine the ring is small enough to be
# registered in time.
OWN = dict(ring_size=8 << 20, **PATIENT) if EMULATED else dict(PATIENT)

TALL = 20                               # pages of the tower (swell)
READ_FIRST, ON_DEMAND = 0, 1            # Options.recovery
REPLACE = 3                             # RosterChange.kind
CREATE, TAKEOVER, CHECK_OVERLAP, CHECK_WRITES, SALVAGE = 1, 2, 4, 8, 16


class Options(ctypes.Structure):
    """struct perseas_options."""
    _fields_ = [("size", ctypes.c_size_t), ("flags", ctypes.c_uint32), ("acks", ctypes.c_uint32),
                ("log_size", ctypes.c_uint64), ("ring_size", ctypes.c_uint64),
                ("connect_timeout_ms", ctypes.c_uint32), ("commit_timeout_ms", ctypes.c_uint32),
                ("open_timeout_ms", ctypes.c_uint32), ("spin_us", ctypes.c_uint32),
                ("accept_epoch", ctypes.c_uint64), ("accept_seq", ctypes.c_uint64),
                ("resync_rate", ctypes.c_uint64), ("on_event", ctypes.c_void_p),
                ("event_arg", ctypes.c_void_p), ("tls_cert", ctypes.c_char_p),
                ("tls_key", ctypes.c_char_p), ("tls_ca", ctypes.c_char_p),
                ("pace_ms", ctypes.c_uint32), ("tls_crl", ctypes.c_char_p),
                ("recovery", ctypes.c_uint32), ("fetch_rate", ctypes.c_uint64),
                ("mirror_timeout_ms", ctypes.c_uint32), ("order", ctypes.c_uint32),
                ("name", ctypes.c_char_p), ("warm", ctypes.c_uint32),
                ("warm_rate", ctypes.c_uint64), ("flush_within_ms", ctypes.c_uint32),
                ("gather_us", ctypes.c_uint32), ("gather_bytes", ctypes.c_uint32)]


class Stat(ctypes.Structure):
    """struct perseas_stat."""
    _fields_ = [(name, ctypes.c_uint64) for name in ("epoch", "seq", "durable_seq")] + [
        (name, ctypes.c_uint32) for name in ("mirrors", "acks", "live", "in_doubt")] + [
            (name, ctypes.c_uint64) for name in (
                "commits", "aborts", "bytes_sent", "reconnects", "replayed", "dropped",
                "log_laps", "mended_forward", "mended_delta", "mended_whole", "resyncs",
                "resync_bytes", "allocations", "range_bytes", "doubts", "timed", "latency_p50_ns",
                "latency_p99_ns", "latency_p999_ns", "latency_max_ns", "renewals", "paced",
                "paced_ns", "missing", "fetched", "faults", "open", "saved_within",
                "saved_between", "gathered", "groups")]


class RosterChange(ctypes.Structure):
    """struct perseas_roster_change."""
    _fields_ = [("kind", ctypes.c_int), ("address", ctypes.c_char_p), ("with_", ctypes.c_char_p),
                ("acks", ctypes.c_uint32), ("gone", ctypes.c_int)]


class StandbyStat(ctypes.Structure):
    """struct perseas_standby_stat."""
    _fields_ = [("state", ctypes.c_int), ("mirrors", ctypes.c_uint32),
                ("reached", ctypes.c_uint32), ("opens", ctypes.c_uint32),
                ("epoch", ctypes.c_uint64), ("owner", ctypes.c_char * 256),
                ("text", ctypes.c_char * 512), ("warning", ctypes.c_char * 512),
                ("memory", ctypes.c_uint64), ("warm", ctypes.c_uint64)]


class PerseasError(Exception):
    """An error of the library; `name` is PERSEAS_E…"""

    def __init__(self, name, message):
        super().__init__("%s: %s" % (name, message))
        self.name = name


def use_library_timeouts():
    """Uses the library's defaults, for benchmarks, which measure what applications see."""
    if not EMULATED:
        OWN.clear()


def load():
    library = ctypes.CDLL(str(BUILD / "libperseas.so"))
    for name in ("perseas_message", "perseas_error_name", "perseas_report"):
        getattr(library, name).restype = ctypes.c_char_p
    for name in ("perseas_message", "perseas_report", "perseas_close", "perseas_publish",
                 "perseas_flush", "perseas_abort"):
        getattr(library, name).argtypes = [ctypes.c_void_p]
    library.perseas_map.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t,
                                    ctypes.POINTER(ctypes.c_void_p)]
    library.perseas_segment_destroy.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    library.perseas_begin.argtypes = [ctypes.c_void_p, ctypes.c_uint,
                                      ctypes.POINTER(ctypes.c_void_p)]
    library.perseas_set_range.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    library.perseas_commit.argtypes = [ctypes.c_void_p, ctypes.c_uint]
    library.perseas_stat.argtypes = [ctypes.c_void_p, ctypes.POINTER(Stat)]
    library.perseas_wait_whole.argtypes = [ctypes.c_void_p, ctypes.c_int64]
    library.perseas_roster.argtypes = [ctypes.c_void_p, ctypes.POINTER(RosterChange)]
    library.perseas_standby_wait.argtypes = [ctypes.c_void_p, ctypes.c_int64,
                                             ctypes.POINTER(ctypes.c_void_p)]
    library.perseas_standby_stat.argtypes = [ctypes.c_void_p, ctypes.POINTER(StandbyStat)]
    library.perseas_standby_state_name.restype = ctypes.c_char_p
    for name in ("perseas_standby_cancel", "perseas_standby_close", "perseas_standby_fd"):
        getattr(library, name).argtypes = [ctypes.c_void_p]
    return library


class Store:
    """with Store(name, mirrors, flags=CREATE) as store: ... Options have the names of struct
    perseas_options."""
    library = None

    def __init__(self, name, mirrors, standby=None, **options):
        """Opens the store, or if `standby` is given waits until that Standby opens it."""
        if Store.library is None:
            Store.library = load()
        self.segments, self.handle = {}, ctypes.c_void_p()
        given = Options(size=ctypes.sizeof(Options), **{**OWN, **options})
        if standby:
            rc = self.library.perseas_standby_wait(standby.handle, -1, ctypes.byref(self.handle))
        else:
            rc = self.library.perseas_open(name.encode(), mirrors.encode(), ctypes.byref(given),
                                           ctypes.byref(self.handle))
        self._check(rc)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _check(self, rc):
        if rc:
            raise PerseasError(self.library.perseas_error_name(rc).decode(),
                               self.library.perseas_message(self.handle).decode())

    def report(self):
        return self.library.perseas_report(self.handle).decode()

    def map(self, segment, size=0):
        """Maps a segment. Returns its address."""
        address = ctypes.c_void_p()
        self._check(self.library.perseas_map(self.handle, segment.encode(), size,
                                             ctypes.byref(address)))
        self.segments[segment] = address.value
        return address.value

    def map_reserve(self, segment, size, most):
        """Maps a segment with room to grow. Returns its address and its size."""
        address, whole = ctypes.c_void_p(), ctypes.c_size_t()
        self._check(self.library.perseas_map_reserve(
            self.handle, segment.encode(), ctypes.c_size_t(size), ctypes.c_size_t(most),
            ctypes.byref(address), ctypes.byref(whole)))
        self.segments[segment] = address.value
        return address.value, whole.value

    def grow(self, segment, size):
        self._check(self.library.perseas_segment_grow(self.handle, segment.encode(),
                                                      ctypes.c_size_t(size)))

    def publish(self):
        self._check(self.library.perseas_publish(self.handle))

    def read(self, segment, offset, size):
        return ctypes.string_at(self.segments[segment] + offset, size)

    def unmap(self, segment):
        address = ctypes.c_void_p(self.segments.pop(segment))
        self._check(self.library.perseas_unmap(self.handle, address))

    def destroy(self, segment):
        self._check(self.library.perseas_segment_destroy(self.handle, segment.encode()))

    def poke(self, segment, offset, data):
        """Stores bytes outside of a transaction."""
        ctypes.memmove(self.segments[segment] + offset, data, len(data))

    def write(self, segment, offset, data):
        """Stores bytes in one transaction."""
        tx = ctypes.c_void_p()
        self._check(self.library.perseas_begin(self.handle, 0, ctypes.byref(tx)))
        try:
            self._check(self.library.perseas_set_range(tx, self.segments[segment] + offset,
                                                       len(data)))
            self.poke(segment, offset, data)
            rc = self.library.perseas_commit(tx, 0)
        except PerseasError:
            self.library.perseas_abort(tx)
            raise
        if rc and self.library.perseas_error_name(rc) in (b"PERSEAS_EBLOCKED", b"PERSEAS_ETOOBIG"):
            message = PerseasError(self.library.perseas_error_name(rc).decode(),
                                   self.library.perseas_message(self.handle).decode())
            self.library.perseas_abort(tx)
            raise message
        self._check(rc)

    def stat(self):
        figures = Stat()
        self._check(self.library.perseas_stat(self.handle, ctypes.byref(figures)))
        return figures

    def wait_whole(self):
        self._check(self.library.perseas_wait_whole(self.handle, -1))

    def replace(self, old, new):
        """Replaces a mirror in the roster by another."""
        self._check(self.library.perseas_roster(self.handle, ctypes.byref(RosterChange(
            REPLACE, old.encode(), new.encode()))))

    def flush(self):
        self._check(self.library.perseas_flush(self.handle))

    def close(self):
        if self.handle:
            self.library.perseas_close(self.handle)
        self.handle = ctypes.c_void_p()


class Standby:
    """with Standby(store, mirrors) as standby: ... with standby.become_owner() as store: ..."""

    def __init__(self, store, mirrors, **options):
        if Store.library is None:
            Store.library = load()
        self.library, self.handle = Store.library, ctypes.c_void_p()
        self.store, self.mirrors = store, mirrors
        given = Options(size=ctypes.sizeof(Options), **{**OWN, **options})
        self._check(self.library.perseas_standby(store.encode(), mirrors.encode(),
                                                 ctypes.byref(given), ctypes.byref(self.handle)))

    def _check(self, rc):
        if rc:
            raise PerseasError(self.library.perseas_error_name(rc).decode(),
                               self.library.perseas_message(None).decode())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.library.perseas_standby_close(self.handle)

    def become_owner(self):
        """Waits until the store can be opened. Returns the Store."""
        return Store(self.store, self.mirrors, standby=self)

    def wait(self, timeout_ms):
        """Waits for the store and must not get it. Returns the name of the error."""
        handle = ctypes.c_void_p()
        rc = self.library.perseas_standby_wait(self.handle, timeout_ms, ctypes.byref(handle))
        self.library.perseas_close(handle)
        return self.library.perseas_error_name(rc).decode()

    def stat(self):
        figures = StandbyStat()
        self._check(self.library.perseas_standby_stat(self.handle, ctypes.byref(figures)))
        return figures

    def state(self):
        return self.library.perseas_standby_state_name(self.stat().state).decode()


def say(*words):
    """Prints a line with a single write, so that a killed process has printed all of it or
    nothing."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def churn(store, first):
    """Creates a segment and destroys another, repeatedly, until it is killed. Segment gK has K % 5
    + 1 pages, filled with the byte K % 256."""
    for number in itertools.count(int(first)):
        name, size = "g%d" % (number % 3), 4096 * (number % 5 + 1)
        store.map(name, size)
        store.poke(name, 0, bytes([number % 256]) * size)
        store.publish()
        say("made", number)
        store.unmap(name)
        store.destroy(name)
        say("destroyed", number)


def swell(store, first):
    """Grows a segment by a page, and changes the new page and the last byte before it, repeatedly,
    until it is killed. Page K is filled with the byte K % 255 + 1 except for its last byte, which
    is that of page K + 1. After TALL pages the segment is destroyed and created again."""
    if not int(first):
        store.map("tower", 4096)
        store.publish()
    number = max(int(first), 1)
    store.map("tower")
    for number in itertools.count(number):
        if number == TALL:
            store.unmap("tower")
            store.destroy("tower")
            return swell(store, 0)
        store.grow("tower", 4096 * (number + 1))
        say("grown", number)
        store.write("tower", 4096 * number - 1, bytes([number % 255 + 1]) * 4096)
        say("written", number)


def hold(_store):
    """Waits to be killed."""
    sys.stdin.read()


def kept_apart():
    """Returns the number of sockets that a thread has in its own table of descriptors."""
    links = {}
    for task in pathlib.Path("/proc/self/task").iterdir():
        links[task.name] = set()
        for fd in (task / "fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                links[task.name].add(os.readlink(fd))
    common = links[str(os.getpid())]
    return max(len([each for each in mine - common if each.startswith("socket:")])
               for mine in links.values())


def fork(_store, lifelines):
    """Forks a child that has all descriptors and ends with the standard input, once `lifelines`
    sockets are in another thread's table."""
    while kept_apart() < int(lifelines):
        time.sleep(0.01)
    if os.fork() == 0:
        os.read(0, 1)
        os._exit(0)


def pause(_store):
    """Waits for a line of input."""
    say("paused")
    sys.stdin.readline()


SCRIPT = {
    "map": lambda store, name, size: store.map(name, int(size)),
    "poke": lambda store, name, offset, text: store.poke(name, int(offset), text.encode()),
    "fill": lambda store, name, text, size: store.poke(name, 0, text.encode() * int(size)),
    "publish": lambda store: store.publish(),
    "destroy": lambda store, name: store.destroy(name),
    "grow": lambda store, name, size: store.grow(name, int(size)),
    "write": lambda store, name, offset, text: store.write(name, int(offset), text.encode()),
    "read": lambda store, name, offset, size: store.read(name, int(offset), int(size)).decode(),
    "churn": churn,
    "swell": swell,
    "pause": pause,
    "hold": hold,
    "fork": fork,
}


def main():
    """Runs commands, each a name and its arguments joined by commas: map,accounts,4096"""
    name, mirrors, *commands = sys.argv[1:]
    with Store(name, mirrors, flags=CREATE) as store:
        for command in commands:
            verb, *words = command.split(",")
            if verb == "hold":
                say("holding")
            say(verb, SCRIPT[verb](store, *words))


if __name__ == "__main__":
    main()
