#!/usr/bin/env python3
"""record.py FUZZERS CORPUS [SESSION...]: records what owners, commands and browsers say to real
daemons on this host and what those answer, makes inputs of the fuzz targets of it, and keeps in
CORPUS/TARGET, as recorded-NAME, the few that together reach all that they all reach (libFuzzer's
merge, by the targets in FUZZERS). What an earlier run recorded goes. With sessions named (SESSIONS
below) only these are recorded: everything in CORPUS stays, and of the inputs those are added that
reach what nothing there does."""
import contextlib
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(TOP / "tests/drills"), str(TOP / "bench")]

import authority  # noqa: E402
import seeds  # noqa: E402
import wire  # noqa: E402
from binding import CREATE, ON_DEMAND, PerseasError, Standby, Store  # noqa: E402
from drill import BUILD, OK, run_command, wait_even, wait_for  # noqa: E402
from cluster import Cluster  # noqa: E402
from tap import THERE, Tap, Tape  # noqa: E402
from watching import Watch, options  # noqa: E402

PREFIX = "recorded-"
SMALL = dict(log_size=4096)             # the smallest: targets have little memory
SIZE = 256                              # of a segment
SECONDS = 60
WATCH, STANDBY, WARM = 21, 5, 5         # fields in control.proto


class Tapped:
    """A mirror; `address` is the tap's."""

    def __init__(self, mirror, stack, local):
        self.mirror, self.tape = mirror, Tape()
        self.address = stack.enter_context(
            Tap(self.tape, mirror.unix if local else mirror.tcp)).address


class Recorder:
    """What was recorded so far: {target: {name: bytes}}."""

    def __init__(self):
        self.inputs = {}

    def keep(self, target, name, data):
        known = self.inputs.setdefault(target, {})
        if data and data not in known.values():
            known[name] = data

    def keep_tape(self, name, tape, targets=None):
        for target, make in (targets or seeds.OF_A_DAEMON).items():
            for each, data in make(tape).items():
                self.keep(target, "%s-%s" % (name, each), data)

    @contextlib.contextmanager
    def mirrors(self, name, count, local=False, options=()):
        """So many mirrors, each behind a tap; what they were told is kept at the end."""
        with contextlib.ExitStack() as stack:
            cluster = stack.enter_context(Cluster(BUILD, count, options))
            tapped = [Tapped(mirror, stack, local) for mirror in cluster.mirrors]
            yield tapped
            for index, each in enumerate(tapped):
                self.keep_tape("%s-%d" % (name, index), each.tape)
                for header in each.mirror.folder.glob("memory/*/header"):
                    self.keep("header", name, b"\0" + header.read_bytes())


def command(*words, **keywords):
    done = run_command(*words, **keywords)
    assert done.status == OK, (words, done)
    return done


def addresses(mirrors):
    return ",".join(each.address for each in mirrors)


def work(store):
    """Two segments, and transactions on them until the ring has gone around."""
    for name in ("accounts", "history"):
        store.map(name, SIZE)
    store.publish()
    for i in range(12):
        store.write("accounts", 8 * i, bytes([i]) * 8)
        store.write("history", 0, bytes([i]) * 200)
    store.flush()


def made(mirrors, name="bank", **more):
    """A store with some history, without an owner."""
    with Store(name, addresses(mirrors), flags=CREATE, **{**SMALL, **more}) as store:
        work(store)


# --- sessions ---

def life(recorder, name, local):
    """A store from its making to its end, with all that is asked of it meanwhile."""
    with recorder.mirrors(name, 1, local) as mirrors, tempfile.TemporaryDirectory() as folder:
        address, file = mirrors[0].address, folder + "/file"
        command("create", "bank", address, "--log-size", "4K")
        with Store("bank", address) as store:
            work(store)
            with contextlib.suppress(PerseasError):
                Store("bank", address, open_timeout_ms=1)
            command("status", "bank", address)
            command("verify", "bank", address)
        with Store("bank", address) as store:
            assert store.map("accounts") and store.read("accounts", 8, 1) == b"\1"
        command("ls", address)
        command("roster", "bank", address)
        command("history", "bank", "--from", address)
        command("snapshot", "bank", "--from", address, "--to", file)
        recorder.keep("archive", name, b"\2" + pathlib.Path(file).read_bytes())
        command("drop", "bank", address, "--yes")
        command("restore", file, "bank", address)
        command("recover", "bank", address)


def fenced(recorder, name, local):
    """Another takes the store from its owner, which finds out when it commits."""
    with recorder.mirrors(name, 1, local) as mirrors:
        address = mirrors[0].address
        with Store("bank", address, flags=CREATE, **SMALL) as store:
            work(store)
            command("recover", "bank", address, "--takeover")
            with contextlib.suppress(PerseasError):
                store.write("accounts", 0, b"too late")


def rebuilt(recorder, name, local):
    """A mirror of three loses its memory, another misses more than logs hold, while the owner goes
    on."""
    with recorder.mirrors(name, 3, local) as mirrors:
        with Store("bank", addresses(mirrors), flags=CREATE, **SMALL) as store:
            work(store)
            for each, lose in ((mirrors[1], True), (mirrors[2], False)):
                each.mirror.kill()
                for i in range(40):
                    store.write("accounts", 0, bytes([i]) * 200)
                if lose:
                    each.mirror.lose_memory()
                recorder.keep_tape(name + "-before", each.tape.cut())
                each.mirror.start()
                wait_even("bank", mirrors)
                store.write("accounts", 0, b"with it")
            command("verify", "bank", addresses(mirrors))


def changed(recorder, name, local):
    """The roster, of a store that runs: one more, one in the place of another, one less."""
    with recorder.mirrors(name, 4, local) as mirrors:
        first, new = mirrors[:2], mirrors[2:]
        with Store("bank", addresses(first), flags=CREATE, **SMALL) as store:
            work(store)
            command("roster", "add", "bank", addresses(first), new[0].address)
            command("roster", "replace", "bank", addresses(first), first[1].address,
                    new[1].address)
            command("roster", "remove", "bank", addresses(first[:1]), new[0].address)
            store.write("accounts", 0, b"after")


def demanded(recorder, name, local):
    """An owner that recovers on demand."""
    with recorder.mirrors(name, 1, local) as mirrors:
        made(mirrors)
        with Store("bank", mirrors[0].address, recovery=ON_DEMAND) as store:
            for segment in ("accounts", "history"):
                store.map(segment)
            store.wait_whole()


def says_how_warm(tape):
    """Has a standby told the daemon of bytes in its copy?"""
    def inside(message, *fields):
        for number in fields:
            message = wire.fields(message).get(number, b"")
        return message
    return any(inside(each, WATCH, STANDBY, WARM) for each in seeds.request(tape).values())


def followed(recorder, name, local):
    """Somebody looks for room; then an owner for which a lifeline is held, and behind it a standby
    with a warm copy."""
    with recorder.mirrors(name, 1, local) as (mirror,):
        command("place", "--copies", "1", mirrors=mirror.address)
        with Store("bank", mirror.address, flags=CREATE, **SMALL) as store:
            work(store)
            if not local:
                wait_for(lambda: any(each.startswith("lifeline") for each in
                                     seeds.request(mirror.tape)), SECONDS, "a lifeline")
            with Standby("bank", mirror.address, name=b"beta", warm=1):
                wait_for(lambda: says_how_warm(mirror.tape), SECONDS, "a warm copy")
                command("status", "bank", mirror.address)


def looked_at(recorder, name, _local):
    """perseas top, of a store on three mirrors that runs."""
    with recorder.mirrors(name, 3) as mirrors:
        with Store("bank", addresses(mirrors), flags=CREATE, **SMALL) as store:
            work(store)
            for each in mirrors:
                recorder.keep_tape(name + "-before", each.tape.cut())
            command("top", addresses(mirrors), "--once", "--interval", "0.2")
            looks = [each.tape.cut() for each in mirrors]
            recorder.keep("top", "looks", seeds.top(looks)["looks"])


def spilled(recorder, name, local):
    """A mirror writes its images to disk and ends; the next one begins with them."""
    with tempfile.TemporaryDirectory() as folder:
        with recorder.mirrors(name, 1, local, ("--spill-dir", folder)) as mirrors:
            made(mirrors)
            command("spill", mirrors[0].address)
            for each in pathlib.Path(folder).glob("*.spill"):
                recorder.keep("archive", name, b"\2" + each.read_bytes())


def denied(recorder, name, local):
    """A daemon whose rules let nobody make or own a store."""
    with tempfile.TemporaryDirectory() as folder:
        rules = pathlib.Path(folder) / "access"
        rules.write_text("allow * read\n")
        with recorder.mirrors(name, 1, local, ("--access", str(rules))) as mirrors:
            assert run_command("create", "bank", mirrors[0].address).status != OK
            command("ls", mirrors[0].address)


@contextlib.contextmanager
def environment(values):
    """These variables, as long as the `with` block lasts."""
    os.environ.update(values)
    try:
        yield
    finally:
        for each in values:
            del os.environ[each]


def encrypted(recorder):
    """What is outside of TLS: an owner that has it and one that has not, and a daemon of the other
    kind. What is inside is what the others say without."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        ca = authority.Authority(folder)
        ca.issue("mirror", "IP:127.0.0.1")
        ca.issue("owner")
        cluster = stack.enter_context(Cluster(BUILD, 1, ca.options("mirror")))
        secure = Tapped(cluster.mirrors[0], stack, False)
        without = Tapped(stack.enter_context(Cluster(BUILD, 1)).mirrors[0], stack, False)
        run_command("ls", secure.address)
        recorder.keep_tape("plain", secure.tape.cut(), {"tls": seeds.plain})
        with environment(ca.environment("owner")):
            made([secure])
            run_command("ls", without.address)
        recorder.keep_tape("made", secure.tape, {"tls": seeds.plain})
        recorder.keep_tape("wants-tls", without.tape, {"connection": seeds.connection})


def watched(recorder):
    """Whatever of this host asks for pages."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        stack.enter_context(Cluster(BUILD, 1, options(pathlib.Path(folder))))
        tape, watch = Tape(), Watch(pathlib.Path(folder))
        tap = stack.enter_context(Tap(tape, "127.0.0.1:%d" % watch.port))
        watch.port = int(tap.address.rpartition(":")[2])
        for path in ("/", "/metrics", "/healthz", "/readyz", "/status.json", "/none"):
            watch.ask(path)
        for method in ("HEAD", "POST", "OPTIONS"):
            watch.ask("/metrics", method, b"x" if method == "POST" else None)
        keep_requests(recorder, "python", tape.cut())
        for words in (("curl", "-s", "--compressed"), ("wget", "-q", "-O-"),
                      ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
                       "--user-data-dir=" + folder)):
            if shutil.which(words[0]):
                subprocess.run([*words, "http://%s/" % tap.address], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               timeout=SECONDS, check=False)
            keep_requests(recorder, words[0], tape.cut())


def keep_requests(recorder, name, tape):
    for number, stream in tape.streams(THERE).items():
        recorder.keep("http", "%s-%d" % (name, number), b"\0" + stream)


SESSIONS = (life, fenced, rebuilt, changed, demanded, followed, looked_at, spilled, denied)


def record(recorder, wanted):
    for session in SESSIONS:
        for local in (False, True):
            name = "%s-%s" % (session.__name__, "unix" if local else "tcp")
            if not wanted or session.__name__ in wanted:
                print("  RECORD ", name, flush=True)
                session(recorder, name, local)
    for session in (encrypted, watched):
        if not wanted or session.__name__ in wanted:
            print("  RECORD ", session.__name__, flush=True)
            session(recorder)


def merge(fuzzer, inputs, folder, stays):
    """Keeps those of the inputs that reach an edge that the others do not, nor what stays."""
    with tempfile.TemporaryDirectory() as work:
        every, few = pathlib.Path(work) / "every", pathlib.Path(work) / "few"
        every.mkdir()
        few.mkdir()
        for each in folder.iterdir() if stays else []:
            shutil.copy(each, few)
        names = {hashlib.sha1(data).hexdigest(): name for name, data in inputs.items()}
        for name, data in inputs.items():
            (every / name).write_bytes(data)
        subprocess.run([fuzzer, "-merge=1", "-use_counters=0", few, every], check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        folder.mkdir(exist_ok=True)
        for old in [] if stays else folder.glob(PREFIX + "*"):
            old.unlink()
        kept = [each for each in few.iterdir() if each.name in names]
        for each in kept:
            (folder / (PREFIX + names[each.name])).write_bytes(each.read_bytes())
    print("  MERGE   %s: %d of %d inputs" % (folder.name, len(kept), len(inputs)), flush=True)


def main():
    wanted = sys.argv[3:]
    known = [each.__name__ for each in (*SESSIONS, encrypted, watched)]
    if len(sys.argv) < 3 or not set(wanted) <= set(known):
        print(__doc__, "SESSION: " + " ".join(known), sep="\n", file=sys.stderr)
        return 2
    fuzzers, corpus = map(pathlib.Path, sys.argv[1:3])
    recorder = Recorder()
    record(recorder, wanted)
    for target, inputs in sorted(recorder.inputs.items()):
        merge(fuzzers / ("fuzz_" + target), inputs, corpus / target, bool(wanted))
    return 0


if __name__ == "__main__":
    sys.exit(main())
