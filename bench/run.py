#!/usr/bin/env python3
"""Measures Perseas, the systems that it is compared with, and the limits of this host. Prints a
table, and writes build/bench.json and .csv (the table's rows) and build/bench/results.json (every
figure). Each measurement has its own mirrors.

On a host with few processors the mirrors and the owner share them, so figures over tcp are those of
this host, not of a network. A ratio compares two sides that took turns in one run.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import languages
import rvm
from certificates import Authority
from cluster import Cluster
from report import Report

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers"))
try:
    from redis_pair import RedisPair
except ImportError:
    RedisPair = None

SPIN_US = 50
SLEEP_AT_ONCE = 0xffffffff
LIMIT_SECONDS = 1200
PEERS = ["pmemobj", "pmemobj-replica", "lmdb", "sqlite", "bdb"]
ON_DISK = ["lmdb-sync", "sqlite-sync", "bdb-sync"]
MIB, GIB = 1 << 20, 1 << 30


class Bench:
    comparer = "compare-peers"

    def __init__(self, build, quick):
        self.build, self.quick = build, quick
        self.results, self.report = {}, Report()
        self.seconds, self.rounds = (0.12, 5) if quick else (0.6, 7)
        self.peers = [name for name in PEERS if self.knows(name)]
        cpus = sorted(os.sched_getaffinity(0))
        self.near, self.far = cpus[0], cpus[-1]

    # --- running programs ---

    def knows(self, engine):
        """Returns True if the engine is built in."""
        line = [self.build / "bench" / self.comparer, "--engines", engine, "--dry-run"]
        return not subprocess.run(line, stderr=subprocess.DEVNULL, check=False).returncode

    def program(self, cluster, name, *words, env=None):
        """Runs a benchmark. Returns its JSON."""
        line = [self.build / "bench" / name, *words, "--json"]
        done = cluster.run(*line, seconds=LIMIT_SECONDS, env=env)
        if done.returncode:
            raise RuntimeError("%s: status %d\n%s" % (name, done.returncode, done.stderr))
        return json.loads(done.stdout)

    def timed(self):
        return ["--seconds", self.seconds, "--rounds", self.rounds]

    def cluster(self, mirrors, *options, room=300 * MIB, cpus=None):
        cpus = cpus if cpus is not None else {i: self.far for i in range(mirrors)}
        return Cluster(self.build, mirrors, options, cpus, room=room)

    def compare(self, title, cluster, work, engines, *more, fabric="shm", size=None, place=None):
        """Runs a workload on several engines in turn. Returns the results."""
        mirrors = cluster.unix() if fabric == "shm" else cluster.tcp()
        words = ["--work", work, "--engines", ",".join(engines), "--mirrors", mirrors,
                 "--cpu", self.near, *self.timed(), *more]
        if size:
            words += ["--size", size]
        folder = tempfile.mkdtemp(prefix="files-", dir=place or cluster.folder)
        try:
            result = self.program(cluster, self.comparer, "--dir", folder, *words)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        self.results[title] = result
        say("%s: %s" % (title, ", ".join(
            "%s %s/s" % (name, "{:,.0f}".format(entry["rate"]["median"]))
            for name, entry in result["engines"].items())))
        return result

    def rates(self, name, result, targets, kind="busy_rates"):
        """Adds a row for each engine that Perseas was compared with. If no engine waits for another
        process, compares rates per second of processor time, which other load on the host does not
        change."""
        engines = result["engines"]
        for other, entry in engines.items():
            if other != "perseas":
                self.report.add(name, "/s", engines["perseas"][kind], label(other, result),
                                entry[kind], targets.get(other))

    def limit_rates(self, work, result, others):
        """Adds rows for what a mirror's three copies alone would reach against the other
        engines."""
        engines = result["engines"]
        for other in others:
            if other in engines:
                self.report.add("limit: %s, the three copies alone" % work, "/s",
                                engines["copies"]["busy_rates"], label(other, result),
                                engines[other]["busy_rates"])

    # --- the measurements ---

    def beside_peers(self, work, targets):
        with self.cluster(1, room=400 * MIB) as cluster:
            result = self.compare(work + ", shm", cluster, work,
                                  ["perseas", "local", "copies", "none"] + self.peers)
        self.rates(work + ", shm, 1 mirror", result, targets)
        self.limit_rates(work, result, targets)

    def debit_credit(self):
        self.beside_peers("debit-credit", {"local": ">= 0.35", "pmemobj-replica": ">= 10"})

    def order_entry(self):
        self.beside_peers("order-entry", {"local": ">= 0.6", "pmemobj-replica": ">= 10"})

    def redis(self):
        """Compares with Redis, whose server and replica are on its client's processor, where they
        are fastest. The mirror is on another processor and spins, or on the same and sleeps."""
        for work, target in (("debit-credit", ">= 5"), ("order-entry", None)):
            self.beside_redis(work + ", tcp, 1 mirror", work, target, self.far, SPIN_US)
            self.beside_redis(work + ", tcp, 1 mirror on the owner's processor", work, target,
                              self.near, 0)

    def beside_redis(self, title, work, target, cpu, spin_us):
        with self.cluster(1, "--spin-us", str(spin_us), cpus={0: cpu}) as cluster, \
                RedisPair(self.near, self.near) as pair:
            result = self.compare(title, cluster, work, ["perseas", "redis"], "--redis-port",
                                  pair.port, "--spin-us", spin_us or SLEEP_AT_ONCE, fabric="tcp")
        self.rates(title, result, {"redis": target}, "rates")

    def on_disk(self):
        place = self.build / "bench"
        with self.cluster(1) as cluster:
            result = self.compare("debit-credit, power", cluster, "debit-credit",
                                  ["perseas"] + ON_DISK, place=place)
        self.rates("debit-credit, shm, 1 mirror", result, {}, "rates")

    def tpca(self):
        for pattern in ("sequential", "random", "localized"):
            with self.cluster(1, room=600 * MIB) as cluster:
                result = self.compare("tpca, %s" % pattern, cluster, "tpca-" + pattern,
                                      ["perseas", "local", "copies"], size=256 * 1024)
            self.rates("tpca, %s, shm, 1 mirror" % pattern, result, {})

    def sizes(self):
        """Measures the overhead for transactions of several sizes, and against the three copies
        that they take."""
        engines = ["perseas", "copies", "none", "local"]
        if not self.quick:
            engines += [p for p in self.peers if p in ("pmemobj-replica", "lmdb")]
        sizes = [8, 4096, MIB] if self.quick else [8, 64, 512, 4096, 32768, 262144, MIB]
        for size in sizes:
            with self.cluster(1) as cluster:
                result = self.compare("synthetic, %d bytes" % size, cluster, "synthetic", engines,
                                      size=size)
            self.size_row(size, result["engines"])

    def size_row(self, size, engines):
        """Adds a row from the medians of latencies, because a round has few transactions of 1
        MiB."""
        took, copies, plain = ([ns / 1e3 for ns in engines[name]["p50s_ns"]]
                               for name in ("perseas", "copies", "none"))
        three = [max(c - p, 1e-3) for c, p in zip(copies, plain)]
        over = [t - p for t, p in zip(took, plain)]
        title = "%s transaction, shm, 1 mirror" % bytes_text(size)
        self.report.add(title, "us", took, "its three copies", three,
                        "<= 1.3" if size == MIB else None)
        self.report.add(title + ", without its own write", "us", over, "its three copies", three)

    def tcp_latency(self):
        """Compares a commit of 8 bytes with bare round trips of as many bytes, with both ends
        waiting alike."""
        words = ["--work", "synthetic", "--size", 8, "--engines", "perseas,pingpong", "--spin-us",
                 SPIN_US, "--far-spin-us", SPIN_US, "--cpu", self.near]
        with self.cluster(1, "--spin-us", str(SPIN_US)) as cluster:
            first = self.program(cluster, "compare", "--mirrors", cluster.tcp(), *words,
                                 "--seconds", 0.1, "--rounds", 1)
            sent = round(first["about"]["perseas"]["bytes_a_commit"])
            result = self.program(cluster, "compare", "--mirrors", cluster.tcp(), *words,
                                  "--store", "again", "--ping-bytes", sent, *self.timed())
        self.results["8 bytes, tcp"] = result
        entry = result["engines"]
        row = self.report.add(
            "8-byte transaction, tcp, 1 mirror, p50", "us",
            [ns / 1e3 for ns in entry["perseas"]["p50s_ns"]], "TCP ping-pong of %d bytes" % sent,
            [ns / 1e3 for ns in entry["pingpong"]["p50s_ns"]], "<= 1.2")
        say("8 bytes over tcp: %.1f us, ping-pong %.1f us" % (row["value"], row["against_value"]))

    def tls(self):
        """Compares large transactions over TLS with the same over plain TCP, round by round."""
        files = tempfile.mkdtemp(prefix="perseas-tls-")
        try:
            authority = Authority(files)
            authority.issue("mirror", "IP:127.0.0.1")
            authority.issue("owner")
            spin = ("--spin-us", str(SPIN_US))
            with self.cluster(1, *spin) as plain, \
                    self.cluster(1, *spin, *authority.options("mirror")) as secure:
                self.tls_rows(plain, secure, {**os.environ, **authority.environment("owner")})
        finally:
            shutil.rmtree(files, ignore_errors=True)

    def cipher_ns(self):
        """Returns what TLS's cipher takes for a byte, in records of TLS's size, as measured by
        openssl."""
        done = subprocess.run(["taskset", "-c", str(self.near), "openssl", "speed", "-mr",
                               "-seconds", "1", "-bytes", "16384", "-evp", "aes-256-gcm"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=True)
        return 1e9 / float(done.stdout.split(":")[-1])

    def tls_rows(self, plain, secure, environment):
        sizes = {8: None, 64 << 10: "<= 2", MIB: "<= 2"}
        took = {(size, name): [] for size in sizes for name in ("tcp", "tls")}
        ciphers = []
        for _ in range(self.rounds):
            ciphers.append(self.cipher_ns())
            for name, cluster, env in (("tcp", plain, None), ("tls", secure, environment)):
                for size in sizes:
                    result = self.program(cluster, "compare", "--work", "synthetic", "--engines",
                                          "perseas", "--mirrors", cluster.tcp(), "--cpu",
                                          self.near, "--size", size, "--spin-us", SPIN_US,
                                          "--seconds", max(self.seconds, 0.3), "--rounds", 1,
                                          env=env)
                    cluster.drop("compare", cluster.tcp(), env=env)
                    took[size, name] += [ns / 1e3 for ns in result["engines"]["perseas"]["p50s_ns"]]
        self.results["tls"] = {"%d %s" % key: rounds for key, rounds in took.items()}
        self.results["tls"]["aes-256-gcm, ns a byte"] = ciphers
        for size, target in sizes.items():
            self.tls_row(size, took[size, "tls"], took[size, "tcp"], target, ciphers)

    def tls_row(self, size, tls, tcp, target, ciphers):
        """Adds rows that compare TLS with tcp, and with tcp plus the cipher. Both ends pass undo
        and data through the cipher: in sequence if nothing overlaps; in parallel, on a processor
        each, if everything does, which is the lower bound."""
        title = "%s transaction, tls, 1 mirror, p50" % bytes_text(size)
        row = self.report.add(title, "us", tls, "tcp", tcp, target)
        say("%s: %.2f times tcp" % (title, row["ratio"]))
        for ends, name, most in ((2, "both ends", "<= 1"), (1, "one end", None)):
            alone = [t + ends * 2 * size * ns / 1e3 for t, ns in zip(tcp, ciphers)]
            if target:
                self.report.add("%s, its limit at %s" % (title, name), "us", tls,
                                "tcp and the cipher at %s" % name, alone, most)

    def threads(self):
        with self.cluster(1, cpus={}) as cluster:
            result = self.program(cluster, "threads", "--mirrors", cluster.unix(), "--threads",
                                  "1,2,4,8", *self.timed())
        self.results["threads, shm"] = result
        self.thread_rows("shm", result, {})

    def threads_far(self):
        self.behind_relay("threads, tcp + 100 us", "tcp with 100 us of added delay", {4: ">= 3"})

    def threads_serial(self):
        """Measures serial transactions, which overlap only in the waits, which are most of their
        time."""
        self.behind_relay("threads, serial, tcp + 100 us",
                          "SERIAL, tcp with 100 us of added delay", {4: ">= 3.5"}, "--serial")

    def behind_relay(self, name, fabric, targets, *options):
        """Measures threads behind the relay, which has its own processor; owner and mirror share
        the other, and sleep at once when they wait."""
        with self.cluster(1, cpus={0: self.near}) as cluster:
            relay = cluster.spawn(self.build / "bench/relay", "--port", cluster.mirrors[0].port,
                                  stdout=subprocess.PIPE, text=True)
            os.sched_setaffinity(relay.pid, {self.far})
            address = "127.0.0.1:%s" % relay.stdout.readline().strip()
            # A transaction takes long here, and a round must have many.
            line = ["taskset", "-c", str(self.near), self.build / "bench/threads", "--mirrors",
                    address, "--threads", "1,4" if self.quick else "1,2,4,8", "--spin-us", 1,
                    "--seconds", max(self.seconds, 0.5), "--rounds", self.rounds, "--json",
                    *options]
            done = cluster.run(*line, seconds=LIMIT_SECONDS)
            if done.returncode:
                raise RuntimeError("threads: status %d\n%s" % (done.returncode, done.stderr))
        result = self.results[name] = json.loads(done.stdout)
        self.thread_rows(fabric, result, targets)

    def thread_rows(self, fabric, result, targets):
        series = {entry["threads"]: entry for entry in result["series"]}
        for count in sorted(series)[1:]:
            row = self.report.add("%d threads, %s, 1 mirror" % (count, fabric), "/s",
                                  series[count]["rates"], "1 thread", series[1]["rates"],
                                  targets.get(count))
            say("%s: %.2f times one thread" % (row["name"], row["ratio"]))

    def mirrors(self):
        """Measures several numbers of mirrors, each with its own store, so they do not take turns.
        The mirrors share one processor, so they must not spin."""
        for fabric, kind in (("shm", "busy_rates"), ("tcp", "rates")):
            one = None
            for count in (1, 2, 3, 4, 5):
                with self.cluster(count) as cluster:
                    result = self.compare("%d mirrors, %s" % (count, fabric), cluster,
                                          "debit-credit", ["perseas"], "--spin-us",
                                          SLEEP_AT_ONCE, fabric=fabric)
                rates = result["engines"]["perseas"][kind]
                one = one or rates
                if count > 1:
                    self.report.add("debit-credit, %s, %d mirrors" % (fabric, count), "/s", rates,
                                    "1 mirror", one)

    def recovery(self):
        sizes = [64 * MIB, GIB] if self.quick else [64 * MIB, 256 * MIB, GIB, 2 * GIB]
        rounds = 5 if not self.quick else 3
        for size in sizes:
            if 4 * size > available():
                say("recovery of %s: there is not enough memory" % bytes_text(size))
                continue
            with self.cluster(1, room=2 * size) as cluster:
                result = self.program(cluster, "reopen", "--mirrors", cluster.unix(), "--make",
                                      "--size", size, "--rounds", rounds, "--against-copy")
            self.results["recovery, %d bytes" % size] = result
            self.recovery_rows(size, result)

    def recovery_rows(self, size, result):
        title = "recovery of %s, shm" % bytes_text(size)
        whole = [a + b for a, b in zip(result["open_ms"]["rounds"], result["map_ms"]["rounds"])]
        row = self.report.add(title, "ms", whole, "memcpy", result["copy_ms"]["rounds"],
                              "<= 1.3" if size == GIB else None)
        self.report.add(title, "ms", whole, "memcpy into new memory",
                        result["copy_new_ms"]["rounds"])
        self.report.add("limit: " + title, "ms", whole, "memcpy into new memory by all processors",
                        result["copy_beside_ms"]["rounds"])
        say("%s: %.0f ms, memcpy %.0f ms" % (title, row["value"], row["against_value"]))

    def found(self):
        """Compares finding changes by the pages that were written with the older way, which
        compares all memory, and with declaring changes. Uses shared memory, so that little else
        takes time."""
        with self.cluster(1, room=400 * MIB) as cluster:
            result = self.program(cluster, "found", "--mirrors", cluster.unix(), "--cpu",
                                  self.near, *self.timed())
        self.results["found"] = result
        rates = {name: entry["busy_rates"] for name, entry in result["ways"].items()}
        title = "PERSEAS_CHECK_WRITES, 64 MiB mapped, 8 bytes changed, shm, 1 mirror"
        for other, target in (("checked-all", ">= 50"), ("declared", None)):
            row = self.report.add(title, "/s", rates["checked"], other, rates[other], target)
            say("%s: %.3g times %s" % (title, row["ratio"], other))
        for pages in (1, 100):
            self.ways(pages)

    def ways(self, pages):
        """Compares set_range, whole pages and page differences, as Rhino's figure 6 does; here the
        library finds the differences."""
        names = ["declared", "whole-pages", "tracked"] + ["tracked-all"] * (pages == 1)
        with self.cluster(1, room=500 * MIB) as cluster:
            result = self.program(cluster, "found", "--mirrors", cluster.unix(), "--cpu",
                                  self.near, "--pages", pages, "--ways", ",".join(names),
                                  *self.timed())
        self.results["found, %d pages" % pages] = result
        took = {name: [1e6 / rate for rate in entry["busy_rates"]]
                for name, entry in result["ways"].items()}
        for name in names[1:]:
            self.report.add("%s, 8 bytes in %d page%s of 64 MiB, shm, 1 mirror" %
                            (name, pages, "s" * (pages > 1)), "us", took[name], "declared",
                            took["declared"])

    def allocating(self, name, *words):
        with self.cluster(1, room=500 * MIB) as cluster:
            result = self.program(cluster, "objects", "--mirrors", cluster.unix(), "--cpu",
                                  self.near, *words, *self.timed())
        self.results[name] = result
        return {way: entry["busy_rates"] for way, entry in result["ways"].items()}

    def objects(self):
        """Compares allocating objects in transactions with libpmemobj, which has one copy and
        flushes nothing, and with declared memory; then with libpmemobj with its default flushes."""
        one = "an object of 64 bytes allocated, another freed, shm, 1 mirror"
        pool = ["--pool", "/dev/shm/perseas-bench-objects"] if self.knows("pmemobj") else []
        rates = self.allocating("objects", *pool)
        if pool:
            peer = "pmemobj (survives: process)"
            row = self.report.add(one, "/s", rates["heap"], peer, rates["pmemobj"], ">= 5")
            say("allocating: %.3g times pmemobj" % row["ratio"])
            self.report.add("limit: the bytes of that, by set_range", "/s", rates["ranges"], peer,
                            rates["pmemobj"])
            flushed = self.allocating("objects, flushed", *pool, "--flush")
            self.report.add(one, "/s", flushed["heap"], "pmemobj that flushes its caches",
                            flushed["pmemobj"])
        self.report.add("malloc and set_range, 256 objects a transaction, shm, 1 mirror", "/s",
                        rates["malloc-many"], "perseas_alloc", rates["heap-many"], "<= 2")

    def inserts(self):
        """Compares threads that insert into a hash table with Berkeley DB and LMDB on files in
        memory. Their commits wait for no other process, and survive the process but not the host.
        Over tcp, a commit that waits survives the host; over shared memory it survives the process,
        as theirs do. All share the processors."""
        peers = [name for name in ("bdb", "bdb-tree", "lmdb") if self.knows("bdb")]
        for fabric, ways, survives in (("tcp", ["hash", "hash-nowait"], "host"),
                                       ("shm", ["hash"], "process")):
            limit = ["bare"] if fabric == "tcp" else []
            result = self.insert(fabric, ways + limit + peers)
            for threads in (8, 1):
                for way in ways:
                    self.insert_rows(result, fabric, way, threads, peers,
                                     survives if way == "hash" else "nothing before the flush")
                for way in limit:
                    self.insert_rows(result, fabric, way, threads, peers, "nothing")

    def insert(self, fabric, ways):
        """Runs the rounds of one fabric. Rounds are short enough for the mirror's memory."""
        folder = tempfile.mkdtemp(prefix="perseas-inserts-", dir="/dev/shm")
        try:
            with self.cluster(1, room=700 * MIB, cpus={}) as cluster:
                mirrors = cluster.unix() if fabric == "shm" else cluster.tcp()
                result = self.program(cluster, "inserts-peers", "--mirrors", mirrors, "--dir",
                                      folder, "--ways", ",".join(ways), "--spin-us", 1,
                                      "--seconds", self.seconds / (3 if fabric == "shm" else 1),
                                      "--rounds", self.rounds)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        self.results["inserts, " + fabric] = result
        return result

    def insert_rows(self, result, fabric, way, threads, peers, survives):
        rates = {name: entry["rates"] for name, entry in result["ways"].items()}
        names = {"hash": "hash table", "hash-nowait": "hash table, NOWAIT, then a flush",
                 "bare": "limit: no table, an answer waited for"}
        for peer in peers:
            # A commit that returned is durable, in the system's own terms.
            target = ">= 1" if threads == 8 and way == "hash" else None
            row = self.report.add(
                "%s, %d thread%s, inserts, %s, 1 mirror (survives: %s)" % (
                    names[way], threads, "s" * (threads > 1), fabric, survives), "/s",
                rates["%s %d" % (way, threads)], "%s (survives: process)" % peer,
                rates["%s %d" % (peer, threads)], target)
            say("%s: %.2f times %s" % (row["name"], row["ratio"], peer))

    def growth(self):
        """Measures several sizes of the database, and several numbers of ranges in a
        transaction."""
        for size in (50 * MIB, 200 * MIB, 800 * MIB, 2 * GIB, 4 * GIB, 8 * GIB):
            # Memory for the owner, its mirror, the engine "local" and the check; with --apart for
            # two of them.
            apart = ["--apart"] if 4 * size + GIB > available() else []
            if 2 * size + GIB > available():
                say("a database of %s: there is not enough memory" % bytes_text(size))
                break
            with self.cluster(1, room=2 * size) as cluster:
                result = self.compare("database, %d bytes" % size, cluster, "tpca-random",
                                      ["perseas", "local"], *apart, size=size // 256 // 32 * 32)
            self.rates("tpca, random, %s, shm, 1 mirror" % bytes_text(size), result, {})
        for ranges in (1, 4, 16, 64, 256):
            with self.cluster(1) as cluster:
                result = self.compare("ranges, %d" % ranges, cluster, "ranges",
                                      ["perseas", "copies", "local", "none"], size=ranges)
            self.rates("ranges of 8 bytes: %d, shm, 1 mirror" % ranges, result, {})

    def nowait(self):
        """Compares commits that do not wait, flushed many at a time, with commits that wait."""
        for mirrors, targets in ((1, {64: ">= 2", 1000: ">= 5"}), (3, {64: None, 1000: ">= 3"})):
            engines = ["perseas"] + ["nowait-%d" % together for together in targets]
            engines += ["gathered-1000"]
            with self.cluster(mirrors, room=400 * MIB) as cluster:
                result = self.compare("nowait, %d mirrors" % mirrors, cluster, "debit-credit",
                                      engines, "--spin-us", SLEEP_AT_ONCE, fabric="tcp")
            took = result["engines"]
            for together, target in targets.items():
                row = self.report.add(
                    "debit-credit, tcp, %d mirror%s, waited for every %d" % (
                        mirrors, "s" if mirrors > 1 else "", together), "/s",
                    took["nowait-%d" % together]["rates"], "every one", took["perseas"]["rates"],
                    target)
                say("%s: %.2f times waiting for every one" % (row["name"], row["ratio"]))
            row = self.report.add(
                "debit-credit, tcp, %d mirror%s, gathered" % (mirrors, "s" if mirrors > 1 else ""),
                "/s", took["gathered-1000"]["rates"], "NOWAIT alone", took["nowait-1000"]["rates"],
                ">= 1.5" if mirrors == 1 else None)
            say("%s: %.2f times NOWAIT alone" % (row["name"], row["ratio"]))

    def limits(self):
        with self.cluster(0) as cluster:
            result = self.program(cluster, "host-limits", "--cpu", self.near, "--dir",
                                  self.build / "bench", *self.timed())
            self.results["limits"] = result
            for name, entry in result.items():
                self.report.add("limit: " + name.replace("_", " of "), "us",
                                [ns / 1e3 for ns in entry["p50s_ns"]])
            for kind, against in (("TCP", "pingpong"), ("Unix-socket", "unix-pingpong")):
                for how, spin in (("spinning", SPIN_US), ("asleep", SLEEP_AT_ONCE)):
                    self.ping(cluster, "%s ping-pong, %s" % (kind, how), spin, against)

    def round_trips(self):
        """Adds rows that compare results over tcp with bare round trips of the same run; a commit
        is one round trip. Both ends spin, or both sleep."""
        limits = {"debit-credit, tcp, 1 mirror": "spinning",
                  "order-entry, tcp, 1 mirror": "spinning",
                  "debit-credit, tcp, 1 mirror on the owner's processor": "asleep",
                  "order-entry, tcp, 1 mirror on the owner's processor": "asleep",
                  "1 mirrors, tcp": "asleep"}
        for name, how in limits.items():
            ping = self.results.get("TCP ping-pong, " + how)
            if not ping or name not in self.results:
                continue
            self.report.add("limit: " + name, "/s",
                            self.results[name]["engines"]["perseas"]["rates"],
                            "TCP ping-pong, " + how,
                            [1e9 / ns for ns in ping["p50s_ns"]])

    def ping(self, cluster, name, spin, against):
        far = 0 if spin == SLEEP_AT_ONCE else spin
        result = self.program(cluster, "compare", "--work", "synthetic", "--size", 8, "--engines",
                              against, "--ping-bytes", 64, "--spin-us", spin, "--far-spin-us", far,
                              "--cpu", self.near, *self.timed())
        self.results[name] = entry = result["engines"][against]
        self.report.add("limit: " + name, "us", [ns / 1e3 for ns in entry["p50s_ns"]])

    def languages(self):
        with self.cluster(1, room=600 * MIB) as cluster:
            self.results["languages"] = languages.measure(self.build, cluster, self.report,
                                                          self.near, self.seconds, self.rounds)

    def rvm(self):
        rvm.measure(self)

    def all(self):
        parts = [self.tcp_latency, self.tls, self.debit_credit, self.order_entry, self.sizes,
                 self.threads_far, self.threads_serial, self.nowait, self.recovery, self.found,
                 self.objects, self.inserts, self.rvm, self.languages, self.limits]
        if RedisPair and self.knows("redis"):
            parts.insert(3, self.redis)
        if not self.quick:
            parts += [self.tpca, self.threads, self.mirrors, self.growth]
            parts += [self.on_disk] if self.knows(ON_DISK[0]) else []
        return parts + [self.round_trips]

    def save(self):
        kept = self.build / "bench/results.json"
        kept.write_text(json.dumps(self.results, indent=1) + "\n")
        table = self.build / "bench.json"
        self.report.write(table)
        return table, kept


def label(name, result):
    about = result["about"][name]
    return name if about["survives"] == "nothing" else "%s (survives: %s)" % (
        name, about["survives"])


def available():
    """Returns the bytes of memory that programs may still take."""
    for row in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if row.startswith("MemAvailable:"):
            return int(row.split()[1]) << 10
    return 0


def bytes_text(count):
    for shift, name in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >> shift and not count & ((1 << shift) - 1):
            return "%d %s" % (count >> shift, name)
    return "%d-byte" % count


def say(text):
    print("  " + text, flush=True)


def run(bench, only):
    """Runs all parts, or those named in `only`. Returns how many failed."""
    failed = 0
    for part in bench.all():
        if only and part.__name__ not in only:
            continue
        try:
            part()
        except (RuntimeError, OSError, TimeoutError, subprocess.TimeoutExpired) as error:
            print("bench: %s: %s" % (part.__name__, error), file=sys.stderr, flush=True)
            failed += 1
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--quick", action="store_true", help="shorter, for a first look")
    parser.add_argument("--only", action="append", metavar="PART",
                        help="debit_credit, redis and so on; may be given more than once")
    args = parser.parse_args()
    bench = Bench(args.build.resolve(), args.quick)
    failed = run(bench, args.only)
    print("\n" + bench.report.table())
    for path in bench.save():
        print(path)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
