"""The Ansible role of deploy/ansible, run by ansible-playbook over ssh against four nodes with
systemd and sshd, in namespaces (tests/cluster/nodes.py): check mode, a first run and a second one,
changes under an owner that commits, mirrors that must not be restarted, an upgrade, a drain.

The tests build on each other, in their order. `make check-ansible` calls this as root, in
namespaces of its own; the control node is the nodes' switch.
"""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import yaml

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/cluster"))
from nodes import FOLDER, SECONDS, Fleet, Oracle, now_ns, wait_for  # noqa: E402

PLAYS = TOP / "deploy/ansible"
PACKAGES, NEWER = FOLDER / "deb", FOLDER / "newer"
CONTROL = "10.88.0.254"
# What a host keeps of its own accord: logs, what systemd and ssh note, and Ansible's modules while
# they run.
OWN = ("/var/log/", "/var/lib/systemd/", "/root/", "/tmp/", "/run/", "/dev/", "/proc/", "/sys/",
       "/journals", "/var/tmp/", "/var/cache/ldconfig", "/etc/machine-id")
CONFIG = """[defaults]
inventory = %(folder)s/inventory.yml
private_key_file = %(folder)s/key
host_key_checking = false
local_tmp = %(folder)s/local
interpreter_python = /usr/bin/python3
retry_files_enabled = false
nocows = true
timeout = 300
[ssh_connection]
pipelining = true
control_path_dir = %(folder)s/ssh
ssh_args = -o ControlMaster=auto -o ControlPersist=60 -o UserKnownHostsFile=/dev/null
"""
RECAP = re.compile(r"^(\w+) +: ok=(\d+) +changed=(\d+) +unreachable=(\d+) +failed=(\d+)", re.M)
SAYS = re.compile(r'"(?:msg|argument_errors)": (".*?[^\\]"|\[.*?\])[,}]')


class Run:
    """What ansible-playbook did."""

    def __init__(self, done):
        self.status, self.text = done.returncode, done.stdout
        self.hosts = {name: tuple(map(int, counts))
                      for name, *counts in RECAP.findall(self.text)}

    def changed(self):
        return {name for name, (_, changed, *_) in self.hosts.items() if changed}


class Control:
    """The control node: an inventory, keys of ssh, a CA."""

    def __init__(self, fleet, folder):
        self.fleet, self.folder = fleet, folder
        (folder / "ssh").mkdir(parents=True)
        fleet.switch.ip("address add %s/24 dev bridge" % CONTROL)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key"],
                       check=True)
        (folder / "ansible.cfg").write_text(CONFIG % {"folder": folder})
        self.variables = {}
        self.of_hosts = {node.name: {"ansible_host": node.address, "ansible_user": "root",
                                     "perseas_label_rack": "r%d" % node.number}
                         for node in fleet.nodes}

    def key(self):
        return (self.folder / "key.pub").read_text()

    def play(self, name, *words, status=0, **more):
        """Runs a playbook, with these variables beside those of the inventory."""
        (self.folder / "inventory.yml").write_text(yaml.safe_dump(
            {"perseas": {"hosts": self.of_hosts, "vars": {**self.variables, **more}}}))
        with self.fleet.switch.inside():
            done = subprocess.run(
                ["ansible-playbook", PLAYS / (name + ".yml"), *words], text=True, check=False,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                timeout=1200, cwd=self.folder,
                env=dict(os.environ, ANSIBLE_CONFIG=str(self.folder / "ansible.cfg"),
                         ANSIBLE_NOCOLOR="1", LC_ALL="C.UTF-8", HOME=str(self.folder)))
        print("\n%s %s: %s" % (name, " ".join(map(str, words)),
                               re.sub(r" +", " ", done.stdout.rpartition("PLAY RECAP")[2])))
        assert status in (None, done.returncode), done.stdout
        return Run(done)


@pytest.fixture(scope="module")
def control(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ansible")
    fleet = Fleet(tmp_path_factory.mktemp("nodes"), 4)
    try:
        made = Control(fleet, folder)
        for node in fleet.nodes:
            node.write("/etc/hostname", node.name + "\n")
            node.write("/root/.ssh/authorized_keys", made.key())
            # Nothing is fetched from outside.
            node.write("/etc/apt/sources.list", "")
            node.boot()
        # All but one have packages of a folder.
        offer(fleet.nodes[3], PACKAGES)
        made.of_hosts["node4"].update(perseas_debs="",
                                      perseas_repository="deb [trusted=yes] file:/srv/perseas ./")
        made.variables = {
            "perseas_debs": str(PACKAGES), "perseas_tls": "ca",
            "perseas_listen": ["{{ ansible_host }}:7170"],
            "perseas_ca_folder": str(folder / "ca"),
            "perseas_clusters": {"bank": addresses(fleet.nodes[:3]).split(",")},
            "perseas_access": ["allow cert:counts create,own,read,recover store counts",
                               "allow cert:node* read,own,create,admin"]}
        yield made
    finally:
        fleet.close()


def offer(node, packages):
    """A repository of packages, on the node itself."""
    folder = node.root / "srv/perseas"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for deb in packages.glob("*.deb"):
        if "dbgsym" not in deb.name:
            shutil.copy(deb, folder)
    with open(folder / "Packages", "w") as index:
        subprocess.run(["dpkg-scanpackages", "--multiversion", "."], cwd=folder, stdout=index,
                       stderr=subprocess.DEVNULL, check=True)


def addresses(nodes):
    return ",".join("%s:7170" % node.address for node in nodes)


def files(root):
    """What there is on a host, with what is in it, but for what the host writes itself."""
    found = {}
    for folder, folders, names in os.walk(root):
        inside = folder[len(str(root)):] + "/"
        folders[:] = [name for name in folders if not (inside + name + "/").startswith(OWN)]
        for name in names:
            path = pathlib.Path(folder) / name
            if (inside + name).startswith(OWN) or path.is_symlink() or not path.is_file():
                continue
            stat = path.stat()
            found[inside + name] = (stat.st_mode, stat.st_uid, stat.st_size,
                                    hashlib.sha256(path.read_bytes()).hexdigest())
    return found


def upper(node):
    """The node's own disk, over the common one."""
    return node.root.parent / "upper"


def daemons(control):
    """The daemon's process of each node, as systemd knows it."""
    return {node.name: node.run("systemctl", "show", "-P", "MainPID", "perseasd.service").strip()
            for node in control.fleet.nodes}


def perseas(node, *words, name="mirror"):
    """The command, with that certificate."""
    tls = ["PERSEAS_TLS_%s=/etc/perseas/tls/%s" % each for each in
           (("CERT", name + ".pem"), ("KEY", name + ".key"), ("CA", "ca.pem"))]
    return node.run("env", *tls, "perseas", *words)


def acknowledged(control):
    """Waits for one more acknowledgement; how many there are, of which none was lost."""
    since = now_ns()
    wait_for(lambda: [at for at, *_ in Oracle(control.fleet.journals).of("ack") if at > since],
             SECONDS, "an acknowledgement")
    return Oracle(control.fleet.journals).check()


def report(control, what, since):
    print("%s: %d transactions acknowledged so far, none lost; nobody committed for %.1f s at most"
          % (what, acknowledged(control), Oracle(control.fleet.journals).gap(since)))


def counts(control, *nodes):
    """These nodes may own the store."""
    for order, node in enumerate(nodes):
        control.of_hosts[node.name]["perseas_owners"] = [{
            "store": "counts", "mirrors": "@bank", "command": "/usr/bin/counter /journals",
            "options": "--order %d" % order, "service": {"ReadWritePaths": "/journals"}}]


def test_check_mode_on_fresh_hosts_says_all_and_changes_nothing(control):
    before = {node.name: files(upper(node)) for node in control.fleet.nodes}
    done = control.play("site", "--check", "--diff")
    assert done.changed() == {node.name for node in control.fleet.nodes}
    for text in ("would install perseas and perseasd", "+tls-key /etc/perseas/tls/mirror.key",
                 "+ListenStream=10.88.0.2:7170", "+allow cert:node3 read", "+label rack=r4"):
        assert text in done.text, text
    for node in control.fleet.nodes:
        after = files(upper(node))
        differ = {path for path in before[node.name].keys() | after
                  if before[node.name].get(path) != after.get(path)}
        assert not differ, (node.name, sorted(differ)[:20])
    assert not (control.folder / "ca").exists()


def test_the_first_run_makes_mirrors_and_the_second_one_changes_nothing(control):
    nodes = control.fleet.nodes
    assert control.play("site").changed() == {node.name for node in nodes}
    told = perseas(nodes[0], "ls", addresses(nodes))
    assert told.count(": perseasd ") == len(nodes), told
    running = daemons(control)
    done = control.play("site")
    assert not done.changed(), done.text
    done = control.play("site", "--check", "--diff")
    assert not done.changed(), done.text
    assert daemons(control) == running


def test_keys_stay_on_their_hosts_and_are_nobody_elses(control):
    keys = set()
    for node in control.fleet.nodes:
        said = node.run("stat", "-c", "%a %U %n", "/etc/perseas/tls/mirror.key",
                        "/etc/perseas/tls/mirror.pem", "/etc/perseas/access")
        assert "600 perseas /etc/perseas/tls/mirror.key" in said, said
        assert "644 root /etc/perseas/tls/mirror.pem" in said, said
        assert "640 root /etc/perseas/access" in said, said
        keys.add(node.run("cat", "/etc/perseas/tls/mirror.key"))
        assert "others may read the key" not in node.run("journalctl", "-u", "perseasd")
    assert len(keys) == len(control.fleet.nodes)
    kept = [path for path in (control.folder / "ca").rglob("*") if path.is_file()]
    assert not keys & {path.read_text() for path in kept}
    assert (control.folder / "ca/ca.key").stat().st_mode & 0o077 == 0


def test_an_owner_of_a_store_that_nobody_made_is_refused(control):
    one, two, *_ = control.fleet.nodes
    counts(control, one, two)
    done = control.play("site", status=2)
    assert "Make it once, by: perseas create counts @bank" in done.text, done.text
    perseas(one, "create", "counts", "@bank", name="owner-counts")
    assert control.play("site").changed() == {one.name, two.name}
    acknowledged(control)


def test_a_changed_variable_restarts_only_what_it_must(control):
    """The owner commits meanwhile. Rules are read again by all, and an option by one."""
    nodes, since = control.fleet.nodes, now_ns()
    before = daemons(control)
    rules = int(re.findall(r"access rules /etc/perseas/access: (\d+)",
                           nodes[0].run("journalctl", "-u", "perseasd"))[-1])
    control.of_hosts["node2"]["perseas_conf"] = {"log-level": "debug"}
    assert control.play("site", "--check").changed() == {"node2"}
    control.variables["perseas_access"].append("allow cert:reader read store counts")
    assert daemons(control) == before
    assert control.play("site").changed() == {node.name for node in nodes}
    after = daemons(control)
    assert {name for name in before if before[name] != after[name]} == {"node2"}
    for node in nodes:
        wait_for(lambda: "access: %d are in force" % (rules + 1) in node.run(
            "journalctl", "-u", "perseasd"), SECONDS, "rules that %s reads again" % node.name)
    report(control, "one mirror restarted", since)


def test_all_are_restarted_one_after_the_other(control):
    nodes, since, before = control.fleet.nodes, now_ns(), daemons(control)
    control.variables["perseas_service"] = {"MemoryMax": "2G"}
    assert control.play("site").changed() == {node.name for node in nodes}
    after = daemons(control)
    assert all(before[name] != after[name] for name in before)
    for node in nodes:
        assert "2147483648" in node.run("systemctl", "show", "-P", "MemoryMax", "perseasd.service")
    report(control, "all mirrors restarted, one after the other", since)
    assert not control.play("site").changed()
    assert daemons(control) == after


def test_what_an_interrupted_run_left_is_done_by_the_next_one(control):
    """The file is there, and the daemon has not read it."""
    node = control.fleet.nodes[3]
    before = daemons(control)
    node.run("touch", "/etc/perseasd.conf")
    control.play("site", "--limit", "node4")
    after = daemons(control)
    assert {name for name in before if before[name] != after[name]} == {"node4"}


def test_a_mirror_that_a_store_would_miss_is_not_restarted(control):
    three = control.fleet.nodes[2]
    before = daemons(control)
    three.run("systemctl", "stop", "perseasd.socket", "perseasd.service")
    control.variables["perseas_conf"] = {"spin-us": 1}
    done = control.play("site", "--limit", "node1,node2", status=2, perseas_wait=1)
    assert "store 'counts' could not commit or be opened without this mirror" in done.text
    assert "It was not restarted. Bring the store's other mirrors back" in done.text, done.text
    assert daemons(control)["node1"] == before["node1"]
    assert daemons(control)["node2"] == before["node2"]
    # It starts the mirror again, and goes on with what it could not do before.
    control.play("site")
    after = daemons(control)
    assert all(before[name] != after[name] for name in ("node1", "node3", "node4"))
    acknowledged(control)


def test_a_store_that_needs_all_of_its_mirrors_must_be_named(control):
    """Its commits wait for each restart, which somebody must have said is fine."""
    one = control.fleet.nodes[0]
    perseas(one, "create", "all", "@bank", "--acks", "3")
    before = daemons(control)
    control.variables["perseas_conf"] = {"spin-us": 2}
    done = control.play("site", status=2, perseas_wait=1)
    assert "store 'all' could not commit or be opened without this mirror" in done.text
    assert "name it in perseas_may_pause" in done.text
    assert daemons(control)["node1"] == before["node1"]
    control.play("site", perseas_may_pause=["all"])
    assert daemons(control)["node1"] != before["node1"]
    acknowledged(control)
    perseas(one, "drop", "all", "@bank", "--yes")


def test_several_mirrors_at_once_are_not_restarted(control):
    play = control.folder / "parallel.yml"
    play.write_text((PLAYS / "site.yml").read_text().replace("serial: 1", "serial: 4"))
    (control.folder / "roles").symlink_to(PLAYS / "roles")
    before = daemons(control)
    control.variables["perseas_conf"] = {"spin-us": 3}
    done = control.play(str(play.with_suffix("")), status=2)
    assert "give it `serial: 1`" in done.text, done.text
    assert daemons(control) == before


def versions(control):
    return {node.run("dpkg-query", "-W", "-f", "${Version}", "perseasd", check=False)
            for node in control.fleet.nodes}


def test_an_upgrade_goes_from_mirror_to_mirror_under_an_owner(control):
    since, old = now_ns(), versions(control)
    control.variables["perseas_debs"] = str(NEWER)
    offer(control.fleet.nodes[3], NEWER)
    control.play("site")
    # In check mode apt reads no lists.
    control.fleet.nodes[3].run("apt-get", "update")
    before = daemons(control)
    assert control.play("upgrade", "--check").changed() == set(before)
    assert versions(control) == old and daemons(control) == before
    control.play("upgrade")
    new, = versions(control)
    assert new.endswith("+newer") and {new} != old
    after = daemons(control)
    assert all(before[name] != after[name] for name in before)
    report(control, "upgraded", since)
    assert not control.play("upgrade").changed()
    assert daemons(control) == after


def test_a_drained_mirror_ends_when_it_has_nothing_any_more(control):
    since, (one, two, three, four) = now_ns(), control.fleet.nodes
    done = control.play("drain", status=2)
    assert "say which host of the group perseas is to be drained" in done.text
    done = control.play("drain", "-e", "perseas_drain=node3", "--check")
    assert done.changed() == {"node3"} and four.address in done.text, done.text
    assert three.processes("perseasd")
    assert control.play("drain", "-e", "perseas_drain=node3").changed() == {"node3"}
    assert not three.processes("perseasd")
    assert not control.play("drain", "-e", "perseas_drain=node3").changed()
    told = perseas(one, "roster", "counts", addresses([one]))
    assert four.address in told and three.address not in told, told
    report(control, "drained", since)
    # The others are told, and nothing brings the mirror back where an owner stays.
    control.of_hosts["node3"]["perseas_mirror"] = False
    counts(control, three)
    control.variables["perseas_clusters"]["bank"] = addresses(
        [node for node in control.fleet.nodes if node is not three]).split(",")
    control.play("site")
    assert not three.processes("perseasd")
    for node in (one, two):
        node.run("systemctl", "stop", "perseas-owner@counts.service")
    report(control, "the owner moved to where the mirror was", since)
    assert three.processes("counter")
