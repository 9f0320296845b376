"""Table 2 and figures 6 and 8 to 11 of Rhino (Saito and Bershad, USENIX'98), drawn by draw.py:
single events, RVM's benchmark and OO7, with changes declared as ranges, as whole pages, or not at
all."""
import shutil
import tempfile

from chart import Chart
from figure import Claim, Figure, Target, middle, rates, ratio, titles
from lab import MIB

WAYS = {"perseas": "set_range", "pages": "whole pages", "tracked": "page diffing (TRACK)"}
ROW = 256                               # bytes of memory for each account


class Events(Figure):
    name = "rhino-2"
    shows = "It shows the median of single events of transactions whose changes are found by " \
        "comparing pages (TRACK), with one mirror over shared memory and over tcp (of this " \
        "host). Warm faults are of a page that is in memory: the first read, where no page table " \
        "has it, and the first write since the last commit, which the kernel records; beside " \
        "them, the same rights given by a handler of SIGSEGV, as on UNIX. Cold faults are of " \
        "memory that comes from the mirror on demand, and not from a disk."
    HERE = ("null call", "begin", "commit (ro)", "commit (8byte)", "read, warm", "write, warm",
            "read, cold", "write, cold")

    def measure(self, lab):
        words = ["--samples", lab.pick(20, 200, 1000), "--rounds", lab.rounds, "--size",
                 lab.pick(4, 16, 64) * MIB, *(["--spoil"] if lab.spoil else [])]
        for fabric in ("shm", "tcp"):
            with lab.cluster(1) as cluster:
                mirrors = cluster.unix() if fabric == "shm" else cluster.tcp()
                lab.results["%s, %s" % (self.name, fabric)] = lab.program(
                    cluster, "events", "--mirrors", mirrors, "--cpu", lab.near, *words)

    def took(self, results, fabric, event, how="kernel"):
        """Returns the median of each round in us, or None if it was not measured."""
        events = results.get("%s, %s" % (self.name, fabric), {}).get("events", {})
        return events.get("%s, %s" % (event, how) if event.endswith("warm") else event) or None

    def charts(self, results):
        lines = {"Perseas, " + fabric: [(event, self.took(results, fabric, event))
                                        for event in self.HERE
                                        if self.took(results, fabric, event)]
                 for fabric in ("shm", "tcp")}
        lines["a handler of SIGSEGV"] = [
            (event, self.took(results, "shm", event, "signal")) for event in self.HERE
            if event.endswith("warm") and self.took(results, "shm", event, "signal")]
        return [Chart(self.name, "Critical paths", "", "us", lines)]

    def claims(self, results, numbers):
        for event in ("read, warm", "write, warm"):
            told = (numbers.value(self.name, "Rhino on UNIX", event) /
                    numbers.value(self.name, "Rhino on SPIN", event))
            times = ratio(self.took(results, "shm", event, "signal"),
                          self.took(results, "shm", event))
            yield Claim("A fault (%s) is faster where no signal is sent for it" % event,
                        "one by a handler of SIGSEGV, divided by one in the kernel,", times, ">",
                        1, " times")
            yield Claim("It is as much faster as it was (%s)" % event,
                        "one by a handler of SIGSEGV, divided by one in the kernel,", times, ">=",
                        told, " times")
        for fabric in ("shm", "tcp"):
            yield Claim("What makes 8 bytes permanent takes more than all else of a commit (%s)" %
                        fabric, "a commit of 8 bytes, divided by one of nothing,",
                        ratio(self.took(results, fabric, "commit (8byte)"),
                              self.took(results, fabric, "commit (ro)")), ">", 2, " times")
        yield Claim("A cold fault takes many times as long as a warm one",
                    "a read of missing memory over tcp, divided by a warm one,",
                    ratio(self.took(results, "tcp", "read, cold"),
                          self.took(results, "tcp", "read, warm")), ">=", 10, " times")


class Detection(Figure):
    name = "rhino-6"
    shows = "It shows what a small transaction (RVM's TPC-A, random) takes by the size of the " \
        "database, with one mirror over shared memory, where ranges are declared, where whole " \
        "pages are, and where the library compares the pages that were written. All of it is in " \
        "memory."

    def measure(self, lab):
        for size in lab.pick([MIB], [MIB, 16 * MIB, 128 * MIB],
                             [MIB * size for size in (1, 4, 16, 64, 256, 1024)]):
            # Three owners, one of which has a second copy, the mirrors of all three, and the check.
            if not lab.fits(self.name, 4 * size):
                break
            lab.run("%s, %d" % (self.name, size), "tpca-random", list(WAYS),
                    size=size // ROW // 32 * 32, room=4 * size + 400 * MIB)

    def points(self, results, name):
        prefix = self.name + ", "
        return [(int(size), [1e6 / rate for rate in
                             rates(results, prefix + size, name, "busy_rates")])
                for size in titles(results, prefix)]

    def charts(self, results):
        return [Chart(self.name, "RVM's benchmark", "bytes of the database", "us", {
            label: self.points(results, name) for name, label in WAYS.items()})]

    def claims(self, results, numbers):
        found = {name: [middle(rounds) for _, rounds in self.points(results, name)]
                 for name in WAYS}
        if not found["perseas"]:
            found = dict.fromkeys(WAYS)

        def least(above, below, which=slice(None), chosen=min):
            if not found[above]:
                return None
            return chosen(a / b for a, b in zip(found[above][which], found[below][which]))

        yield Claim("For small databases set_range and page diffing are nearly equal",
                    "page diffing, divided by set_range, at the smallest,",
                    least("tracked", "perseas", slice(1)), "<=", 1.5, " times")
        yield Claim("Whole pages are a little worse than set_range at every size",
                    "whole pages, divided by set_range, where that is least,",
                    least("pages", "perseas"), ">", 1, " times")
        drop = found["tracked"] and found["tracked"][-1] / found["tracked"][0]
        yield Claim("Page diffing gets slower as the database grows",
                    "page diffing at the largest size, divided by the smallest,",
                    drop if found["tracked"] and len(found["tracked"]) > 1 else None, ">", 1.5,
                    " times")


class Graphs(Figure):
    name = "rhino-8"
    shows = "It shows how long traversals of OO7's database take, each one transaction, in the " \
        "heap of a store with one mirror over shared memory, with ranges that are declared and " \
        "with none (TRACK); in libpmemobj, and in LMDB, whose files are in memory. T1 reads, T2a " \
        "updates one part of each composite part, T2c updates each part four times. All of it " \
        "is in memory, as in the paper's warm figure."
    CONFIGS = ("small", "medium-3", "medium-9")
    TRAVERSALS = ("T1", "T2a", "T2c")
    STORES = {"perseas": "Perseas, set_range", "perseas-tracked": "Perseas, TRACK",
              "pmemobj": "libpmemobj", "lmdb": "LMDB", "plain": "no transactions"}

    def measure(self, lab):
        whole = lab.form == "whole"
        peers = lab.known("pmemobj")
        for config in lab.pick(self.CONFIGS[:1], self.CONFIGS, self.CONFIGS):
            # LMDB takes seconds for each traversal of the largest database.
            stores = ["perseas", "perseas-tracked", "plain"]
            if peers and lab.form != "tiny":
                stores += ["pmemobj", "lmdb"] if whole or config != "medium-9" else ["pmemobj"]
            rounds = lab.pick(1, 3, 5)
            self.traverse(lab, config, stores, "--rounds", rounds, "--repeat",
                          4 if config == "small" and lab.form != "tiny" else 1)

    def traverse(self, lab, config, stores, *words):
        words += ("--spoil",) if lab.spoil else ()
        program = "oo7-peers" if lab.comparer == "compare-peers" else "oo7"
        folder = tempfile.mkdtemp(prefix="perseas-oo7-", dir="/dev/shm")
        try:
            with lab.cluster(1, room=(512 if config == "small" else 4096) * MIB) as cluster:
                lab.results["%s, %s" % (self.name, config)] = lab.program(
                    cluster, program, "--mirrors", cluster.unix(), "--dir", folder, "--config",
                    config, "--stores", ",".join(stores), "--cpu", lab.near, *words)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def took(self, results, config, store, traversal):
        """Returns the ms of each round, or None if it was not measured."""
        ways = results.get("%s, %s" % (self.name, config), {}).get("ways", {})
        entry = ways.get("%s %s" % (store, traversal))
        return entry and [1e3 / rate for rate in entry["busy_rates"]]

    def charts(self, results):
        lines = {label: [("%s, %s" % (traversal, config),
                          self.took(results, config, store, traversal))
                         for traversal in self.TRAVERSALS for config in self.CONFIGS
                         if self.took(results, config, store, traversal)]
                 for store, label in self.STORES.items()}
        return [Chart(self.name, "OO7", "", "ms of a traversal", lines)]

    def claims(self, results, numbers):
        def of(traversal, config, store, other):
            return ratio(self.took(results, config, store, traversal),
                         self.took(results, config, other, traversal))

        yield Claim("set_range is the fastest way where little changes",
                    "page diffing (TRACK) in T2a of small, divided by set_range,",
                    of("T2a", "small", "perseas-tracked", "perseas"), ">", 1, " times")
        for config in self.CONFIGS[1:]:
            yield Claim("set_range does not scale to transactions that change much",
                        "set_range in T2c of %s, divided by page diffing (TRACK)," % config,
                        of("T2c", config, "perseas", "perseas-tracked"), ">", 1, " times")
        for config in self.CONFIGS:
            yield Target("T2a of %s with set_range" % config,
                         middle(self.took(results, config, "perseas", "T2a")), "libpmemobj",
                         middle(self.took(results, config, "pmemobj", "T2a")), "<", 1, "ms")


FIGURES = [Events(), Detection(), Graphs()]
