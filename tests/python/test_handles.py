"""Schedules of client/python/native*.c that Python cannot be made to run (handles.c), under
sanitizers. Each is run once more with a line of these files changed, and must fail then: otherwise
it would not show what it says.
"""
import os
import subprocess

import pytest

from drill import BUILD, SECONDS, TOP

FOLDER = TOP / "client/python"
FILES = ("native.c", "native_events.c", "native_tx.c", "native_standby.c")
# The test that finds it, the file, the line, and what becomes of it.
EDITS = (
    ("freed-during-a-close", "native_tx.c", "\t\tabort_while_closing(t);\n",
     "\t\t(void)abort_while_closing;\n"),
    ("standby-is-freed-first", "native_standby.c", "\t\tps_py_hold_share(&b->hold);\n", ""),
    ("store-is-freed-first", "native_tx.c", "\t\tps_py_hold_share(&s->hold);\n", "\t\t;\n"),
)
COMPILER = ["gcc", "-std=gnu11", "-g1", "-O1", "-pthread", "-fsanitize=address,undefined",
            "-fno-sanitize-recover=all", "-I", str(FOLDER), "-I", str(TOP / "client")]
WRAPPED = ["pthread_mutex_lock", "pthread_cond_wait", "perseas_set_range"]


def compiled(source, out):
    subprocess.run([*COMPILER, "-c", str(source), "-o", str(out)], check=True, timeout=SECONDS)
    return out


def linked(objects, out):
    subprocess.run([*COMPILER, *map(str, objects), "-o", str(out), "-L", str(BUILD), "-lperseas",
                    "-Wl,-rpath," + str(BUILD), *("-Wl,--wrap=" + name for name in WRAPPED)],
                   check=True, timeout=SECONDS)
    return out


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    """Of the files, and of the tests, by their names."""
    folder = tmp_path_factory.mktemp("handles")
    sources = [FOLDER / name for name in FILES] + [TOP / "tests/python/handles.c"]
    return {each.name: compiled(each, folder / (each.name + ".o")) for each in sources}


def run(program, address, test):
    """Its exit status and what it said. Leaks count, too: nobody but these files has memory."""
    done = subprocess.run([str(program), address, test], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=SECONDS,
                          env=dict(os.environ, ASAN_OPTIONS="detect_leaks=1"))
    return done.returncode, done.stdout


@pytest.mark.parametrize("test, name, old, new", EDITS, ids=lambda value: value[:22].strip())
def test_handles_are_freed_in_any_order(test, name, old, new, objects, address, tmp_path):
    status, said = run(linked(objects.values(), tmp_path / "handles"), address, test)
    assert status == 0, said
    text = (FOLDER / name).read_text()
    assert text.count(old) == 1
    (tmp_path / name).write_text(text.replace(old, new))
    changed = {**objects, name: compiled(tmp_path / name, tmp_path / "changed.o")}
    status, said = run(linked(changed.values(), tmp_path / "mutant"), address, test)
    assert status != 0 and ("AddressSanitizer" in said or "LeakSanitizer" in said), said
