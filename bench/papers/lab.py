"""Where figures are measured: mirrors, engines and rounds as `make bench` has them (../run.py), for
as long as a form of `make figures` allows. Results go by titles that begin with a figure's name."""
import os
import pathlib
import platform
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from run import GIB, MIB, SPIN_US, Bench, available, say  # noqa: E402

# Seconds of a round, and rounds at most: of a test, in minutes, and in an hour.
FORMS = {"tiny": (0.02, 2), "short": (0.12, 3), "whole": (0.4, 7)}
SETTLED = 5                             # %: a point whose rounds differ by no more needs no more
STEPS = 1000000                         # transactions of half a round, at most: all are checked
SMALL = 400 * MIB                       # room of a mirror that holds the usual databases


class Lab(Bench):
    def __init__(self, build, form, spoil, most=None):
        self.form, self.spoil = form, spoil
        self.most = most                # bytes of memory that figures may take; None: what is free
        with_peers = (build / "bench/compare-peers").exists()
        self.comparer = "compare-peers" if with_peers else "compare"
        self.inserter = "inserts-peers" if with_peers else "inserts"
        super().__init__(build, form != "whole")
        self.seconds, self.rounds = FORMS[form]
        self.left_out = {}              # what was not measured, by figure, a sentence each

    def pick(self, tiny, short, whole):
        return {"tiny": tiny, "short": short, "whole": whole}[self.form]

    def known(self, *engines):
        """Those of the engines that are built in."""
        return [name for name in engines if self.knows(name)]

    def leave_out(self, figure, sentence):
        self.left_out.setdefault(figure, []).append(sentence)
        say("%s: %s" % (figure, sentence))

    def compare(self, title, cluster, work, engines, *more, fabric="shm", size=None, place=None):
        """As Bench's, in fewer rounds where they agree: by processor time, where nobody waits."""
        more += ("--settled", SETTLED, "--transactions", STEPS)
        more += () if fabric == "tcp" or place else ("--busy",)
        more += ("--spoil",) if self.spoil else ()
        return super().compare(title, cluster, work, engines, *more, fabric=fabric, size=size,
                               place=place)

    def run(self, title, work, engines, *more, fabric="shm", size=None, place=None, room=SMALL):
        """A workload on engines that take turns, with one mirror of its own; who is compared holds
        the same bytes in the end, or this fails."""
        spin = ("--spin-us", str(SPIN_US)) if fabric == "tcp" else ()
        with self.cluster(1, *spin, room=room) as cluster:
            return self.compare(title, cluster, work, engines, *more, fabric=fabric, size=size,
                                place=place)

    @staticmethod
    def memory():
        """Bytes of this host."""
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

    def holds(self, size):
        """Has this host memory for so many bytes, and some to spare? Others may need the rest."""
        free = available()
        return size + GIB <= (free if self.most is None else min(free, self.most))

    def fits(self, figure, size, copies=2):
        """Is there memory for a database of so many bytes, so many times? What is left out is
        told."""
        if self.holds(copies * size):
            return True
        self.leave_out(figure, "%d MiB are left out: there is not enough memory for the owner's "
                       "and a mirror's" % (size // MIB))
        return False


def host(build):
    """What the figures are of, a word or two for each."""
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
