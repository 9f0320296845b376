#!/usr/bin/env python3
"""The Python program for bench/languages.py: the transactions of turns.c, with the package perseas
and numpy.

    turns.py MIRRORS STORE SIZE
"""
import sys
import time

import numpy

import perseas

ROOM = 8 << 20


def run(store, room, source, count):
    size = len(source)
    for number in range(count):
        at = number % (ROOM // size) * size
        with store.transaction() as tx:
            tx.writable(room[at:at + size])[:] = source


def main():
    mirrors, name, size = sys.argv[1:]
    with perseas.open(name, mirrors, create=True) as store:
        segment = store.map("room", ROOM)
        store.publish()
        room, source = segment.array("u1"), numpy.full(int(size), ord("x"), "u1")
        for line in sys.stdin:
            began = time.monotonic()
            run(store, room, source, int(line))
            print("%.9f" % (time.monotonic() - began), flush=True)


if __name__ == "__main__":
    main()
