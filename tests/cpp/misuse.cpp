/*
 * misuse.cpp - tests of client/cpp: whatever is used too late, too early, or by somebody who must
 * not, ends in an error that says what to do. tests/cpp/run.py starts it with a mirror, and looks
 * at how it ends: a store of it is a global.
 */
#include "checks.hpp"

#include <array>
#include <atomic>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

namespace
{

using perseas::errc;
using perseas::store;
using perseas::transaction;

/* Opened in main: when their destructors run, the library may have tidied up. */
store late;
perseas::standby late_standby;

/* Its destructor runs before those of what main opened first, and after the process said that it
 * exits. */
struct last_words {
	template <class R>
	static bool says(const R &refused)
	{
		return !refused &&
		       refused.error().sentence().find("before main returns") != std::string::npos;
	}
	~last_words()
	{
		const auto refused = late.try_flush();
		const auto stat = late_standby.try_stat();
		const bool good = !late.is_open() && says(refused) && says(stat);

		std::printf("%s\n", good ? "refused at the end" : "not refused at the end");
		std::fflush(stdout);
	}
} words;

store open_store(const char *name)
{
	return open_small(name).value();
}

struct number {
	static constexpr std::uint64_t perseas_type = 1;
	long value;
};

void test_use_after_close()
{
	store s = open_store("closed");
	auto n = s.make_root<long>("n");
	auto many = s.map<int>("many", 10);
	perseas::heap h(s, "h");
	auto sent = s.transact_async([&](transaction &tx) { tx.set(*n, 1); });
	perseas::completions loop(s);
	auto future = loop.future(sent.token());
	perseas::span<const int> reads = many.span(), part = reads.subspan(2, 3);
	perseas::span<int> writes;
	perseas::span<number> array;

	s.publish();
	s.transact([&](transaction &tx) {
		writes = tx.writable(reads);
		array = h.make_array<number>(tx, 3);
	});
	CHECK(reads[3] == 0 && part.back() == 0 && writes.front() == 0 && array.size() == 3);
	s.close();
	CHECK_THROWS(errc::invalid_argument, "open it again", (void)reads[3]);
	CHECK_THROWS(errc::invalid_argument, "open it again", (void)part.begin());
	CHECK_THROWS(errc::invalid_argument, "open it again", (void)part.end());
	CHECK_THROWS(errc::invalid_argument, "open it again", (void)reads.subspan(1, 2).back());
	CHECK_THROWS(errc::invalid_argument, "open it again", writes[0] = 1);
	CHECK_THROWS(errc::invalid_argument, "open it again", (void)writes.data());
	CHECK_THROWS(errc::invalid_argument, "open it again", (void)array.front());
	CHECK(!s.is_open() && !s.c() && !h.c() && s.report().empty() && s.segments().empty());
	CHECK_REFUSED(errc::invalid_argument, "open it again", s.try_close());
	CHECK_REFUSED(errc::invalid_argument, "open it again", s.try_flush());
	CHECK_REFUSED(errc::invalid_argument, "open it again", s.try_begin());
	CHECK_REFUSED(errc::invalid_argument, "open it again", s.try_map<int>("many"));
	CHECK_REFUSED(errc::invalid_argument, "open it again", s.try_stat());
	CHECK_REFUSED(errc::invalid_argument, "open it again", s.try_unmap(std::move(many)));
	CHECK_REFUSED(errc::invalid_argument, "open it again",
	              s.try_transact([](transaction &) { return perseas::result<void>(); }));
	CHECK_THROWS(errc::invalid_argument, "open it again", s.transact([](transaction &) {}));
	CHECK_THROWS(errc::invalid_argument, "open it again", (void)*n);
	CHECK_THROWS(errc::invalid_argument, "open it again", (void)many[3]);
	CHECK_THROWS(errc::invalid_argument, "open it again", (void)many.span());
	CHECK_THROWS(errc::invalid_argument, "open it again", sent.get());
	CHECK_REFUSED(errc::invalid_argument, "open it again", h.try_root<number>("r"));
	CHECK_REFUSED(errc::invalid_argument, "open it again", h.try_check());
	CHECK_REFUSED(errc::invalid_argument, "open it again", h.try_stat());
	CHECK_THROWS(errc::invalid_argument, "open it again",
	             h.walk<number>([](const number &) {}));
	CHECK_REFUSED(errc::invalid_argument, "open it again", loop.try_fd());
	CHECK_REFUSED(errc::invalid_argument, "open it again", loop.try_dispatch());
	CHECK_THROWS(errc::invalid_argument, "open it again", future.get());
	/* Its memory is another store's now; nobody takes the one for the other. */
	store other = open_store("other");

	CHECK_REFUSED(errc::invalid_argument, "open it again", h.try_root<number>("r"));
	CHECK_THROWS(errc::invalid_argument, "open it again", (void)*n);
	CHECK(other.is_open());
}

void test_use_after_move()
{
	store s = open_store("moved");
	store to = std::move(s);

	CHECK_REFUSED(errc::invalid_argument, "moved from", s.try_flush());
	CHECK_REFUSED(errc::invalid_argument, "moved from", s.try_close());
	CHECK(to.try_flush());
	CHECK_REFUSED(errc::invalid_argument, "never opened", store().try_begin());
	CHECK_REFUSED(errc::invalid_argument, "never opened", store::adopt(nullptr).try_begin());
	auto n = to.make_root<long>("n");
	auto moved = std::move(n);

	CHECK_THROWS(errc::invalid_argument, "moved from", (void)*n);
	transaction tx(to);
	transaction next = std::move(tx);

	CHECK_REFUSED(errc::ended, "moved from", tx.try_set(*moved, 4));
	CHECK_REFUSED(errc::ended, "begin another", tx.try_commit());
	CHECK_REFUSED(errc::ended, "begin another", tx.try_abort());
	CHECK_REFUSED(errc::ended, "begin another", tx.try_retry());
	next.set(*moved, 5);
	next.commit();
	CHECK_REFUSED(errc::ended, "begin another", next.try_commit());
	CHECK_REFUSED(errc::ended, "begin another", next.try_lock(4));
	CHECK_REFUSED(errc::ended, "begin another", next.try_savepoint());
	CHECK(*moved == 5);
}

/* A transaction that outlives its store, and one in whose function the store is closed. */
void test_outliving()
{
	store s = open_store("outlived");
	auto n = s.make_root<long>("n");
	{
		transaction tx(s);

		tx.set(*n, 4);
		s.close();
		CHECK(!tx.open() && !tx.c());
		CHECK_REFUSED(errc::ended, "open the store again", tx.try_writable_bytes(&tx, 8));
		CHECK_REFUSED(errc::ended, "open the store again", tx.try_commit());
		CHECK_REFUSED(errc::ended, "open the store again", tx.try_abort());
	}
	s = open_store("outlived");
	n = s.make_root<long>("n");
	CHECK(*n == 0);
	CHECK_THROWS(errc::conflict, "", s.transact([&](transaction &tx) {
		tx.set(*n, 7);
		s.close();
		perseas::detail::raise({ errc::conflict, "after all" });
	}));
	s = open_store("outlived");
	n = s.make_root<long>("n");
	CHECK(*n == 0);
	/* It must not look as if it had been committed. */
	CHECK_THROWS(errc::ended, "open the store again", s.transact([&](transaction &tx) {
		tx.set(*n, 7);
		s.close();
	}));
}

/* A second thread comes while the first waits for a mirror that hangs, in its commit. */
void test_two_threads()
{
	store s("threads", mirrors_at().tcp, small().commit_timeout(std::chrono::minutes(1)));
	auto n = s.make_root<long>("n");
	transaction tx(s);
	const auto before = s.stat().seq;

	tx.set(*n, 4);
	mirror_stop();
	std::thread first([&] { tx.commit(); });

	while (s.stat().seq == before)
		std::this_thread::yield(); /* until the commit is posted */
	CHECK_REFUSED(errc::invalid_argument, "give each its own", tx.try_set(*n, 5));
	CHECK_REFUSED(errc::invalid_argument, "give each its own", tx.try_commit());
	CHECK_REFUSED(errc::invalid_argument, "give each its own", tx.try_abort());
	mirror_continue();
	first.join();
	CHECK(*n == 4);
	CHECK_REFUSED(errc::ended, "begin another", tx.try_set(*n, 5));
}

std::atomic<int> signals_handled{ 0 };

void count_signal(int)
{
	signals_handled++;
}

/* It is handled at once, in the thread that commits, while the mirror hangs; the commit is neither
 * cut short nor done twice, and the next owner has all of it. */
void test_signal_in_a_commit()
{
	struct pair {
		long first, second;
	};
	store s("signals", mirrors_at().tcp, small().commit_timeout(std::chrono::minutes(1)));
	auto n = s.make_root<pair>("n");
	struct sigaction action {
	};
	struct sigaction before {
	};
	const auto posted = s.stat().seq;
	const pthread_t committer = pthread_self();

	action.sa_handler = count_signal; /* without SA_RESTART: system calls end with EINTR */
	CHECK(sigaction(SIGUSR1, &action, &before) == 0);
	mirror_stop();
	std::thread interrupts([&] {
		while (s.stat().seq == posted)
			std::this_thread::yield();
		for (int i = 1; i <= 5; i++) {
			pthread_kill(committer, SIGUSR1);
			while (signals_handled < i)
				std::this_thread::yield();
		}
		mirror_continue();
	});

	s.transact([&](transaction &tx) {
		tx.writable(*n).first += 1;
		tx.writable(*n).second += 1;
	});
	interrupts.join();
	CHECK(sigaction(SIGUSR1, &before, nullptr) == 0);
	CHECK(signals_handled == 5 && s.stat().seq == posted + 1);
	s.close();
	s = store("signals", mirrors_at().tcp, small());
	n = s.make_root<pair>("n");
	CHECK(n->first == 1 && n->second == 1);
}

/* In the child of a fork everything is refused, and the parent goes on. */
void test_fork()
{
	store s = open_store("forked");
	auto n = s.make_root<long>("n");
	transaction open(s);
	const pid_t child = fork();

	if (child == 0) {
		so_far().good = true;
		CHECK(!s.is_open() && !s.c());
		CHECK_REFUSED(errc::invalid_argument, "parent", s.try_flush());
		CHECK_REFUSED(errc::invalid_argument, "parent", s.try_begin());
		CHECK_REFUSED(errc::invalid_argument, "parent", s.try_close());
		CHECK_REFUSED(errc::invalid_argument, "parent", open.try_writable_bytes(&child, 4));
		CHECK_THROWS(errc::invalid_argument, "parent", (void)*n);
		{
			/* Both end here, and touch nothing of the parent's. */
			transaction ends = std::move(open);
			store closes = std::move(s);
		}
		/* It may own a store of its own. */
		store own = open_store("of-the-child");

		CHECK(own.try_flush());
		own.close();
		std::fflush(stdout);
		_exit(so_far().good ? 0 : 1);
	}
	int status = -1;

	CHECK(waitpid(child, &status, 0) == child && status == 0);
	open.set(*n, 3);
	open.commit();
	CHECK(*n == 3);
}

void test_p_without_a_transaction()
{
	struct counted {
		perseas::p<int> n;
	};
	store s = open_store("bare");
	auto r = s.make_root<counted>("r");
	counted copy = *r;

	CHECK_THROWS(errc::invalid_argument, "store.transact", r->n = 5);
	s.transact([&](transaction &tx) {
		std::thread([&] {
			CHECK_THROWS(errc::invalid_argument, "this thread", r->n = 5);
		}).join();
		CHECK_THROWS(errc::range, "", copy.n = 5);
		CHECK_THROWS(errc::range, "", tx.set(copy.n, 5));
	});
	CHECK(r->n == 0 && copy.n == 0);
	transaction tx(s);
	perseas::scope now(tx);

	tx.commit();
	CHECK_THROWS(errc::ended, "begin another", r->n = 5);
}

void test_wrong_segments()
{
	store s = open_store("segments");
	auto bytes = s.map<char>("bytes", 10);

	s.publish();
	CHECK_REFUSED(errc::size, "no whole number", s.try_map<int>("bytes"));
	CHECK_REFUSED(errc::size, "", s.try_map<int>("bytes", 4));
	CHECK_REFUSED(errc::invalid_argument, "1 TiB", s.try_map<int>("more", SIZE_MAX / 2));
	CHECK_REFUSED(errc::no_segment, "", s.try_map<int>("none"));
	CHECK_THROWS(errc::range, "element 10 of 10", (void)bytes[10]);
	CHECK_THROWS(errc::range, "element 10 of 10", (void)bytes.span()[10]);
	CHECK_THROWS(errc::range, "ends at 11 of 10", (void)bytes.span().subspan(8, 3));
	CHECK_THROWS(errc::range, "of 10", (void)bytes.span().subspan(11, 0));
	CHECK_THROWS(errc::range, "of 10", (void)bytes.span().subspan(2, SIZE_MAX));
	CHECK_THROWS(errc::range, "of 0", (void)perseas::span<int>().back());
	CHECK(bytes.span().subspan(8, 2).size() == 2 && bytes.span().first(0).empty());
	CHECK_THROWS(errc::invalid_argument, "by a transaction", (void)bytes.initial());
	bytes = s.map<char>("bytes");
	CHECK_THROWS(errc::invalid_argument, "by a transaction", (void)bytes.initial());
	bool thrown = false;

	try {
		(void)s.make_root<long>("half", [](long &made) {
			made = 5;
			throw 1;
		});
	} catch (int) {
		thrown = true;
	}
	s.publish();
	CHECK(thrown);
	CHECK_REFUSED(errc::no_segment, "", s.try_map<long>("half"));
	CHECK(*s.make_root<long>("half") == 0);
	transaction tx(s);

	CHECK_REFUSED(errc::range, "", tx.try_set(*"outside", 'c'));
}

void test_two_stores()
{
	store a = open_store("one"), b = open_store("two");
	perseas::heap h(a, "h");
	auto n = a.make_root<long>("n");
	transaction in_b(b);

	CHECK_REFUSED(errc::invalid_argument, "another store", h.try_make<number>(in_b, 4));
	CHECK_REFUSED(errc::range, "", in_b.try_set(*n, 4));
}

void test_kept_misuse()
{
	store s("kept-wrongly", mirrors_at().mirrors, small().log_size(1 << 20).tracked());
	perseas::kept<std::pmr::vector<int>> v(s, "v", 8192);

	CHECK_THROWS(errc::invalid_argument, "perseas::track",
	             s.transact([&](transaction &tx) { v.writable(tx).push_back(1); }));
	/* A reference that was kept from a transaction before cannot allocate, either. */
	std::pmr::vector<int> *kept_too_long = nullptr;

	s.transact([&](transaction &tx) { kept_too_long = &v.writable(tx); }, perseas::track);
	CHECK_THROWS(errc::invalid_argument, "perseas::track", kept_too_long->resize(100));
	CHECK_THROWS(errc::size, "at least 4096",
	             perseas::kept<std::pmr::vector<int>>(s, "small", 100));
	CHECK_THROWS(errc::size, "same T and library", perseas::kept<std::pmr::string>(s, "v"));
	(void)s.map<char>("other", 8192);
	s.publish();
	CHECK_THROWS(errc::invalid_argument, "another name",
	             perseas::kept<std::pmr::string>(s, "other"));
	store next("kept-next", mirrors_at().mirrors, small().log_size(1 << 20).tracked());

	CHECK_THROWS(errc::invalid_argument, "its store",
	             next.transact(
			     [&](transaction &tx) {
				     s.transact([&](transaction &) { v.writable(tx).push_back(1); },
		                                perseas::track);
			     },
			     perseas::track));
	CHECK(v->empty());
	s.close();
	CHECK_THROWS(errc::invalid_argument, "open it again", (void)v->size());
	/* A store that was opened without tracked(). */
	s = open_store("kept-wrongly");
	perseas::kept<std::pmr::vector<int>> again(s, "v");

	CHECK_THROWS(errc::invalid_argument, "PERSEAS_TRACKED",
	             s.transact([](transaction &) {}, perseas::track));
}

} // namespace

int main(int argc, char **argv)
{
	checks_begin(argc, argv);
	late = open_store("late");
	late_standby = perseas::standby("late", mirrors_at().mirrors);
	test("what is used after close is refused", test_use_after_close);
	test("what is used after a move is refused", test_use_after_move);
	test("a transaction that outlives its store is refused", test_outliving);
	test("a second thread in a transaction is refused", test_two_threads);
	test("a signal does not cut a commit", test_signal_in_a_commit);
	test("a child of fork is refused, and harms nothing", test_fork);
	test("an assignment to a p needs a transaction", test_p_without_a_transaction);
	test("a segment is mapped as what it is", test_wrong_segments);
	test("a transaction is of one store", test_two_stores);
	test("what is kept changes only where that is found", test_kept_misuse);
	return checks_end();
}
