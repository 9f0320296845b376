/*
 * store_base.hpp - functions about an open store as a whole: figures, roster, memory that is still
 * missing, addresses, and copies. It is the base class of perseas::store, which programs use.
 * perseas.hpp includes it.
 */
#ifndef PERSEAS_CPP_STORE_BASE_HPP
#define PERSEAS_CPP_STORE_BASE_HPP

#include "figures.hpp"
#include "session.hpp"
#include "span.hpp"
#include "storable.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace perseas::detail
{

class store_base
{
    public:
	/* As a timeout: wait without a limit. */
	static constexpr std::chrono::milliseconds forever{ -1 };

	bool is_open() const noexcept { return session_.alive(); }
	/* Returns the handle for the C interface, which must not close it; nullptr if the store is
	 * not open. */
	perseas_t *c() const noexcept { return session_.alive() ? session_.handle() : nullptr; }

	result<status> try_stat() const
	{
		status stat{};

		return to_result(stat, call([&](perseas_t *p) { return perseas_stat(p, &stat); }));
	}
	/* Returns the status of each mirror of the roster, and of those of the list that are not in
	 * it, or left it (PERSEAS_MIRROR_REMOVED). */
	result<std::vector<mirror_status>> try_mirrors() const
	{
		std::vector<mirror_status> all;
		status stat{};
		auto done = call([&](perseas_t *p) { return perseas_stat(p, &stat); });

		for (unsigned i = 0; done && i < stat.mirrors; i++) {
			all.emplace_back();
			done = call([&](perseas_t *p) {
				return perseas_mirror_stat(p, i, &all.back());
			});
		}
		return to_result(all, done);
	}
	result<latencies> try_latency() const
	{
		struct ::perseas_latency counted {
		};
		auto done = call([&](perseas_t *p) { return perseas_latency(p, &counted); });

		return to_result(latencies(counted), done);
	}
	/* Returns the open transactions, the oldest first. Transactions of other threads may end
	 * before this returns. */
	result<std::vector<open_transaction>> try_open_transactions() const
	{
		std::vector<open_transaction> all;
		std::size_t count = 0;
		result<void> done;

		do {
			all.resize(count);
			done = call([&](perseas_t *p) {
				return perseas_open_transactions(p, all.data(), all.size(), &count);
			});
		} while (done && count > all.size());
		all.resize(count);
		return to_result(all, done);
	}

	/* Returns a report on how the store was opened, with each mirror's state and what was done
	 * to it; "" if the store is not open. */
	std::string report() const { return is_open() ? perseas_report(session_.handle()) : ""; }
	/* Returns the segments that exist or are mapped; none if the store is not open. */
	std::vector<segment_info> segments() const
	{
		std::vector<segment_info> all;
		segment_info info;

		for (unsigned i = 0;
		     session_.alive() && perseas_segment_at(session_.handle(), i, &info) == 0; i++)
			all.push_back(info);
		return all;
	}

	/* Changes the store's roster. Returns when the change is complete; transactions continue in
	 * the meantime. */
	result<void> try_change_roster(const roster_change &change)
	{
		const struct ::perseas_roster_change asked = change.c();

		return call([&](perseas_t *p) { return perseas_roster(p, &asked); });
	}

	/* With options().on_demand(): waits until all mapped memory is present. errc::unreachable:
	 * timed out. */
	result<void> try_wait_whole(std::chrono::milliseconds most = forever)
	{
		return call([&](perseas_t *p) { return perseas_wait_whole(p, most.count()); });
	}
	/* With options().on_demand(): asks for the memory of `of` to be fetched next, after memory
	 * that threads wait for. Does not wait. */
	template <class T>
	result<void> try_prefetch(span<T> of)
	{
		return call([&](perseas_t *p) {
			return perseas_prefetch(p, of.address(), of.size_bytes());
		});
	}

	/* here() returns the address in this process of the object that the store has recorded at
	 * `at`; recorded() does the reverse (perseas_segments.h). nullptr if no mapped segment
	 * contains the address. */
	template <class T>
	T *here(T *at) const noexcept
	{
		return is_open() ? static_cast<T *>(perseas_here(session_.handle(), at)) : nullptr;
	}
	template <class T>
	T *recorded(T *at) const noexcept
	{
		return is_open() ? static_cast<T *>(perseas_recorded(session_.handle(), at))
		                 : nullptr;
	}

	/* Copies memory without the changes of open transactions, all pieces as of one commit.
	 * Returns the token of the last transaction in the copy. */
	result<perseas_token> try_copy_committed(span<const piece> pieces) const
	{
		perseas_token token{};

		return to_result(token, call([&](perseas_t *p) {
					 return perseas_copy_committed(p, pieces.data(),
			                                               pieces.size(), &token);
				 }));
	}
	template <class T>
	result<std::vector<std::remove_const_t<T>>> try_copy_committed(span<T> of) const
	{
		expect_storable<T>();
		std::vector<std::remove_const_t<T>> copy(of.size());
		const piece all = { of.address(), of.size_bytes(), copy.data() };
		auto done = try_copy_committed(span<const piece>(&all, 1));

		return to_result(copy, done ? result<void>() : result<void>(done.error()));
	}

#if PERSEAS_EXCEPTIONS
	status stat() const
	{
		return try_stat().value();
	}
	std::vector<mirror_status> mirrors() const
	{
		return try_mirrors().value();
	}
	latencies latency() const
	{
		return try_latency().value();
	}
	std::vector<open_transaction> open_transactions() const
	{
		return try_open_transactions().value();
	}
	void change_roster(const roster_change &change)
	{
		try_change_roster(change).value();
	}
	void wait_whole(std::chrono::milliseconds most = forever)
	{
		try_wait_whole(most).value();
	}
	template <class T>
	void prefetch(span<T> of)
	{
		try_prefetch(of).value();
	}
	template <class T>
	auto copy_committed(span<T> of) const
	{
		return try_copy_committed(of).value();
	}
#endif

    protected:
	store_base() noexcept = default;
	explicit store_base(session_ref session) noexcept : session_(session) {}

	template <class F>
	result<void> call(F &&function) const
	{
		if (!session_.alive())
			return session_.refusal();
		return session_.done(function(session_.handle()));
	}
	/* Returns `value` if `done`, the result of the call that filled it in, is success, or else
	 * the call's failure. */
	template <class T>
	static result<T> to_result(const T &value, const result<void> &done)
	{
		return done ? result<T>(value) : result<T>(done.error());
	}

	session_ref session_;
};

} // namespace perseas::detail

#endif
