"""`perseas run` when COMMAND or run itself ends: what is restarted, what counts as a failure, and
what must not survive."""
import os
import pathlib
import signal
import sys

from binding import TAKEOVER, Store
from drill import HERE, SECONDS, mirror_list, status_of, wait_for
from test_run import APPLICATION, LISTENER, LIVES, OWNS, run  # noqa: F401


def holder(status):
    """Returns a COMMAND that owns the store and ends with this status at SIGTERM."""
    return (sys.executable, "-uc", """
import os, signal, sys
sys.path.insert(0, %r)
from binding import Store
signal.signal(signal.SIGTERM, lambda *_: os._exit(%d))
with Store(os.environ["PERSEAS_STORE"], os.environ["PERSEAS_MIRRORS"]):
    print("holding")
    while True:
        signal.pause()
""" % (str(HERE), status))


def test_a_command_that_was_fenced_is_ended(bank, run):
    """It ignores SIGTERM and is killed. That is not a failure of COMMAND: run stands by and starts
    it again when the store is free."""
    daemons = bank(3)
    stubborn = ("sh", "-c", 'trap "" TERM; %s' % APPLICATION[2])
    runner = run("bank", daemons, stubborn, ("--stop-after", "0.3", "--restarts", "0"))
    runner.wait_printed("holding")
    runner.wait_said(OWNS)
    before = runner.command()
    with Store("bank", mirror_list(daemons), flags=TAKEOVER):
        runner.wait_said("COMMAND was fenced, and is ended: its owner lives")
        runner.wait_said(LIVES)
        assert not pathlib.Path("/proc/%d" % before).exists()
    runner.wait_printed("holding", 2)


def test_a_fenced_command_that_ends_well_is_started_again(bank, run):
    """It ends with 0 at SIGTERM, as most programs do."""
    daemons = bank(3)
    runner = run("bank", daemons, holder(0), ("--restarts", "0"))
    runner.wait_printed("holding")
    runner.wait_said(OWNS)
    with Store("bank", mirror_list(daemons), flags=TAKEOVER):
        runner.wait_said("COMMAND was fenced, and is ended: its owner lives")
        runner.wait_said(LIVES)
    runner.wait_printed("holding", 2)


def wait_state(pid, state):
    """Waits until the process is in a state of /proc/PID/stat: T is stopped, Z has ended."""
    wait_for(lambda: pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(")")[1].split()[0] ==
             state, SECONDS, "a process in state %s" % state)


def lose_unseen(bank, run, status):
    """Returns a run that hung while another owner opened the store and closed it, and while COMMAND
    ended with this status."""
    daemons = bank(3)
    runner = run("bank", daemons, holder(status), ("--restarts", "0"))
    runner.wait_printed("holding")
    runner.wait_said(OWNS)
    command = runner.command()
    runner.signal(signal.SIGSTOP)
    wait_state(runner.process.pid, "T")
    with Store("bank", mirror_list(daemons), flags=TAKEOVER):
        pass
    os.kill(command, signal.SIGTERM)
    wait_state(command, "Z")
    runner.signal(signal.SIGCONT)
    return runner


def test_a_command_that_was_fenced_by_an_owner_that_has_ended_has_not_failed(bank, run):
    """Nobody owns the store when run looks, and it is COMMAND's turn again."""
    runner = lose_unseen(bank, run, 7)
    wait_for(lambda: len(runner.printed()) == 2 or runner.process.poll() is not None, SECONDS,
             "a second start or an end")
    assert runner.printed() == ["holding"] * 2
    assert ("COMMAND ended with status 7 after another owner had the store: it has no owner" in
            runner.said())


def test_a_fenced_command_that_calls_itself_done_is_done(bank, run):
    """The status is COMMAND's, and run says who has the store."""
    runner = lose_unseen(bank, run, 0)
    assert runner.ended() == 0
    assert runner.said().endswith("COMMAND ended with status 0 after another owner had the store, "
                                  "and is not started again: it has no owner\n")


def test_a_command_that_lost_the_store_has_not_failed(bank, run):
    """It ends with an error, once while another owner has the store and once while nobody does."""
    daemons = bank(3)
    runner = run("bank", daemons, LISTENER, ("--restarts", "0"))
    runner.wait_printed("ready")
    with Store("bank", mirror_list(daemons)):
        os.kill(runner.command(), signal.SIGTERM)
        runner.wait_said(LIVES)
    runner.wait_printed("ready", 2)
    os.kill(runner.command(), signal.SIGTERM)
    assert runner.ended() == 7
    assert "COMMAND ended with status 7, and is not restarted" in runner.said()


def test_a_command_that_fails_is_restarted_after_longer_and_longer(bank, run, tmp_path):
    """Uses the times at which it started, by a monotonic clock."""
    daemons = bank(1)
    begins = (sys.executable, "-c", "import sys, time; print(time.monotonic()); sys.exit(3)")
    runner = run("bank", daemons, begins, ("--restarts", "3"))
    assert runner.ended() == 3
    times = [float(line) for line in runner.printed()]
    assert len(times) == 4
    gaps = [after - before for before, after in zip(times, times[1:])]
    assert gaps[0] >= 0.1 and gaps[1] >= 0.2 and gaps[2] >= 0.4


# A child of COMMAND owns the store after COMMAND's end, until it is told to end, too.
LEAVING = (sys.executable, "-uc", """
import os, sys
sys.path.insert(0, %r)
from binding import Store
told, tell = os.pipe()
if os.fork():
    os.close(tell)
    os.read(told, 1)
    print("ends")
    os._exit(9)
store = Store(os.environ["PERSEAS_STORE"], os.environ["PERSEAS_MIRRORS"])
os.write(tell, b"1")
os.read(0, 1)
os._exit(0)
""" % str(HERE))


def test_what_a_command_left_does_not_make_its_failures_good(bank, run):
    """No other owner came."""
    daemons = bank(1)
    runner = run("bank", daemons, LEAVING, ("--restarts", "2"))
    for times in (1, 2):
        runner.wait_printed("ends", times)
        runner.wait_said(LIVES, times)
        os.write(runner.process.stdin.fileno(), b"1")
    assert runner.ended() == 9
    runner.process.stdin.close()
    assert runner.printed() == ["ends"] * 3


def test_a_command_does_not_outlive_its_run(bank, run):
    """A supervisor may kill run and start another one: the store must be free then."""
    daemons = bank(3)
    runner = run("bank", daemons)
    runner.wait_said(OWNS)
    runner.process.kill()
    wait_for(lambda: not status_of("bank", daemons)["live"], SECONDS, "the end of COMMAND")


def test_processes_that_others_left_are_no_command(bank, run):
    """As the first process of a container, here as a subreaper: run reaps them, and does not take
    their end for COMMAND's."""
    daemons = bank(1)
    runner = run("bank", daemons, (
        "sh", "-c", "(sh -c 'echo $$; read line' <&0 &) ; exec \"$@\"", "sh", *LISTENER),
        subreaper=True)
    runner.wait_printed("ready")
    wait_for(lambda: len(runner.printed()) == 2, SECONDS, "the number of the process that is left")
    left, = (int(line) for line in runner.printed() if line != "ready")
    runner.process.stdin.close()
    wait_for(lambda: not pathlib.Path("/proc/%d" % left).exists(), SECONDS, "an end that is taken")
    assert runner.process.poll() is None
    runner.signal(signal.SIGTERM)
    assert runner.ended() == 7
