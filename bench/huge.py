"""Huge pages, which the kernel keeps for a measurement: only root can have that."""
import contextlib
import fcntl
import os
import pathlib

PAGE = 2 << 20
POOL = pathlib.Path("/proc/sys/vm/nr_hugepages")


@contextlib.contextmanager
def kept(size):
    """Yields whether so many bytes of them are there. Nobody else who does the same changes their
    number meanwhile."""
    if os.geteuid():
        yield False
        return
    with POOL.open() as pool:
        fcntl.flock(pool, fcntl.LOCK_EX)
        before = int(POOL.read_text())
        try:
            POOL.write_text("%d\n" % (before + size // PAGE))
            yield int(POOL.read_text()) == before + size // PAGE
        finally:
            POOL.write_text("%d\n" % before)
