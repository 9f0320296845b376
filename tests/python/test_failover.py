"""Owners in Python that are killed, and who goes on: another one in Python, programs in C, and the
command. And the other way: what a program in C has left is opened in Python.
"""
import os
import re
import signal
import subprocess
import sys

import pytest

from drill import BUILD, SECONDS, TOP, die_with_parent, mirror_list, wait_for
from guide import blocks, compile_c, root  # noqa: F401
import perseas as library

EXAMPLES = TOP / "client/python/examples"


@pytest.fixture
def example():
    """example(name, words...): a program of client/python/examples that runs."""
    processes = []

    def start(name, *words):
        process = subprocess.Popen(
            [sys.executable, str(EXAMPLES / name), *map(str, words)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent,
            env=dict(os.environ, PYTHONPATH=str(BUILD / "python")))
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def told(process, pattern):
    """The next line that it prints, which must be like this."""
    line = process.stdout.readline().rstrip("\n")
    found = re.fullmatch(pattern, line)
    assert found, line
    return found


def ask(process, line):
    process.stdin.write(line + "\n")
    process.stdin.flush()
    return process.stdout.readline().rstrip("\n")


def compiled(source, binary, root):  # noqa: F811
    """A program in C; it is run with what this returns."""
    compile_c(source, binary, root)
    return dict(os.environ, LD_LIBRARY_PATH=str(BUILD))


def test_c_and_python_count_the_same_runs(mirrors, example, tmp_path, root):  # noqa: F811
    """The README's program, and its example in Python, one after the other."""
    daemons = mirrors(3)
    source, = [each.text for each in blocks(TOP / "README.md") if each.kind == "c"]
    (tmp_path / "counter.c").write_text(source)
    env = compiled(tmp_path / "counter.c", tmp_path / "counter", root)
    for run in range(1, 5):
        if run % 2:
            told(example("counter.py", mirror_list(daemons)), "run %d" % run)
        else:
            done = subprocess.run([str(tmp_path / "counter"), mirror_list(daemons)], env=env,
                                  stdout=subprocess.PIPE, text=True, timeout=SECONDS)
            assert (done.returncode, done.stdout) == (0, "run %d\n" % run)


def test_a_bank_is_killed_and_goes_on_in_c(mirrors, perseas, example, tmp_path, root):  # noqa: F811
    """kill -9 in the middle of transfers; the command finds nothing wrong, the bank in C counts all
    that the one in Python had told, and Python goes on after that one."""
    daemons = mirrors(3)
    env = compiled(TOP / "doc/examples/bank.c", tmp_path / "bank", root)
    bank = example("bank.py", mirror_list(daemons), 1000000)
    told(bank, "open, epoch 1, 0 transfers so far")
    with library.standby("bank", mirror_list(daemons)) as watching:
        wait_for(lambda: watching.stat().state == "owned", SECONDS, "an owner")
    bank.send_signal(signal.SIGKILL)
    assert bank.wait(SECONDS) == -signal.SIGKILL
    assert perseas("recover", "bank", mirrors=daemons).status == 0
    assert perseas("verify", "bank", mirrors=daemons).status == 0
    done = subprocess.run([str(tmp_path / "bank"), mirror_list(daemons), "5"], env=env,
                          stdout=subprocess.PIPE, text=True, timeout=SECONDS)
    assert done.returncode == 0
    before = int(re.match(r"open, epoch 3, (\d+) transfers so far", done.stdout)[1])
    assert "%d transfers, 100000 in all accounts" % (before + 5) in done.stdout
    again = example("bank.py", mirror_list(daemons), 7)
    told(again, "open, epoch 4, %d transfers so far" % (before + 5))
    told(again, r"%d transfers, 100000 in all accounts" % (before + 12))


ACCOUNT_KEEPER = """
import sys, perseas
with perseas.open("s", sys.argv[1], create=True) as store:
    segment = store.map("a", 8192)
    store.publish()
    array = segment.array("<i8")
    number = 0
    while True:
        number += 1
        with store.transaction() as tx:
            tx.writable(array[0:512])[:] = number
            tx.writable(array[600:601])[0] = number
        print(number, flush=True)
"""


@pytest.mark.parametrize("kind", ["tcp", "shm"])
def test_what_was_told_survives_a_kill(mirrors, kind):
    """Every byte of a transaction is there or none, and none is missing that was acknowledged."""
    daemons = mirrors(3, kind)
    for _ in range(2):
        keeper = subprocess.Popen([sys.executable, "-c", ACCOUNT_KEEPER, mirror_list(daemons)],
                                  stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent,
                                  env=dict(os.environ, PYTHONPATH=str(BUILD / "python")))
        for _, line in zip(range(50), keeper.stdout):
            pass
        keeper.kill()
        lines = [line, *keeper.stdout.readlines()]
        acked = int([each for each in lines if each.endswith("\n")][-1])
        keeper.wait()
        keeper.stdout.close()
        with library.standby("s", mirror_list(daemons)) as standby:
            with standby.wait(SECONDS) as store:
                array = store.map("a").array("<i8")
                assert acked <= array[600] <= acked + 1
                assert (array[0:512] == array[600]).all()
                del array


def test_a_teller_in_c_is_read_in_python(mirrors, tellers):
    """Its segment is there, byte for byte; then it takes the store back, with Python's."""
    daemons = mirrors(3)
    desk = tellers.desk()
    desk.open("s", daemons, "create")
    desk.ask("map", "a", 4096)
    desk.ask("publish")
    desk.transaction("a", 100, 50, 7)
    desk.exit()
    with library.open("s", mirror_list(daemons)) as store:
        segment = store.map("a")
        assert segment.size == 4096 and bytes(segment.view[99:151]) == b"\0" + 50 * b"\7" + b"\0"
        store.transact(lambda tx: tx.write(segment, 0, b"\x09" * 10))
    desk = tellers.desk()
    desk.open("s", daemons)
    desk.ask("map", "a", 4096)
    desk.ask("begin")
    assert desk.figures()["seq"] >= 3
    desk.exit()


def test_a_feature_store_is_taken_over(mirrors, example):
    """The owner is killed; a standby that is warm has every vector that was acknowledged."""
    daemons = mirrors(3)
    owner = example("features.py", mirror_list(daemons))
    told(owner, "stands by")
    told(owner, "owns, epoch 1")
    standby = example("features.py", mirror_list(daemons))
    told(standby, "stands by")
    for number in range(20):
        assert ask(owner, "put v%d %d 1 %d" % (number, number, 20 - number)) == "kept v%d" % number
    assert ask(owner, "near 0 0 1").split()[0] == "v0"
    assert ask(owner, "put v1 " + "1 " * 33).startswith("error: a vector has 32 numbers")
    owner.kill()
    told(standby, "owns, epoch 2")
    assert ask(standby, "count") == "20"
    for number in range(20):
        assert ask(standby, "get v%d" % number).startswith("%d 1 %d 0 0" % (number, 20 - number))
    assert ask(standby, "get nobody") == "error: 'nobody'"
    assert ask(standby, "put v0 5") == "kept v0" and ask(standby, "count") == "20"
    standby.stdin.close()
    assert standby.wait(SECONDS) == 0


def test_jobs_survive_their_process(mirrors, example):
    """It is killed with jobs that are added, taken and done; the next one does all that are left,
    and none that was added is missing."""
    daemons = mirrors(3)
    first = example("jobs.py", mirror_list(daemons), 2)
    told(first, "open, 0 jobs are left")
    for number in range(60):
        first.stdin.write("job %d\n" % number)
    first.stdin.flush()
    lines = []
    while sum(line.startswith("added") for line in lines) < 40:
        lines.append(first.stdout.readline())
    first.kill()
    lines += first.stdout.readlines()
    second = example("jobs.py", mirror_list(daemons), 3)
    told(second, r"open, \d+ jobs are left")
    second.stdin.write("the last\n")
    second.stdin.close()
    lines += second.stdout.readlines()
    assert second.wait(SECONDS) == 0
    added = {int(line.split()[1]) for line in lines if line.startswith("added")}
    done = {int(line.split()[1]) for line in lines if line.startswith("done")}
    assert len(added) >= 41 and added <= done
