/*
 * options.hpp - options for creating and opening a store. perseas.hpp includes it. The member of
 * perseas_options with the same name (perseas.h) says what an option means, its default and its
 * limits.
 */
#ifndef PERSEAS_CPP_OPTIONS_HPP
#define PERSEAS_CPP_OPTIONS_HPP

#include "error.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>

namespace perseas
{

/*
 * perseas_options with a function for each commonly used option: options().create().acks(2). It
 * owns its strings. A duration that is too long for the member becomes the longest one, a negative
 * one becomes 0. c() returns the C structure, for members without a function here.
 */
class options
{
    public:
	using milliseconds = std::chrono::milliseconds;
	using microseconds = std::chrono::microseconds;

	options &create() { return flag(PERSEAS_CREATE); }
	options &takeover() { return flag(PERSEAS_TAKEOVER); }
	options &check_overlap() { return flag(PERSEAS_CHECK_OVERLAP); }
	options &check_writes() { return flag(PERSEAS_CHECK_WRITES); }
	options &salvage() { return flag(PERSEAS_SALVAGE); }
	/* Must be set for transactions with mode::track. */
	options &tracked() { return flag(PERSEAS_TRACKED); }
	options &level_0() { return flag(PERSEAS_LEVEL_0); } /* affects only store creation */
	options &on_demand() { return set(raw_.recovery, PERSEAS_RECOVERY_ON_DEMAND); }

	options &acks(std::uint32_t w) { return set(raw_.acks, w); }
	options &log_size(std::uint64_t bytes) { return set(raw_.log_size, bytes); }
	options &ring_size(std::uint64_t bytes) { return set(raw_.ring_size, bytes); }
	options &resync_rate(std::uint64_t bytes) { return set(raw_.resync_rate, bytes); }
	options &fetch_rate(std::uint64_t bytes) { return set(raw_.fetch_rate, bytes); }
	options &gather_bytes(std::uint32_t bytes) { return set(raw_.gather_bytes, bytes); }

	options &connect_timeout(milliseconds t) { return set(raw_.connect_timeout_ms, whole(t)); }
	options &commit_timeout(milliseconds t) { return set(raw_.commit_timeout_ms, whole(t)); }
	options &open_timeout(milliseconds t) { return set(raw_.open_timeout_ms, whole(t)); }
	options &mirror_timeout(milliseconds t) { return set(raw_.mirror_timeout_ms, whole(t)); }
	options &flush_within(milliseconds t) { return set(raw_.flush_within_ms, whole(t)); }
	options &pace(milliseconds t) { return set(raw_.pace_ms, whole(t)); }
	options &spin(microseconds t) { return set(raw_.spin_us, whole(t)); }
	options &gather(microseconds t) { return set(raw_.gather_us, whole(t)); }

	/* Options for standbys. order: a standby waits 250 ms for each step, so the standby with
	 * the lowest order comes first. */
	options &order(std::uint32_t steps) { return set(raw_.order, steps); }
	options &warm() { return set(raw_.warm, 1); }
	options &warm_rate(std::uint64_t bytes) { return set(raw_.warm_rate, bytes); }
	options &name(std::string text)
	{
		name_ = std::move(text);
		return *this;
	}

	/* Accepts the state (epoch, seq) although fewer than R mirrors answered. Only an operator
	 * may decide that. */
	options &accept(std::uint64_t epoch, std::uint64_t seq)
	{
		raw_.accept_epoch = epoch;
		return set(raw_.accept_seq, seq);
	}

	/* Paths of PEM files. */
	options &tls(std::string cert, std::string key, std::string ca, std::string crl = {})
	{
		cert_ = std::move(cert);
		key_ = std::move(key);
		ca_ = std::move(ca);
		crl_ = std::move(crl);
		return *this;
	}

	/* Sets a function that a thread of the library calls for each event while the store is
	 * open. perseas_options.on_event says what it may do. An exception that leaves it ends the
	 * program (std::terminate). */
	options &on_event(std::function<void(const event &)> function)
	{
		on_event_ = std::move(function);
		return *this;
	}

	/* Returns the C structure. The functions above override its strings and on_event. */
	perseas_options &c() noexcept { return raw_; }

	/* Returns the options for the library, valid while this object exists unchanged. */
	perseas_options filled() const
	{
		perseas_options filled = raw_;

		if (!cert_.empty() || !key_.empty() || !ca_.empty()) {
			filled.tls_cert = cert_.c_str();
			filled.tls_key = key_.c_str();
			filled.tls_ca = ca_.c_str();
		}
		if (!name_.empty())
			filled.name = name_.c_str();
		if (!crl_.empty())
			filled.tls_crl = crl_.c_str();
		return filled;
	}
	const std::function<void(const event &)> &event_function() const noexcept
	{
		return on_event_;
	}

    private:
	template <class M, class V>
	options &set(M &member, V value)
	{
		member = static_cast<M>(value);
		return *this;
	}
	options &flag(std::uint32_t bit) { return set(raw_.flags, raw_.flags | bit); }

	template <class Duration>
	static std::uint32_t whole(Duration t)
	{
		constexpr auto most = std::numeric_limits<std::uint32_t>::max();

		if (t.count() < 0)
			return 0;
		return static_cast<std::uint64_t>(t.count()) > most
		               ? most
		               : static_cast<std::uint32_t>(t.count());
	}

	perseas_options raw_ = PERSEAS_OPTIONS_INIT;
	std::string cert_, key_, ca_, crl_, name_;
	std::function<void(const event &)> on_event_;
};

} // namespace perseas

#endif
