"""The Ansible role of deploy/ansible without hosts: the variables that it refuses, its knowledge of
the daemon's options, and its modules, including the one that decides whether a mirror may be
restarted. tests/ansible runs it against hosts.
"""
import importlib.util
import json
import os
import re
import shutil
import subprocess
import time

import pytest
import yaml

from certificates import Authority, openssl
from drill import BUILD, OK, SCRIPTS, SECONDS, die_with_parent, mirror_list, run_command

PLAYS = SCRIPTS / "ansible"
ROLE = PLAYS / "roles/perseas"
# Options that the role sets by other variables, or leaves to the unit.
ELSEWHERE = {"listen", "unix", "unix-mode", "tls-cert", "tls-key", "tls-ca", "access", "label",
             "spill-dir", "state-dir"}


def ansible(tmp_path, *words, status=0):
    # Only a playbook that hangs takes this long: it normally takes seconds, and minutes on a busy
    # machine.
    done = subprocess.run(
        words, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, check=False, timeout=10 * SECONDS,
        env=dict(os.environ, HOME=str(tmp_path), ANSIBLE_HOME=str(tmp_path / "ansible"),
                 ANSIBLE_ROLES_PATH=str(ROLE.parent), ANSIBLE_NOCOLOR="1", LC_ALL="C.UTF-8",
                 ANSIBLE_REMOTE_TEMP=str(tmp_path / "remote")))
    assert done.returncode == status, done.stdout
    return done.stdout


def specification():
    told = yaml.safe_load((ROLE / "meta/argument_specs.yml").read_text())
    return told["argument_specs"]["main"]["options"]


def module(name, environment=None, **arguments):
    """Runs a module on this host as Ansible would. Returns its output."""
    done = subprocess.run(
        ["/usr/bin/python3", ROLE / "library" / (name + ".py")], text=True, check=False,
        input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}), timeout=SECONDS,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **(environment or {})})
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_it_has_every_option_of_the_daemon_and_no_other_one():
    told = subprocess.run([BUILD / "perseasd", "--help"], text=True, stdout=subprocess.PIPE,
                          check=True, timeout=SECONDS).stdout
    of_files = set(re.findall(r"^  --([a-z-]+)", told.partition("Only on the command line")[0],
                              re.M))
    assert set(specification()["perseas_conf"]["options"]) == of_files - ELSEWHERE


def test_every_variable_has_a_default_or_is_said_to_have_none():
    """Nothing else has a default."""
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    options = specification()
    assert set(defaults) == set(options)
    for name, option in options.items():
        computed = isinstance(defaults[name], str) and "{{" in defaults[name]
        assert computed or option["default"] == defaults[name], name


# A value for each option of perseas_conf that differs from the daemon's default.
VALUES = {"plaintext": "loopback", "rdma": False, "rdma-port": 4791, "rdma-order": "phased",
          "rdma-flush": True, "memory-dir": "/dev/shm/elsewhere", "unsafe-memory-on-disk": "on",
          "max-memory": "64G", "owner-timeout": 2.5, "protocol": 8, "max-connections": 64,
          "threads": 2, "spin-us": 5, "log-level": "debug", "log-format": "json",
          "journal-socket": "/run/systemd/journal/elsewhere",
          "http": "127.0.0.1:7180", "http-anywhere": "on", "http-name": ["node1.example", "node1"],
          "http-port-file": "/run/perseas/http", "port-file": "/run/perseas/port"}


def test_the_daemon_takes_the_file_that_it_writes(tmp_path, authority):
    """Writes a file with every option."""
    rules, file = tmp_path / "access", tmp_path / "perseasd.conf"
    variables = {"perseas_tls": "present", "perseas_tls_cert": str(authority.cert("mirror")),
                 "perseas_tls_key": str(authority.key("mirror")),
                 "perseas_tls_ca": str(authority.ca), "perseas_conf": VALUES,
                 "perseas_label_rack": "r1", "perseas_access": ["allow cert:bank all"],
                 "perseas_service": {"MemoryMax": "1G"}}
    assert set(VALUES) == set(specification()["perseas_conf"]["options"]) - {"tls-crl"}
    (tmp_path / "variables.yml").write_text(yaml.safe_dump(variables))
    play = tmp_path / "play.yml"
    play.write_text(yaml.safe_dump([{
        "hosts": "all", "connection": "local", "gather_facts": False,
        "vars_files": [str(ROLE / "defaults/main.yml"), str(ROLE / "vars/main.yml"),
                       str(tmp_path / "variables.yml")],
        "tasks": [{"ansible.builtin.template": {"src": str(ROLE / "templates" / source),
                                                "dest": str(file)}}
                  for source, file in (("access.j2", rules), ("perseasd.conf.j2", file))]}]))
    ansible(tmp_path, "ansible-playbook", "-i", "node1,", "-e",
            "ansible_python_interpreter=/usr/bin/python3 inventory_dir=/nowhere", play)
    text = file.read_text()
    for line in ("label host=node1", "label rack=r1", "rdma off", "rdma-flush on",
                 "http-name node1.example", "http-name node1", "owner-timeout 2.5"):
        assert line + "\n" in text, text
    assert "allow uid:0 read\nallow cert:node1 read\nallow cert:bank all\n" in rules.read_text()
    file.write_text(text.replace("/etc/perseas/access", str(rules)))
    done = subprocess.run([BUILD / "perseasd", "--check", "--config", file], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS)
    assert done.returncode == 0, done.stdout


# Variables of a host, and the expected message.
WRONG = {
    "tls": ({"perseas_tls": "maybe"}, "must be one of: none, ca, copy, present"),
    "misspelt": ({"perseas_conf": {"max-memori": "4G"}}, "Supported parameters include: http"),
    "own": ({"perseas_conf": {"listen": "192.0.2.1:1"}}, "perseas_conf.listen. Supported"),
    "number": ({"perseas_conf": {"threads": "many"}}, "unable to convert to int"),
    "choice": ({"perseas_conf": {"rdma": "maybe"}}, "must be one of: on, off, got: maybe"),
    "owner": ({"perseas_owners": [{"store": "bank"}]},
              "missing required arguments: command, mirrors found in perseas_owners"),
    "plain": ({"perseas_tls": "none"}, "perseas_tls is none. Set perseas_tls to ca, copy or"),
    "named": ({"perseas_listen": ["node1:7170"]}, "node1:7170 is not ADDRESS:PORT, such as"),
    "copy": ({"perseas_tls": "copy"}, "name the files by perseas_tls_cert, perseas_tls_key and"),
    "two": ({"perseas_debs": "/packages", "perseas_repository": "deb http://debs.example ./"},
            "both say where packages come from; leave one empty"),
}


def test_wrong_variables_are_refused_with_what_to_do(tmp_path):
    """The role refuses them before it connects to a host."""
    hosts = {name: {"perseas_tls": "ca", "perseas_listen": ["192.0.2.1:7170"], **variables}
             for name, (variables, _) in WRONG.items()}
    (tmp_path / "inventory.yml").write_text(yaml.safe_dump({"perseas": {
        "hosts": hosts, "vars": {"ansible_connection": "local"}}}))
    play = tmp_path / "play.yml"
    play.write_text(yaml.safe_dump([{
        "hosts": "perseas", "gather_facts": False,
        "tasks": [{"ansible.builtin.import_role": {"name": "perseas"}}]}]))
    told = ansible(tmp_path, "ansible-playbook", "-i", tmp_path / "inventory.yml", play, status=2)
    for name, (_, sentence) in WRONG.items():
        said, = re.findall(r"^(?:fatal|failed): \[%s\].*(?:\n    .*)*" % name, told, re.M)
        assert sentence in re.sub(r"\s+", " ", said), told
        assert re.search(r"^%s +: ok=\d+ +changed=0 " % name, told, re.M), told
    assert "Ask which packages are installed" not in told


def create(store, daemons, *words):
    assert run_command("create", store, *words, mirrors=daemons).status == OK


def redundancy(daemon, state, **more):
    """Asks the module through the daemon's Unix socket, an address that no roster has."""
    return module("perseas_redundancy", {"PATH": "%s:/usr/bin:/bin" % BUILD.resolve()},
                  address=daemon.mirror.unix, state=state, **{"wait": 0, **more})


def test_a_mirror_that_no_store_would_miss_may_be_restarted(mirrors):
    daemons = mirrors(3)
    assert redundancy(daemons[0], "expendable", wait=SECONDS)["stores"] == {}
    create("one", daemons)
    told = redundancy(daemons[0], "expendable", wait=SECONDS)
    assert not told.get("failed") and set(told["stores"]) == {"one"}, told


def test_one_that_a_store_would_miss_may_not(mirrors, owner):
    """This holds whatever address the roster has for the mirror; a mirror that does not answer may
    not be restarted either."""
    daemons = mirrors(3)
    create("store", daemons)
    owner("store", daemons)
    daemons[1].lose_memory()
    told = redundancy(daemons[0], "expendable")
    assert told["failed"] and "It was not restarted" in told["msg"], told
    assert "store 'store' could not commit or be opened without this mirror" in told["msg"]
    told = redundancy(daemons[0], "expendable", may_pause=["store"], wait=SECONDS)
    assert not told.get("failed"), told
    told = redundancy(daemons[1], "expendable")
    assert told["failed"] and "it does not tell of its stores" in told["msg"], told
    daemons[2].kill9()
    told = redundancy(daemons[0], "expendable", may_pause=["*"])
    assert told["failed"] and re.search(
        "store 'store' cannot (commit|open) now: mend that first", told["msg"]), told


def test_a_store_that_needs_every_mirror_is_named(mirrors):
    daemons = mirrors(2)
    create("both", daemons)
    create("alone", daemons[:1])
    told = redundancy(daemons[0], "expendable", may_pause=["both"])
    assert told["failed"] and "store 'alone' could not" in told["msg"], told
    told = redundancy(daemons[0], "expendable", may_pause=["both", "alone"], wait=SECONDS)
    assert not told.get("failed"), told


def test_a_restarted_mirror_is_waited_for(mirrors, owner):
    daemons = mirrors(3)
    create("store", daemons)
    create("idle", daemons)
    owner("store", daemons)
    before = redundancy(daemons[0], "expendable", wait=SECONDS)
    assert not before.get("failed") and before["stores"]["store"]["live"], before
    daemons[0].kill9()
    told = redundancy(daemons[0], "whole", before=before["stores"])
    assert told["failed"] and "no other mirror will be" in told["msg"], told
    daemons[0].restart()
    told = redundancy(daemons[0], "whole", before=before["stores"], wait=SECONDS)
    assert not told.get("failed"), told


def test_a_mirror_that_lost_its_images_is_waited_for_until_it_has_them(mirrors, owner):
    """Waits for the store with an owner. A store without an owner is not copied by anybody, and the
    module says so."""
    daemons = mirrors(3)
    create("store", daemons)
    owner("store", daemons)
    before = redundancy(daemons[0], "expendable", wait=SECONDS)["stores"]
    daemons[0].lose_memory()
    daemons[0].restart()
    told = redundancy(daemons[0], "whole", before=before, wait=SECONDS)
    assert not told.get("failed"), told
    create("idle", daemons)
    before = redundancy(daemons[0], "expendable", wait=SECONDS)["stores"]
    daemons[0].lose_memory()
    daemons[0].restart()
    told = redundancy(daemons[0], "whole", before={"idle": before["idle"]})
    assert told["failed"] and "store 'idle': this mirror has no image of it any more" in told["msg"]


def of_module(name):
    specified = importlib.util.spec_from_file_location(name, ROLE / "library" / (name + ".py"))
    made = importlib.util.module_from_spec(specified)
    specified.loader.exec_module(made)
    return made


GOOD = {"started": 100.0, "member": True, "state": "consistent", "can_commit": True,
        "can_open": True, "hurts": [], "hurt": False, "lag": 0, "live": True, "owned": True,
        "doubt": False, "silent": 0.1, "not_live": []}


@pytest.mark.parametrize("differs, since, said", [
    ({}, 99.0, None),
    ({}, 99.95, "has not yet told how this mirror is"),
    ({"live": False}, None, "its owner has not come back"),
    ({"state": "joining"}, 99.0, "its image here is 'joining'"),
    ({"not_live": ["m1:7170"]}, 99.0, "not live for its owner: m1:7170"),
    ({"hurts": ["m2:7170"]}, 99.0, "the loss of m2:7170 would hurt it"),
    ({"doubt": True}, 99.0, "cannot commit or be opened"),
    ({"can_open": False}, 99.0, "cannot commit or be opened"),
    ({"live": False, "owned": False}, None, None),
    ({"live": False, "owned": False, "lag": 3}, None, "no owner brings it up to date"),
])
def test_what_an_owner_said_before_it_came_back_does_not_count(differs, since, said):
    """An owner reports twice a second how its mirrors are. A report from before the mirror's
    restart does not show that the owner has it back."""
    lack = of_module("perseas_redundancy").lack
    told = lack("store", {**GOOD, **differs}, GOOD, since)
    assert told is None if said is None else said in told, told
    # An image that no roster mentions does not delay anything.
    assert lack("store", {**GOOD, **differs}, {**GOOD, "member": False}, since) is None


def test_the_first_look_at_a_mirror_that_is_back_is_not_enough():
    """The owner's report, however recent, may be from before the mirror was back."""
    asked = of_module("perseas_redundancy")
    asked.stores_of = lambda address: ["store"]
    asked.look_at = lambda store, address: {**GOOD, "started": time.monotonic(), "silent": 0}
    watch = asked.Watch({"address": "m1:7170", "state": "whole", "before": {"store": GOOD},
                         "may_pause": []})
    assert "has not yet told how this mirror is" in watch.trouble()
    assert watch.trouble() is None
    asked.look_at = lambda store, address: {**GOOD, "live": False}
    assert "its owner has not come back" in watch.trouble()
    asked.look_at = lambda store, address: {**GOOD, "started": time.monotonic(), "silent": 0}
    assert "has not yet told how this mirror is" in watch.trouble()


@pytest.mark.parametrize("differs, said", [
    ({}, None), ({"hurt": True, "hurts": ["m1"]}, "without this mirror"),
    ({"can_commit": False}, "cannot commit now"), ({"can_commit": None}, "it is not known"),
    ({"can_open": False}, "cannot open now"),
    ({"doubt": True}, "has a commit in doubt"),
    ({"member": False, "hurt": True, "can_commit": False}, None)])
def test_what_would_hurt_a_store(differs, said):
    told = of_module("perseas_redundancy").harm("store", {**GOOD, **differs}, ["other"])
    assert told is None if said is None else said in told, told


def test_a_certificate_is_asked_for_when_it_must_be(tmp_path, authority):
    key, certificate, names = tmp_path / "key", tmp_path / "pem", ["DNS:node1", "IP:192.0.2.1",
                                                                   "IP:2001:db8::1"]

    def ask(ca=authority.ca, **more):
        return module("perseas_request", key=str(key), certificate=str(certificate),
                      ca=ca.read_text(), subject="node1", **{"names": names, "days": 0, **more})

    def issue():
        (tmp_path / "csr").write_text(ask()["request"])
        (tmp_path / "ext").write_text("subjectAltName=" + ",".join(names))
        openssl("x509", "-req", "-in", tmp_path / "csr", "-CA", authority.ca, "-CAkey",
                authority.folder / "ca.key", "-days", 1, "-extfile", tmp_path / "ext", "-out",
                certificate)
    told = module("perseas_request", key=str(key), certificate=str(certificate), subject="node1",
                  ca=authority.ca.read_text(), names=names, _ansible_check_mode=True)
    assert told["changed"] and not told["request"] and not key.exists()
    told = ask()
    assert told["changed"] and told["reason"] == "there is none", told
    assert key.stat().st_mode & 0o777 == 0o600 and "PRIVATE" not in json.dumps(told)
    issue()
    kept = key.read_text()
    told = ask()
    assert (told["changed"], told["reason"], told["request"]) == (False, "", ""), told
    assert ask(names=names[:1])["reason"] == "it is for other names"
    assert ask(days=2)["reason"] == "it expires within 2 days"
    assert ask(ca=authority.cert("owner"))["reason"] == "it is of another CA"
    assert key.read_text() == kept
    key.unlink()
    told = ask()
    assert told["changed"] and told["reason"] == "it is of another key", told


def test_files_that_are_copied_must_fit_together(tmp_path, authority):
    """Certificates for servers only are refused, too: a mirror asks other mirrors whether it may be
    restarted."""
    elsewhere = Authority(tmp_path / "elsewhere")
    elsewhere.issue("mirror")
    elsewhere.issue("server", use="serverAuth")

    def fault(certificate, key, ca=authority.ca.read_text()):
        told = module("perseas_match", certificate=certificate, key=key, ca=ca)
        assert not told["changed"]
        assert not [line for line in key.splitlines()[1:-1] if line in json.dumps(told)]
        return told["fault"]
    certificate, key = authority.cert("mirror").read_text(), authority.key("mirror").read_text()
    of_others = elsewhere.ca.read_text()
    assert fault(certificate, key) == ""
    assert fault(certificate, key, of_others + authority.ca.read_text()) == ""
    for words, sentence in (
            ((certificate, elsewhere.key("mirror").read_text()), "the key of another certificate"),
            ((certificate, key, of_others), "under perseas_tls_ca: unable to get local issuer"),
            ((elsewhere.cert("server").read_text(), elsewhere.key("server").read_text(), of_others),
             "is not valid for clientAuth under perseas_tls_ca"),
            (("certificate", key), "perseas_tls_cert is no certificate in PEM"),
            ((certificate, "nothing"), "perseas_tls_key is no key in PEM without a passphrase"),
            ((certificate, key, "ca"), "perseas_tls_ca is no certificate in PEM")):
        assert sentence in fault(*words), words


class Stubs:
    """Stubs of a host's commands, which record their calls and do nothing."""
    SYSTEMCTL = "case $1 in show) cat %s ;; *) echo systemctl $* >>%s ;; esac"
    PERSEAS = """echo perseas $1 >>%s
echo '{"mirrors": [{"reachable": %s, "error": "it is not there", "stores": []}]}'"""

    def __init__(self, folder):
        folder.mkdir()
        self.folder, self.log, self.unit = folder, folder / "log", folder / "unit"
        self.log.touch()
        self.say_of_unit()
        self.write("systemctl", self.SYSTEMCTL % (self.unit, self.log))
        self.write("perseas", self.PERSEAS % (self.log, "true"))
        self.path = "%s:/usr/bin:/bin" % folder

    def say_of_unit(self, state="active", **more):
        self.unit.write_text("".join("%s=%s\n" % each for each in {
            "LoadState": "loaded", "ActiveState": state, **more}.items()))

    def write(self, name, text):
        (self.folder / name).write_text("#!/bin/sh\n%s\n" % text)
        (self.folder / name).chmod(0o755)

    def called(self):
        return self.log.read_text().splitlines()


def test_what_a_unit_has_not_read_is_newer_than_it(tmp_path):
    stubs, file = Stubs(tmp_path / "host"), tmp_path / "file"
    file.touch()
    changed, replaced = int(file.stat().st_mtime), tmp_path / "program"
    shutil.copy("/usr/bin/sleep", replaced)

    def reasons(**more):
        return module("perseas_pending", {"PATH": stubs.path}, unit="perseasd.service",
                      files=[str(file), str(tmp_path / "nowhere")], **more)["reasons"]
    for since, known in ((changed - 1, False), (changed, True), (changed + 1, True)):
        stubs.say_of_unit(ExecMainStartTimestamp="@%d" % since)
        assert reasons() == ([] if known else [
            "%s is newer than perseasd.service" % file]), since
    # It was told to reread them, and then they were changed again.
    told = tmp_path / "told"
    told.touch()
    for when, known in ((changed - 1, False), (changed, True)):
        stubs.say_of_unit(ExecMainStartTimestamp="@%d" % (changed - 2))
        os.utime(told, (when, when))
        assert (reasons(reloaded=str(told)) == []) == known, when
    stubs.say_of_unit("inactive", ExecMainStartTimestamp="@%d" % (changed - 1))
    assert reasons() == []
    running = subprocess.Popen([replaced, "1000"], preexec_fn=die_with_parent)
    try:
        stubs.say_of_unit(ExecMainStartTimestamp="@%d" % changed, MainPID=running.pid)
        assert reasons() == []
        replaced.unlink()
        assert reasons() == ["the program of perseasd.service was replaced"]
        assert reasons(program=False) == []
    finally:
        running.kill()
        running.wait()


# Tasks of the role against one host: the order of the commands that they run.
RESTARTED = {
    "restarted": ({"perseas_must_restart": True, "perseas_daemon_runs": True},
                  ["perseas ls", "systemctl restart perseasd.service", "perseas ls",
                   "systemctl daemon-reload", "systemctl reload perseasd.service"]),
    "reopened": ({"perseas_must_reopen": True},
                 ["perseas ls", "systemctl stop perseasd.service",
                  "systemctl restart perseasd.socket", "systemctl restart perseasd.service",
                  "perseas ls", "systemctl daemon-reload"]),
    "missed": ({"perseas_must_restart": True}, ["perseas ls"]),
}


def test_a_mirror_is_restarted_between_two_questions_and_alone(tmp_path):
    """A store would miss the last mirror, which is not restarted; then that is true for all of
    them. Handlers restart nothing."""
    stubs = {name: Stubs(tmp_path / name) for name in RESTARTED}
    stubs["missed"].write("perseas", Stubs.PERSEAS % (stubs["missed"].log, "false"))
    (tmp_path / "inventory.yml").write_text(yaml.safe_dump({"perseas": {"hosts": {
        name: {"perseas_wait": 0, "perseas_must_upgrade": False, "perseas_must_restart": False,
               "perseas_must_reopen": False, "perseas_daemon_runs": False, **variables}
        for name, (variables, _) in RESTARTED.items()}, "vars": {
            "ansible_connection": "local",
            "ansible_python_interpreter": "/usr/bin/python3"}}}, sort_keys=False))
    for name in ("one", "all"):
        (tmp_path / (name + ".yml")).write_text(yaml.safe_dump([
            {"hosts": "perseas", "gather_facts": False,
             "environment": {"PATH": "%s/{{ inventory_hostname }}:/usr/bin:/bin" % tmp_path},
             **({"serial": 1} if name == "one" else {}), "tasks": [
                 {"ansible.builtin.include_role": {"name": "perseas",
                                                   "tasks_from": "restart.yml"}},
                 {"ansible.builtin.command": "true",
                  "notify": ["Perseas files", "Perseas units"]}]}]))
    told = ansible(tmp_path, "ansible-playbook", "-i", tmp_path / "inventory.yml", "-e",
                   "perseas_reloaded=%s" % (tmp_path / "reloaded"), tmp_path / "one.yml", status=2)
    assert (tmp_path / "reloaded").exists(), told
    assert {name: stub.called() for name, stub in stubs.items()} == {
        name: called for name, (_, called) in RESTARTED.items()}, told
    assert "it does not tell of its stores: it is not there" in told, told
    told = ansible(tmp_path, "ansible-playbook", "-i", tmp_path / "inventory.yml",
                   tmp_path / "all.yml", status=2)
    assert told.count("give it `serial: 1`") == len(RESTARTED), told
    assert {name: stub.called() for name, stub in stubs.items()} == {
        name: called for name, (_, called) in RESTARTED.items()}, told


def test_a_drain_is_of_one_host_that_is_named(tmp_path):
    """Several hosts, or a group, are refused before any host is contacted."""
    (tmp_path / "inventory.yml").write_text(yaml.safe_dump({"perseas": {
        "hosts": {"node1": {}, "node2": {}},
        "vars": {"ansible_host": "127.0.0.1", "ansible_port": 1}}}))
    for named in ("perseas", "node1,node2"):
        told = ansible(tmp_path, "ansible-playbook", "-i", tmp_path / "inventory.yml",
                       PLAYS / "drain.yml", "-e", "perseas_drain=" + named, status=2)
        assert "say which host of the group perseas is to be drained" in told, told
        assert "Move the images of the mirror" not in told, told


# A role in place of the real one. Each of its files records its begin and end. All hosts that need
# not take turns have begun before one of them ends.
STEPS = """
- ansible.builtin.shell: echo begin %(step)s >>{{ log }}
- ansible.builtin.shell: "%(what)s && echo end %(step)s >>{{ log }}"
"""


def test_mirrors_and_owners_take_their_turns(tmp_path):
    """What site.yml does on all hosts in parallel is done before any is restarted. Then each host
    is finished before the next one begins, and a failure stops the playbook."""
    log, tasks = tmp_path / "log", tmp_path / "roles/perseas/tasks"
    tasks.mkdir(parents=True)
    shutil.copy(PLAYS / "site.yml", tmp_path)
    for step in ("main", "roll", "owners"):
        (tasks / (step + ".yml")).write_text(STEPS % {
            "step": step + " {{ inventory_hostname }}",
            "what": "test {{ inventory_hostname }} != node2" if step == "owners" else "true"})
    (tmp_path / "inventory.yml").write_text(yaml.safe_dump({"perseas": {
        "hosts": {"node1": {}, "node2": {}, "node3": {}},
        "vars": {"ansible_connection": "local", "ansible_become": False, "log": str(log),
                 "ansible_python_interpreter": "/usr/bin/python3"}}}))

    ansible(tmp_path, "ansible-playbook", "-i", tmp_path / "inventory.yml",
            tmp_path / "site.yml", status=2)
    done, of = log.read_text().splitlines(), [
        "%s %s node%d" % (word, step, number) for step in ("main", "roll", "owners")
        for number in (1, 2, 3) for word in ("begin", "end")]
    assert sorted(done[:6]) == sorted(of[:6])
    assert done[6:] == of[6:12] + ["begin owners node1", "end owners node1", "begin owners node2"]
