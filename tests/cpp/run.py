#!/usr/bin/env python3
"""Runs a test program of the C++ binding with two mirrors on this host, of which it uses one.

    run.py PROGRAM

The program gets the addresses of the first, over shared memory and tcp, and its process, and the
address of the second. Its output is that of the tests; `misuse`
also says, when all is over, that its global store was refused.
"""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from cluster import Cluster             # noqa: E402

BUILD = pathlib.Path(__file__).resolve().parents[2] / "build"
LAST_WORDS = {"misuse": "refused at the end"}
SECONDS = 540                           # less than the suite gives


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    with Cluster(BUILD, 2) as cluster:
        first, second = cluster.mirrors
        try:
            done = cluster.run(program, first.unix, first.tcp, first.process.pid, second.unix,
                               seconds=SECONDS)
        except subprocess.TimeoutExpired as late:
            print((late.stdout or b"").decode(), "# not within %d s" % SECONDS, sep="\n")
            return 1
    print(done.stdout, end="")
    print(done.stderr, end="", file=sys.stderr)
    expected = LAST_WORDS.get(program.name)
    if expected and done.stdout.splitlines()[-1:] != [expected]:
        print("# a global store ends otherwise: '%s' is not its last line" % expected)
        return 1
    return 1 if done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
