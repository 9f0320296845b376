"""deploy/grafana.json uses only metrics that a daemon exports, although nobody looks at it when
they change."""
import json
import re

from drill import TOP, fill
from watching import OF_HISTOGRAM, Watch, options, parse

DASHBOARD = TOP / "deploy/grafana.json"


def expressions(thing):
    """Yields every query, at any depth."""
    if isinstance(thing, dict):
        for key, value in thing.items():
            if key in ("expr", "definition"):
                yield value
            else:
                yield from expressions(value)
    elif isinstance(thing, list):
        for value in thing:
            yield from expressions(value)


def test_the_dashboard_asks_for_metrics_and_labels_that_there_are(mirrors, tmp_path):
    daemon, = mirrors(1, options=options(tmp_path))
    fill("data", [daemon], {"s": b"contents"})
    samples, types = parse(Watch(tmp_path).get("/metrics"))
    asked = list(expressions(json.loads(DASHBOARD.read_text())))
    assert len(asked) > 20
    names = {name for each in asked for name in re.findall(r"\bperseas_[a-z0-9_]+", each)}
    known = {name + end for name, kind in types.items()
             for end in (OF_HISTOGRAM if kind == "histogram" else ("",))}
    assert names and names <= known, names - known
    for each in asked:                  # rates are of values that only grow
        for name in re.findall(r"(?:rate|increase)\((perseas_[a-z0-9_]+)", each):
            assert name.endswith(("_total", "_bucket", "_seq")), each
        for name, labels in re.findall(r"(perseas_[a-z0-9_]+)\{([^}]*)\}", each):
            asks = set(re.findall(r"(\w+)(?:=~|!=|=)", labels)) - {"instance"}
            have = {label for key in samples.get(name, {}) for label, _ in key}
            assert not have or asks <= have, each


def test_panels_have_places_and_numbers_of_their_own():
    dashboard = json.loads(DASHBOARD.read_text())
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken and place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells
        refs = [target["refId"] for target in panel.get("targets", ())]
        assert len(set(refs)) == len(refs) and bool(refs) == (panel["type"] != "row")
    assert {each["name"] for each in dashboard["templating"]["list"]} == \
        {"source", "instance", "store"}
