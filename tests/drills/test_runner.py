"""The test runner must not call a failure a success, and gives away root's rights."""
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
RUNNER = TOP / "tests/run.py"


def run(folder, *words):
    done = subprocess.run([sys.executable, str(RUNNER), *words], cwd=folder, text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def script(folder, name, text):
    path = folder / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)


def counted(folder, suite):
    return (folder / "build/results" / (suite + ".count")).read_text().split()


def test_lines_of_tap_are_counted(tmp_path):
    """Two good tests, a skipped one and a bad one, and an exit status that hides it."""
    tap = script(tmp_path, "tap", "echo 1..4; echo ok 1 - a; echo ok 2 - b; "
                                  "echo 'ok 3 # SKIP c'; echo not ok 4 - d")
    assert run(tmp_path, "unit", tap)[0] == 1
    assert counted(tmp_path, "unit") == ["2", "1", "1"]


def test_a_crash_after_good_lines_is_a_failure(tmp_path):
    """One of three planned tests is reported, then the program dies."""
    crash = script(tmp_path, "crash", "echo 1..3; echo ok 1 - a; kill -SEGV $$")
    assert run(tmp_path, "unit", crash)[0] == 1
    assert counted(tmp_path, "unit") == ["1", "1", "0"]


def test_an_end_before_the_plans_end_is_a_failure(tmp_path):
    """Status 0, and a test missing."""
    short = script(tmp_path, "short", "echo 1..2; echo ok 1 - a")
    assert run(tmp_path, "unit", short)[0] == 1


def test_a_sum_in_words_is_counted(tmp_path):
    """As pytest and our own programs say it."""
    words = script(tmp_path, "words", "echo '3 passed, 1 skipped in 0.1s'")
    assert run(tmp_path, "drills", words)[0] == 0
    assert counted(tmp_path, "drills") == ["3", "0", "1"]


def test_a_program_that_does_not_end_is_a_failure(tmp_path):
    """It would run for a minute, and is given a moment."""
    forever = script(tmp_path, "forever", "sleep 60")
    assert run(tmp_path, "sim", "--timeout", "0.3", forever)[0] == 1


def test_what_waits_takes_nobodys_place(tmp_path):
    """The only one that has a place ends when those beside it have run; all are counted."""
    meets = script(tmp_path, "meets", "touch here; until [ -e first ] && [ -e second ]; do "
                                      "sleep 0.01; done")
    beside = [script(tmp_path, name, "until [ -e here ]; do sleep 0.01; done; touch " + name)
              for name in ("first", "second")]
    status, told = run(tmp_path, "unit", "--timeout", "20", "--jobs", "1", "--waiting", beside[0],
                       "--waiting", beside[1], meets)
    assert (status, counted(tmp_path, "unit")) == (0, ["3", "0", "0"]), told
    fails = script(tmp_path, "fails", "exit 1")
    assert run(tmp_path, "unit", "--waiting", fails, beside[0])[0] == 1


def test_what_failed_is_told_however_far_from_the_end(tmp_path):
    """One line of a hundred, as each of those who count says it; none that says all is well."""
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
    assert counted(tmp_path, "sim") == ["0", "1", "0"]


def test_the_sum_counts_a_suite_whose_build_broke(tmp_path):
    """One suite is good, the other never got as far as running."""
    good = script(tmp_path, "good", "exit 0")
    assert run(tmp_path, "unit", good)[0] == 0
    assert run(tmp_path, "--broken", "sim")[0] == 0
    status, text = run(tmp_path, "--sum")
    assert status == 1
    assert text.splitlines()[-1] == "1 passed, 1 failed"
    assert text.startswith("sim       did not get as far as counting\n")


def test_the_sum_tells_again_what_failed(tmp_path):
    """Two suites, of which one has a bad test. A suite that is run again is good."""
    good = script(tmp_path, "good", "echo all is well")
    bad = script(tmp_path, "bad", "echo the reason; exit 1")
    run(tmp_path, "unit", good, bad)
    run(tmp_path, "sim", good)
    lines = run(tmp_path, "--sum")[1].splitlines()
    assert re.match("unit +bad +0 passed, 1 failed", lines[0]), lines
    assert lines[1] == "    | the reason"
    assert len(lines) == 5 and lines[-1] == "2 passed, 1 failed"
    run(tmp_path, "unit", good)
    assert "the reason" not in run(tmp_path, "--sum")[1]


def test_the_sum_of_good_suites_is_good(tmp_path):
    """Two suites with one good test each."""
    good = script(tmp_path, "good", "exit 0")
    for suite in ("unit", "sim"):
        assert run(tmp_path, suite, good)[0] == 0
    status, text = run(tmp_path, "--sum")
    assert status == 0
    assert text.splitlines()[-1] == "2 passed, 0 failed"


def test_the_sum_of_one_suite_is_of_its_last_run_alone(tmp_path):
    """Another one is bad. Then its runner ends before it has counted."""
    good, bad = script(tmp_path, "good", "exit 0"), script(tmp_path, "bad", "exit 1")
    run(tmp_path, "sim", bad)
    status, text = run(tmp_path, "deb", "--sum", good, good)
    assert status == 0 and text.splitlines()[-1] == "2 passed, 0 failed" and "sim" not in text
    dies = script(tmp_path, "dies", "kill -9 $PPID")
    assert run(tmp_path, "deb", "--sum", dies)[0] not in (0, 1)
    assert run(tmp_path, "--sum")[1].endswith("0 passed, 1 failed\n")


def test_a_suite_that_is_summed_ends_with_what_failed(tmp_path):
    """Also where good tests come after it. The status is that of the suite."""
    good, bad = script(tmp_path, "good", "exit 0"), script(tmp_path, "bad", "echo why; exit 1")
    status, text = run(tmp_path, "deb", "--sum", bad, good)
    lines = text.splitlines()
    assert status == 1 and lines[-1] == "1 passed, 1 failed"
    assert "good" in lines[2] and "bad" in lines[3] and lines[4] == "    | why"


def progress(folder, monkeypatch, suite, suites):
    """What is said when this suite of `make check` begins, and the suite is over at once."""
    monkeypatch.setenv("PERSEAS_SUITES", suites)
    status, said = run(folder, "--begin", suite)
    assert status == 0 and run(folder, "--end", suite) == (0, "")
    return said


def test_each_suite_of_a_check_says_how_far_it_is(tmp_path, monkeypatch):
    """Two alone, then two lanes of one after the other beside each other, of which the longer one
    counts. What the last time took counts, and what is done does not."""
    durations = tmp_path / "build/durations"
    durations.mkdir(parents=True)
    for suite, minutes in (("a", 3), ("b", 4), ("c", 10), ("d", 1), ("e", 2)):
        (durations / suite).write_text("%d\n" % (60 * minutes))
    lanes = "a b / c / d e"
    assert progress(tmp_path, monkeypatch, "a", lanes) == \
        "check     a is 1 of 5 suites, about 17 min left\n"
    assert progress(tmp_path, monkeypatch, "b", lanes) == \
        "check     b is 2 of 5 suites, about 14 min left\n"
    assert progress(tmp_path, monkeypatch, "c", lanes) == \
        "check     c is 3 of 5 suites, about 10 min left\n"
    assert "about 3 min left" in progress(tmp_path, monkeypatch, "d", lanes)
    assert float((durations / "c").read_text()) < 60
    (durations / "e").write_text("1\n")
    assert "less than a minute left" in progress(tmp_path, monkeypatch, "e", lanes)


def test_a_suite_that_has_begun_has_less_to_go(tmp_path, monkeypatch):
    """It began two minutes ago, takes five, and runs beside one that takes one."""
    results = tmp_path / "build/results"
    results.mkdir(parents=True)
    (tmp_path / "build/durations").mkdir()
    for suite, minutes in (("c", 5), ("d", 1)):
        (tmp_path / "build/durations" / suite).write_text("%d\n" % (60 * minutes))
    (results / "c.began").write_text("%f\n" % (time.time() - 120))
    assert progress(tmp_path, monkeypatch, "d", "/ c / d") == \
        "check     d is 2 of 2 suites, about 3 min left\n"


def test_a_suite_that_is_run_by_itself_says_nothing_of_others(tmp_path, monkeypatch):
    monkeypatch.delenv("PERSEAS_SUITES", raising=False)
    assert run(tmp_path, "--begin", "unit") == (0, "")


def test_every_suite_of_a_check_has_its_usual_time():
    """As the makefile has them, and no others."""
    makefile = (TOP / "tests/check.mk").read_text()
    suites = sum((re.findall("^%s := (.*)$" % lane, makefile, re.M)[0].split()
                  for lane in ("ALONE", "LAST", "BESIDE")), [])
    table = re.search(r"^USUALLY = {(.*?)^}", RUNNER.read_text(), re.M | re.S)[1]
    assert sorted(re.findall(r'"(\w+)":', table)) == sorted(suites)


# Who, where, whose home: in what is a result, too.
SEE = """{ id -u; pwd; echo "${HOME-none}"; } >build/results/$1.seen; [ -w see ] && echo 1 passed
"""


def me(folder):
    """What the caller sees."""
    return [str(os.geteuid()), str(folder), os.environ.get("HOME", "none")]


def seen(folder, *options):
    """What a command sees, and another one that is root's."""
    script(folder, "see", SEE)
    (folder / "build/results").mkdir(parents=True)
    folder.chmod(0o700)
    status, text = run(folder, "drills", *options, "one: ./see one", "--root", "two: ./see two")
    assert status == 0, text
    assert counted(folder, "drills") == ["2", "0", "0"]
    return [(folder / "build/results" / (name + ".seen")).read_text().split()
            for name in ("one", "two")]


@pytest.mark.root("becomes another user")
def test_root_has_an_ordinary_user_do_it_in_a_copy_that_is_removed(tmp_path):
    """In a folder that only root may enter. What is to be root's is done there."""
    (user, copy, home), root = seen(tmp_path, "--user")
    assert int(user) != 0 and home == copy and not pathlib.Path(copy).exists()
    assert root == me(tmp_path)


@pytest.mark.root("becomes another user")
def test_whole_systems_are_not_copied_for_an_ordinary_user(tmp_path):
    """Those that suites of the night leave in build/."""
    for name in ("ansible", "cluster", "container", "deb-test", "tests"):
        (tmp_path / "build" / name).mkdir(parents=True)
    script(tmp_path, "look", "ls build; echo 1 passed")
    status, text = run(tmp_path, "drills", "--user", "one: ./look")
    assert status == 0, text
    log = tmp_path / "build/results/drills/one.log"
    assert log.read_text().split() == ["results", "tests", "1", "passed"]


def test_whoever_calls_does_it_where_it_is(tmp_path):
    """Root without --user, an ordinary user with it, too."""
    options = [] if os.geteuid() == 0 else ["--user"]
    assert seen(tmp_path, *options) == [me(tmp_path)] * 2


def test_what_was_skipped_is_said(tmp_path):
    """As pytest -rs says it."""
    skips = script(tmp_path, "skips", "echo 'SKIPPED [1] a.py: only root'; echo 1 skipped")
    status, text = run(tmp_path, "drills", skips)
    assert status == 1 and "    | SKIPPED [1] a.py: only root" in text.splitlines()


def test_what_gives_way_does_so_as_a_session_too(tmp_path):
    """The runner has a low priority, and the kernel may divide its time among sessions."""
    see = script(tmp_path, "see", "[ -e /proc/self/autogroup ] || exit 0\n"
                                  "for try in $(seq 2000); do\n"
                                  "  grep -q 'nice %d$' /proc/self/autogroup && exit 0\n"
                                  "done\nexit 1\n" % min(19, os.nice(0) + 15))
    done = subprocess.run(["nice", "-n", "15", sys.executable, str(RUNNER), "sim", see],
                          cwd=tmp_path, timeout=60)
    assert done.returncode == 0


def drills(expression):
    """Those that pytest selects so."""
    words = ["-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-m", expression]
    done = subprocess.run([sys.executable, *words, "tests/drills"], cwd=TOP, text=True,
                          stdout=subprocess.PIPE, timeout=60, check=True)
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_every_drill_is_run_once():
    """By the suites together: alone or beside others, by an ordinary user or by root."""
    recipes = subprocess.run(["make", "-n", "check-timing", "check-drills"], cwd=TOP, text=True,
                             stdout=subprocess.PIPE, timeout=60, check=True).stdout
    expressions = re.findall(r"-m '([^']*)'", recipes)
    assert len(expressions) == 4
    assert sorted(sum(map(drills, expressions), [])) == sorted(drills(""))
