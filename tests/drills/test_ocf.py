"""The agents for Pacemaker, ocf:perseas:mirror and ocf:perseas:owner (deploy/ocf), called as
Pacemaker calls them, and by ocf-tester."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

from binding import TAKEOVER, Store
from drill import (BUILD, HERE, SCRIPTS, SECONDS, die_with_parent, mirror_list, process_state,
                   status_of, wait_for, wait_ownerless)

SUCCESS, GENERIC, ARGS, UNIMPLEMENTED, PERM, INSTALLED, CONFIGURED = 0, 1, 2, 3, 4, 5, 6
NOT_RUNNING, PROMOTED, FAILED_PROMOTED = 7, 8, 9
SOURCES = [SCRIPTS / "ocf" / each for each in ("functions.sh", "mirror.in", "owner.in")]

# An application that owns the store until it is told to end; WORKS is what it does as owner.
APPLICATION = """
import os, signal, sys
sys.path.insert(0, %r)
from binding import Store
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
with Store(os.environ["PERSEAS_STORE"], os.environ["PERSEAS_MIRRORS"]) as store:
    store.map("accounts")
    sys.stderr.write("the application is there\\n")
    signal.sigwait({signal.SIGTERM})
    if "stubborn" in sys.argv:
        signal.sigwait({signal.SIGUSR1})
""" % str(HERE)


class Agent:
    """An instance of a resource, as Pacemaker sees it."""

    def __init__(self, installed, folder, name, instance, **parameters):
        self.path = installed / "resource.d/perseas" / name
        self.temporary = folder / "run"
        self.temporary.mkdir(exist_ok=True)
        self.state = self.temporary / ("perseas-%s-%s" % (name, instance))
        self.instance, self.parameters, self.meta = instance, parameters, {}
        self.words = ""

    def environment(self, **more):
        named = {"OCF_RESKEY_" + name: str(value) for name, value in self.parameters.items()}
        return {**os.environ, **named, "OCF_ROOT": "/usr/lib/ocf", "HA_logfacility": "none",
                "HA_RSCTMP": str(self.temporary), "OCF_RESOURCE_INSTANCE": self.instance,
                "OCF_RESKEY_CRM_meta_timeout": str(SECONDS * 1000), **self.meta, **more}

    def __call__(self, action, **more):
        """Returns the exit code; the output is in .words."""
        done = subprocess.run([self.path, action], env=self.environment(**more), text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=2 * SECONDS,
                              preexec_fn=die_with_parent)
        self.words = done.stdout
        return done.returncode

    def pid(self):
        return int((self.state / "process").read_text().split()[0])


@pytest.fixture(scope="module")
def installed():
    """A folder with the agents as `make install` installs them, readable for everybody."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="perseas-ocf-"))
    agents, library = folder / "resource.d/perseas", folder / "lib/perseas"
    agents.mkdir(parents=True)
    library.mkdir(parents=True)
    shutil.copy(SOURCES[0], library)
    for source in SOURCES[1:]:
        text = re.sub("@S?BINDIR@", str(BUILD), source.read_text()).replace("@VERSION@", "1")
        (agents / source.stem).write_text(text)
        (agents / source.stem).chmod(0o755)
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def own_name():
    return subprocess.run(["id", "-un"], stdout=subprocess.PIPE, text=True, check=True).stdout[:-1]


@pytest.fixture
def agent(installed, tmp_path):
    """agent(name, instance, **parameters) returns an Agent, which is stopped at the end."""
    agents = []

    def make(name, instance="i", **parameters):
        parameters.setdefault("user", own_name())
        agents.append(Agent(installed, tmp_path, name, instance, **parameters))
        return agents[-1]

    yield make
    for each in agents:
        if each.state.exists():
            each.parameters["stop_after"] = 1
            each("stop")


@pytest.fixture
def memory():
    """A folder in memory."""
    folder = pathlib.Path("/dev/shm/perseas-ocf-%d" % os.getpid())
    yield folder
    if folder.is_file():
        folder.unlink()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def mirror(agent, memory, tmp_path):
    """An agent of a mirror with an address, and one for HTTP."""
    return agent("mirror", listen="127.0.0.1:0", memory_dir=memory, http="127.0.0.1:0",
                 logfile=tmp_path / "log")


@pytest.fixture
def owners(agent, bank, tmp_path):
    """owners(instance, *words, **parameters) returns agents for one store, on three mirrors."""
    daemons = bank(3)
    program = tmp_path / "application.py"
    program.write_text(APPLICATION)

    def make(instance, *words, **parameters):
        each = agent("owner", instance, store="bank", mirrors=mirror_list(daemons),
                     command=" ".join([sys.executable, str(program), *words]),
                     logfile=tmp_path / ("log-" + instance), **parameters)
        each.daemons = daemons
        return each
    return make


def promotable(each):
    each.meta["OCF_RESKEY_CRM_meta_promotable"] = "true"
    return each


def runs(pid):
    """Returns whether the process runs. A killed one exists until its parent has taken its
    status."""
    try:
        return process_state(int(pid)) != "Z"
    except FileNotFoundError:
        return False


def await_application(owner):
    """Waits until the application has opened the store, by its log."""
    log = pathlib.Path(owner.parameters["logfile"])
    wait_for(lambda: "the application is there" in log.read_text(), SECONDS, "its words in the log")


def judged(agent):
    """Returns ocf-tester's verdict."""
    words = ["-n", agent.instance]
    for name, value in agent.parameters.items():
        words += ["-o", "%s=%s" % (name, value)]
    environment = agent.environment()
    environment["PATH"] += ":/usr/sbin:/sbin"
    return subprocess.run(["ocf-tester", "-v", *words, agent.path], env=environment, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=10 * SECONDS,
                          preexec_fn=die_with_parent)


def test_shellcheck_has_nothing_to_say():
    done = subprocess.run(["shellcheck", "-s", "bash", "-x", "-P", SOURCES[0].parent, *SOURCES],
                          stdout=subprocess.PIPE, text=True)
    assert not done.returncode, done.stdout


def test_ocf_tester_passes_the_mirror(mirror):
    done = judged(mirror)
    assert not done.returncode and "passed all tests" in done.stdout, done.stdout


@pytest.mark.parametrize("alone", (True, False), ids=("alone", "promotable"))
def test_ocf_tester_passes_the_owner(alone, owners):
    owner = owners("tested")
    done = judged(owner if alone else promotable(owner))
    assert not done.returncode and "passed all tests" in done.stdout, done.stdout
    assert ("does not support the promote action" in done.stdout) == alone


# --- every error has a code and a sentence ---

@pytest.mark.parametrize("name,parameters,code,sentence", (
    ("mirror", dict(binary="/none/perseasd"), INSTALLED, "(parameter binary) is not here"),
    ("mirror", dict(user="nobody-of-that-name"), INSTALLED, "there is no user"),
    ("mirror", dict(config="/none.conf"), INSTALLED, "cannot be read"),
    ("mirror", dict(listen="here"), CONFIGURED, "'here' in listen or http is no address"),
    ("mirror", dict(memory_dir="images"), CONFIGURED, "give a whole path"),
    ("owner", dict(store=""), CONFIGURED, "store is missing"),
    ("owner", dict(user=""), CONFIGURED, "user is missing"),
    ("owner", dict(mirrors=""), CONFIGURED, "mirrors is missing"),
    ("owner", dict(mirrors="a:1, b:1"), CONFIGURED, "give addresses with commas"),
    ("owner", dict(command=""), CONFIGURED, "command is missing"),
    ("owner", dict(command="bank 'for"), CONFIGURED, "a shell does not understand it"),
    ("owner", dict(restarts="often"), CONFIGURED, "restarts is 'often'"),
    ("owner", dict(stop_after="0"), CONFIGURED, "stop_after is '0'"),
    ("owner", dict(warm="tepid"), CONFIGURED, "warm is 'tepid'"),
    ("owner", dict(client="/none/perseas"), INSTALLED, "(parameter client) is not here"),
))
@pytest.mark.parametrize("action", ("validate-all", "start"))
def test_a_wrong_parameter_is_named(action, name, parameters, code, sentence, agent):
    right = dict(store="bank", mirrors="127.0.0.1:1", command="true") if name == "owner" else {}
    wrong = agent(name, **{**right, **parameters})
    assert wrong(action) == code, wrong.words
    assert sentence in wrong.words
    assert wrong("monitor") == NOT_RUNNING and wrong("stop") == SUCCESS


@pytest.mark.parametrize("name", ("mirror", "owner"))
def test_an_unknown_action_is_refused(name, agent):
    each = agent(name)
    assert each("dance") == UNIMPLEMENTED and "usage" in each.words


def test_a_mirror_that_cannot_start_says_why(mirror):
    """The daemon's message about its options is the sentence. A failure to start is another
    code."""
    mirror.parameters["options"] = "--owner-timeout soon"
    assert mirror("start") == CONFIGURED and "--owner-timeout" in mirror.words, mirror.words
    mirror.parameters["options"] = "--unix /none/of/it"
    assert mirror("start") == GENERIC and "/none/of/it" in mirror.words, mirror.words
    assert mirror("monitor") == NOT_RUNNING


@pytest.mark.parametrize("what,code,sentence", (
    (dict(store="none"), ARGS, "the mirrors have no such store"),
    (dict(options="--restarts"), CONFIGURED, "refuses its options"),
    (dict(command="/none/bank", restarts=0), INSTALLED, "the application cannot be started"),
))
def test_an_owner_that_cannot_start_says_why(what, code, sentence, owners):
    owner = owners("failing")
    owner.parameters.update(what)
    assert owner("start") == code and sentence in owner.words, owner.words
    assert owner("monitor") == NOT_RUNNING


# --- monitors ---

def test_a_monitor_of_a_mirror_looks_as_deep_as_it_is_told(mirror):
    """A daemon that hangs is still a process."""
    assert mirror("start") == SUCCESS, mirror.words
    for depth in ("0", "10", "20"):
        assert mirror("monitor", OCF_CHECK_LEVEL=depth) == SUCCESS, mirror.words
    os.kill(mirror.pid(), signal.SIGSTOP)
    assert mirror("monitor") == SUCCESS
    hurry = dict(OCF_CHECK_LEVEL="10")
    mirror.meta["OCF_RESKEY_CRM_meta_timeout"] = "7000"
    assert mirror("monitor", **hurry) == GENERIC
    assert re.search(r"does not answer at 127\.0\.0\.1:\d+: \S", mirror.words), mirror.words
    os.kill(mirror.pid(), signal.SIGCONT)
    del mirror.meta["OCF_RESKEY_CRM_meta_timeout"]
    assert mirror("monitor", **hurry) == SUCCESS, mirror.words
    os.kill(mirror.pid(), signal.SIGKILL)
    wait_for(lambda: mirror("monitor") == NOT_RUNNING, SECONDS, "a monitor that sees the end")
    assert mirror("start") == SUCCESS and mirror("stop") == SUCCESS


def test_a_mirror_whose_memory_is_gone_is_not_ready(mirror, memory):
    """It still answers. A file is in place of the directory, so that the daemon cannot recreate
    it."""
    assert mirror("start") == SUCCESS, mirror.words
    os.kill(mirror.pid(), signal.SIGSTOP)
    wait_for(lambda: process_state(mirror.pid()) == "T", SECONDS, "a stopped daemon")
    shutil.rmtree(memory)
    memory.write_text("")
    os.kill(mirror.pid(), signal.SIGCONT)
    assert mirror("monitor", OCF_CHECK_LEVEL="10") == SUCCESS, mirror.words
    assert mirror("monitor", OCF_CHECK_LEVEL="20") == GENERIC
    assert "not ready" in mirror.words and "has been removed" in mirror.words, mirror.words


def test_what_is_no_process_of_the_instance_is_left_alone(mirror, tmp_path):
    """Another process may have the process id of one that ended."""
    other = subprocess.Popen(["sleep", "1000"], preexec_fn=die_with_parent, start_new_session=True)
    try:
        mirror.state.mkdir()
        (mirror.state / "process").write_text("%d 1\n" % other.pid)
        assert mirror("monitor") == NOT_RUNNING and mirror("stop") == SUCCESS
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_images_outlive_a_stop(mirror, perseas):
    assert mirror("start") == SUCCESS, mirror.words
    port = (mirror.state / "own/ports").read_text().split()[0]
    assert perseas("create", "kept", mirrors="127.0.0.1:" + port).status == 0
    assert mirror("stop") == SUCCESS and mirror("start") == SUCCESS
    port = (mirror.state / "own/ports").read_text().split()[0]
    assert "kept" in perseas("ls", mirrors="127.0.0.1:" + port).out


def test_an_owner_alone_is_started_when_it_owns_the_store(owners):
    owner = owners("alone", check="test $PERSEAS_STORE = bank")
    assert owner("start") == SUCCESS, owner.words
    assert status_of("bank", owner.daemons)["live"]
    for depth in ("0", "10", "20"):
        assert owner("monitor", OCF_CHECK_LEVEL=depth) == SUCCESS, owner.words
    owner.parameters["check"] = "false"
    assert owner("monitor", OCF_CHECK_LEVEL="20") == GENERIC and "check" in owner.words
    assert owner("stop") == SUCCESS and owner("monitor") == NOT_RUNNING
    wait_ownerless("bank", owner.daemons)


def test_too_few_mirrors_are_seen_at_depth(owners):
    owner = owners("alone")
    assert owner("start") == SUCCESS, owner.words
    # It owns the store before its open has ended, which would fail.
    await_application(owner)
    for each in owner.daemons[1:]:
        each.kill9()
    wait_for(lambda: status_of("bank", owner.daemons)["verdict"]["can_commit"] is False, SECONDS,
             "too few mirrors")
    assert owner("monitor", OCF_CHECK_LEVEL="10") == GENERIC
    assert "too few mirrors" in owner.words, owner.words


def test_an_application_that_does_not_end_is_killed(owners):
    owner = owners("stubborn", "stubborn", stop_after=1)
    assert owner("start") == SUCCESS, owner.words
    run = owner.pid()
    application, = pathlib.Path("/proc/%d/task/%d/children" % (run, run)).read_text().split()
    assert owner("stop") == SUCCESS and owner("monitor") == NOT_RUNNING
    assert not runs(application)


def test_an_application_that_outlives_its_run_is_seen_and_ended(owners):
    """`perseas run` was killed. The kernel tells the application, which ignores it."""
    owner = owners("stubborn", "stubborn", stop_after=1)
    assert owner("start") == SUCCESS, owner.words
    run = owner.pid()
    os.kill(run, signal.SIGKILL)
    wait_for(lambda: not runs(run), SECONDS, "the end of perseas run")
    assert owner("monitor") == GENERIC
    assert "the application has not" in owner.words
    assert owner("start") == SUCCESS, owner.words
    assert owner("monitor") == SUCCESS


# --- a promotable clone ---

def word(owner):
    """Returns the last message of `perseas run` about its store, or ""."""
    words = re.findall(r"^perseas: store '[^']*': (.*)\n", (owner.state / "said").read_text(), re.M)
    return words[-1] if words else ""


def test_the_one_that_is_promoted_owns_the_store(owners):
    """Nobody owns the store, and both instances wait at the gate. One is promoted; the other
    follows it, and takes over when it is promoted after the first was killed with all its
    processes."""
    first, second = (promotable(owners(each, stop_after=1)) for each in ("one", "two"))
    for each in (first, second):
        assert each("start") == SUCCESS, each.words
        wait_for(lambda each=each: word(each) == "COMMAND runs", SECONDS, "a gate")
        assert each("monitor") == SUCCESS
    wait_ownerless("bank", first.daemons)
    assert first("promote") == SUCCESS, first.words
    assert status_of("bank", first.daemons)["live"]
    assert first("monitor") == PROMOTED
    assert second("monitor") == SUCCESS
    wait_for(lambda: word(second).startswith("standby: its owner lives"), SECONDS, "a standby")
    os.killpg(first.pid(), signal.SIGKILL)
    wait_for(lambda: first("monitor") == NOT_RUNNING, SECONDS, "the end of the first")
    assert second("promote") == SUCCESS, second.words
    await_application(second)           # demote kills one whose open takes longer than stop_after
    assert second("monitor", OCF_CHECK_LEVEL="10") == PROMOTED
    assert second("demote") == SUCCESS and second("monitor") == SUCCESS
    wait_ownerless("bank", first.daemons)


@pytest.fixture
def counted(tmp_path, monkeypatch):
    """counted() returns the names of the programs that agents ran, except sed, which copies the log
    and may start at any time."""
    folder, calls = tmp_path / "counted", tmp_path / "calls"
    folder.mkdir()
    for name in ("tail", "tr", "grep", "ps", "id", "cat"):
        (folder / name).write_text("#!/bin/sh\necho %s >>%s\nexec %s \"$@\"\n" %
                                   (name, calls, shutil.which(name)))
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", "%s:%s" % (folder, os.environ["PATH"]))
    return lambda: calls.read_text().splitlines() if calls.exists() else []


def test_to_wait_for_the_store_costs_no_processes(owners, counted):
    """Tens of owners wait at once after a machine died, next to others on the same hosts: waiting
    longer must not run more programs."""
    owner = promotable(owners("one"))
    with Store("bank", mirror_list(owner.daemons)):
        assert owner("start") == SUCCESS, owner.words
        took = []
        for seconds in (1, 2):
            owner.parameters["yield_after"], before = seconds, len(counted())
            assert owner("promote") == GENERIC and "has another owner" in owner.words, owner.words
            took.append(counted()[before:])
        assert took[0] == took[1]


def test_a_promotion_gives_way_to_an_owner_that_lives(owners):
    """Pacemaker does not know about that owner: waiting for its end would keep Pacemaker from
    finding out. The gate is closed again, so that the instance cannot open the store later."""
    owner = promotable(owners("one", yield_after=1))
    with Store("bank", mirror_list(owner.daemons)) as store:
        assert owner("start") == SUCCESS, owner.words
        assert owner("promote") == GENERIC and "has another owner" in owner.words, owner.words
        assert owner("monitor") == SUCCESS, owner.words
        store.map("accounts")
        store.write("accounts", 0, b"it lives")
    assert owner("promote") == SUCCESS, owner.words


def test_a_promoted_one_that_lost_the_store_has_failed(owners):
    """Another owner took the store, as on a node where Pacemaker believed this one dead. When that
    owner ends, the instance recovers."""
    owner = promotable(owners("one", stop_after=1))
    assert owner("start") == SUCCESS and owner("promote") == SUCCESS, owner.words
    with Store("bank", mirror_list(owner.daemons), flags=TAKEOVER):
        wait_for(lambda: word(owner).startswith("standby: its owner lives"), SECONDS, "a standby")
        assert owner("monitor") == FAILED_PROMOTED
        assert "its owner lives" in owner.words, owner.words
    wait_for(lambda: owner("monitor") == PROMOTED, SECONDS, "an owner again")
