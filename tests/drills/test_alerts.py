"""deploy/alerts.yaml: promtool tests each rule on series, and the metrics of the rules are those
that a daemon exports."""
import re
import subprocess

import yaml

from drill import BUILD, SECONDS, TOP, fill
from watching import OF_HISTOGRAM, Watch, options, parse

ALERTS = TOP / "deploy/alerts.yaml"
TRIED = TOP / "tests/drills/alerts.test.yaml"
RUNBOOK = TOP / "doc/runbook.md"
# Metrics of Prometheus itself about its targets.
OF_PROMETHEUS = {"up"}


def rules():
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"]
            for rule in group["rules"]]


def promtool(*words):
    done = subprocess.run(["promtool", *words], cwd=TRIED.parent, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout


def metrics_of(rule):
    return {name for name in re.findall(r"\b(?:perseas_[a-z0-9_]+|up\b)", rule["expr"])}


def exported():
    """Returns {metric: (type, labels)} from the table that the daemon prints."""
    table = subprocess.run([BUILD / "perseasd", "--metrics-help"], stdout=subprocess.PIPE,
                           text=True, timeout=SECONDS, check=True).stdout
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([\w, ]*) \|", table, re.M)
    return {name + end: (kind, set(labels.split(", ")) if labels.strip() else set())
            for name, kind, labels in rows
            for end in (OF_HISTOGRAM if kind == "histogram" else ("",))}


def test_each_alert_fires_when_it_should_and_not_before():
    promtool("check", "rules", str(ALERTS))
    promtool("test", "rules", TRIED.name)
    fires, silent = set(), set()
    for each in yaml.safe_load(TRIED.read_text())["tests"]:
        for one in each["alert_rule_test"]:
            (fires if one["exp_alerts"] else silent).add(one["alertname"])
    names = {rule["alert"] for rule in rules()}
    assert fires == silent == names


def test_alerts_ask_for_metrics_and_labels_that_there_are():
    known = exported()
    for rule in rules():
        asked = metrics_of(rule)
        assert asked and asked <= set(known) | OF_PROMETHEUS, rule["alert"]
        for name in re.findall(r"(?:rate|increase)\(\s*(\w+)", rule["expr"]):
            assert name.endswith(("_total", "_bucket")), rule["alert"]
        for name, labels in re.findall(r"(perseas_\w+)\{([^}]*)\}", rule["expr"]):
            asks = set(re.findall(r"(\w+)(?:=~|!~|!=|=)", labels))
            assert asks <= known[name][1], (rule["alert"], name)


def test_alerts_ask_for_states_that_there_are(mirrors, tmp_path):
    """A daemon exports every state of images and every reason and status, including those that
    never occurred; an alert for any other value would never fire."""
    daemon, = mirrors(1, options=options(tmp_path))
    fill("data", [daemon], {"s": b"contents"})
    samples, _ = parse(Watch(tmp_path).get("/metrics"))
    asked = 0
    for rule in rules():
        for name, label, words in re.findall(r'(perseas_\w+)\{(\w+)=~?"([^"]+)"\}', rule["expr"]):
            have = {dict(key).get(label) for key in samples[name]}
            assert set(words.split("|")) <= have, (rule["alert"], have)
            asked += 1
    assert asked > 4


def test_each_alert_has_its_section_and_each_section_its_alert():
    text = RUNBOOK.read_text()
    sections = re.findall(r"^## (Perseas\w+)$", text, re.M)
    assert sections == [rule["alert"] for rule in rules()]
    for rule in rules():
        assert rule["annotations"]["runbook_url"].endswith(
            "/doc/runbook.md#" + rule["alert"].lower())
        assert {"summary", "description"} <= set(rule["annotations"])
    wake, = re.findall(r"severity `critical` are (.*?)\.\s", text, re.S)
    assert re.findall(r"Perseas\w+", wake) == [
        rule["alert"] for rule in rules() if rule["labels"]["severity"] == "critical"]


def test_the_runbook_names_sections_of_the_guide_and_commands_that_there_are():
    text = RUNBOOK.read_text()
    guide = re.findall(r"^###? (.*)$", (TOP / "doc/operating.md").read_text(), re.M)
    named = [re.sub(r"\s+", " ", name) for name in re.findall(r'\("(.*?)"\)', text, re.S)]
    assert len(named) > 5 and set(named) <= set(guide), set(named) - set(guide)
    listed = subprocess.run([BUILD / "perseas", "help"], stdout=subprocess.PIPE, text=True,
                            timeout=SECONDS, check=True).stdout
    verbs = set(re.findall(r"^  perseas +(\w+)", listed, re.M))
    assert set(re.findall(r"`perseas (\w+)", text)) <= verbs


def test_a_collector_may_ask_for_what_alerts_need_alone(mirrors, tmp_path):
    """`/metrics?for=alerts` returns exactly these metrics, and of each store only its states,
    whatever other parameters the request has."""
    daemon, = mirrors(1, options=options(tmp_path))
    fill("bank", [daemon], {"s": b"contents"})
    watch = Watch(tmp_path)
    asked = set().union(*map(metrics_of, rules())) - OF_PROMETHEUS
    whole, some = watch.get("/metrics"), watch.get("/metrics?for=alerts")
    told = {name + end for name, kind in parse(some)[1].items()
            for end in (OF_HISTOGRAM if kind == "histogram" else ("",))}
    assert asked <= told and {name for name in told if name not in asked} <= {
        "perseas_owner_commit_latency_seconds" + end for end in OF_HISTOGRAM}
    assert set(some.splitlines()) >= {line for line in whole.splitlines()
                                      if line.startswith("perseas_store_owner_live{")}
    assert len(some) < len(whole) and "perseas_store_seq" not in some
    assert set(parse(watch.get("/metrics?for=all"))[1]) == set(parse(whole)[1])
