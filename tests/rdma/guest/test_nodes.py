"""The wires between the nodes are wires: what is sent crosses them, and is lost in a cut one."""
import contextlib
import re
import socket
import subprocess
import time

import pytest

from drill import wait_for
from wires import SECONDS

FAILED = 3                              # writer's status
MANY = 1000000
RETRIES = 6                             # 134 ms each
DELAY_MS = 50


def source_of(writer):
    writer.wait_for_text("from ")
    return writer.text.split()[1]


def test_every_node_has_an_active_device_on_a_port_of_its_own(nodes):
    """Nodes as the machine began with them."""
    said = subprocess.run(["rdma", "link"], stdout=subprocess.PIPE, text=True, check=True).stdout
    ports = re.findall(r"state ACTIVE physical_state LINK_UP netdev (n\d+)", said)
    assert ports == ["n" + nodes.number(address) for address in nodes.addresses]


def test_a_client_without_a_source_comes_from_the_last_node(nodes, writer):
    """RDMA, to a node that is not the last."""
    client = writer(nodes.mirrors[0], 1)
    assert source_of(client) == nodes.owner
    assert client.wait() == 0


def test_a_client_can_choose_its_node(nodes, writer):
    """RDMA, from a mirror's node to another's."""
    client = writer(nodes.mirrors[0], 1, source=nodes.mirrors[1])
    assert source_of(client) == nodes.mirrors[1]
    assert client.wait() == 0


@pytest.mark.parametrize("to, source, seen", [(0, None, -1), (0, 1, 1), (-1, None, -1), (1, 1, 1)])
def test_tcp_takes_the_same_ways(nodes, to, source, seen):
    """Connections by TCP: without a source, with one, and from a node to itself."""
    address = nodes.addresses[to]
    bound = (nodes.addresses[source], 0) if source is not None else None
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server((address, 0)))
        stack.enter_context(socket.create_connection(server.getsockname(), SECONDS, bound))
        connection, peer = server.accept()
        connection.close()
    assert peer[0] == nodes.addresses[seen]


def test_what_is_written_crosses_the_wire(nodes, writer):
    """Two hundred writes from the last node to the first: each is a packet there, and
    acknowledgements come back."""
    target = nodes.mirrors[0]
    before = nodes.counters(target), nodes.counters(nodes.owner)
    assert writer(target, 200).wait() == 0
    after = nodes.counters(target), nodes.counters(nodes.owner)
    came, went = after[0][0] - before[0][0], after[1][1] - before[1][1]
    assert came >= 200 and went >= 200
    assert after[0][1] > before[0][1]


@pytest.mark.rxe
def test_a_cut_wire_fails_a_write_and_a_mended_one_carries_the_next(nodes, writer):
    """The target's cable is pulled while a client with few retries writes."""
    target = nodes.mirrors[0]
    client = writer(target, MANY, RETRIES).wait_for_text("wrote ")
    nodes.cut(target)
    assert client.wait() == FAILED
    assert "transport retry counter exceeded" in client.text
    nodes.mend(target)
    assert writer(target, 100).wait() == 0


@pytest.mark.rxe
def test_a_write_waits_for_a_wire_that_is_mended_in_time(nodes, writer):
    """The target's cable is pulled; the client tries again and again, and goes on when it is
    back."""
    target = nodes.mirrors[0]
    client = writer(target, MANY).wait_for_text("wrote ")

    def tries(count):
        goal = nodes.counters(nodes.owner)[1] + count
        wait_for(lambda: nodes.counters(nodes.owner)[1] >= goal, SECONDS, "%d tries" % count)

    nodes.cut(target)
    tries(1)
    written = client.written
    tries(3)
    assert client.written == written
    nodes.mend(target)
    client.advances()


def test_lost_packets_are_sent_again(nodes, writer):
    """One packet in twenty is lost on the way to the target, and on the way back."""
    target = nodes.mirrors[0]
    client = writer(target, MANY).wait_for_text("wrote ")
    nodes.netem(target, "loss", "5%")
    wait_for(lambda: nodes.dropped(target) >= 3, SECONDS, "lost packets")
    client.advances()


@pytest.mark.rxe
def test_a_delay_is_felt_both_ways(nodes, writer):
    """Packets to and from the target take 50 ms each way: twenty writes take 2 s, but for the few
    that are over when the clock starts."""
    target = nodes.mirrors[0]
    nodes.netem(target, "delay", "%dms" % DELAY_MS)
    client = writer(target, 20).wait_for_text("from ")
    start = time.monotonic()
    assert client.wait() == 0
    assert time.monotonic() - start >= 15 * 2 * DELAY_MS / 1000
