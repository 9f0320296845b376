"""The benchmarks name the fabric of each figure, and fail if it is not the requested one."""
import json
import subprocess

from drill import BUILD, SECONDS

MEASURED, NOT_MEASURED = 0, 2


def bench(program, mirrors, *words):
    line = [BUILD / "bench" / program, "--mirrors", mirrors[0].address, *words]
    return subprocess.run([str(word) for word in line], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SECONDS)


def compare(mirrors, *words):
    return bench("compare", mirrors, "--work", "synthetic", "--engines", "perseas",
                 "--seconds", 0.05, "--rounds", 1, *words)


def test_a_figure_tells_its_fabric(mirrors, fabric):
    """The mirror is on the requested fabric, and is listed with it."""
    started = mirrors(1, fabric)
    done = compare(started, "--fabric", fabric, "--json")
    assert done.returncode == MEASURED, done.stderr
    assert json.loads(done.stdout)["mirrors"] == [
        {"address": started[0].address, "fabric": fabric, "state": "live"}]


def test_another_fabric_gives_no_figure(mirrors, fabric):
    """The mirror is on another fabric than the requested one."""
    done = compare(mirrors(1, fabric), "--fabric", "pigeon")
    assert done.returncode == NOT_MEASURED and not done.stdout
    assert "is on %s, not on pigeon" % fabric in done.stderr


def test_reopening_checks_what_it_read(mirrors, fabric):
    """Creates a store, opens it three times, and reads all of it."""
    done = bench("reopen", mirrors(1, fabric), "--make", "--size", "1M", "--rounds", 3,
                 "--fabric", fabric, "--json")
    assert done.returncode == MEASURED, done.stderr
    told = json.loads(done.stdout)
    assert told["bytes"] == 1 << 20 and told["mirrors"][0]["fabric"] == fabric
