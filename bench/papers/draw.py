#!/usr/bin/env python3
"""Draws figures of the papers again, with the same work on this host: charts, and a page that shows
them next to the papers' numbers, in build/figures/. Exits with status 1 if a figure could not be
measured, or if a database differed in the end from what its transactions produce."""
import argparse
import json
import pathlib
import signal
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
from lab import FORMS, MIB, Lab, host
from page import page, section

FIGURES = [*of_perseas.FIGURES, *of_vista.FIGURES, *of_stasis.FIGURES,
           *of_rvm.FIGURES, *of_rhino.FIGURES]


class Drawn:
    """The charts, claims and failures of a figure."""

    def __init__(self, failed=None, left_out=()):
        self.charts, self.claims, self.notes = [], [], []
        self.failed, self.left_out = failed, left_out


def of_figure(figure, title):
    return title == figure.name or title.startswith(figure.name + ", ")


def measure(lab, figures, kept, file):
    """Measures all figures. Saves the results after each, because a run may take hours."""
    lab.results, lab.left_out = kept["results"], kept["left_out"]
    for figure in figures:
        print("%s" % figure.name, flush=True)
        for title in [title for title in lab.results if of_figure(figure, title)]:
            del lab.results[title]
        for told in (kept["failed"], lab.left_out):
            told.pop(figure.name, None)
        begun = time.monotonic()
        try:
            figure.measure(lab)
        except (RuntimeError, OSError, TimeoutError, subprocess.TimeoutExpired) as error:
            kept["failed"][figure.name] = str(error)
            print("figures: %s: %s" % (figure.name, error), file=sys.stderr, flush=True)
        kept["took"][figure.name] = round(time.monotonic() - begun)
        print("  took %d s" % kept["took"][figure.name], flush=True)
        kept["done"] = [f.name for f in FIGURES if f is figure or f.name in kept["done"]]
        part = file.with_suffix(".part")
        part.write_text(json.dumps(kept, indent=1) + "\n")
        part.replace(file)


def draw_figure(figure, kept, numbers, folder):
    """Writes the figure's charts. Returns what was drawn; nothing if its databases were wrong."""
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
    drawn.notes = list(figure.notes(kept["results"], numbers))
    return drawn


def draw_all(figures, kept, folder):
    """Writes the charts and the page."""
    numbers, sections = Numbers(), []
    for figure in figures:
        drawn = draw_figure(figure, kept, numbers, folder)
        sections.append(section(figure, numbers.figures[figure.name], numbers.papers, drawn))
        if not drawn.failed:
            print("%s: %s" % (figure.name, verdict(drawn.claims)))
            for sentence in [claim.sentence() for claim in drawn.claims] + drawn.notes:
                print("  " + sentence)
    (folder / "index.html").write_text(page(sections, kept["host"], kept["form"],
                                             sum(kept["took"].values())))
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
    parser.add_argument("--memory", type=int, metavar="MIB",
                        help="take no more than this, where others need the rest; default: what "
                        "is free")
    parser.add_argument("--again", action="store_true",
                        help="measure nothing, and draw what is in results.json")
    parser.add_argument("--add", action="store_true",
                        help="keep what is in results.json, and measure those of --only anew, or "
                        "without it those that are missing there, as after a run that was ended")
    parser.add_argument("--spoil", action="store_true",
                        help="change a byte of each database before it is checked")
    return parser.parse_args()


def begin(args, build, file):
    """Returns the saved results, and the figures to measure."""
    kept = {"form": args.form, "host": host(build), "results": {}, "failed": {}, "left_out": {},
            "took": {}, "done": []}
    wanted = [f for f in FIGURES if not args.only or f.name in args.only]
    if not (args.add or args.again) or not file.exists() and args.add:
        return kept, wanted
    kept = {**kept, **json.loads(file.read_text())}
    if args.again:
        return kept, []
    if kept["form"] != args.form:
        raise SystemExit("%s is of the %s form: give --form %s, or leave --add out" % (
            file, kept["form"], kept["form"]))
    return kept, wanted if args.only else [f for f in wanted if f.name not in kept["done"]]


def end(number, _):
    """Ends with an exception, so that the mirrors are stopped: their memory may be most of this
    host's."""
    raise SystemExit(128 + number)


def main():
    args = parse()
    signal.signal(signal.SIGTERM, end)
    build = args.build.resolve()
    folder = (args.output or build / "figures").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "results.json"
    kept, figures = begin(args, build, file)
    if figures:
        lab = Lab(build, args.form, args.spoil, args.memory and args.memory * MIB)
        lab.place = folder
        measure(lab, figures, kept, file)
        print("measured in %d s, of the %d s that all of them took" % (
            sum(kept["took"].get(f.name, 0) for f in figures), sum(kept["took"].values())))
    shown = args.only if args.only and not args.add else kept["done"]
    draw_all([f for f in FIGURES if f.name in shown], kept, folder)
    return 1 if kept["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
