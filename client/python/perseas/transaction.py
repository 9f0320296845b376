"""Transactions: what they may change, and how they end. Store.transaction makes them.

A transaction belongs to the thread that began it. Whether it is open is kept by native.c, together
with the call that ended it: so a KeyboardInterrupt, which may come between any two instructions
here, finds it open or ended, and nothing in between.
"""
from __future__ import annotations

import hashlib
import struct
import types
from typing import TYPE_CHECKING, Any, Generator, TypeVar

from . import memory
from ._native import ffi, lib
from .errors import AgainError, InvalidArgumentError, RangeError, check
from .options import whole

if TYPE_CHECKING:
    from .segment import Segment
    from .store import Store

View = TypeVar("View")


class Token:
    """Names a transaction that was committed: await it, or give it to Store.wait. Two are equal if
    they name the same."""
    __slots__ = ("epoch", "seq", "_store")

    def __init__(self, store: Store, epoch: int, seq: int) -> None:
        self._store, self.epoch, self.seq = store, epoch, seq

    def wait(self, timeout: float | None = None) -> None:
        """Waits until W mirrors hold it, for timeout seconds at most. Errors: those of
        Store.wait."""
        self._store.wait(self, timeout)

    def __await__(self) -> Generator[Any, None, Token]:
        """Until W mirrors hold it (Store.durable)."""
        return self._store.durable(self).__await__()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Token) and (self.epoch, self.seq) == (other.epoch, other.seq)

    def __hash__(self) -> int:
        return hash((self.epoch, self.seq))

    def __repr__(self) -> str:
        return "Token(epoch=%d, seq=%d)" % (self.epoch, self.seq)


class Savepoint:
    """Where a transaction was. As a context manager it takes back what an exception interrupts."""

    def __init__(self, tx: Transaction, number: int) -> None:
        self._tx, self.number = tx, number

    def rollback(self) -> None:
        """Gives all that was declared since what it held then. Errors: those of
        perseas_rollback_to."""
        self._tx._check(lib.ps_py_rollback_to(self._tx._tx, self.number))

    def __enter__(self) -> Savepoint:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        if kind is not None and self._tx.is_open:
            self.rollback()


def lock_key(key: int | str | bytes) -> int:
    """The number that a lock goes by: of a text, its first 64 bits of BLAKE2b. Two texts with the
    same number only wait for each other once in a while."""
    if isinstance(key, str):
        key = key.encode()
    if isinstance(key, bytes):
        return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little")
    return whole(key, "key")


class Transaction:
    """with store.transaction() as tx: commits at the end, and aborts for an exception. It may also
    be begun by Store.begin, and ended by commit() or abort(). One that nobody refers to any more is
    aborted, as where a signal came before the first instruction of __exit__."""

    def __init__(self, store: Store, flags: int, commit_flags: int) -> None:
        self._store, self._flags, self._commit_flags = store, flags, commit_flags
        tx = lib.ps_py_tx_new(store._handle)
        if not tx:
            raise MemoryError("no memory for a transaction")
        self._tx: Any = ffi.gc(tx, lib.ps_py_tx_free)
        self._given: list[Any] = []
        self._is_done = False

    def _check(self, rc: int) -> None:
        if rc:
            check(rc, self._store._tell)

    @property
    def is_open(self) -> bool:
        """It was begun, and has not ended: it can be used by its thread."""
        return bool(lib.ps_py_is_open(self._tx))

    @property
    def token(self) -> Token | None:
        """Of its commit, if it was committed, whatever came in between."""
        token = ffi.new("struct perseas_token *")
        if not lib.ps_py_committed(self._tx, token):
            return None
        return Token(self._store, token.epoch, token.seq)

    # --- beginning and ending ---

    def begin(self) -> Transaction:
        """Begins it, and returns it. Errors: those of perseas_begin; InvalidArgumentError (it has
        been begun before)."""
        if self._is_done or self.is_open:
            raise InvalidArgumentError("it was begun before: ask the store for another transaction")
        self._check(lib.ps_py_begin(self._tx, self._flags))
        return self

    def __enter__(self) -> Transaction:
        try:
            return self.begin()
        except BaseException:           # a signal, when it was begun
            self._take_back()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: types.TracebackType | None) -> None:
        try:
            if kind is None and not self._is_done:
                self.commit()
        finally:
            self._take_back()

    async def __aenter__(self) -> Transaction:
        return self.__enter__()

    async def __aexit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        """Commits without waiting in this thread, and goes on when W mirrors hold it."""
        try:
            if kind is None and not self._is_done:
                await self._commit_when_there_is_room()
        finally:
            self._take_back()
        if kind is None and self.token:
            await self.token

    async def _commit_when_there_is_room(self) -> None:
        while True:
            try:
                self._commit(lib.PERSEAS_NOWAIT | lib.PERSEAS_NOBLOCK)
                return
            except AgainError:
                await self._store._durability.room()

    def _take_back(self) -> None:
        """Ends it if it is open, whatever became of it."""
        if self.is_open:
            lib.ps_py_abort(self._tx)
        self._close_views()

    def _close_views(self) -> None:
        self._is_done = True
        while self._given:
            memory.close_view(self._given.pop())

    def _commit(self, flags: int) -> Token:
        rc = lib.ps_py_commit(self._tx, flags)
        if rc in (0, lib.PERSEAS_EINDOUBT, lib.PERSEAS_EFENCED):
            self._close_views()
        self._check(rc)
        token = self.token
        assert token
        return token

    def commit(self) -> Token:
        """Returns when W mirrors hold it; with nowait=True, when it is on its way. A signal that
        comes meanwhile is handled when the library has returned, after commit_timeout_ms at most.

        After InDoubtError and FencedError it has ended, as after none; after others it is open.
        Errors: those of perseas_commit.
        """
        return self._commit(self._commit_flags)

    def abort(self) -> None:
        """Restores every declared byte. Errors: EndedError, ThreadError."""
        rc = lib.ps_py_abort(self._tx)
        if not rc:
            self._close_views()
        self._check(rc)

    def retry(self) -> None:
        """Takes back what it changed, and begins it again as old as it was, when the lock that it
        was refused may be had. Store.transact calls it. Errors: those of perseas_retry; EndedError,
        ThreadError."""
        self._begun_again(lib.ps_py_retry(self._tx))

    def _begin_patiently(self, tries: Any) -> None:
        """One with track=True conflicts while others are open, which may end soon."""
        rc = lib.ps_py_begin(self._tx, self._flags)
        while rc == lib.PERSEAS_ECONFLICT \
                and lib.ps_py_begin_conflict(self._store._handle, tries) == 0:
            rc = lib.ps_py_begin(self._tx, self._flags)
        self._check(rc)

    def _retry_conflict(self, tries: Any) -> bool:
        """It met a conflict. True: it has begun again; False: it was tried often enough."""
        rc = lib.ps_py_retry_conflict(self._tx, tries)
        if rc == lib.PERSEAS_ECONFLICT:
            return False
        self._begun_again(rc)
        return True

    def _begun_again(self, rc: int) -> None:
        if rc == 0 or not self.is_open:
            self._close_views()
            self._is_done = rc != 0
        self._check(rc)

    # --- what it may change ---

    def writable(self, view: View) -> View:
        """Declares the range of a view of the store's memory (memoryview, numpy array, a segment's
        view or an object's), and gives the same view, but writable, until the transaction ends:
        then it becomes read-only. What was made of it before then, such as a slice, can still be
        written to afterwards, which no mirror would learn: check_writes=True finds that.

        Errors: those of perseas_set_range; RangeError (it is no memory of the store), TypeError,
        ValueError (it is not contiguous).
        """
        target = memory.Target(view)
        if not target.size:
            return view
        buffer, at = self._store._buffer_at(target.address, target.size)
        self._check(lib.ps_py_set_range(self._tx, ffi.cast("void *", target.address), target.size))
        given: View = target.writable(buffer, at)
        self._given.append(given)
        return given

    def write(self, place: Segment | memoryview, offset: int, data: Any) -> None:
        """Declares as many bytes as data has, at offset in a segment or view, and puts them there.
        Errors: as writable."""
        size = memoryview(data).nbytes
        at = self._place(place, offset, size)
        self._check(lib.ps_py_write(self._tx, at, ffi.from_buffer(data), size))

    def pack(self, place: Segment | memoryview, offset: int, form: str, *values: Any) -> None:
        """struct.pack_into at so many bytes from the place's start, declared. Errors: as writable;
        struct.error."""
        self.write(place, offset, struct.pack(form, *values))

    def overlay(self, kind: type[View], place: Segment | memoryview, offset: int = 0) -> View:
        """A ctypes object in the store's memory, so many bytes from the place's start, all of which
        is declared. It must not be written to when the transaction has ended. Errors: as
        writable."""
        import ctypes
        size = ctypes.sizeof(kind)      # type: ignore[arg-type]
        pointer = self._place(place, offset, size)
        buffer, at = self._store._buffer_at(int(ffi.cast("uintptr_t", pointer)), size)
        self._check(lib.ps_py_set_range(self._tx, pointer, size))
        view: View = kind.from_buffer(buffer, at)  # type: ignore
        return view

    def _place(self, place: Any, offset: int, size: int) -> Any:
        """A pointer to so many bytes there."""
        if hasattr(place, "_check_mapped"):
            place._check_mapped()       # another segment may be at its address by now
            address, room = place.address, place.size
        else:
            target = memory.Target(place)
            address, room = target.address, target.size
        if offset < 0 or offset + size > room:
            raise RangeError("%d bytes at offset %d are not inside the %d bytes there" % (
                size, offset, room))
        return ffi.cast("char *", address + offset)

    # --- parts of it, and locks ---

    def savepoint(self) -> Savepoint:
        """From here on what is going to change must be declared again. Errors: those of
        perseas_savepoint."""
        number = ffi.new("uint64_t *")
        self._check(lib.ps_py_savepoint(self._tx, number))
        return Savepoint(self, number[0])

    def lock(self, key: int | str | bytes, shared: bool = False) -> None:
        """Takes a lock, until it is sent or aborted. A number is the key itself, 0 to 2**64 - 1.
        Errors: those of perseas_lock; after ConflictError it is as it was: Store.transact tries
        again."""
        mode = lib.PERSEAS_LOCK_SHARED if shared else lib.PERSEAS_LOCK_EXCLUSIVE
        self._check(lib.ps_py_lock(self._tx, lock_key(key), mode))

    def __repr__(self) -> str:
        state = "open" if self.is_open else "ended" if self._is_done else "not begun"
        return "<perseas.Transaction of '%s': %s%s>" % (
            self._store.name, state, ", %r" % self.token if self.token else "")
