"""The script that NUT runs when the power fails, with a systemctl that only records its calls."""
import os
import pathlib
import re
import subprocess

import pytest

from drill import BUILD, SECONDS, TOP

SCRIPT = TOP / "deploy/nut/perseas-power"
SERVICE = TOP / "deploy/perseasd.service.in"
UNIT = "perseasd.service"
ACTIVE = "--quiet is-active " + UNIT


@pytest.fixture
def power(tmp_path):
    """power(event, *words, active=True) returns the calls of systemctl, one a line."""
    tools, asked = tmp_path / "tools", tmp_path / "asked"
    tools.mkdir()
    for name, body in (
            ("systemctl", 'echo "$*" >>%s\n[ "$1" != --quiet ] || exit "$INACTIVE"\n' % asked),
            ("sudo", '[ "$1" = -n ] && shift\nexec "$@"\n')):
        (tools / name).write_text("#!/bin/sh\n" + body)
        (tools / name).chmod(0o755)

    def run(event, *words, active=True):
        asked.write_text("")
        env = dict(os.environ, PATH="%s:%s" % (tools, os.environ["PATH"]),
                   INACTIVE="0" if active else "3",
                   PERSEAS_POWER_STATE=str(tmp_path / "stopped"))
        env.pop("NOTIFYTYPE", None)
        if event:
            env["NOTIFYTYPE"] = event
        subprocess.run([str(SCRIPT), *words], env=env, check=True, timeout=SECONDS)
        return asked.read_text().splitlines()

    return run


@pytest.mark.parametrize("event", ["LOWBATT", "FSD", "SHUTDOWN"])
def test_the_daemon_is_stopped_when_the_battery_is_low(power, event):
    assert power(event, "UPS ups@localhost: " + event) == [ACTIVE, "stop " + UNIT]


def test_it_is_stopped_when_a_timer_says_so(power):
    """upssched passes on the event that started the timer."""
    assert power("ONBATT", "perseas-spill") == [ACTIVE, "stop " + UNIT]
    assert power(None, "perseas-spill") == [ACTIVE, "stop " + UNIT]


@pytest.mark.parametrize("event", ["ONBATT", "COMMBAD", "REPLBATT", None])
def test_nothing_else_stops_it(power, event):
    assert power(event, "UPS ups@localhost on battery") == []


def test_it_is_started_again_if_it_was_stopped_here(power):
    assert power("ONLINE") == []
    power("LOWBATT")
    assert power("ONLINE") == ["start " + UNIT]
    assert power("ONLINE") == []


def test_what_an_operator_stopped_stays_so(power):
    assert power("LOWBATT", active=False) == [ACTIVE]
    assert power("ONLINE") == []


def test_the_service_gives_the_daemon_options_that_it_knows():
    line, = re.findall(r"^ExecStart=\S+ (.*)$", SERVICE.read_text(), re.MULTILINE)
    words = line.split()
    assert "--spill-dir=/var/lib/perseas/spill" in words
    assert "--state-dir=/var/lib/perseas/state" in words
    place = words.index("@SYSCONFDIR@/perseasd.conf")
    words[place] = "/dev/null"
    # systemd's value of %b
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")
    words = [word.replace("%b", boot) for word in words]
    done = subprocess.run([BUILD / "perseasd", *words, "--version"], capture_output=True,
                          text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr


def test_it_says_what_it_does_and_takes_no_other_option(tmp_path):
    """Neither --help nor a wrong option needs systemctl: a mistyped option stops no service."""
    env = {"PATH": str(tmp_path), "NOTIFYTYPE": "LOWBATT"}
    (tmp_path / "cat").symlink_to("/bin/cat")
    for word, status in (("--help", 0), ("--hlep", 2)):
        done = subprocess.run(["/bin/sh", str(SCRIPT), word], env=env, text=True,
                              timeout=SECONDS, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert done.returncode == status
        assert (done.stderr if status else done.stdout).startswith("usage: perseas-power ")
