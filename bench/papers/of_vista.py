"""Figures 5 and 6 of Vista (Lowell and Chen, SOSP'97), drawn by draw.py."""
from chart import Chart, brief
from figure import Claim, Figure, engine, middle, overhead, rates, ratio, titles

MIB = 1 << 20
ACCOUNT = 128                           # bytes
HISTORY = 2 * MIB + 44 * ACCOUNT        # in addition to the accounts
WAREHOUSE, ITEMS = 59810336, 10372864   # bytes of a warehouse, and of what all warehouses share
USUAL = 50 * MIB


class Overhead(Figure):
    name = "vista-5a"
    shows = "It shows what a transaction of one range costs beyond the same writes without " \
        "transactions, by its size: with Vista's undo log alone, with one mirror over shared " \
        "memory and over tcp (of this host), by RVM's interface, and with the redo log of " \
        "Berkeley DB in a file in memory, as RVM on Rio had it, and on a disk, as RVM had it."
    KINDS = {"Vista's scheme, no mirror": ("shm", "local", "busy_rates"),
             "Perseas, shm": ("shm", "perseas", "busy_rates"),
             "RVM's interface on Perseas, shm": ("shm", "rvm", "busy_rates"),
             "Perseas, tcp": ("tcp", "perseas", "rates"),
             "Berkeley DB, in memory": ("shm", "bdb", "busy_rates"),
             "Berkeley DB, on a disk": ("disk", "bdb-sync", "rates")}

    def sizes(self, lab):
        return lab.pick([8, MIB], [8, 1024, 16384, MIB],
                        [8, 64, 512, 1024, 4096, 16384, 65536, 262144, MIB])

    def measure(self, lab):
        for size in self.sizes(lab):
            lab.run("%s, shm, %d" % (self.name, size), "synthetic",
                    ["none", "local", "perseas", "rvm", *lab.known("bdb")], size=size)
            lab.run("%s, tcp, %d" % (self.name, size), "synthetic", ["perseas"], fabric="tcp",
                    size=size)
            if lab.known("bdb-sync") and lab.form != "tiny":
                lab.run("%s, disk, %d" % (self.name, size), "synthetic", ["bdb-sync"], size=size,
                        place=lab.place)

    def at(self, results, label, size):
        where, name, kind = self.KINDS[label]
        return overhead(rates(results, "%s, %s, %d" % (self.name, where, size), name, kind),
                        rates(results, "%s, shm, %d" % (self.name, size), "none", "busy_rates"))

    def charts(self, results):
        sizes = [int(size) for size in titles(results, self.name + ", shm, ")]
        lines = {label: [(size, self.at(results, label, size)) for size in sizes
                         if self.at(results, label, size)] for label in self.KINDS}
        return [Chart(self.name, "Overhead of a transaction", "bytes", "us", lines)]

    def claims(self, results, numbers):
        def of(label, size):
            return self.at(results, label, size)

        def a_byte(size):
            rounds = of(vista, size)
            return rounds and [us / size for us in rounds]

        vista = "Vista's scheme, no mirror"
        yield Claim("An undo log in memory costs small transactions no more than 5 us",
                    "Vista's scheme at 8 bytes", middle(of(vista, 8)), "<=",
                    numbers.value(self.name, "Vista", 8), " us")
        yield Claim("Beyond 1 KB it grows linearly with the size",
                    "a byte at 1 MiB, divided by a byte at 16 KiB,",
                    ratio(a_byte(MIB), a_byte(16384)), "<=", 2, " times")
        yield Claim("It is 100 times as fast as a redo log in memory",
                    "Berkeley DB in memory at 8 bytes, divided by Vista's scheme,",
                    ratio(of("Berkeley DB, in memory", 8), of(vista, 8)), ">=", 100, " times")
        yield Claim("It is 2000 times as fast as a redo log on a disk",
                    "Berkeley DB on a disk at 8 bytes, divided by Vista's scheme,",
                    ratio(of("Berkeley DB, on a disk", 8), of(vista, 8)), ">=", 2000, " times")


class Databases(Figure):
    """Figures 5b and 5c: one benchmark each."""
    SIZES = ([10 * MIB], [10 * MIB, 50 * MIB, 200 * MIB, 800 * MIB],
             [MIB * size for size in (10, 25, 50, 100, 200, 400, 800, 2048, 4096, 8192)])
    KINDS = {"Vista's scheme, no mirror": ("shm", "local", "busy_rates"),
             "Perseas, shm": ("shm", "perseas", "busy_rates"),
             "Perseas, tcp": ("tcp", "perseas", "rates"),
             "Berkeley DB, in memory": ("peers", "bdb", "busy_rates"),
             "Berkeley DB, on a disk": ("disk", "bdb-sync", "rates")}

    def __init__(self, name, work):
        self.name, self.work = name, work
        self.shows = "It shows the rate of %s by the size of the database, with Vista's scheme " \
            "and with one mirror; where this host has no memory for it, the line ends. In the " \
            "paper large databases were slow because they were paged. Here they are in memory: a " \
            "row of a large one is seldom in a cache, nor its page in the TLB, with a mirror or " \
            "without." % work

    def size_of(self, count):
        """Returns the workload's size for a database of `count` bytes, and its exact bytes."""
        if self.work == "debit-credit":
            accounts = (count - HISTORY) // ACCOUNT
            return accounts, accounts * ACCOUNT + HISTORY
        houses = max(1, round((count - ITEMS) / WAREHOUSE))
        return houses, houses * WAREHOUSE + ITEMS

    def measure(self, lab):
        sizes = dict.fromkeys(self.size_of(count) for count in lab.pick(*self.SIZES))
        for size, count in sizes:
            # Memory for the owner and its mirror, for the scheme without a mirror, and for the
            # check; or for one after another if memory has no room for all of them. While
            # order-entry's tables are filled, there is a second copy of them.
            if not lab.fits(self.name, count, 3 if self.work == "order-entry" else 2):
                break
            apart = [] if lab.holds(4 * count) else ["--apart"]
            lab.run("%s, shm, %d" % (self.name, count), self.work, ["local", "perseas"], *apart,
                    size=size, room=2 * count)
            lab.run("%s, tcp, %d" % (self.name, count), self.work, ["perseas"], *apart,
                    fabric="tcp", size=size, room=2 * count)
        self.beside_peers(lab)

    def beside_peers(self, lab):
        """Runs the peers at the usual size, in memory and on a disk."""
        size, count = self.size_of(USUAL)
        if lab.form == "tiny" or not lab.known("bdb"):
            return
        lab.run("%s, peers, %d" % (self.name, count), self.work, ["local", "bdb"], size=size)
        lab.run("%s, disk, %d" % (self.name, count), self.work, ["bdb-sync"], size=size,
                place=lab.place)

    def charts(self, results):
        lines = {}
        for label, (where, name, kind) in self.KINDS.items():
            prefix = "%s, %s, " % (self.name, where)
            lines[label] = [(int(count), rates(results, prefix + count, name, kind))
                            for count in titles(results, prefix)
                            if engine(results, prefix + count, name)]
        return [Chart(self.name, self.work, "bytes of the database", "transactions a second",
                      lines, "/s")]

    def claims(self, results, numbers):
        shown = self.charts(results)[0].lines.get("Perseas, shm", ())
        points = [middle(rounds) for _, rounds in shown]
        # Over tcp the host dominates: the sizes do not take turns.
        yield Claim("As long as memory holds the database its size hardly matters",
                    "Perseas over shm at its slowest, divided by its fastest,",
                    min(points) / max(points) if len(points) > 1 else None, ">=", 0.8)
        count = self.size_of(USUAL)[1]
        for where, peer, system, kind in (("peers", "bdb", "Vista to RVM on Rio", "busy_rates"),
                                          ("disk", "bdb-sync", "Vista to RVM", "rates")):
            factor = numbers.value(self.name, system, self.work)
            vista = rates(results, "%s, peers, %d" % (self.name, count), "local", kind)
            other = rates(results, "%s, %s, %d" % (self.name, where, count), peer, kind)
            yield Claim("Vista's scheme is %s times as fast as a redo log %s" % (
                            brief(factor), "in memory" if where == "peers" else "on a disk"),
                        "Vista's scheme, divided by Berkeley DB,", ratio(vista, other), ">=",
                        factor, " times")

    def notes(self, results, numbers):
        """Yields how much a larger database slows transactions without a mirror, which is not
        caused by mirroring."""
        for label in list(self.KINDS)[:2]:
            points = self.charts(results)[0].lines.get(label, [])
            if len(points) > 1:
                yield "A transaction takes %s times as long in the largest database as in the " \
                    "smallest: %s." % (brief(middle(points[0][1]) / middle(points[-1][1])), label)


class Groups(Figure):
    name = "vista-6"
    shows = "It shows what it is worth to wait for several commits at once (NOWAIT, 1, 8 and 64) " \
        "over tcp (of this host) to one mirror: the rate of each benchmark, and Vista's scheme " \
        "without a mirror."
    WORKS = {"debit-credit": ("debit-credit", None), "order-entry": ("order-entry", None),
             "8 bytes": ("synthetic", 8), "64 KiB": ("synthetic", 65536)}
    GROUPS = {1: "perseas", 8: "nowait-8", 64: "nowait-64"}

    def measure(self, lab):
        for label, (work, size) in self.WORKS.items():
            lab.run("%s, %s" % (self.name, label), work, [*self.GROUPS.values(), "local"],
                    fabric="tcp", size=size, room=800 * MIB)

    def charts(self, results):
        lines = {label: [(group, rates(results, "%s, %s" % (self.name, label), name))
                         for group, name in self.GROUPS.items()] for label in self.WORKS}
        for label in self.WORKS:
            lines[label + ", Vista's scheme"] = [
                (1, rates(results, "%s, %s" % (self.name, label), "local"))]
        return [Chart(self.name, "Group commit", "transactions of a group",
                      "transactions a second", lines, "/s")]

    def claims(self, results, numbers):
        def gain(label):
            title = "%s, %s" % (self.name, label)
            return ratio(rates(results, title, "nowait-64"), rates(results, title, "perseas"))

        for label in ("debit-credit", "order-entry"):
            yield Claim("Group commit improves the throughput of %s" % label,
                        "the rate with groups of 64, divided by that of single commits,",
                        gain(label), ">", 1, " times")
        yield Claim("It gains less where transactions are large",
                    "the gain at 64 KiB", gain("64 KiB"), "<", gain("8 bytes"), " times")
        for label in ("debit-credit", "order-entry"):
            title = "%s, %s" % (self.name, label)
            yield Claim("%s with group commit stays behind Vista's scheme" % label,
                        "Vista's scheme, divided by groups of 64,",
                        ratio(rates(results, title, "local"), rates(results, title, "nowait-64")),
                        ">", 1, " times")


FIGURES = [Overhead(), Databases("vista-5b", "debit-credit"), Databases("vista-5c", "order-entry"),
           Groups()]
