"""Runs the examples in documents: the README and the guides in doc/.

One shell for each document executes these fenced blocks, in order:

    ```sh           a script; it must succeed
    ```console      commands after "$ ", continuation lines after "> ", and what they print.
                    Every command must succeed, so one that does not is shown with its status.
                    "…" stands for anything within a line, alone on a line for any lines.
                    "console eventually": repeated until it prints that.
    ```c, ```cpp    below a comment <!-- doc/examples/FILE --> or <!-- doc/examples/FILE: PART -->:
                    that file, or the lines between its "begin PART" and "end PART"

The shell has its own namespaces: its ports are those that the document names, its /dev/shm is
empty, and what it started ends with it. Indented blocks and blocks of other kinds are not run.

    guide.py FILE...    updates the C and C++ blocks of these documents from the examples
"""
import contextlib
import fcntl
import os
import re
import pathlib
import select
import subprocess
import sys
import time

import pytest

from drill import BUILD, SECONDS, TOP, die_with_parent

EXAMPLES = TOP / "doc/examples"
C_FLAGS = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic"]
CXX_FLAGS = ["-std=c++17", *C_FLAGS[1:], "-Wshadow"]
CODE = ("c", "cpp")                     # blocks that contain examples
FENCE = re.compile(r"^```(?P<kind>[a-z]*)(?P<words>[^\n`]*)\n(?P<text>.*?)^```$", re.M | re.S)
INCLUDED = re.compile(r"<!-- doc/examples/(?P<file>[a-z]+\.(c|cpp))(: (?P<part>[a-z]+))? -->\n\Z")


class Block:
    """A fenced block, its position, and the lines above it."""

    def __init__(self, path, text, match):
        self.kind, self.words = match["kind"], match["words"].split()
        self.text = match["text"]
        self.place = "%s, line %d" % (path.name, text.count("\n", 0, match.start()) + 1)
        self.included = INCLUDED.search(text[:match.start()])

    def commands(self):
        """Returns the commands of a console block: [(command, lines that it prints)]."""
        commands = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                commands.append((line[2:], []))
            elif line.startswith("> ") and not commands[-1][1]:
                commands[-1] = (commands[-1][0] + "\n" + line[2:], [])
            else:
                commands[-1][1].append(line)
        return commands


def include(path):
    """Updates the parts of examples in the document."""
    text = path.read_text()
    for block in reversed(list(FENCE.finditer(text))):
        included = INCLUDED.search(text[:block.start()])
        if included:
            text = text[:block.start("text")] + example_part(included["file"], included["part"]) \
                + text[block.end("text"):]
    path.write_text(text)


def blocks(path):
    text = path.read_text()
    return [Block(path, text, match) for match in FENCE.finditer(text)]


def line_pattern(line):
    """Returns a pattern for a line in which columns may be wider or narrower."""
    words = (".*".join(map(re.escape, word.split("…"))) for word in line.split())
    return " +".join(words)


def matches(expected, printed):
    """Returns whether the command printed the lines that the document shows."""
    pattern = "".join(r"(.*\n)*" if line.strip() == "…" else r" *%s *\n" % line_pattern(line)
                      for line in expected)
    return re.fullmatch(pattern, printed) is not None


def example_part(file, part):
    """Returns an example, or a marked part of it, unindented as far as its marks are indented."""
    text = (EXAMPLES / file).read_text()
    if part is None:
        return text
    found = re.search(r"^(?P<margin>\t*)/\* begin %s \*/\n(?P<inside>.*?)"
                      r"^(?P=margin)/\* end %s \*/\n" % (part, part), text, re.M | re.S)
    assert found, "%s has no part %s" % (file, part)
    return re.sub("^" + found["margin"], "", found["inside"], flags=re.M)


def installed(folder):
    """Creates what `make install` would install for a compiler. Returns the path for pkg-config."""
    (folder / "include").mkdir(parents=True)
    for path in (TOP / "client").glob("perseas*.h"):
        (folder / "include" / path.name).symlink_to(path)
    for name in ("perseas.hpp", "perseas"):
        (folder / "include" / name).symlink_to(TOP / "client/cpp" / name)
    (folder / "lib").symlink_to(BUILD)
    text = (TOP / "client/perseas.pc.in").read_text()
    for name, value in (("PREFIX", folder), ("LIBDIR", folder / "lib"), ("VERSION", "0"),
                        ("PRIVATE", "")):
        text = text.replace("@%s@" % name, str(value))
    (folder / "perseas.pc").write_text(text)
    return folder


def sources():
    """Returns the example programs. A file with a header is a part of others."""
    return [path for path in sorted([*EXAMPLES.glob("*.c"), *EXAMPLES.glob("*.cpp")])
            if not path.with_suffix(".h").exists()]


def binary_name(source):
    """Returns "bank" for bank.c, and "bank-cpp" for bank.cpp."""
    return source.stem + ("-cpp" if source.suffix == ".cpp" else "")


def compile_c(source, binary, root):
    """Compiles a C or C++ program with the examples that it includes, and only the flags that
    pkg-config reports for the installed library."""
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "perseas"], check=True, text=True,
                           env=dict(os.environ, PKG_CONFIG_PATH=str(root)),
                           stdout=subprocess.PIPE).stdout.split()
    parts = [str(source.with_name(name + ".c"))
             for name in re.findall(r'^#include "(\w+)\.h"$', source.read_text(), re.M)]
    compiler = ["g++", *CXX_FLAGS] if source.suffix == ".cpp" else ["gcc", *C_FLAGS]
    subprocess.run([*compiler, str(source), *parts, "-o", str(binary), "-pthread", *flags],
                   check=True, timeout=SECONDS)


class Shell:
    """A bash that executes the commands of a document."""

    NAMESPACES = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child",
                  *(["--map-root-user"] if os.geteuid() else [])]
    PREPARE = "ip link set lo up && mount -t tmpfs -o size=512m,mode=1777 none /dev/shm"

    def __init__(self, folder, path, root):
        env = {"PATH": os.pathsep.join([*map(str, path), os.environ["PATH"]]), "LC_ALL": "C.UTF-8",
               "LD_LIBRARY_PATH": str(BUILD), "PKG_CONFIG_PATH": str(root), "HOME": str(folder)}
        self.process = subprocess.Popen([*self.NAMESPACES, "bash", "--norc", "--noprofile"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, cwd=folder, env=env,
                                        preexec_fn=die_with_parent)
        try:
            status, text = self.run(self.PREPARE)
            assert status == 0, text
        except BaseException:
            self.close()
            raise

    def run(self, command):
        """Runs a command. Returns (status, output). Processes that it leaves running must not print
        here."""
        line = "eval %s\nprintf '\\0%%d\\n' $?\n" % quoted(command)
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()
        until, printed = time.monotonic() + SECONDS, b""
        while not re.search(rb"\0\d+\n\Z", printed):
            left = until - time.monotonic()
            if left < 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise TimeoutError("%s\nhas printed, and goes on:\n%s" % (command, printed))
            part = os.read(self.process.stdout.fileno(), 65536)
            assert part, "the shell ended in: %s\n%s" % (command, printed.decode())
            printed += part
        text, _, status = printed.decode(errors="replace").rpartition("\0")
        return int(status), text

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def quoted(command):
    return "'%s'" % command.replace("'", "'\\''")


def succeeds(shell, block):
    status, printed = shell.run(block.text)
    assert status == 0, "%s: status %d\n%s" % (block.place, status, printed)


def prints(shell, block, command, expected):
    """Runs a command, which must print the expected lines; an "eventually" block repeats it until
    it does."""
    until = time.monotonic() + (SECONDS if "eventually" in block.words else 0)
    while True:
        status, printed = shell.run(command)
        assert status == 0 or time.monotonic() < until, \
            "%s: status %d: %s\n%s" % (block.place, status, command, printed)
        if status == 0 and matches(expected, printed):
            return
        assert time.monotonic() < until, "%s: %s\nprints\n%s\nand not\n%s" % (
            block.place, command, printed, "\n".join(expected))


def follow(shell, path):
    """Executes the document."""
    for block in blocks(path):
        if block.kind == "sh":
            succeeds(shell, block)
        elif block.kind == "console":
            for command, expected in block.commands():
                prints(shell, block, command, expected)


@pytest.fixture(scope="session")
def root(tmp_path_factory):
    """An installed library."""
    return installed(tmp_path_factory.mktemp("installed") / "usr")


@contextlib.contextmanager
def made_once(name, tmp_path_factory):
    """Yields (folder, whether it is empty) for a folder shared by all workers of pytest. The first
    worker fills it in the `with` block, and the others wait for that."""
    top = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        top = top.parent                # a worker's folder is inside the shared one
    folder = top / name
    folder.mkdir(exist_ok=True)
    done = folder / ".done"
    with open(top / (name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder, not done.exists()
        done.touch()


@pytest.fixture(scope="session")
def examples(root, tmp_path_factory):
    """The folder with the compiled examples of doc/."""
    with made_once("examples", tmp_path_factory) as (folder, is_empty):
        for source in sources() if is_empty else []:
            compile_c(source, folder / binary_name(source), root)
    return folder


@pytest.fixture
def shell(root, tmp_path):
    """shell(folders...) starts a Shell with these folders in its path, in its own folder."""
    probe = subprocess.run([*Shell.NAMESPACES, "sh", "-c", Shell.PREPARE], stderr=subprocess.PIPE,
                           text=True)
    if probe.returncode:
        pytest.skip("namespaces cannot be had here: " + probe.stderr.strip())
    shells = []

    def start(*path):
        shells.append(Shell(tmp_path, [BUILD, *path], root))
        return shells[-1]

    yield start
    for each in shells:
        each.close()


if __name__ == "__main__":
    for each in sys.argv[1:]:
        include(pathlib.Path(each))
