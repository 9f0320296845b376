"""perseas snapshot and restore: copies a running store into a file, and creates it again."""
import os
import resource
import shlex
import signal
import subprocess

import pytest

from binding import Store
from drill import (FAILURE, MIB, NO, OK, SECONDS, USAGE, command_line, fill, mirror_list, noise,
                   run_command, status_of, wait_for, wait_ownerless)
from teller import LOG, dice, tellers  # noqa: F401


def take(store, daemon, path, *words):
    return run_command("snapshot", store, "--from", daemon.address, "--to", path, *words)


def transactions(text):
    """Returns the number of transactions that snapshot or restore prints."""
    return int(text.split("transaction ")[1].split()[0].rstrip(",:"))


def taken(store, daemon, path):
    """Takes a snapshot, retrying if the owner is too fast on a busy machine. Returns its
    transaction."""
    def is_taken():
        done = take(store, daemon, path)
        assert done.status == OK or done.status == NO and "changes too fast" in done.err, done
        return done.status == OK and done

    return transactions(wait_for(is_taken, SECONDS, "a snapshot").out)


def books_after(tellers, store, daemons, k):  # noqa: F811
    """Checks that the books of teller.c have exactly the state after k transactions."""
    page = tellers.page()
    page.memory[0:8] = page.memory[8:16] = k.to_bytes(8, "little")
    return tellers.verify(store, daemons, page)


def test_a_running_store_is_copied_as_of_one_transaction(tellers, mirrors, fabric,  # noqa: F811
                                                         tmp_path):
    """Three mirrors and an owner that commits all the time; the log is small and wraps around. Over
    shm the owner is so fast that the log must be larger. W is three, so that each mirror has what
    was acknowledged."""
    daemons, others = mirrors(3, fabric), mirrors(2)
    log = "log=16777216" if fabric == "shm" else "log=1048576"
    runner = tellers.run("s", daemons, "create", log, "acks=3")
    runner.advances(300)
    stood, last = [], 0
    for number in range(6):
        before = runner.page.acked
        stood.append(taken("s", daemons[number % 3], tmp_path / ("f%d" % number)))
        # The books count from the publish on, which was the store's first transaction.
        assert stood[-1] >= last and stood[-1] - 1 <= runner.page.attempted
        assert stood[-1] - 1 >= before
        last = stood[-1]
        runner.advances(50)
    runner.page.tell_to_stop()
    assert runner.wait() == (0, "")
    for number in (0, 5):
        name = "s%d" % number
        done = run_command("restore", tmp_path / ("f%d" % number), name, mirror_list(others))
        assert done.status == OK and "2 of 2 mirrors hold" in done.out, done
        assert books_after(tellers, name, others, stood[number] - 1) == stood[number] - 1


def test_a_snapshot_does_not_disturb_the_owner(tellers, mirrors, tmp_path):  # noqa: F811
    """No reconnects and no fences: the owner's statistics are as before."""
    daemons = mirrors(2)
    desk = tellers.desk()
    desk.open("s", daemons, "create", LOG)
    desk.books()
    desk.run(50)
    for number in range(3):
        taken("s", daemons[0], tmp_path / str(number))
        desk.run(50)
    figures = desk.figures()
    assert figures["reconnects"] == 0 and figures["live"] == 2 and figures["epoch"] == 1
    assert desk.check() == 200


def test_what_a_crash_left_unfinished_is_not_in_a_snapshot(tellers, mirrors, dice,  # noqa: F811
                                                           tmp_path):
    """The owner is killed while it commits; the snapshot is taken before any recovery."""
    daemons, others = mirrors(2), mirrors(1)
    for attempt in range(4):
        name = "s%d" % attempt
        runner = tellers.run(name, daemons, "create", LOG)
        runner.advances(dice.randrange(10, 200))
        runner.kill9()
        wait_ownerless(name, daemons)
        k = taken(name, daemons[attempt % 2], tmp_path / name) - 1
        assert k <= runner.page.attempted
        assert run_command("restore", tmp_path / name, name, mirror_list(others)).status == OK
        assert books_after(tellers, name, others, k) == k


def test_a_snapshot_is_what_it_says(mirrors, tmp_path):
    """Segments larger than a piece, partly zeros; their addresses are restored."""
    daemons, others = mirrors(1), mirrors(1)
    data = noise(3 * MIB) + bytes(2 * MIB) + noise(12345)
    addresses = fill("s", daemons, {"large": data, "small": b"contents" * 2, "empty": bytes(64)})
    done = take("s", daemons[0], tmp_path / "f")
    assert done.status == OK and "3 segments, 5.0 MiB" in done.out, done
    assert (tmp_path / "f").stat().st_size < 5 * MIB, "zeros are left out"
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o600
    check = run_command("snapshot", "--check", tmp_path / "f")
    assert check.status == OK and "is good: store 's' at epoch 1, transaction 4 of " in check.out
    assert run_command("restore", tmp_path / "f", "t", mirror_list(others)).status == OK
    with Store("t", mirror_list(others)) as store:
        for name, expected in (("large", data), ("small", b"contents" * 2), ("empty", bytes(64))):
            assert store.map(name) == addresses[name]
            assert store.read(name, 0, len(expected)) == expected


def test_a_file_that_is_there_is_not_replaced(mirrors, tmp_path):
    """Nor is anything left next to it when the snapshot fails."""
    daemons = mirrors(1)
    fill("s", daemons, {"accounts": b"contents"})
    (tmp_path / "f").write_text("mine")
    done = take("s", daemons[0], tmp_path / "f")
    assert done.status == NO and "not replaced" in done.err, done
    assert (tmp_path / "f").read_text() == "mine"
    assert take("s", daemons[0], tmp_path / "none" / "f").status == FAILURE
    assert take("s", daemons[0], str(tmp_path) + "/").status == USAGE
    assert take("other", daemons[0], tmp_path / "g").status == NO
    daemons[0].kill9()
    assert take("s", daemons[0], tmp_path / "g").status == FAILURE
    assert [each.name for each in tmp_path.iterdir()] == ["f"]


def test_a_full_disk_leaves_no_snapshot(mirrors, tmp_path):
    """RLIMIT_FSIZE stands in for the full disk."""
    daemons = mirrors(1)
    fill("s", daemons, {"accounts": noise(MIB)})

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (MIB // 2, MIB // 2))

    done = run_command("snapshot", "s", "--from", daemons[0].address, "--to", tmp_path / "f",
                       before=limit)
    assert done.status == FAILURE and "nothing is left of it" in done.err, done
    assert list(tmp_path.iterdir()) == []


def has_unnamed_files(folder):
    """Returns False if the file system of the folder does not support O_TMPFILE."""
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY))
    except OSError:
        return False
    return True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.parametrize("words", ["snapshot s --from %s --to %s/f", "recover s %s --to %s"])
def test_a_signal_leaves_no_half_of_a_file(mirrors, tmp_path, number, words):
    """The signal arrives while the disk is slow to write the first of many pieces."""
    daemon, = mirrors(1)
    fill("s", [daemon], {"accounts": noise(8 * MIB)})
    to = tmp_path / "to"
    to.mkdir()
    trace = tmp_path / "trace"
    slow = ("exec strace -D -f -qq -o %s -e trace=write,openat -e inject=write:delay_enter=300000 "
            % trace)
    command = shlex.join(command_line(*(words % (daemon.address, to)).split()))
    process = subprocess.Popen(["sh", "-c", slow + command],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: trace.exists() and ", 0600)" in trace.read_text(), SECONDS, "a new file")
    process.send_signal(number)
    err = process.communicate(timeout=SECONDS)[1]
    if number == signal.SIGKILL:
        assert process.returncode == -number
    else:
        assert process.returncode == FAILURE and "Operation canceled" in err, err
    if number != signal.SIGKILL or has_unnamed_files(to):
        assert os.listdir(to) == []


def test_a_damaged_snapshot_is_refused_by_name_before_anything_is_made(mirrors, tmp_path):
    """One byte flipped at many places; a truncated file; bytes after its end."""
    daemons, others = mirrors(1), mirrors(1)
    fill("s", daemons, {"accounts": noise(5000)})
    taken("s", daemons[0], tmp_path / "f")
    good = (tmp_path / "f").read_bytes()
    bad = tmp_path / "bad"
    damaged = [good[:at] + bytes([good[at] ^ 1]) + good[at + 1:]
               for at in range(0, len(good), 97)]
    damaged += [b"", good[:1], good[:-1], good[:len(good) // 2], good + b"x"]
    for data in damaged:
        bad.write_bytes(data)
        done = run_command("snapshot", "--check", bad)
        assert done.status == NO and "%s cannot be used: " % bad in done.err, done
    done = run_command("restore", bad, "t", mirror_list(others))
    assert done.status == NO and "cannot be used" in done.err, done
    assert run_command("restore", tmp_path / "none", "t", mirror_list(others)).status == FAILURE
    assert not status_of("t", others)["found"]


def test_a_restore_over_a_store_that_is_there_is_refused(mirrors, tmp_path):
    """One of two mirrors has the store; one was killed and may have created it; then one of two is
    down. Nothing changes."""
    daemons = mirrors(2)
    fill("s", daemons, {"accounts": b"contents"})
    taken("s", daemons[0], tmp_path / "f")
    before = status_of("s", daemons)
    done = run_command("restore", tmp_path / "f", "s", mirror_list(daemons))
    assert done.status == NO and "has a store 's' already" in done.err, done
    fill("t", daemons[1:], {"accounts": b"contents"})
    done = run_command("restore", tmp_path / "f", "t", mirror_list(daemons))
    assert done.status == NO and "has a store 't' already" in done.err, done
    assert run_command("create", "v", mirror_list(daemons)).status == OK
    done = run_command("restore", tmp_path / "f", "v", mirror_list(daemons))
    assert done.status == NO and "without any segment" in done.err, done
    assert "killed, delete it with perseas drop" in done.err, done
    assert status_of("s", daemons) == before
    assert not status_of("t", daemons[:1])["found"]
    daemons[1].kill9()
    done = run_command("restore", tmp_path / "f", "u", mirror_list(daemons))
    assert done.status == FAILURE and daemons[1].address in done.err, done
    assert not status_of("u", daemons[:1])["found"]


def test_a_restore_that_fails_half_way_leaves_no_store(mirrors, tmp_path):
    """The mirror has room for the log and the first segment, but not for the second."""
    daemons = mirrors(1)
    small = mirrors(1, options=["--max-memory", "18M"])
    fill("s", daemons, {"first": b"contents" * (MIB // 8), "second": bytes(4 * MIB)})
    taken("s", daemons[0], tmp_path / "f")
    done = run_command("restore", tmp_path / "f", "t", mirror_list(small))
    assert done.status == NO and "was deleted again" in done.err, done
    assert not status_of("t", small)["found"]


def test_a_store_that_changes_too_fast_says_what_to_do(mirrors, tellers,  # noqa: F811
                                                       tmp_path):
    """The smallest log, an owner that commits as fast as it can, and a mirror that answers slowly:
    either the snapshot succeeds, or the message says what to do."""
    daemons = mirrors(1, "shm")
    runner = tellers.run("s", daemons, "create", "log=65536")
    runner.advances(100)
    done = take("s", daemons[0], tmp_path / "f")
    assert done.status in (OK, NO), done
    if done.status == NO:
        assert "--log-size" in done.err and "changes too fast" in done.err, done
        assert list(tmp_path.glob("f")) == []
    runner.page.tell_to_stop()
    assert runner.wait() == (0, "")
    assert taken("s", daemons[0], tmp_path / "g") == runner.page.acked + 1


def test_a_mirror_without_the_store_is_no_source(mirrors, tmp_path):
    """It answers, but does not have the store."""
    daemons = mirrors(2)
    fill("s", daemons[:1], {"accounts": b"contents"})
    done = take("s", daemons[1], tmp_path / "f")
    assert done.status == NO and "no mirror has a store 's'" in done.err, done
