"""The Ansible role of deploy/ansible, run by ansible-playbook over ssh against four nodes with
systemd and sshd, in namespaces (hosts.py): check mode, a first run and a second one, changes under
an owner that commits, mirrors that must not be restarted, an upgrade, a drain.

The tests build on each other, in their order. `make check-ansible` calls this as root, in
namespaces of its own.
"""
import re

import pytest

from hosts import (NEWER, PACKAGES, PLAYS, SECONDS, acknowledged, addresses, control_of, counts,
                   daemons, files, now_ns, offer, perseas, report, upper, wait_for)


@pytest.fixture(scope="module")
def control(tmp_path_factory):
    with control_of(tmp_path_factory, 4) as made:
        # All but one have packages of a folder.
        offer(made.fleet.nodes[3], PACKAGES)
        made.of_hosts["node4"].update(perseas_debs="",
                                      perseas_repository="deb [trusted=yes] file:/srv/perseas ./")
        made.variables.update({
            "perseas_tls": "ca", "perseas_ca_folder": str(made.folder / "ca"),
            "perseas_access": ["allow cert:counts create,own,read,recover store counts",
                               "allow cert:node* read,own,create,admin"]})
        yield made


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
    """Files are there, and the daemon has not read them: rules, for which it goes on, and
    options."""
    node = control.fleet.nodes[3]
    before = daemons(control)

    def times_read():
        return node.run("journalctl", "-u", "perseasd").count(" are in force")
    times = times_read()
    node.run("touch", "/etc/perseas/access")
    assert control.play("site", "--limit", "node4").changed() == {"node4"}
    wait_for(lambda: times_read() == times + 1, SECONDS, "rules that are read again")
    assert not control.play("site", "--limit", "node4").changed()
    assert daemons(control) == before
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
