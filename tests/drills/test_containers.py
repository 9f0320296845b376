"""The containers of doc/examples/, whose programs are killed with kill -9 during changes."""
import collections
import re
import signal
import subprocess

import pytest

from drill import BUILD, SECONDS, rounds, wait_ownerless
from guide import examples, root  # noqa: F401
from teller import dice  # noqa: F401

THREADS, KEPT, FOREVER = 4, 100, "1000000000"


@pytest.fixture(autouse=True)
def library(monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", str(BUILD))


def show(program, address):
    """Returns [(key, value)] in order, and the numbers of the last line."""
    done = subprocess.run([program, address, "show"], stdout=subprocess.PIPE, check=True, text=True,
                          timeout=SECONDS)
    *lines, last = done.stdout.splitlines()
    return [line.split(" = ") if " = " in line else [line, line] for line in lines], \
        [int(number) for number in re.findall(r"\d+", last)]


def kill_at_work(words, count):
    """Kills the program after it printed some more than `count` lines. Returns the lines."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            lines = [process.stdout.readline() for _ in range(count)]
        finally:
            process.kill()
        lines += process.stdout.readlines()
    assert process.returncode == -signal.SIGKILL
    return [line.strip() for line in lines if line.endswith("\n")]


def numbers_of(keys):
    """Returns {thread: the last number that it counted, and those that it has}."""
    kept, last = collections.defaultdict(set), {}
    for key, value in keys:
        thread, _, number = key.partition("-")
        if number:
            assert value.split()[0] == number
            kept[thread].add(int(number))
        else:
            last[thread] = int(value.split()[0])
    assert kept.keys() == last.keys()
    return {thread: (last[thread], kept[thread]) for thread in last}


def test_a_hash_table_survives_its_owners(fabric, mirrors, examples, dice):  # noqa: F811
    """Each transaction of a thread inserts, replaces and removes. Everything that it printed is
    there, and at most one more transaction."""
    daemon, = mirrors(1, fabric)
    program = examples / "hashmap"
    acked = {}
    for _ in range(rounds(6)):
        lines = kill_at_work([program, daemon.address, "work", str(THREADS), FOREVER],
                             dice.randrange(1, 600))
        for thread, number in (line.split("-") for line in lines):
            acked[thread] = max(int(number), acked.get(thread, -1))
        wait_ownerless("map", [daemon])
        keys, (count, objects) = show(program, daemon.address)
        assert count == len(keys) < objects
        found = numbers_of(keys)
        for thread, (last, kept) in found.items():
            assert acked.get(thread, -1) <= last <= acked.get(thread, -1) + 1
            assert kept == set(range(max(last - KEPT + 1, 0), last + 1))
            acked[thread] = last
        assert found.keys() >= acked.keys()


def test_an_ordered_map_survives_its_owners(fabric, mirrors, examples, dice):  # noqa: F811
    """The map has the last numbers, in order."""
    daemon, = mirrors(1, fabric)
    program = examples / "ordered"
    acked = -1
    for _ in range(rounds(6)):
        lines = kill_at_work([program, daemon.address, "work", FOREVER], dice.randrange(1, 400))
        assert [int(line) for line in lines] == list(range(acked + 1, acked + 1 + len(lines)))
        acked += len(lines)
        wait_ownerless("ordered", [daemon])
        keys, (count, objects) = show(program, daemon.address)
        last = int(keys[-1][0])
        assert acked <= last <= acked + 1
        assert [int(key) for key, _ in keys] == list(range(max(last - KEPT + 1, 0), last + 1))
        assert objects == count + 1 == len(keys) + 1
        acked = last


def test_a_queue_survives_its_owners(fabric, mirrors, examples, dice):  # noqa: F811
    """The queue is filled and drained, and killed at any moment since its creation. Its numbers
    have no gap, and are those that the program printed, or one step further."""
    daemon, = mirrors(1, fabric)
    program = examples / "queue"
    # On a busy machine the first program could be killed before it has created the store.
    made = subprocess.run([program, daemon.address, "fill", "1"], stdout=subprocess.PIPE, text=True,
                          timeout=SECONDS, check=True)
    assert made.stdout == "0\n"
    first, length = 0, 1
    for round_ in range(rounds(8)):
        verb = "drain" if round_ % 3 == 2 else "fill"
        with subprocess.Popen([program, daemon.address, verb, "2000"], stdout=subprocess.PIPE,
                              text=True) as process:
            try:
                process.wait(dice.uniform(0.02, 0.2))
            except subprocess.TimeoutExpired:
                process.kill()
            told = [int(line) for line in process.stdout if line.endswith("\n")]
        wait_ownerless("queue", [daemon])
        keys, (count, objects) = show(program, daemon.address)
        numbers = [int(key.split()[0]) for key, _ in keys]
        assert objects == count + 1 == len(numbers) + 1
        begin = numbers[0] if numbers else 0
        assert numbers == list(range(begin, begin + len(numbers)))
        # Everything that it printed has happened, and maybe one step more.
        changed = len(numbers) - length if verb == "fill" else length - len(numbers)
        assert len(told) <= changed <= len(told) + 1
        step = first + length if verb == "fill" else first
        assert told == list(range(step, step + len(told)))
        if numbers:
            assert begin == first + (changed if verb == "drain" else 0)
        first, length = begin, len(numbers)
