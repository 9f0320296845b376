"""perseas history: shows which transaction changed which bytes, from one mirror's log."""
import pytest

from binding import CREATE, Store
from drill import NO, OK, SECONDS, fill, mirror_list, run_command, wait_even, wait_for
from teller import LOG, tellers  # noqa: F401


def history(daemon, *words, store="s"):
    return run_command("history", store, "--from", daemon.address, *words)


def told(daemon, *words):
    done = history(daemon, *words, "--json")
    assert done.status == OK, done
    return done.json()


def told_meanwhile(daemon, *words):
    """Runs the command until it succeeds, on a store whose log wraps around. What it reads may be
    overwritten before it knows its end; it then says so and shows nothing."""
    def read():
        done = history(daemon, *words, "--json")
        assert done.status in (OK, NO) and (done.out or "changes too fast" in done.err), done
        return done.out and done.json()

    return wait_for(read, SECONDS, "a log that is read")


@pytest.fixture
def daemons(mirrors):
    """Two mirrors of a store with two segments and five transactions."""
    started = mirrors(2)
    with Store("s", mirror_list(started), flags=CREATE) as store:
        store.map("accounts", 4096)
        store.map("other", 4096)
        store.publish()
        store.write("accounts", 100, b"aaaa")
        store.write("accounts", 102, b"BB")
        store.write("other", 0, b"x" * 300)
        store.write("accounts", 101, b"ccc")
        wait_even("s", started)
    return started


def test_every_transaction_is_told_newest_first(daemons):
    """Shows number, epoch, kind, time and ranges of each transaction, and where the history
    ends."""
    transactions = told(daemons[0])["transactions"]
    assert [t["seq"] for t in transactions] == [5, 4, 3, 2, 1]
    assert [t["kind"] for t in transactions] == ["transaction"] * 4 + ["publish"]
    assert {t["epoch"] for t in transactions} == {1}
    times = [t["time_ns"] for t in transactions]
    assert times == sorted(times, reverse=True)
    assert transactions[1]["ranges"] == [{"segment": "other", "offset": 0, "length": 300}]
    assert [r["segment"] for r in transactions[4]["ranges"]] == ["accounts", "other"]
    done = history(daemons[1])
    assert "5 shown, of 5 looked at" in done.out and "the store's first transaction" in done.out
    assert "accounts, offset 101, 3 bytes" in done.out, done


def test_bytes_before_and_after_are_told(daemons):
    """A byte's value after a transaction is the value before the next one, or the present value."""
    transactions = told(daemons[0], "--segment", "accounts", "--bytes")["transactions"]
    shown = [(r["offset"], bytes.fromhex(r["before"]), bytes.fromhex(r["after"]))
             for t in transactions for r in t["ranges"] if "before" in r]
    assert shown == [(101, b"aBB", b"ccc"), (102, b"aa", b"BB"), (100, bytes(4), b"aaaa")]


def test_the_transactions_that_changed_a_byte_are_found(daemons):
    """Byte 101, byte 103, and a byte that no transaction changed."""
    def changed(*words):
        return [t["seq"] for t in told(daemons[0], "--segment", "accounts", *words)["transactions"]]
    assert changed("--offset", "101", "--length", "1") == [5, 2, 1]
    assert changed("--offset", "100", "--length", "2") == [5, 2, 1]
    assert changed("--offset", "103") == [5, 3, 2, 1]
    assert changed("--last", "1") == [5]
    assert changed("--offset", "2000") == [1], "only the publish that made it"
    assert [t["seq"] for t in told(daemons[0], "--seq", "3")["transactions"]] == [3]
    assert history(daemons[0], "--seq", "77").status == NO
    none = history(daemons[0], "--segment", "nothing")
    assert none.status == NO and "has no segment 'nothing'" in none.err, none


def test_history_goes_on_across_owners(daemons):
    """Each transaction has the epoch of the owner that committed it."""
    fill("s", daemons, {"third": b"contents"})
    transactions = told(daemons[0])["transactions"]
    assert [t["seq"] for t in transactions] == [7, 6, 5, 4, 3, 2, 1]
    assert [t["epoch"] for t in transactions] == [2, 2, 1, 1, 1, 1, 1]


def test_history_ends_where_the_log_was_overwritten(mirrors, tellers):  # noqa: F811
    """A small log that has wrapped around, while the owner is idle and while it commits."""
    daemons = mirrors(2)
    runner = tellers.run("s", daemons, "create", LOG)
    runner.advances(2000)
    for words in (["--segment", "ledger"], ["--segment", "ledger", "--bytes"]):
        numbers = []
        # At some positions in the log almost nothing of the past is certain not to be overwritten.
        while len(numbers) <= 3:
            running = told_meanwhile(daemons[0], *words)
            numbers = [t["seq"] for t in running["transactions"]]
            newest = max(numbers, default=0)
            assert numbers == list(range(newest, newest - len(numbers), -1))
            assert "overwritten" in running["ends"]
    runner.page.tell_to_stop()
    assert runner.wait() == (0, "")
    rested = history(daemons[0], "--segment", "ledger", "--bytes", "--json").json()
    assert "overwritten" in rested["ends"]
    if rested["transactions"]:
        assert rested["transactions"][0]["seq"] == runner.page.acked + 1


def test_the_counter_of_a_running_store_goes_up_by_one(mirrors, tellers):  # noqa: F811
    """The first 8 bytes of the ledger are the transaction's number: before and after must differ by
    one, whatever the owner does while they are read."""
    daemons = mirrors(2)
    runner = tellers.run("s", daemons, "create", LOG)
    runner.advances(200)
    seen = 0
    while seen < 10:
        for each in told_meanwhile(daemons[1], "--segment", "ledger", "--length", "8",
                                   "--bytes")["transactions"]:
            found = [(int.from_bytes(bytes.fromhex(r["before"])[:8], "little"),
                      int.from_bytes(bytes.fromhex(r["after"])[:8], "little"))
                     for r in each["ranges"] if r["offset"] == 0 and "before" in r]
            assert each["kind"] != "transaction" or found[-1] == (each["seq"] - 2, each["seq"] - 1)
            seen += each["kind"] == "transaction"
    runner.page.tell_to_stop()
    assert runner.wait() == (0, "")
