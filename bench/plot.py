"""Draws lines over time as an SVG file, for machines without matplotlib. failover.py uses it to
draw the rate across a kill."""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 400, 70, 16, 34, 48
COLORS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b")
MARKS = 6                               # on an axis, about


def rates(looks, spacing):
    """Returns the rate of a counter between samples [ns, count] that are at least `spacing` ns
    apart: [ns, rate], each in the middle of its interval."""
    found, last = [], looks[0]
    for look in looks[1:]:
        took = look[0] - last[0]
        if took >= spacing:
            found.append([last[0] + took / 2, (look[1] - last[1]) * 1e9 / took])
            last = look
    return found


def marks(least, most):
    """Returns round numbers that divide an axis."""
    step = 10 ** math.floor(math.log10((most - least) / MARKS))
    step *= next(by for by in (1, 2, 5, 10) if (most - least) / (by * step) <= MARKS)
    return [step * i for i in range(math.ceil(least / step), math.floor(most / step) + 1)]


def text(x, y, words, more=""):
    return '<text x="%.1f" y="%.1f" %s>%s</text>' % (x, y, more, escape(words))


def line(x, y, to_x, to_y, color):
    return '<path d="M%.1f %.1fL%.1f %.1f" stroke="%s"/>' % (x, y, to_x, to_y, color)


def draw(path, title, x_name, y_name, lines):
    """Draws lines, which map a name to its points (x, y). The y axis begins at 0."""
    points = [point for each in lines.values() for point in each]
    least, most = min(x for x, _ in points), max(x for x, _ in points)
    top = max(y for _, y in points) or 1

    def at(x, y):
        return (LEFT + (x - least) / (most - least) * (WIDTH - LEFT - RIGHT),
                HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM))

    svg = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" '
           'font-size="12" fill="none">' % (WIDTH, HEIGHT),
           '<rect width="100%" height="100%" fill="white"/><g fill="black">',
           text(WIDTH / 2, 18, title, 'text-anchor="middle" font-weight="bold"'),
           text(WIDTH / 2, HEIGHT - 8, x_name, 'text-anchor="middle"'),
           text(LEFT, TOP - 6, y_name)]
    for x in marks(least, most):
        svg += [line(*at(x, 0), *at(x, top), "#ddd"),
                text(at(x, 0)[0], HEIGHT - BOTTOM + 16, "%g" % x, 'text-anchor="middle"')]
    for y in marks(0, top):
        svg += [line(*at(least, y), *at(most, y), "#ddd"),
                text(LEFT - 6, at(least, y)[1] + 4, "{:,g}".format(y), 'text-anchor="end"')]
    for row, (name, each) in enumerate(lines.items()):
        svg.append(text(WIDTH - RIGHT, HEIGHT - BOTTOM - 8 - 16 * row, name,
                        'text-anchor="end" fill="%s"' % COLORS[row]))
    svg.append("</g>")
    for color, each in zip(COLORS, lines.values()):
        svg.append('<polyline points="%s" stroke="%s"/>' %
                   (" ".join("%.1f,%.1f" % at(*point) for point in each), color))
    path.write_text("\n".join([*svg, "</svg>\n"]))
