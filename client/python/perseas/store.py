"""Stores: perseas.open gives one. It maps segments, makes transactions, and is closed at the end of
its `with` block. process.py sees to what Python does to open stores without asking.
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
# What waits is cut into pieces of this, so that signals are handled in between.
SLICE_SECONDS = 0.1
WHOLE_SECONDS = 5.0
alive: weakref.WeakSet[Store] = weakref.WeakSet()


def sliced(call: Callable[[int], Any], timeout: float | None, late: int) -> int:
    """Calls with a time in ms, again and again while it returns `late` and there is time."""
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        left = SLICE_SECONDS if end is None else max(0.0, end - time.monotonic())
        rc = int(call(int(min(left, SLICE_SECONDS) * 1000 + 0.999)))
        if rc != late or (end is not None and time.monotonic() >= end):
            return rc


def listen(handle: Any, on_event: OnEvent) -> None:
    """The thread that calls on_event; the library's own thread never waits for Python."""
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

    name; tracked: it was opened so. Its repr says how it is.
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
        """Maps a segment; one that does not exist is made, with size bytes of zeros, and exists
        from publish() on. size 0: it must exist. at: at this address, wherever the store has it
        recorded; anywhere: where there is room, if the recorded address is taken. most: keeps
        addresses for it to grow to so many bytes (grow); one that exists is mapped as it is then,
        whatever size says. One that is mapped already is given again.

        Errors: those of perseas_map, perseas_map_at and perseas_map_reserve; InvalidArgumentError
        (also: most, with at or anywhere).
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
        """Maps segments of these names where views of this store, closed before, have left memory:
        they show the segment again. What nobody can reach is unmapped."""
        memory.viewed(list(memory.left_behind))
        sizes = {info.name: info.size for info in self.segments()}
        for each in list(memory.left_behind):
            buffer = each.buffer() if each.is_viewed() else None
            if buffer is None or each.store != self.name or not is_wanted(each.name) \
                    or sizes.get(each.name) != each.size:
                continue
            # From here on the views do not unmap it, whatever comes in between.
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
        """The buffer that the range is in, and its offset there. RangeError: none."""
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
        """Heaps map segments by themselves."""
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
        """Has the segments that are new exist, with the contents that they have now, as one
        transaction. Errors: those of perseas_publish."""
        with self._lock:
            rc = lib.ps_py_publish(self._handle)
            if rc in (0, lib.PERSEAS_EINDOUBT):
                for segment in self._segments.values():
                    segment._was_published()
            self._check(rc)

    def grow(self, segment: Segment | str, size: int) -> None:
        """Makes a segment larger, which is published and mapped: it has size bytes then, where it
        is, and the new ones are zeros. Views that exist keep their size. Errors: RangeError (it is
        not mapped), those of perseas_segment_grow."""
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
        """Unmaps it; it stays in the store. Errors: BufferError (somebody has a view of it), those
        of perseas_unmap."""
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
        """Destroys a segment that is published, and not mapped. Errors: those of
        perseas_segment_destroy."""
        self._check(lib.ps_py_destroy(self._handle, options.encoded(name, "name")))

    def segment(self, name: str) -> figures.SegmentInfo:
        """What the store knows of one segment. Errors: NoSegmentError, ClosedError, ForkError."""
        info = ffi.new("struct perseas_segment_info *")
        self._check(lib.ps_py_segment(self._handle, options.encoded(name, "name"), info))
        return figures.segment_of(info)

    def segments(self) -> list[figures.SegmentInfo]:
        """All that the store has, or that are mapped. Errors: ClosedError, ForkError."""
        info = ffi.new("struct perseas_segment_info *")
        found: list[figures.SegmentInfo] = []
        while True:
            rc = lib.ps_py_segment_at(self._handle, len(found), info)
            if rc == lib.PERSEAS_ENOSEGMENT:
                return found
            self._check(rc)
            found.append(figures.segment_of(info))

    def wait_whole(self, timeout: float | None = None) -> None:
        """Waits until all memory that is mapped is here (recovery="on demand"), for timeout
        seconds at most. Errors: UnreachableError (not in time), FencedError."""
        self._check(sliced(lambda ms: lib.ps_py_wait_whole(self._handle, ms), timeout,
                           lib.PERSEAS_EUNREACHABLE))

    def prefetch(self, view: Any) -> None:
        """Has this memory fetched before what nobody waits for, and does not wait. Errors:
        TypeError, ValueError (it is no view, or not contiguous), ClosedError, ForkError."""
        target = memory.Target(view)
        self._check(lib.ps_py_prefetch(self._handle, ffi.cast("void *", target.address),
                                       target.size))

    # --- transactions ---

    def transaction(self, serial: bool = False, track: bool = False, nowait: bool = False,
                    noblock: bool = False) -> Transaction:
        """A transaction, for a `with` block. serial: one after another with all of this kind, by
        any thread; track: what it changes need not be declared (tracked=True); nowait: its commit
        returns when it is on its way, and its token says when W mirrors hold it; noblock: with
        nowait, AgainError instead of waiting for room.

        Errors, when it begins: those of perseas_begin.
        """
        begins = (lib.PERSEAS_SERIAL if serial else 0) | (lib.PERSEAS_TRACK if track else 0)
        commits = (lib.PERSEAS_NOWAIT if nowait else 0) | (lib.PERSEAS_NOBLOCK if noblock else 0)
        return Transaction(self, begins, commits)

    def begin(self, **modes: bool) -> Transaction:
        """The same, begun. If nobody ends it, it is aborted when it is collected."""
        return self.transaction(**modes).begin()

    def transact(self, work: Callable[[Transaction], Result], serial: bool = False,
                 track: bool = False, nowait: bool = False) -> Result:
        """Calls work(tx) and commits; the result is that of work. After ConflictError it is taken
        back and done again, as old as it was; so work may be called several times, and gets its
        locks in the end. A conflict that is not about a lock is tried 16 times within 65 ms, and
        raised then (perseas_retry_conflict). Another exception aborts. Errors: those of work, begin
        and commit."""
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
            tx._take_back()

    def wait(self, token: Token, timeout: float | None = None) -> None:
        """Waits until W mirrors hold the transaction, for timeout seconds at most. Errors: those
        of perseas_wait."""
        asked = ffi.new("struct perseas_token *", (token.epoch, token.seq))
        self._check(sliced(lambda ms: lib.ps_py_wait(self._handle, asked, ms), timeout,
                           lib.PERSEAS_ETIMEOUT))

    async def durable(self, token: Token) -> Token:
        """The same in asyncio, without a thread. asyncio.timeout bounds it. Errors: those of
        perseas_wait, FencedError, ClosedError (the store was closed meanwhile)."""
        return await self._durability.durable(token)

    def flush(self) -> None:
        """Waits until W mirrors hold every commit, commit_timeout_ms at most. Errors: those of
        perseas_flush."""
        self._check(lib.ps_py_flush(self._handle))

    def confirm(self) -> None:
        """Asks the mirrors whether this process still owns the store, commit_timeout_ms at most:
        read, confirm, and answer. Errors: those of perseas_confirm."""
        self._check(lib.ps_py_confirm(self._handle))

    def posted(self) -> Token:
        """The token of the last commit of any thread. Errors: ClosedError, ForkError."""
        token = ffi.new("struct perseas_token *")
        self._check(lib.ps_py_posted(self._handle, token))
        return Token(self, token.epoch, token.seq)

    def copy_committed(self, *views: Any) -> tuple[list[Any], Token]:
        """Copies memory without what is not committed: of each view a copy, a numpy array for an
        array and a bytearray for others, all as of one moment; and the token of the last
        transaction that they have. Commits wait meanwhile. Errors: those of
        perseas_copy_committed; TypeError, ValueError (no view, or none that is contiguous)."""
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
        """The address in this process of the byte that the store has recorded at this address;
        None: it is in no mapped segment. For pointers that are kept in segments that are mapped
        elsewhere (map, at= and anywhere=)."""
        found = ffi.new("void **")
        rc = lib.ps_py_here(self._handle, ffi.cast("void *", recorded), found)
        return self._address(rc, found)

    def recorded(self, here: int) -> int | None:
        """The reverse: the recorded address of the byte that is at this address."""
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
        """Opens a heap. create: make it where there is none; first: bytes for objects to begin
        with; most: up to which it grows; 0: the default. moved: also where a segment of it is not
        where it is recorded. Errors: those of perseas_heap_open."""
        with self._lock:
            self._check_open()
            if memory.left_behind and not moved:
                self._take_up(lambda found: found.startswith(name + ".heap."))
            heap = Heap(self, name, create, moved, first, most)
            return self._heaps.setdefault(name, heap)

    # --- what it is like ---

    def stat(self) -> figures.Stat:
        """What was counted since it was opened. Errors: ClosedError, ForkError."""
        stat = ffi.new("struct perseas_stat *")
        self._check(lib.ps_py_stat(self._handle, stat))
        return figures.filled(figures.Stat, stat)

    def mirrors(self) -> list[figures.MirrorStat]:
        """How each of its mirrors is. Errors: ClosedError, ForkError."""
        stat = ffi.new("struct perseas_mirror_stat *")
        found: list[figures.MirrorStat] = []
        for index in range(self.stat().mirrors):
            self._check(lib.ps_py_mirror_stat(self._handle, index, stat))
            found.append(figures.mirror_of(stat))
        return found

    def transactions(self) -> list[figures.OpenTransaction]:
        """Those that are open, of any thread, the oldest first. Errors: ClosedError, ForkError."""
        count, room = ffi.new("size_t *"), 0
        while True:
            rows = ffi.new("struct perseas_transaction[]", room or 1)
            self._check(lib.ps_py_open_transactions(self._handle, rows, room, count))
            if count[0] <= room:
                return [figures.transaction_of(rows[index]) for index in range(count[0])]
            room = count[0]

    def latency(self) -> figures.Latency:
        """How long commits took since it was opened. Errors: ClosedError, ForkError."""
        latency = ffi.new("struct perseas_latency *")
        self._check(lib.ps_py_latency(self._handle, latency))
        return figures.Latency(latency)

    def report(self) -> str:
        """What the open found on each mirror, and what it mended."""
        text = ffi.gc(ffi.new("struct ps_py_bytes *"), lib.ps_py_bytes_free)
        self._check(lib.ps_py_report(self._handle, text))
        return bytes(ffi.buffer(text.at, text.size)).decode(errors="replace")

    def change_roster(self, add: str = "", remove: str = "", acks: int = 0, gone: bool = False,
                      cancel: bool = False) -> None:
        """Changes which mirrors the store has, while transactions go on: add joins, remove leaves,
        both: one replaces the other. acks: W afterwards; 0: a majority where W is a majority now or
        no longer fits, else as it is. gone: the one that leaves never comes back. cancel: takes
        back the change that another thread waits for. Errors: those of perseas_roster."""
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
        """For Jupyter."""
        rows = ""
        if not self._closed and not self._foreign:
            rows = "".join("<tr><td>%s</td><td>%s</td><td>%s</td><td>%d</td><td>%s</td></tr>" % (
                html.escape(each.address), each.fabric, each.state, each.seq,
                html.escape(each.trouble)) for each in self.mirrors())
        return "<p>%s</p><table><tr><th>mirror</th><th>fabric</th><th>state</th><th>transaction" \
            "</th><th>trouble</th></tr>%s</table>" % (html.escape(repr(self)[1:-1]), rows)

    # --- the end ---

    def close(self) -> None:
        """Takes back the transactions that are open, in any thread, and closes. Arrays and
        memoryviews that are left stay valid, and show what was there last; nobody else learns what
        is written to them then. A second call does nothing.

        Errors: BufferError (there are views of memory that is not here yet, recovery="on demand":
        the store stays open); of what was committed with nowait=True: InDoubtError, FencedError.
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
        """Has the library leave what somebody looks at. The store keeps buffers of it until it is
        closed, so that nobody unmaps it before, also where this is interrupted and done again."""
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
    """Opens a store, as its only owner. mirrors: addresses, in one text with commas or several.

    on_event: a function that is called for each figures.Event, in a thread of the package, which
    may do anything with the store. Options: perseas.Options, by their names.

    Errors: those of perseas_open; TypeError (no such option).
    """
    made, _keeps = options.made(given)
    opened = Store(store, on_event, given)
    check(lib.ps_py_open(opened._handle, options.encoded(store, "store"),
                         options.encoded(options.listed(mirrors), "mirrors"), made), None)
    return opened._opened()


def create(store: str, mirrors: str | Iterable[str], **given: Any) -> None:
    """Makes a store on every mirror of the list, and does not open it. Errors: those of
    perseas_create; TypeError (no such option)."""
    made, _keeps = options.made(given)
    check(lib.perseas_create(options.encoded(store, "store"),
                             options.encoded(options.listed(mirrors), "mirrors"), made), None)
