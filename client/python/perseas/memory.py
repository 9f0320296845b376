"""Memory of a store that Python has views of, and how long it must stay mapped. A view (memoryview,
numpy array, ctypes object) keeps a buffer alive, and the buffer keeps its Memory alive. So the last
view's end is noticed, and memory is never unmapped under a view: while there are views, Store.unmap
raises BufferError, and Store.close leaves the memory mapped for them (perseas_retain).
"""
from __future__ import annotations

import gc
import math
import operator
import weakref
from typing import TYPE_CHECKING, Any

from ._native import ffi, lib
from .errors import RangeError

if TYPE_CHECKING:
    import numpy

# Memory that outlives its store because it still has views.
left_behind: weakref.WeakSet[Memory] = weakref.WeakSet()


class Memory:
    """The mapped memory of one segment."""

    def __init__(self, store: str, name: str, address: int, size: int) -> None:
        self.store, self.name, self.address, self.size = store, name, address, size
        self.is_retained = False
        self._buffer: weakref.ref[Any] | None = None
        self._shorter: list[weakref.ref[Any]] = []      # of before it grew

    @property
    def pointer(self) -> Any:
        return ffi.cast("char *", self.address)

    def buffer(self) -> Any:
        """Returns the writable buffer from which every view is made."""
        buffer: Any = self._buffer and self._buffer()
        if buffer is not None and len(buffer) < self.size:
            self._shorter = [each for each in self._shorter if each() is not None]
            self._shorter.append(weakref.ref(buffer))
            buffer = None
        if buffer is None:
            buffer = ffi.buffer(ffi.gc(self.pointer, self._unviewed), self.size)
            self._buffer = weakref.ref(buffer)
        return buffer

    def _unviewed(self, _pointer: Any) -> None:
        """Called when the last view is gone. The reference to this method keeps the object alive
        until then."""
        if self.is_retained and not self.is_viewed():
            self.is_retained = False
            left_behind.discard(self)
            lib.ps_py_let_go(self.pointer, self.size)

    def is_viewed(self) -> bool:
        return any(each() is not None for each in (*self._shorter, self._buffer) if each)

    def leave(self) -> None:
        """Leaves the memory to its views before the store is closed. Until then the store holds a
        buffer of it."""
        self.is_retained = True
        left_behind.add(self)


def viewed(memories: list[Memory]) -> list[Memory]:
    """Returns those that have views, after a garbage collection."""
    if any(memory.is_viewed() for memory in memories):
        gc.collect()
    return [memory for memory in memories if memory.is_viewed()]


class Target:
    """The target of a write: a contiguous range, and the kind of object to return for it."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing
        self.is_array = hasattr(thing, "__array_interface__")
        if self.is_array:
            self._look_at_array(thing)
        else:
            self._look_at_buffer(thing)

    def _look_at_array(self, array: numpy.ndarray[Any, Any]) -> None:
        import numpy
        if not isinstance(array, numpy.ndarray):
            raise TypeError("%r is a copy of one item, and not a view: write array[5:6], or "
                            "array[5, ...], instead of array[5]" % (array,))
        if not (array.flags.c_contiguous or array.flags.f_contiguous):
            raise ValueError("the array is not contiguous, and its range would have bytes of "
                             "others: declare the rows that it is in, and change it there")
        self.address, self.size = array.__array_interface__["data"][0], array.nbytes

    def _look_at_buffer(self, thing: Any) -> None:
        view = memoryview(thing)
        if not view.c_contiguous:
            raise ValueError("the view is not contiguous: declare all that it is in")
        self.view, self.size = view, view.nbytes
        self.address = int(ffi.cast("uintptr_t", ffi.from_buffer(view))) if self.size else 0

    def empty_copy(self) -> Any:
        """Returns a new object of the same size for the caller: an array for an array, else
        bytes."""
        if self.is_array:
            import numpy
            return numpy.empty_like(self.thing)
        return bytearray(self.size)

    def writable(self, buffer: Any, at: int) -> Any:
        """Returns a writable object of the same type and size, at this offset of the buffer."""
        if self.is_array:
            import numpy
            order: Any = "C" if self.thing.flags.c_contiguous else "F"
            return numpy.ndarray(self.thing.shape, self.thing.dtype, buffer, at,
                                 order=order)
        view = memoryview(buffer)[at:at + self.size]
        if self.view.format == "B" and self.view.ndim == 1:
            return view
        return view.cast(self.view.format, list(self.view.shape or ()))


def close_view(view: Any) -> None:
    """Makes a writable view read-only, as far as Python allows: objects made from it stay
    writable."""
    if isinstance(view, memoryview):
        try:
            view.release()
        except BufferError:
            pass
    else:
        view.flags.writeable = False


def array_of(memory: Memory, whole: Any, dtype: Any, shape: Any, offset: int,
             writable: bool) -> Any:
    """Returns a numpy array in the memory, whose buffer is `whole`; shape None uses all of it."""
    import numpy
    kind = numpy.dtype(dtype)
    if kind.hasobject:
        raise TypeError("dtype %r has Python objects in it, which are pointers into this process: "
                        "use numbers, texts of fixed length, or structures of these" % kind)
    if not 0 <= offset <= memory.size:
        raise RangeError("offset %d is outside segment '%s', which has %d bytes" % (
            offset, memory.name, memory.size))
    if shape is None:
        shape = (memory.size - offset) // kind.itemsize
    shape = tuple(shape) if hasattr(shape, "__iter__") else (operator.index(shape),)
    if min(shape, default=0) < 0:
        raise ValueError("shape %r has a negative size" % (shape,))
    size = math.prod(shape) * kind.itemsize
    if size > memory.size - offset:
        raise RangeError("an array of shape %r has %d bytes, and there are %d from offset %d on in "
                         "segment '%s'" % (shape, size, memory.size - offset, offset, memory.name))
    buffer = whole if writable else memoryview(whole).toreadonly()
    # Not numpy.ndarray(buffer=...), which ignores that a memoryview is read-only.
    return numpy.frombuffer(buffer, "u1")[offset:offset + size].view(kind).reshape(shape)
