"""The page of `make figures`: each figure with what it shows, whether the paper's conclusion holds,
its charts, its results, and next to them the papers' numbers and machines. draw.py calls it. Every
number on the page is from the results or from numbers.json."""
import statistics
from html import escape

from chart import SIGNS, brief, sized
from figure import Target, split, verdict
from lab import SETTLED

STYLE = """body{font-family:sans-serif;max-width:75em;margin:2em auto;padding:0 1em;line-height:1.4}
table{border-collapse:collapse;font-size:85%;margin:.5em 0}td,th{border:1px solid #ccc;
padding:.2em .6em;text-align:right}td:first-child,th:first-child{text-align:left}
.side{display:flex;flex-wrap:wrap;gap:2em;align-items:flex-start}img{max-width:46em;width:100%}
.yes{color:#060}.no{color:#a00}.open{color:#666}.wrong{background:#fdd;padding:.5em}"""


def table(head, rows):
    def row(cells, tag):
        return "<tr>%s</tr>" % "".join("<%s>%s</%s>" % (tag, escape(str(cell)), tag)
                                       for cell in cells)
    return "<table>%s%s</table>" % (row(head, "th"), "".join(row(r, "td") for r in rows))


def place(x):
    return x if isinstance(x, str) else sized(x)


def cell(rounds):
    return "%s (%s \u2013 %s)" % tuple(map(brief, (statistics.median(rounds), min(rounds),
                                                 max(rounds))))


def measured(chart):
    """Returns a table with a row for each place and a column for each line: median (least -
    most)."""
    found = {(name, x): cell(rounds) for name, points in chart.lines.items()
             for x, rounds in points}
    return table([chart.x_name or chart.y_name, *chart.lines],
                 [[place(x), *(found.get((name, x), "") for name in chart.lines)]
                  for x in chart.places()])


def said(figure, papers):
    rows = []
    for line in figure["lines"]:
        paper = papers[line["paper"]]
        for point in line["points"]:
            sign = SIGNS[point[2]] if len(point) == 3 else ""
            rows.append([line["system"], place(point[0]), sign + brief(point[1]), line["unit"],
                         paper["when"], line["at"]])
    return table(["system", "at", "value", "unit", "year", "source"], rows)


def machines(figure, papers):
    """Returns who measured on which machines."""
    used = dict.fromkeys([figure["paper"], *(line["paper"] for line in figure["lines"])])
    return "".join("<p>%s</p>" % escape("%(name)s: %(title)s (%(by)s), %(in)s, %(when)s: "
                                        "%(machine)s." % papers[key]) for key in used)


def conclusions(claims):
    kinds = {True: "yes", False: "no", None: "open"}
    of_paper, targets = split(claims)
    sentences = "".join('<li class="%s">%s</li>' % (kinds[c.holds], escape(c.sentence()))
                        for c in of_paper)
    return "<ul>%s</ul>%s" % (sentences, table(Target.HEAD, [c.row() for c in targets])
                              if targets else "")


def section(figure, told, papers, drawn):
    """Returns the section of a figure. `drawn` has its charts with their files, claims, and what
    was left out or failed."""
    parts = ['<h2 id="%s">%s, %s</h2><p>%s' % (figure.name, papers[told["paper"]]["name"],
                                               told["what"].lower(), escape(figure.shows))]
    if drawn.claims:
        parts.append(" <b>%s</b>" % escape(verdict(drawn.claims)))
    parts.append("</p>" + conclusions(drawn.claims) if drawn.claims else "</p>")
    if drawn.failed:
        parts.append('<p class="wrong">It was not drawn: %s</p>' % escape(drawn.failed))
    parts += ["<p>%s</p>" % escape(sentence) for sentence in drawn.notes]
    parts += ["<p>%s.</p>" % escape(sentence[0].upper() + sentence[1:])
              for sentence in drawn.left_out]
    for chart, file in drawn.charts:
        parts.append('<div><img src="%s" alt="%s"></div>' % (file, escape(chart.title)))
    parts.append('<div class="side"><div><h3>Measured here: median (least \u2013 most of the '
                 'rounds)</h3>%s</div><div><h3>What papers say</h3>%s</div></div>%s' % (
                     "".join("<p>%s, %s</p>%s" % (escape(c.title), escape(c.y_name), measured(c))
                             for c, _ in drawn.charts) or "<p>Nothing.</p>",
                     said(told, papers), machines(told, papers)))
    return "\n".join(parts)


def page(sections, host, form, seconds):
    """Returns the document with the sections of all figures, which took so many seconds to
    measure."""
    here = ", ".join("%s: %s" % (key, value) for key, value in host.items()
                     if key != "memory_bytes")
    return ("<!DOCTYPE html><html lang='en'><meta charset='utf-8'><title>Figures of five papers"
            "</title><style>%s</style><h1>Figures of five papers, drawn again</h1>"
            "<p>The %s form, measured on this host in %d s. %s. Mirrors ran on this host, too: "
            "what goes over tcp is of its loopback, not of a network. In charts, \u25cf is what "
            "was measured here and \u25a1 what a paper says. A number is the median of rounds, of "
            "which there are fewer where they agree within %d %%. Whether a conclusion holds is "
            "computed from what was measured. Every database was compared afterwards, byte for "
            "byte or by its invariants.</p>%s</html>\n" % (
                STYLE, escape(form), seconds, escape(here), SETTLED, "\n".join(sections)))
