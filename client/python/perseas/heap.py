"""Heaps: objects that transactions allocate and free, roots that lead to them, and tables. Layouts
are those of C: an object is bytes, and a table has the format of doc/examples/hash.h.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import memory
from ._native import ffi, lib
from .errors import HeapError, check
from .figures import HeapStat, filled
from .options import encoded, whole
from .table import Table

if TYPE_CHECKING:
    from .store import Store
    from .transaction import Transaction

ANY_TYPE: int = lib.PERSEAS_ANY_TYPE


class Object:
    """An object of a heap: its address, its usable size in bytes, its type. It never moves. Two
    objects are equal if they have the same address."""
    __slots__ = ("address", "size", "type", "_heap")

    def __init__(self, heap: Heap, struct: Any) -> None:
        self._heap = heap
        self.address = int(ffi.cast("uintptr_t", struct.addr))
        self.size, self.type = int(struct.size), int(struct.type)

    @property
    def view(self) -> memoryview:
        """Returns the object's bytes, read-only; Transaction.writable(object.view[0:8]) makes them
        writable. After the object was freed, the view shows whatever uses the memory next."""
        buffer, at = self._heap._store._buffer_at(self.address, self.size)
        return memoryview(buffer)[at:at + self.size].toreadonly()

    def array(self, dtype: Any, shape: Any = None) -> Any:
        """Returns a read-only numpy array over the object; shape None uses all of it."""
        buffer, at = self._heap._store._buffer_at(self.address, self.size)
        mine = memory.Memory("", "of the object", self.address, self.size)
        return memory.array_of(mine, memoryview(buffer)[at:at + self.size], dtype, shape, 0, False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Object) and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)

    def __repr__(self) -> str:
        return "<perseas.Object of type %#x at %#x: %d bytes>" % (self.type, self.address,
                                                                 self.size)


class Heap:
    """A heap of a store. Store.heap opens it; it is valid while the store is open."""

    def __init__(self, store: Store, name: str, create: bool, moved: bool, first: int,
                 most: int) -> None:
        self._store, self.name = store, name
        options, heap = ffi.new("struct perseas_heap_options *"), ffi.new("perseas_heap_t **")
        options.size = ffi.sizeof("struct perseas_heap_options")
        options.flags = (lib.PERSEAS_HEAP_CREATE if create else 0) | (
            lib.PERSEAS_HEAP_MOVED if moved else 0)
        options.first, options.most = whole(first, "first"), whole(most, "most")
        self._is_moved = moved
        self._check(lib.ps_py_heap_open(store._handle, encoded(name, "name"), options, heap))
        self._heap: Any = heap[0]

    def _check(self, rc: int) -> None:
        if rc:
            check(rc, self._store._tell)

    def _object_at(self, address: Any) -> Object:
        found = ffi.new("struct perseas_object *")
        self._check(lib.ps_py_object(self._store._handle, self._heap, address, found))
        return Object(self, found)

    # --- objects ---

    def alloc(self, tx: Transaction, size: int, type: int = 0, zeroed: bool = True) -> Object:
        """Allocates an object of at least size bytes, and declares it. Errors: those of
        perseas_alloc."""
        address = ffi.new("void **")
        self._check(lib.ps_py_alloc(tx._tx, self._heap, whole(size, "size"), whole(type, "type"),
                                    zeroed, address))
        return self._object_at(address[0])

    def reserve(self, tx: Transaction, size: int, type: int = 0) -> Object:
        """Allocates an object that may be larger than a transaction: none of it is declared, and
        its bytes are undefined. Errors: those of perseas_reserve."""
        address = ffi.new("void **")
        self._check(lib.ps_py_reserve(tx._tx, self._heap, whole(size, "size"),
                                      whole(type, "type"), address))
        return self._object_at(address[0])

    def new(self, tx: Transaction, data: Any, type: int = 0) -> Object:
        """Allocates an object with these bytes. Errors: those of perseas_alloc."""
        made = self.alloc(tx, memoryview(data).nbytes, type)
        tx.write(made.view, 0, data)
        return made

    def free(self, tx: Transaction, found: Object) -> None:
        """Frees an object when the transaction commits. Errors: those of perseas_free."""
        self._check(lib.ps_py_free(tx._tx, self._heap, ffi.cast("void *", found.address)))

    def realloc(self, tx: Transaction, found: Object, size: int) -> Object:
        """Resizes an object to size bytes, in place or by copying it. Returns the object. Errors:
        those of perseas_realloc."""
        address = ffi.new("void **")
        self._check(lib.ps_py_realloc(tx._tx, self._heap, ffi.cast("void *", found.address),
                                      whole(size, "size"), found.type, address))
        return self._object_at(address[0])

    def at(self, address: int) -> Object:
        """Returns the object at an address, for example that of a pointer in another object.
        Errors: ObjectError."""
        return self._object_at(ffi.cast("void *", whole(address, "address")))

    def objects(self, type: int = ANY_TYPE) -> list[Object]:
        """Returns all committed objects, in the order of their places. Errors: those of
        perseas_heap_walk."""
        found = ffi.gc(ffi.new("struct ps_py_bytes *"), lib.ps_py_bytes_free)
        self._check(lib.ps_py_heap_objects(self._store._handle, self._heap, whole(type, "type"),
                                           found))
        each = ffi.cast("struct perseas_object *", found.at)
        return [Object(self, each[index])
                for index in range(found.size // ffi.sizeof("struct perseas_object"))]

    # --- roots and tables ---

    def root(self, name: str, type: int = 0) -> Object | None:
        """Returns the object that the root leads to, or None if the root does not exist. Errors:
        ObjectError (the object has another type, or was freed)."""
        address = ffi.new("void **")
        self._check(lib.ps_py_root(self._store._handle, self._heap, encoded(name, "name"),
                                   whole(type, "type"), address))
        return self._object_at(address[0]) if address[0] != ffi.NULL else None

    def set_root(self, tx: Transaction, name: str, found: Object | None) -> None:
        """Makes the root lead to the object when the transaction commits; None removes the root.
        Errors: those of perseas_root_set."""
        address = ffi.cast("void *", found.address) if found else ffi.NULL
        self._check(lib.ps_py_root_set(tx._tx, self._heap, encoded(name, "name"),
                                       found.type if found else 0, address))

    def table(self, root: str, key: type = bytes, value: str | None = None) -> Table:
        """Returns the table that the root leads to; creates it, in a transaction of its own, if the
        root does not exist. Errors: ObjectError (the root leads to something else), HeapError (a
        heap that was opened with moved=True has no tables: their pointers are not valid there)."""
        if self._is_moved:
            raise HeapError("heap '%s' was opened with moved=True, and tables have pointers to "
                            "where it is recorded: open it without" % self.name)
        return Table(self, root, key, value)

    # --- the whole heap ---

    def stat(self) -> HeapStat:
        """Counts the heap's objects and its free memory. Reads all of its metadata. Errors: those
        of perseas_heap_stat."""
        stat = ffi.new("struct perseas_heap_stat *")
        self._check(lib.ps_py_heap_stat(self._store._handle, self._heap, stat))
        return filled(HeapStat, stat)

    def check(self) -> None:
        """Checks that all of the heap's metadata is consistent. Errors: HeapError, which names the
        fault."""
        self._check(lib.ps_py_heap_check(self._store._handle, self._heap))

    def trim(self, keep: int = 0) -> int:
        """Gives segments without objects back to the mirrors, but keeps so many bytes for objects.
        Returns the number of bytes given back. Errors: BufferError (the heap's memory has views),
        those of perseas_heap_trim."""
        given, store = ffi.new("uint64_t *"), self._store
        with store._lock:
            store._check_open()
            ours = [each for each in store._memories.values()
                    if each.name.startswith(self.name + ".heap.")]
            if memory.viewed(ours):
                raise BufferError("heap '%s' has views, which might show no memory any more: "
                                  "delete arrays and memoryviews of its objects first" % self.name)
            rc = lib.ps_py_heap_trim(store._handle, self._heap, whole(keep, "keep"), given)
            for each in ours:
                store._forget_memory(each.address)
        self._check(rc)
        return int(given[0])

    def __repr__(self) -> str:
        return "<perseas.Heap '%s' of '%s'>" % (self.name, self._store.name)


__all__ = ["ANY_TYPE", "Heap", "Object"]
