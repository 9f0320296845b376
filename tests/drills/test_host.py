"""What a program does to its own process while libperseas is in it."""
import os
import subprocess

import pytest

from cluster import die_with_parent
from drill import BUILD, HERE, SECONDS, TOP, mirror_list


def compiled(folder, name, *words):
    """A program of drills/host, compiled."""
    program = folder / name
    subprocess.run(["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread",
                    "-I", str(TOP / "client"), str(HERE / "host" / (name + ".c")),
                    "-o", str(program), *words], check=True, timeout=SECONDS)
    return program


def run(program, *words, **keywords):
    """Runs the program; its output."""
    done = subprocess.run([str(program), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=SECONDS, preexec_fn=die_with_parent, **keywords)
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout


@pytest.mark.parametrize("kind", ["shm", "tls"])
def test_a_program_may_unload_the_library(mirrors, tmp_path, kind):
    """It unloads the library while a store is open, goes on, closes it, and unloads it again."""
    program = compiled(tmp_path, "unload", "-ldl")
    told = run(program, str(BUILD / "libperseas.so"), mirror_list(mirrors(2, kind)))
    assert told == "default\n"


@pytest.mark.parametrize("library", ["libperseas", "librvm-perseas", "librds-perseas"])
def test_no_library_is_ever_unmapped(library):
    dynamic = subprocess.run(["readelf", "-d", str(BUILD / (library + ".so"))],
                             stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "NODELETE" in dynamic
