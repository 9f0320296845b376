"""The rows of a benchmark's table: a value, what it is compared with, and whether it meets its
target."""
import csv
import json
import operator
import statistics

FIELDS = ["name", "value", "unit", "against", "against_value", "ratio", "target", "met",
          "ratio_min", "ratio_max", "rounds", "survives"]
COMPARE = {">=": operator.ge, "<=": operator.le}


def met(ratio, target):
    """Returns whether a ratio meets a target such as ">= 0.35", or None without a target."""
    if target is None:
        return None
    sign, bound = target.split()
    return COMPARE[sign](ratio, float(bound))


class Report:
    def __init__(self):
        self.rows = []

    def add(self, name, unit, rounds, against=None, against_rounds=None, target=None,
            survives=None):
        """Adds a row: the medians of the rounds, and the spread of the rounds' ratios. Compares
        rounds of the same number, because these were measured one right after the other."""
        row = dict.fromkeys(FIELDS)
        row.update(name=name, value=statistics.median(rounds), unit=unit, rounds=len(rounds),
                   survives=survives)
        if against:
            ratios = [a / b for a, b in zip(rounds, against_rounds)]
            row.update(against=against, against_value=statistics.median(against_rounds),
                       ratio_min=min(ratios), ratio_max=max(ratios))
            row["ratio"] = row["value"] / row["against_value"]
            row.update(target=target, met=met(row["ratio"], target))
        self.rows.append(row)
        return row

    def write(self, path):
        """Writes the rows to `path` as JSON, and next to it as CSV."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.rows, indent=1) + "\n")
        with open(path.with_suffix(".csv"), "w", newline="") as out:
            writer = csv.DictWriter(out, FIELDS)
            writer.writeheader()
            writer.writerows(self.rows)

    def table(self):
        """Returns the table in Markdown: first the rows with a target, then the rest."""
        lines = ["| what | value | against | value | ratio (rounds) | target | met |",
                 "|---|--:|---|--:|--:|---|---|"]
        for wanted in (True, False):
            lines += [line(row) for row in self.rows if (row["target"] is not None) == wanted]
        return "\n".join(lines)


def figure(value):
    """Formats a number with three significant digits and thousands separators."""
    if value is None:
        return ""
    if abs(value) >= 100:
        return "{:,.0f}".format(value)
    return "{:.3g}".format(value)


def line(row):
    ratio = ""
    if row["ratio"] is not None:
        ratio = "%s (%s - %s)" % tuple(figure(row[k]) for k in ("ratio", "ratio_min", "ratio_max"))
    verdict = {None: "", True: "yes", False: "**no**"}[row["met"]]
    return "| %s | %s %s | %s | %s | %s | %s | %s |" % (
        row["name"], figure(row["value"]), row["unit"], row["against"] or "",
        figure(row["against_value"]), ratio, row["target"] or "", verdict)
