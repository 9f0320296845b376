"""Short runs of the measurements of pauses that an application notices: when its owner is killed,
when a mirror is copied whole, when other clients load a mirror. Their bounds are exceeded by far if
something is wrong. Pauses do not include the time for which processors kept its processes from
running. How soon the next owner commits is measured by night."""
import json
import subprocess
import sys

import pytest

from drill import BUILD, MIB, PATIENCE, SECONDS, TOP
from interval import of_median

COPY_PAUSE = 100 * PATIENCE             # ms, for a transaction
FLOOD_PAUSE = 300 * PATIENCE            # ms, for a transaction
FAILOVER = 5000 * PATIENCE              # ms, for 128 MiB
SILENCE = {"tcp": 600 * PATIENCE,       # ms, with an --owner-timeout of 250
           "shm": 1000 * PATIENCE}      # meanwhile three images of 64 MiB are copied
CUTS, CUT_OFF = ["tcp", "tcp", "shm"], 9    # runs of bench/cutoff.py, and how often to run them all


def measure(name, output, *words):
    """Runs bench/NAME. Returns its results."""
    line = [sys.executable, TOP / "bench" / name, "--build", BUILD, "--output", output, *words]
    done = subprocess.run([str(word) for word in line], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=10 * SECONDS)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    return json.loads(output.read_text())


@pytest.mark.timing("how soon the next owner commits")
def test_the_next_owner_commits_soon_after_the_kill(tmp_path):
    """kill -9 of owners of 64 and 128 MiB, over each fabric, with memory read first and on demand.
    The next owner is started by `perseas run`, or is a standby in a process, with and without a
    copy. Nothing acknowledged is missing, and every figure is there."""
    told = measure("failover.py", tmp_path / "failover.json", "--quick")
    assert told["sizes"] == [64 * MIB, 128 * MIB]
    assert [entry["fabric"] for entry in told["fabrics"]] == ["tcp", "shm"]
    for entry in told["fabrics"]:
        assert entry["on_demand"]
        assert len(entry["kills"]) == 2 * 3 and len(entry["here_ms"]) == 2 * 2
        assert [each["bytes"] for each in entry["standbys"]] == [
            size for size in (64 * MIB, 128 * MIB) for _ in range(2)]
        for each in entry["standbys"]:
            run, = each["runs"]
            assert 0 < run["open_ms"] < run["total_ms"]
            assert 0 <= run["copied"] <= (100 if "copy" in each["way"] else 0)
        for kill in entry["kills"]:
            run, = kill["runs"]
            assert 0 < run["open_ms"] < run["total_ms"]
            assert run["came_later"] == (kill["recovery"] != "read first")
        assert of_median(kill["runs"][0]["total_ms"] for kill in entry["kills"])[1] < FAILOVER
        assert entry["faults"][0]["count"] > 0 and entry["bare_lanes"][0]["count"] > 0
        assert 0 < entry["hangs"][0]["start_ms"] < entry["hangs"][0]["total_ms"]
    assert all(row["met"] is None for row in told["rows"])
    drawn = sorted(file.name for file in tmp_path.glob("*.svg"))
    assert drawn == ["failover-%s-%d.svg" % (fabric, size) for fabric in ("shm", "tcp")
                     for size in (128, 64)]


@pytest.mark.timing("how soon an owner that fell silent is replaced")
@pytest.mark.needs("namespaces")
@pytest.mark.root("makes network namespaces")
def test_an_owner_whose_host_is_cut_off_is_replaced_soon(tmp_path):
    """The link goes down without resets; or the owner is stopped, also with the mirrors' memory
    shared. Nothing acknowledged is missing."""
    took = [[] for _ in CUTS]
    for _ in range(CUT_OFF):
        told = measure("cutoff.py", tmp_path / "cutoff.json", "--quick")
        assert [each["fabric"] for each in told["runs"]] == CUTS
        for each, times in zip(told["runs"], took):
            run, = each["runs"]
            assert 0 < run["start_ms"] < run["open_ms"] < run["total_ms"]
            times.append(run["total_ms"])
    for fabric, times in zip(CUTS, took):
        low, high = of_median(times)
        print("%s: %.0f ms to %.0f ms" % (fabric, low, high))
        assert high < SILENCE[fabric], times


def test_a_short_time_of_load_raises_no_alarm(tmp_path):
    """A short run of what `make soak` runs for an hour: every store is counted, and commits
    continue."""
    told = measure("alarms.py", tmp_path / "alarms.json", "--seconds", 3)
    assert [(each["fabric"], each["timeouts_ms"]) for each in told["stores"]] == [
        (fabric, short) for fabric in ("tcp", "shm") for short in (None, 250)]
    assert all(each["commits"] > 20 for each in told["stores"])


def test_no_transaction_waits_long_while_a_mirror_is_copied_whole(tmp_path):
    """With a rate limit and without. A delay by the product occurs in each of the resyncs, and one
    by other load on the host hardly in all, so the shortest of the longest pauses counts, without
    the time for which processors were busy with other processes. The rate limit is met."""
    told = measure("resync.py", tmp_path / "resync.json", "--size", 16, "--rate", 64,
                   "--rounds", 3, "--seconds", 0.2)
    assert len(told["resyncs"]) == 4
    for entry in told["resyncs"]:
        with_resync = entry["stretches"]["with"]
        assert len(with_resync) == 3
        pauses = [stretch["rest_ms"] for stretch in with_resync]
        assert min(pauses) < COPY_PAUSE, entry
        if entry["resync_rate"]:
            assert entry["seconds"]["max"] > 0.5 * entry["bytes"] / entry["resync_rate"]


def test_no_owner_that_floods_a_mirror_stops_the_commits_of_others(tmp_path):
    """Two owners send requests endlessly. A delay by the mirror occurs in every run, so the
    shortest of the longest pauses counts, without the time for which processors were busy with
    other processes."""
    told = measure("neighbours.py", tmp_path / "neighbours.json", "--short", "--seconds", 0.5,
                   *["--only", "owners"] * 3)
    pauses = [max(entry[stretch]["rest_ms"] for stretch in ("with", "rest"))
              for entry in told["neighbours"]]
    assert len(pauses) == 3 and min(pauses) < FLOOD_PAUSE, told
