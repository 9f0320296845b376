"""Certificates of a CA that is not the role's, which it copies to hosts (`perseas_tls: copy`): to
three nodes in namespaces (hosts.py), where an owner connects with one of its own. They are renewed,
do not fit, are those of another CA, and the daemons are restarted, under the owner.

The tests build on each other, in their order. `make check-ansible` calls this as root, in
namespaces of its own.
"""
import socket
import ssl

import pytest

from hosts import (SECONDS, acknowledged, control_of, counts, daemons, files, now_ns, perseas,
                   report, upper, wait_for)
from certificates import Authority

FILES = {"cert": "mirror.pem", "key": "mirror.key", "ca": "ca.pem"}
OWNER = "/etc/perseas/tls/owner-counts"


class Pki:
    """A CA, with a certificate for each mirror and for the owner."""

    def __init__(self, folder, nodes):
        self.nodes, self.authority = nodes, Authority(folder)
        self.ca = self.authority.ca
        self.issue()

    def issue(self):
        for node in self.nodes:
            self.authority.issue(node.name, "DNS:%s,IP:%s" % (node.name, node.address))
        self.authority.issue("counts")

    def variables(self):
        """As an inventory names files of the control node."""
        beside = str(self.authority.folder / "{{ inventory_hostname }}")
        return {"perseas_tls": "copy", "perseas_tls_cert": beside + ".pem",
                "perseas_tls_key": beside + ".key", "perseas_tls_ca": str(self.ca)}

    def of(self, node):
        return {"cert": self.authority.cert(node.name).read_text(),
                "key": self.authority.key(node.name).read_text(), "ca": self.ca.read_text()}

    def bring_owner(self, nodes):
        """Its files are no business of the role's."""
        for node in nodes:
            node.write(OWNER + ".pem", self.authority.cert("counts").read_text())
            node.run("install", "-o", "counter", "-m", "600", "/dev/null", OWNER + ".new")
            node.write(OWNER + ".new", self.authority.key("counts").read_text())
            node.run("mv", OWNER + ".new", OWNER + ".key")


@pytest.fixture(scope="module")
def control(tmp_path_factory):
    with control_of(tmp_path_factory, 3) as made:
        made.pki = Pki(made.folder / "pki", made.fleet.nodes)
        made.variables.update(made.pki.variables())
        made.variables["perseas_access"] = [
            "allow cert:counts create,own,read,recover store counts"]
        yield made


def on_disk(node):
    return {word: node.run("cat", "/etc/perseas/tls/" + name) for word, name in FILES.items()}


def shown(control, node):
    """The certificate that the daemon shows to who connects now."""
    authority = control.pki.authority
    context = ssl.create_default_context(cafile=control.pki.ca)
    context.load_cert_chain(authority.cert("counts"), authority.key("counts"))
    with control.fleet.switch.inside(), \
            socket.create_connection((node.address, 7170), SECONDS) as plain, \
            context.wrap_socket(plain, server_hostname=node.address) as connection:
        return ssl.DER_cert_to_PEM_cert(connection.getpeercert(True))


def await_shown(control):
    """New connections have the certificates that are on the hosts: a reload is a signal, and takes
    effect after it was sent."""
    for node in control.fleet.nodes:
        wait_for(lambda: shown(control, node) == control.pki.of(node)["cert"], SECONDS,
                 "the new certificate of " + node.name)


def new_owner(control):
    """The application starts anew, wherever, and is acknowledged."""
    one, two, _ = control.fleet.nodes
    for node in (two, one):
        node.run("systemctl", "restart", "perseas-owner@counts.service")
    return acknowledged(control)


def test_check_mode_says_what_would_be_copied_and_shows_no_key(control):
    nodes = control.fleet.nodes
    before = {node.name: files(upper(node)) for node in nodes}
    done = control.play("site", "--check", "--diff")
    assert done.changed() == {node.name for node in nodes}
    assert "/etc/perseas/tls/mirror.key" in done.text
    for node in nodes:
        assert files(upper(node)) == before[node.name]
        assert control.pki.of(node)["key"].splitlines()[1] not in done.text


def test_each_host_gets_its_own_files_and_the_second_run_changes_nothing(control):
    nodes = control.fleet.nodes
    assert control.play("site").changed() == {node.name for node in nodes}
    for node in nodes:
        assert on_disk(node) == control.pki.of(node)
        said = node.run("stat", "-c", "%a %U %n", *("/etc/perseas/tls/" + name
                                                    for name in FILES.values()))
        assert "600 perseas /etc/perseas/tls/mirror.key" in said, said
        assert "644 root /etc/perseas/tls/mirror.pem" in said, said
    await_shown(control)
    running = daemons(control)
    assert not control.play("site").changed()
    assert not control.play("site", "--check", "--diff").changed()
    assert daemons(control) == running


def test_an_owner_connects_with_a_certificate_and_nobody_without(control):
    one, two, _ = control.fleet.nodes
    counts(control, one, two, user="counter", tls_cert=OWNER + ".pem", tls_key=OWNER + ".key",
           tls_ca="/etc/perseas/tls/ca.pem")
    for node in (one, two):
        node.run("useradd", "--system", "counter")
    control.pki.bring_owner((one, two))
    assert "perseas create counts @bank" in control.play("site", status=2).text
    perseas(one, "create", "counts", "@bank", name="owner-counts")
    control.play("site")
    acknowledged(control)
    assert not control.play("site").changed()
    for node in control.fleet.nodes:
        told = two.run("perseas", "ls", node.address + ":7170", check=False)
        assert ": perseasd " not in told, told


def test_files_that_do_not_fit_are_refused_before_anything_is_changed(control):
    nodes, before = control.fleet.nodes, daemons(control)
    one, two, _ = nodes
    other = Pki(control.folder / "other", nodes)
    for variable, path, sentence in (
            ("key", control.pki.authority.key(one.name), "is the key of another certificate than"),
            ("ca", other.ca, "is not valid for serverAuth under perseas_tls_ca: unable to get"),
            ("cert", "/nowhere/x.pem", "/nowhere/x.pem")):
        control.of_hosts[two.name]["perseas_tls_" + variable] = str(path)
        done = control.play("site", status=2)
        del control.of_hosts[two.name]["perseas_tls_" + variable]
        assert sentence in done.text, done.text
        assert not done.changed(), done.text
        assert all(on_disk(node) == control.pki.of(node) for node in nodes)
    assert daemons(control) == before
    acknowledged(control)


def test_renewed_certificates_are_read_without_a_restart(control):
    nodes, since, before = control.fleet.nodes, now_ns(), daemons(control)
    old = {node.name: shown(control, node) for node in nodes}
    control.pki.issue()
    control.pki.bring_owner(nodes[:2])
    assert control.play("site", "--check").changed() == {node.name for node in nodes}
    assert control.play("site").changed() == {node.name for node in nodes}
    await_shown(control)
    assert all(shown(control, node) != old[node.name] for node in nodes)
    assert daemons(control) == before
    report(control, "certificates renewed", since)


def test_daemons_are_restarted_under_an_owner_that_connects_again(control):
    nodes, since, before = control.fleet.nodes, now_ns(), daemons(control)
    control.variables["perseas_service"] = {"MemoryMax": "2G"}
    assert control.play("site").changed() == {node.name for node in nodes}
    after = daemons(control)
    assert all(before[name] != after[name] for name in before)
    report(control, "daemons restarted", since)
    new_owner(control)


def test_another_ca_takes_over_under_an_owner(control):
    """As README.md says: first both are trusted, then all have certificates of the new one, then
    nobody trusts the old one any more."""
    nodes, since, old = control.fleet.nodes, now_ns(), control.pki
    new = Pki(control.folder / "next", nodes)
    both = control.folder / "both.pem"
    both.write_text(old.ca.read_text() + new.ca.read_text())
    only, old.ca, new.ca = new.ca, both, both
    for pki in (old, new):
        control.pki = pki
        control.variables.update(pki.variables())
        assert control.play("site").changed() == {node.name for node in nodes}
        await_shown(control)
        assert all(on_disk(node) == pki.of(node) for node in nodes)
    new.bring_owner(nodes[:2])
    new.ca = only
    control.variables.update(new.variables())
    before = daemons(control)
    control.variables["perseas_conf"] = {"spin-us": 1}
    control.play("site")
    assert all(before[name] != after for name, after in daemons(control).items())
    report(control, "another CA", since)
    new_owner(control)
    # Whoever has a certificate of the old one alone is nobody any more.
    for word in ("pem", "key"):
        nodes[2].write("/root/old." + word, (old.authority.folder / ("counts." + word)).read_text())
    told = nodes[2].run("env", "PERSEAS_TLS_CERT=/root/old.pem", "PERSEAS_TLS_KEY=/root/old.key",
                        "PERSEAS_TLS_CA=/etc/perseas/tls/ca.pem", "perseas", "ls",
                        nodes[0].address + ":7170", check=False)
    assert ": perseasd " not in told, told
