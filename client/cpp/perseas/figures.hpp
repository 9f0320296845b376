/*
 * figures.hpp - statistics of stores and mirrors under C++ names, and the library's texts for them.
 * perseas.hpp includes it. perseas.h, and the headers that it includes, say what each member means.
 * Nothing here refers to a handle: all figures are copies.
 */
#ifndef PERSEAS_CPP_FIGURES_HPP
#define PERSEAS_CPP_FIGURES_HPP

#include "error.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace perseas
{

using mirror_status = struct ::perseas_mirror_stat;
using open_transaction = struct ::perseas_transaction;
using object_info = struct ::perseas_object;
using piece = struct ::perseas_piece;

/* Returns the version of the linked library, "major.minor.patch". */
inline const char *version() noexcept
{
	return perseas_version();
}

/* Return the name of a code, an event or a state, for example "PERSEAS_EINVAL", "mirror-down" or
 * "live". The texts are static. */
inline const char *name_of(errc code) noexcept
{
	return perseas_error_name(static_cast<int>(code));
}
inline const char *name_of(const event &what) noexcept
{
	return perseas_event_name(what.kind);
}
inline const char *name_of(perseas_mirror_state state) noexcept
{
	return perseas_mirror_state_name(state);
}

/* The durations of commits (perseas_latency), as of one moment. */
class latencies
{
    public:
	using nanoseconds = std::chrono::nanoseconds;

	explicit latencies(const struct ::perseas_latency &counted) : raw_(counted) {}

	/* Returns the number of commits: an estimate, because only a sample of them is timed. */
	std::uint64_t count() const noexcept { return raw_.count; }
	/* Returns the longest duration that was measured. */
	nanoseconds longest() const noexcept { return time(raw_.max_ns); }
	/* Returns the duration that `percent` (0 to 100) of the commits do not exceed; 0 if there
	 * were no commits. */
	nanoseconds percentile(double percent) const noexcept
	{
		return time(perseas_latency_percentile(&raw_, percent));
	}
	/* Returns the longest duration that c().counts[bucket] counts. */
	static nanoseconds bound(unsigned bucket) noexcept
	{
		return time(perseas_latency_bound(bucket));
	}
	const struct ::perseas_latency &c() const noexcept { return raw_; }

    private:
	static nanoseconds time(std::uint64_t ns) noexcept
	{
		return ns > INT64_MAX ? nanoseconds::max()
		                      : nanoseconds(static_cast<std::int64_t>(ns));
	}

	struct ::perseas_latency raw_;
};

/*
 * A change of a store's roster (perseas_roster.h), for store.change_roster:
 * roster_change::replace("old:7171", "new:7171").gone(). Addresses are as for perseas_open.
 */
class roster_change
{
    public:
	static roster_change add(std::string with)
	{
		return { PERSEAS_ROSTER_ADD, {}, std::move(with) };
	}
	static roster_change remove(std::string address)
	{
		return { PERSEAS_ROSTER_REMOVE, std::move(address), {} };
	}
	static roster_change replace(std::string address, std::string with)
	{
		return { PERSEAS_ROSTER_REPLACE, std::move(address), std::move(with) };
	}
	/* Cancels the change that another thread waits for. */
	static roster_change cancel() { return { PERSEAS_ROSTER_CANCEL, {}, {} }; }

	/* Sets W after the change. 0 keeps W, but makes it a majority if it is one now or would no
	 * longer fit. */
	roster_change &acks(std::uint32_t w) &
	{
		acks_ = w;
		return *this;
	}
	roster_change &&acks(std::uint32_t w) && { return std::move(acks(w)); }
	/* States that the leaving mirror and its image are gone for good. */
	roster_change &gone() &
	{
		gone_ = true;
		return *this;
	}
	roster_change &&gone() && { return std::move(gone()); }

	/* Returns the C structure, valid while this object exists unchanged. */
	struct ::perseas_roster_change c() const noexcept
	{
		return { kind_, address_.empty() ? nullptr : address_.c_str(),
			 with_.empty() ? nullptr : with_.c_str(), acks_, gone_ ? 1 : 0 };
	}

    private:
	roster_change(int kind, std::string address, std::string with)
	    : kind_(kind), address_(std::move(address)), with_(std::move(with))
	{
	}

	int kind_;
	std::string address_, with_;
	std::uint32_t acks_ = 0;
	bool gone_ = false;
};

} // namespace perseas

#endif
