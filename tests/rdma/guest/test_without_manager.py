"""An owner whose device makes no more connections, as after its cable was out for a while.

The name has it come last: the device stays so until the machine ends. To make it anew it has to be
deleted first, which waits in the kernel, for ever, for every process that has it open, and the
process of these tests is one."""
import re
import subprocess

import pytest

from drill import status_of
from teller import tellers, until  # noqa: F401
from test_links import books, the_end


def connection_managers():
    """{device: the state of the queue pair by which it makes connections}."""
    said = subprocess.run(["rdma", "resource", "show", "qp", "type", "GSI"],
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    return dict(re.findall(r"link (\S+)/1 .*?state (\S+)", said))


def take_the_cable_out(nodes):
    number = nodes.number(nodes.owner)
    device, port = "rxe" + number, "n" + number

    def run(command):
        subprocess.run(command, shell=True, check=True)

    run("ip link set %s down" % port)
    until(lambda: connection_managers()[device] == "ERR", "a connection manager in error")
    run("ip link set %s up" % port)
    run("ip route add 10.5.0.0/24 dev %s src %s table %d" % (port, nodes.owner, 200 + int(number)))


@pytest.mark.rxe
def test_an_owner_without_a_connection_manager_goes_over_tcp(mirrors, tellers, nodes, perseas):
    """Sessions that break are taken up over tcp, each of them, and status says so."""
    daemons = mirrors(3, "tcp")
    desk = books(tellers, daemons, "acks=2")
    desk.run(50)
    take_the_cable_out(nodes)
    for daemon in daemons:
        daemon.kill9()
        until(lambda: desk.run(1) and desk.figures()["live"] == 2, "the owner's notice of it")
        daemon.mirror.start()
        desk.work_until_live(3)
    shown = status_of("books", daemons)["mirrors"]
    assert [mirror["fabric"] for mirror in shown] == ["tcp"] * 3
    # As the owner tells its mirrors, twice a second.
    until(lambda: perseas("status", "books", mirrors=daemons).out.count("over tcp, since") == 3,
          "the reason in status")
    the_end(tellers, desk, daemons, perseas)
