/*
 * binding.cpp - tests of client/cpp: what programs do with stores, transactions, heaps, containers
 * and commits that do not wait. tests/cpp/run.py starts it with a mirror.
 */
#include "checks.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#if defined(__cpp_lib_span)
#include <span>
#endif

namespace
{

using perseas::errc;
using perseas::store;
using perseas::transaction;

struct account {
	std::int64_t balance;
	char holder[24];
};

struct bank {
	account accounts[16];
	perseas::p<std::uint64_t> transfers;
	perseas::p<account *> richest;
};

store open_store(const char *name)
{
	return open_small(name).value();
}

/* A store is closed and opened again: what it holds came back from the mirrors. */
void reopen(store &s, const char *name)
{
	s.close();
	s = open_store(name);
}

void test_root()
{
	store s = open_store("root");
	auto b = s.make_root<bank>("bank", [](bank &made) { made.accounts[3].balance = 100; });

	CHECK(b->accounts[3].balance == 100 && b->transfers == 0u);
	const auto given = s.transact([&](transaction &tx) {
		tx.writable(b->accounts[3]).balance -= 30;
		tx.set(b->accounts[4].balance, 30);
		b->transfers += 1;
		b->richest = const_cast<account *>(&b->accounts[3]);
		return 30;
	});

	CHECK(given == 30);
	reopen(s, "root");
	CHECK(b.size() == 1);
	b = s.make_root<bank>("bank", [](bank &made) { made.accounts[3].balance = 7; });
	CHECK(b->accounts[3].balance == 70 && b->accounts[4].balance == 30);
	CHECK(b->transfers == 1u && b->richest->balance == 70);
	CHECK(s.stat().commits == 0 && s.segments().size() == 1);
	CHECK(!s.report().empty());
}

void test_exception_aborts()
{
	store s = open_store("thrown");
	auto n = s.make_root<std::int64_t>("n");
	bool passed = false;

	try {
		s.transact([&](transaction &tx) {
			tx.set(*n, 5);
			throw std::runtime_error("it");
		});
	} catch (const std::runtime_error &e) {
		passed = std::strcmp(e.what(), "it") == 0;
	}
	CHECK(passed && *n == 0);
	CHECK(s.stat().aborts == 1 && s.stat().open == 0);
	/* By hand, too, and by going out of scope. */
	{
		transaction tx(s);

		tx.set(*n, 6);
	}
	CHECK(*n == 0 && s.stat().open == 0);
	/* fn may abort by itself, and still return something. */
	const int value = s.transact([&](transaction &tx) {
		tx.set(*n, 7);
		tx.abort();
		return 3;
	});

	CHECK(value == 3 && *n == 0);
	/* A transaction that was moved to is the one that ends. */
	transaction first = s.begin();
	transaction second = std::move(first);

	second.set(*n, 8);
	CHECK(!first.open() && second.open());
	first = std::move(second);
	first.commit();
	CHECK(*n == 8 && !first.open());
}

void test_references_and_void()
{
	store s = open_store("returns");
	auto n = s.make_root<std::array<int, 4>>("n");
	const int &there = s.transact(
		[&](transaction &tx) -> const int & { return tx.writable((*n)[2]) = 9; });

	CHECK(&there == &(*n)[2] && there == 9);
	const std::unique_ptr<int> moved = s.transact(
		[](transaction &) { return std::make_unique<int>(4); });

	CHECK(*moved == 4);
}

void test_spans()
{
	store s = open_store("spans");
	auto numbers = s.map<int>("numbers", 1000);

	CHECK(!numbers.published() && numbers.size() == 1000);
	std::iota(numbers.initial().begin(), numbers.initial().end(), 0);
	s.publish();
	s.transact([&](transaction &tx) {
		auto part = tx.writable(numbers.span().subspan(10, 20));

		std::reverse(part.begin(), part.end());
		tx.writable(&numbers[999], 1)[0] = -1;
	});
	CHECK(numbers[10] == 29 && numbers[29] == 10 && numbers[30] == 30 && numbers[999] == -1);
	CHECK(s.stat().range_bytes == 21 * sizeof(int));
#if defined(__cpp_lib_span)
	const std::span<const int> standard = numbers.span();

	CHECK(standard.size() == 1000 && standard[30] == 30);
#endif
	reopen(s, "spans");
	numbers = s.map<int>("numbers");
	CHECK(numbers.published() && numbers.size() == 1000 && numbers[29] == 10);
	CHECK(std::accumulate(numbers.begin(), numbers.end(), 0) == 999 * 500 - 1000);
	s.unmap(std::move(numbers));
	CHECK(s.segments().size() == 1 && !s.segments()[0].mapped);
}

void test_growth()
{
	store s = open_store("growth");
	auto numbers = s.map_reserve<int>("numbers", 1024, 1 << 20);
	const int *first = numbers.data();

	numbers.initial()[1023] = 7;
	s.publish();
	s.grow(numbers, 4096);
	CHECK(numbers.size() == 4096 && numbers.data() == first && numbers[1023] == 7);
	CHECK(numbers[4095] == 0);
	s.transact([&](transaction &tx) {
		tx.writable(numbers.span().subspan(1000, 3096))[3095] = 9;
	});
	CHECK_THROWS(errc::size, "", s.grow(numbers, 1024));
	CHECK_THROWS(errc::invalid_argument, "4096", s.grow(numbers, 4097));
	CHECK_THROWS(errc::invalid_argument, "1 TiB", s.grow(numbers, SIZE_MAX));
	CHECK_THROWS(errc::invalid_argument, "1 TiB", s.map_reserve<int>("n", 0, SIZE_MAX));
	CHECK(numbers.size() == 4096);
	auto moved = std::move(numbers);

	CHECK_THROWS(errc::invalid_argument, "", s.grow(numbers, 8192));
	store other = open_store("growth-other");
	auto same = other.map<int>("numbers", 1024);

	CHECK_THROWS(errc::range, "not mapped in this store", s.grow(same, 8192));
	reopen(s, "growth");
	CHECK_THROWS(errc::invalid_argument, "", s.grow(moved, 8192));
	numbers = s.map_reserve<int>("numbers", 0, 1 << 20);
	CHECK(numbers.published() && numbers.size() == 4096 && numbers[4095] == 9);
}

/* Operators of p, each by a transaction of its own. */
void test_p()
{
	struct numbers {
		perseas::p<int> n;
		perseas::p<double> d;
	};
	static_assert(perseas::storable_v<numbers> && sizeof(numbers) == 16);
	store s = open_store("p");
	auto r = s.make_root<numbers>("r");
	int before = 0;

	s.transact([&](transaction &) {
		r->n = 10;
		r->n += 5;
		r->n -= 1;
		r->n *= 4;
		r->n /= 2; /* 28 */
		r->n %= 17;
		r->n |= 4;
		r->n &= 14;
		r->n ^= 1; /* 15 */
		++r->n;
		--r->n;
		before = r->n++;
		before += r->n--;
		r->d = 1;
		r->d /= 4;
	});
	CHECK(r->n == 15 && before == 31 && r->d == 0.25);
	s.transact([&](transaction &tx) { tx.set(r->n, 3); });
	CHECK(r->n.get() == 3);
	/* What it assigns is declared: an abort takes it back. */
	transaction tx(s);
	{
		perseas::scope now(tx);

		r->n = 99;
	}
	tx.abort();
	CHECK(r->n == 3);
}

void test_savepoints()
{
	store s = open_store("saved");
	auto n = s.make_root<std::array<int, 2>>("n");

	s.transact([&](transaction &tx) {
		tx.set((*n)[0], 1);
		const auto point = tx.savepoint();

		tx.set((*n)[0], 2);
		tx.rollback_to(point);
		CHECK((*n)[0] == 1);
		try {
			tx.nested([&](transaction &inner) {
				inner.set((*n)[1], 5);
				throw 1;
			});
		} catch (int) {
		}
		CHECK((*n)[1] == 0);
		CHECK(tx.nested([&](transaction &inner) {
			inner.set((*n)[1], 6);
			return 8;
		}) == 8);
	});
	CHECK((*n)[0] == 1 && (*n)[1] == 6);
}

/* Two threads lock two keys in opposite orders: one of them is refused, and does it again. */
void test_conflicts_are_retried()
{
	store s = open_store("locks");
	auto n = s.make_root<std::array<long, 2>>("n");
	std::atomic<int> calls{ 0 };
	const auto work = [&](unsigned first) {
		for (int i = 0; i < 200; i++)
			s.transact([&](transaction &tx) {
				calls++;
				tx.lock(first);
				tx.set((*n)[first], (*n)[first] + 1);
				tx.lock(1 - first);
				tx.set((*n)[1 - first], (*n)[1 - first] + 1);
			});
	};
	std::thread other(work, 1);

	work(0);
	other.join();
	CHECK((*n)[0] == 400 && (*n)[1] == 400);
	CHECK(calls >= 400);
	/* One refusal for sure: the younger of two asks for what the older has. */
	transaction older(s);
	int tries = 0;

	older.lock(7);
	s.transact([&](transaction &tx) {
		if (++tries == 2)
			return;
		tx.set((*n)[0], -1);
		if (auto had = tx.try_lock(7); !had) {
			CHECK(had.error().code() == errc::conflict);
			older.commit();
			had.value();
		}
	});
	CHECK(tries == 2 && (*n)[0] == 400);
	/* Locks are waited for however many are refused: each of these by another transaction. */
	std::vector<transaction> many;

	for (std::uint64_t key = 0; key < 30; key++) {
		many.emplace_back(s);
		many.back().lock(100 + key);
	}
	tries = 0;
	s.transact([&](transaction &tx) {
		const unsigned each = static_cast<unsigned>(tries++);

		if (each == many.size())
			return;
		const auto had = tx.try_lock(100 + each);

		many[each].abort();
		had.value();
	});
	CHECK(tries == 31);
}

/* A conflict that never ends passes on, and so does another failure. */
void test_conflicts_end()
{
	store s = store("overlap", mirrors_at().mirrors, small().check_overlap());
	auto n = s.make_root<int>("n");
	transaction other(s);
	int calls = 0;

	other.set(*n, 4);
	CHECK_THROWS(errc::conflict, "", s.transact([&](transaction &tx) {
		calls++;
		tx.set(*n, 5);
	}));
	CHECK(calls == 17);
	calls = 0;
	CHECK_REFUSED(errc::conflict, "", s.try_transact([&](transaction &tx) {
		calls++;
		return tx.try_set(*n, 5);
	}));
	CHECK(calls == 17 && *n == 4);
	other.commit();
	CHECK(s.try_transact([&](transaction &tx) { return tx.try_set(*n, 5); }));
	CHECK(*n == 5);
	const auto got = s.try_transact([&](transaction &tx) -> perseas::result<int> {
		tx.set(*n, 6);
		return perseas::failure(errc::cancelled, "no");
	});

	CHECK(!got && got.code() == errc::cancelled && *n == 5);
}

void test_serial()
{
	store s = open_store("serial");
	auto n = s.make_root<long>("n");
	const auto work = [&] {
		for (int i = 0; i < 300; i++)
			s.transact([&](transaction &tx) { tx.set(*n, *n + 1); }, perseas::serial);
	};
	std::thread other(work);

	work();
	other.join();
	CHECK(*n == 600);
	CHECK_THROWS(errc::invalid_argument, "",
	             s.transact(
			     [&](transaction &) {
				     s.transact([](transaction &) {}, perseas::serial);
			     },
			     perseas::serial));
}

void test_pending()
{
	store s = open_store("pending");
	auto n = s.make_root<long>("n");
	auto first = s.transact_async([&](transaction &tx) {
		tx.set(*n, 1);
		return std::string("value");
	});
	auto second = s.transact_async([&](transaction &tx) { tx.set(*n, 2); });

	CHECK(second.token().seq > first.token().seq);
	second.get();
	CHECK(first.ready() && second.wait_for(std::chrono::milliseconds(0)));
	CHECK(first.get() == "value");
	s.transact([&](transaction &tx) { tx.set(*n, 3); }, perseas::nowait);
	s.wait(s.posted());
	CHECK(s.wait(s.posted(), std::chrono::milliseconds(0)));
	CHECK_THROWS(errc::epoch, "", s.wait(perseas_token{ 77, 1 }));
}

void test_completions()
{
	store s = open_store("loop");
	auto n = s.make_root<long>("n");
	perseas::completions loop(s);
	std::vector<std::future<void>> futures;
	int called = 0;

	for (long i = 0; i < 20; i++) {
		auto sent = s.transact_async([&](transaction &tx) { tx.set(*n, i); });

		futures.push_back(loop.future(sent.token()));
		loop.when(sent.token(),
		          [&](const perseas::result<void> &done) { called += !!done; });
	}
	while (loop.wait(std::chrono::milliseconds(1000)))
		;
	CHECK(called == 20 && loop.fd() >= 0);
	for (auto &each : futures)
		each.get();
	/* Of another epoch, which this handle never had; and what is left at the end. */
	auto foreign = loop.future({ 77, 1 });

	CHECK(!loop.dispatch());
	CHECK_THROWS(errc::epoch, "", foreign.get());
	std::future<void> left;
	{
		perseas::completions other(s);

		left = other.future({ s.stat().epoch, 1000 });
	}
	CHECK_THROWS(errc::cancelled, "completions", left.get());
	/* A loop that only waits hears that its store was closed, and so do those in it. */
	left = loop.future({ s.stat().epoch, 1000 });
	s.close();
	CHECK_THROWS(errc::invalid_argument, "closed", loop.wait(std::chrono::seconds(1)));
	CHECK(left.wait_for(std::chrono::seconds(0)) == std::future_status::ready);
	CHECK_THROWS(errc::invalid_argument, "closed", left.get());
}

#if PERSEAS_COROUTINES
struct task {
	struct promise_type {
		task get_return_object() { return {}; }
		std::suspend_never initial_suspend() noexcept { return {}; }
		std::suspend_never final_suspend() noexcept { return {}; }
		void return_void() {}
		void unhandled_exception() { std::terminate(); }
	};
};

task write_twice(store &s, const perseas::root<long> &n, perseas::completions &loop, int &step)
{
	auto sent = s.transact_async([&](transaction &tx) { tx.set(*n, 1); });

	step = 1;
	co_await loop.durable(sent.token());
	step = 2;
	sent = s.transact_async([&](transaction &tx) { tx.set(*n, 2); });
	co_await loop.durable(sent.token());
	step = 3;
	try {
		co_await loop.durable({ 77, 1 });
	} catch (const perseas::error &e) {
		step = e.reason() == errc::epoch ? 4 : -1;
	}
}

void test_coroutines()
{
	store s = open_store("coroutine");
	auto n = s.make_root<long>("n");
	perseas::completions loop(s);
	int step = 0;

	write_twice(s, n, loop, step);
	CHECK(step == 1);
	while (loop.wait(std::chrono::milliseconds(1000)))
		;
	CHECK(step == 4 && *n == 2);
}

/* A coroutine that somebody has, and may destroy while it waits. */
struct held_task {
	struct promise_type {
		held_task get_return_object()
		{
			return { std::coroutine_handle<promise_type>::from_promise(*this) };
		}
		std::suspend_never initial_suspend() noexcept { return {}; }
		std::suspend_always final_suspend() noexcept { return {}; }
		void return_void() {}
		void unhandled_exception() { std::terminate(); }
	};
	std::coroutine_handle<promise_type> handle;
};

/* When it goes on, it destroys the other one, which may be due at the same time. */
held_task outlive(perseas::completions &loop, perseas_token token, held_task &other, int &resumed)
{
	co_await loop.durable(token);
	resumed++;
	if (other.handle)
		std::exchange(other.handle, nullptr).destroy();
}

void test_coroutine_is_destroyed()
{
	store s = open_store("destroyed");
	auto n = s.make_root<long>("n");
	auto loop = std::make_unique<perseas::completions>(s);
	held_task none{}, first{}, second{};
	int resumed = 0;
	const perseas_token never = { s.stat().epoch, 1000 };

	/* By its owner, while it waits for what does not come: nothing is left in the loop. */
	outlive(*loop, never, none, resumed).handle.destroy();
	CHECK(!loop->dispatch() && resumed == 0);
	/* By another coroutine, which is due in the same dispatch. */
	s.transact([&](transaction &tx) { tx.set(*n, 1); });
	first = outlive(*loop, s.posted(), second, resumed);
	second = outlive(*loop, s.posted(), first, resumed);
	CHECK(!loop->dispatch() && resumed == 1);
	CHECK(!first.handle != !second.handle);
	(first.handle ? first : second).handle.destroy();
	/* After its loop, which has told it that nobody looks any more. */
	held_task last = [](perseas::completions &in, perseas_token token) -> held_task {
		try {
			co_await in.durable(token);
		} catch (const perseas::error &e) {
			CHECK(e.reason() == errc::cancelled);
		}
	}(*loop, never);

	loop.reset();
	CHECK(last.handle.done());
	last.handle.destroy();
}
#endif

void test_errors()
{
#define CODE(name, number, text) CHECK(perseas::category().message(name) == text);
	PERSEAS_ERRORS(CODE)
#undef CODE
	CHECK(perseas::make_error_code(errc::timeout) == std::errc::timed_out);
	CHECK(perseas::make_error_code(errc::timeout) != std::errc::invalid_argument);
	CHECK(static_cast<int>(errc::again) == PERSEAS_EAGAIN);
	try {
		store("none", mirrors_at().mirrors);
		CHECK(false);
	} catch (const std::system_error &e) {
		const auto &whole = dynamic_cast<const perseas::error &>(e);

		CHECK(e.code() == errc::no_store && whole.reason() == errc::no_store);
		check_says(whole.sentence(), "none", __LINE__);
		CHECK(std::string(e.what()) ==
		      whole.sentence() + ": " + perseas_strerror(PERSEAS_ENOSTORE));
	}
	store::create("made", mirrors_at().mirrors, small());
	CHECK_REFUSED(errc::exists, "made",
	              store::try_create("made", mirrors_at().mirrors, small()));
	perseas_t *p = nullptr;

	CHECK(perseas_open("made", mirrors_at().mirrors.c_str(), nullptr, &p) == 0);
	store adopted = store::adopt(p);

	CHECK(adopted.c() == p && adopted.is_open());
}

} // namespace

int main(int argc, char **argv)
{
	checks_begin(argc, argv);
	test("a root is made once, changed, and found again", test_root);
	test("an exception aborts and passes on", test_exception_aborts);
	test("what fn returns is returned", test_references_and_void);
	test("spans declare ranges", test_spans);
	test("a segment grows", test_growth);
	test("an assignment to a p declares itself", test_p);
	test("a nested part is taken back by itself", test_savepoints);
	test("a conflict is retried", test_conflicts_are_retried);
	test("a conflict that does not end is passed on", test_conflicts_end);
	test("serial transactions of threads follow one another", test_serial);
	test("a pending commit is waited for", test_pending);
	test("a loop is told of commits", test_completions);
#if PERSEAS_COROUTINES
	test("a coroutine waits for commits", test_coroutines);
	test("a coroutine is destroyed while it waits", test_coroutine_is_destroyed);
#endif
	test("errors have a code, a condition and a sentence", test_errors);
	return checks_end();
}
