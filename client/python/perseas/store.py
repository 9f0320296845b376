"""Stores: perseas.open returns one. A store maps segments and makes transactions, and is closed at
the end of its `with` block. process.py protects open stores from forks and the interpreter's
end.
"""
from __future__ import annotations

import bisect
import html
import sys
import threading
import time
import types
import warnings
import weakref
from typing import Any, Callable, Iterable, TypeVar

from . import figures, memory, options
from ._native import ffi, lib
from .durability import Durability
from .errors import (AddressError, ClosedError, ConflictError, InvalidArgumentError, PerseasError,
                     RangeError, check, told)
from .heap import Heap
from .segment import Segment
from .transaction import Token, Transaction

Result = TypeVar("Result")
OnEvent = Callable[[figures.Event], Any]
# Long waits are split into slices of this length, so that signals are handled in between.
SLICE_SECONDS = 0.1
WHOLE_SECONDS = 5.0
alive: weakref.WeakSet[Store] = weakref.WeakSet()


def sliced(call: Callable[[int], Any], timeout: float | None, late: int) -> int:
    """Calls `call` with a time in ms, again while it returns `late` and the timeout has not passed.
    So signals are handled in between."""
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        left = SLICE_SECONDS if end is None else max(0.0, end - time.monotonic())
        rc = int(call(int(min(left, SLICE_SECONDS) * 1000 + 0.999)))
        if rc != late or (end is not None and time.monotonic() >= end):
            return rc


def listen(handle: Any, on_event: OnEvent) -> None:
    """Runs in the thread that calls on_event; the library's own thread never waits for Python."""
    event = ffi.new("struct perseas_event *")
    while lib.ps_py_event_next(handle, event):
        try:
            on_event(figures.event_of(event))
        except BaseException:           # it is the application's, and others are to come
            kind, error, trace = sys.exc_info()
            assert kind
            threading.excepthook(threading.ExceptHookArgs(
                (kind, error, trace, threading.current_thread())))


class Store:
    """A store that this process owns. Threads may share it; each begins transactions of its own.
    `name` is its name; `tracked` says whether it was opened with tracked=True. Its repr shows its
    state.
    """

    def __init__(self, name: str, on_event: OnEvent | None, given: dict[str, Any]) -> None:
        handle = lib.ps_py_store_new(on_event is not None)
        if not handle:
            raise MemoryError("no memory for a store")
        self._handle = ffi.gc(handle, lib.ps_py_store_free)
        self.name, self.tracked = name, bool(given.get("tracked"))
        self._on_demand = given.get("recovery") == "on demand"
        self._on_event, self._listener = on_event, None  # type: OnEvent | None, Any
        self._lock = threading.RLock()
        self._closing = threading.RLock()                # one thread closes
        self._segments: dict[str, Segment] = {}
        self._memories: dict[int, memory.Memory] = {}    # by their addresses
        self._addresses: list[int] = []
        self._heaps: dict[str, Heap] = {}
        self._durability = Durability(self)
        self._closed, self._is_over, self._foreign = True, True, False
        self._asked: list[memory.Memory] = []            # to be left, of the library
        self._left: list[tuple[memory.Memory, Any]] = []

    def _opened(self) -> Store:
        self._closed = self._is_over = False
        alive.add(self)
        if self._on_event:
            self._listener = threading.Thread(target=listen, args=(self._handle, self._on_event),
                                              name="perseas events", daemon=True)
            self._listener.start()
        return self

    # --- errors ---

    def _tell(self, buffer: Any, size: int, code: Any) -> int:
        return int(lib.ps_py_error(self._handle, buffer, size, code))

    def _check(self, rc: int) -> None:
        if rc:
            check(rc, self._tell)

    def _check_open(self) -> None:
        if self._foreign:
            self._check(lib.PS_PY_FORKED)
        if self._closed:
            raise ClosedError("store '%s' is closed: open it again" % self.name)

    # --- segments ---

    def map(self, name: str, size: int = 0, at: int | None = None, anywhere: bool = False,
            most: int = 0) -> Segment:
        """Maps a segment. A segment that does not exist is created with size bytes of zeros, and
        exists from publish() on. size 0: it must exist. at: map it at this address, wherever the
        store has it recorded. anywhere: map it anywhere if the recorded address is taken. most:
        reserve addresses so that it can grow to so many bytes (grow); an existing segment is then
        mapped as it is, whatever size says. A segment that is mapped already is returned again.
        Errors: those of perseas_map, perseas_map_at and perseas_map_reserve; InvalidArgumentError
        (also: most with at or anywhere).
        """
        number, wanted = options.whole(size, "size"), options.whole(at or 0, "at")
        text = options.encoded(name, "name")
        address, moved = ffi.new("void **"), ffi.new("ptrdiff_t *")
        room, elsewhere = options.whole(most, "most"), bool(at) or anywhere
        if room and elsewhere:
            raise InvalidArgumentError("addresses to grow into are kept where the segment is "
                                       "recorded: give most without at and anywhere")

        def call() -> int:
            if room:
                return int(lib.ps_py_map_reserve(self._handle, text, number, room, address))
            return int(lib.ps_py_map(self._handle, text, number, ffi.cast("void *", wanted),
                                     elsewhere, address, moved))

        with self._lock:
            rc = call()
            if rc == lib.PERSEAS_EADDRESS and memory.left_behind and not elsewhere:
                failed = told(rc, self._tell)
                self._take_up(lambda found: found == name)
                rc = call()
                if rc == lib.PERSEAS_EADDRESS:
                    raise AddressError("%s. If it is an array of a store that was closed here, "
                                       "delete that" % failed.sentence)
            self._check(rc)
            return self._remember(name, address[0], moved[0])

    def _take_up(self, is_wanted: Callable[[str], bool]) -> None:
        """Maps segments of these names over memory that views of this store kept when it was closed
        before: the views show the segment again. Memory without views is unmapped."""
        memory.viewed(list(memory.left_behind))
        sizes = {info.name: info.size for info in self.segments()}
        for each in list(memory.left_behind):
            buffer = each.buffer() if each.is_viewed() else None
            if buffer is None or each.store != self.name or not is_wanted(each.name) \
                    or sizes.get(each.name) != each.size:
                continue
            # From here on the views do not unmap it, even if a signal interrupts.
            each.is_retained = False
            if lib.ps_py_map_over(self._handle, each.name.encode(), each.pointer):
                each.is_retained = True
                continue
            memory.left_behind.discard(each)
            self._memories[each.address] = each
            bisect.insort(self._addresses, each.address)

    def _remember(self, name: str, address: Any, moved: int) -> Segment:
        found = self._segments.get(name)
        if found is None:
            mapped = self._add_memory(self.segment(name), int(ffi.cast("uintptr_t", address)))
            found = self._segments[name] = Segment(self, mapped, moved)
        return found

    def _add_memory(self, info: figures.SegmentInfo, address: int) -> memory.Memory:
        known = self._memories.get(address)
        if known is None:
            known = self._memories[address] = memory.Memory(self.name, info.name, address,
                                                                    info.size)
            bisect.insort(self._addresses, address)
        return known

    def _buffer_at(self, address: int, size: int) -> tuple[Any, int]:
        """Returns the buffer that contains the range, and the range's offset in it. Errors:
        RangeError (no memory of the store contains it)."""
        with self._lock:
            self._check_open()
            for is_last in (False, True):
                place = bisect.bisect_right(self._addresses, address) - 1
                found = self._memories[self._addresses[place]] if place >= 0 else None
                if found and address + size <= found.address + found.size:
                    return found.buffer(), address - found.address
                if not is_last:
                    self._learn_heaps()
        raise RangeError("this is no memory of store '%s' but a copy, or another object: take a "
                         "view of one of its segments" % self.name)

    def _learn_heaps(self) -> None:
        """Records segments that heaps have mapped."""
        for heap in self._heaps.values():
            for info in self.segments():
                if info.mapped and info.name.startswith(heap.name + ".heap."):
                    here = ffi.new("void **")
                    self._check(lib.ps_py_here(self._handle, ffi.cast("void *", info.address),
                                               here))
                    self._add_memory(info, int(ffi.cast("uintptr_t", here[0])))

    def _forget_memory(self, address: int) -> None:
        if self._memories.pop(address, None):
            self._addresses.remove(address)

    def publish(self) -> None:
        """Publishes all new segments with their present contents, as one transaction. Errors: those
        of perseas_publish."""
        with self._lock:
            rc = lib.ps_py_publish(self._handle)
            if rc in (0, lib.PERSEAS_EINDOUBT):
                for segment in self._segments.values():
                    segment._was_published()
            self._check(rc)

    def grow(self, segment: Segment | str, size: int) -> None:
        """Makes a published, mapped segment grow to size bytes at its address; new bytes are zeros.
        Existing views keep their size. Errors: RangeError (the segment is not mapped), those of
        perseas_segment_grow."""
        name, wanted = segment if isinstance(segment, str) else segment.name, options.whole(
            size, "size")
        with self._lock:
            self._check_open()
            mapped = self._segments.get(name)
            if mapped is None:
                raise RangeError("segment '%s' is not mapped" % name)
            rc = lib.ps_py_grow(self._handle, options.encoded(name, "name"), wanted)
            if rc in (0, lib.PERSEAS_EINDOUBT):
                mapped._memory.size = mapped.size = wanted
            self._check(rc)

    def unmap(self, segment: Segment | str) -> None:
        """Unmaps a segment, which stays in the store. Errors: BufferError (it has views), those of
        perseas_unmap."""
        name = segment if isinstance(segment, str) else segment.name
        with self._lock:
            self._check_open()
            mapped = self._segments.get(name)
            if mapped is None:
                raise RangeError("segment '%s' is not mapped" % name)
            mapped._was_published()
            if memory.viewed([mapped._memory]):
                raise BufferError("segment '%s' has views, which would show no memory any more: "
                                  "delete arrays and memoryviews of it first" % name)
            self._check(lib.ps_py_unmap(self._handle, mapped._memory.pointer))
            del self._segments[name]
            self._forget_memory(mapped.address)
            self._asked = [each for each in self._asked if each is not mapped._memory]

    def destroy(self, name: str) -> None:
        """Destroys a published segment that is not mapped. Errors: those of
        perseas_segment_destroy."""
        self._check(lib.ps_py_destroy(self._handle, options.encoded(name, "name")))

    def segment(self, name: str) -> figures.SegmentInfo:
        """Returns the store's description of one segment. Errors: NoSegmentError, ClosedError,
        ForkError."""
        info = ffi.new("struct perseas_segment_info *")
        self._check(lib.ps_py_segment(self._handle, options.encoded(name, "name"), info))
        return figures.segment_of(info)

    def segments(self) -> list[figures.SegmentInfo]:
        """Returns all segments that exist or are mapped. Errors: ClosedError, ForkError."""
        info = ffi.new("struct perseas_segment_info *")
        found: list[figures.SegmentInfo] = []
        while True:
            rc = lib.ps_py_segment_at(self._handle, len(found), info)
            if rc == lib.PERSEAS_ENOSEGMENT:
                return found
            self._check(rc)
            found.append(figures.segment_of(info))

    def wait_whole(self, timeout: float | None = None) -> None:
        """Waits until all mapped memory is present (recovery="on demand"), for timeout seconds at
        most. Errors: UnreachableError (timed out), FencedError."""
        self._check(sliced(lambda ms: lib.ps_py_wait_whole(self._handle, ms), timeout,
                           lib.PERSEAS_EUNREACHABLE))

    def prefetch(self, view: Any) -> None:
        """Fetches this memory before memory that no thread waits for. Does not wait. Errors:
        TypeError, ValueError (not a view, or not contiguous), ClosedError, ForkError."""
        target = memory.Target(view)
        self._check(lib.ps_py_prefetch(self._handle, ffi.cast("void *", target.address),
                                       target.size))

    # --- transactions ---

    def transaction(self, serial: bool = False, track: bool = False, nowait: bool = False,
                    noblock: bool = False) -> Transaction:
        """Returns a transaction for a `with` block. serial: it is serialized with all other serial
        transactions, of any thread. track: its changes need not be declared (tracked=True). nowait:
        its commit returns once it is on its way, and its token tells when W mirrors hold it.
        noblock: with nowait, raises AgainError instead of waiting for space. Errors, when it
        begins: those of perseas_begin.
        """
        begins = (lib.PERSEAS_SERIAL if serial else 0) | (lib.PERSEAS_TRACK if track else 0)
        commits = (lib.PERSEAS_NOWAIT if nowait else 0) | (lib.PERSEAS_NOBLOCK if noblock else 0)
        return Transaction(self, begins, commits)

    def begin(self, **modes: bool) -> Transaction:
        """Begins a transaction and returns it. It is aborted if it is garbage-collected before it
        ends."""
        return self.transaction(**modes).begin()

    def transact(self, work: Callable[[Transaction], Result], serial: bool = False,
                 track: bool = False, nowait: bool = False) -> Result:
        """Calls work(tx), commits, and returns work's result. ConflictError rolls back and calls
        work again, in a transaction that keeps its age and so gets its locks in the end: work may
        be called several times. A conflict that does not concern a lock is retried 16 times within
        65 ms and then raised (perseas_retry_conflict). Any other exception aborts. Errors: those of
        work, begin and commit."""
        tx, tries = self.transaction(serial, track, nowait), ffi.new("unsigned *")
        try:
            tx._begin_patiently(tries)
            while True:
                try:
                    result = work(tx)
                    tx.commit()
                    return result
                except ConflictError:
                    if not tx.is_open or not tx._retry_conflict(tries):
                        raise
        finally:
            tx._abort_if_open()

    def wait(self, token: Token, timeout: float | None = None) -> None:
        """Waits until W mirrors hold the token's transaction, for timeout seconds at most. Errors:
        those of perseas_wait."""
        asked = ffi.new("struct perseas_token *", (token.epoch, token.seq))
        self._check(sliced(lambda ms: lib.ps_py_wait(self._handle, asked, ms), timeout,
                           lib.PERSEAS_ETIMEOUT))

    async def durable(self, token: Token) -> Token:
        """Waits in asyncio until W mirrors hold the token's transaction, without a thread.
        asyncio.timeout limits the wait. Errors: those of perseas_wait, FencedError, ClosedError
        (the store was closed in the meantime)."""
        return await self._durability.durable(token)

    def flush(self) -> None:
        """Waits until W mirrors hold every commit, for commit_timeout_ms at most. Errors: those of
        perseas_flush."""
        self._check(lib.ps_py_flush(self._handle))

    def confirm(self) -> None:
        """Checks with the mirrors, within commit_timeout_ms, that this process still owns the
        store. Call it between reading and answering. Errors: those of perseas_confirm."""
        self._check(lib.ps_py_confirm(self._handle))

    def posted(self) -> Token:
        """Returns the token of the last commit of any thread. Errors: ClosedError, ForkError."""
        token = ffi.new("struct perseas_token *")
        self._check(lib.ps_py_posted(self._handle, token))
        return Token(self, token.epoch, token.seq)

    def copy_committed(self, *views: Any) -> tuple[list[Any], Token]:
        """Copies memory without uncommitted changes, all views as of one commit. Returns a copy for
        each view (a numpy array for an array, else a bytearray) and the token of the last
        transaction in the copies. Commits wait in the meantime. Errors: those of
        perseas_copy_committed; TypeError, ValueError (not a view, or not contiguous)."""
        targets = [memory.Target(view) for view in views]
        copies, token = [each.empty_copy() for each in targets], ffi.new("struct perseas_token *")
        pieces = ffi.new("struct perseas_piece[]", len(views) or 1)
        held = [ffi.from_buffer("char[]", each) for each in copies]
        for piece, target, into in zip(pieces, targets, held):
            setattr(piece, "from", ffi.cast("void *", target.address))
            piece.len, piece.to = target.size, into
        self._check(lib.ps_py_copy_committed(self._handle, pieces, len(views), token))
        return copies, Token(self, token.epoch, token.seq)

    def here(self, recorded: int) -> int | None:
        """Returns the address in this process of the byte that the store has recorded at this
        address, or None if no mapped segment contains it. For pointers stored in segments that are
        mapped elsewhere (map, at= and anywhere=)."""
        found = ffi.new("void **")
        rc = lib.ps_py_here(self._handle, ffi.cast("void *", recorded), found)
        return self._address(rc, found)

    def recorded(self, here: int) -> int | None:
        """Returns the recorded address of the byte at this address, or None; the reverse of
        here()."""
        found = ffi.new("void **")
        rc = lib.ps_py_recorded(self._handle, ffi.cast("void *", here), found)
        return self._address(rc, found)

    def _address(self, rc: int, found: Any) -> int | None:
        if rc == lib.PERSEAS_ERANGE:
            return None
        self._check(rc)
        return int(ffi.cast("uintptr_t", found[0]))

    # --- heaps ---

    def heap(self, name: str, create: bool = False, moved: bool = False, first: int = 0,
             most: int = 0) -> Heap:
        """Opens a heap. create: create it if the store has none of that name. first: bytes for
        objects at first. most: bytes that it may grow to. 0 for both: the default. moved: accept
        segments at other addresses than recorded. Errors: those of perseas_heap_open."""
        with self._lock:
            self._check_open()
            if memory.left_behind and not moved:
                self._take_up(lambda found: found.startswith(name + ".heap."))
            heap = Heap(self, name, create, moved, first, most)
            return self._heaps.setdefault(name, heap)

    # --- what it is like ---

    def stat(self) -> figures.Stat:
        """Returns statistics since the store was opened. Errors: ClosedError, ForkError."""
        stat = ffi.new("struct perseas_stat *")
        self._check(lib.ps_py_stat(self._handle, stat))
        return figures.filled(figures.Stat, stat)

    def mirrors(self) -> list[figures.MirrorStat]:
        """Returns the status of each mirror. Errors: ClosedError, ForkError."""
        stat = ffi.new("struct perseas_mirror_stat *")
        found: list[figures.MirrorStat] = []
        for index in range(self.stat().mirrors):
            self._check(lib.ps_py_mirror_stat(self._handle, index, stat))
            found.append(figures.mirror_of(stat))
        return found

    def transactions(self) -> list[figures.OpenTransaction]:
        """Returns the open transactions of all threads, the oldest first. Errors: ClosedError,
        ForkError."""
        count, room = ffi.new("size_t *"), 0
        while True:
            rows = ffi.new("struct perseas_transaction[]", room or 1)
            self._check(lib.ps_py_open_transactions(self._handle, rows, room, count))
            if count[0] <= room:
                return [figures.transaction_of(rows[index]) for index in range(count[0])]
            room = count[0]

    def latency(self) -> figures.Latency:
        """Returns the durations of commits since the store was opened. Errors: ClosedError,
        ForkError."""
        latency = ffi.new("struct perseas_latency *")
        self._check(lib.ps_py_latency(self._handle, latency))
        return figures.Latency(latency)

    def report(self) -> str:
        """Returns what the open found on each mirror, and what it repaired."""
        text = ffi.gc(ffi.new("struct ps_py_bytes *"), lib.ps_py_bytes_free)
        self._check(lib.ps_py_report(self._handle, text))
        return bytes(ffi.buffer(text.at, text.size)).decode(errors="replace")

    def change_roster(self, add: str = "", remove: str = "", acks: int = 0, gone: bool = False,
                      cancel: bool = False) -> None:
        """Changes the store's roster while transactions continue: `add` joins, `remove` leaves,
        with both one replaces the other. acks: W afterwards; 0: a majority if W is one now or no
        longer fits, else unchanged. gone: the leaving mirror never comes back. cancel: cancels the
        change that another thread waits for. An event "roster" tells the numbers of mirrors and W
        before and after. Errors: those of perseas_roster."""
        change = ffi.new("struct perseas_roster_change *")
        texts = [ffi.new("char[]", options.encoded(text, "an address")) for text in (remove, add)]
        change.kind = (lib.PERSEAS_ROSTER_CANCEL if cancel else
                       lib.PERSEAS_ROSTER_REPLACE if add and remove else
                       lib.PERSEAS_ROSTER_ADD if add else lib.PERSEAS_ROSTER_REMOVE)
        if remove:
            change.address = texts[0]
        if add:
            setattr(change, "with", texts[1])
        change.acks, change.gone = options.whole(acks, "acks", 32), gone
        self._check(lib.ps_py_roster(self._handle, change))

    def __repr__(self) -> str:
        if self._foreign:
            return "<perseas.Store '%s': of the parent process>" % self.name
        try:
            stat = self.stat()
        except ClosedError:
            return "<perseas.Store '%s': closed>" % self.name
        except PerseasError as error:
            return "<perseas.Store '%s': %s>" % (self.name, error)
        return "<perseas.Store '%s': epoch %d, transaction %d, %d of %d mirrors live, W = %d%s>" % (
            self.name, stat.epoch, stat.seq, stat.live, stat.mirrors, stat.acks,
            ", a commit is in doubt" if stat.in_doubt else "")

    def _repr_html_(self) -> str:
        """Shows the store in Jupyter."""
        rows = ""
        if not self._closed and not self._foreign:
            rows = "".join("<tr><td>%s</td><td>%s</td><td>%s</td><td>%d</td><td>%s</td></tr>" % (
                html.escape(each.address), each.fabric, each.state, each.seq,
                html.escape(each.trouble)) for each in self.mirrors())
        return "<p>%s</p><table><tr><th>mirror</th><th>fabric</th><th>state</th><th>transaction" \
            "</th><th>trouble</th></tr>%s</table>" % (html.escape(repr(self)[1:-1]), rows)

    # --- the end ---

    def close(self) -> None:
        """Aborts the open transactions of all threads, and closes the store. Remaining arrays and
        memoryviews stay valid and show the last contents; mirrors no longer learn of writes to
        them. A second call does nothing. Errors: BufferError (with recovery="on demand", memory
        that is still missing has views: the store stays open); for commits with nowait=True:
        InDoubtError, FencedError.
        """
        with self._closing:
            with self._lock:
                if self._is_over or self._foreign:
                    self._closed = True
                    return
                if not self._closed:    # else a signal ended the close before this one
                    self._leave_views()
                self._closed = True
            self._durability.closing()
            rc = lib.ps_py_close(self._handle)
            failed = told(rc, None) if rc else None
            self._is_over = True
            self._left.clear()          # what nobody else has a view of goes now
        alive.discard(self)
        self._durability.closed()
        if self._listener and self._listener is not threading.current_thread():
            self._listener.join()
        if failed:
            raise failed

    def _leave_views(self) -> None:
        """Makes the library keep memory mapped that has views. The store holds buffers of it until
        it is closed, so that nothing unmaps it before, even if a signal interrupts this and it is
        done again."""
        wanted = [each for each in self._memories.values() if each in self._asked]
        wanted += [each for each in memory.viewed(list(self._memories.values()))
                   if each not in self._asked]
        for each in wanted:
            rc = lib.ps_py_retain(self._handle, each.pointer)
            if rc == lib.PERSEAS_EAGAIN:
                sliced(lambda ms: lib.ps_py_wait_whole(self._handle, ms), WHOLE_SECONDS,
                       lib.PERSEAS_EUNREACHABLE)
                rc = lib.ps_py_retain(self._handle, each.pointer)
            if rc == lib.PERSEAS_EAGAIN:
                raise BufferError("%s; or delete arrays and memoryviews of it, and close then"
                                  % told(rc, self._tell).sentence)
            self._check(rc)
            self._asked.append(each)
        self._left += [(each, each.buffer()) for each in wanted]
        for each, _ in self._left:
            each.leave()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: types.TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_closed", True) or self._foreign:
            return
        warnings.warn("%r was not closed" % self.name, ResourceWarning, source=self)
        try:
            self.close()
        except (PerseasError, BufferError):
            pass


def open(store: str, mirrors: str | Iterable[str], *, on_event: OnEvent | None = None,
         **given: Any) -> Store:
    """Opens a store as its only owner. mirrors: addresses, in one text separated by commas, or
    several texts. on_event: a function that is called for each figures.Event, in a thread of the
    package; it may do anything with the store. Options: perseas.Options, by their names. Errors:
    those of perseas_open; TypeError (unknown option).
    """
    made, _keeps = options.made(given)
    opened = Store(store, on_event, given)
    check(lib.ps_py_open(opened._handle, options.encoded(store, "store"),
                         options.encoded(options.listed(mirrors), "mirrors"), made), None)
    return opened._opened()


def create(store: str, mirrors: str | Iterable[str], **given: Any) -> None:
    """Creates a store on every mirror of the list, and does not open it. Errors: those of
    perseas_create; TypeError (unknown option)."""
    made, _keeps = options.made(given)
    check(lib.perseas_create(options.encoded(store, "store"),
                             options.encoded(options.listed(mirrors), "mirrors"), made), None)
