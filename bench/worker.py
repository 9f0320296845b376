"""bench/worker.c for the measurements: an owner that runs transactions and tells how far it is."""
import contextlib
import json
import os
import pathlib
import select
import statistics
import subprocess
import time

from cluster import PATIENCE, die_with_parent, stolen_seconds

MIB = 1 << 20


def await_end(process, seconds):
    """Waits until a child has ended, and hears of it at once, as a supervisor does. Popen.wait with
    a timeout looks after 1 ms, and then each time after twice as long, so that an end that takes
    8 ms would count as 15."""
    told = select.poll()
    ends = os.pidfd_open(process.pid)
    try:
        told.register(ends, select.POLLIN)
        if not told.poll(seconds * 1000):
            raise TimeoutError("a killed process has not ended within %g s" % seconds)
    finally:
        os.close(ends)
    process.wait()


class Delays:
    """How long processors keep these processes from running: the time that their threads are ready
    and wait for one, all of them together, and what the host of a virtual machine takes. A pause of
    that length is none of the product's."""

    def __init__(self, pids):
        self.pids, self.waits, self.marks = list(pids), {}, []
        self.note()

    def note(self):
        """(when, milliseconds so far)"""
        for pid in self.pids:
            for task in pathlib.Path("/proc/%d/task" % pid).glob("*/schedstat"):
                with contextlib.suppress(OSError):      # it ended meanwhile
                    self.waits[task] = int(task.read_text().split()[1])
        self.marks.append((time.monotonic(),
                           sum(self.waits.values()) / 1e6 + 1e3 * stolen_seconds()))
        return self.marks[-1]

    def most_in(self, ms):
        """The most in any time so long that lies between two of the looks."""
        ends = [next((end for end in self.marks[i:] if end[0] >= mark[0] + ms / 1e3),
                     self.marks[-1]) for i, mark in enumerate(self.marks)]
        return max(end[1] - mark[1] for mark, end in zip(self.marks, ends))

    def rest_of(self, pause_ms):
        """What remains of a pause that ended since the last look, in milliseconds."""
        began = self.marks[-1][0] - pause_ms / 1e3
        before = max((mark for mark in self.marks if mark[0] <= began), default=self.marks[0])
        return pause_ms - (self.note()[1] - before[1])


class Worker:
    """Started when it is made; `first` is what it said after its first commit. `under` are the
    words before its own, of a program that starts it later; `later`: it has --standby. Then
    `await_first` reads that."""

    def __init__(self, cluster, mirrors, *words, under=(), later=False):
        line = [*under, cluster.build / "bench/worker", "--mirrors", mirrors, *words]
        self.process = subprocess.Popen([str(word) for word in line], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        preexec_fn=die_with_parent)
        cluster.processes.append(self.process)
        self.first = None if under or later else self._answer()

    def await_first(self):
        self.first = self._answer()
        return self.first

    def await_standing_by(self):
        """Of `perseas run`: until it knows that the store has an owner."""
        if not any("its owner lives" in line for line in self.process.stderr):
            raise RuntimeError("perseas run ended")
        return self

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the owner ended: " + self.process.stderr.read())
        return json.loads(line)

    def ask(self):
        """How far it is, or how it stands by; RuntimeError where a transaction failed."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        told = self._answer()
        if told["error"]:
            raise RuntimeError("the owner's transactions ended with " + told["error"])
        return told

    def kill(self):
        """kill -9, and waits until it is gone."""
        self.process.kill()
        await_end(self.process, 60 * PATIENCE)
        self._close()

    def end(self):
        self.process.stdin.close()
        status = self.process.wait(60 * PATIENCE)
        if status:
            raise RuntimeError("the owner ended: " + self.process.stderr.read())
        self._close()

    def _close(self):
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()


def spread(values):
    """Median, smallest and largest, as measured_ratio_json writes them."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def table(heading, rows):
    """Markdown."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "".join("| %s |\n" % " | ".join(str(cell) for cell in line) for line in lines)
