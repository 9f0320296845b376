"""`perseas run` when a mirror of its list is silent: the others decide, and nobody waits longer
than they took."""
import contextlib
import socket
import subprocess

import pytest

from drill import wait_for
from test_run import OWNS, RUNS, run  # noqa: F401

# The others have ten times as long as those that answered took, which a busy machine makes longer.
PATIENT = 500
# The longest timeout possible: a program that waits for it fails.
FOR_EVER = ("--connect-timeout", "600000")
ESTABLISHED = 1     # from linux/tcp_states.h


def wait_holding(runner):
    wait_for(lambda: "holding" in runner.printed(), PATIENT, "an owner")


@contextlib.contextmanager
def black_hole():
    """Returns an address at which the kernel drops every connection attempt, because its queue is
    full."""
    with contextlib.ExitStack() as open_sockets:
        hole = open_sockets.enter_context(socket.socket())
        hole.bind(("127.0.0.1", 0))
        hole.listen(0)
        full = False
        while not full:
            each = open_sockets.enter_context(socket.socket())
            each.setblocking(False)
            each.connect_ex(hole.getsockname())
            # On the loopback a connection that is not established at once never is.
            full = each.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != ESTABLISHED
        yield "tcp://127.0.0.1:%d" % hole.getsockname()[1]


@pytest.mark.parametrize("at", (0, 2))
def test_a_black_hole_holds_up_no_command(at, bank, run):
    """It is the address of a mirror, one of three, that is down."""
    daemons = bank(3)
    daemons.pop().kill9()
    addresses = [each.address for each in daemons]
    with black_hole() as hole:
        addresses.insert(at, hole)
        runner = run("bank", ",".join(addresses), options=FOR_EVER)
        wait_holding(runner)
        runner.wait_said(OWNS)


def test_a_stopped_mirror_holds_up_no_command(bank, run):
    daemons = bank(3)
    daemons[1].stop()
    runner = run("bank", daemons, options=FOR_EVER)
    wait_holding(runner)
    daemons[1].cont()
    runner.wait_said(OWNS)


def test_too_few_that_answer_are_not_enough(bank, run):
    """W is 2 of 3: one mirror alone cannot open the store, and COMMAND starts when a second one
    answers."""
    daemons = bank(3)
    for each in daemons[1:]:
        each.stop()
    runner = run("bank", daemons, options=FOR_EVER)
    with pytest.raises(subprocess.TimeoutExpired):
        runner.process.wait(1)
    assert RUNS not in runner.said()
    daemons[2].kill9()
    daemons[1].cont()
    runner.wait_printed("holding")
