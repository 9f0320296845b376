"""Counts its runs, as the counter of the README does, in the same segment.

    counter.py LIST
"""
import sys

import perseas


def main() -> None:
    with perseas.open("counter", sys.argv[1], create=True) as store:
        segment = store.map("counter", 8)
        store.publish()
        runs = segment.view.cast("l")           # zero the first time
        with store.transaction() as tx:
            tx.writable(runs)[0] += 1           # declared, and stored
        print("run", runs[0])                   # a majority of the mirrors holds it


if __name__ == "__main__":
    main()
