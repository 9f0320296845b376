"""Tables: mappings of keys to values in a heap, used like dicts. They have the format of
doc/examples/hash.h, so that a C program with a copy of hash.c can read and change them.
"""
from __future__ import annotations

import struct
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from ._native import ffi, lib
from .options import encoded

if TYPE_CHECKING:
    from .heap import Heap
    from .store import Store
    from .transaction import Transaction

Result = TypeVar("Result")


class Table(MutableMapping[Any, Any]):
    """A table. Each call is a transaction of its own; calls of within(tx) are part of tx. A key is
    bytes, or a str, which is encoded as UTF-8. A value is bytes, or has a format of struct: then
    values are tuples, or single items if the format has one item. Every call locks a part of the
    table, and raises ConflictError if an older transaction holds that lock. Store.transact then
    tries again, as do calls outside of within(). len() and iteration lock the whole table.
    """

    _heap: Heap
    _tx: Transaction | None

    def __init__(self, heap: Heap, root: str, key: type = bytes, value: str | None = None) -> None:
        if key not in (bytes, str):
            raise TypeError("keys are bytes or str, not %r" % (key,))
        self._heap, self.root = heap, root
        self._store: Store = heap._store
        self._key, self._value = key, struct.Struct(value) if value is not None else None
        self._is_single = self._value is not None and len(
            self._value.unpack(bytes(self._value.size))) == 1
        self._tx = None
        self._table = ffi.gc(lib.ps_py_table_new(), lib.ps_py_table_free)
        heap._check(lib.ps_py_table_open(self._store._handle, heap._heap, encoded(root, "root"),
                                         self._table))

    def within(self, tx: Transaction) -> Table:
        """Returns the table for use within a transaction."""
        inside = object.__new__(Table)
        inside.__dict__.update(self.__dict__)
        inside._tx = tx
        return inside

    # --- bytes ---

    @staticmethod
    def _key_bytes(key: Any) -> bytes:
        if isinstance(key, str):
            return key.encode()
        if isinstance(key, (bytes, bytearray, memoryview)):
            return bytes(key)
        raise TypeError("a key is bytes or str, not %s" % type(key).__name__)

    def _value_bytes(self, value: Any) -> bytes:
        if self._value is None:
            if isinstance(value, str):
                return value.encode()
            if isinstance(value, (bytes, bytearray, memoryview)):
                return bytes(value)
            raise TypeError("a value is bytes or str, not %s: or open the table with a format of "
                            "struct" % type(value).__name__)
        return self._value.pack(value) if self._is_single else self._value.pack(*value)

    def _key_of(self, data: bytes) -> Any:
        return data.decode() if self._key is str else data

    def _value_of(self, data: bytes) -> Any:
        if self._value is None:
            return data
        values = self._value.unpack(data)
        return values[0] if self._is_single else values

    # --- calls ---

    def _run(self, work: Callable[[Transaction], Result]) -> Result:
        return work(self._tx) if self._tx else self._store.transact(work)

    def _found(self, tx: Transaction, rc: int) -> bool:
        """Checks a result of C: 1 means that the key is missing, or, for an insert, that it
        exists."""
        if rc != 1:
            tx._check(rc)
        return rc == 0

    def _get(self, tx: Transaction, key: bytes) -> bytes | None:
        value = ffi.gc(ffi.new("struct ps_py_bytes *"), lib.ps_py_bytes_free)
        if not self._found(tx, lib.ps_py_table_get(tx._tx, self._table, key, len(key), value)):
            return None
        return bytes(ffi.buffer(value.at, value.size)) if value.size else b""

    def __getitem__(self, key: Any) -> Any:
        data = self._key_bytes(key)
        found = self._run(lambda tx: self._get(tx, data))
        if found is None:
            raise KeyError(key)
        return self._value_of(found)

    def __contains__(self, key: object) -> bool:
        data = self._key_bytes(key)
        return self._run(lambda tx: self._get(tx, data)) is not None

    def __setitem__(self, key: Any, value: Any) -> None:
        data, new = self._key_bytes(key), self._value_bytes(value)
        self._run(lambda tx: tx._check(lib.ps_py_table_put(
            tx._tx, self._table, data, len(data), new, len(new))))

    def insert(self, key: Any, value: Any) -> bool:
        """Adds a key. Returns False, and changes nothing, if the table has the key already."""
        data, new = self._key_bytes(key), self._value_bytes(value)
        return self._run(lambda tx: self._found(tx, lib.ps_py_table_insert(
            tx._tx, self._table, data, len(data), new, len(new))))

    def __delitem__(self, key: Any) -> None:
        data = self._key_bytes(key)
        if not self._run(lambda tx: self._found(tx, lib.ps_py_table_remove(
                tx._tx, self._table, data, len(data)))):
            raise KeyError(key)

    def __len__(self) -> int:
        def count(tx: Transaction) -> int:
            number = ffi.new("uint64_t *")
            tx._check(lib.ps_py_table_count(tx._tx, self._table, number))
            return int(number[0])
        return self._run(count)

    def _all(self, tx: Transaction) -> list[tuple[Any, Any]]:
        items = ffi.gc(ffi.new("struct ps_py_bytes *"), lib.ps_py_bytes_free)
        tx._check(lib.ps_py_table_items(tx._tx, self._table, items))
        data = bytes(ffi.buffer(items.at, items.size)) if items.size else b""
        parts, at = [], 0
        while at < len(data):
            size, = struct.unpack_from("=Q", data, at)
            parts.append(data[at + 8:at + 8 + size])
            at += 8 + size
        return [(self._key_of(key), self._value_of(value))
                for key, value in zip(parts[::2], parts[1::2])]

    def snapshot(self) -> dict[Any, Any]:
        """Returns a dict of all keys and values, as of one moment."""
        return dict(self._run(self._all))

    def __iter__(self) -> Iterator[Any]:
        """Iterates over the present keys; later changes are not seen."""
        return iter(self.snapshot())

    def __repr__(self) -> str:
        return "<perseas.Table '%s' of heap '%s'%s>" % (
            self.root, self._heap.name, ", within a transaction" if self._tx else "")
