"""The test runner must not report a failure as a success, and drops root's rights; and `make check`
sums up its suites."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
RUNNER = TOP / "tests/run.py"


def run(folder, *words):
    done = subprocess.run([sys.executable, str(RUNNER), *words], cwd=folder, text=True, timeout=600,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def script(folder, name, text):
    path = folder / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)


def counted(folder, suite):
    """Returns how many tests passed, failed, were skipped, are undecided and are unstable."""
    return json.loads((folder / "build/results" / (suite + ".json")).read_text())["verdicts"]


def test_lines_of_tap_are_counted(tmp_path):
    """Two passed tests, a skipped one and a failed one, and an exit status that hides it."""
    tap = script(tmp_path, "tap", "echo 1..4; echo ok 1 - a; echo ok 2 - b; "
                                  "echo 'ok 3 # SKIP c'; echo not ok 4 - d")
    assert run(tmp_path, "unit", tap)[0] == 1
    assert counted(tmp_path, "unit") == [2, 1, 1, 0, 0]


def test_a_crash_after_good_lines_is_a_failure(tmp_path):
    """One of three planned tests is reported, then the program dies."""
    crash = script(tmp_path, "crash", "echo 1..3; echo ok 1 - a; kill -SEGV $$")
    assert run(tmp_path, "unit", crash)[0] == 1
    assert counted(tmp_path, "unit") == [1, 1, 0, 0, 0]


def test_an_end_before_the_plans_end_is_a_failure(tmp_path):
    """Status 0, but a test is missing."""
    short = script(tmp_path, "short", "echo 1..2; echo ok 1 - a")
    assert run(tmp_path, "unit", short)[0] == 1


def test_a_sum_in_words_is_counted(tmp_path):
    """As pytest and our own programs print it."""
    words = script(tmp_path, "words", "echo '3 passed, 1 skipped in 0.1s'")
    assert run(tmp_path, "drills", words)[0] == 0
    assert counted(tmp_path, "drills") == [3, 0, 1, 0, 0]


def test_a_skip_for_want_of_a_verdict_is_undecided(tmp_path):
    """pytest -rs prints two skips, one of which began and is undecided."""
    words = script(tmp_path, "words", "echo 'SKIPPED [1] a.py:1: UNDECIDED: a busy machine'; "
                                      "echo 'SKIPPED [1] b.py:1: only root'; "
                                      "echo '3 passed, 2 skipped in 0.1s'")
    assert run(tmp_path, "drills", words)[0] == 0
    assert counted(tmp_path, "drills") == [3, 0, 1, 1, 0]


def test_a_program_that_hangs_is_a_failure(tmp_path):
    """One program prints nothing for longer than allowed; the other takes as long, but prints."""
    forever = script(tmp_path, "forever", "sleep 60")
    status, told = run(tmp_path, "sim", "--quiet", "1", forever)
    assert status == 1 and "killed after 1 s without output" in told
    goes_on = script(tmp_path, "goes_on", "for i in 1 2 3 4 5 6; do echo $i; sleep 0.5; done")
    assert run(tmp_path, "sim", "--quiet", "2", goes_on)[0] == 0


def test_what_waits_takes_nobodys_place(tmp_path):
    """Programs started with --waiting take no slot: the only program with a slot ends when two of
    them have run next to it. All are counted."""
    meets = script(tmp_path, "meets", "touch here; until [ -e first ] && [ -e second ]; do "
                                      "sleep 0.01; done")
    beside = [script(tmp_path, name, "until [ -e here ]; do sleep 0.01; done; touch " + name)
              for name in ("first", "second")]
    status, told = run(tmp_path, "unit", "--jobs", "1", "--waiting", beside[0],
                       "--waiting", beside[1], meets)
    assert (status, counted(tmp_path, "unit")) == (0, [3, 0, 0, 0, 0]), told
    fails = script(tmp_path, "fails", "exit 1")
    assert run(tmp_path, "unit", "--waiting", fails, beside[0])[0] == 1


def test_what_failed_is_told_however_far_from_the_end(tmp_path):
    """One failed line of a hundred, in each format, is repeated; lines of success are not."""
    for name, line in (("tap", "not ok 7 - this one"), ("nested", "  | not ok 7 - this one"),
                       ("ours", "unit this_one 3 passed, 1 failed"), ("drills", "FAILED this one")):
        long = script(tmp_path, name, "echo '%s'; for i in $(seq 100); do "
                                      "echo \"ok $i 2 passed, 0 failed\"; done; exit 1" % line)
        told = run(tmp_path, "unit", long)[1]
        assert line in told and "ok 71 " in told and "ok 70 " not in told, told


def test_a_program_that_is_missing_is_a_failure(tmp_path):
    """There is no such file."""
    assert run(tmp_path, "sim", "./nothing")[0] == 1


def test_a_suite_in_which_nothing_runs_is_a_failure(tmp_path):
    """No command at all."""
    assert run(tmp_path, "sim")[0] == 1
    assert counted(tmp_path, "sim") == [0, 1, 0, 0, 0]


def test_the_sum_of_one_suite_is_of_its_last_run_alone(tmp_path):
    """Another suite fails. Then its runner ends before it has counted."""
    good, bad = script(tmp_path, "good", "exit 0"), script(tmp_path, "bad", "exit 1")
    run(tmp_path, "sim", bad)
    status, text = run(tmp_path, "deb", "--sum", good, good)
    assert status == 0 and text.splitlines()[-1] == "2 passed, 0 failed" and "sim" not in text
    dies = script(tmp_path, "dies", "kill -9 $PPID")
    assert run(tmp_path, "deb", "--sum", dies)[0] not in (0, 1)
    assert not (tmp_path / "build/results/deb.json").exists()


def test_a_suite_that_is_summed_ends_with_what_failed(tmp_path):
    """Also if passed tests come after it. The exit status is that of the suite."""
    good, bad = script(tmp_path, "good", "exit 0"), script(tmp_path, "bad", "echo why; exit 1")
    status, text = run(tmp_path, "deb", "--sum", bad, good)
    lines = text.splitlines()
    assert status == 1 and lines[-1] == "1 passed, 1 failed"
    assert "good" in lines[2] and "bad" in lines[3] and lines[4] == "    | why"


# --- make check ---

def check(folder, *words, suites, **environment):
    """Returns the output of check.py, with a shell line for each `make check-SUITE`."""
    (folder / "Makefile").write_text("".join(
        "check-%s:\n\t@%s\n" % (suite, line) for suite, line in suites.items()))
    (folder / "tests").mkdir(exist_ok=True)
    (folder / "tests/unstable").write_text("# none\n")
    done = subprocess.run([sys.executable, str(TOP / "tests/check.py"), *words], cwd=folder,
                          text=True, timeout=600, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, **environment})
    return done.returncode, done.stdout


def suite(passed, failed):
    """Returns a suite with so many tests."""
    return "%s %s $@ \"it: sh -c 'echo %d passed, %d failed; exit %d'\"" % (
        sys.executable, RUNNER, passed, failed, failed > 0)


def test_a_check_sums_its_suites(tmp_path):
    """One suite alone, then one each in two lanes. Each has a line, and the sum is the last
    line."""
    suites = {"build": suite(1, 0), "drills": suite(2, 0), "unit": suite(3, 0)}
    for name in suites:
        suites[name] = suites[name].replace("$@", name)
    status, told = check(tmp_path, "day", "--first", "build", "--waiting", "drills", "--busy",
                         "unit", suites=suites)
    assert status == 0 and told.splitlines()[-1] == "6 passed, 0 failed", told
    for name in suites:
        assert re.search("^%s +[123] passed, 0 failed +" % name, told, re.M), told


def test_a_check_fails_with_any_suite(tmp_path):
    """One suite has a failed test, another one ends before it counts, a third one counts and ends
    with an error of make. Failures are repeated before the sum."""
    suites = {"build": suite(1, 0).replace("$@", "build"),
              "unit": suite(1, 2).replace("$@", "unit"),
              "sim": "echo no compiler; exit 1",
              "style": suite(1, 0).replace("$@", "style") + " && exit 3"}
    status, told = check(tmp_path, "day", "--first", "build", "--busy", "unit", "sim", "style",
                         suites=suites)
    assert status == 1 and told.splitlines()[-1] == "3 passed, 4 failed", told
    end = told[told.rindex("suites,"):]
    for words in ("unit ", "sim          did not get as far", "| no compiler",
                  "check-style ended with status"):
        assert words in end, told


def test_an_estimate_follows_what_the_last_run_took(tmp_path):
    """The suites after the first one run in two lanes, the longer of which counts."""
    suites = {name: suite(1, 0).replace("$@", name) for name in "abcde"}
    (tmp_path / "build/durations").mkdir(parents=True)
    for name, minutes in (("a", 3), ("b", 4), ("c", 10), ("d", 1), ("e", 2)):
        (tmp_path / "build/durations" / name).write_text("%d\n" % (60 * minutes))
    told = check(tmp_path, "day", "--first", "a", "b", "--waiting", "c", "--busy", "d", "e",
                 suites=suites)[1]
    assert told.startswith("check        0 of 5 suites, about 17 min left\n"), told
    assert float((tmp_path / "build/durations/c").read_text()) < 60


def test_every_suite_has_its_usual_time():
    """The same suites as in the makefile."""
    makefile = (TOP / "tests/check.mk").read_text().replace("\\\n", " ")

    def suites(*lanes):
        return sorted(sum((re.findall("^%s := (.*)$" % lane, makefile, re.M)[0].split()
                           for lane in lanes), []))

    for file, lanes in (("check.py", ("FIRST", "WAITING", "BUSY")), ("night.py", ("NIGHT",))):
        text = (TOP / "tests" / file).read_text()
        table = re.search(r"^USUALLY = {(.*?)^}", text, re.M | re.S)[1]
        assert sorted(re.findall(r'"([\w-]+)":', table)) == suites(*lanes)


def git(folder, *words):
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder,
                   check=True, stdout=subprocess.PIPE)


def test_what_passed_by_night_is_not_run_again(tmp_path):
    """Two suites, one of which fails. A document changes, then a file that counts."""
    suites = {"lint": suite(1, 0).replace("$@", "lint"), "rdma": suite(0, 1).replace("$@", "rdma")}
    git(tmp_path, "init", "-q")
    (tmp_path / "file.c").write_text("int x;\n")
    (tmp_path / "read.md").write_text("a\n")
    (tmp_path / ".gitignore").write_text("build\n")
    check(tmp_path, "night", "lint", suites=suites)     # its files stay there
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "a")

    def night(**environment):
        told = check(tmp_path, "night", "lint", "rdma", suites=suites, **environment)[1]
        return [name for name in suites if re.search("^%s +. passed" % name, told, re.M)]

    assert night() == ["lint", "rdma"]
    assert night() == ["rdma"]
    (tmp_path / "read.md").write_text("b\n")
    assert night() == ["rdma"]
    assert night(NIGHT_SECONDS="1") == []
    (tmp_path / "file.c").write_text("int y;\n")
    assert night() == ["lint", "rdma"]
    assert night() == ["lint", "rdma"]                  # an uncommitted tree is not recorded
    git(tmp_path, "commit", "-qam", "b")
    assert night() == ["lint", "rdma"] and night() == ["rdma"]


# --- drills that fail once ---

FLAKY = """import pathlib


def test_it():
    seen = pathlib.Path(%r)
    seen.write_text(seen.read_text() + "x")
    if len(seen.read_text()) in %r:
        %s
"""


def flaky(folder, fails_at, how, listed=""):
    """Runs a drill that fails in these runs. Returns (status, verdicts, output)."""
    (folder / "tests/drills").mkdir(parents=True, exist_ok=True)
    (folder / "seen").write_text("")
    (folder / "tests/unstable").write_text(listed)
    (folder / "tests/drills/test_a.py").write_text(FLAKY % (str(folder / "seen"), fails_at, how))
    pytest_line = "drills: %s -m pytest -q -rfEs -p no:cacheprovider tests/drills" % sys.executable
    assert run(folder, "drills", pytest_line)[0] == 1
    status, told = run(folder, "drills", "--again")
    return status, counted(folder, "drills"), told


LATE = "raise TimeoutError('no answer within 5 s')"


def test_a_drill_that_waited_in_vain_once_is_unstable(tmp_path):
    """It passes five times alone. The line to add to the list is printed; a listed drill has its
    cause."""
    tmp_path.chmod(0o755)
    status, verdicts, told = flaky(tmp_path, [1], LATE)
    assert (status, verdicts) == (0, [0, 0, 0, 0, 1])
    assert "add to tests/unstable the line 'tests/drills/test_a.py::test_it 20" in told
    listed = "tests/drills/test_a.py::test_it 2026-01-01 the machine\n"
    assert "passed 5 times alone: the machine" in flaky(tmp_path, [1], LATE, listed)[2]
    assert len((tmp_path / "seen").read_text()) == 6


def test_a_drill_that_fails_again_is_red(tmp_path):
    """It fails in the last of the five runs."""
    tmp_path.chmod(0o755)
    status, verdicts, _ = flaky(tmp_path, [1, 6], LATE)
    assert (status, verdicts) == (1, [0, 1, 0, 0, 0])


def test_a_drill_that_shows_wrong_data_is_red(tmp_path):
    """It would pass from now on, but does not run again."""
    status, verdicts, _ = flaky(tmp_path, [1], "assert 41 == 42, 'transactions'")
    assert (status, verdicts) == (1, [0, 1, 0, 0, 0])
    assert len((tmp_path / "seen").read_text()) == 1


# --- virtual machines ---

GUESTS = """import qemu

tries = []


def test_void_twice():
    tries.append(1)
    if len(tries) < 3:
        qemu.panics.append("Kernel panic - not syncing")
        assert False


def test_void_always():
    qemu.panics.append("Oops: int3")
    assert False


def test_the_products_fault():
    assert False
"""


def test_a_guest_whose_kernel_panics_is_void(tmp_path):
    """One test passes in its third machine, one never gets a working machine, and one fails in a
    working machine, so it runs once."""
    shutil.copy(TOP / "tests/rdma/conftest.py", tmp_path)
    (tmp_path / "test_guests.py").write_text(GUESTS)
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider",
                           "."], cwd=tmp_path, text=True, timeout=600, stdout=subprocess.PIPE,
                          env={**os.environ, "PYTHONPATH": str(TOP / "tests/rdma")})
    assert "1 failed, 1 passed, 1 skipped" in done.stdout, done.stdout
    assert done.stdout.count("is void: ") == 2 + 5
    assert "UNDECIDED: a guest's kernel panicked in each of 5 attempts" in done.stdout


# --- an ordinary user ---

# The user, the folder and the home of the caller, also in a result.
SEE = """{ id -u; pwd; echo "${HOME-none}"; } >build/results/$1.seen; [ -w see ] && echo 1 passed
"""


def me(folder):
    """Returns what the caller sees."""
    return [str(os.geteuid()), str(folder), os.environ.get("HOME", "none")]


def seen(folder, *options):
    """Returns what a command sees, and what a command run by root sees."""
    script(folder, "see", SEE)
    (folder / "build/results").mkdir(parents=True)
    folder.chmod(0o700)
    status, text = run(folder, "drills", *options, "one: ./see one", "--root", "two: ./see two")
    assert status == 0, text
    assert counted(folder, "drills") == [2, 0, 0, 0, 0]
    return [(folder / "build/results" / (name + ".seen")).read_text().split()
            for name in ("one", "two")]


@pytest.mark.root("becomes another user")
def test_root_has_an_ordinary_user_do_it_in_a_copy_that_is_removed(tmp_path):
    """In a folder that only root may enter. What needs root is done there."""
    (user, copy, home), root = seen(tmp_path, "--user")
    assert int(user) != 0 and home == copy and not pathlib.Path(copy).exists()
    assert root == me(tmp_path)


@pytest.mark.root("becomes another user")
def test_whole_systems_are_not_copied_for_an_ordinary_user(tmp_path):
    """Suites of the night leave system images in build/."""
    for name in ("ansible", "cluster", "container", "deb-test", "tests"):
        (tmp_path / "build" / name).mkdir(parents=True)
    script(tmp_path, "look", "ls build; echo 1 passed")
    status, text = run(tmp_path, "drills", "--user", "one: ./look")
    assert status == 0, text
    log = tmp_path / "build/results/drills/one.log"
    assert log.read_text().split() == ["results", "tests", "1", "passed"]


def test_whoever_calls_does_it_where_it_is(tmp_path):
    """Root without --user, and an ordinary user with it, too."""
    options = [] if os.geteuid() == 0 else ["--user"]
    assert seen(tmp_path, *options) == [me(tmp_path)] * 2


def test_what_was_skipped_is_said(tmp_path):
    """As pytest -rs prints it."""
    skips = script(tmp_path, "skips", "echo 'SKIPPED [1] a.py: only root'; echo 1 skipped")
    status, text = run(tmp_path, "drills", skips)
    assert status == 1 and "    | SKIPPED [1] a.py: only root" in text.splitlines()
