"""The daemon's HTTP server, whose clients cannot delay an owner."""
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading

import pytest
import wire

from cluster import wait_for
from drill import BUILD, SECONDS, at_hosts, fill, run_command, wait_ownerless
from teller import tellers  # noqa: F401
from watching import Watch, options, parse


@pytest.fixture
def watched(mirrors, tmp_path):
    """watched(fabric, *options) starts a daemon with HTTP. Returns it and its Watch."""
    def start(fabric="tcp", *more):
        daemon, = mirrors(1, fabric, options(tmp_path, *more))
        return daemon, Watch(tmp_path)

    return start


def test_pages_are_what_they_say_they_are(watched):
    _, watch = watched()
    status, headers, body = watch.ask("/metrics")
    assert status == 200 and parse(body)
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert watch.ask("/metrics?x=y")[0] == 200
    status, headers, body = watch.ask("/status.json")
    assert headers["Content-Type"] == "application/json" and json.loads(body)["ready"] is True
    assert watch.ask("/healthz")[0::2] == (200, "ok\n")
    assert watch.ask("/readyz")[0::2] == (200, "ready\n")
    for path in ("/x", "/metrics/", "/../etc/passwd", "//", "/%2e%2e/"):
        assert watch.ask(path)[0] == 404, path


def test_the_loss_that_hurts_is_told_by_each_daemon(mirrors, owner, tmp_path):
    """The owner tells each daemon where the others run: two of three mirrors are on one host."""
    a, = mirrors(1, options=options(tmp_path, "--label", "host=h1", "--boot-id", "%032x" % 1))
    b, c = at_hosts(mirrors, "h2", "h1")
    owner("bank", [a, b, c])
    watch = Watch(tmp_path)
    loss = {"known": True, "of": "host", "name": "h1", "mirrors": [a.address, c.address]}
    wait_for(lambda: watch.status()["stores"][0]["next_loss"] == {"commit": loss, "open": loss},
             SECONDS, "the host")
    for ends in "commit", "open":
        assert watch.value("perseas_store_next_loss", store="bank", ends=ends, of="host") == 1


def test_a_head_is_a_get_without_its_body(watched):
    _, watch = watched()
    for path in ("/", "/metrics", "/status.json", "/healthz", "/none"):
        status, headers, body = watch.ask(path)
        with socket.create_connection(("127.0.0.1", watch.port), SECONDS) as peer:
            peer.sendall(b"HEAD %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path.encode())
            head, _, rest = wire.rest(peer).partition(b"\r\n\r\n")
        assert rest == b"" and head.startswith(b"HTTP/1.1 %d " % status)
        if path in ("/", "/healthz", "/none"):
            assert b"\r\nContent-Length: %d\r\n" % len(body.encode()) in head


def test_only_get_and_head_are_answered(watched):
    _, watch = watched()
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
        status, headers, _ = watch.ask("/metrics", method)
        assert status == 405 and headers["Allow"] == "GET, HEAD", method
    assert watch.ask("/metrics", "POST", b"x" * 100)[0] in (405, 413)
    assert watch.ask("/metrics", "BREW")[0] in (405, 501)


def test_whoever_is_led_here_by_another_name_sees_nothing(watched):
    """A foreign web page whose name was made to resolve to this host (DNS rebinding): browsers send
    its name. The daemon answers to addresses, localhost, and the names of --http-name."""
    daemon, watch = watched("tcp", "--http-name", "node1.example", "--http-name", "other")

    def ask(*hosts, target="/status.json"):
        lines = "".join("Host: %s\r\n" % host for host in hosts)
        with socket.create_connection(("127.0.0.1", watch.port), SECONDS) as peer:
            peer.sendall(("GET %s HTTP/1.1\r\n%s\r\n" % (target, lines)).encode())
            return wire.rest(peer).decode()

    for host in ("evil.example", "evil.example:7180", "127.0.0.1.evil.example", "localhost.evil",
                 "[::1", "[::1]x", "", "node1.example.evil", "x" * 300):
        reply = ask(host)
        assert reply.startswith("HTTP/1.1 421 "), host
        assert "--http-name" in reply and '"stores"' not in reply
    assert ask("localhost", "evil.example").startswith("HTTP/1.1 421 ")
    assert ask("localhost", target="http://evil.example/metrics").startswith("HTTP/1.1 421 ")
    for host in ("127.0.0.1", "127.0.0.1:1", "[::1]:7180", "localhost", "LocalHost:7180",
                 "localhost.", "node1.example", "NODE1.example:80", "other",
                 socket.gethostname()):
        assert ask(host).startswith("HTTP/1.1 200 "), host
    assert ask().startswith("HTTP/1.1 200 ")


def test_the_page_runs_no_script_but_its_own(watched):
    _, watch = watched()
    nonces = set()
    for _ in range(2):
        _, headers, body = watch.ask("/")
        policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
        assert policy["default-src"] == "'none'" and policy["frame-ancestors"] == "'none'"
        nonce = policy["script-src"][len("'nonce-"):-1]
        assert policy["style-src"] == "'nonce-%s'" % nonce
        assert body.count("<script") == body.count("<script nonce=\"%s\">" % nonce) == 1
        assert body.count("<style") == body.count("<style nonce=\"%s\">" % nonce) == 1
        assert "@NONCE@" not in body and "innerHTML" not in body
        nonces.add(nonce)
    assert len(nonces) == 2


def test_only_this_host_is_let_in_unless_it_is_said(tmp_path):
    for host in ("0.0.0.0", "[::]"):
        done = subprocess.run([BUILD / "perseasd", "--listen", "127.0.0.1:0", "--memory-dir",
                               tmp_path / "memory", "--unsafe-memory-on-disk", "on",
                               "--http", host + ":0"],
                              stderr=subprocess.PIPE, text=True, timeout=SECONDS)
        assert done.returncode == 1 and "--http-anywhere on" in done.stderr


def test_anywhere_is_said_in_so_many_words(mirrors, tmp_path):
    words = ("--http-port-file", str(tmp_path / "http-port"), "--http", "0.0.0.0:0")
    mirrors(1, options=words + ("--http-anywhere", "on"))
    assert Watch(tmp_path).ask("/healthz")[0] == 200


def test_metrics_follow_what_happens_to_a_store(watched, tellers, fabric):  # noqa: F811
    """An owner runs transactions and is killed; another one takes over."""
    daemon, watch = watched(fabric)
    first = tellers.run("bank", [daemon], "create")
    first.advances(100)
    wait_for(lambda: watch.value("perseas_mirror_state", store="bank", mirror=daemon.address,
                                 state="live"), SECONDS, "the owner's report")
    before = watch.metrics()

    def of(metrics, name, **labels):
        return metrics[name][tuple(sorted(labels.items()))]

    assert of(before, "perseas_stores", state="consistent") == 1
    assert of(before, "perseas_sessions", fabric=daemon.fabric) == 1
    assert of(before, "perseas_store_owner_live", store="bank") == 1
    assert of(before, "perseas_store_owner_info", store="bank", fabric=daemon.fabric) == 1
    assert of(before, "perseas_store_claims_total", store="bank") == 1
    assert of(before, "perseas_store_segments", store="bank") > 0
    for figure in ("broken_copies", "broken_copies_bytes", "link_rate_needed_bytes",
                   "commits_waited_for_copies"):
        assert of(before, "perseas_mirror_" + figure, store="bank", mirror=daemon.address) == 0
    assert of(before, "perseas_store_state", store="bank", state="consistent") == 1
    assert of(before, "perseas_memory_used_bytes") >= of(before, "perseas_store_bytes",
                                                         store="bank") > 0
    assert of(before, "perseas_memory_room_bytes") > 0
    assert of(before, "perseas_control_requests_total", request="claim") == 1
    assert of(before, "perseas_control_request_seconds_count", request="claim") == 1
    first.advances(100)
    wait_for(lambda: watch.value("perseas_store_seq", store="bank") >=
             of(before, "perseas_store_seq", store="bank") + 100, SECONDS, "transactions")
    after = watch.metrics()
    if daemon.fabric == "tcp":
        chains, bytes_in = ("perseas_tcp_chains_total", "perseas_tcp_received_bytes_total")
        assert of(after, chains) >= of(before, chains) + 100
        assert of(after, bytes_in) > of(before, bytes_in)
    first.kill9()
    wait_ownerless("bank", [daemon])
    wait_for(lambda: watch.value("perseas_store_owner_live", store="bank") == 0, SECONDS, "an end")
    assert run_command("recover", "bank", mirrors=[daemon]).status == 0
    wait_for(lambda: watch.value("perseas_store_claims_total", store="bank") == 2, SECONDS,
             "another claim")
    run_command("status", "none", mirrors=[daemon])
    wait_for(lambda: watch.value("perseas_control_refusals_total", status="no_store"), SECONDS,
             "a refusal")


def test_what_an_owner_says_of_its_mirrors_is_only_text(watched):
    """A hostile owner reports the same address twice, quotes, markup, invalid UTF-8, and unknown
    states. The metrics stay in their format, and each series occurs once."""
    daemon, watch = watched()
    fill("data", [daemon], {"s": b"contents"})
    control = wire.Control(daemon.address)
    control.claim("data", 1000)
    hostile = ("<img src=x onerror=alert(1)>\"},x\\", b"\xff\xfe", b"\xfe\xff", "same", "same")
    reports = b"".join(wire.field(1, wire.field(1, address) + wire.field(2, "<b>up</b>") +
                                  wire.field(3, 7) + wire.field(6, "</script>"))
                       for address in hostile)
    assert control.ask(wire.field(7, reports)).get(1, 0) == 0
    samples = wait_for(lambda: watch.metrics().get("perseas_mirror_seq"), SECONDS, "reports")
    mirrors = [dict(key)["mirror"] for key in samples]
    assert sorted(mirrors) == sorted([hostile[0], "\ufffd\ufffd", "same"])
    states = {dict(key)["state"] for key in watch.metrics()["perseas_mirror_state"]}
    assert states == {"unknown"}
    losses = watch.metrics()["perseas_store_next_loss"]
    assert {dict(key)["of"] for key in losses} == {"now"} and len(losses) == 2
    assert watch.status()["stores"][0]["mirrors"][0]["address"] == hostile[0]


def test_what_an_owner_counts_is_passed_on(watched):
    """A Confirm reports 5 commits, 3 of which took 100 ns and 2 took 20 us."""
    daemon, watch = watched()
    fill("data", [daemon], {"s": b"contents"})
    control = wire.Control(daemon.address)
    control.claim("data", 1000)
    fast, slow = 16 * 2 + 25, 16 * 10 + 19      # the buckets of latency.h
    counts = b"".join(wire.varint(n) for n in [3] + [0] * (slow - fast - 1) + [2])
    commit = wire.field(1, fast) + wire.field(2, counts) + wire.field(3, 40300) + \
        wire.field(4, 20000)
    figures = wire.field(1, 5) + wire.field(2, 4) + wire.field(3, 1234) + wire.field(4, 2) + \
        wire.field(5, commit)
    doubt = wire.field(6, 1500) + wire.field(57, 24 << 20)
    assert control.ask(wire.field(7, wire.field(3, figures + doubt))).get(1, 0) == 0
    wait_for(lambda: watch.value("perseas_owner_commits_total", store="data") == 5, SECONDS, "it")
    assert watch.value("perseas_owner_aborts_total", store="data") == 4
    assert watch.value("perseas_owner_range_bytes_total", store="data") == 1234
    assert watch.value("perseas_owner_in_doubt_total", store="data") == 2
    latency = "perseas_owner_commit_latency_seconds"
    assert watch.value(latency + "_count", store="data") == 5
    assert watch.value(latency + "_sum", store="data") == 40300e-9
    found = watch.metrics()[latency + "_bucket"]
    buckets = {dict(key)["le"]: value for key, value in found.items()}
    bounds = sorted(buckets, key=float)
    assert bounds[-1] == "+Inf" and buckets["+Inf"] == 5
    assert [buckets[each] for each in bounds] == sorted(buckets.values())
    assert buckets["1.024e-06"] == buckets["1.6384e-05"] == 3 and buckets["3.2768e-05"] == 5
    store, = watch.status()["stores"]
    assert store["figures"]["p50_ns"] < 110 and store["figures"]["p99_ns"] == 20000
    assert store["figures"]["doubt_ms"] == 1500
    assert watch.value("perseas_owner_doubt", store="data") == 1
    assert store["figures"]["missing"] == 24 << 20
    assert watch.value("perseas_owner_missing_bytes", store="data") == 24 << 20
    assert control.ask(wire.field(7, wire.field(3, figures))).get(1, 0) == 0
    wait_for(lambda: watch.value("perseas_owner_doubt", store="data") == 0, SECONDS, "no doubt")
    assert watch.value("perseas_owner_missing_bytes", store="data") == 0


def test_who_is_ready_has_memory_for_more(mirrors, tmp_path):
    """The limit of its memory is almost reached; then its directory is removed."""
    daemon, = mirrors(1, options=options(tmp_path, "--max-memory", "18M"))
    watch = Watch(tmp_path)
    assert watch.ask("/readyz")[0] == 200
    fill("data", [daemon], {"s": bytes(1 << 20)})
    status, _, body = watch.ask("/readyz")
    assert status == 503 and body.startswith("the memory limit is reached: ")
    wait_for(lambda: watch.value("perseas_ready") == 0, SECONDS, "a metric of that")
    assert run_command("drop", "data", daemon.address, "--yes").status == 0
    assert watch.ask("/readyz")[0] == 200
    daemon.stop()
    for path in sorted(daemon.memory.iterdir()):
        path.unlink()
    os.rmdir(daemon.memory)
    daemon.memory.write_text("")        # so that the daemon cannot recreate the directory
    daemon.cont()
    assert watch.ask("/readyz")[0::2] == (503, "the memory directory has been removed\n")
    assert watch.ask("/healthz")[0] == 200


HOSTILE = {
    "silent": b"",
    "half a line": b"GET /met",
    "no end": b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n",
    "takes no answer": b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
}
ANSWERED = {
    "huge header": b"GET / HTTP/1.1\r\nX: " + b"x" * 100000 + b"\r\n\r\n",
    "endless line": b"GET /" + b"x" * 100000,
    "no HTTP": b"\x00\xff\x16\x03\x01" * 100 + b"\r\n\r\n",
    "no such method": b"BREW /pot HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a body too many": b"POST /metrics HTTP/1.1\r\nContent-Length: 9999999999999999\r\n\r\n",
    "a body that never comes": b"POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nxx",
    "negative length": b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    "chunks": b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n",
    "controls in the path": b"GET /\x01\x1b[2J%00%0a HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "pipelined": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50,
}


def narrow(port):
    """Returns a connection with a small receive buffer."""
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    peer.settimeout(SECONDS)
    peer.connect(("127.0.0.1", port))
    return peer


def talk(daemon, store):
    """Runs the owner of a new store that has 16 mirrors with long names."""
    made = run_command("create", store, "--log-size", "65536", mirrors=[daemon])
    assert made.status == 0, made
    control = wire.Control(daemon.address)
    control.claim(store, 1)
    reports = b"".join(wire.field(1, wire.field(1, "%02d" % number + "\"" * 250) +
                                  wire.field(2, "live") + wire.field(3, 1))
                       for number in range(16))
    assert control.ask(wire.field(7, reports)).get(1, 0) == 0
    return control


def test_hostile_clients_are_let_go_and_hold_up_nobody(watched, tellers):  # noqa: F811
    """An owner commits in the meantime. Requests are answered if possible, and every connection
    ends. Clients that are silent or read no answer wait for their timeout and delay nobody, however
    many there are. Others have an answer too large to be sent at once."""
    daemon, watch = watched()
    wordy = [talk(daemon, "store%d" % number) for number in range(8)]
    wait_for(lambda: len(watch.get("/metrics")) > 300000, SECONDS, "long answers")
    owner = tellers.run("bank", [daemon], "create")
    owner.advances(10)
    for name, sent in ANSWERED.items():
        with socket.create_connection(("127.0.0.1", watch.port), SECONDS) as peer:
            try:
                peer.sendall(sent)
                peer.shutdown(socket.SHUT_WR)
            except OSError:
                pass                    # it was closed before
            said = wire.rest(peer)
            assert said[:9] in (b"HTTP/1.1 ", b"HTTP/1.0 ", b""), name
            assert said.count(b"HTTP/1.1 200") <= 1, name
        owner.advances(10)
    silent = [narrow(watch.port) for _ in range(40)]
    for peer, sent in zip(silent, list(HOSTILE.values()) * 10):
        peer.sendall(sent)
    owner.advances(500)
    fresh = wire.Control(daemon.address)
    assert fresh.ask(wire.field(1, b""))[4]
    for peer in silent[:32]:            # as many as there are slots
        said = wire.rest(peer)
        head, _, body = said.partition(b"\r\n\r\n")
        if said:
            length = int(re.search(rb"\r\nContent-Length: (\d+)", head)[1])
            assert b" 200 " in head and len(body) < length
    assert watch.ask("/healthz")[0] == 200
    for peer in silent:
        peer.close()
    wait_for(lambda: watch.value("perseas_http_connections") == 1, SECONDS, "their ends")
    assert "libevent" not in daemon.log() and len(wordy) == 8
    owner.advances(10)


def ask_at_a_sync(process, watch):
    """Returns the answer of /readyz before the daemon continues from a sync of a file. The daemon
    stops at each sync, and is resumed until it has answered."""
    connection = http.client.HTTPConnection("127.0.0.1", watch.port, timeout=SECONDS)
    connection.request("GET", "/readyz")
    heard = []

    def hear():
        reply = connection.getresponse()
        heard.append((reply.status, reply.read().decode()))

    thread = threading.Thread(target=hear, daemon=True)
    thread.start()
    go_on(process, lambda: not thread.is_alive())
    connection.close()
    return heard[0]


def go_on(process, is_over):
    """Resumes the daemon from sync to sync until is_over(), at most one more than needed."""
    def told():
        if is_over():
            return True
        process.send_signal(signal.SIGCONT)
        return False

    wait_for(told, SECONDS, "a daemon that goes on")


def test_it_says_what_it_is_at_while_it_begins_and_ends(mirrors, tmp_path):
    """The disk is slow: the daemon stops at each sync of a file. A client that asks before the
    first two of three images are loaded, or written, is answered while the daemon works on the
    next."""
    daemon, = mirrors(1, options=options(tmp_path, "--spill-dir", str(tmp_path / "spill")))
    for name in "first", "second", "third":
        fill(name, [daemon], {"s": b"contents"})
    assert daemon.terminate() == 0
    daemon.lose_memory()
    daemon.mirror.port_file.unlink()
    (tmp_path / "http-port").unlink()
    slow = ["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync",
            "-e", "inject=fsync:signal=SIGSTOP"]
    daemon.mirror.process = subprocess.Popen(
        [*slow, str(BUILD / "perseasd"), "--listen", "127.0.0.1:0", "--memory-dir",
         str(daemon.memory), "--port-file", str(daemon.mirror.port_file),
         *daemon.mirror.options], stderr=subprocess.DEVNULL)
    process = daemon.mirror.process
    go_on(process, (tmp_path / "http-port").exists)
    watch = Watch(tmp_path)
    assert ask_at_a_sync(process, watch) == (503, "images are being loaded\n")
    go_on(process, daemon.mirror.port_file.exists)
    assert watch.ask("/healthz")[0] == watch.ask("/readyz")[0] == 200
    before = set((tmp_path / "spill").iterdir())
    process.terminate()
    go_on(process, lambda: set((tmp_path / "spill").iterdir()) != before)
    assert ask_at_a_sync(process, watch) == (
        503, "the daemon ends, and writes its images before\n")
    go_on(process, lambda: process.poll() is not None)
    assert process.returncode == 0


def test_daemons_on_one_machine_tell_one_name_of_it(mirrors, tmp_path):
    """Whatever their labels say; daemons of other machines report other names. The name is not the
    boot id, which HTTP would show to everybody."""
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")
    told = []
    for number, more in enumerate((("--label", "host=h1", "--label", "rack=r"),
                                   ("--label", "host=h2"), ("--boot-id", "%032x" % 1))):
        folder = tmp_path / str(number)
        folder.mkdir()
        mirrors(1, options=options(folder, *more))
        (labels, value), = Watch(folder).metrics()["perseas_place_info"].items()
        assert value == 1
        told.append(dict(labels))
        assert Watch(folder).status()["labels"] == {
            name: told[-1][name] for name in ("host", "rack", "zone")}
    assert [each["host"] for each in told] == ["h1", "h2", socket.gethostname()]
    assert [each["rack"] for each in told] == ["r", "", ""]
    machines = [each["machine"] for each in told]
    assert machines[0] == machines[1] != machines[2]
    assert len(machines[0]) == 32 and boot not in machines


def test_the_table_of_metrics_is_printed(watched):
    """The table has exactly the metrics that are exported."""
    done = subprocess.run([BUILD / "perseasd", "--metrics-help"], stdout=subprocess.PIPE, text=True,
                          timeout=SECONDS, check=True)
    _, watch = watched()
    rows = [line.split(" | ") for line in done.stdout.splitlines()[2:]]
    assert {row[0].strip("| `"): row[1] for row in rows} == parse(watch.get("/metrics"))[1]
    assert all(len(row) == 4 and row[3].strip(" |") for row in rows)
