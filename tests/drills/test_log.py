"""What the daemon says of what happens to stores, as its operator reads it."""
import datetime
import json
import os
import pathlib
import subprocess

import pytest
import wire

from cluster import wait_for
from drill import BUILD, SECONDS, fill, run_command, wait_ownerless

CODE = {"text": (), "json": ("--log-format", "json")}


def entries(daemon):
    """Every line must be an object of its own."""
    return [json.loads(line) for line in daemon.log().splitlines()]


def named(daemon, event):
    return [entry for entry in entries(daemon) if entry["event"] == event]


@pytest.mark.parametrize("form", CODE)
def test_an_owners_life_is_told_once(mirrors, owner, fabric, form):
    """A store is made, opened, taken over while its owner lives, and dropped. Each of it is one
    line; in JSON with the names and numbers that a program needs."""
    daemon, = mirrors(1, fabric, CODE[form])
    fill("data", [daemon], {"s": b"contents"})
    before = owner("data", [daemon])
    assert run_command("recover", "data", "--takeover", mirrors=[daemon]).status == 0
    before.kill9()
    wait_ownerless("data", [daemon])
    assert run_command("drop", "data", daemon.address, "--yes").status == 0
    if form == "text":
        log = daemon.log()
        mine = "Z perseasd %s: " % daemon.mirror.tcp
        assert all("Z perseasd %s:" % daemon.mirror.host in line for line in log.splitlines())
        assert log.count(mine + "store data: created\n") == 1
        assert log.count(mine + "store data: claimed by ") == 3
        assert log.count(" is fenced by a claim with epoch ") == 1
        assert log.count(", is over\n") == 3
        assert log.count(mine + "store data: dropped\n") == 1
        return
    claims, fences, ends = (named(daemon, event)
                            for event in ("claimed", "fenced", "session-over"))
    assert (len(claims), len(fences), len(ends)) == (3, 1, 3)
    assert [each["epoch"] for each in claims] == sorted({each["epoch"] for each in claims})
    assert fences[0]["epoch"] == claims[2]["epoch"] and fences[0]["peer"] == claims[1]["peer"]
    assert len(named(daemon, "created")) == len(named(daemon, "dropped")) == 1
    assert {each["store"] for each in claims + fences + ends} == {"data"}
    for entry in entries(daemon):
        assert entry["level"] in ("error", "warning", "info", "debug")
        assert entry["message"] and "\n" not in entry["message"]
        moment = datetime.datetime.strptime(entry["time"], "%Y-%m-%dT%H:%M:%S.%fZ")
        assert abs(datetime.datetime.utcnow() - moment) < datetime.timedelta(seconds=600)


def test_what_is_refused_says_who_asked_for_what(mirrors, owner):
    """A claim without takeover, while the owner lives; and something that is no request."""
    daemon, = mirrors(1, options=CODE["json"])
    fill("data", [daemon], {"s": b"contents"})
    owner("data", [daemon])
    control = wire.Control(daemon.address)
    claim = wire.field(1, "data") + wire.field(2, 99) + wire.field(3, os.urandom(16))
    assert control.ask(wire.field(wire.CLAIM, claim))[1] == 4
    assert control.ask(b"\xff")[1] == wire.STATUS_BAD_REQUEST
    busy, bad = named(daemon, "refused")
    assert busy["peer"] == bad["peer"] == "%s:%d" % control.peer.getsockname()
    assert (busy["store"], busy["epoch"], busy["level"]) == ("data", 99, "info")
    assert "refused \"claim\": store data has a live owner" in busy["message"]
    assert "refused \"unknown\": " in bad["message"] and "store" not in bad


def test_a_spill_and_its_end_are_told(mirrors, tmp_path):
    daemon, = mirrors(1, options=(*CODE["json"], "--spill-dir", str(tmp_path / "spill")))
    fill("data", [daemon], {"s": b"contents"})
    assert daemon.terminate() == 0
    assert named(daemon, "spilled")[0]["message"].startswith("1 images were written to ")
    assert named(daemon, "ends")


def test_what_it_cannot_start_with_is_an_event_too(tmp_path):
    """The format is known from the command line on."""
    (tmp_path / "file").write_text("")
    done = subprocess.run([BUILD / "perseasd", "--log-format", "json", "--memory-dir",
                           tmp_path / "file"], stderr=subprocess.PIPE, text=True, timeout=SECONDS)
    assert done.returncode == 1
    entry = json.loads(done.stderr)
    assert entry["event"] == "fails" and str(tmp_path) in entry["message"]


def test_in_the_journal_priorities_come_first(tmp_path):
    """The journal takes <N> off a line of text, and notes the time; an object stays an object."""
    for words, begins in ((), "<6>perseasd "), (CODE["json"], "{\"time\":"):
        log = pathlib.Path(tmp_path / "log")
        with open(log, "wb") as err:
            journal = os.fstat(err.fileno())
            daemon = subprocess.Popen(
                [BUILD / "perseasd", "--listen", "127.0.0.1:0", "--memory-dir",
                 tmp_path / "memory", "--unsafe-memory-on-disk", "on", *words], stderr=err,
                env=dict(os.environ,
                         JOURNAL_STREAM="%d:%d" % (journal.st_dev, journal.st_ino)))
        try:
            wait_for(lambda: "listening" in log.read_text(), SECONDS, "a daemon that listens")
            assert log.read_text().startswith(begins)
        finally:
            daemon.kill()
            daemon.wait()
