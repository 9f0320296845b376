#!/usr/bin/env python3
"""sessions.py FOLDER: writes down what owners and the command say to real daemons over TCP, and
what those answer, for tests/drills/test_recorded.py. It is run once, with PERSEAS_BUILD at the
binaries of a release, when a later version of the protocol begins; what it wrote is never written
again.

A session is a text: a line `CONNECTION there|back|end HEX` for each piece, in the order in which
the daemon heard of them."""
import os
import pathlib
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "tests/fuzz"), str(TOP / "tests/drills"), str(TOP / "bench")]

import record  # noqa: E402


class Tapes(record.Recorder):
    """Keeps whole tapes, and nothing for fuzz targets."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def keep(self, target, name, data):
        pass

    def keep_tape(self, name, tape, targets=None):
        lines = ["%d %s %s" % (number, what, data.hex()) for number, what, data in tape.events]
        (self.folder / name).write_text("\n".join(lines) + "\n")


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    os.environ.pop("PERSEAS_PROTOCOL", None)
    for session in (record.life, record.fenced, record.changed):
        session(Tapes(folder), session.__name__, False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
