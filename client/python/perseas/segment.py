"""Mapped segments: read-only views of their memory. Transactions change it
(Transaction.writable).
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import memory
from .errors import ClosedError, InvalidArgumentError

if TYPE_CHECKING:
    from .store import Store


class Segment:
    """A mapped segment: its name, its size in bytes, its address, and moved, the distance in bytes
    from the recorded address. Use it only while the store is open and the segment is mapped."""

    def __init__(self, store: Store, mapped: memory.Memory, moved: int) -> None:
        self._store, self._memory = store, mapped
        self.name, self.size, self.address = mapped.name, mapped.size, mapped.address
        self.moved = moved
        self._first: list[Any] = []     # writable views, until it is published

    def _check_mapped(self) -> None:
        self._store._check_open()
        if self._store._segments.get(self.name) is not self:
            raise ClosedError("segment '%s' is not mapped any more: map it again" % self.name)

    def _buffer(self) -> Any:
        """Caller holds the lock. From here on the memory stays mapped."""
        with self._store._lock:
            self._check_mapped()
            return self._memory.buffer()

    @property
    def published(self) -> bool:
        """Returns True if the segment has been published."""
        return self._store.segment(self.name).published

    @property
    def view(self) -> memoryview:
        """Returns all of the segment, read-only. struct.unpack_from can read it."""
        return memoryview(self._buffer()).toreadonly()

    def first(self) -> memoryview:
        """Returns all of a new segment, writable, for its first contents, until Store.publish.
        Errors: InvalidArgumentError (the segment is published: use a transaction)."""
        self._check_new()
        view = memoryview(self._buffer())
        self._first.append(view)
        return view

    def array(self, dtype: Any = "u1", shape: Any = None, offset: int = 0,
              writable: bool = False) -> Any:
        """Returns a numpy array of the segment, of the given shape, from offset (in bytes) on;
        shape None: to the segment's end. It is read-only; Transaction.writable makes parts of it
        writable. writable=True is for new segments until they are published, and for stores that
        are opened with tracked=True, whose transactions with track=True find the changes. Errors:
        InvalidArgumentError, RangeError, TypeError (a dtype with Python objects).
        """
        if writable and not self._store.tracked:
            self._check_new()
        made = memory.array_of(self._memory, self._buffer(), dtype, shape, offset, writable)
        if writable and not self._store.tracked:
            self._first.append(made)
        return made

    def _check_new(self) -> None:
        if self.published:
            raise InvalidArgumentError(
                "segment '%s' is published, and only transactions may change it: use "
                "tx.writable(array[10:20]), or open the store with tracked=True" % self.name)

    def _was_published(self) -> None:
        while self._first:
            memory.close_view(self._first.pop())

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return "<perseas.Segment '%s' of '%s': %d bytes at %#x>" % (
            self.name, self._store.name, self.size, self.address)
