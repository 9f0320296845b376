"""Charts as SVG files, with logarithmic axes or named places: results as lines with the spread of
their rounds, and a paper's numbers as marks without a line. draw.py writes them for page.py. Uses
only Python's standard library, because tests draw charts on hosts without matplotlib."""
import math
import statistics
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 420, 80, 230, 30, 50
COLORS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#e377c2", "#7f7f7f",
          "#17becf", "#bcbd22")
SIGNS = {"<": "below ", "<=": "at most ", ">": "above ", ">=": "at least ", "~": "about "}
LABELS = 9                              # on an axis, at most
CROWD = 4                               # number of names that have room next to each other


class Chart:
    """A chart's results, {name: [(x, [y of each round])]}. x is a number, or a name without an
    order."""

    def __init__(self, name, title, x_name, y_name, lines, unit=None):
        self.name, self.title, self.x_name, self.y_name = name, title, x_name, y_name
        self.lines = {key: points for key, points in lines.items() if points}
        self.unit = unit or y_name

    def places(self):
        """Returns all x, in order."""
        found = dict.fromkeys(x for points in self.lines.values() for x, _ in points)
        return sorted(found) if all(not isinstance(x, str) for x in found) else list(found)

    def said(self, lines):
        """Yields the paper's lines that fit these axes."""
        places = self.places()
        named = any(isinstance(x, str) for x in places)
        for line in lines:
            points = [p for p in line["points"] if isinstance(p[0], str) == named and
                      (p[0] in places if named else p[0] > 0) and p[1] > 0]
            if line["unit"] == self.unit and points:
                yield line, points


def sized(count):
    """Formats a number of bytes or of other things, briefly."""
    for shift, name in ((30, "G"), (20, "M"), (10, "K")):
        if count >= 1 << shift and count % (1 << shift) == 0:
            return "%d%s" % (count >> shift, name)
    return "{:,g}".format(count)


def brief(value):
    """Formats a number with three significant digits."""
    if abs(value) >= 100:
        return "{:,.0f}".format(value)
    return "%.3g" % value


class Axes:
    """Maps points of a chart to the sheet. Axes are logarithmic, except for named places."""

    def __init__(self, chart, said):
        xs = chart.places()
        self.named = any(isinstance(x, str) for x in xs)
        ys = [y for points in chart.lines.values() for _, rounds in points for y in rounds]
        for _, points in said:
            xs = xs if self.named else sorted({*xs, *(p[0] for p in points)})
            ys += [p[1] for p in points]
        ys = [y for y in ys if y > 0] or [1]
        self.xs = xs
        self.low, self.high = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)))
        self.high = max(self.high, self.low + 1)

    def x(self, value):
        wide = WIDTH - LEFT - RIGHT
        if self.named:
            return LEFT + wide * (self.xs.index(value) + 0.5) / len(self.xs)
        least, most = math.log(self.xs[0]), math.log(self.xs[-1])
        return LEFT + wide * ((math.log(value) - least) / (most - least) if most > least else 0.5)

    def y(self, value):
        part = (math.log10(max(value, 10 ** self.low)) - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)


def text(x, y, words, more=""):
    return '<text x="%.1f" y="%.1f" %s>%s</text>' % (x, y, more, escape(str(words)))


def rule(x, y, to_x, to_y, color="#ddd"):
    return '<path d="M%.1f %.1fL%.1f %.1f" stroke="%s"/>' % (x, y, to_x, to_y, color)


def label_place(axes, i, at):
    """Yields a place's name below the axis, one line for each of its parts. If there are many
    names, every other one is lower, so that neighbors do not overlap."""
    parts = axes.xs[i].split(", ") if axes.named else [sized(axes.xs[i])]
    below = 14 + (22 if axes.named and len(axes.xs) > CROWD and i % 2 else 0)
    for line, part in enumerate(parts):
        yield text(at, HEIGHT - BOTTOM + below + 11 * line, part,
                   'text-anchor="middle" fill="black"')


def grid(axes):
    step = max(1, math.ceil(len(axes.xs) / LABELS))
    for i, x in enumerate(axes.xs):
        at = axes.x(x)
        if i % step == 0:
            yield rule(at, TOP, at, HEIGHT - BOTTOM)
            yield from label_place(axes, i, at)
    step = max(1, math.ceil((axes.high - axes.low) / LABELS))
    for power in range(axes.low, axes.high + 1, step):
        at = axes.y(10.0 ** power)
        yield rule(LEFT, at, WIDTH - RIGHT, at)
        yield text(LEFT - 6, at + 4, "{:,.{}f}".format(10.0 ** power, max(0, -power)),
                   'text-anchor="end" fill="black"')


def measured(axes, points, color):
    """Yields a line through the medians, and bars from the smallest to the largest of the
    rounds."""
    middles = [(axes.x(x), axes.y(statistics.median(rounds))) for x, rounds in points]
    if len(middles) > 1 and not axes.named:
        yield '<polyline points="%s" stroke="%s"/>' % (
            " ".join("%.1f,%.1f" % at for at in middles), color)
    for (x, y), (_, rounds) in zip(middles, points):
        yield rule(x, axes.y(min(rounds)), x, axes.y(max(rounds)), color)
        yield '<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (x, y, color)


def quoted(axes, points, color):
    for point in points:
        x, y = axes.x(point[0]), axes.y(point[1])
        yield '<rect x="%.1f" y="%.1f" width="7" height="7" stroke="%s"/>' % (x - 3.5, y - 3.5,
                                                                             color)


def draw(chart, paper_lines, papers):
    """Returns the SVG of a chart, with papers' numbers in its unit."""
    said = list(chart.said(paper_lines))
    axes = Axes(chart, said)
    svg = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" '
           'font-size="11" fill="none">' % (WIDTH, HEIGHT),
           '<rect width="100%" height="100%" fill="white"/>',
           text(LEFT, 18, "%s: %s" % (chart.title, chart.y_name), 'fill="black"'),
           text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, chart.x_name,
                'text-anchor="middle" fill="black"'), *grid(axes)]
    names = []
    for name, points in chart.lines.items():
        color = COLORS[len(names) % len(COLORS)]
        svg += measured(axes, sorted(points, key=lambda p: axes.xs.index(p[0])), color)
        names.append(("\u25cf " + name, color))
    for line, points in said:
        color = COLORS[len(names) % len(COLORS)]
        svg += quoted(axes, points, color)
        names.append(("\u25a1 %s (%s)" % (line["system"], papers[line["paper"]]["when"]), color))
    for row, (name, color) in enumerate(names):
        svg.append(text(WIDTH - RIGHT + 12, TOP + 10 + 15 * row, name, 'fill="%s"' % color))
    return "\n".join([*svg, "</svg>\n"])
