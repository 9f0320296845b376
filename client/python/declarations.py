"""The declarations of libperseas for cffi, taken from the public headers whenever the package is
built, so that they always match. native_build.py and tests call it. Nothing is copied by hand, and
the C compiler checks the result against the headers once more.
"""
import pathlib
import re
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
CLIENT = HERE.parent
MARKER = re.compile(r'^# \d+ "(?P<file>[^"]*)"')
# A macro that stands for a number.
NUMBER = re.compile(r"^#define (PERSEAS_[A-Z_]+) +(?:UINT64_MAX|\d\w*)$", re.M)
FUNCTION = re.compile(r"\b((?:perseas|ps_py)_[a-z_]+)\s*\(")


def headers():
    return sorted(CLIENT.glob("perseas*.h"))


def own_lines(text):
    """Yields the lines that the preprocessor printed for our headers, without those of the
    system's."""
    is_own = False
    for line in text.splitlines():
        marker = MARKER.match(line)
        if marker:
            path = pathlib.Path(marker["file"])
            is_own = path.name.startswith("perseas") or path.name == "native.h"
        elif is_own and line.strip() and not line.startswith("#"):
            yield line


def declarations(compiler="cc"):
    """Returns the text for FFI.cdef(). Raises CalledProcessError if the compiler rejects the
    headers."""
    done = subprocess.run([compiler, "-E", str(HERE / "native.h")], check=True, text=True,
                          stdout=subprocess.PIPE)
    numbers = sorted({name for path in headers() for name in NUMBER.findall(path.read_text())})
    return "\n".join([*own_lines(done.stdout), *("#define %s ..." % name for name in numbers)])


def functions(text):
    """Returns the names of the functions that the text declares."""
    flat = re.sub(r"\s+", " ", text)
    return {match[1] for match in re.finditer(FUNCTION, flat) if not match[0].startswith("(")}
