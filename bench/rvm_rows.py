"""RVM's interface in the table of `make bench` (run.py): against the same transactions by the
library itself, in turn, and against what was published of RVM's own library, which no package of
Debian has. The published number and its machine are those of papers/numbers.json, and nothing here
makes up for the difference between the machines."""
import json
import pathlib

NUMBERS = pathlib.Path(__file__).resolve().parent / "papers/numbers.json"
WORKS = {"debit-credit": ("debit-credit", None), "8 bytes": ("synthetic", 8)}
MODES = {"flush": "rvm", "no_flush": "rvm-no-flush"}
TIMES, PART = ">= 10", ">= 0.8"         # what is published, and the library's own rate


def published():
    """Transactions of debit-credit a second, and of what, in words."""
    told = json.loads(NUMBERS.read_text())
    line = next(line for line in told["figures"]["librvm-1"]["lines"] if line["unit"] == "/s")
    return line["points"][0][1], "RVM's debit-credit as published (%s)" % (
        told["papers"]["librvm"]["machine"])


def measure(bench):
    """Adds a row for each kind of transaction and each way to end one."""
    rate, what = published()
    for label, (work, size) in WORKS.items():
        with bench.cluster(1) as cluster:
            engines = bench.compare("rvm, " + label, cluster, work, ["perseas", *MODES.values()],
                                    size=size)["engines"]
        for mode, name in MODES.items():
            title = "%s, RVM's interface, %s, shm, 1 mirror" % (label, mode)
            rounds = engines[name]["busy_rates"]
            bench.report.add(title, "/s", rounds, what, [rate] * len(rounds), TIMES)
            if mode == "flush":
                bench.report.add(title, "/s", rounds, "perseas", engines["perseas"]["busy_rates"],
                                 PART)
