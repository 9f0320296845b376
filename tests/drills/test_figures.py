"""`make figures`: the papers' numbers are complete, a figure is measured and drawn, conclusions
depend only on what was measured, and a database with wrong contents gives no figure."""
import contextlib
import json
import os
import signal
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from drill import BUILD, EMULATED, SECONDS, TOP

sys.path.insert(0, str(TOP / "bench/papers"))

import draw  # noqa: E402
import rvm  # noqa: E402
from chart import Chart  # noqa: E402
from cluster import wait_for  # noqa: E402
from figure import NUMBERS, Claim, Numbers, Target, split, verdict  # noqa: E402
from lab import GIB, Lab  # noqa: E402
from report import Report  # noqa: E402

NAMES = [figure.name for figure in draw.FIGURES]


def test_every_number_of_a_paper_has_its_source():
    """Each drawn figure, and each number with its paper, year, machine, unit and place."""
    assert list(Numbers().faults(NAMES)) == []


@pytest.mark.parametrize("lost", ["when", "machine", "what", "unit", "at", "number", "figure"])
def test_a_number_without_a_source_is_named(lost, tmp_path):
    """A field is removed from the file, and the error names its figure or paper."""
    told = json.loads(NUMBERS.read_text())
    name, figure = next(iter(told["figures"].items()))
    if lost in ("when", "machine"):
        name = figure["paper"]
        del told["papers"][name][lost]
    elif lost == "what":
        del figure[lost]
    elif lost == "number":
        figure["lines"][0]["points"][0] = ["x"]
    elif lost == "figure":
        del told["figures"][name]
    else:
        del figure["lines"][0][lost]
    file = tmp_path / "numbers.json"
    file.write_text(json.dumps(told))
    faults = list(Numbers(file).faults(NAMES))
    assert len(faults) == 1 and name in faults[0]


@pytest.mark.parametrize("left, sign, right, holds", [
    (14, "<=", 14, True), (14.1, "<=", 14, False), (14, "<", 14, False), (10, ">=", 10, True),
    (9.9, ">=", 10, False), (None, ">=", 10, None), (3, ">", None, None)])
def test_what_was_measured_decides(left, sign, right, holds):
    """At the bound, beyond it, and with one side not measured."""
    claim = Claim("It is so", "the ratio", left, sign, right)
    assert claim.holds is holds
    word = {True: ": holds.", False: ": does not hold.", None: "cannot be said"}[holds]
    assert word in claim.sentence()


def test_a_figure_is_judged_by_all_its_conclusions():
    """All, some and none of the conclusions hold; conclusions that cannot be judged do not
    count."""
    good, bad, unknown = (Claim("c", "w", left, ">=", 2) for left in (3, 1, None))
    assert verdict([good, unknown]) == "The paper's conclusion holds today."
    assert verdict([good, bad, good]) == "Of the paper's conclusions, 2 of 3 hold today."
    assert verdict([bad]) == "The paper's conclusion does not hold today."
    assert "cannot be said" in verdict([unknown])
    assert verdict([good, Target("t", 1, "w", 1, ">=", 2)]) == verdict([good])


def test_a_target_has_both_values_and_their_ratio():
    """Met at the bound, missed below it, and open if one side was not measured. Targets are not a
    paper's conclusions, and are counted separately."""
    targets = [Target("a", here, "b, apart", 252000, ">=", 10)
               for here in (2520000, 2519000, None)]
    assert [t.holds for t in targets] == [True, False, None]
    assert targets[0].sentence() == "a: 2,520,000 /s, against 252,000 /s of b, apart: 10 " \
        "times; the target, at least 10, is met."
    assert "is missed" in targets[1].sentence() and "cannot be said" in targets[2].sentence()
    assert targets[0].row() == ["a", "2,520,000 /s", "b, apart", "252,000 /s", "10",
                                ">= 10", "yes"]
    assert [t.row()[-1] for t in targets[1:]] == ["no", "not measured"]
    assert verdict(targets) == "Of its targets, 1 of 3 are met."


@pytest.mark.parametrize("figure", draw.FIGURES, ids=NAMES)
def test_where_nothing_was_measured_nothing_is_concluded(figure):
    """After a run that was ended early, each sentence can still be printed."""
    numbers = Numbers()
    claims = list(figure.claims({}, numbers))
    assert claims and all(claim.holds is None for claim in claims)
    assert all("cannot be said" in claim.sentence() for claim in claims)
    assert all(isinstance(note, str) for note in figure.notes({}, numbers))


@pytest.mark.parametrize("ours, theirs, holds", [(20, 10, True), (10, 20, False), (10, 10, False)])
def test_oo7s_target_is_to_take_less_time(ours, theirs, holds):
    """Results are rates, but the target is for times."""
    measured = {"perseas T2a": {"busy_rates": [ours]}, "pmemobj T2a": {"busy_rates": [theirs]}}
    figure = next(f for f in draw.FIGURES if f.name == "rhino-8")
    _, targets = split(figure.claims({"rhino-8, small": {"ways": measured}}, Numbers()))
    assert [target.holds for target in targets] == [holds, None, None]
    assert "100 ms" in targets[0].sentence() and "times" in targets[0].sentence()


@pytest.mark.parametrize("vista, holds", [(12e6, True), (5e6, False), (21e6, None)])
def test_what_is_too_small_to_be_measured_decides_nothing(vista, holds):
    """Without transactions 20 million a second. Berkeley DB takes 5 us more, so 100 times as fast
    is 50 ns; Vista's scheme takes 33 ns more, 150, or seems to be faster than nothing."""
    rates = {"none": [20e6], "local": [vista], "bdb": [1e6 / 5.05]}
    results = {"vista-5a, shm, 8": {"engines": {name: {"busy_rates": found}
                                                for name, found in rates.items()}}}
    figure = next(f for f in draw.FIGURES if f.name == "vista-5a")
    claim, = (c for c in figure.claims(results, Numbers()) if " in memory " in c.what)
    assert claim.holds is holds
    assert "circle" in draw.draw(figure.charts(results)[0], [], {})


class Counted:
    """A benchmark whose engines have rates set by a test."""

    def __init__(self, rates):
        self.rates, self.report = rates, Report()

    def cluster(self, _):
        return contextlib.nullcontext()

    def compare(self, _title, _cluster, _work, engines, **_):
        return {"engines": {name: {"busy_rates": self.rates[name]} for name in engines}}


def test_rvm_stands_beside_its_own_library():
    """The number and its machine are those of the page, each way to end a transaction has a row,
    and flush is also compared with the library's own rate."""
    rate, what = rvm.apart()
    assert rate == Numbers().value("librvm-1", "librvm on tmpfs, flush", "debit-credit")
    assert Numbers().papers["librvm"]["machine"] in what
    bench = Counted({"perseas": [14 * rate], "rvm": [10 * rate], "rvm-no-flush": [9 * rate]})
    rvm.measure(bench)
    found = [(row["against"], row["ratio"], row["met"]) for row in bench.report.rows]
    assert found == 2 * [(what, 10, True), ("perseas", 10 / 14, False), (what, 9, False)]
    names = [row["name"] for row in bench.report.rows]
    assert all(word in name for name, word in zip(names[:3], ("flush", "flush", "no_flush")))


class Small(Lab):
    """A host with little memory, which only records the measurements instead of running them."""

    def __init__(self, most):
        self.form, self.most, self.asked, self.left_out = "whole", most, [], {}

    def holds(self, size):
        return size + GIB <= self.most

    def knows(self, engine):
        return False

    def run(self, title, *_, **__):
        self.asked.append(int(title.rsplit(" ", 1)[1]))


@pytest.mark.parametrize("figure, copies", [("vista-5b", 2), ("vista-5c", 3)])
def test_a_database_is_left_out_where_memory_ends(figure, copies):
    """The owner and a mirror have the database, and order-entry has its tables once more while they
    are filled. What is left out is reported."""
    lab = Small(20 * GIB)
    next(f for f in draw.FIGURES if f.name == figure).measure(lab)
    assert copies * max(lab.asked) + GIB <= lab.most
    assert len(lab.left_out.get(figure, ())) == (copies * 8 * GIB + GIB > lab.most)


def circles(svg):
    found = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}circle")
    return [(float(c.get("cx")), float(c.get("cy"))) for c in found]


def test_points_are_where_their_numbers_are():
    """Two decades up and three octaves to the right, on logarithmic axes; and named places."""
    chart = Chart("n", "t", "bytes", "us", {"a": [(2, [1]), (4, [10]), (16, [100])]})
    (x, y), (to_x, to_y), (last_x, last_y) = circles(draw.draw(chart, [], {}))
    assert to_x - x == pytest.approx((last_x - to_x) / 2, abs=0.2)
    assert y - to_y == pytest.approx(to_y - last_y, abs=0.2) and y > last_y
    named = Chart("n", "t", "", "/s", {"a": [("one", [5]), ("two", [5])]})
    (x, y), (to_x, to_y) = circles(draw.draw(named, [], {}))
    assert x < to_x and y == to_y


def figures(folder, *words, name="perseas-4"):
    line = [TOP / "bench/papers/draw.py", "--build", BUILD, "--form", "tiny", "--only", name,
            "--output", folder, *words]
    return subprocess.run([sys.executable, *map(str, line)], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SECONDS)


@pytest.mark.skipif(EMULATED, reason="its mirrors are on this host, over tcp and shared memory")
def test_a_figure_is_drawn_beside_the_papers(tmp_path):
    """Figure 4 of PERSEAS, as short as possible: a chart, and a page with the paper's number, year
    and machine, and the verdict from what was saved."""
    done = figures(tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(circles((tmp_path / "perseas-4.svg").read_text())) == 4
    page = (tmp_path / "index.html").read_text()
    kept = json.loads((tmp_path / "results.json").read_text())
    claims = list(draw.FIGURES[0].claims(kept["results"], Numbers()))
    assert verdict(claims) in done.stdout
    for words in ("below 14", "1998", "Pentium 133 MHz", "perseas-4.svg"):
        assert words in page
    again = figures(tmp_path, "--again")
    assert again.returncode == 0 and page == (tmp_path / "index.html").read_text()


@pytest.mark.skipif(EMULATED, reason="its mirrors are on this host, over tcp and shared memory")
def test_a_run_that_was_ended_is_gone_on_with(tmp_path):
    """Existing results, including failures, are not changed; one figure is measured in addition. A
    file with another format is not extended."""
    file = tmp_path / "results.json"
    kept = {"form": "tiny", "host": {}, "results": {"perseas-4, tcp, 4": {}, "rvm-2, x": {}},
            "failed": {"rhino-6": "no luck"}, "left_out": {},
            "done": [name for name in NAMES if name != "perseas-4"]}
    file.write_text(json.dumps(kept))
    assert figures(tmp_path, "--add").returncode == 1
    added = json.loads(file.read_text())
    assert added["done"] == NAMES and added["failed"] == kept["failed"]
    assert added["results"].pop("rvm-2, x") == {} and len(added["results"]) == 4
    assert all(entry["engines"] for entry in added["results"].values())
    refused = figures(tmp_path, "--add", "--form", "short")
    assert refused.returncode == 1 and "is of the tiny form" in refused.stderr
    assert json.loads(file.read_text())["done"] == NAMES


@pytest.mark.skipif(EMULATED, reason="its mirrors are on this host, over tcp and shared memory")
def test_one_that_is_ended_leaves_no_mirror(tmp_path, short_path):
    """SIGTERM during a figure: its mirrors end and free their memory, which may be most of the
    host's."""
    line = [TOP / "bench/papers/draw.py", "--build", BUILD, "--form", "whole", "--only",
            "perseas-4", "--output", tmp_path]
    with subprocess.Popen([sys.executable, *map(str, line)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, env={**os.environ, "TMPDIR": str(short_path)}
                          ) as process:
        try:
            wait_for(lambda: process.poll() is not None or
                     list(short_path.glob("perseas-*/files-*")), SECONDS, "an engine")
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) == 128 + signal.SIGTERM
        finally:
            process.kill()
    assert not list(short_path.iterdir())


@pytest.mark.skipif(EMULATED, reason="its mirrors are on this host, over tcp and shared memory")
@pytest.mark.parametrize("name, says", [
    ("perseas-4", "is there in part"), ("stasis-5", "its values are not those"),
    ("rhino-2", "has not the words that were stored"), ("rvm-9", "the tellers add up to"),
    ("rhino-8", "its parts are not what the traversals make")])
def test_a_database_that_is_wrong_gives_no_figure(name, says, tmp_path):
    """A byte is changed before the check, or a table or graph has another value."""
    done = figures(tmp_path, "--spoil", name=name)
    assert done.returncode == 1 and says in done.stderr
    assert not (tmp_path / (name + ".svg")).exists()
    assert "It was not drawn: " in (tmp_path / "index.html").read_text()
