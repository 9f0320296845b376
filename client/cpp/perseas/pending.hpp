/*
 * pending.hpp - commits that do not wait. A program learns by futures, callbacks or coroutines,
 * from its own event loop, when W mirrors hold them (perseas_nowait.h). perseas.hpp includes it. It
 * starts no thread.
 */
#ifndef PERSEAS_CPP_PENDING_HPP
#define PERSEAS_CPP_PENDING_HPP

#include "store.hpp"

#include <chrono>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <poll.h>
#include <type_traits>
#include <utility>
#include <vector>

#if PERSEAS_EXCEPTIONS
#include <future>
#endif
#if __has_include(<version>)
#include <version>
#endif
#if defined(__cpp_impl_coroutine) && defined(__cpp_lib_coroutine) && PERSEAS_EXCEPTIONS
#include <coroutine>
#define PERSEAS_COROUTINES 1
#else
#define PERSEAS_COROUTINES 0
#endif

namespace perseas
{

#if PERSEAS_EXCEPTIONS

/* A committed transaction on its way to the mirrors, and the value that its function returned.
 * Dropping this object does not affect the transaction. */
template <class T>
class pending
{
	using held = std::conditional_t<std::is_void_v<T>, char, T>;

    public:
	const perseas_token &token() const noexcept { return token_; }

	/* Waits until W mirrors hold the transaction, at most for `most`. Returns true if they
	 * do. */
	bool wait_for(std::chrono::milliseconds most) { return in_.wait(token_, most); }
	bool ready() { return wait_for(std::chrono::milliseconds(0)); }

	/* Waits until W mirrors hold the transaction, and returns the value. May be called once. */
	T get()
	{
		in_.wait(token_);
		if constexpr (!std::is_void_v<T>)
			return std::move(value_);
	}

    private:
	friend class store;

	/* A store object that never closes the store. */
	struct borrowed {
		explicit borrowed(detail::session_ref session) : to(session) {}
		borrowed(const borrowed &other) : to(other.to.session_) {}
		borrowed &operator=(const borrowed &other)
		{
			to.session_ = other.to.session_;
			return *this;
		}
		~borrowed() { to.session_ = {}; }
		void wait(const perseas_token &token) { to.wait(token); }
		bool wait(const perseas_token &token, std::chrono::milliseconds most)
		{
			return to.wait(token, most);
		}
		store to;
	};

	pending(detail::session_ref session, const perseas_token &token, held value)
	    : in_(session), token_(token), value_(std::move(value))
	{
	}

	borrowed in_;
	perseas_token token_;
	held value_;
};

template <class F>
pending<std::invoke_result_t<F &, transaction &>> store::transact_async(F &&fn, mode how)
{
	using value_type = std::invoke_result_t<F &, transaction &>;
	static_assert(
		!std::is_reference_v<value_type>,
		"perseas: transact_async keeps what fn returns: return a value, no reference");
	perseas_token token{};
	/* Commits itself, to get the token of this transaction and no other. */
	const auto commit = [&](transaction &tx) {
		token = tx.open() ? tx.commit_token(how | mode::nowait) : posted();
	};

	if constexpr (std::is_void_v<value_type>) {
		transact(
			[&](transaction &tx) {
				fn(tx);
				commit(tx);
			},
			how);
		return { session_, token, 0 };
	} else {
		value_type value = transact(
			[&](transaction &tx) {
				value_type made = fn(tx);

				commit(tx);
				return made;
			},
			how);

		return { session_, token, std::move(value) };
	}
}

#endif

/*
 * Reports commits that W mirrors hold, in the event loop of one thread: wait until fd() is
 * readable, and call dispatch(), which calls the registered functions. A store should have one such
 * object (perseas_fd), which should not outlive the store. Any thread may call when(), future() and
 * durable().
 *
 * Failures are those of perseas_wait (fenced, epoch), and cancelled if this object is destroyed
 * first. A commit in doubt stays pending until mirrors hold it or another owner fences this one.
 */
class completions
{
    public:
	using function = std::function<void(const result<void> &)>;

	explicit completions(store &of) : session_(of.session_) {}
	completions(const completions &) = delete;
	completions &operator=(const completions &) = delete;
	~completions()
	{
		call_due([](const perseas_token &) -> std::optional<result<void>> {
			return failure(errc::cancelled,
			               "nobody looks any more whether mirrors hold it: "
			               "perseas::completions was destroyed");
		});
	}

	/* Returns a descriptor for poll, select and epoll. */
	result<int> try_fd()
	{
		if (!session_.alive())
			return session_.refusal();
		const int fd = perseas_fd(session_.handle());

		return fd < 0 ? result<int>(failure::last(session_.handle(), fd)) : result<int>(fd);
	}

	/* Registers fn. dispatch() calls it once: with success when W mirrors hold the transaction,
	 * or with a failure when it is certain that they never will. fn must not throw. */
	void when(const perseas_token &token, function fn) { add(token, std::move(fn), nullptr); }

	/* Calls all registered functions that are due, without waiting. Returns true if functions
	 * are left that are not due yet. */
	result<bool> try_dispatch()
	{
		perseas_token durable{};
		const result<void> looked =
			session_.alive()
				? session_.done(perseas_durable(session_.handle(), &durable))
				: result<void>(session_.refusal());

		call_due([&](const perseas_token &token) -> std::optional<result<void>> {
			/* Sequence numbers of different epochs cannot be compared, so the library
			 * must decide about this token. */
			if (token.epoch != durable.epoch && looked)
				return judge(perseas_wait(session_.handle(), &token, 0));
			if (token.epoch == durable.epoch && token.seq <= durable.seq)
				return result<void>();
			return looked ? std::nullopt : std::make_optional(looked);
		});
		if (!looked)
			return looked.error();
		std::lock_guard<std::mutex> hold(lock_);

		return !waiting_.empty();
	}

	/* Waits until a registered function is due or `most` has passed, and then dispatches. */
	result<bool> try_wait(std::chrono::milliseconds most)
	{
		auto fd = try_fd();

		if (!fd)
			return try_dispatch();
		pollfd look = { *fd, POLLIN, 0 };

		(void)::poll(&look, 1, static_cast<int>(most.count()));
		return try_dispatch();
	}

#if PERSEAS_EXCEPTIONS
	int fd()
	{
		return try_fd().value();
	}
	bool dispatch()
	{
		return try_dispatch().value();
	}
	bool wait(std::chrono::milliseconds most)
	{
		return try_wait(most).value();
	}

	/* Returns a future that dispatch() makes ready. The thread that waits for it must not be
	 * the one that dispatches. */
	std::future<void> future(const perseas_token &token)
	{
		auto promise = std::make_shared<std::promise<void>>();
		auto made = promise->get_future();

		when(token, [promise](const result<void> &done) {
			if (done)
				promise->set_value();
			else
				promise->set_exception(
					std::make_exception_ptr(error(done.error())));
		});
		return made;
	}
#endif

#if PERSEAS_COROUTINES
	/* The awaiter of co_await completions.durable(token). The dispatching thread may destroy a
	 * coroutine while it waits, also from inside of dispatch(): its entry is then removed. */
	class awaiter
	{
	    public:
		awaiter(completions &at, const perseas_token &token) : at_(at), token_(token) {}
		awaiter(const awaiter &) = delete;
		awaiter &operator=(const awaiter &) = delete;
		~awaiter()
		{
			if (!place_ || !place_->waiter)
				return;
			place_->waiter = nullptr;
			at_.forget(token_, place_.get());
		}

		bool await_ready() const noexcept { return false; }
		void await_suspend(std::coroutine_handle<> waiter)
		{
			place_ = std::make_shared<place>();
			place_->waiter = waiter;
			at_.add(
				token_,
				[in = place_](const result<void> &done) {
					if (!in->waiter)
						/* Another function, called just before, has
						 * destroyed the coroutine. */
						return;
					if (!done)
						in->why = done.error();
					std::exchange(in->waiter, nullptr).resume();
				},
				place_.get());
		}
		void await_resume() const
		{
			if (place_->why)
				detail::raise(*place_->why);
		}

	    private:
		/* Shared by the coroutine and the function that resumes it, so that either may be
		 * destroyed first. */
		struct place {
			std::coroutine_handle<> waiter; /* null if the coroutine no longer waits */
			std::optional<failure> why;
		};

		completions &at_;
		perseas_token token_;
		std::shared_ptr<place> place_;
	};

	/* co_await completions.durable(token) continues in dispatch() once W mirrors hold the
	 * transaction, or throws perseas::error. */
	awaiter durable(const perseas_token &token)
	{
		return { *this, token };
	}
#endif

    private:
	struct waiter {
		perseas_token token;
		function fn;
		/* The coroutine of the entry, by which forget() finds it; nullptr for other
		 * functions. */
		const void *owner;
	};

	void add(const perseas_token &token, function fn, const void *owner)
	{
		std::lock_guard<std::mutex> hold(lock_);

		waiting_.emplace(token.seq, waiter{ token, std::move(fn), owner });
	}
	/* Removes a coroutine's entry. If the entry is already due, its function finds out by
	 * itself. */
	void forget(const perseas_token &token, const void *owner)
	{
		std::lock_guard<std::mutex> hold(lock_);
		const auto range = waiting_.equal_range(token.seq);

		for (auto each = range.first; each != range.second; ++each)
			if (each->second.owner == owner) {
				waiting_.erase(each);
				return;
			}
	}

	std::optional<result<void>> judge(int rc) const
	{
		return rc == PERSEAS_ETIMEOUT ? std::nullopt
		                              : std::make_optional(session_.done(rc));
	}

	/* Removes every entry for which `of` returns a result, and calls the entry's function with
	 * this result. The lock is not held during these calls, because a function may register
	 * others. */
	template <class F>
	void call_due(F &&of)
	{
		std::vector<std::pair<function, result<void>>> due;
		{
			std::lock_guard<std::mutex> hold(lock_);

			for (auto each = waiting_.begin(); each != waiting_.end();) {
				auto done = of(each->second.token);

				if (done)
					due.emplace_back(std::move(each->second.fn),
					                 std::move(*done));
				each = done ? waiting_.erase(each) : std::next(each);
			}
		}
		for (auto &[fn, done] : due)
			fn(done);
	}

	detail::session_ref session_;
	std::mutex lock_;
	std::multimap<std::uint64_t, waiter> waiting_; /* ordered by seq */
};

} // namespace perseas

#endif
