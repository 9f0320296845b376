"""Adds RVM's interface to the table of `make bench` (run.py): compared with the same transactions
through the library's own interface, in turn, and with RVM's own library. Debian has no package of
RVM, so its rate was measured on another machine and cannot be measured here. The number and its
source are in papers/numbers.json; it is not adjusted for the difference between the machines."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "papers"))

from figure import Numbers  # noqa: E402

WORKS = {"debit-credit": ("debit-credit", None), "8 bytes": ("synthetic", 8)}
MODES = {"flush": "rvm", "no_flush": "rvm-no-flush"}
FIGURE, SYSTEM = "librvm-1", "librvm on tmpfs, flush"   # in numbers.json
TIMES, PART = 10, 0.8                   # targets: times RVM's own rate, and part of the library's


def apart():
    """Returns the rate of debit-credit on RVM's own library, and a description of that
    measurement."""
    numbers = Numbers()
    return numbers.value(FIGURE, SYSTEM, "debit-credit"), \
        "RVM's debit-credit, measured apart (%s)" % numbers.papers["librvm"]["machine"]


def measure(bench):
    """Adds a row for each workload and each way to end a transaction."""
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
