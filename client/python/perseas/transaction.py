"""Transactions: what they may change, and how they end. Store.transaction makes them. A transaction
belongs to the thread that began it. native.c records whether it is open, in the call that ends it.
So a KeyboardInterrupt, which may come between any two instructions here, finds it either open or
ended.
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
    """Identifies a committed transaction: await it, or pass it to Store.wait. Two tokens are equal
    if they identify the same transaction."""
    __slots__ = ("epoch", "seq", "_store")

    def __init__(self, store: Store, epoch: int, seq: int) -> None:
        self._store, self.epoch, self.seq = store, epoch, seq

    def wait(self, timeout: float | None = None) -> None:
        """Waits until W mirrors hold the transaction, for timeout seconds at most. Errors: those of
        Store.wait."""
        self._store.wait(self, timeout)

    def __await__(self) -> Generator[Any, None, Token]:
        """Waits until W mirrors hold the transaction (Store.durable)."""
        return self._store.durable(self).__await__()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Token) and (self.epoch, self.seq) == (other.epoch, other.seq)

    def __hash__(self) -> int:
        return hash((self.epoch, self.seq))

    def __repr__(self) -> str:
        return "Token(epoch=%d, seq=%d)" % (self.epoch, self.seq)


class Savepoint:
    """A savepoint of a transaction. As a context manager, it rolls back to it on an exception."""

    def __init__(self, tx: Transaction, number: int) -> None:
        self._tx, self.number = tx, number

    def rollback(self) -> None:
        """Rolls the transaction back to this savepoint. Errors: those of perseas_rollback_to."""
        self._tx._check(lib.ps_py_rollback_to(self._tx._tx, self.number))

    def __enter__(self) -> Savepoint:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        if kind is not None and self._tx.is_open:
            self.rollback()


def lock_key(key: int | str | bytes) -> int:
    """Returns the number of a lock: for a text, the first 64 bits of its BLAKE2b hash. Two texts
    with the same number only wait for each other unnecessarily."""
    if isinstance(key, str):
        key = key.encode()
    if isinstance(key, bytes):
        return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little")
    return whole(key, "key")


class Transaction:
    """`with store.transaction() as tx:` commits at the end, and aborts on an exception. Store.begin
    also begins one, which commit() or abort() ends. A transaction without references is aborted,
    for example if a signal came before the first instruction of __exit__."""

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
        """True while the transaction has begun and not ended."""
        return bool(lib.ps_py_is_open(self._tx))

    @property
    def token(self) -> Token | None:
        """The token of the transaction's commit, or None if it has not committed."""
        token = ffi.new("struct perseas_token *")
        if not lib.ps_py_committed(self._tx, token):
            return None
        return Token(self._store, token.epoch, token.seq)

    # --- beginning and ending ---

    def begin(self) -> Transaction:
        """Begins the transaction and returns it. Errors: those of perseas_begin;
        InvalidArgumentError (it was begun before)."""
        if self._is_done or self.is_open:
            raise InvalidArgumentError("it was begun before: ask the store for another transaction")
        self._check(lib.ps_py_begin(self._tx, self._flags))
        return self

    def __enter__(self) -> Transaction:
        try:
            return self.begin()
        except BaseException:           # a signal, when it was begun
            self._abort_if_open()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: types.TracebackType | None) -> None:
        try:
            if kind is None and not self._is_done:
                self.commit()
        finally:
            self._abort_if_open()

    async def __aenter__(self) -> Transaction:
        return self.__enter__()

    async def __aexit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        """Commits without blocking this thread, and continues once W mirrors hold the
        transaction."""
        try:
            if kind is None and not self._is_done:
                await self._commit_when_there_is_room()
        finally:
            self._abort_if_open()
        if kind is None and self.token:
            await self.token

    async def _commit_when_there_is_room(self) -> None:
        while True:
            try:
                self._commit(lib.PERSEAS_NOWAIT | lib.PERSEAS_NOBLOCK)
                return
            except AgainError:
                await self._store._durability.room()

    def _abort_if_open(self) -> None:
        """Aborts the transaction if it is open, and makes its views read-only."""
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
        """Commits. Returns when W mirrors hold the transaction; with nowait=True, once it is on its
        way. A signal in the meantime is handled when the library has returned, after
        commit_timeout_ms at most. The transaction has ended after success, InDoubtError and
        FencedError; after other errors it is still open. Errors: those of perseas_commit.
        """
        return self._commit(self._commit_flags)

    def abort(self) -> None:
        """Aborts: restores every declared byte. Errors: EndedError, ThreadError."""
        rc = lib.ps_py_abort(self._tx)
        if not rc:
            self._close_views()
        self._check(rc)

    def retry(self) -> None:
        """Rolls back all changes, waits for the lock that was refused, and begins again with the
        same age. Store.transact calls it. Errors: those of perseas_retry; EndedError,
        ThreadError."""
        self._begun_again(lib.ps_py_retry(self._tx))

    def _begin_patiently(self, tries: Any) -> None:
        """Begins; retries a transaction with track=True, which conflicts with other open ones,
        because these may end soon."""
        rc = lib.ps_py_begin(self._tx, self._flags)
        while rc == lib.PERSEAS_ECONFLICT \
                and lib.ps_py_begin_conflict(self._store._handle, tries) == 0:
            rc = lib.ps_py_begin(self._tx, self._flags)
        self._check(rc)

    def _retry_conflict(self, tries: Any) -> bool:
        """Retries after a conflict. Returns True if the transaction has begun again, False if it
        was retried often enough."""
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
        """Declares the range of a view of the store's memory (memoryview, numpy array, or the view
        of a segment or an object). Returns the same view, writable until the transaction ends, then
        read-only. Objects made from it before, such as slices, stay writable, and mirrors do not
        learn of later writes: check_writes=True finds these. Errors: those of perseas_set_range;
        RangeError (the view is not of the store's memory), TypeError, ValueError (it is not
        contiguous).
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
        """Declares as many bytes as data has, at offset in a segment or view, and writes data
        there. Errors: those of writable."""
        size = memoryview(data).nbytes
        at = self._place(place, offset, size)
        self._check(lib.ps_py_write(self._tx, at, ffi.from_buffer(data), size))

    def pack(self, place: Segment | memoryview, offset: int, form: str, *values: Any) -> None:
        """Declares a range and writes to it by struct.pack_into, offset bytes from the place's
        start. Errors: those of writable; struct.error."""
        self.write(place, offset, struct.pack(form, *values))

    def overlay(self, kind: type[View], place: Segment | memoryview, offset: int = 0) -> View:
        """Returns a declared ctypes object in the store's memory, offset bytes from the place's
        start. It must not be written to after the transaction has ended. Errors: those of
        writable."""
        import ctypes
        size = ctypes.sizeof(kind)      # type: ignore[arg-type]
        pointer = self._place(place, offset, size)
        buffer, at = self._store._buffer_at(int(ffi.cast("uintptr_t", pointer)), size)
        self._check(lib.ps_py_set_range(self._tx, pointer, size))
        view: View = kind.from_buffer(buffer, at)  # type: ignore
        return view

    def _place(self, place: Any, offset: int, size: int) -> Any:
        """Returns a pointer to so many bytes of the place."""
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
        """Makes a savepoint. Later changes must be declared again, also of bytes declared before.
        Errors: those of perseas_savepoint."""
        number = ffi.new("uint64_t *")
        self._check(lib.ps_py_savepoint(self._tx, number))
        return Savepoint(self, number[0])

    def lock(self, key: int | str | bytes, shared: bool = False) -> None:
        """Takes a lock until the transaction is sent or aborted. A number is the key itself, 0 to
        2**64 - 1. Errors: those of perseas_lock; after ConflictError the transaction is unchanged:
        Store.transact tries again."""
        mode = lib.PERSEAS_LOCK_SHARED if shared else lib.PERSEAS_LOCK_EXCLUSIVE
        self._check(lib.ps_py_lock(self._tx, lock_key(key), mode))

    def __repr__(self) -> str:
        state = "open" if self.is_open else "ended" if self._is_done else "not begun"
        return "<perseas.Transaction of '%s': %s%s>" % (
            self._store.name, state, ", %r" % self.token if self.token else "")
