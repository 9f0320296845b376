"""Figure 6 of Rhino (Saito and Bershad, USENIX'98), drawn by draw.py: RVM's benchmark, where the
library is told what changes by ranges, by whole pages, or not at all."""
from chart import Chart
from figure import Claim, Figure, middle, rates, titles
from lab import MIB

WAYS = {"perseas": "set_range", "pages": "whole pages", "tracked": "page diffing (TRACK)"}
ROW = 256                               # bytes of memory for each account


class Detection(Figure):
    name = "rhino-6"
    shows = "It shows what a small transaction (RVM's TPC-A, random) takes by the size of the " \
        "database, with one mirror over shared memory, where ranges are declared, where whole " \
        "pages are, and where the library compares the pages that were written. All of it is in " \
        "memory."

    def measure(self, lab):
        for size in lab.pick([MIB], [MIB, 16 * MIB, 128 * MIB],
                             [MIB * size for size in (1, 4, 16, 64, 256, 1024)]):
            # Three owners, one of which has a second copy, three mirrors', and the check's.
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


FIGURES = [Detection()]
