"""The images of `make container` under podman, as an ordinary user without rights: what they are
made of, the health check, and the compose file with three mirrors and owners, whose containers are
killed.

podman's networks, images and volumes are in a network namespace and in folders of these tests, and
no address outside is reached from there. `make check-container` calls this as root, in namespaces
of its own, so that all containers end with it.
"""
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys

import pytest
import yaml

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/cluster"))
from nodes import Oracle, netns, now_ns, wait_for  # noqa: E402

FOLDER = pathlib.Path(os.environ.get("PERSEAS_CONTAINER", TOP / "build/container"))
BUILD = pathlib.Path(os.environ.get("PERSEAS_BUILD", TOP / "build"))
VERSION = (TOP / "VERSION").read_text().strip()
COMPOSE = TOP / "deploy/container/compose.yaml"
IMAGE = "localhost/perseas:" + VERSION
# No container takes so long, however busy the machine is.
SECONDS = 300
USER = 7170
CONFINED = ("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
# What Debian's crun and podman need where systemd does not run, or control groups are of both
# versions.
CONTAINERS = """[containers]
default_ulimits = ["nofile=%d:%d", "nproc=%d:%d"]
log_driver = "k8s-file"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "%s/tmp"
volume_path = "%s/volumes"
[network]
network_backend = "cni"
network_config_dir = "%s/networks"
"""
STORAGE = '[storage]\ndriver = "vfs"\ngraphroot = "%s/store"\nrunroot = "%s/run"\n'


class Podman:
    """podman, with everything that it keeps in one folder, and its networks in a namespace."""

    def __init__(self, folder):
        self.host = netns.Node()
        limits = [resource.getrlimit(each)[1] for each in
                  (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC)]
        few = [min(limit, 4096) if limit > 0 else 4096 for limit in limits]
        (folder / "networks").mkdir(parents=True)
        conf, storage = folder / "containers.conf", folder / "storage.conf"
        conf.write_text(CONTAINERS % (few[0], few[0], few[1], few[1], folder, folder, folder))
        storage.write_text(STORAGE % (folder, folder))
        self.environment = dict(os.environ, CONTAINERS_CONF=str(conf),
                                CONTAINERS_STORAGE_CONF=str(storage))

    def call(self, *words, status=0, cwd=None, seconds=SECONDS):
        """What it printed; status is the one that it must have, None for any."""
        with self.host.inside():
            done = subprocess.run(words, env=self.environment, cwd=cwd, text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=seconds)
        assert status in (None, done.returncode), "%s: %d: %s" % (words, done.returncode,
                                                                  done.stdout)
        return done.stdout

    def __call__(self, *words, **keywords):
        return self.call("podman", *words, **keywords)

    def start(self, name, *words):
        """A container that goes on."""
        self("run", "--detach", "--name", name, *words)

    def state(self, name):
        # What podman says of missing timers of systemd stands before it.
        told = self("inspect", "--format", "state {{json .State}}", name)
        return json.loads(re.search(r"^state (.*)$", told, re.M)[1])

    def pid(self, name):
        """Of its first process, as seen from here; 0 while it does not run."""
        state = self.state(name)
        return state["Pid"] if state["Running"] else 0

    def kill(self, name):
        """Its first process is killed, and with it all of the container."""
        pid = self.pid(name)
        os.kill(pid, signal.SIGKILL)
        return pid

    def close(self):
        self("rm", "--all", "--force", "--time", "0", status=None)
        self.host.close()


@pytest.fixture(scope="module")
def podman():
    made = Podman(FOLDER / "podman")
    try:
        # apt, and not a container, needs the network of the host.
        subprocess.run([TOP / "deploy/container/build.sh", FOLDER / "deb"], check=True,
                       env=made.environment, timeout=3600)
        yield made
    finally:
        made.close()


@pytest.fixture
def mirror(podman):
    """mirror(options...): a mirror in a container, which is removed."""
    def start(*options):
        podman.start("alone", *CONFINED, "--network=none", "--tmpfs=/dev/shm:size=64m,mode=1777",
                     "--volume=/var/lib/perseas", IMAGE, *options)
        return "alone"
    yield start
    podman("rm", "--force", "--volumes", "--time", "0", "alone", status=None)


def health(podman, name):
    """Whether the check of the image is content, and what it says."""
    with podman.host.inside():
        status = subprocess.run(["podman", "healthcheck", "run", name], env=podman.environment,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                check=False, timeout=SECONDS).returncode
    return status == 0, podman("exec", name, "/usr/local/bin/perseas-healthy", status=None)


def test_the_image_has_these_packages_and_needs_no_root(podman, mirror):
    config = json.loads(podman("image", "inspect", IMAGE))[0]["Config"]
    assert config["User"] == "%d:%d" % (USER, USER)
    mirror()
    for package in ("perseasd", "perseas", "libperseas0"):
        assert VERSION in podman("exec", "alone", "dpkg-query", "-W", "-f", "${Version}", package)
    status = podman("exec", "alone", "cat", "/proc/1/status")
    for line in ("Uid:\t7170\t7170\t7170\t7170", "Gid:\t7170\t7170\t7170\t7170",
                 "CapPrm:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1"):
        assert line + "\n" in status
    # Nothing but memory and the spill can be written to.
    assert "Read-only" in podman("exec", "alone", "touch", "/usr/x", status=1)


def test_the_image_alone_reaches_nobody(podman, mirror):
    """As a package does that was just installed."""
    mirror()
    assert re.search(r"listening at tcp://127\.0\.0\.1:7170$", wait_for(
        lambda: podman("logs", "alone"), SECONDS, "a log"), re.M)
    podman("rm", "--force", "--time", "0", "alone")
    mirror("--listen=0.0.0.0:7170")
    wait_for(lambda: not podman.state("alone")["Running"], SECONDS, "a mirror that ended")
    assert "--plaintext anywhere" in podman("logs", "alone")


def test_the_health_check_knows_a_mirror_that_serves(podman, mirror):
    mirror()
    wait_for(lambda: health(podman, "alone") == (True, ""), SECONDS, "a healthy mirror")
    os.kill(podman.pid("alone"), signal.SIGSTOP)
    well, why = health(podman, "alone")
    assert not well and "took the question, and does not answer" in why
    os.kill(podman.pid("alone"), signal.SIGCONT)
    wait_for(lambda: health(podman, "alone") == (True, ""), SECONDS, "a healthy mirror")


def test_the_health_check_says_that_memory_is_full(podman, mirror):
    mirror("--max-memory=17M")
    wait_for(lambda: health(podman, "alone")[0], SECONDS, "a healthy mirror")
    podman("exec", "alone", "perseas", "create", "one", "127.0.0.1")
    well, why = health(podman, "alone")
    assert not well and why.startswith("/readyz: 503: ") and "memory" in why


def test_the_health_check_says_that_nobody_answers(podman):
    said = podman("run", "--rm", "--network=none", "--entrypoint", "/usr/local/bin/perseas-healthy",
                  IMAGE, status=1)
    assert "no mirror serves HTTP at 127.0.0.1:7180" in said


class Composed:
    """What the compose file makes, and two owners more that write down what they are told."""

    MIRRORS = ["mirror%d" % number for number in (1, 2, 3)]

    def __init__(self, podman, folder):
        self.podman = podman
        self.journals = folder / "journals"
        self.journals.mkdir()
        self.journals.chmod(0o777)
        text = yaml.safe_load(COMPOSE.read_text())
        for number, name in enumerate(("counter1", "counter2")):
            text["services"][name] = dict(
                text["services"]["bank"], hostname=name,
                volumes=["%s:/journals" % self.journals,
                         "%s:/usr/local/bin/counter:ro" % (BUILD / "tests/cluster/counter")],
                command=["counts", "--order=%d" % number, "--", "counter", "/journals"])
        (folder / "compose.yaml").write_text(yaml.safe_dump(text))
        self.folder = folder

    def __call__(self, *words):
        return self.podman.call("podman-compose", "--project-name", "drill", *words,
                                cwd=self.folder)

    def name(self, service):
        return "drill_%s_1" % service

    def perseas(self, *words, status=0):
        return self.podman("exec", self.name("mirror1"), "perseas", *words, status=status)

    def live(self, store):
        """How many mirrors are live for the store's owner."""
        told = self.perseas("status", store, status=None)
        return len(re.findall(r"^mirror\d:7170\s+live\s", told, re.M))

    def settle(self):
        """Until owners of both stores have all mirrors, and one of them acknowledges."""
        before = now_ns()
        wait_for(lambda: [at for at, *_ in Oracle(self.journals).of("ack") if at > before], SECONDS,
                 "an acknowledgement")
        for store in ("bank", "counts"):
            wait_for(lambda: self.live(store) == 3, SECONDS, "three live mirrors of " + store)

    def kill(self, service):
        """Until its container is there again."""
        before = self.podman.kill(self.name(service))
        wait_for(lambda: self.podman.pid(self.name(service)) not in (0, before), SECONDS,
                 "another container of " + service)

    def owner(self):
        """The service whose process owns the store counts."""
        return Oracle(self.journals).of("ack")[-1][3].split("-")[0]


def start_mirrors(composed):
    composed("up", "--detach", *composed.MIRRORS)
    for each in composed.MIRRORS:
        wait_for(lambda: health(composed.podman, composed.name(each))[0], SECONDS,
                 "a healthy " + each)


@pytest.fixture(scope="module")
def composed(podman, tmp_path_factory):
    made = Composed(podman, tmp_path_factory.mktemp("composed"))
    start_mirrors(made)
    for store in ("bank", "counts"):
        made.perseas("create", store)
    made("up", "--detach", "bank", "standby", "counter1", "counter2")
    made.settle()
    return made


def report(composed, what, since):
    oracle = Oracle(composed.journals)
    print("\n%s: %d transactions acknowledged so far, none lost; nobody owned the store for %.1f s "
          "at most" % (what, oracle.check(), oracle.gap(since)))


def test_the_compose_file_is_as_its_schema_has_it():
    subprocess.run(["docker-compose", "--file", COMPOSE, "config", "--quiet"], check=True)


def test_the_owner_s_container_is_killed(composed):
    since, (_, epoch), owner = now_ns(), Oracle(composed.journals).last(), composed.owner()
    composed.kill(owner)
    wait_for(lambda: Oracle(composed.journals).last()[1] > epoch, SECONDS, "another owner")
    composed.settle()
    report(composed, "owner killed", since)


@pytest.mark.parametrize("mirror", Composed.MIRRORS)
def test_a_mirror_s_container_is_killed(composed, mirror):
    """Its memory is gone, and the owner copies it."""
    since = now_ns()
    composed.kill(mirror)
    name = composed.name(mirror)
    wait_for(lambda: composed.podman("logs", name).count("the image is whole") >= 2, SECONDS,
             "images of both stores")
    composed.settle()
    report(composed, mirror + " killed", since)


def test_a_mirror_is_expendable_when_the_others_are_live(composed):
    composed.settle()
    said = composed.podman("exec", "--env", "PERSEAS_SELF=mirror1:7170", composed.name("mirror1"),
                           "perseas-expendable", str(SECONDS))
    assert not said.strip()


def test_an_owner_and_a_mirror_are_killed_at_once(composed):
    since, (_, epoch), owner = now_ns(), Oracle(composed.journals).last(), composed.owner()
    before = composed.podman.kill(composed.name("mirror2"))
    composed.kill(owner)
    wait_for(lambda: composed.podman.pid(composed.name("mirror2")) not in (0, before), SECONDS,
             "another container of mirror2")
    wait_for(lambda: Oracle(composed.journals).last()[1] > epoch, SECONDS, "another owner")
    composed.settle()
    report(composed, "owner and mirror killed", since)


def test_everything_is_stopped_and_started(composed):
    """Mirrors that are told to end write their images to disk, and load them again."""
    since = now_ns()
    for each in ("counter2", "counter1", "standby", "bank"):
        composed("stop", "--timeout", "120", each)
    ends = [composed.podman("logs", composed.name(each)) for each in ("bank", "standby")]
    assert "".join(ends).count(" transfers, 100000 in all accounts") == 1, ends
    last = Oracle(composed.journals).of("ack")[-1][2]
    composed("down", "--timeout", "120")
    start_mirrors(composed)
    for store in ("bank", "counts"):
        assert composed.perseas("status", store).count("was spilled, and is back") == 3
    composed("up", "--detach", "bank", "standby", "counter1", "counter2")
    composed.settle()
    assert Oracle(composed.journals).of("open")[-1][2] == last
    report(composed, "all stopped and started", since)
