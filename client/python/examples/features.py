"""A feature store: vectors of numbers by their names, in numpy arrays that other nodes mirror. It
is started on several nodes; one owns the vectors, and the others stand by with a warm copy. When
the owner dies, one of those has all that was acknowledged.

    features.py LIST        stands by, owns, and then does what its input says, line by line:
        put NAME NUMBER...      keeps a vector, of up to 32 numbers; "kept" once mirrors hold it
        get NAME                prints it
        near NUMBER...          prints the three names whose vectors are most alike
        count                   prints how many there are
"""
from __future__ import annotations

import sys
from typing import Iterable

import numpy

import perseas

ROWS, NUMBERS = 10000, 32


class Features:
    """Vectors in rows of one array, and a table that says which row is whose."""

    def __init__(self, store: perseas.Store) -> None:
        self.store = store
        heap = store.heap("names", create=True)
        self.rows = heap.table("rows", key=str, value="<q")
        segment = store.map("vectors", ROWS * NUMBERS * 4)
        used = store.map("used", 8)
        store.publish()
        self.vectors = segment.array("<f4", (ROWS, NUMBERS))
        self.used = used.array("<i8")

    def put(self, name: str, numbers: Iterable[float]) -> None:
        """The vector, its row, and how many rows are used: all of it counts, or nothing."""
        vector = self._padded(numbers)
        self.store.transact(lambda tx: self._put(tx, name, vector), serial=True)

    def _put(self, tx: perseas.Transaction, name: str,
             vector: numpy.ndarray[tuple[int], numpy.dtype[numpy.float32]]) -> None:
        rows = self.rows.within(tx)
        row = rows.get(name)
        if row is None:
            row = int(self.used[0])
            if row == ROWS:
                raise MemoryError("there is room for %d vectors" % ROWS)
            rows[name] = row
            tx.writable(self.used)[0] += 1
        tx.writable(self.vectors[row])[:] = vector

    @staticmethod
    def _padded(numbers: Iterable[float]) -> numpy.ndarray[tuple[int], numpy.dtype[numpy.float32]]:
        given = numpy.fromiter(numbers, "<f4")
        if len(given) > NUMBERS:
            raise ValueError("a vector has %d numbers at most" % NUMBERS)
        return numpy.pad(given, (0, NUMBERS - len(given)))

    def get(self, name: str) -> list[float]:
        return [float(each) for each in self.vectors[self.rows[name]]]

    def near(self, numbers: Iterable[float]) -> list[str]:
        """Of all vectors, by cosine. The arithmetic is on the mirrored memory itself."""
        used = self.vectors[:int(self.used[0])]
        lengths = numpy.linalg.norm(used, axis=1)
        alike = used @ self._padded(numbers) / numpy.where(lengths > 0, lengths, 1)
        names = {row: name for name, row in self.rows.snapshot().items()}
        return [names[int(row)] for row in numpy.argsort(-alike)[:3]]


def answer(features: Features, line: str) -> str:
    verb, *words = line.split()
    if verb == "put":
        features.put(words[0], map(float, words[1:]))
        return "kept " + words[0]
    if verb == "get":
        return " ".join("%g" % each for each in features.get(words[0]))
    if verb == "near":
        return " ".join(features.near(map(float, words)))
    if verb == "count":
        return str(int(features.used[0]))
    raise ValueError("no such command: " + verb)


def main() -> None:
    with perseas.standby("features", sys.argv[1], create=True, warm=True) as standby:
        print("stands by", flush=True)
        with standby.wait() as store:
            features = Features(store)
            print("owns, epoch %d" % store.stat().epoch, flush=True)
            for line in sys.stdin:
                try:
                    print(answer(features, line), flush=True)
                except (ValueError, LookupError, MemoryError) as error:
                    print("error: %s" % error, flush=True)


if __name__ == "__main__":
    main()
