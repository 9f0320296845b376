"""A figure: how it is measured, what is drawn, and what the paper concluded, as comparisons of
numbers. Whether a conclusion holds is computed here from the results, and written nowhere else. The
modules of_*.py define the figures; draw.py runs them."""
import json
import operator
import pathlib
import statistics

from chart import brief

NUMBERS = pathlib.Path(__file__).resolve().parent / "numbers.json"
COMPARE = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
WORDS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}


class Claim:
    """A conclusion, and the comparison that decides it. A side is None if it was not measured here,
    for example because a peer is missing."""

    def __init__(self, says, what, left, sign, right, unit=""):
        self.says, self.what, self.sign, self.unit = says, what, sign, unit
        self.left, self.right = left, right

    @property
    def holds(self):
        """Returns whether the conclusion holds, or None if a side is missing."""
        if self.left is None or self.right is None:
            return None
        return COMPARE[self.sign](self.left, self.right)

    def sentence(self):
        if self.holds is None:
            return "%s: cannot be said, since %s was not measured." % (self.says, self.what)
        return "%s: %s. %s is %s%s; the conclusion needs %s %s%s." % (
            self.says, "holds" if self.holds else "does not hold",
            self.what[0].upper() + self.what[1:], brief(self.left), self.unit,
            WORDS[self.sign], brief(self.right), self.unit)


class Target(Claim):
    """A goal of Perseas that no paper concluded: a value of this host, another one, and a bound for
    their ratio. Either value may be None."""
    HEAD = ["what", "here", "against", "value", "ratio", "target", "met"]

    def __init__(self, name, here, against, other, sign, bound, unit="/s"):
        super().__init__(name, against, here / other if here and other else None, sign, bound, unit)
        self.here, self.other = here, other

    def sentence(self):
        if self.holds is None:
            return "%s, against %s: cannot be said, since one of both was not measured." % (
                self.says, self.what)
        return "%s: %s %s, against %s %s of %s: %s times; the target, %s %s, is %s." % (
            self.says, brief(self.here), self.unit, brief(self.other), self.unit, self.what,
            brief(self.left), WORDS[self.sign], brief(self.right),
            "met" if self.holds else "missed")

    def row(self):
        """Returns a row of a table with columns HEAD."""
        here, other = ("" if value is None else "%s %s" % (brief(value), self.unit)
                       for value in (self.here, self.other))
        return [self.says, here, self.what, other, "" if self.left is None else brief(self.left),
                "%s %s" % (self.sign, brief(self.right)),
                {True: "yes", False: "no", None: "not measured"}[self.holds]]


class Figure:
    """A figure of a paper. `name` is its key in numbers.json, and the beginning of its results'
    titles."""
    name = ""
    shows = ""                          # a sentence

    def measure(self, lab):
        """Measures the figure and stores the results in lab.results."""
        raise NotImplementedError

    def charts(self, results):
        """Returns the charts: [Chart]."""
        raise NotImplementedError

    def claims(self, results, numbers):
        """Returns the conclusions: [Claim]. `numbers` are the paper's (Numbers)."""
        raise NotImplementedError

    def notes(self, results, numbers):
        """Returns sentences about the results that are no conclusions, if there are any."""
        return []


def split(claims):
    """Returns (the paper's conclusions, targets)."""
    targets = [claim for claim in claims if isinstance(claim, Target)]
    return [claim for claim in claims if claim not in targets], targets


def verdict(claims):
    """Returns a sentence about all conclusions of a figure, or about its targets if it has only
    those."""
    conclusions, targets = split(claims)
    if targets and not conclusions:
        return "Of its targets, %d of %d are met." % (
            sum(target.holds is True for target in targets), len(targets))
    known = [claim for claim in conclusions if claim.holds is not None]
    good = sum(claim.holds for claim in known)
    if not known:
        return "Whether the paper's conclusion holds cannot be said: what it is about was not " \
            "measured."
    if good == len(known):
        return "The paper's conclusion holds today."
    if not good:
        return "The paper's conclusion does not hold today."
    return "Of the paper's conclusions, %d of %d hold today." % (good, len(known))


class Numbers:
    """numbers.json: the papers' numbers, each with its source."""

    def __init__(self, path=NUMBERS):
        told = json.loads(path.read_text())
        self.papers, self.figures = told["papers"], told["figures"]

    def value(self, figure, system, x):
        """Returns a paper's number."""
        for line in self.figures[figure]["lines"]:
            if line["system"] == system:
                for point in line["points"]:
                    if point[0] == x:
                        return point[1]
        raise KeyError("%s: %s at %s" % (figure, system, x))

    def faults(self, names):
        """Yields a sentence for everything that is missing for figures with these names."""
        for name in sorted(set(names) ^ set(self.figures)):
            yield "%s: stands in numbers.json, or in of_*.py, but not in both" % name
        for key, paper in self.papers.items():
            for member in ("name", "title", "by", "in", "when", "machine"):
                if not paper.get(member):
                    yield "%s: has no '%s'" % (key, member)
        for name, figure in self.figures.items():
            if figure.get("paper") not in self.papers or not figure.get("what"):
                yield "%s: does not say of which paper it is, or what" % name
            for line in figure["lines"]:
                yield from self._line_faults(name, line)

    def _line_faults(self, name, line):
        for member in ("system", "unit", "at"):
            if not line.get(member):
                yield "%s: a line has no '%s'" % (name, member)
        if line.get("paper") not in self.papers:
            yield "%s: a line is of no paper that is listed" % name
        for point in line["points"]:
            sign = point[2] if len(point) == 3 else "~"
            if len(point) not in (2, 3) or isinstance(point[1], str) or \
                    sign not in ("<", "<=", ">", ">=", "~"):
                yield "%s: %s is no point" % (name, point)


# --- values from results ---

def engine(results, title, name):
    """Returns an engine's results, or None if it was not measured."""
    return results.get(title, {}).get("engines", {}).get(name)


def rates(results, title, name, kind="rates"):
    """Returns the rate of each round, or None if the engine was not measured."""
    entry = engine(results, title, name)
    return entry and entry[kind]


def took(results, title, name):
    """Returns the median latency of each round in us, or None if the engine was not measured."""
    entry = engine(results, title, name)
    return entry and [ns / 1e3 for ns in entry["p50s_ns"]]


def overhead(own, none):
    """Returns for each round how many us a transaction takes more than without transactions, by the
    rates of both. A value of 0 or less was too small to be measured. Returns None if an engine is
    missing."""
    return own and none and [1e6 / rate - 1e6 / middle(none) for rate in own]


def middle(rounds):
    return None if not rounds else statistics.median(rounds)


def ratio(above, below):
    """Returns the ratio of medians, or None if one is missing or the lower one was too small to be
    measured."""
    above, below = middle(above), middle(below)
    return None if above is None or below is None or below <= 0 else above / below


def titles(results, prefix):
    """Returns the rest of the results' titles that begin with a prefix, in order."""
    return [title[len(prefix):] for title in results if title.startswith(prefix)]
