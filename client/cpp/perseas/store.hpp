/*
 * store.hpp - a store that this process owns. perseas.hpp includes it.
 *
 * Each function that may fail exists twice: try_x() returns a perseas::result, and x() throws
 * perseas::error. perseas.h, and the headers that it includes, list the errors at the C function of
 * the same purpose.
 */
#ifndef PERSEAS_CPP_STORE_HPP
#define PERSEAS_CPP_STORE_HPP

#include "options.hpp"
#include "p.hpp"
#include "segment.hpp"
#include "session.hpp"
#include "store_base.hpp"
#include "transaction.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace perseas
{

template <class T>
class pending;

namespace detail
{

/* perseas_options.on_event. */
inline void pass_event(void *arg, const event *what) noexcept
{
	(*static_cast<std::function<void(const event &)> *>(arg))(*what);
}

} // namespace detail

/*
 * An open store. The destructor closes it; call close() to learn whether mirrors hold the commits
 * with nowait. A store that was moved from is as if it had never been opened. Threads may share a
 * store, except for close(), moving and destroying.
 *
 * Segments and transactions of a store may outlive it: using them then fails with an error. In a
 * child of fork all calls fail, and nothing is closed.
 */
class store : public detail::store_base
{
    public:
	store() noexcept = default;
	store(store &&other) noexcept : store_base(std::exchange(other.session_, {})) {}
	store &operator=(store &&other) noexcept
	{
		if (this != &other) {
			close_quietly();
			session_ = std::exchange(other.session_, {});
		}
		return *this;
	}
	~store() { close_quietly(); }

	static result<void> try_create(const std::string &name, const std::string &mirrors,
	                               const options &how = {})
	{
		const perseas_options filled = how.filled();

		if (const int rc = perseas_create(name.c_str(), mirrors.c_str(), &filled))
			return failure::last(nullptr, rc);
		return {};
	}

	/* With options().create(): creates the store if no mirror has it. */
	static result<store> try_open(const std::string &name, const std::string &mirrors,
	                              const options &how = {})
	{
		detail::session *s = detail::session_take();
		perseas_options filled = how.filled();
		perseas_t *p = nullptr;

		s->on_event = how.event_function();
		if (s->on_event) {
			filled.on_event = detail::pass_event;
			filled.event_arg = &s->on_event;
		}
		if (const int rc = perseas_open(name.c_str(), mirrors.c_str(), &filled, &p)) {
			failure why = failure::last(nullptr, rc);

			detail::session_put(s);
			return why;
		}
		return store(detail::session_begin(s, p));
	}

	/* Returns a store that owns a handle of the C interface, for example of
	 * perseas_standby_wait, and closes it. nullptr gives a store that was never opened. */
	static store adopt(perseas_t *p) { return adopt(p, nullptr); }

	/* Always closes the store. A failure (in_doubt, fenced) concerns commits with nowait. */
	result<void> try_close()
	{
		if (!session_.alive())
			return session_.refusal();
		const detail::session_ref was = session_;
		perseas_t *const p = was.handle();

		was.s->id.store(0);
		const int rc = perseas_close(p);

		detail::session_put(was.s);
		if (rc)
			return failure::last(nullptr, rc);
		return {};
	}

	/* Maps a segment of `count` elements; 0 for as many as it has. If published() is false the
	 * segment is new: fill in initial(), and call publish(). */
	template <class T>
	result<segment<T>> try_map(const std::string &name, std::size_t count = 0)
	{
		return map_with<T>(name, count, [&](perseas_t *p, void **at, std::ptrdiff_t *) {
			return perseas_map(p, name.c_str(), count * sizeof(T), at);
		});
	}

	/* Maps a segment at the address `where`, which may differ from its recorded address
	 * (perseas_map_at). nullptr stands for the recorded address, or any address if that is
	 * taken. Pointers in the segment stay as they were stored: here() and recorded() translate
	 * them. */
	template <class T>
	result<segment<T>> try_map_at(const std::string &name, std::size_t count = 0,
	                              void *where = nullptr)
	{
		return map_with<T>(name, count,
		                   [&](perseas_t *p, void **at, std::ptrdiff_t *moved) {
					   return perseas_map_at(p, name.c_str(), count * sizeof(T),
			                                         where, at, moved);
				   });
	}

	/* Maps a segment, and reserves addresses so that it can grow to `most` elements
	 * (perseas_map_reserve). An existing segment is mapped as it is. Both sizes must be
	 * multiples of 4096 bytes. */
	template <class T>
	result<segment<T>> try_map_reserve(const std::string &name, std::size_t count,
	                                   std::size_t most)
	{
		return map_with<T>(name, count > most ? count : most,
		                   [&](perseas_t *p, void **at, std::ptrdiff_t *) {
					   return perseas_map_reserve(p, name.c_str(),
			                                              count * sizeof(T),
			                                              most * sizeof(T), at,
			                                              nullptr);
				   });
	}

	/* Makes a segment grow to `count` elements at its address; new elements are zeros
	 * (perseas_segment_grow). Other segment objects for it keep the old size. After
	 * errc::in_doubt it has grown all the same. */
	template <class T>
	result<void> try_grow(segment<T> &of, std::size_t count)
	{
		if (count > SIZE_MAX / sizeof(T))
			return too_many();
		if (!session_.alive())
			return session_.refusal();
		if (!of.session_.alive())
			return of.session_.refusal();
		segment_info info;

		if (of.session_.handle() != session_.handle() || !of.find(info))
			return failure(errc::range, "the segment is not mapped in this store: map "
			                            "it again, and grow that");
		auto done = session_.done(
			perseas_segment_grow(session_.handle(), info.name, count * sizeof(T)));

		if (done || done.error().code() == errc::in_doubt)
			of.count_ = count;
		return done;
	}

	/* Sends the first contents of all new segments to the mirrors. From then on these segments
	 * exist. */
	result<void> try_publish()
	{
		return call([](perseas_t *p) { return perseas_publish(p); });
	}

	/* Maps one object in a segment of its own. If the store does not have it, creates it as
	 * T{}, calls init(T &), and publishes all mapped segments. */
	template <class T, class F>
	result<root<T>> try_make_root(const std::string &name, F &&init)
	{
		auto mapped = try_map<T>(name, 1);

		if (!mapped)
			return mapped.error();
		if (!mapped->published()) {
			if (auto made = make_first(*mapped, std::forward<F>(init)); !made)
				return made.error();
			if (auto done = try_publish(); !done)
				return done.error();
			mapped->published_ = true;
		}
		return root<T>(std::move(*mapped));
	}
	template <class T>
	result<root<T>> try_make_root(const std::string &name)
	{
		return try_make_root<T>(name, [](T &) {});
	}

	/* Unmaps a segment; it stays in the store. No thread may use its memory any more, also not
	 * through another map(). */
	template <class T>
	result<void> try_unmap(segment<T> &&of)
	{
		const T *at = of.first_;
		auto done = call(
			[at](perseas_t *p) { return perseas_unmap(p, const_cast<T *>(at)); });

		if (done)
			of.session_ = {};
		return done;
	}

	/* Destroys a published segment that is not mapped, permanently. */
	result<void> try_destroy_segment(const std::string &name)
	{
		return call([&](perseas_t *p) { return perseas_segment_destroy(p, name.c_str()); });
	}

	result<transaction> try_begin(mode how = mode::plain)
	{
		transaction tx(session_);

		if (const int rc = tx.begin(how))
			return session_.why(rc);
		return tx;
	}

	/*
	 * Calls fn(transaction &), which returns a result<...>, and commits. A failure of fn or of
	 * the commit aborts the transaction and is returned. After errc::conflict the transaction
	 * begins again, as in transact(). fn may end the transaction itself.
	 */
	template <class F>
	std::invoke_result_t<F &, transaction &> try_transact(F &&fn, mode how = mode::plain)
	{
		using outcome = std::invoke_result_t<F &, transaction &>;
		transaction tx(session_);
		unsigned tries = 0;

		if (const int rc = begin_patiently(tx, how, tries))
			return session_.why(rc);
		for (;;) {
			outcome value = fn(tx);

			if (__builtin_expect(value.has_value(), 1)) {
				if (const int rc = finish(tx, how); __builtin_expect(rc != 0, 0))
					return tx.why(rc);
				return value;
			}
			if (value.error().code() != errc::conflict || !tx.open())
				return value;
			const int rc = tx.retry_conflict(tries);

			if (rc == PERSEAS_ECONFLICT)
				return value;
			if (rc)
				return tx.why(rc);
		}
	}

	/* Waits until W mirrors hold every commit. */
	result<void> try_flush()
	{
		return call([](perseas_t *p) { return perseas_flush(p); });
	}
	/* Checks with the mirrors that this process still owns the store. A program that answers
	 * requests from the store's data calls it after reading and before answering. */
	result<void> try_confirm()
	{
		return call([](perseas_t *p) { return perseas_confirm(p); });
	}
	/* Waits until W mirrors hold the token's transaction. Returns false if it timed out. */
	result<bool> try_wait(const perseas_token &token, std::chrono::milliseconds most)
	{
		const std::int64_t ms = most.count() < 0 ? 0 : most.count();

		return wait_ms(token, ms);
	}
	/* Waits until W mirrors hold the token's transaction, without a limit. */
	result<void> try_wait(const perseas_token &token)
	{
		auto done = wait_ms(token, -1);

		return done ? result<void>() : result<void>(done.error());
	}
	/* Returns the token of the last transaction that any thread committed. */
	result<perseas_token> try_posted()
	{
		perseas_token token{};
		auto done = call([&](perseas_t *p) { return perseas_posted(p, &token); });

		return done ? result<perseas_token>(token) : result<perseas_token>(done.error());
	}
#if PERSEAS_EXCEPTIONS
	store(const std::string &name, const std::string &mirrors, const options &how = {})
	    : store(try_open(name, mirrors, how).value())
	{
	}
	static void create(const std::string &name, const std::string &mirrors,
	                   const options &how = {})
	{
		try_create(name, mirrors, how).value();
	}
	void close()
	{
		try_close().value();
	}

	template <class T>
	segment<T> map(const std::string &name, std::size_t count = 0)
	{
		return try_map<T>(name, count).value();
	}
	template <class T, class... Init>
	root<T> make_root(const std::string &name, Init &&...init)
	{
		return try_make_root<T>(name, std::forward<Init>(init)...).value();
	}
	template <class T>
	void unmap(segment<T> &&of)
	{
		try_unmap(std::move(of)).value();
	}
	template <class T>
	segment<T> map_at(const std::string &name, std::size_t count = 0, void *where = nullptr)
	{
		return try_map_at<T>(name, count, where).value();
	}
	void destroy_segment(const std::string &name)
	{
		try_destroy_segment(name).value();
	}
	template <class T>
	segment<T> map_reserve(const std::string &name, std::size_t count, std::size_t most)
	{
		return try_map_reserve<T>(name, count, most).value();
	}
	template <class T>
	void grow(segment<T> &of, std::size_t count)
	{
		try_grow(of, count).value();
	}
	void publish()
	{
		try_publish().value();
	}
	void flush()
	{
		try_flush().value();
	}
	void confirm()
	{
		try_confirm().value();
	}
	void wait(const perseas_token &token)
	{
		try_wait(token).value();
	}
	bool wait(const perseas_token &token, std::chrono::milliseconds most)
	{
		return try_wait(token, most).value();
	}
	perseas_token posted()
	{
		return try_posted().value();
	}
	transaction begin(mode how = mode::plain)
	{
		return try_begin(how).value();
	}

	/*
	 * Calls fn(transaction &), commits, and returns fn's value. An exception of fn or of the
	 * commit aborts the transaction and propagates. But after errc::in_doubt the transaction is
	 * applied here: flush() waits for the mirrors. fn may end the transaction itself.
	 *
	 * errc::conflict rolls back fn's changes and calls fn again, in a transaction that keeps
	 * its age, so it gets its locks in the end. A conflict that does not concern a lock is
	 * retried as often as perseas_retry_conflict says, and then propagates.
	 */
	template <class F>
	std::invoke_result_t<F &, transaction &> transact(F &&fn, mode how = mode::plain)
	{
		using value_type = std::invoke_result_t<F &, transaction &>;
		transaction tx(session_);
		unsigned tries = 0;

		if (const int rc = begin_patiently(tx, how, tries); __builtin_expect(rc != 0, 0))
			detail::raise(session_.why(rc));
		scope now(tx);
		for (;;) {
			try {
				if constexpr (std::is_void_v<value_type>) {
					fn(tx);
					tx.expect(finish(tx, how));
					return;
				} else {
					value_type value = fn(tx);

					tx.expect(finish(tx, how));
					return std::forward<value_type>(value);
				}
			} catch (const error &e) {
				if (e.reason() != errc::conflict || !tx.open())
					throw;
				const int rc = tx.retry_conflict(tries);

				if (rc == PERSEAS_ECONFLICT)
					throw;
				tx.expect(rc);
			}
		}
	}

	/* Like transact() with nowait. The result tells when W mirrors hold the commit
	 * (pending.hpp). */
	template <class F>
	pending<std::invoke_result_t<F &, transaction &>> transact_async(F &&fn,
	                                                                 mode how = mode::plain);
#endif

    private:
	friend class transaction;
	friend class heap;
	friend class completions;
	friend class standby;
	template <class T>
	friend class kept;
	template <class T>
	friend class pending;

	explicit store(detail::session_ref session) noexcept : store_base(session) {}

	static store adopt(perseas_t *p, std::shared_ptr<const void> keeps)
	{
		if (!p)
			return store();
		detail::session *s = detail::session_take();

		s->keeps = std::move(keeps);
		return store(detail::session_begin(s, p));
	}

	/* Makes the first contents of a segment. If init throws, the segment is unmapped: nobody
	 * may publish incomplete contents. */
	template <class T, class F>
	result<void> make_first(segment<T> &of, F &&init)
	{
#if PERSEAS_EXCEPTIONS
		try {
			std::forward<F>(init)(*::new (static_cast<void *>(of.initial().data()))
			                              T{});
		} catch (...) {
			(void)try_unmap(std::move(of));
			throw;
		}
#else
		std::forward<F>(init)(*::new (static_cast<void *>(of.initial().data())) T{});
#endif
		return {};
	}

	static failure too_many()
	{
		return failure(errc::invalid_argument,
		               "a segment is 1 TiB at most, and this is more elements than that");
	}

	/* Maps a segment by function(handle, &address, &moved). */
	template <class T, class F>
	result<segment<T>> map_with(const std::string &name, std::size_t count, F &&function)
	{
		detail::expect_storable<T>();
		if (!session_.alive())
			return session_.refusal();
		if (count > SIZE_MAX / sizeof(T))
			return too_many();
		segment_info info;
		void *at = nullptr;
		std::ptrdiff_t moved = 0;
		auto mapped = session_.done(function(session_.handle(), &at, &moved));

		if (mapped)
			mapped = session_.done(
				perseas_segment(session_.handle(), name.c_str(), &info));
		if (!mapped)
			return mapped.error();
		if (info.size % sizeof(T))
			return failure(errc::size,
			               "segment '" + name + "' has " + std::to_string(info.size) +
			                       " bytes, which are no whole number of elements "
			                       "of " +
			                       std::to_string(sizeof(T)) +
			                       ": map it as what it was made as");
		return segment<T>(session_, static_cast<T *>(at), info.size / sizeof(T),
		                  info.published != 0, moved);
	}

	result<bool> wait_ms(const perseas_token &token, std::int64_t ms)
	{
		auto done = call([&](perseas_t *p) { return perseas_wait(p, &token, ms); });

		if (done || done.error().code() == errc::timeout)
			return done.has_value();
		return done.error();
	}

	/* Begins a transaction. A transaction with track conflicts with all other open
	 * transactions, so beginning it is retried, because these may end soon. */
	int begin_patiently(transaction &tx, mode how, unsigned &tries)
	{
		int rc = tx.begin(how);

		while (__builtin_expect(rc == PERSEAS_ECONFLICT, 0) &&
		       !perseas_retry_conflict(session_.handle(), nullptr, &tries))
			rc = tx.begin(how);
		return rc;
	}
	static int finish(transaction &tx, mode how)
	{
		return __builtin_expect(tx.tx_ != nullptr, 1) ? tx.send(how) : 0;
	}

	void close_quietly()
	{
		if (session_.alive())
			(void)try_close();
	}
};

#if PERSEAS_EXCEPTIONS
inline transaction::transaction(store &in, mode how) : session_(in.session_)
{
	if (const int rc = begin(how); __builtin_expect(rc != 0, 0))
		detail::raise(session_.why(rc));
}
#endif

} // namespace perseas

#endif
