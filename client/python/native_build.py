"""The package's compiled module, perseas._native: cffi in API mode, so that the C compiler holds
every declaration against the headers, and calls cost little. setup.py names `ffi` below.

It has the library in it (build/libperseas.a) when it is built in a tree that has been made, so that
a wheel needs nothing else of Perseas. PERSEAS_LINK=shared links with libperseas.so instead, as
pkg-config says: `make install` and packages do that. PERSEAS_BUILD names the folder of the archive.
"""
import os
import pathlib
import shlex
import subprocess
import sys

import cffi

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from declarations import declarations  # noqa: E402

TOP = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("PERSEAS_BUILD", TOP / "build")).resolve()
# The table is the example that applications copy; this one does, when it is built.
EXAMPLES = TOP / "doc/examples"
SOURCES = ["native.c", "native_events.c", "native_tx.c", "native_standby.c", "native_heap.c",
           "../../doc/examples/hash.c"]


def pkg_config(*words):
    done = subprocess.run(["pkg-config", *words, "perseas"], text=True, stdout=subprocess.PIPE)
    if done.returncode:
        raise SystemExit("perseas: there is neither %s nor an installed libperseas that pkg-config "
                         "knows: run make, or make install, first" % (BUILD / "libperseas.a"))
    return shlex.split(done.stdout)


def private_libraries():
    """What is linked besides the archive."""
    return (BUILD / "libperseas.libs").read_text().split()


def linking():
    """Arguments of the linker."""
    if os.environ.get("PERSEAS_LINK") == "shared":
        return shlex.split(os.environ.get("PERSEAS_LIBS", "")) or pkg_config("--libs")
    if (BUILD / "libperseas.a").exists():
        return [str(BUILD / "libperseas.a"), "-Wl,--exclude-libs,ALL", *private_libraries()]
    return pkg_config("--libs")


ffi = cffi.FFI()
ffi.cdef(declarations(os.environ.get("CC", "cc").split()[0]))
# The headers are those of the tree: hash.h asks for <perseas.h>.
ffi.set_source("perseas._native", '#include "native.h"',
               sources=[os.path.relpath(HERE / name) for name in SOURCES],
               include_dirs=[str(HERE), str(HERE.parent), str(EXAMPLES)],
               define_macros=[("_GNU_SOURCE", None)],
               extra_compile_args=["-std=gnu11", "-O2", "-pthread", "-fvisibility=hidden"],
               extra_link_args=[*linking(), "-pthread"], py_limited_api=True)
