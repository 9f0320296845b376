#!/usr/bin/env python3
"""Draws the results of `make bench` (build/bench/results.json) as SVG files in the same folder, one
file for each parameter that grows. Error bars are the spread of the rounds."""
import argparse
import json
import pathlib
import re
import statistics
import sys

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402

# Makes the output reproducible.
matplotlib.rcParams.update({"svg.hashsalt": "perseas", "svg.fonttype": "none", "font.size": 9})
MARKERS = "osD^vP*X<>"


def spread(rounds):
    """Returns the median, and how far the smallest and the largest value are from it."""
    middle = statistics.median(rounds)
    return middle, middle - min(rounds), max(rounds) - middle


class Lines:
    """The points of several lines, by name."""

    def __init__(self):
        self.lines = {}

    def add(self, name, x, rounds):
        self.lines.setdefault(name, []).append((x, spread(rounds)))

    def draw(self, path, title, x_name, y_name, log_y=True):
        """Draws the lines. Returns False if there is nothing to draw."""
        if not any(len(points) > 1 for points in self.lines.values()):
            return False
        figure, axes = pyplot.subplots(figsize=(6.4, 4))
        for marker, (name, points) in zip(MARKERS * 2, self.lines.items()):
            points = sorted(points)
            middles = [p[1][0] for p in points]
            errors = [[p[1][1] for p in points], [p[1][2] for p in points]]
            axes.errorbar([p[0] for p in points], middles, errors, marker=marker, markersize=4,
                          capsize=2, linewidth=1, label=name)
        axes.set(title=title, xlabel=x_name, ylabel=y_name)
        axes.set_xscale("log", base=2)
        if log_y:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.grid(True, which="major", linewidth=0.3)
        axes.legend(fontsize=7)
        figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
        pyplot.close(figure)
        return True


def numbered(results, pattern):
    """Yields the results whose titles match, with the number in the title."""
    for title, result in results.items():
        match = re.fullmatch(pattern, title)
        if match:
            yield int(match.group(1)), result


def of_engines(results, pattern, value, engines=None):
    lines = Lines()
    for number, result in numbered(results, pattern):
        for name, entry in result["engines"].items():
            if not engines or name in engines:
                lines.add(name, number, value(entry))
    return lines


def microseconds(entry, kind="busy_rates"):
    """Returns the average time of a transaction in each round."""
    return [1e6 / rate for rate in entry[kind]]


def median_microseconds(entry):
    return [ns / 1e3 for ns in entry["p50s_ns"]]


def of_mirrors(results):
    lines = Lines()
    for fabric, kind in (("shm", "busy_rates"), ("tcp", "rates")):
        for count, result in numbered(results, r"(\d+) mirrors, " + fabric):
            lines.add(fabric, count, microseconds(result["engines"]["perseas"], kind))
    return lines


def of_threads(results):
    lines = Lines()
    for name in ("shm", "tcp + 100 us", "serial, tcp + 100 us"):
        for entry in results.get("threads, " + name, {}).get("series", []):
            lines.add(name, entry["threads"], entry["rates"])
    return lines


def of_recovery(results):
    lines = Lines()
    names = {"map_ms": "read the segment", "open_ms": "open", "copy_ms": "memcpy",
             "copy_new_ms": "memcpy into new memory",
             "copy_beside_ms": "memcpy into new memory by all processors"}
    for size, result in numbered(results, r"recovery, (\d+) bytes"):
        for key, name in names.items():
            lines.add(name, size / (1 << 20), result[key]["rounds"])
    return lines


def draw_all(results, folder):
    """Draws all figures. Returns the files written."""
    plans = [
        ("sizes", of_engines(results, r"synthetic, (\d+) bytes", median_microseconds),
         "A transaction of one range, shm, 1 mirror", "bytes", "us, median"),
        ("ranges", of_engines(results, r"ranges, (\d+)", microseconds),
         "A transaction of ranges of 8 bytes, shm, 1 mirror", "ranges", "us"),
        ("databases", of_engines(results, r"database, (\d+) bytes", microseconds),
         "TPC-A, random accounts, shm, 1 mirror", "bytes of the database", "us"),
        ("mirrors", of_mirrors(results), "Debit-credit, W = a majority", "mirrors", "us"),
        ("threads", of_threads(results), "Threads, 1 mirror", "threads",
         "transactions a second"),
        ("recovery", of_recovery(results), "Recovery over shm", "MiB", "ms"),
    ]
    for name, lines, title, x_name, y_name in plans:
        path = folder / (name + ".svg")
        if lines.draw(path, title, x_name, y_name):
            yield path


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=pathlib.Path, nargs="?",
                        default=pathlib.Path("build/bench/results.json"))
    args = parser.parse_args()
    try:
        results = json.loads(args.results.read_text())
    except (OSError, ValueError) as error:
        print("figures: %s: %s" % (args.results, error), file=sys.stderr)
        return 1
    for path in draw_all(results, args.results.parent):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
