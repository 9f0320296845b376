"""Tables 1 and 2 and figures 8 and 9 of RVM (Satyanarayanan and others, SOSP'93), drawn by draw.py:
its variant of TPC-A with three patterns, through RVM's interface on mirrors; and that interface
next to RVM's own library, which was measured on another machine with a file system in memory."""
import os
import pathlib

from chart import Chart, brief
from figure import Claim, Figure, Target, engine, middle, overhead, rates, ratio, titles
from lab import MIB
from run import SLEEP_AT_ONCE
from rvm import FIGURE, MODES, PART, SYSTEM, TIMES, WORKS, apart

PATTERNS = ("sequential", "random", "localized")
SIZES = [32768 * i for i in range(1, 15)]       # accounts, as in the paper
ROW = 256                                       # bytes of memory for each account


def sizes_of(lab, shown):
    return lab.pick([32768], [SIZES[i] for i in (0, 3, 7, 13)], SIZES[::1 if shown else 3])


def share(rounds, of):
    """Returns by which share the median is less than another one."""
    return None if not rounds or not of else 1 - middle(rounds) / middle(of)


class Patterns(Figure):
    name = "rvm-1"
    shows = "It shows the rate of RVM's variant of TPC-A by the number of accounts and the " \
        "pattern of access, by RVM's interface with one mirror over shared memory, every commit " \
        "with flush. The whole form goes on with parts of this host's memory. The store's memory " \
        "is in memory or nowhere: nothing is paged. What a log force was to RVM, a round trip " \
        "over tcp is here."

    def measure(self, lab):
        large = [part * lab.memory() // 1000 // ROW // 32 * 32 for part in (125, 250, 375)]
        for size in sizes_of(lab, True) + lab.pick([], [], large):
            if not lab.fits(self.name, ROW * size):
                break
            apart = [] if lab.holds(3 * ROW * size) else ["--apart"]
            for pattern in PATTERNS:
                lab.run("%s, %s, %d" % (self.name, pattern, size), "tpca-" + pattern, ["rvm"],
                        *apart, size=size, room=2 * ROW * size + 400 * MIB)
        lab.run(self.name + ", tcp", "tpca-sequential", ["rvm", "pingpong"], fabric="tcp",
                size=SIZES[0])

    def points(self, results, pattern):
        prefix = "%s, %s, " % (self.name, pattern)
        return [(int(size), rates(results, prefix + size, "rvm", "busy_rates"))
                for size in titles(results, prefix)]

    def charts(self, results):
        lines = {"RVM's interface, " + pattern: self.points(results, pattern)
                 for pattern in PATTERNS}
        return [Chart(self.name, "TPC-A", "accounts", "transactions a second", lines, "/s")]

    def claims(self, results, numbers):
        told = [numbers.value(self.name, "RVM, sequential", size) for size in SIZES]
        found = [middle(rounds) for _, rounds in self.points(results, "sequential")]
        yield Claim("Sequential access hardly changes with the size",
                    "its slowest, divided by its fastest,",
                    min(found) / max(found) if len(found) > 1 else None, ">=",
                    min(told) / max(told))
        force, title = numbers.value(self.name, "RVM, of what a log force allows",
                                     "sequential"), self.name + ", tcp"
        yield Claim("A transaction takes little more than what makes it permanent",
                    "the rate over tcp, divided by that of bare round trips,",
                    ratio(rates(results, title, "rvm"), rates(results, title, "pingpong")), ">=",
                    force)
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        for pattern, part in (("random", 0.25), ("localized", 0.4)):
            points = [p for p in self.points(results, pattern) if p[0] * ROW <= part * memory]
            lost = share(points[-1][1], points[0][1]) if len(points) > 1 else None
            yield Claim("%s access loses less than a tenth up to %d %% of memory" % (
                            pattern.capitalize(), part * 100),
                        "what it loses up to %s accounts" % (points[-1][0] if points else "?"),
                        lost, "<", 0.1)
        last = {pattern: self.points(results, pattern)[-1:] for pattern in PATTERNS}
        gain = None
        if last["random"] and last["localized"]:
            gain = middle(last["localized"][0][1]) / middle(last["random"][0][1])
        yield Claim("Where there are many accounts locality pays",
                    "localized access, divided by random,", gain, ">", 1, " times")


def busy_seconds(process):
    """Returns a process's processor time so far."""
    fields = pathlib.Path("/proc/%d/stat" % process.pid).read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Processors(Figure):
    name = "rvm-9"
    shows = "It shows the processor time of a transaction of TPC-A, of the owner's thread and of " \
        "the mirror's daemon together, by RVM's interface with flush. Over shared memory a " \
        "commit is a call of a library; over tcp it is tasks that talk and sleep, as Camelot " \
        "was. The daemon's time includes that it is given the database at first."

    def measure(self, lab):
        for size in sizes_of(lab, False):
            for pattern in PATTERNS:
                for fabric in ("shm", "tcp"):
                    self.measure_one(lab, "%s, %s, %s, %d" % (self.name, fabric, pattern, size),
                                     pattern, fabric, size)

    def measure_one(self, lab, title, pattern, fabric, size):
        with lab.cluster(1, room=2 * ROW * size + 400 * MIB) as cluster:
            result = lab.compare(title, cluster, "tpca-" + pattern, ["rvm"], "--spin-us",
                                 SLEEP_AT_ONCE,
                                 fabric=fabric, size=size)
            result["daemon_us"] = 1e6 * busy_seconds(cluster.mirrors[0].process) / \
                result["about"]["rvm"]["commits"]

    def points(self, results, fabric, pattern):
        prefix = "%s, %s, %s, " % (self.name, fabric, pattern)
        found = []
        for size in titles(results, prefix):
            result = results[prefix + size]
            found.append((int(size), [1e6 / rate + result["daemon_us"]
                                      for rate in result["engines"]["rvm"]["busy_rates"]]))
        return found

    def charts(self, results):
        lines = {"%s, %s" % (pattern, fabric): self.points(results, fabric, pattern)
                 for fabric in ("shm", "tcp") for pattern in PATTERNS}
        return [Chart(self.name, "Processor time of a transaction", "accounts", "us", lines)]

    def claims(self, results, numbers):
        def ends(fabric, pattern):
            found = [middle(r) for _, r in self.points(results, fabric, pattern)]
            return found if len(found) > 1 else None

        steady = ends("shm", "sequential")
        yield Claim("Sequential access takes the same at every size",
                    "the most over shm, divided by the least,",
                    steady and max(steady) / min(steady), "<=", 1.15, " times")
        grown = ends("shm", "random")
        yield Claim("Random access takes more where there is more of it",
                    "the largest size over shm, divided by the smallest,",
                    grown and grown[-1] / grown[0], ">", 1, " times")
        half = numbers.value(self.name, "RVM to Camelot, processor time", "tpca")
        for pattern in PATTERNS:
            one, other = ends("shm", pattern), ends("tcp", pattern)
            yield Claim("A library takes half of what tasks take that talk (%s)" % pattern,
                        "the time over shm, divided by that over tcp,",
                        one and other and max(a / b for a, b in zip(one, other)), "<=", half)


class Savings(Figure):
    name = "rvm-2"
    shows = "It shows which part of the bytes for mirrors RVM's optimisations save, as " \
        "rvm_statistics counts it: within transactions, that declare a range again, and between " \
        "transactions with no_flush, that change it again before it is sent. Coda's work of " \
        "1993 cannot be had: these are TPC-A, written in layers that declare what others have " \
        "declared, debit-credit and order-entry."
    WORKS = {"layers": "tpca-layered", "debit-credit": "debit-credit",
             "order-entry": "order-entry"}
    ENGINES = {"flush": "rvm", "no_flush": "rvm-no-flush"}

    def measure(self, lab):
        for label, work in self.WORKS.items():
            for mode, name in self.ENGINES.items():
                lab.run("%s, %s, %s" % (self.name, label, mode), work, [name], fabric="tcp")

    def part(self, results, label, mode, *kinds):
        """Returns the share of what would have been sent, in percent."""
        title = "%s, %s, %s" % (self.name, label, mode)
        if not engine(results, title, self.ENGINES[mode]):
            return None
        about = results[title]["about"][self.ENGINES[mode]]
        whole = about["sent"] + about["saved_within"] + about["saved_between"]
        return 100 * sum(about[kind] for kind in kinds) / whole

    def charts(self, results):
        lines = {}
        for name, kinds in (("within transactions", ["saved_within"]),
                            ("between transactions", ["saved_between"]),
                            ("in all", ["saved_within", "saved_between"])):
            lines["saved " + name] = [
                ("%s, %s" % (label, mode), [self.part(results, label, mode, *kinds)])
                for label in self.WORKS for mode in self.ENGINES
                if self.part(results, label, mode, *kinds) is not None]
        return [Chart(self.name, "Bytes that are not sent", "", "%", lines)]

    def claims(self, results, numbers):
        lines = {line["system"]: line["points"] for line in numbers.figures[self.name]["lines"]}
        within = min(p[1] for p in lines["saved within transactions"])
        between = min(p[1] for p in lines["saved between transactions"] if p[1])
        yield Claim("Optimisation within transactions saves a good part",
                    "what it saves of TPC-A in layers",
                    self.part(results, "layers", "flush", "saved_within"), ">=", within, " %")
        yield Claim("With flush there is nothing to save between transactions",
                    "what it saves of debit-credit",
                    self.part(results, "debit-credit", "flush", "saved_between"), "<=", 0, " %")
        for label in self.WORKS:
            yield Claim("With no_flush it saves as much as Coda's clients saved (%s)" % label,
                        "what it saves between transactions",
                        self.part(results, label, "no_flush", "saved_between"), ">=", between,
                        " %")


class BesideRvm(Figure):
    name = FIGURE
    shows = "It shows transactions a second by RVM's interface with one mirror over shared " \
        "memory, with flush, and with no_flush and a flush for each 1000: debit-credit, and " \
        "transactions of 8 bytes. Beside them are the same transactions by the library itself, " \
        "the three copies that a mirror costs, memory without transactions, other systems whose " \
        "files are in memory, and what was measured apart from these commands: RVM's own " \
        "library, and these systems, on another machine."
    LINES = {"rvm": "RVM's interface, flush", "rvm-no-flush": "RVM's interface, no_flush",
             "perseas": "Perseas", "copies": "three copies alone", "none": "no transactions",
             "pmemobj": "libpmemobj", "lmdb": "LMDB", "bdb": "Berkeley DB"}
    PEERS = ("pmemobj", "lmdb", "bdb")

    def measure(self, lab):
        ours = [name for name in self.LINES if name not in self.PEERS]
        for label, (work, size) in WORKS.items():
            peers = lab.known(*self.PEERS) if lab.form != "tiny" else []
            lab.run("%s, %s" % (self.name, label), work, ours + peers, size=size)

    def at(self, results, label, name):
        return rates(results, "%s, %s" % (self.name, label), name, "busy_rates")

    def overhead(self, results, label, name):
        return overhead(self.at(results, label, name), self.at(results, label, "none"))

    def charts(self, results):
        def lines(of, without):
            return {title: [(label, of(results, label, name)) for label in WORKS
                            if of(results, label, name)]
                    for name, title in self.LINES.items() if name not in without}

        return [Chart(self.name, "RVM's transactions", "", "transactions a second",
                      lines(self.at, ()), "/s"),
                Chart(self.name + "-us", "Overhead of RVM's transactions", "", "us",
                      lines(self.overhead, ("none",)))]

    def claims(self, results, numbers):
        rate, what = apart()
        for label in WORKS:
            for mode, name in MODES.items():
                yield Target("%s, RVM's interface over shm, %s" % (label, mode),
                             middle(self.at(results, label, name)), what, rate, ">=", TIMES)
        for label in WORKS:
            yield Target("%s, RVM's interface over shm, flush" % label,
                         middle(self.at(results, label, "rvm")), "Perseas over shm",
                         middle(self.at(results, label, "perseas")), ">=", PART)

    def notes(self, results, numbers):
        """Yields how comparable the two machines are, by what ran on both."""
        label = "debit-credit"
        times = {self.LINES[name]: middle(self.at(results, label, name)) /
                 numbers.value(self.name, self.LINES[name] + ", there", label)
                 for name in self.PEERS if self.at(results, label, name)}
        if times:
            yield "How much of these ratios is the machine's shows in what ran on both: with " \
                "debit-credit, %s as fast here as on the other machine." % ", ".join(
                    "%s is %s times" % (name, brief(factor)) for name, factor in times.items())
        beyond = self.overhead(results, "8 bytes", "rvm")
        if beyond and middle(beyond) > 0:
            there = numbers.value(self.name, SYSTEM + ", overhead", "8 bytes")
            yield "Beyond what the same takes without transactions, one of 8 bytes with flush " \
                "takes %s us here, and %s us, %s times as long, by RVM's own library on the " \
                "other machine." % tuple(map(brief, (middle(beyond), there,
                                                     there / middle(beyond))))


FIGURES = [Patterns(), Processors(), Savings(), BesideRvm()]
