"""A store over a slow link works like any other, and takes only as long as its bytes."""
import json
import subprocess

import pytest

from cluster import Cluster, Mirror
from drill import BUILD, Daemon
from netns import network  # noqa: F401
from teller import LOG, tellers  # noqa: F401
from test_demand import large  # noqa: F401

pytestmark = pytest.mark.night("bytes take ten seconds over a slow link")

CONNECT = "connect-ms=1000"
SLOW = 300                              # KB/s, which the kernel never exceeds
MIB = 3                                 # takes ten times as long as CONNECT


def tc(node, *words):
    """Returns tc's output for the node's end of its link."""
    with node.inside():
        return subprocess.run(["tc", *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def shape(node, rate):
    """Limits what the node sends to `rate` KB/s from now on."""
    tc(node, "qdisc", "replace", "dev", "eth0", "root", "tbf", "rate", "%dkbps" % rate, "burst",
       "16kb", "latency", "100ms")


def unshape(node):
    """Ends the limit. Returns how many bytes were sent under it."""
    shaped, = json.loads(tc(node, "-s", "-j", "qdisc", "show", "dev", "eth0"))
    tc(node, "qdisc", "del", "dev", "eth0", "root")
    assert shaped["kind"] == "tbf"
    return shaped["bytes"]


@pytest.fixture
def places(network, large):  # noqa: F811
    """The nodes of an owner and its mirror, and a function that starts an owner there."""
    net = network("mirror", "owner")
    with Cluster(BUILD, 0) as cluster:
        mirror = Mirror(cluster.build / "perseasd", cluster.folder, 0, [], net["mirror"].address)
        cluster.mirrors.append(mirror)
        with net["mirror"].inside():
            mirror.start()

        def start(*options):
            with net["owner"].inside():
                return large([Daemon(mirror, "tcp")], CONNECT, *options)

        yield net, start


def test_a_store_is_read_over_a_slow_link(places):
    """In one piece, as an owner without recovery on demand reads it."""
    net, start = places
    start("create", LOG, "mib=%d" % MIB, "transactions=1").ends()
    shape(net["mirror"], SLOW)
    start("takeover", "transactions=1", "check").ends()
    assert unshape(net["mirror"]) > MIB << 20


def test_a_store_is_written_over_a_slow_link(places):
    """The first owner writes the segment; another one finds all of it."""
    net, start = places
    shape(net["owner"], SLOW)
    start("create", LOG, "mib=%d" % MIB, "transactions=1").ends()
    assert unshape(net["owner"]) > MIB << 20
    start("takeover", "transactions=1", "check").ends()
