"""doc/examples/queue.c is killed at counted points: everything acknowledged is there, and at most
one more step, and the next owner continues from the remaining mirrors."""
import os
import re
import subprocess

import pytest

from drill import BUILD, EMULATED, SECONDS, mirror_list, wait_ownerless
from guide import examples, root  # noqa: F401
from stepping import Held

# Number of instructions of the main thread after the first acknowledged step, which a step does not
# exceed, and the number of points at which it is killed.
STEP = 12800
POINTS = int(os.environ.get("PERSEAS_QUEUE_KILLS", 8))


@pytest.fixture(autouse=True)
def library(monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", str(BUILD))


def show(program, daemons):
    """Returns the numbers in the queue. The program checks that the heap has only their objects and
    the queue's."""
    done = subprocess.run([program, mirror_list(daemons), "show"], stdout=subprocess.PIPE,
                          check=True, text=True, timeout=SECONDS)
    *lines, last = done.stdout.splitlines()
    count, objects = map(int, re.findall(r"\d+", last))
    numbers = [int(line.split()[0]) for line in lines]
    assert objects == count + 1 == len(numbers) + 1
    return numbers


def steps(program, daemons, verb, instructions):
    """Returns the numbers that the program printed: each was pushed or popped, and its commit had
    returned."""
    held = Held([program, mirror_list(daemons), verb, "100000"])
    return [int(line) for line in held.kill_after(instructions)]


@pytest.mark.skipif(EMULATED, reason="single steps take too long in an emulated machine")
def test_nothing_is_lost_or_doubled_at_any_point(fabric, mirrors, examples):  # noqa: F811
    """Three mirrors, W is 2. The program fills or drains the queue, and is killed some instructions
    later each time. With every fourth owner a mirror dies, too, and comes back after the next owner
    has shown the queue."""
    daemons = mirrors(3, fabric)
    program = examples / "queue"
    subprocess.run([program, mirror_list(daemons), "fill", "200"], check=True, timeout=SECONDS,
                   stdout=subprocess.DEVNULL)
    numbers = list(range(200))
    assert show(program, daemons) == numbers
    several = 0
    for point in range(POINTS + 1):
        instructions, fills = STEP * point // POINTS, point % 2 == 0
        told = steps(program, daemons, "fill" if fills else "drain", instructions)
        several += len(told) > 1
        if point % 4 == 3:
            daemons[point % 3].kill9()
        wait_ownerless("queue", [d for d in daemons if d.running()])
        left = show(program, daemons)
        if fills:
            first = numbers[-1] + 1 if numbers else 0  # an empty queue begins anew
            wanted = list(range(first, first + 1 + len(told)))
            assert told == wanted[:-1]
            assert left in (numbers + told, numbers + wanted), (instructions, told, left)
        else:
            assert told == numbers[:len(told)]
            assert left in (numbers[len(told):], numbers[len(told) + 1:]), (instructions, told)
        numbers = left
        if point % 4 == 3:
            daemons[point % 3].restart()
    # The points cover whole steps.
    assert several
