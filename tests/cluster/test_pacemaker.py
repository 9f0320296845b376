"""Three nodes under Pacemaker and Corosync, without STONITH and without a quorum of Pacemaker's:
whatever becomes of the owner, its node, its link or its time, nothing acknowledged is lost.

Both parts of a network that fell apart may believe that they are the cluster
(no-quorum-policy=ignore), so that mirrors alone keep the old owner from being one. Whether they do
is told by journals outside of the nodes.
"""
import re

import pytest

from nodes import SECONDS, Oracle, now_ns, wait_for
from pacemaker import configure_cluster, make_fleet, summary

BANK = """
primitive bank ocf:perseas:owner params store=bank mirrors=@fleet \
command="/usr/bin/counter /journals" user=daemon warm=true \
op start timeout=120s op stop timeout=60s op promote timeout=120s op demote timeout=120s \
op monitor interval=2s timeout=60s role=Promoted \
op monitor interval=3s timeout=60s role=Unpromoted
clone banks bank meta promotable=true promoted-max=1 interleave=true
"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    made = make_fleet(tmp_path_factory.mktemp("nodes"))
    try:
        made.nodes[0].run("perseas", "create", "bank", "@fleet")
        configure_cluster(made.nodes[0], BANK)
        settle(made)
        yield made
    finally:
        made.close()


def promoted(node):
    """Where Pacemaker believes the owner to be, as this node sees it."""
    found = re.findall(r"Node (node\d).*?\n((?:    .*\n)*)", summary(node))
    return [name for name, lines in found
            if re.search(r"ocf:+perseas:owner\):\s+(Promoted|Master)", lines)]


def acknowledges(fleet, since):
    """Did anybody be told, since then, that a transaction is safe?"""
    return Oracle(fleet.journals).last()[0] > since


def open_gate(node):
    return "promoted" in node.run("ls", "/run/resource-agents/perseas-owner-bank", check=False)


def whole(fleet):
    """All nodes agree who is promoted, and the store has all its mirrors."""
    views = [promoted(node) for node in fleet.up()]
    if len(views[0]) != 1 or any(view != views[0] for view in views):
        return None
    # Nowhere else does an application get through to the store.
    if [node.name for node in fleet.up() if open_gate(node)] != views[0]:
        return None
    told = fleet.up()[0].run("perseas", "status", "bank", "@fleet", check=False)
    live = re.findall(r"^10\.88\.0\.\d:7170\s+live\s", told, re.M)
    return views[0][0] if len(live) == 3 else None


def await_with(fleet, predicate, what):
    """wait_for, and what the nodes say if it was in vain."""
    try:
        return wait_for(predicate, SECONDS, what)
    except TimeoutError:
        for node in fleet.up():
            print(node.name, open_gate(node), summary(node),
                  node.run("journalctl", "-n", "200", "--no-pager", check=False))
        print(fleet.up()[0].run("perseas", "status", "bank", "@fleet", check=False))
        raise


def settle(fleet):
    """Until all is as it should be; the node of the owner."""
    before = now_ns()
    await_with(fleet, lambda: Oracle(fleet.journals).of("ack") and acknowledges(fleet, before),
               "an acknowledgement")
    name = await_with(fleet, lambda: whole(fleet), "a cluster that is whole")
    return next(node for node in fleet.nodes if node.name == name)


def new_epoch(fleet, old):
    """Until somebody acknowledges as a later owner; the oracle then."""
    def found():
        oracle = Oracle(fleet.journals)
        return oracle if oracle.last()[1] > old else None
    return await_with(fleet, found, "an owner after that of epoch %d" % old)


def assert_silent(fleet, epoch, since):
    """The owner of this epoch acknowledges nothing any more. Only the answer to one commit can have
    reached it before."""
    late = [at for at, each, *_ in Oracle(fleet.journals).of("ack") if each == epoch and at > since]
    assert len(late) <= 1, "the old owner acknowledges"


def report(fleet, what, since):
    oracle = Oracle(fleet.journals)
    print("\n%s: %d transactions acknowledged so far, none lost; nobody owned the store for %.1f s "
          "at most" % (what, oracle.check(), oracle.gap(since)))


def test_the_application_is_killed(fleet):
    """`perseas run` starts it again in place; Pacemaker need not know."""
    node, since = settle(fleet), now_ns()
    epoch = Oracle(fleet.journals).last()[1]
    for pid in node.processes("counter"):
        node.run("kill", "-9", str(pid))
    new_epoch(fleet, epoch)
    assert settle(fleet) is node
    report(fleet, "application killed", since)


def test_the_owner_is_killed_with_all_of_its_processes(fleet):
    node, since = settle(fleet), now_ns()
    epoch = Oracle(fleet.journals).last()[1]
    # The application may end before it is killed, since its parent did.
    node.run("kill", "-9", *(str(pid) for name in ("perseas", "counter")
                             for pid in node.processes(name)), check=False)
    new_epoch(fleet, epoch)
    settle(fleet)
    report(fleet, "owner killed", since)


def test_a_mirror_is_killed(fleet):
    """The owner goes on with two, and the clone starts the third again, whose images are there."""
    node, since = settle(fleet), now_ns()
    other = next(each for each in fleet.nodes if each is not node)
    old = other.processes("perseasd")
    other.run("kill", "-9", str(old[0]))
    wait_for(lambda: other.processes("perseasd") not in ([], old), SECONDS, "another perseasd")
    settle(fleet)
    report(fleet, "mirror killed", since)


def test_the_node_is_killed(fleet):
    """With the owner, its mirror and all of its memory. It comes back later, with nothing."""
    node, since = settle(fleet), now_ns()
    epoch = Oracle(fleet.journals).last()[1]
    node.kill()
    new_epoch(fleet, epoch)
    wait_for(lambda: promoted(fleet.up()[0]) not in ([], [node.name]), SECONDS, "another owner")
    report(fleet, "node killed", since)
    node.boot()
    settle(fleet)
    report(fleet, "node back", since)


def test_the_link_is_cut(fleet):
    """The owner lives on in its part, where Pacemaker still has it promoted, and nobody kills it.
    It cannot acknowledge anything beyond what the next owner found."""
    node, since = settle(fleet), now_ns()
    epoch = Oracle(fleet.journals).last()[1]
    fleet.switch.cut(node)
    new_epoch(fleet, epoch)
    assert promoted(node) == [node.name], summary(node)
    other = next(each for each in fleet.nodes if each is not node)
    wait_for(lambda: promoted(other) not in ([], [node.name]), SECONDS, "another owner")
    taken = now_ns()
    wait_for(lambda: acknowledges(fleet, taken), SECONDS, "the next owner's work")
    assert_silent(fleet, epoch, taken)
    report(fleet, "link cut", since)
    fleet.switch.cut(node, False)
    settle(fleet)
    report(fleet, "link whole", since)


def test_the_node_stands_still(fleet):
    """It wakes up later in the belief that it owns the store, at any point of a transaction."""
    node, since = settle(fleet), now_ns()
    epoch = Oracle(fleet.journals).last()[1]
    node.freeze(True)
    new_epoch(fleet, epoch)
    taken = now_ns()
    node.freeze(False)
    settle(fleet)
    report(fleet, "node frozen", since)
    assert_silent(fleet, epoch, taken)


def test_the_store_is_moved(fleet):
    """As before maintenance: the application ends and closes the store, and goes on elsewhere."""
    node, since = settle(fleet), now_ns()
    epoch = Oracle(fleet.journals).last()[1]
    node.run("crm", "node", "standby", node.name)
    new_epoch(fleet, epoch)
    wait_for(lambda: promoted(node) not in ([], [node.name]), SECONDS, "another owner")
    node.run("crm", "node", "online", node.name)
    settle(fleet)
    report(fleet, "moved", since)
