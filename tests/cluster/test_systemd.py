"""Three nodes with systemd alone: perseasd.service, perseas-owner@bank.service on each, and
perseas.target. The mirrors decide who owns the store; nothing else does."""
import re

import pytest

from nodes import SECONDS, Fleet, Oracle, now_ns, wait_for

LIST = ",".join("10.88.0.%d:7170" % number for number in (1, 2, 3))
OWNER = """PERSEAS_MIRRORS=%s
COMMAND=/usr/bin/counter /journals
OPTIONS=--warm --order %d
"""
# The journals lie where a user of systemd's own making may not write otherwise.
DROP_IN = "[Service]\nReadWritePaths=/journals\n"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    made = Fleet(tmp_path_factory.mktemp("nodes"), 3)
    try:
        for node in made.nodes:
            node.write("/etc/hostname", node.name + "\n")
            node.write("/etc/perseasd.conf",
                       "listen %s:7170\nplaintext anywhere\n" % node.address)
            node.write("/etc/perseas-owner/bank.conf", OWNER % (LIST, node.number - 1))
            node.write("/etc/systemd/system/perseas-owner@bank.service.d/journals.conf", DROP_IN)
            for unit in ("corosync", "pacemaker"):
                wanted = "etc/systemd/system/multi-user.target.wants/%s.service" % unit
                (node.root / wanted).unlink()
        for node in made.nodes:
            node.boot()
            node.run("systemctl", "enable", "--now", "perseasd.service")
        one = made.nodes[0]
        wait_for(lambda: one.run("perseas", "ls", LIST, check=False).count(": perseasd ") == 3,
                 SECONDS, "three mirrors")
        one.run("perseas", "create", "bank", LIST)
        for node in made.nodes:
            node.run("systemctl", "enable", "--now", "perseas.target", "perseas-owner@bank.service")
        yield made
    finally:
        made.close()


def owners(fleet):
    return [node for node in fleet.up() if node.processes("counter")]


def settle(fleet):
    """Until one acknowledges and the others stand by; its node."""
    before = now_ns()
    wait_for(lambda: [at for at, *_ in Oracle(fleet.journals).of("ack") if at > before], SECONDS,
             "an acknowledgement")

    def whole():
        told = fleet.up()[0].run("perseas", "status", "bank", LIST, check=False)
        live = re.findall(r"^10\.88\.0\.\d:7170\s+live\s", told, re.M)
        return len(live) == 3 and len(owners(fleet)) == 1
    wait_for(whole, SECONDS, "a store that is whole")
    return owners(fleet)[0]


def new_epoch(fleet, old):
    wait_for(lambda: Oracle(fleet.journals).last()[1] > old, SECONDS,
             "an owner after that of epoch %d" % old)


def report(fleet, what, since):
    oracle = Oracle(fleet.journals)
    print("\n%s: %d transactions acknowledged so far, none lost; nobody owned the store for %.1f s "
          "at most" % (what, oracle.check(), oracle.gap(since)))


def test_the_units_are_sound(fleet):
    units = ["/usr/lib/systemd/system/" + name for name in (
        "perseasd.service", "perseasd.socket", "perseas-owner@bank.service", "perseas.target")]
    assert not fleet.nodes[0].run("systemd-analyze", "verify", "--man=no", *units).strip()


def test_the_node_is_killed(fleet):
    node, since = settle(fleet), now_ns()
    epoch = Oracle(fleet.journals).last()[1]
    node.kill()
    new_epoch(fleet, epoch)
    node.boot()
    settle(fleet)
    report(fleet, "node killed", since)


def test_the_link_is_cut(fleet):
    node, since = settle(fleet), now_ns()
    epoch = Oracle(fleet.journals).last()[1]
    fleet.switch.cut(node)
    new_epoch(fleet, epoch)
    fleet.switch.cut(node, False)
    settle(fleet)
    report(fleet, "link cut", since)


def test_the_target_stops_and_starts_all_that_is_enabled(fleet):
    """First the owner, which closes the store, and then the mirror."""
    node, since = settle(fleet), now_ns()
    epoch = Oracle(fleet.journals).last()[1]
    node.run("systemctl", "stop", "perseas.target")
    # systemctl waits for the target, and the units stop after it.
    wait_for(lambda: not any(map(node.processes, ("counter", "perseas", "perseasd"))), SECONDS,
             "the end of all that the target has")
    new_epoch(fleet, epoch)
    node.run("systemctl", "start", "perseas.target")
    assert node.processes("perseasd") and node.processes("perseas")
    settle(fleet)
    report(fleet, "target stopped and started", since)
