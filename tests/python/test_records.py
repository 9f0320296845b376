"""Records that C, C++ and Python keep in one store, as doc/records.md describes them: each opens
what the one before has left, which was killed with -9, and checks every record.
"""
import ctypes
import os
import struct
import subprocess
import sys

import pytest

from drill import (BUILD, SECONDS, TOP, die_with_parent, mirror_list, wait_ownerless)
from guide import EXAMPLES, binary_name, compile_c, root  # noqa: F401
import perseas as library

sys.path.insert(0, str(TOP / "client/python/examples"))
import readings  # noqa: E402

PYTHON = [sys.executable, str(TOP / "client/python/examples/readings.py")]


@pytest.fixture(scope="module")
def programs(root, tmp_path_factory):  # noqa: F811
    """The words of each program, by its language."""
    folder = tmp_path_factory.mktemp("readings")
    words = {"python": PYTHON}
    for name in ("readings.c", "readings.cpp"):
        binary = folder / binary_name(EXAMPLES / name)
        compile_c(EXAMPLES / name, binary, root)
        words[name.partition(".")[2]] = [str(binary)]
    return words


def start(words, daemons, count):
    return subprocess.Popen([*words, mirror_list(daemons), str(count)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent,
                            env=dict(os.environ, LD_LIBRARY_PATH=str(BUILD),
                                     PYTHONPATH=str(BUILD / "python")))


def end(process):
    out, err = process.communicate(timeout=SECONDS)
    return process.returncode, out, err


def kill_in_the_middle(words, daemons):
    """How many readings there were, and how many it had said that are kept when it was killed."""
    process = start(words, daemons, 9000)
    lines = [process.stdout.readline() for _ in range(20)]
    process.kill()
    lines += process.stdout.readlines()         # and not communicate(): some are read already
    err = process.stderr.read()
    process.wait()
    process.stdout.close()
    process.stderr.close()
    assert lines[0].endswith(" readings, and all are right\n"), err
    kept = [int(line.split()[1]) for line in lines if line.startswith("kept ") and line[-1] == "\n"]
    return int(lines[0].split()[0]), kept[-1]


@pytest.mark.parametrize("order", [("cpp", "python", "c"), ("python", "cpp", "c", "python")],
                         ids="-".join)
def test_each_language_goes_on_where_another_was_killed(order, mirrors, perseas, programs):
    """No reading that was told is missing, and at most one more is there: that of the transaction
    during which it was killed."""
    daemons, kept = mirrors(3), 0
    for language in order:
        found, last = kill_in_the_middle(programs[language], daemons)
        assert kept <= found <= kept + 1, language
        kept = last
        wait_ownerless("readings", mirror_list(daemons))
    for language in order:
        status, out, err = end(start(programs[language], daemons, 0))
        assert status == 0 and out.endswith(" readings, and all are right\n"), (language, err)
    assert kept <= int(out.split()[0]) <= kept + 1
    for verb in "recover", "verify":
        assert perseas(verb, "readings", mirrors=daemons).status == 0


@pytest.mark.parametrize("member", ["at", "celsius", "flags", "sensor", "values", "last"])
def test_each_language_sees_a_member_that_differs(member, mirrors, programs):
    """One byte of one record is another one; each program's check says so."""
    daemons = mirrors(1, "shm")
    assert end(start(PYTHON, daemons, 3))[0] == 0
    with library.open("readings", mirror_list(daemons)) as store:
        with store.transaction() as tx:
            if member == "last":
                place, offset = store.heap("objects").root("last", readings.READING).view, 54
            else:
                place = store.map("readings")
                offset = 8 + readings.KIND.itemsize + readings.KIND.fields[member][1]
            was = (place.view if hasattr(place, "view") else place)[offset]
            tx.write(place, offset, bytes([was ^ 1]))
    for language, words in programs.items():
        status, _, err = end(start(words, daemons, 0))
        assert status == 1 and "not what was kept" in err, language


def test_the_record_is_the_same_for_each_module_of_python():
    """numpy with C's gaps, struct, and ctypes, with the offsets that the comments of the C
    structure in the document say."""
    class Reading(ctypes.Structure):
        _fields_ = [("at", ctypes.c_uint64), ("celsius", ctypes.c_int32), ("flags", ctypes.c_uint8),
                    ("sensor", ctypes.c_char * 11), ("values", ctypes.c_double * 4)]

    offsets = {name: readings.KIND.fields[name][1] for name in readings.KIND.names}
    assert offsets == {"at": 0, "celsius": 8, "flags": 12, "sensor": 13, "values": 24}
    assert offsets == {name: getattr(Reading, name).offset for name in offsets}
    assert ctypes.sizeof(Reading) == struct.calcsize(readings.FORM) == readings.KIND.itemsize == 56
    assert 'align=True)`, or `"%s"`' % readings.FORM in (TOP / "doc/records.md").read_text()
