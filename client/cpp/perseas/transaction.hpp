/*
 * transaction.hpp - a transaction that ends with its scope. perseas.hpp includes it.
 *
 * Each function that may fail exists twice: try_x() returns a perseas::result, and x() throws
 * perseas::error. perseas.h, and the headers that it includes, list the errors at the C function of
 * the same purpose.
 */
#ifndef PERSEAS_CPP_TRANSACTION_HPP
#define PERSEAS_CPP_TRANSACTION_HPP

#include "session.hpp"
#include "span.hpp"
#include "storable.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace perseas
{

class store;
class heap;
template <class T>
class kept;

/* How a transaction begins and ends. */
enum class mode : unsigned {
	plain = 0,
	serial = 1, /* serialized with all other serial transactions (PERSEAS_SERIAL) */
	track = 2,  /* the library finds the changes; declaring is unnecessary (PERSEAS_TRACK) */
	nowait = 4, /* its commit does not wait for mirrors (PERSEAS_NOWAIT) */
	/* With nowait: fails with errc::again instead of waiting for space (PERSEAS_NOBLOCK). */
	noblock = 8
};

constexpr mode operator|(mode a, mode b) noexcept
{
	return static_cast<mode>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr bool has(mode all, mode one) noexcept
{
	return (static_cast<unsigned>(all) & static_cast<unsigned>(one)) != 0;
}

inline constexpr mode serial = mode::serial, track = mode::track, nowait = mode::nowait,
		      noblock = mode::noblock;

static_assert(static_cast<unsigned>(mode::serial) == PERSEAS_SERIAL &&
              static_cast<unsigned>(mode::track) == PERSEAS_TRACK &&
              static_cast<unsigned>(mode::noblock) / static_cast<unsigned>(mode::nowait) ==
                      PERSEAS_NOBLOCK / PERSEAS_NOWAIT);

/* A point to which a transaction can be rolled back. It ends with the transaction. */
struct savepoint_mark {
	std::uint64_t number = 0;
};

namespace detail
{

template <class T>
constexpr void expect_settable()
{
	static_assert(!std::is_array_v<T>,
	              "perseas: set() stores one object; declare arrays by writable()");
	expect_storable<T>();
}

/* Stores a value in a declared object, also if T is a perseas::p. */
template <class T>
void store_value(const T &place, const T &value) noexcept
{
	::new (static_cast<void *>(const_cast<T *>(std::addressof(place)))) T(value);
}

} // namespace detail

/*
 * A transaction. If it is neither committed nor aborted, its destructor aborts it: so an exception
 * rolls it back. Closing its store ends it; later calls then fail.
 *
 * One thread at a time may use it. A call fails if it notices that another thread is in a call.
 */
class transaction
{
    public:
#if PERSEAS_EXCEPTIONS
	/* Begins a transaction. mode::nowait and mode::noblock have no effect here; they belong to
	 * commit(). */
	explicit transaction(store &in, mode how = mode::plain);
#endif
	transaction(transaction &&other) noexcept
	    : session_(other.session_), tx_(std::exchange(other.tx_, nullptr)), how_(other.how_),
	      usable_(other.usable_.exchange(false))
	{
	}
	transaction &operator=(transaction &&other) noexcept
	{
		if (this != &other) {
			abort_if_open();
			session_ = other.session_;
			tx_ = std::exchange(other.tx_, nullptr);
			how_ = other.how_;
			usable_.store(other.usable_.exchange(false));
		}
		return *this;
	}
	transaction(const transaction &) = delete;
	transaction &operator=(const transaction &) = delete;
	~transaction()
	{
		abort_if_open();
	}

	/* Returns true if neither the transaction nor its store has ended. */
	bool open() const noexcept
	{
		return tx_ && session_.alive();
	}
	mode how() const noexcept
	{
		return how_;
	}
	/* Returns the transaction for the C interface, which must not end it; nullptr if it has
	 * ended. */
	perseas_tx_t *c() const noexcept
	{
		return open() ? tx_ : nullptr;
	}

	/* Declares that the transaction may change `size` bytes. */
	result<void> try_writable_bytes(const void *at, std::size_t size)
	{
		return to_result(declare(at, size));
	}

	/* Declares a range and returns it for changes. A transaction with track need not declare;
	 * there the call only checks that the range could be declared. */
	template <class T>
	result<span<std::remove_const_t<T>>> try_writable(span<T> range)
	{
		detail::expect_storable<T>();
		if (auto done = try_writable_bytes(range.address(), range.size_bytes()); !done)
			return done.error();
		return span<std::remove_const_t<T>>(const_cast<std::remove_const_t<T> *>(
							    range.address()),
		                                    range.size(), session_);
	}

	/* Declares one object and stores `value` in it. */
	template <class T, class U = T>
	result<void> try_set(const T &place, U &&value)
	{
		detail::expect_settable<T>();
		const T made = static_cast<T>(std::forward<U>(value));
		const int rc = declare(std::addressof(place), sizeof(T));

		if (__builtin_expect(rc == 0, 1))
			detail::store_value(place, made);
		return to_result(rc);
	}

	/* Commits. Returns when W mirrors hold the transaction; with mode::nowait, once it is on
	 * its way. After errc::in_doubt and errc::fenced the transaction has ended; after other
	 * failures it is still open. */
	result<void> try_commit(mode end = mode::plain)
	{
		return to_result(send(end));
	}
	/* Commits like try_commit, and returns the transaction's token. */
	result<perseas_token> try_commit_token(mode end = mode::nowait)
	{
		perseas_token token{};
		const int rc = end_by(
			[&] { return perseas_commit_token(tx_, commit_flags(end), &token); });

		return rc ? result<perseas_token>(why(rc)) : result<perseas_token>(token);
	}
	/* Rolls back all changes and ends the transaction. */
	result<void> try_abort()
	{
		return to_result(end_by([&] { return perseas_abort(tx_); }));
	}

	/* Takes a lock, which the transaction has until it ends. After errc::conflict call retry()
	 * or abort(). */
	result<void> try_lock(std::uint64_t key, perseas_lock_mode how = PERSEAS_LOCK_EXCLUSIVE)
	{
		return to_result(call([&] { return perseas_lock(tx_, key, how); }));
	}
	result<void> try_lock_shared(std::uint64_t key)
	{
		return try_lock(key, PERSEAS_LOCK_SHARED);
	}
	/* Rolls back all changes, releases the locks, and begins again with the same age. */
	result<void> try_retry()
	{
		const int rc = call([&] { return perseas_retry(tx_); });

		if (rc < 0)
			mark_ended();
		return to_result(rc);
	}

	result<savepoint_mark> try_savepoint()
	{
		savepoint_mark made;

		const int rc = call([&] { return perseas_savepoint(tx_, &made.number); });

		return rc ? result<savepoint_mark>(why(rc)) : result<savepoint_mark>(made);
	}
	result<void> try_rollback_to(savepoint_mark to)
	{
		return to_result(call([&] { return perseas_rollback_to(tx_, to.number); }));
	}

#if PERSEAS_EXCEPTIONS
	void writable_bytes(const void *at, std::size_t size)
	{
		expect(declare(at, size));
	}

	/* Declares an object that was read as const, and returns it for changes. */
	template <class T>
	T &writable(const T &object)
	{
		detail::expect_storable<T>();
		writable_bytes(std::addressof(object), sizeof(T));
		return const_cast<T &>(object);
	}
	template <class T>
	span<std::remove_const_t<T>> writable(span<T> range)
	{
		return try_writable(range).value();
	}
	template <class T>
	span<std::remove_const_t<T>> writable(T *first, std::size_t count)
	{
		return writable(span<T>(first, count));
	}
	template <class T, class U = T>
	void set(const T &place, U &&value)
	{
		detail::expect_settable<T>();
		const T made = static_cast<T>(std::forward<U>(value));

		expect(declare(std::addressof(place), sizeof(T)));
		detail::store_value(place, made);
	}

	void commit(mode end = mode::plain)
	{
		expect(send(end));
	}
	perseas_token commit_token(mode end = mode::nowait)
	{
		return try_commit_token(end).value();
	}
	void abort()
	{
		try_abort().value();
	}
	void lock(std::uint64_t key)
	{
		try_lock(key).value();
	}
	void lock_shared(std::uint64_t key)
	{
		try_lock_shared(key).value();
	}
	void retry()
	{
		try_retry().value();
	}
	savepoint_mark savepoint()
	{
		return try_savepoint().value();
	}
	void rollback_to(savepoint_mark to)
	{
		try_rollback_to(to).value();
	}

	/* Calls fn(*this) and returns its value. An exception rolls back the changes of fn, and
	 * only these, and propagates. */
	template <class F>
	decltype(auto) nested(F &&fn)
	{
		const savepoint_mark before = savepoint();

		try {
			return std::forward<F>(fn)(*this);
		} catch (...) {
			if (open())
				rollback_to(before);
			throw;
		}
	}
#endif

    private:
	friend class store;
	friend class heap;
	template <class T>
	friend class kept;

	explicit transaction(detail::session_ref session) noexcept : session_(session) {}

	int begin(mode how)
	{
		const unsigned flags = static_cast<unsigned>(how) &
		                       static_cast<unsigned>(mode::serial | mode::track);

		if (!session_.alive())
			return detail::refused;
		how_ = how;
		const int rc = perseas_begin(session_.handle(), flags, &tx_);

		if (__builtin_expect(rc == 0, 1)) {
			usable_.store(true, std::memory_order_relaxed);
			if (has(how, mode::track))
				session_.s->tracking.store(true, std::memory_order_relaxed);
		}
		return rc;
	}

	static unsigned commit_flags(mode end) noexcept
	{
		constexpr unsigned parting = static_cast<unsigned>(mode::nowait) / PERSEAS_NOWAIT;
		constexpr unsigned known = PERSEAS_NOWAIT + PERSEAS_NOBLOCK;

		return static_cast<unsigned>(end) / parting & known;
	}

	bool refused() const noexcept
	{
		return !usable_.load(std::memory_order_relaxed) || !session_.alive();
	}
	[[gnu::cold, gnu::noinline]] failure refusal() const
	{
		if (!tx_)
			return { errc::ended,
				 "the transaction has ended, or was moved from: begin another "
				 "one" };
		if (session_.alive())
			return { errc::invalid_argument,
				 "another thread is in a call of this transaction: one thread at a "
				 "time may use it, so give each its own" };
		if (session_.s->id.load() == 0 && session_.s->why.load() != detail::gone::closed)
			return session_.refusal();
		return { errc::ended,
			 "the store was closed, which ended this transaction: what it had "
			 "not committed is lost; open the store again" };
	}

	/* Calls the library. Returns its code, or detail::refused if the transaction cannot be
	 * used. */
	template <class F>
	int call(F &&function)
	{
		if (__builtin_expect(refused(), 0))
			return detail::refused;
		usable_.store(false, std::memory_order_relaxed);
		const int rc = function();

		usable_.store(true, std::memory_order_relaxed);
		return rc;
	}
	/* Calls a function of the library that may end the transaction. */
	template <class F>
	int end_by(F &&function)
	{
		const int rc = call(std::forward<F>(function));

		if (rc == 0 || rc == PERSEAS_EINDOUBT || rc == PERSEAS_EFENCED ||
		    rc == PERSEAS_EENDED)
			mark_ended();
		return rc;
	}
	int declare(const void *at, std::size_t size)
	{
		return call([&] { return perseas_set_range(tx_, at, size); });
	}
	/* Retries after a conflict. Returns 0 if the transaction has begun again, or ECONFLICT if
	 * it was retried often enough and is unchanged. */
	int retry_conflict(unsigned &tries)
	{
		const int rc = call(
			[&] { return perseas_retry_conflict(session_.handle(), tx_, &tries); });

		if (rc < 0 && rc != PERSEAS_ECONFLICT)
			mark_ended();
		return rc;
	}
	int send(mode end)
	{
		return end_by([&] { return perseas_commit(tx_, commit_flags(end)); });
	}

	[[gnu::cold, gnu::noinline]] failure why(int rc) const
	{
		return rc == detail::refused ? refusal() : session_.why(rc);
	}
	result<void> to_result(int rc) const
	{
		if (__builtin_expect(rc == 0, 1))
			return {};
		return why(rc);
	}
	[[noreturn, gnu::cold, gnu::noinline]] void raise(int rc) const
	{
		detail::raise(why(rc));
	}
	void expect(int rc) const
	{
		if (__builtin_expect(rc != 0, 0))
			raise(rc);
	}

	void mark_ended() noexcept
	{
		if (has(how_, mode::track))
			session_.s->tracking.store(false, std::memory_order_relaxed);
		usable_.store(false, std::memory_order_relaxed);
		tx_ = nullptr;
	}
	void abort_if_open() noexcept
	{
		if (__builtin_expect(!tx_, 1))
			return;
		if (session_.alive()) {
			perseas_abort(tx_);
			mark_ended();
		}
		tx_ = nullptr;
	}

	detail::session_ref session_;
	perseas_tx_t *tx_ = nullptr;
	mode how_ = mode::plain;
	/* The transaction is open and no thread is in one of its calls. */
	std::atomic<bool> usable_{ false };
};

} // namespace perseas

#endif
