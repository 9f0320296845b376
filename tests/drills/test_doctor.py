"""perseas doctor on this host, whatever it is like: other daemons may run here too."""
import pytest

from drill import NO, OK, SECONDS, TOP, USAGE, mirror_list, wait_for
from test_command import NOBODY, say, serve, silent
from watching import Watch, options


def checks(done):
    """{name: check}, whose counts and exit status agree."""
    told = done.json()
    results = [check["result"] for check in told["checks"]]
    assert results.count("fail") == told["failures"]
    assert results.count("warning") == told["warnings"]
    assert done.status == (NO if told["failures"] else OK), done
    return {check["name"]: check for check in told["checks"]}


def test_every_check_says_what_it_found_and_what_to_do(perseas):
    """No mirror is asked for."""
    told = checks(perseas("doctor", "--json", "--connect-timeout", "500"))
    assert {"kernel", "swap", "memory directory", "recovery on demand", "RDMA devices",
            "perseasd"} <= set(told)
    for check in told.values():
        assert check["result"] in ("ok", "warning", "fail", "skipped") and check["found"], check
        assert check["advice"] or check["result"] in ("ok", "skipped"), check
    text = perseas("doctor", "--connect-timeout", "500").out
    # Daemons of other tests may have ended meanwhile.
    assert all(name + ":" in text for name in told if not name.startswith(("mirror ", "HTTP ")))
    assert all(len(line) <= 78 for line in text.splitlines() if " /" not in line)


def test_the_daemons_of_the_host_are_asked(perseas, mirrors, fabric):
    """One that nobody named, and the same one named: it is asked once."""
    daemon, = mirrors(1, fabric)
    for words in ([], [daemon.address]):
        told = checks(perseas("doctor", *words, "--json"))
        assert "process %d" % daemon.pid in told["perseasd"]["found"]
        if daemon.fabric == "rdma":
            continue
        mirror = told["mirror " + daemon.address]
        assert mirror["result"] == "ok" and mirror["advice"] is None, mirror
        assert (TOP / "VERSION").read_text().strip() in mirror["found"]
        assert "its clock is" in mirror["found"]


def test_each_of_many_daemons_is_asked(perseas, mirrors):
    """More than a list of mirrors may name; other tests run daemons, too."""
    daemons = mirrors(18)
    told = checks(perseas("doctor", "--json"))
    assert all(told["mirror " + each.address]["result"] == "ok" for each in daemons)


@pytest.mark.parametrize("fabric", ["tcp", "tls"])
def test_the_http_of_a_daemon_is_no_mirror_that_fails(perseas, mirrors, tmp_path, fabric):
    """Unless somebody calls it one."""
    daemon, = mirrors(1, fabric, options(tmp_path))
    http = "127.0.0.1:%d" % Watch(tmp_path).port
    told = checks(perseas("doctor", "--json"))
    assert http in told["perseasd"]["found"] and "mirror " + http not in told
    assert told["HTTP " + http]["result"] == told["mirror " + daemon.address]["result"] == "ok"
    assert checks(perseas("doctor", "--json", http))["mirror " + http]["result"] == "fail"


@pytest.mark.parametrize("conversation, said, advice", [
    (say(b"PSSC" + (10).to_bytes(4, "little")), "speaks version 10", "Upgrade"),
    (say(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "is not a perseasd", "Give the port"),
    (silent, "said nothing in time", "systemctl start"),
], ids=["another version", "another protocol", "silence"])
def test_a_mirror_that_is_none_fails(perseas, mirrors, conversation, said, advice):
    """Beside one that is; and one that does not run."""
    daemons = mirrors(1)
    port, close = serve(conversation)

    def told():
        """Once both that run have answered in time. Daemons of other tests may be stopped, so the
        time is short."""
        done = perseas("doctor", "--json", "--connect-timeout", "500", "--mirrors",
                       "%s,127.0.0.1:%d,%s" % (mirror_list(daemons), port, NOBODY))
        found = checks(done)
        assert done.status == NO, done
        return found["mirror " + daemons[0].address]["result"] == "ok" and \
            said in found["mirror 127.0.0.1:%d" % port]["found"] and found

    try:
        found = wait_for(told, SECONDS, "a mirror that is well and one that is none")
    finally:
        close()
    assert advice in found["mirror 127.0.0.1:%d" % port]["advice"]
    assert "is perseasd running there?" in found["mirror " + NOBODY]["found"]


def test_a_list_that_is_none_is_refused_before_anything_is_looked_at(perseas):
    """And so is a directory that is not absolute."""
    for words in (["doctor", "host:"], ["doctor", "--memory-dir", "here"]):
        done = perseas(*words)
        assert done.status == USAGE and done.out == "", done
