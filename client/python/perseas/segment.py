"""Segments, as a store has mapped them: views of their memory, to read. What changes it is a
transaction (Transaction.writable).
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import memory
from .errors import ClosedError, InvalidArgumentError

if TYPE_CHECKING:
    from .store import Store


class Segment:
    """A segment that is mapped. name; size in bytes; address; moved: how far from the recorded
    address, in bytes. Use it while the store is open and the segment is not unmapped."""

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
        """With the lock: from here on the memory stays."""
        with self._store._lock:
            self._check_mapped()
            return self._memory.buffer()

    @property
    def published(self) -> bool:
        """It exists, and not only here."""
        return self._store.segment(self.name).published

    @property
    def view(self) -> memoryview:
        """All of it, read-only. struct.unpack_from reads from it."""
        return memoryview(self._buffer()).toreadonly()

    def first(self) -> memoryview:
        """All of a segment that is new, to be given its first contents; Store.publish ends that.
        Errors: InvalidArgumentError (it is published: use a transaction)."""
        self._check_new()
        view = memoryview(self._buffer())
        self._first.append(view)
        return view

    def array(self, dtype: Any = "u1", shape: Any = None, offset: int = 0,
              writable: bool = False) -> Any:
        """A numpy array in it: of the shape, from offset on in bytes; shape None: to the end.

        Read-only, and Transaction.writable makes writable parts of it. writable=True is for a
        segment that is new, until it is published, and for stores that are opened with
        tracked=True, whose transactions with track=True find what was changed.

        Errors: InvalidArgumentError, RangeError, TypeError (a dtype with Python objects).
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
