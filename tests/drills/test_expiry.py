"""Certificates and revocation lists that expire: what daemons, owners, status and doctor report
before and after. Only two drills wait, for some seconds, until one expires."""
import os
import signal

import pytest

from drill import OK, SECONDS, wait_for
from teller import LOG, dice, tellers, until  # noqa: F401
from test_doctor import checks
from watching import Watch, options as watched

DAY = 86400
EXPIRES, VALID_FROM = ("perseas_tls_expires_timestamp_seconds",
                       "perseas_tls_valid_from_timestamp_seconds")
NAMES = "DNS:aging,IP:127.0.0.1"


@pytest.fixture
def aging(authority):
    """Issues a mirror's certificate with that remaining time, out of 100 days."""
    def issue(left):
        authority.issue_valid("aging", NAMES, left - 100 * DAY, left + 1800)
        return authority.options("aging")
    return issue


def told(daemon, *words):
    """Returns the lines of the daemon's log about expiry."""
    return [line for line in daemon.log().splitlines()
            if " expire" in line and all(word in line for word in words)]


def read(watch, metric):
    """Returns a metric of the mirror's certificate."""
    return watch.metrics()[metric][("kind", "certificate"), ("name", "aging")]


def reload(daemon):
    """Sends SIGHUP, and waits until the files are in use."""
    marks = daemon.log().count("new connections use the TLS files")
    os.kill(daemon.pid, signal.SIGHUP)
    wait_for(lambda: daemon.log().count("new connections use the TLS files") > marks, SECONDS,
             "files that were read again")


def test_a_daemon_warns_at_its_start_and_at_a_reload(mirrors, aging, tmp_path):
    """10 days are left, then 1, then none, and then the certificate is renewed. The metric
    follows."""
    daemon, = mirrors(1, "tls", (*aging(10 * DAY), *watched(tmp_path)))
    watch = Watch(tmp_path)
    assert len(told(daemon, "warning: the certificate aging expires on", "in 10 days")) == 1
    first = read(watch, EXPIRES)
    assert first - read(watch, VALID_FROM) == 100 * DAY + 1800
    aging(DAY)
    reload(daemon)
    assert len(told(daemon, "warning: the certificate aging", "in 24 hours")) == 1
    aging(-DAY)
    reload(daemon)
    assert len(told(daemon, "error: the certificate aging expired on", "ago")) == 1
    count = len(told(daemon))
    aging(90 * DAY)
    reload(daemon)
    assert len(told(daemon)) == count
    assert read(watch, EXPIRES) > first + 79 * DAY


def test_a_daemon_that_is_left_alone_says_that_its_certificate_has_expired(mirrors, authority):
    """The certificate is valid for some more seconds. Nobody connects, and nothing is reloaded."""
    authority.issue_valid("aging", NAMES, -72, 8)
    daemon, = mirrors(1, "tls", authority.options("aging"))
    wait_for(lambda: told(daemon, "error: the certificate aging expired on"), SECONDS,
             "a word of the daemon's own")


def test_a_list_is_warned_of(mirrors, authority, perseas, monkeypatch):
    """The daemon's list, and the command's. Both are in use and still work."""
    crl = authority.revoke(seconds=3)
    monkeypatch.setenv("PERSEAS_TLS_CRL", str(crl))
    daemon, = mirrors(1, "tls", ("--tls-crl", str(crl)))
    wait_for(lambda: told(daemon, "error: the revocation list of", "newest list"), SECONDS,
             "a word of the list")
    found = checks(perseas("doctor", daemon.mirror.unix, "--json"))
    assert found["certificates"]["result"] == "fail"
    assert "revocation list of" in found["certificates"]["found"]
    assert "revocation list of" in found["mirror " + daemon.mirror.unix]["found"]
    # TLS's alert does not distinguish a list from a certificate.
    monkeypatch.delenv("PERSEAS_TLS_CRL")
    refused = checks(perseas("doctor", daemon.address, "--json"))["mirror " + daemon.address]
    assert "or the revocation list at the other end" in refused["found"]
    assert "PerseasHandshakesFail" in refused["advice"]


def test_the_owner_and_the_command_say_what_of_a_mirror_expires(mirrors, aging, tellers, perseas):
    """After the owner connected, one of two daemons loads a certificate with 10 days left. The
    owner's event names that mirror although the handshake showed another certificate."""
    old, = mirrors(1, "tls", aging(90 * DAY))
    good, = mirrors(1, "tls")
    desk = tellers.desk()
    desk.open("books", [old, good], "create", LOG)
    aging(10 * DAY)
    reload(old)
    until(lambda: ("expires", old.address) in desk.events(), "the event")
    assert ("expires", good.address) not in desk.events()
    done = perseas("status", "books", mirrors=[old, good])
    assert done.status == OK
    assert "in 10 days (mirror %s)" % old.address in done.out and "PerseasCert" in done.out
    first = perseas("status", "books", "--json", mirrors=[old]).json()["tls_expires"]
    assert first["mirror"] == old.address and first["stage"] == "near"
    assert first["kind"] == "certificate" and first["name"] == "aging"
    aging(90 * DAY)
    reload(old)
    # The CA of the drills is valid for one day, most of which is left for all certificates here.
    first = perseas("status", "books", "--json", mirrors=[old, good]).json()["tls_expires"]
    assert first["stage"] == "far" and first["kind"] in ("certificate", "ca")


def test_doctor_tells_of_its_own_files_and_of_a_daemon_that_nobody_can_reach(
        mirrors, aging, perseas, authority):
    """The daemon's certificate has expired: TCP connections are refused, and its Unix socket
    reports it."""
    daemon, = mirrors(1, "tls", aging(-DAY))
    authority.issue_valid("late", None, -10 * DAY, DAY)
    found = checks(perseas("doctor", daemon.mirror.unix, *authority.options("late"), "--json"))
    mirror, own = found["mirror " + daemon.mirror.unix], found["certificates"]
    assert mirror["result"] == "fail" and "the certificate aging expired on" in mirror["found"]
    assert own["result"] == "warning" and "the certificate late expires on" in own["found"]
    assert "PerseasCertificateExpires" in mirror["advice"] and own["advice"]
    found = checks(perseas("doctor", daemon.address, "--json"))
    assert "expired" in found["mirror " + daemon.address]["found"]
