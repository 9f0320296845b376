"""Fifty stores on three machines under Pacemaker: one machine dies, and later another one. Every
store has an owner again, two copies of everything on the two machines that are left, and three as
soon as the dead machine is back; nothing acknowledged is lost.

What the redundancy of a store is, with W=2 of three mirrors: while a machine is missing, each
acknowledged transaction is on both others; the loss of one of these would stop commits, and lose
nothing. Once the machine is back, with nothing in its memory, owners copy their stores to it, and
each store bears a loss again. That this is true is shown by the death of the next machine.

How long nobody owned a store is printed, with what that time was spent on; nothing is asserted
about time.
"""
import collections
import json
import re
import resource

import pytest

from nodes import Oracle, now_ns, wait_for
from pacemaker import PORT, configure_cluster, make_fleet, summary

STORES = ["bank%02d" % number for number in range(1, 51)]
# W of three mirrors: what create makes it.
ACKS = 2
# Fifty applications share two processors with all nodes: ten transactions a second each.
PAUSE_MS = 100
# No fleet takes so long, however busy the machine is.
SECONDS = 900

# Starts mostly wait, for mirrors: Pacemaker is to call many at once, also on a busy machine.
OWNERS = """
property load-threshold=1000% node-action-limit=32
rsc_template owner ocf:perseas:owner params mirrors=@fleet user=daemon \
op start timeout=120s op stop timeout=60s op monitor interval=30s timeout=60s
""" + "".join("primitive %s @owner params store=%s command=\"/usr/bin/counter /journals/%s %d\"\n" %
              (store, store, store, PAUSE_MS) for store in STORES)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    made = make_fleet(tmp_path_factory.mktemp("nodes"))
    try:
        one = made.nodes[0]
        for store in STORES:
            (made.journals / store).mkdir()
            (made.journals / store).chmod(0o777)
            home = one.run("perseas", "place", "@fleet", "--copies", "3").strip()
            one.run("perseas", "create", store, home, "--log-size", "64K")
        configure_cluster(one, OWNERS)
        await_stores(made, 3)
        yield made
    finally:
        made.close()


# --- what there is to see ---

def last_ack(folder):
    """When the newest acknowledgement of a store was, by its journals; 0 without one."""
    newest = 0
    for path in folder.iterdir():
        with open(path, "rb") as file:
            file.seek(max(0, path.stat().st_size - 256))
            whole = [line.split() for line in file.read().split(b"\n")[1:-1]]
        newest = max([newest, *(int(line[3]) for line in whole if line[:1] == [b"ack"])])
    return newest


def silent(fleet, since):
    """Returns the stores without an acknowledged transaction since then."""
    return [store for store in STORES if last_ack(fleet.journals / store) <= since]


def told_of(fleet):
    """What perseas status --all says of each store."""
    told = fleet.up()[0].run("sh", "-c", "perseas status --all @fleet --json 2>/dev/null",
                             check=False)
    return {each["store"]: each for each in json.loads(told)["stores"]}


def lacking(fleet, copies):
    """The stores that have no owner that can commit, or fewer copies than so many, or bear fewer
    losses than these allow."""
    told = told_of(fleet)
    return [store for store in STORES if store not in told or not told[store]["owner"] or
            not told[store]["can_commit"] or told[store]["mirrors_whole"] < copies or
            told[store]["bears"] < copies - ACKS]


def await_none(fleet, which, what):
    """Until which() returns no store; prints what nodes say if it was in vain."""
    try:
        wait_for(lambda: not which(), SECONDS, what)
    except TimeoutError:
        print(which(), summary(fleet.up()[0]))
        for node in fleet.up():
            print(node.name, node.run("journalctl", "-n", "300", "--no-pager", check=False))
        raise


def await_stores(fleet, copies):
    """Until each store has an owner that is acknowledged from now on, and so many copies."""
    since = now_ns()
    await_none(fleet, lambda: silent(fleet, since), "an owner of each store")
    await_none(fleet, lambda: lacking(fleet, copies), "%d copies of each store" % copies)


def oracles(fleet):
    """Of each store; nothing that was acknowledged is lost, nothing is half applied."""
    found = {store: Oracle(fleet.journals / store) for store in STORES}
    return found, sum(oracle.check() for oracle in found.values())


# --- where the time went ---

def journal(node, since):
    """What Pacemaker's controller said there since then: (ns of CLOCK_MONOTONIC, sentence). Nodes
    have the clock of this host."""
    told = node.run("journalctl", "-o", "json", "--output-fields=MESSAGE", "--no-pager", "-t",
                    "pacemaker-controld")
    lines = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    return [(at, line["MESSAGE"]) for line in lines
            if (at := int(line["__MONOTONIC_TIMESTAMP"]) * 1000) >= since]


Gap = collections.namedtuple("Gap", "seconds store lost called acked")


def gap_of(store, oracle, since, lines):
    """Of a store whose owner's machine died then: the time between the acknowledgements before and
    after, and when Pacemaker missed the machine, called the agent, and the new owner was
    acknowledged, each in seconds after that."""
    acked = [(at, epoch) for at, epoch, *_ in oracle.of("ack")]
    # The old owner can have been told something while its machine's cable was being cut.
    old = max((at, epoch) for at, epoch in acked if at < since)[1]
    before = max(at for at, epoch in acked if epoch == old)
    after = min(at for at, epoch in acked if epoch > old)
    lost = min(at for at, line in lines if re.search(r"state is now lost", line))
    called = max(at for at, line in lines
                 if "Initiating start operation %s_start_0 " % store in line and at < after)
    return Gap((after - before) / 1e9, store, *((at - since) / 1e9 for at in (lost, called, after)))


def print_gaps(fleet, found, moved, since):
    lines = sorted(line for node in fleet.up() for line in journal(node, since))
    gaps = sorted(gap_of(store, found[store], since, lines) for store in moved)
    one = gaps[-1]
    print("%d stores lost their owner; without one, at least %.1f s, half of them up to %.1f s, "
          "the longest, %s, %.1f s: until Pacemaker missed the machine %.1f s, until it called the "
          "agent %.1f s, until the first acknowledgement %.1f s" %
          (len(gaps), gaps[0].seconds, gaps[len(gaps) // 2].seconds, one.store, one.seconds,
           one.lost, one.called - one.lost, one.acked - one.called))
    print("of all others the longest was %.1f s" %
          max(found[store].gap(since) for store in STORES if store not in moved))


def owned_by(fleet, node):
    """The stores whose owner runs there, by what applications were told."""
    return [store for store in STORES
            if Oracle(fleet.journals / store).of("ack")[-1][3].startswith(node.name + "-")]


def dies(fleet, node):
    """Ends a node, its cable first, so that it closes no connection. Returns when that was."""
    since = now_ns()
    fleet.switch.cut(node)
    node.kill()
    return since


def survive(fleet, node):
    """The machine dies, and all stores have two copies on the others; then it is back with nothing,
    and all have three."""
    moved = owned_by(fleet, node)
    assert moved, "%s owns no store" % node.name
    since = dies(fleet, node)
    await_stores(fleet, 2)
    found, acked = oracles(fleet)
    print("\n%s dies; %d stores have an owner and two copies: %d transactions acknowledged so far, "
          "none lost" % (node.name, len(STORES), acked))
    print_gaps(fleet, found, moved, since)
    node.boot()
    back = now_ns()
    await_stores(fleet, 3)
    print("%s is back with nothing; all %d stores bear a loss again after %.1f s, %d transactions "
          "acknowledged so far, none lost" % (node.name, len(STORES), (now_ns() - back) / 1e9,
                                              oracles(fleet)[1]))


# --- the drill ---

def test_owners_are_spread(fleet):
    shares = {node.name: len(owned_by(fleet, node)) for node in fleet.nodes}
    assert min(shares.values()) > 0 and sum(shares.values()) == len(STORES), shares
    print("\nowners: %s" % shares)


def test_what_they_take(fleet):
    """Each monitor is a process of Pacemaker's, so intervals must not be too short where there are
    many; an owner and its `perseas run` have connections to each mirror (--max-connections)."""
    node = fleet.nodes[0]
    found = node.run("ss", "-H", "-t", "-n", "state", "established", "sport = :%d" % PORT)
    print("\na mirror has %d connections for %d stores" % (len(found.splitlines()), len(STORES)))
    store = owned_by(fleet, node)[0]
    for depth in (0, 10):
        before, count = resource.getrusage(resource.RUSAGE_CHILDREN), 20
        for _ in range(count):
            node.run("env", "OCF_ROOT=/usr/lib/ocf", "OCF_RESOURCE_INSTANCE=" + store,
                     "HA_RSCTMP=/run/resource-agents", "HA_logfacility=none",
                     "OCF_RESKEY_store=" + store, "OCF_RESKEY_mirrors=@fleet",
                     "OCF_RESKEY_user=daemon", "OCF_RESKEY_command=true",
                     "OCF_CHECK_LEVEL=%d" % depth,
                     "/usr/lib/ocf/resource.d/perseas/owner", "monitor")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print("a monitor of depth %d takes %.0f ms of a processor" % (depth, used * 1000 / count))


def test_the_machine_of_the_coordinator_dies(fleet):
    """The worst one: Pacemaker chooses another coordinator first."""
    name = re.search(r"Current DC: (node\d)", summary(fleet.nodes[0]))[1]
    survive(fleet, next(node for node in fleet.nodes if node.name == name))


def test_another_machine_dies(fleet):
    """What the first one got copied after its return is what half of the copies are now."""
    survive(fleet, max(fleet.nodes, key=lambda node: len(owned_by(fleet, node))))


def test_all_copies_are_equal(fleet):
    """Byte for byte, at one transaction, while owners go on."""
    for store in STORES:
        fleet.nodes[0].run("perseas", "verify", store, "@fleet")
    print("\n%d stores are the same on three machines" % len(STORES))
