"""Keeps readings of sensors: the records that doc/examples/readings.c and readings.cpp keep, too.

    readings.py LIST COUNT      checks what is there, and adds so many
"""
from __future__ import annotations

import struct
import sys
from typing import Any

import numpy

import perseas

ROWS, READING = 10000, 1
# As C lays a structure out: align=True leaves the gaps that C leaves.
KIND = numpy.dtype([("at", "<u8"), ("celsius", "<i4"), ("flags", "u1"), ("sensor", "S11"),
                    ("values", "<f8", 4)], align=True)
# The same for struct, which has no gap to leave here.
FORM = "<Q i B 11s 4d"


def reading_of(number: int) -> tuple[Any, ...]:
    return (1000003 * number, number % 100 - 50, number % 256, b"s%06d" % (number % 1000000),
            [number + 0.25 * index for index in range(4)])


def packed(number: int) -> bytes:
    *first, values = reading_of(number)
    return struct.pack(FORM, *first, *values)


class Readings:
    """The records of an open store, in a segment and, the last one, in a heap."""

    def __init__(self, store: perseas.Store) -> None:
        self.store = store
        segment = store.map("readings", 8 + ROWS * KIND.itemsize)
        store.publish()
        self.heap = store.heap("objects", create=True)
        self.count = segment.array("<u8", 1)
        self.rows = segment.array(KIND, ROWS, offset=8)

    def check(self) -> bool:
        """Every row, and the object that the root "last" leads to."""
        count, last = int(self.count[0]), self.heap.root("last", READING)
        expected = numpy.array([reading_of(number) for number in range(count)], KIND)
        if count == 0 or last is None:
            return count == 0 and last is None
        return bool((self.rows[:count] == expected).all()
                    and bytes(last.view[:KIND.itemsize]) == packed(count - 1))

    def add(self) -> None:
        with self.store.transaction() as tx:
            number, old = int(self.count[0]), self.heap.root("last", READING)
            tx.writable(self.rows[number:number + 1])[0] = reading_of(number)
            tx.writable(self.count)[0] += 1
            if old:
                self.heap.free(tx, old)
            self.heap.set_root(tx, "last", self.heap.new(tx, packed(number), type=READING))


def main(argv: list[str]) -> Any:
    if len(argv) != 3:
        return __doc__
    with perseas.open("readings", argv[1], create=True) as store:
        readings = Readings(store)
        if not readings.check():
            return "readings: they are not what was kept"
        print("%d readings, and all are right" % readings.count[0], flush=True)
        for _ in range(int(argv[2])):
            if readings.count[0] < ROWS:
                readings.add()
                print("kept %d" % readings.count[0], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
