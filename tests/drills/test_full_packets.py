"""Full-size packets to one mirror are lost, and small ones arrive: the path's MTU is smaller than
both hosts believe, and no ICMP message tells them."""
import pytest

from binding import CREATE, Store
from cluster import Cluster, Mirror
from drill import BUILD, SECONDS, Daemon, mirror_list, run_command, wait_for
from netns import network  # noqa: F401

NAMES = ("m0", "m1", "m2")


def make_hole(net, name):
    """Drops packets of more than 1000 bytes to the node, which announces 1460."""
    node = net[name]
    node.ip("route change default via 10.77.%d.1 advmss 1460" % node.number,
            "link set eth0 mtu 1000")


def close_hole(net, name):
    net[name].ip("link set eth0 mtu 1500")


@pytest.fixture
def daemons(network):  # noqa: F811
    """Returns (the network, its mirrors)."""
    net = network("owner", *NAMES)
    # A packet of several segments is larger than the link's MTU, and arrives nevertheless.
    net["owner"].ip("link set eth0 gso_max_segs 1")
    net.router.ip(*("link set to%d gso_max_segs 1" % node.number for node in net.nodes.values()))
    with Cluster(BUILD, 0) as cluster:
        for index, name in enumerate(NAMES):
            mirror = Mirror(cluster.build / "perseasd", cluster.folder, index, [],
                            net[name].address)
            cluster.mirrors.append(mirror)
            with net[name].inside():
                mirror.start()
        yield net, [Daemon(mirror, "tcp") for mirror in cluster.mirrors]


def trouble(daemons):
    """Returns the owner's trouble with the first mirror."""
    told = run_command("status", "s", "--json", mirrors=daemons).json().get("owner") or {}
    return next((mirror["trouble"] or "" for mirror in told.get("mirrors", ())
                 if mirror["address"] == daemons[0].address), "")


def test_status_says_that_full_packets_are_lost(daemons):
    """Commits continue with two mirrors. When the hole is closed, the third one reconnects."""
    net, mirrors = daemons
    with net["owner"].inside(), \
            Store("s", mirror_list(mirrors), flags=CREATE) as store:
        store.map("a", 1 << 16)
        store.publish()
        store.write("a", 0, b"before")
        wait_for(lambda: store.stat().live == 3, SECONDS, "live mirrors")
        make_hole(net, "m0")
        wait_for(lambda: store.write("a", 0, b"x" * 8000) or
                 "compare the MTU of both hosts" in trouble(mirrors), SECONDS, "a trouble")
        close_hole(net, "m0")
        wait_for(lambda: store.write("a", 0, b"x" * 8000) or
                 (store.stat().live == 3 and not trouble(mirrors)), SECONDS, "the end of it")
        assert store.stat().resyncs == 0
