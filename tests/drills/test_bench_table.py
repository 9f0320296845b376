"""The benchmarks' table, the relay that delays, and threads that commit."""
import csv
import json
import socket
import subprocess
import threading
import time
from xml.etree import ElementTree

import pytest

from drill import BUILD, SECONDS, noise  # which also finds what is in bench/
import plot
from failover import Row, across, verdict
from report import FIELDS, Report, met

DELAY_US = 20000


def test_a_row_has_the_ratio_of_medians_and_the_spread_of_rounds():
    """Three rounds, one of which was disturbed on one side."""
    report = Report()
    row = report.add("a", "/s", [10, 30, 20], "b", [40, 40, 10], ">= 0.6")
    assert (row["value"], row["against_value"], row["ratio"]) == (20, 40, 0.5)
    assert (row["ratio_min"], row["ratio_max"], row["met"]) == (0.25, 2, False)


@pytest.mark.parametrize("ratio, target, verdict", [
    (0.35, ">= 0.35", True), (0.34, ">= 0.35", False), (1.3, "<= 1.3", True),
    (1.31, "<= 1.3", False), (7, None, None)])
def test_a_target_is_met_or_not(ratio, target, verdict):
    """At the bound, beyond it, and without a target."""
    assert met(ratio, target) is verdict


@pytest.mark.parametrize("row, says", [
    (Row("kill", "ms", [40, 90, 49], "first", [400, 900, 490], "<= 50"), None),
    (Row("kill", "ms", [51, 90, 40], "first", [400, 900, 490], "<= 50"),
     "51 ms, target <= 50 ms"),
    (Row("growth", "ms", [130, 10, 200], "small", [100, 8, 150], "<= 1.3", True), None),
    (Row("growth", "ms", [14, 14, 7], "small", [10, 9, 10], "<= 1.3", True),
     "1.4 times small, target <= 1.3"),
    (Row("shown", "ms", [1, 2, 3]), None)])
def test_a_target_that_failover_misses_is_named(row, says, capsys):
    """The target is for the median, or for the ratio of medians; a row without a target is only
    shown."""
    assert verdict([Row("other", "ms", [1], target="<= 1"), row]) == (1 if says else 0)
    told = capsys.readouterr().out
    assert told == ("Missed: %s: %s\n" % (row.what, says) if says else "All targets are met.\n")


def test_rates_across_a_kill_are_drawn(tmp_path):
    """10 a second, nothing for a second, then 20 a second; each point of a line is where its
    numbers belong."""
    before = [{"at_ns": i * 10**8, "number": i} for i in range(11)]
    after = [{"at_ns": 2 * 10**9 + i * 10**8, "number": 10 + 2 * i} for i in range(11)]
    rates = across(before, after, 10**9, 2 * 10**9)
    assert rates[0] == [-950, 10] and rates[9:12] == [[-50, 10], [0, 0], [1000, 0]]
    assert rates[12] == [1050, 20] and len(rates) == 22
    plot.draw(tmp_path / "a.svg", "a < b", "ms", "rate", {"one": rates, "two": [[0, 5]]})
    svg = ElementTree.parse(tmp_path / "a.svg")
    lines = [line.get("points") for line in svg.iter("{http://www.w3.org/2000/svg}polyline")]
    one, two = ([tuple(map(float, point.split(","))) for point in line.split()] for line in lines)
    assert len(one) == len(rates) and len(two) == 1
    lowest, highest = max(y for _, y in one), min(y for _, y in one)
    assert one[12][1] == highest and one[0][1] == pytest.approx((lowest + highest) / 2, abs=0.1)
    assert two[0] == (one[10][0], pytest.approx(lowest + (highest - lowest) / 4, abs=0.1))


def test_json_and_csv_hold_the_same_rows(tmp_path):
    """A row with a target, and one without a comparison."""
    report = Report()
    report.add("a", "/s", [1, 2, 3], "b", [1, 1, 1], ">= 3")
    report.add("c", "us", [5])
    report.write(tmp_path / "bench.json")
    rows = json.loads((tmp_path / "bench.json").read_text())
    assert [row["name"] for row in rows] == ["a", "c"] and list(rows[0]) == FIELDS
    with open(tmp_path / "bench.csv", newline="") as text:
        lines = list(csv.DictReader(text))
    assert [line["ratio"] for line in lines] == ["2.0", ""]
    table = report.table().splitlines()
    assert len(table) == 4 and "**no**" in table[2] and table[3].startswith("| c |")


class Relayed:
    """An echo server behind a relay."""

    def __enter__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self.echo, daemon=True)
        self.thread.start()
        line = [BUILD / "bench/relay", "--port", self.server.getsockname()[1], "--delay-us",
                DELAY_US]
        self.relay = subprocess.Popen([str(word) for word in line], stdout=subprocess.PIPE)
        self.port = int(self.relay.stdout.readline())
        return self

    def echo(self):
        link, _ = self.server.accept()
        with link:
            while data := link.recv(65536):
                link.sendall(data)

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), SECONDS)

    def __exit__(self, *_):
        self.relay.kill()
        self.relay.wait()
        self.relay.stdout.close()
        self.server.close()


def send_all(link, data):
    link.sendall(data)
    link.shutdown(socket.SHUT_WR)


def receive(link, count):
    """Receives `count` bytes, or fewer if the other side closes."""
    data = b""
    while len(data) < count and (more := link.recv(65536)):
        data += more
    return data


def test_bytes_take_as_long_as_the_relay_is_told():
    """Sends one byte there and back."""
    with Relayed() as relayed, relayed.connect() as link:
        link.sendall(b"a")
        assert link.recv(1) == b"a"
        start = time.monotonic()
        link.sendall(b"b")
        assert link.recv(1) == b"b"
        assert time.monotonic() - start >= 2 * DELAY_US / 1e6


def test_all_bytes_come_through_a_relay_in_order():
    """Sends more than the relay's rings have room for, and then closes."""
    sent = noise(5 << 20)
    with Relayed() as relayed, relayed.connect() as link:
        writer = threading.Thread(target=send_all, args=(link, sent))
        writer.start()
        assert receive(link, len(sent) + 1) == sent
        writer.join(SECONDS)


@pytest.mark.parametrize("how", [[], ["--serial"]], ids=["apart", "serial"])
def test_threads_find_their_commits_when_the_store_is_opened_again(mirrors, fabric, how):
    """Runs two numbers of threads in turn. The program compares what it reads back, and for serial
    transactions the common counter with the threads' own."""
    started = mirrors(1, fabric)
    line = [BUILD / "bench/threads", "--mirrors", started[0].address, "--threads", "1,3",
            "--seconds", 0.05, "--rounds", 2, "--json", *how]
    done = subprocess.run([str(word) for word in line], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [entry["threads"] for entry in told["series"]] == [1, 3]
    assert all(len(entry["rates"]) == 2 and entry["p50_ns"] > 0 for entry in told["series"])
    assert told["mirrors"][0]["fabric"] == fabric
