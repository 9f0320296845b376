#!/usr/bin/env python3
"""report.py FOLDER: what the fuzz targets did, by their logs in FOLDER (build/results/fuzz): seeds,
executions, edges of the code that were reached, and inputs that were kept as each reached more."""
import pathlib
import re
import sys


def row(path):
    """Of one log, or None: it is not whole."""
    text = path.read_text(errors="replace")
    seeds = re.search(r"seed corpus: files: (\d+)", text)
    reached = re.findall(r"cov: (\d+) ft: \d+ corp: (\d+)", text)
    runs = re.search(r"stat::number_of_executed_units:\s*(\d+)", text)
    if not reached or not runs:
        return None
    return [path.stem, seeds.group(1) if seeds else "0", "{:,}".format(int(runs.group(1))),
            *reached[-1]]


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    logs = sorted(pathlib.Path(sys.argv[1]).glob("*.log"))
    rows = [["target", "seeds", "executions", "edges", "inputs"]]
    rows += [row(path) or [path.stem, "?", "?", "?", "?"] for path in logs]
    widths = [max(len(line[i]) for line in rows) for i in range(len(rows[0]))]
    for line in rows:
        print("  ".join([line[0].ljust(widths[0])] +
                        [text.rjust(width) for text, width in zip(line[1:], widths[1:])]))
    return 0 if logs and all(line[1] != "?" for line in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
