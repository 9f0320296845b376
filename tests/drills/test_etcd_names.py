"""A list of mirrors under a key of etcd, which changes of the roster keep up to date; with Debian's
etcd on loopback. etcd dies, somebody wrote a newer roster, or something else: the change of the
roster stands, and no newer list is replaced by an older one."""
import os
import subprocess

import pytest

from binding import Store
from drill import (FAILURE, NO, OK, PARTLY, SECONDS, USAGE, at_hosts, die_with_parent, fill,
                   mirror_list, run_command, wait_for)
from test_etcd import etcd  # noqa: F401
from test_run import LIVES, run  # noqa: F401

STOREID = "0123456789abcdef" * 2
PATIENT = dict(connect_timeout_ms=1000 * SECONDS, mirror_timeout_ms=1000 * SECONDS)


class Key:
    """One key of that etcd, as tests set it and look at it."""

    def __init__(self, etcd, key):  # noqa: F811
        self.etcd, self.key = etcd, key

    @property
    def name(self):
        return "etcd://%s/%s" % (self.etcd.client[len("http://"):], self.key)

    def control(self, *words, **more):
        return subprocess.run(["etcdctl", *words], env=self.etcd.environment(), timeout=SECONDS,
                              stdout=subprocess.PIPE, check=True, text=True, **more).stdout

    def get(self):
        return self.control("get", "--print-value-only", self.key).rstrip("\n")

    def put(self, value):
        """Whatever its length: on etcdctl's standard input."""
        self.control("put", self.key, input=value)

    def roster(self):
        """(addresses, version, store)"""
        addresses, version, store = self.get().split(" ")
        assert version.startswith("roster=") and store.startswith("store=")
        return addresses.split(","), int(version[len("roster="):]), store[len("store="):]


@pytest.fixture
def key(etcd, monkeypatch):  # noqa: F811
    """Nothing here is about how long etcd takes on a busy machine."""
    monkeypatch.setenv("PERSEAS_ETCD_TIMEOUT", str(SECONDS))
    return Key(etcd, "perseas/bank")


def roster(*words, mirrors=None):
    return run_command("roster", *words, "--connect-timeout", 1000 * SECONDS, mirrors=mirrors)


def told(done):
    """By the mirrors: addresses and version."""
    now = done.json()["roster"]
    return [each["address"] for each in now["members"]], now["version"]


def test_a_list_under_a_key_follows_the_roster(key, mirrors):
    """It is written, the store is opened by it, and a change that is asked for by that name writes
    the new list. The application need not know."""
    daemons = mirrors(4)
    fill("bank", daemons[:3], {"data": b"contents"}, **PATIENT)
    done = roster("bank", "--publish", key.name, mirrors=daemons[:3])
    assert done.status == OK, done
    addresses, first, store = key.roster()
    assert addresses == [d.address for d in daemons[:3]] and len(store) == 32
    with Store("bank", key.name, **PATIENT) as opened:
        opened.map("data")
        assert opened.read("data", 0, 8) == b"contents"
    done = roster("replace", "bank", key.name, daemons[0].address, daemons[3].address)
    assert done.status == OK and "etcd" not in done.err, done
    addresses, second, again = key.roster()
    assert daemons[3].address in addresses and daemons[0].address not in addresses
    assert second > first and again == store
    assert told(roster("bank", "--json", mirrors=key.name)) == (addresses, second)
    daemons[0].kill9()
    assert run_command("status", "bank", mirrors=key.name).status == OK


def test_with_etcd_dead_the_change_stands(key, mirrors, monkeypatch):
    """A warning says so; what was there is mended when etcd is back. A newer list, and one of
    another store, stay as they are."""
    daemons = mirrors(3)
    fill("bank", daemons[:2], {"data": b"contents"}, **PATIENT)
    assert roster("bank", "--publish", key.name, mirrors=daemons[:2]).status == OK
    before = key.get()
    key.etcd.kill9()
    monkeypatch.setenv("PERSEAS_ETCD_TIMEOUT", "1")
    done = roster("add", "bank", mirror_list(daemons[:2]), daemons[2].address, "--publish",
                  key.name)
    assert done.status == OK and "the roster is changed, and its list in etcd is not" in done.err
    assert "perseas roster bank --publish " + key.name in done.err
    assert len(told(roster("bank", "--json", mirrors=daemons))[0]) == 3
    done = run_command("status", "bank", mirrors=key.name)
    assert done.status == FAILURE and "etcd at " in done.err, done
    monkeypatch.setenv("PERSEAS_ETCD_TIMEOUT", str(SECONDS))
    key.etcd.start()
    wait_for(lambda: key.etcd.control("get", "x"), SECONDS, "an etcd that answers")
    assert key.get() == before
    assert roster("bank", "--publish", key.name, mirrors=daemons).status == OK
    addresses, version, store = key.roster()
    assert len(addresses) == 3

    newer = "m9:7170 roster=%d store=%s" % (version + 1, store)
    key.put(newer)
    assert roster("bank", "--publish", key.name, mirrors=daemons).status == OK
    assert key.get() == newer
    other = "m9:7170 roster=%d store=%s" % (version - 1, STOREID)
    key.put(other)
    done = roster("bank", "--publish", key.name, mirrors=daemons)
    assert done.status == NO and "another store" in done.err and "--yes" in done.err, done
    assert key.get() == other
    assert roster("bank", "--publish", key.name, "--yes", mirrors=daemons).status == OK
    assert key.roster() == (addresses, version, store)


def test_a_list_that_is_behind_leads_to_the_store_by_any_mirror_that_is_left(
        key, mirrors, run):  # noqa: F811
    """The owner changed the roster itself, which writes no list: the key names a mirror that was
    replaced, and is gone. Who reads it now stands by, takes over, and opens the store by that name
    with all its mirrors."""
    daemons = mirrors(4)
    fill("bank", daemons[:3], {"data": b"contents"}, **PATIENT)
    assert roster("bank", "--publish", key.name, mirrors=daemons[:3]).status == OK
    behind = key.get()
    with Store("bank", key.name, **PATIENT) as first:
        first.map("data")
        standbys = [run("bank", key.name)]
        standbys[0].wait_said(LIVES)
        first.replace(daemons[0].address, daemons[3].address)
        daemons[0].kill9()
        standbys.append(run("bank", key.name))
        standbys[1].wait_said(LIVES)
        first.write("data", 0, b"CONTENTS")
    assert key.get() == behind
    wait_for(lambda: any("holding" in each.printed() for each in standbys), SECONDS, "the next one")
    done = run_command("status", "bank", "--json", mirrors=key.name)
    members = sorted(each["address"] for each in done.json()["roster"]["members"])
    assert members == sorted(d.address for d in daemons[1:]), done
    # The key follows when somebody says so, by what it has: one of these does not answer.
    done = roster("bank", "--publish", key.name, mirrors=key.name)
    assert done.status == PARTLY and "refused the connection" in done.err, done
    assert sorted(key.roster()[0]) == members
    assert roster("bank", "--publish", key.name, mirrors=key.name).status == OK


def test_two_that_write_at_the_same_time_leave_the_newer(key, mirrors, tmp_path):
    """Behind a key that ends with a slash stands the store's name."""
    daemons = mirrors(2)
    fill("bank", daemons, {"data": b"contents"}, **PATIENT)
    prefix = Key(key.etcd, "perseas/")
    key.put(mirror_list(daemons) + "\n\n")
    end = tmp_path / "end"
    with subprocess.Popen(["sh", "-c", 'until [ -e "$2" ]; do etcdctl put "$0" "$1"; done', key.key,
                           mirror_list(daemons), end], env=key.etcd.environment(),
                          stdout=subprocess.DEVNULL, preexec_fn=die_with_parent):
        try:
            for _ in range(3):
                done = roster("bank", "--publish", prefix.name, mirrors=daemons)
                assert done.status in (OK, FAILURE), done
                assert done.status == OK or "changed again and again" in done.err, done
        finally:
            # Not by a signal: what etcdctl has begun would be written later.
            end.touch()
    key.put(mirror_list(daemons))
    assert roster("bank", "--publish", prefix.name, mirrors=daemons).status == OK
    assert key.roster()[0] == [d.address for d in daemons]


@pytest.mark.parametrize("value,why", [
    ("", "has no list of mirrors"), ("m1:7170 and more", "something else than a list"),
    ("@bank", "something else than a list"), ("etcd://m1:1/x", "something else than a list"),
    ("\x1b[2J", "something else than a list"), ("m1,", "something else than a list"),
    pytest.param("m1:7170," * 10000, "more than a list of mirrors", id="long"),
    ("m1:7170 roster=x store=" + STOREID, "something else than a list")])
def test_what_is_no_list_is_refused(key, value, why):
    key.put(value or "\n")
    done = run_command("status", "bank", mirrors=key.name)
    assert done.status != OK and why in done.err and "\x1b" not in done.err, done


def test_what_is_missing_is_said(key, monkeypatch, tmp_path):
    for name in ("etcd://", "etcd://h:1", "etcd://h:1/", "etcd://-h:1/x", "etcd://h:1/-x",
                 "etcd://h:1/a b", "etcd:///x"):
        done = run_command("status", "bank", mirrors=name)
        assert done.status == USAGE and "etcd://HOST:PORT/KEY" in done.err, done
    done = run_command("status", "bank", mirrors=key.name)
    assert "has no list of mirrors" in done.err and "roster STORE LIST --publish" in done.err, done
    done = run_command("status", "bank", mirrors=key.name,
                       env=dict(os.environ, PATH=str(tmp_path)))
    assert done.status == FAILURE and "install etcd-client" in done.err, done
    etcdctl = tmp_path / "etcdctl"
    etcdctl.write_text("#!/bin/sh\necho '{\"level\":\"warn\"}' >&2\necho 'Error: no rights' >&2\n"
                       "exit 1\n")
    etcdctl.chmod(0o755)
    done = run_command("status", "bank", mirrors=key.name,
                       env=dict(os.environ, PATH=str(tmp_path)))
    assert done.status == FAILURE and done.err.endswith("etcdctl: no rights\n"), done


def test_a_drain_writes_the_list_of_each_store_that_it_moves(key, mirrors):
    """Behind a key that ends with a slash stands the store's name; another one would have the list
    of whatever store comes last, and is refused."""
    daemons = at_hosts(mirrors, "h1", "h2", "h3", "h4")
    for name in ("bank", "shop"):
        fill(name, daemons[:3], {"data": b"contents"}, **PATIENT)
    words = ("drain", daemons[0].address, mirror_list(daemons), "--connect-timeout",
             1000 * SECONDS, "--wait", 10 * SECONDS, "--publish")
    done = run_command(*words, key.name)
    assert done.status == USAGE and "slash" in done.err, done
    done = run_command(*words, Key(key.etcd, "perseas/").name)
    assert done.status == OK, done
    for name in ("bank", "shop"):
        addresses, version, _ = Key(key.etcd, "perseas/" + name).roster()
        assert sorted(addresses) == sorted(d.address for d in daemons[1:])
        assert told(roster(name, "--json", mirrors=daemons[1:])) == (addresses, version)
