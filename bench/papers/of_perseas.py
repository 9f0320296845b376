"""Figure 4 and table 1 of PERSEAS (Papathanasiou and Markatos, ICDCS'98), drawn by draw.py."""
from chart import Chart
from figure import Claim, Figure, engine, middle, rates, ratio, titles, took

MIB = 1 << 20
ON_DISK = ("bdb-sync", "sqlite-sync", "lmdb-sync")
WORKS = ("debit-credit", "order-entry")


class Sizes(Figure):
    name = "perseas-4"
    shows = "It shows how long a transaction takes that overwrites one range, by its size: the " \
        "median of latencies, with one mirror, over tcp (of this host) and over shared memory, " \
        "beside a commit that waits for a disk."

    def measure(self, lab):
        for size in lab.pick([4, MIB], [4, 64, 1024, 16384, MIB],
                             [4, 8, 64, 256, 1024, 4096, 16384, 65536, 262144, MIB]):
            for fabric in ("tcp", "shm"):
                lab.run("%s, %s, %d" % (self.name, fabric, size), "synthetic", ["perseas"],
                        fabric=fabric, size=size)
        disk = lab.known("bdb-sync")
        if disk and lab.form != "tiny":
            lab.run(self.name + ", disk, 8", "synthetic", disk, size=8, place=lab.place)

    def charts(self, results):
        lines = {}
        for fabric in ("tcp", "shm"):
            prefix = "%s, %s, " % (self.name, fabric)
            lines["Perseas, " + fabric] = [(int(size), took(results, prefix + size, "perseas"))
                                           for size in titles(results, prefix)]
        disk = took(results, self.name + ", disk, 8", "bdb-sync")
        lines["Berkeley DB on a disk"] = [(8, disk)] if disk else []
        return [Chart(self.name, "Transaction of one range", "bytes", "us, median", lines, "us")]

    def claims(self, results, numbers):
        def of(fabric, size):
            return middle(took(results, "%s, %s, %d" % (self.name, fabric, size), "perseas"))

        yield from (Claim("Very small transactions complete within 14 us",
                          "the median at 4 bytes over %s" % fabric, of(fabric, 4), "<=",
                          numbers.value(self.name, "PERSEAS", 4), " us")
                    for fabric in ("tcp", "shm"))
        yield Claim("1 MByte takes less than a tenth of a second",
                    "the median at 1 MiB over tcp", of("tcp", MIB), "<",
                    numbers.value(self.name, "PERSEAS", MIB), " us")
        disk = took(results, self.name + ", disk, 8", "bdb-sync")
        yield Claim("That is orders of magnitude less than a commit that waits for a disk",
                    "Berkeley DB on a disk, divided by Perseas over tcp at 4 bytes,",
                    disk and ratio(disk, [of("tcp", 4)]), ">=", 10, " times")


class Rates(Figure):
    name = "perseas-1"
    shows = "It shows transactions a second of debit-credit and order-entry, with one mirror " \
        "over tcp (of this host) and over shared memory, beside Vista's scheme without a mirror, " \
        "RVM's interface on the same mirror, and others that wait for a disk."

    def measure(self, lab):
        for work in WORKS:
            lab.run("%s, shm, %s" % (self.name, work), work, ["perseas", "local", "rvm"])
            lab.run("%s, tcp, %s" % (self.name, work), work, ["perseas"], fabric="tcp")
            disk = lab.known(*ON_DISK)
            if disk and lab.form != "tiny":
                lab.run("%s, disk, %s" % (self.name, work), work, disk, place=lab.place)

    def charts(self, results):
        rows = {"Perseas, tcp": ("tcp", "perseas"), "Perseas, shm": ("shm", "perseas"),
                "Vista's scheme, no mirror": ("shm", "local"),
                "RVM's interface on Perseas, shm": ("shm", "rvm"),
                **{"%s, on a disk" % name: ("disk", name) for name in ON_DISK}}
        lines = {label: [(work, rates(results, "%s, %s, %s" % (self.name, where, work), name,
                                      "busy_rates" if where == "shm" else "rates"))
                         for work in WORKS
                         if engine(results, "%s, %s, %s" % (self.name, where, work), name)]
                 for label, (where, name) in rows.items()}
        return [Chart(self.name, "Benchmarks", "", "transactions a second", lines, "/s")]

    def claims(self, results, numbers):
        for work in WORKS:
            ours = numbers.value(self.name, "PERSEAS", work)
            vista = numbers.value(self.name, "Vista, as cited", work)
            title = "%s, shm, %s" % (self.name, work)
            yield Claim("%s comes as close to Vista as it did" % work,
                        "Perseas over shm, divided by Vista's scheme,",
                        ratio(rates(results, title, "perseas", "busy_rates"),
                              rates(results, title, "local", "busy_rates")), ">=", ours / vista)
            disk = "%s, disk, %s" % (self.name, work)
            best = max((middle(rates(results, disk, name)) for name in ON_DISK
                        if engine(results, disk, name)), default=None)
            mirrored = rates(results, "%s, tcp, %s" % (self.name, work), "perseas")
            yield Claim("%s outperforms what waits for a disk by 1 to 2 orders of magnitude" % work,
                        "Perseas over tcp, divided by the fastest of them,",
                        ratio(mirrored, best and [best]), ">=", 10, " times")


FIGURES = [Sizes(), Rates()]
