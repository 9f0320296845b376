"""The daemon's HTTP server, for drills: requests to it, and a checker of the text format of
metrics."""
import http.client
import json
import re

from cluster import wait_for
from drill import SECONDS

SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')
OF_HISTOGRAM = ("_bucket", "_sum", "_count")


def options(folder, *more):
    """Returns the options for a daemon with HTTP. Its port is in a file in the folder."""
    return ("--http", "127.0.0.1:0", "--http-port-file", str(folder / "http-port"), *more)


class Watch:
    """A client of one daemon's HTTP server."""

    def __init__(self, folder):
        self.port = int(wait_for(lambda: (folder / "http-port").exists() and
                                 (folder / "http-port").read_text(), SECONDS, "a port"))

    @property
    def url(self):
        return "http://127.0.0.1:%d/" % self.port

    def ask(self, path, method="GET", body=None):
        """Sends a request. Returns (status, headers, body)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request(method, path, body)
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read().decode()
        finally:
            connection.close()

    def get(self, path):
        status, _, body = self.ask(path)
        assert status == 200, body
        return body

    def status(self):
        return json.loads(self.get("/status.json"))

    def metrics(self):
        """Returns the metrics: {name: {labels: value}}, with labels as a sorted tuple of pairs."""
        return parse(self.get("/metrics"))[0]

    def value(self, name, **labels):
        return self.metrics().get(name, {}).get(tuple(sorted(labels.items())))


def parse(text):
    """Returns the samples, and {metric: type}. Raises AssertionError if the text is not in the
    format."""
    samples, types, helped = {}, {}, set()
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split(" ")[2]
            assert name not in helped and len(line.split(" ", 3)[3]) > 0
            helped.add(name)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name in helped and kind in ("counter", "gauge", "histogram")
            types[name], latest = kind, name
        else:
            name, labels, value = SAMPLE.match(line).groups()
            family = name
            if types[latest] == "histogram":
                assert name in [latest + end for end in OF_HISTOGRAM], line
                family = latest
            assert family == latest, "not among its own: " + line
            key = tuple(sorted(labels_of(labels or "")))
            assert key not in samples.setdefault(name, {}), "twice: " + line
            samples[name][key] = float(value)
    assert helped == set(types)
    return samples, types


def labels_of(text):
    at, found = 0, []
    while at < len(text):
        match = LABEL.match(text, at)
        assert match, text
        value = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], match[2])
        found.append((match[1], value))
        at = match.end()
    return found
