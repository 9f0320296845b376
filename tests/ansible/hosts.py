"""What drills of the Ansible role share: nodes of tests/cluster/nodes.py with sshd as its hosts,
the control node, and what there is to see of a host. tests/ansible calls it, in namespaces of its
own.

Nothing of it is seen outside, and no address outside is reached: the control node is the nodes'
switch. It must never change a host itself, but by a playbook.
"""
import contextlib
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

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


@contextlib.contextmanager
def control_of(tmp_path_factory, count):
    """A control node, and so many hosts, with the packages of a folder."""
    folder = tmp_path_factory.mktemp("ansible")
    fleet = Fleet(tmp_path_factory.mktemp("nodes"), count)
    try:
        made = Control(fleet, folder)
        for node in fleet.nodes:
            node.write("/etc/hostname", node.name + "\n")
            node.write("/root/.ssh/authorized_keys", made.key())
            # Nothing is fetched from outside.
            node.write("/etc/apt/sources.list", "")
            node.boot()
        made.variables = {"perseas_debs": str(PACKAGES),
                          "perseas_listen": ["{{ ansible_host }}:7170"],
                          "perseas_clusters": {"bank": addresses(fleet.nodes[:3]).split(",")}}
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


def counts(control, *nodes, **more):
    """These nodes may own the store counts; `more` is what else perseas_owners says of it."""
    for order, node in enumerate(nodes):
        control.of_hosts[node.name]["perseas_owners"] = [{
            "store": "counts", "mirrors": "@bank", "command": "/usr/bin/counter /journals",
            "options": "--order %d" % order, "service": {"ReadWritePaths": "/journals"}, **more}]
