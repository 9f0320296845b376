#!/usr/bin/env python3
"""Draws figures of the papers again, with the same work on this host: charts, and a page that shows
them beside the papers' numbers, in build/figures/. It exits with 1 if a figure could not be
measured, or if a database held something else afterwards than its transactions make."""
import argparse
import json
import pathlib
import subprocess
import sys
import time

import of_perseas
import of_rhino
import of_rvm
import of_stasis
import of_vista
from chart import draw
from figure import Numbers, verdict
from lab import FORMS, Lab, host
from page import page, section

FIGURES = [*of_perseas.FIGURES, *of_vista.FIGURES, *of_stasis.FIGURES,
           *of_rvm.FIGURES, *of_rhino.FIGURES]


class Drawn:
    """What came of a figure."""

    def __init__(self, failed=None, left_out=()):
        self.charts, self.claims = [], []
        self.failed, self.left_out = failed, left_out


def measure(lab, figures):
    """Runs all of them. What failed, by name."""
    failed = {}
    for figure in figures:
        print("%s" % figure.name, flush=True)
        try:
            figure.measure(lab)
        except (RuntimeError, OSError, TimeoutError, subprocess.TimeoutExpired) as error:
            failed[figure.name] = str(error)
            print("figures: %s: %s" % (figure.name, error), file=sys.stderr, flush=True)
    return failed


def draw_figure(figure, kept, numbers, folder):
    """Writes its charts. What was drawn of it; nothing if its databases were wrong."""
    drawn = Drawn(kept["failed"].get(figure.name), kept["left_out"].get(figure.name, ()))
    if drawn.failed:
        return drawn
    lines = numbers.figures[figure.name]["lines"]
    for chart in figure.charts(kept["results"]):
        if chart.lines:
            file = chart.name + ".svg"
            (folder / file).write_text(draw(chart, lines, numbers.papers))
            drawn.charts.append((chart, file))
    drawn.claims = list(figure.claims(kept["results"], numbers))
    return drawn


def draw_all(figures, kept, folder):
    """The charts and the page."""
    numbers, sections = Numbers(), []
    for figure in figures:
        drawn = draw_figure(figure, kept, numbers, folder)
        sections.append(section(figure, numbers.figures[figure.name], numbers.papers, drawn))
        if not drawn.failed:
            print("%s: %s" % (figure.name, verdict(drawn.claims)))
            for claim in drawn.claims:
                print("  " + claim.sentence())
    (folder / "index.html").write_text(page(sections, kept["host"], kept["form"]))
    print(folder / "index.html")


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--output", type=pathlib.Path, help="default: figures/ in the build")
    parser.add_argument("--form", choices=sorted(FORMS), default="short",
                        help="how long: seconds, minutes, an hour")
    parser.add_argument("--only", action="append", metavar="NAME",
                        choices=[figure.name for figure in FIGURES],
                        help="a figure; may be given more than once")
    parser.add_argument("--again", action="store_true",
                        help="measure nothing, and draw what is in results.json")
    parser.add_argument("--spoil", action="store_true",
                        help="change a byte of each database before it is checked")
    return parser.parse_args()


def main():
    args = parse()
    build = args.build.resolve()
    folder = (args.output or build / "figures").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    figures = [f for f in FIGURES if not args.only or f.name in args.only]
    file = folder / "results.json"
    if args.again:
        kept = json.loads(file.read_text())
    else:
        lab = Lab(build, args.form, args.spoil)
        lab.place = folder
        begun = time.monotonic()
        failed = measure(lab, figures)
        print("measured in %.0f s" % (time.monotonic() - begun))
        kept = {"form": args.form, "host": host(build), "results": lab.results,
                "failed": failed, "left_out": lab.left_out}
        file.write_text(json.dumps(kept, indent=1) + "\n")
    draw_all(figures, kept, folder)
    return 1 if kept["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
