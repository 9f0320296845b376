"""Mirrors that accept only TLS: who may connect, and what the others are told."""
import os
import signal
import socket
import ssl
import subprocess
import time

import pytest

import wire
from authority import dial
from certificates import Authority
from binding import PerseasError, Store
from drill import BUILD, CREATE, FAILURE, OK, SECONDS, TOP, USAGE, fill, wait_for
from teller import LOG, dice, tellers, until  # noqa: F401
from watching import Watch, options as watched

LOG_EVERY = 10                          # seconds between two lines about frequent events


@pytest.fixture
def other(tmp_path):
    """A CA that no mirror trusts, with a certificate for an owner."""
    other = Authority(tmp_path / "other")
    other.issue("owner")
    other.issue("mirror", "IP:127.0.0.1")
    return other


def log_of(daemon, text):
    wait_for(lambda: text in daemon.log(), SECONDS, "'%s' in the log" % text)


def open_error(daemon):
    """Returns the error of perseas_open."""
    with pytest.raises(PerseasError) as caught:
        Store("books", daemon.address, flags=CREATE)
    return caught.value


# --- certificates ---

@pytest.mark.needs("localhost")
def test_an_owner_is_known_by_its_certificate(mirrors, perseas):
    """Its whole session uses TLS, including the data connection."""
    daemon, = mirrors(1, "tls", ("--log-level", "debug"))
    fill("books", [daemon], {"a": b"contents" * 1000})
    assert "belongs to cert:owner" in daemon.log()
    assert "with TLS" in daemon.log()
    told = perseas("status", "books", mirrors=[daemon])
    assert told.status == OK and "books" in told.out
    with Store("books", "localhost:%d" % daemon.mirror.port) as store:
        store.map("a")
        assert store.read("a", 8000 - 8, 8) == b"contents"


@pytest.mark.parametrize("kind, told, logged", [
    ("unknown CA", "it does not know its CA", "unable to get local issuer certificate"),
    ("expired", "expired", "certificate has expired"),
    ("revoked", "revoked", "certificate revoked"),
    ("for mirrors", "not for this use", "unsuitable certificate purpose"),
])
def test_an_owner_with_a_wrong_certificate_is_told_what_to_do(
        mirrors, perseas, monkeypatch, authority, other, kind, told, logged):
    """The library and the command tell the owner, and the mirror's log says whom it refused."""
    options = ()
    if kind == "expired":
        authority.issue("late", days=-1)
    elif kind == "for mirrors":
        authority.issue("late", use="serverAuth")
    elif kind == "revoked":
        authority.issue("late")
        options = ("--tls-crl", str(authority.revoke("late")))
    daemon, = mirrors(1, "tls", options)
    if kind == "revoked":
        fill("books", [daemon], {"a": b"contents"})
    chosen = other.environment("owner") if kind == "unknown CA" else authority.environment("late")
    for name, value in chosen.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PERSEAS_TLS_CA", str(authority.ca))
    error = open_error(daemon)
    assert error.name == "PERSEAS_ETLS"
    assert "%s: it refuses the certificate of this end (%s" % (daemon.address, told) in str(error)
    done = perseas("ls", mirrors=[daemon])
    assert done.status == FAILURE and told in done.err
    assert done.out == "%s: TLS failed\n" % daemon.address
    log_of(daemon, "refused: its certificate is refused (%s" % logged)


@pytest.mark.parametrize("kind, told, logged", [
    ("unknown CA", "unable to get local issuer certificate", "it does not know its CA"),
    ("expired", "certificate has expired", "expired"),
    ("other host", "IP address mismatch", "bad"),
    pytest.param("other name", "ostname mismatch", "bad", marks=pytest.mark.needs("localhost")),
    ("for owners", "purpose", "not for this use"),
    ("revoked", "certificate revoked", "revoked"),
])
def test_a_mirror_with_a_wrong_certificate_is_not_believed(
        mirrors, perseas, monkeypatch, authority, other, kind, told, logged):
    """It cannot impersonate the mirror that the client dialed."""
    issuer, name = (other, "mirror") if kind == "unknown CA" else (authority, "wrong")
    if kind == "expired":
        authority.issue("wrong", "IP:127.0.0.1", days=-1)
    elif kind == "other host":
        authority.issue("wrong", "IP:127.0.0.2")
    elif kind == "for owners":
        authority.issue("wrong", "IP:127.0.0.1", use="clientAuth")
    elif kind == "other name":
        authority.issue("wrong", "DNS:elsewhere,IP:127.0.0.1")
    elif kind == "revoked":
        authority.issue("wrong", "IP:127.0.0.1")
        monkeypatch.setenv("PERSEAS_TLS_CRL", str(authority.revoke("wrong")))
    daemon, = mirrors(1, "tls", issuer.options(name)[:4])
    address = daemon.address.replace("127.0.0.1", "localhost") if kind == "other name" else \
        daemon.address
    done = perseas("ls", mirrors=address)
    assert done.status == FAILURE
    assert "%s: its certificate is refused" % address in done.err and told in done.err
    log_of(daemon, "it refuses the certificate of this end (%s" % logged)


def test_no_certificate_is_not_enough(mirrors, authority):
    """Another client trusts the CA but presents no certificate."""
    daemon, = mirrors(1, "tls")
    context = ssl.create_default_context(cafile=authority.ca)
    with socket.create_connection(("127.0.0.1", daemon.mirror.port), SECONDS) as plain:
        with context.wrap_socket(plain, server_hostname="127.0.0.1") as peer:
            with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"):
                peer.recv(1)
    log_of(daemon, "it shows no certificate")


def test_tls_before_1_3_is_refused(mirrors, authority):
    daemon, = mirrors(1, "tls")
    context = ssl.create_default_context(cafile=authority.ca)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(authority.cert("owner"), authority.key("owner"))
    with socket.create_connection(("127.0.0.1", daemon.mirror.port), SECONDS) as plain:
        with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION"):
            context.wrap_socket(plain, server_hostname="127.0.0.1")


def test_the_token_of_another_identity_opens_no_data_connection(mirrors, authority):
    """A client with a stolen token cannot use it with its own certificate."""
    authority.issue("thief")
    daemon, = mirrors(1, "tls")
    fill("books", [daemon], {"a": b"contents"})

    with dial(daemon.address, authority.environment("owner")) as control:
        token = wire.Control(control).claim("books", 1000)
        for name, status in (("thief", wire.OTHER_IDENTITY), ("owner", wire.OK)):
            with dial(daemon.address, authority.environment(name)) as data:
                data.sendall(wire.data_hello(token))
                assert wire.answer(wire.receive(data, 16))[1] == status
    log_of(daemon, "(cert:thief) has the token of")


def test_the_ca_of_the_security_document_is_good_for_both_ends(tmp_path, mirrors, perseas):
    """Runs the document's commands unchanged except for the address."""
    text = (TOP / "SECURITY.md").read_text().split("A small CA")[1]
    script = "\n".join(line[4:] for line in text.split("\n") if line.startswith("    "))
    subprocess.run(["bash", "-ec", script.replace("192.0.2.1", "127.0.0.1")], cwd=tmp_path,
                   check=True, timeout=SECONDS, stderr=subprocess.DEVNULL)
    files = {name: str(tmp_path / name) for name in ("ca.pem", "node1.pem", "node1.key",
                                                     "bank.pem", "bank.key")}
    daemon, = mirrors(1, "tcp", ("--tls-cert", files["node1.pem"], "--tls-key", files["node1.key"],
                                 "--tls-ca", files["ca.pem"]))
    owner = ("--tls-key", files["bank.key"], "--tls-ca", files["ca.pem"])
    done = perseas("create", "books", "--tls-cert", files["bank.pem"], *owner, mirrors=[daemon])
    assert done.status == OK, done


# --- one end without TLS ---

def test_an_owner_without_certificates_is_told_that_it_needs_some(mirrors, perseas, monkeypatch):
    daemon, = mirrors(1, "tls")
    for name in ("PERSEAS_TLS_CERT", "PERSEAS_TLS_KEY", "PERSEAS_TLS_CA"):
        monkeypatch.delenv(name)
    error = open_error(daemon)
    assert error.name == "PERSEAS_ETLS" and "takes TLS connections only" in str(error)
    done = perseas("ls", mirrors=[daemon])
    assert done.status == FAILURE and "--tls-cert" in done.err
    log_of(daemon, "refused: it does not speak TLS 1.3")


def test_what_is_wrong_with_each_of_several_mirrors_is_told_to_its_end(mirrors, perseas,
                                                                       monkeypatch):
    """With three mirrors every message is complete; with nine each ends at a word."""
    daemons = mirrors(9, "tls")
    for name in ("CERT", "KEY", "CA"):
        monkeypatch.delenv("PERSEAS_TLS_" + name)
    done = perseas("recover", "s", mirrors=daemons[:3])
    assert done.err.count("PERSEAS_TLS_KEY, PERSEAS_TLS_CA)") == 3, done
    done = perseas("recover", "s", mirrors=daemons)
    assert all(daemon.address in done.err for daemon in daemons), done


def test_a_mirror_without_tls_is_not_spoken_to_in_plain_text(mirrors, perseas, authority,
                                                             monkeypatch):
    daemon, = mirrors(1)
    done = perseas("ls", *authority.options("owner"), mirrors=[daemon])
    assert done.status == FAILURE and "does not speak TLS 1.3" in done.err
    for name, value in authority.environment("owner").items():
        monkeypatch.setenv(name, value)
    assert open_error(daemon).name == "PERSEAS_ETLS"
    log_of(daemon, "wants TLS, and this daemon was started without")
    # On the same host memory is shared, over a socket that the system protects.
    assert perseas("ls", mirrors=daemon.mirror.unix).status == OK


def test_some_of_the_certificates_files_are_not_enough(perseas, authority, tmp_path):
    """The command refuses before it connects to a mirror."""
    done = perseas("ls", *authority.options("owner")[:4], mirrors="127.0.0.1:1")
    assert done.status == FAILURE and "tls_ca is missing" in done.err
    done = perseas("ls", "--tls-key", tmp_path / "none", "--tls-cert", authority.cert("owner"),
                   "--tls-ca", authority.ca, mirrors="127.0.0.1:1")
    assert done.status == FAILURE and "%s/none cannot be used" % tmp_path in done.err
    assert perseas("ls", "--tls-ca", "", mirrors="127.0.0.1:1").status == USAGE


@pytest.mark.parametrize("options, told", [
    (("--listen", "0.0.0.0:0"), "--plaintext anywhere"),
    (("--listen", "[::]:0"), "--tls-cert, --tls-key and --tls-ca"),
    (("--tls-cert", "x"), "--tls-key is missing"),
    (("--tls-crl", "x"), "--tls-cert is missing"),
    (("--tls-cert", "x", "--tls-key", "x", "--tls-ca", "x"), "x cannot be used: No such file"),
    (("--tls-cert", "x", "--tls-key", "x", "--tls-ca", "x", "--plaintext", "anywhere"),
     "there is no plain text"),
    (("--plaintext", "everywhere"), "must be loopback or anywhere"),
])
def test_a_daemon_that_is_set_up_wrongly_does_not_start(tmp_path, options, told):
    done = subprocess.run([BUILD / "perseasd", "--memory-dir", tmp_path / "memory",
                           "--unsafe-memory-on-disk", "on", *options],
                          cwd=tmp_path, stderr=subprocess.PIPE, text=True, timeout=SECONDS)
    assert done.returncode != 0 and told in done.stderr


# --- while it runs ---

def test_files_are_read_again_while_an_owner_commits(mirrors, tellers, perseas, tmp_path, authority,
                                                     other):
    """SIGHUP with a damaged file, and then with another CA: the existing session continues, and
    only later connections use the new files."""
    authority.issue("moving", "IP:127.0.0.1")
    files = {"cert": authority.cert("moving"), "key": authority.key("moving"),
             "ca": tmp_path / "ca.pem"}
    files["ca"].write_bytes(authority.ca.read_bytes())
    daemon, = mirrors(1, "tls", ("--tls-cert", str(files["cert"]), "--tls-key", str(files["key"]),
                                 "--tls-ca", str(files["ca"])))
    owner = tellers.run("books", [daemon], "create", LOG)
    owner.advances(50)
    files["ca"].write_text("nothing\n")
    os.kill(daemon.pid, signal.SIGHUP)
    log_of(daemon, "the TLS files from before stay in use")
    assert "the CA file %s cannot be used" % files["ca"] in daemon.log()
    assert perseas("ls", mirrors=[daemon]).status == OK
    owner.advances(50)
    files["ca"].write_bytes(other.ca.read_bytes())
    os.kill(daemon.pid, signal.SIGHUP)
    log_of(daemon, "new connections use the TLS files")
    assert "it does not know its CA" in perseas("ls", mirrors=[daemon]).err
    done = perseas("ls", *other.options("owner")[:4], mirrors=[daemon])
    assert done.status == OK, done
    owner.advances(50)


def test_an_owner_comes_back_with_a_certificate_that_was_renewed(mirrors, tellers, tmp_path, dice,
                                                                 monkeypatch, authority):
    """The owner commits; its certificate is replaced and the old one revoked, and the mirror is
    restarted. The owner reconnects with the new certificate without reopening the store."""
    authority.issue("rolling")
    crl = tmp_path / "list.crl"
    crl.write_bytes(authority.revoke().read_bytes())
    daemon, = mirrors(1, "tls", ("--tls-crl", str(crl)))
    for name, value in authority.environment("rolling").items():
        monkeypatch.setenv(name, value)
    desk = tellers.desk()
    desk.open("books", [daemon], "create", LOG)
    desk.books()
    desk.run(50)
    crl.write_bytes(authority.revoke("rolling").read_bytes())
    authority.issue("rolling")
    daemon.restart()
    until(lambda: desk.all_live(1), "the owner's return")
    desk.run(50)
    assert desk.check() == 100


def test_a_connection_that_does_not_finish_its_handshake_is_closed(mirrors, tellers):
    """Each connection sends a part of its handshake and then nothing; all at the same time, while
    an owner commits."""
    daemon, = mirrors(1, "tls")
    owner = tellers.run("books", [daemon], "create", LOG)
    owner.advances(50)
    peers = [socket.create_connection(("127.0.0.1", daemon.mirror.port), SECONDS)
             for _ in range(3)]
    for peer, said in zip(peers, (b"", b"\x16", b"\x16\x03\x01\x02\x00\x01\x00")):
        peer.sendall(said)
    owner.advances(200)
    for peer in peers:
        assert wire.rest(peer) == b""
        peer.close()
    owner.advances(50)


def test_a_mirror_that_is_silent_in_the_handshake_costs_the_time_for_connecting(perseas, authority):
    """It accepts the connection and is silent; another one closes it at that point."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        done = perseas("ls", *authority.options("owner"), "--connect-timeout", 6000,
                       mirrors="127.0.0.1:%d" % silent.getsockname()[1])
    assert done.status == FAILURE and "did not finish the TLS handshake in time" in done.err


def test_who_looks_at_ports_fills_no_log(mirrors, perseas, tmp_path):
    """Hundreds of connections that end in the handshake, or send something else, are counted. The
    log has the first of them, and then one now and then."""
    daemon, = mirrors(1, "tls", watched(tmp_path))
    before, began = len(daemon.log().splitlines()), time.monotonic()
    for number in range(300):
        with socket.create_connection(("127.0.0.1", daemon.mirror.port), SECONDS) as peer:
            peer.sendall(b"GET / HTTP/1.1\r\n\r\n"[:16 * (number % 2)])
            peer.shutdown(socket.SHUT_WR)
            wire.rest(peer)
    watch = Watch(tmp_path)
    until(lambda: watch.value("perseas_connections_refused_total", reason="tls") == 300,
          "300 that are counted")
    told = daemon.log().splitlines()[before:]
    assert 10 <= len(told) <= 11 + (time.monotonic() - began) / LOG_EVERY
    assert "it ended in the handshake" in told[0] and "warning" not in told[0]
    assert ": warning: " in told[1] and "it does not speak TLS 1.3" in told[1]
    assert perseas("ls", mirrors=[daemon]).status == OK


def test_garbage_in_place_of_tls_is_closed(mirrors, tellers, dice):
    """Random bytes, and invalid records."""
    daemon, = mirrors(1, "tls")
    owner = tellers.run("books", [daemon], "create", LOG)
    for number in range(20):
        peer = socket.create_connection(("127.0.0.1", daemon.mirror.port), SECONDS)
        head = b"" if number % 2 else bytes([dice.choice((0x14, 0x15, 0x16, 0x17)), 3, 3])
        peer.sendall(head + dice.randbytes(dice.randrange(64, 4096)))
        peer.shutdown(socket.SHUT_WR)
        wire.rest(peer)
        peer.close()
        owner.advances(5)
    assert daemon.running()
