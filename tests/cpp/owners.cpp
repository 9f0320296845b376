/*
 * owners.cpp - tests of client/cpp: who owns a store and what is done to it as a whole. Standbys,
 * rosters, figures, segments that are elsewhere or are destroyed, copies, memory on demand, commits
 * in doubt and owners that are fenced. tests/cpp/run.py starts it with two mirrors.
 */
#include "checks.hpp"

#include <atomic>
#include <thread>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace
{

using perseas::errc;
using perseas::name_of;
using perseas::roster_change;
using perseas::standby;
using perseas::store;
using perseas::transaction;
using std::chrono::milliseconds;

store open_store(const char *name)
{
	return open_small(name).value();
}

standby stand_by(const char *name)
{
	return standby(name, mirrors_at().mirrors);
}

void wait_until_owned(const standby &by)
{
	while (by.stat().state != PERSEAS_STANDBY_OWNED)
		std::this_thread::yield();
}

void test_standby()
{
	store s = open_store("stood-by");
	auto n = s.make_root<long>("n");
	standby by = stand_by("stood-by");

	s.transact([&](transaction &tx) { tx.set(*n, 7); });
	wait_until_owned(by);
	CHECK(!by.wait(milliseconds(1)));
	CHECK(by.stat().text[0] && by.mirrors().size() == 1 && by.mirrors()[0].reached);
	CHECK(name_of(PERSEAS_STANDBY_OWNED) == std::string("owned"));
	std::thread leaves([&] { s.close(); });
	store mine = by.wait();

	leaves.join();
	CHECK(mine.stat().epoch == 2 && *mine.make_root<long>("n") == 7);
	CHECK(by.stat().state == PERSEAS_STANDBY_IDLE);
	/* It ends, and the store does not. */
	by.close();
	mine.flush();
	mine.confirm();
	mine.close();
	by = stand_by("stood-by");
	pollfd look = { by.fd(), POLLIN, 0 };

	CHECK(poll(&look, 1, -1) == 1);
	auto due = by.wait(milliseconds(0));

	CHECK(due && due->stat().epoch == 3);
}

void test_standby_is_cancelled()
{
	store s = open_store("cancelled");
	standby by = stand_by("cancelled");
	std::thread cancels([&] { by.cancel(); });

	CHECK_THROWS(errc::cancelled, "", by.wait());
	cancels.join();
	CHECK_THROWS(errc::no_store, "", stand_by("no-such-store").wait());
	CHECK_REFUSED(errc::invalid_argument, "",
	              standby::try_begin("x", mirrors_at().mirrors, perseas::options().takeover()));
}

/* Events reach what was given to the standby, also when that has ended and its store has not. */
void test_events_of_a_standby()
{
	std::atomic<int> heard{ 0 };
	store mine;
	{
		auto count = std::make_shared<int>(0);
		standby by("heard", mirrors_at().mirrors,
		           small().on_event([&heard, count](const perseas::event &e) {
				   heard += name_of(e) != std::string("unknown") && ++*count;
			   }));

		mine = by.wait();
	}
	store next("heard", mirrors_at().mirrors, small().takeover());

	while (!heard)
		std::this_thread::yield();
	(void)mine.try_close();
}

void test_standby_misuse()
{
	store s = open_store("misused");
	standby by = stand_by("misused");
	standby to = std::move(by);

	CHECK_REFUSED(errc::invalid_argument, "moved from", by.try_wait());
	CHECK_REFUSED(errc::invalid_argument, "moved from", by.try_fd());
	CHECK_REFUSED(errc::invalid_argument, "moved from", by.try_cancel());
	by = std::move(to);
	const pid_t child = fork();

	if (child == 0) {
		so_far().good = true;
		CHECK_REFUSED(errc::invalid_argument, "a child of fork", by.try_stat());
		CHECK_REFUSED(errc::invalid_argument, "a child of fork",
		              by.try_wait(milliseconds(0)));
		by.close();
		std::fflush(stdout);
		_exit(so_far().good ? 0 : 1);
	}
	int status = -1;

	CHECK(waitpid(child, &status, 0) == child && status == 0);
	wait_until_owned(by);
	by.close();
	by.close();
	CHECK_REFUSED(errc::invalid_argument, "closed", by.try_stat());
	CHECK_REFUSED(errc::invalid_argument, "closed", by.try_mirrors());
}

void test_roster()
{
	store s = open_store("roster");
	const std::string second = mirrors_at().second;

	s.change_roster(roster_change::add(second).acks(2));
	CHECK(s.stat().acks == 2 && s.mirrors().size() == 2);
	for (const auto &each : s.mirrors())
		CHECK(each.address == second || each.address == mirrors_at().mirrors);
	CHECK(name_of(s.mirrors()[0].state) == std::string("live"));
	CHECK_THROWS(errc::invalid_argument, "",
	             s.change_roster(roster_change::remove("127.0.0.1:1")));
	CHECK_THROWS(errc::invalid_argument, "", s.change_roster(roster_change::cancel()));
	CHECK_THROWS(errc::invalid_argument, "",
	             s.change_roster(roster_change::replace("", second).gone()));
	s.change_roster(roster_change::remove(mirrors_at().mirrors).acks(1).gone());
	for (const auto &each : s.mirrors())
		CHECK((each.address == second) == (each.state != PERSEAS_MIRROR_REMOVED));
	s.close();
	CHECK_REFUSED(errc::invalid_argument, "open it again",
	              s.try_change_roster(roster_change::add(second)));
	CHECK_REFUSED(errc::invalid_argument, "open it again", s.try_mirrors());
}

void test_figures()
{
	store s = open_store("figures");
	auto n = s.make_root<long>("n");

	CHECK(s.latency().percentile(99).count() == 0);
	for (long i = 0; i < 1000; i++)
		s.transact([&](transaction &tx) { tx.set(*n, i); });
	const auto times = s.latency();

	CHECK(times.count() == times.c().count && times.longest().count() >= 0);
	CHECK(times.percentile(100) <= times.longest());
	CHECK(times.bound(0) < times.bound(1));
	CHECK(times.bound(PERSEAS_LATENCY_BUCKETS) == std::chrono::nanoseconds::max());
	transaction first(s), second(s);

	second.set(*n, 4);
	const auto open = s.open_transactions();

	CHECK(open.size() == 2 && open[0].tx == first.c() && open[1].bytes == sizeof(long));
	first.abort();
	second.abort();
	CHECK(s.open_transactions().empty());
	CHECK(perseas::version() == std::string(perseas_version()));
	CHECK(name_of(errc::fenced) == std::string("PERSEAS_EFENCED"));
}

void test_elsewhere()
{
	struct list {
		long value;
		const list *next;
	};
	void *const place = reinterpret_cast<void *>(0x5a0000000000);
	store s = open_store("elsewhere");
	auto made = s.map<list>("list", 2);

	made.initial()[0] = { 1, &made[1] };
	made.initial()[1].value = 2;
	s.publish();
	CHECK(made.moved() == 0);
	s.close();
	s = open_store("elsewhere");
	auto moved = s.map_at<list>("list", 0, place);

	CHECK(moved.data() == place && moved.moved() != 0 && moved.size() == 2);
	CHECK(s.here(moved[0].next) == &moved[1]);
	CHECK(s.recorded(&moved[1]) == moved[0].next);
	CHECK(!s.here(&s) && !s.recorded(&s));
	s.transact([&](transaction &tx) { tx.set(moved[1].value, 5); });
	CHECK_THROWS(errc::conflict, "", s.destroy_segment("list"));
	s.unmap(std::move(moved));
	CHECK(s.map<list>("list")[1].value == 5);
	s.close();
	s = open_store("elsewhere");
	s.destroy_segment("list");
	CHECK_THROWS(errc::no_segment, "", s.destroy_segment("list"));
	CHECK_REFUSED(errc::no_segment, "", s.try_map<list>("list"));
}

void test_copies()
{
	store s = open_store("copied");
	auto numbers = s.map<int>("numbers", 1024);

	numbers.initial()[1] = 7;
	s.publish();
	transaction tx(s);

	tx.writable(numbers.span())[1] = 9;
	const std::vector<int> copy = s.copy_committed(numbers.span());

	CHECK(numbers[1] == 9 && copy.size() == 1024 && copy[1] == 7);
	tx.commit();
	int one = 0, two = 0;
	const perseas::piece pieces[] = { { &numbers[1], sizeof(int), &one },
		                          { &numbers[2], sizeof(int), &two } };
	const auto token = s.try_copy_committed(perseas::span<const perseas::piece>(pieces));

	CHECK(token && token->seq == s.posted().seq && one == 9 && two == 0);
	CHECK_REFUSED(errc::range, "", s.try_copy_committed(perseas::span<const int>(&one, 1)));
}

void test_on_demand()
{
	store s = open_store("on-demand");
	auto numbers = s.map<long>("numbers", 1 << 17);

	for (auto &each : numbers.initial())
		each = 3;
	s.publish();
	s.close();
	s = store("on-demand", mirrors_at().mirrors, small().on_demand());
	numbers = s.map<long>("numbers");
	s.prefetch(numbers.span().subspan(1000, 1000));
	CHECK(numbers[numbers.size() - 1] == 3);
	s.wait_whole();
	CHECK(s.stat().missing == 0 && numbers[12345] == 3);
	s.wait_whole(milliseconds(0));
}

/* The only mirror hangs: the commit is applied, and in doubt until the mirror goes on. */
void test_doubt()
{
	store s("doubt", mirrors_at().tcp, small().commit_timeout(std::chrono::seconds(1)));
	auto n = s.make_root<long>("n");

	mirror_stop();
	CHECK_THROWS(errc::in_doubt, "", s.transact([&](transaction &tx) { tx.set(*n, 5); }));
	CHECK(*n == 5 && s.stat().open == 0);
	CHECK_THROWS(errc::blocked, "", s.transact([&](transaction &tx) { tx.set(*n, 6); }));
	CHECK(*n == 5);
	mirror_continue();
	while (!s.try_flush())
		;
	s.transact([&](transaction &tx) { tx.set(*n, 6); });
	CHECK(*n == 6);
}

void test_fenced()
{
	store s = open_store("fenced");
	auto n = s.make_root<long>("n");
	std::atomic<int> events{ 0 };

	s.close();
	s = store("fenced", mirrors_at().mirrors,
	          small().on_event([&](const perseas::event &e) { events += e.text[0] != 0; }));
	n = s.make_root<long>("n");
	perseas::completions loop(s);
	store next("fenced", mirrors_at().mirrors, small().takeover());

	CHECK_THROWS(errc::fenced, "",
	             for (;;) s.transact([&](transaction &tx) { tx.set(*n, 5); }));
	auto future = loop.future({ s.stat().epoch, 1000 });

	CHECK_REFUSED(errc::fenced, "", loop.try_dispatch());
	CHECK_THROWS(errc::fenced, "", future.get());
	while (!events)
		std::this_thread::yield(); /* it is told in a thread of the library */
	(void)s.try_close();
}

/* Threads use two stores in either order. A transact inside of another one passes on what would
 * deadlock, and the outer one begins again. */
void test_two_stores()
{
	store left = open_store("left"), right = open_store("right");
	auto in_left = left.make_root<long>("n"), in_right = right.make_root<long>("n");
	const auto add = [](store &s, const long &n, const auto &then) {
		s.transact(
			[&](transaction &tx) {
				tx.set(n, n + 1);
				then();
			},
			perseas::serial);
	};
	const auto work = [&](store &first, const long &one, store &second, const long &other) {
		for (int done = 0; done < 40;) {
			try {
				add(first, one, [&] { add(second, other, [] {}); });
				done++;
			} catch (const perseas::error &e) {
				CHECK(e.reason() == errc::conflict);
				check_says(e.sentence(), "would deadlock", __LINE__);
			}
		}
	};
	std::thread there([&] { work(right, *in_right, left, *in_left); });

	work(left, *in_left, right, *in_right);
	there.join();
	/* An inner one may be done more often. */
	CHECK(*in_left >= 80 && *in_right >= 80);
}

} // namespace

int main(int argc, char **argv)
{
	checks_begin(argc, argv);
	test("a standby owns the store when its owner has closed it", test_standby);
	test("a standby is cancelled, and refuses what it cannot do", test_standby_is_cancelled);
	test("events outlive the standby that was given their function", test_events_of_a_standby);
	test("a standby that is over, moved or the parent's is refused", test_standby_misuse);
	test("a roster changes while the store is open", test_roster);
	test("a store says how it is", test_figures);
	test("segments are mapped elsewhere, and destroyed", test_elsewhere);
	test("a copy has what is committed", test_copies);
	test("memory comes on demand", test_on_demand);
	test("a commit in doubt is applied, and says so", test_doubt);
	test("an owner that is fenced is told", test_fenced);
	test("two stores do not deadlock", test_two_stores);
	return checks_end();
}
