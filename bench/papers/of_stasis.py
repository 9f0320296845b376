"""Figures 4 and 5 of Stasis (Sears and Brewer, OSDI'06), drawn by draw.py: inserts into a hash
table, many in one transaction, and one in each transaction of many threads."""
import shutil
import tempfile

from chart import Chart
from figure import Claim, Figure, Target, middle
from lab import MIB

OTHERS = {"bdb": "Berkeley DB, hash table", "bdb-tree": "Berkeley DB, B-tree", "lmdb": "LMDB"}
FABRICS = ("shm", "tcp")
LARGE = 100000                          # inserts of a transaction, measured in few rounds
DISK = "Berkeley DB, hash table, on a disk"


def insert(lab, title, fabric, ways, *words, place="/dev/shm", room=3072 * MIB):
    """Runs inserts. Fails if a table does not have the inserted pairs at the end."""
    words += ("--spoil",) if lab.spoil else ()
    folder = tempfile.mkdtemp(prefix="perseas-inserts-", dir=place)
    try:
        with lab.cluster(1, room=room, cpus={}) as cluster:
            mirrors = cluster.unix() if fabric == "shm" else cluster.tcp()
            lab.results[title] = lab.program(
                cluster, lab.inserter, "--mirrors", mirrors, "--dir", folder, "--ways",
                ",".join(ways), "--spin-us", 1, *words)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def lines_of(results, title, names, kind="rates"):
    """Returns the lines of a run, {label: [(number, rates)]}; `names` is {way: label}."""
    found = {}
    for key, entry in results.get(title, {}).get("ways", {}).items():
        way, number = key.rsplit(" ", 1)
        if way in names:
            found.setdefault(names[way], []).append((int(number), entry[kind]))
    return found


def worst(lines, label, other, most=None):
    """Returns the smallest ratio of a line's medians to another's, and its place."""
    beside = dict(lines.get(other, ()))
    ratios = [(middle(rounds) / middle(beside[x]), x) for x, rounds in lines.get(label, ())
              if middle(beside.get(x)) and (most is None or x <= most)]
    return min(ratios, default=(None, None))


def in_threads(count):
    return "%s thread%s" % (count, "s" * (count != 1))


class Bulk(Figure):
    name = "stasis-4"
    shows = "It shows inserts a second when so many of them are one transaction: the hash table " \
        "of doc/examples, with one mirror, and the tables of others, whose files are in memory. " \
        "A round adds as many keys again; from 100,000 inserts on there are three rounds. Over " \
        "shared memory, and in the tables of others, what counts is the thread's processor time."

    def measure(self, lab):
        peers = list(OTHERS) if lab.known("bdb") else []
        # Each size has its own tables.
        for count in lab.pick([100], [1000, 10000, 100000],
                              [100, 1000, 10000, 50000, 100000, 200000, 400000]):
            for fabric in FABRICS:
                insert(lab, "%s, %s, %d" % (self.name, fabric, count), fabric,
                       ["hash"] + (peers if fabric == "shm" else []), "--bulk", count, "--rounds",
                       lab.pick(2, 3, 5 if count < LARGE else 3))

    def lines(self, results, kind="busy_rates"):
        """Uses processor time for a thread that waits for nothing, so that other load has no
        effect. Over tcp it waits for the mirror once, so time is used."""
        lines = {}
        for fabric in FABRICS:
            names = {"hash": "Perseas, " + fabric, **(OTHERS if fabric == "shm" else {})}
            for title in results:
                if title.startswith("%s, %s, " % (self.name, fabric)):
                    counted = kind if fabric == "shm" else "rates"
                    for label, points in lines_of(results, title, names, counted).items():
                        lines.setdefault(label, []).extend(points)
        return lines

    def charts(self, results):
        return [Chart(self.name, "One transaction", "inserts of a transaction",
                      "inserts a second", self.lines(results))]

    def claims(self, results, numbers):
        for fabric, kind in (("shm", "busy_rates"), ("tcp", "rates")):
            ahead, count = worst(self.lines(results, kind=kind), "Perseas, " + fabric,
                                 OTHERS["bdb"])
            yield Claim("A hash table on general transactions outperforms Berkeley DB's at every "
                        "size", "Perseas over %s at %s inserts, divided by Berkeley DB," % (
                            fabric, count), ahead, ">",
                        numbers.value(self.name, "Stasis to Berkeley DB", "bulk insert"), " times")


class Threads(Figure):
    name = "stasis-5"
    shows = "It shows inserts a second of so many threads, each insert in its own transaction: " \
        "the hash table of doc/examples with one mirror, and the tables of others, whose files " \
        "are in memory, and Berkeley DB's on a disk. On this host all threads and the mirror " \
        "share its processors."

    def measure(self, lab):
        peers = list(OTHERS) if lab.known("bdb") else []
        words = ["--threads", lab.pick("1,3", "1,8,50,200", "1,2,5,10,20,50,100,200"), "--seconds",
                 lab.pick(0.02, 0.1, 0.2), "--rounds", lab.pick(2, 3, 5)]
        for fabric in FABRICS:
            insert(lab, "%s, %s" % (self.name, fabric), fabric, ["hash", *peers], *words)
        if peers and lab.form != "tiny":
            insert(lab, self.name + ", disk", "tcp", ["hash", "bdb"], *words, place=lab.place)

    def lines(self, results, where):
        names = {"hash": "Perseas, " + ("tcp" if where == "disk" else where), **OTHERS}
        if where == "disk":
            names["bdb"] = DISK
        return lines_of(results, "%s, %s" % (self.name, where), names)

    def charts(self, results):
        lines = {**self.lines(results, "disk"), **self.lines(results, "tcp"),
                 **self.lines(results, "shm")}
        return [Chart(self.name, "Threads", "threads", "inserts a second", lines, "/s")]

    def claims(self, results, numbers):
        double = numbers.value(self.name, "Stasis to Berkeley DB", "many threads")
        for where, peer in (("shm", OTHERS["bdb"]), ("tcp", OTHERS["bdb"]), ("disk", DISK)):
            lines = self.lines(results, where)
            ours = "Perseas, " + ("tcp" if where == "disk" else where)
            ahead, threads = worst(lines, ours, peer, most=50)
            yield Claim("It has double Berkeley DB's throughput up to 50 threads",
                        "%s at %s, divided by %s," % (ours, in_threads(threads), peer), ahead,
                        ">=", double, " times")
            _, threads = worst(lines, ours, peer)
            here, other = (middle(dict(lines.get(label, ())).get(threads))
                           for label in (ours, peer))
            yield Target("Inserts where the hash table is least ahead of Berkeley DB's, %s, at %s"
                         % (ours, in_threads(threads)), here, peer, other, ">", 1)
        for fabric in FABRICS:
            points = self.lines(results, fabric).get("Perseas, " + fabric, [(0, None)])
            first, most = middle(points[0][1]), max(middle(rounds) or 0 for _, rounds in points)
            yield Claim("It scales with threads", "the best rate over %s, divided by that of 1 "
                        "thread," % fabric, first and most / first, ">", 1, " times")


FIGURES = [Bulk(), Threads()]
