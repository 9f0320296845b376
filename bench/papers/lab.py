"""Measures figures with mirrors, engines and rounds as in `make bench` (../run.py), for as long as
a form of `make figures` allows. Titles of results begin with a figure's name."""
import os
import pathlib
import platform
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from run import GIB, MIB, SPIN_US, Bench, available, say  # noqa: E402

# Seconds of a round and most rounds: for a test, for some minutes, and for an hour.
FORMS = {"tiny": (0.02, 2), "short": (0.12, 3), "whole": (0.4, 7)}
SETTLED = 5  # %: a point whose rounds differ by no more needs no further rounds
STEPS = 1000000  # most transactions of half a round, since the check repeats all of them
SMALL = 400 * MIB                       # room of a mirror for the usual databases


class Lab(Bench):
    def __init__(self, build, form, spoil, most=None):
        self.form, self.spoil = form, spoil
        self.most = most                # bytes of memory that figures may take; None: what is free
        with_peers = (build / "bench/compare-peers").exists()
        self.comparer = "compare-peers" if with_peers else "compare"
        self.inserter = "inserts-peers" if with_peers else "inserts"
        super().__init__(build, form != "whole")
        self.seconds, self.rounds = FORMS[form]
        self.left_out = {}              # what was not measured: sentences by figure

    def pick(self, tiny, short, whole):
        return {"tiny": tiny, "short": short, "whole": whole}[self.form]

    def known(self, *engines):
        """Returns the engines that are built in."""
        return [name for name in engines if self.knows(name)]

    def leave_out(self, figure, sentence):
        self.left_out.setdefault(figure, []).append(sentence)
        say("%s: %s" % (figure, sentence))

    def compare(self, title, cluster, work, engines, *more, fabric="shm", size=None, place=None):
        """Runs Bench.compare with fewer rounds if they agree, by processor time if no engine
        waits."""
        more += ("--settled", SETTLED, "--transactions", STEPS)
        more += () if fabric == "tcp" or place else ("--busy",)
        more += ("--spoil",) if self.spoil else ()
        return super().compare(title, cluster, work, engines, *more, fabric=fabric, size=size,
                               place=place)

    def run(self, title, work, engines, *more, fabric="shm", size=None, place=None, room=SMALL):
        """Runs a workload on several engines in turn, with one new mirror. Fails if the engines
        differ in the end."""
        spin = ("--spin-us", str(SPIN_US)) if fabric == "tcp" else ()
        with self.cluster(1, *spin, room=room) as cluster:
            return self.compare(title, cluster, work, engines, *more, fabric=fabric, size=size,
                                place=place)

    @staticmethod
    def memory():
        """Returns this host's memory in bytes."""
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

    def holds(self, size):
        """Returns whether this host has so many bytes of free memory and some to spare."""
        free = available()
        return size + GIB <= (free if self.most is None else min(free, self.most))

    def fits(self, figure, size, copies=2):
        """Returns whether there is memory for that many copies of a database. Records what is left
        out."""
        if self.holds(copies * size):
            return True
        self.leave_out(figure, "%d MiB are left out: there is not enough memory for the owner's "
                       "and a mirror's" % (size // MIB))
        return False


def host(build):
    """Describes the host, a word or two for each property."""
    model = "?"
    for row in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if row.startswith("model name"):
            model = row.split(":", 1)[1].strip()
    version = subprocess.run([build / "perseas", "--version"], stdout=subprocess.PIPE, text=True,
                             check=False).stdout.split("\n")[0]
    memory = Lab.memory()
    return {"processors": "%d, %s" % (len(os.sched_getaffinity(0)), model),
            "memory": "%d MiB" % (memory // MIB), "memory_bytes": memory,
            "kernel": platform.release(), "perseas": version.strip()}
