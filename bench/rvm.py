"""RVM's interface in the table of `make bench` (run.py): beside the same transactions by the
library itself, which take turns with it, and beside RVM's own library. No package of Debian has
that, so no command here runs it: its number was measured apart, on another machine. The number and
its source are in papers/numbers.json, and nothing here makes up for the difference between the
machines."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "papers"))

from figure import Numbers  # noqa: E402

WORKS = {"debit-credit": ("debit-credit", None), "8 bytes": ("synthetic", 8)}
MODES = {"flush": "rvm", "no_flush": "rvm-no-flush"}
FIGURE, SYSTEM = "librvm-1", "librvm on tmpfs, flush"   # of numbers.json
TIMES, PART = 10, 0.8                   # of RVM's own rate, and of the library's, at least


def apart():
    """RVM's own transactions of debit-credit a second, and what they are, in words."""
    numbers = Numbers()
    return numbers.value(FIGURE, SYSTEM, "debit-credit"), \
        "RVM's debit-credit, measured apart (%s)" % numbers.papers["librvm"]["machine"]


def measure(bench):
    """Adds a row for each kind of transaction and each way to end one."""
    rate, what = apart()
    for label, (work, size) in WORKS.items():
        with bench.cluster(1) as cluster:
            engines = bench.compare("rvm, " + label, cluster, work, ["perseas", *MODES.values()],
                                    size=size)["engines"]
        for mode, name in MODES.items():
            title = "%s, RVM's interface, %s, shm, 1 mirror" % (label, mode)
            rounds = engines[name]["busy_rates"]
            bench.report.add(title, "/s", rounds, what, [rate] * len(rounds), ">= %g" % TIMES)
            if mode == "flush":
                bench.report.add(title, "/s", rounds, "perseas", engines["perseas"]["busy_rates"],
                                 ">= %g" % PART)
