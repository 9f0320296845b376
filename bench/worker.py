"""Runs bench/worker.c for the measurements: an owner that runs transactions and reports its
progress."""
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
    """Waits until a child has ended, and notices it at once, as a supervisor does. Popen.wait with
    a timeout checks after 1 ms and then at doubling intervals, so an end that takes 8 ms would
    count as 15."""
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
    """How long processors keep processes from running: the time that their threads were ready but
    waited for a processor, and the time that the host of a virtual machine took. A pause of that
    length is not caused by the product."""

    def __init__(self, pids):
        self.pids, self.waits, self.marks = list(pids), {}, []
        self.note()

    def note(self):
        """Takes a sample. Returns (time, milliseconds of delay so far)."""
        for pid in self.pids:
            for task in pathlib.Path("/proc/%d/task" % pid).glob("*/schedstat"):
                with contextlib.suppress(OSError):      # it ended meanwhile
                    self.waits[task] = int(task.read_text().split()[1])
        self.marks.append((time.monotonic(),
                           sum(self.waits.values()) / 1e6 + 1e3 * stolen_seconds()))
        return self.marks[-1]

    def most_in(self, ms):
        """Returns the largest delay in any interval of `ms` between two samples."""
        ends = [next((end for end in self.marks[i:] if end[0] >= mark[0] + ms / 1e3),
                     self.marks[-1]) for i, mark in enumerate(self.marks)]
        return max(end[1] - mark[1] for mark, end in zip(self.marks, ends))

    def rest_of(self, pause_ms):
        """Returns what remains of a pause that ended since the last sample, without the delays, in
        milliseconds."""
        began = self.marks[-1][0] - pause_ms / 1e3
        before = max((mark for mark in self.marks if mark[0] <= began), default=self.marks[0])
        return pause_ms - (self.note()[1] - before[1])


class Worker:
    """An owner process, started by the constructor; `first` is its report after its first commit.
    `under` is a command that starts it later, and `later` says that it has --standby; then
    await_first reads `first`."""

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
        """Waits until `perseas run` knows that the store has an owner."""
        if not any("its owner lives" in line for line in self.process.stderr):
            raise RuntimeError("perseas run ended")
        return self

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the owner ended: " + self.process.stderr.read())
        return json.loads(line)

    def ask(self, permille=""):
        """Returns its progress, or its state as a standby. `permille` has its transactions change
        only so many of the granules from now on. Raises RuntimeError if a transaction failed."""
        self.process.stdin.write("%s\n" % permille)
        self.process.stdin.flush()
        told = self._answer()
        if told["error"]:
            raise RuntimeError("the owner's transactions ended with " + told["error"])
        return told

    def kill(self):
        """Kills the process with SIGKILL, and waits until it is gone."""
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
    """Returns median, smallest and largest, with the names that measured_ratio_json uses."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def table(heading, rows):
    """Returns a table in Markdown."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "".join("| %s |\n" % " | ".join(str(cell) for cell in line) for line in lines)
