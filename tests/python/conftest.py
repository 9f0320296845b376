"""The fixtures of the Python package's tests: mirrors, as the drills have them, and one store on
them. What they import is build/python/perseas, which `make check-python` builds.
"""
import os
import pathlib
import signal
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PERSEAS_BUILD", TOP / "build")).resolve()
# Another one, where tests/mutants looks whether the tests find an edit of it.
PACKAGE = os.environ.setdefault("PERSEAS_PYTHON", str(BUILD / "python"))
for folder in (str(TOP / "tests/drills"), PACKAGE):
    sys.path.insert(0, folder)

from binding import PATIENT  # noqa: E402
from drill import mirror_list, mirrors, perseas  # noqa: E402,F401
from teller import tellers  # noqa: E402,F401
import perseas as library  # noqa: E402
from perseas import options  # noqa: E402

# Stores of tests wait as long for answers as those of drills, unless the test says how long.
made_by_package = options.made
options.made = lambda given: made_by_package({**PATIENT, **given})

# A shell that begins something in the background has it ignore SIGINT, and Python keeps that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def daemons(mirrors):  # noqa: F811
    """One mirror over shared memory: it starts in no time."""
    return mirrors(1, "shm")


@pytest.fixture
def address(daemons):
    return mirror_list(daemons)


@pytest.fixture
def store(address):
    """An open store, with a segment "a" of 64 KiB that is published."""
    with library.open("s", address, create=True) as opened:
        opened.map("a", 65536)
        opened.publish()
        yield opened
