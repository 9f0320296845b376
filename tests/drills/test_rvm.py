"""A program for RVM on mirrors: it is killed, continues elsewhere, and loses nothing permanent."""
import os
import subprocess

import pytest

from cluster import die_with_parent
from drill import BUILD, HERE, SECONDS, TOP, fabric, mirror_list, mirrors, rounds  # noqa: F401

THREADS, PAGE = 2, 4096


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The program, compiled like any program for RVM, optionally with -lrvm."""
    folder = tmp_path_factory.mktemp("rvm")
    (folder / "librvm.so").symlink_to(BUILD.resolve() / "librvm-perseas.so")
    subprocess.run(["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-pthread",
                    "-I", str(TOP / "client/rvm"), str(HERE / "rvm/program.c"),
                    "-o", str(folder / "program"), "-L", str(folder), "-lrvm",
                    "-Wl,-rpath-link,%s" % BUILD.resolve()], check=True, timeout=SECONDS)
    return folder / "program"


def compile_for_heap(folder, name):
    """Compiles a program that has its data in a heap."""
    for library, ours in (("rvm", "rvm"), ("rds", "rds"), ("seg", "rds")):
        (folder / ("lib%s.so" % library)).symlink_to(
            BUILD.resolve() / ("lib%s-perseas.so" % ours))
    subprocess.run(["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-pthread",
                    "-I", str(TOP / "client/rvm"), "-I", str(TOP / "client/rds"),
                    str(HERE / "rvm" / (name + ".c")), "-o", str(folder / name), "-L", str(folder),
                    "-lrds", "-lseg", "-lrvm", "-Wl,-rpath-link,%s" % BUILD.resolve()],
                   check=True, timeout=SECONDS)
    return folder / name


@pytest.fixture(scope="module")
def heap_program(tmp_path_factory):
    return compile_for_heap(tmp_path_factory.mktemp("rds"), "heap")


@pytest.fixture(scope="module")
def stress_program(tmp_path_factory):
    return compile_for_heap(tmp_path_factory.mktemp("stress"), "stress")


class Runs:
    """The program with one log, in a folder with the file `data`."""

    def __init__(self, program, log, folder, threads=THREADS):
        self.program, self.log, self.folder, self.threads = program, log, folder, threads

    def start(self, what):
        return subprocess.Popen([str(self.program), self.log, "data", what], cwd=self.folder,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                preexec_fn=die_with_parent,
                                env={**os.environ, "LD_LIBRARY_PATH": str(BUILD.resolve())})

    def run(self, what):
        with self.start(what) as process:
            out, err = process.communicate(timeout=SECONDS)
            assert process.returncode == 0, err
        return out

    def committed(self):
        """Returns what each thread committed last, after checking that both of its numbers are
        equal."""
        rows = [[int(word) for word in row.split()] for row in self.run("check").splitlines()]
        assert [row[0] for row in rows] == list(range(THREADS))
        assert all(row[1] == row[2] for row in rows), rows
        return [row[1] for row in rows]

    def kill_after(self, what, lines):
        """Runs the program until it printed `lines` lines, and kills it. Returns the last number of
        each thread."""
        last = [0] * self.threads
        with self.start(what) as process:
            for _ in range(lines):
                line = process.stdout.readline()
                assert line, process.stderr.read()
                thread, number = line.split()
                last[int(thread)] = int(number)
            process.kill()
            for line in process.stdout:
                if line.endswith("\n"):
                    thread, number = line.split()
                    last[int(thread)] = int(number)
        return last


def make_folder(path, content):
    path.mkdir()
    (path / "data").write_bytes(content)
    return path


@pytest.fixture
def runs(program, mirrors, fabric, tmp_path):  # noqa: F811
    """runs(count) starts mirrors and creates a log for the program."""
    def begin(count):
        daemons = mirrors(count, fabric)
        made = Runs(program, "perseas:rvm@" + mirror_list(daemons),
                    make_folder(tmp_path / "here", bytes(4 * PAGE)))
        made.run("create")
        return made, daemons
    return begin


@pytest.mark.parametrize("mode", ["flush", "no_flush"])
def test_what_was_permanent_outlives_kills(runs, mode):
    """Two threads. The program is killed repeatedly, with commits in flight and held back."""
    made, _ = runs(3)
    for lines in range(3, 3 + rounds(5)):
        permanent = made.kill_after(mode, lines * 7)
        committed = made.committed()
        assert all(c >= p for c, p in zip(committed, permanent)), (committed, permanent)
        assert max(committed) < 1000000     # nothing that was aborted


def test_it_goes_on_elsewhere(runs, tmp_path):
    """On a node with an empty file, the region is unchanged, and truncation fills the file. A
    mirror is lost in the meantime."""
    made, daemons = runs(3)
    permanent = made.kill_after("flush", 50)
    daemons[0].kill9()
    there = Runs(made.program, made.log, make_folder(tmp_path / "there", b""))
    committed = there.committed()
    assert all(c >= p for c, p in zip(committed, permanent))
    there.run("truncate")
    data = (there.folder / "data").read_bytes()
    assert len(data) == 4 * PAGE
    for thread, number in enumerate(committed):
        area = data[thread * 2 * PAGE:(thread + 1) * 2 * PAGE]
        assert area[:8] == area[-8:] == number.to_bytes(8, "little")
    assert not any((made.folder / "data").read_bytes())
    there.kill_after("flush", 30)
    later = there.committed()
    assert sum(later) >= sum(committed) + 30, (committed, later)
    assert all(after >= before for before, after in zip(committed, later)), (committed, later)


def test_a_second_owner_is_refused(runs):
    """While it runs, no other process can initialize with its log."""
    made, _ = runs(1)
    with made.start("flush") as process:
        process.stdout.readline()
        with made.start("check") as other:
            _, err = other.communicate(timeout=SECONDS)
        assert other.returncode == 1 and "RVM_ELOG" in err and "PERSEAS_EBUSY" in err
        process.kill()


def kill_heap_after(made, lines):
    """Runs until `made` changes were permanent, and kills it. Returns the last number printed."""
    last = 0
    with made.start("grow") as process:
        for _, line in zip(range(lines), process.stdout):
            last = int(line)
        process.kill()
        for line in process.stdout:
            if line.endswith("\n"):
                last = int(line)
    return last


def test_a_heap_goes_on_elsewhere(heap_program, mirrors, fabric, tmp_path):  # noqa: F811
    """A list in a heap of RDS. Its owner is killed repeatedly, after the first time on another node
    with an empty file, and a mirror is lost. The list has the nodes that the heap counts."""
    daemons = mirrors(3, fabric)
    log = "perseas:rds@" + mirror_list(daemons)
    made = Runs(heap_program, log, make_folder(tmp_path / "here", b""))
    made.run("create")
    permanent = kill_heap_after(made, 150)
    changes, _ = map(int, made.run("check").split())
    assert changes in (permanent, permanent + 1)
    daemons[0].kill9()
    there = Runs(heap_program, log, make_folder(tmp_path / "there", b""))
    assert int(there.run("check").split()[0]) == changes
    for lines in range(rounds(3)):
        permanent = kill_heap_after(there, 20 + lines)
        later, nodes = map(int, there.run("check").split())
        assert later in (permanent, permanent + 1) and nodes > 0


@pytest.mark.parametrize("mode", ["run", "gather"])
def test_small_blocks_are_as_the_model_says(stress_program, mirrors, fabric, mode,  # noqa: F811
                                            tmp_path):
    """Four threads with blocks of 1 to 300 bytes allocate, change, free, abort and truncate until
    they are killed. Then each byte is that of the thread's last transaction, which is not older
    than the last permanent one."""
    log = "perseas:rds@" + mirror_list(mirrors(2, fabric))
    made = Runs(stress_program, log, make_folder(tmp_path / "here", b""), 4)
    made.run("create")
    for lines in range(rounds(3)):
        permanent = made.kill_after(mode, 100 + 31 * lines)
        committed = [int(row.split()[1]) for row in made.run("check").splitlines()]
        assert len(committed) == 4 and sum(permanent) > 0
        assert all(c >= p for c, p in zip(committed, permanent)), (committed, permanent)
