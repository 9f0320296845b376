"""What libperseas declares, as cffi reads it: from the public headers, whenever the package is
built, so that it cannot be older than they are. native_build.py and tests call it. Nothing is
copied by hand, and the C compiler holds the result against the headers once more.
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
    """What the preprocessor printed of our headers, without those of the system."""
    is_own = False
    for line in text.splitlines():
        marker = MARKER.match(line)
        if marker:
            path = pathlib.Path(marker["file"])
            is_own = path.name.startswith("perseas") or path.name == "native.h"
        elif is_own and line.strip() and not line.startswith("#"):
            yield line


def declarations(compiler="cc"):
    """The text for FFI.cdef(). CalledProcessError: the compiler does not take the headers."""
    done = subprocess.run([compiler, "-E", str(HERE / "native.h")], check=True, text=True,
                          stdout=subprocess.PIPE)
    numbers = sorted({name for path in headers() for name in NUMBER.findall(path.read_text())})
    return "\n".join([*own_lines(done.stdout), *("#define %s ..." % name for name in numbers)])


def functions(text):
    """The names of the functions that are declared in it."""
    flat = re.sub(r"\s+", " ", text)
    return {match[1] for match in re.finditer(FUNCTION, flat) if not match[0].startswith("(")}
