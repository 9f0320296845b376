/*
 * standby.hpp - a process that waits to own a store, and prepares for it as far as possible
 * (perseas_standby.h). perseas.hpp includes it.
 */
#ifndef PERSEAS_CPP_STANDBY_HPP
#define PERSEAS_CPP_STANDBY_HPP

#include "options.hpp"
#include "store.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace perseas
{

using standby_status = struct ::perseas_standby_stat;
using standby_mirror = struct ::perseas_standby_mirror;

/* Returns the state's name, for example "owned". The text is static. */
inline const char *name_of(perseas_standby_state state) noexcept
{
	return perseas_standby_state_name(state);
}

/*
 * Stands by for a store until this object ends. One thread at a time may be in wait(). Any thread
 * may call the other functions, except close(), moving and destroying. Stores that the standby
 * opened stay open when it ends. In a child of fork all calls fail, and the destructor does not end
 * the parent's standby.
 */
class standby
{
    public:
	standby() noexcept = default;
	standby(standby &&other) noexcept
	    : standby_(std::exchange(other.standby_, nullptr)),
	      on_event_(std::move(other.on_event_))
	{
	}
	standby &operator=(standby &&other) noexcept
	{
		if (this != &other) {
			close();
			standby_ = std::exchange(other.standby_, nullptr);
			on_event_ = std::move(other.on_event_);
		}
		return *this;
	}
	~standby() { close(); }

	/* Begins to stand by, and returns at once. Options are those of the store, and order(),
	 * name(), warm() and warm_rate(). on_event() is called for each store that the standby
	 * opens. */
	static result<standby> try_begin(const std::string &name, const std::string &mirrors,
	                                 const options &how = {})
	{
		perseas_options filled = how.filled();
		standby made;

		detail::watch_process();
		if (how.event_function()) {
			made.on_event_ = std::make_shared<std::function<void(const event &)>>(
				how.event_function());
			filled.on_event = detail::pass_event;
			filled.event_arg = made.on_event_.get();
		}
		if (const int rc = perseas_standby(name.c_str(), mirrors.c_str(), &filled,
		                                   &made.standby_))
			return failure::last(nullptr, rc);
		return made;
	}

	/* Waits until the store has no owner, and opens it. Then the standby is idle; a later
	 * wait(), once that store is closed, stands by again. */
	result<store> try_wait()
	{
		auto opened = wait_ms(-1);

		if (!opened)
			return opened.error();
		return std::move(**opened);
	}
	/* Waits like try_wait(), but at most for `most`; returns nullopt if that timed out. With 0
	 * the store is opened only if that is possible now, when fd() is readable. */
	result<std::optional<store>> try_wait(std::chrono::milliseconds most)
	{
		return wait_ms(most.count() < 0 ? 0 : most.count());
	}

	/* Returns a descriptor that is readable while wait() would not wait. */
	result<int> try_fd() const
	{
		if (auto refused = refusal())
			return *refused;
		const int fd = perseas_standby_fd(standby_);

		return fd < 0 ? result<int>(failure::last(nullptr, fd)) : result<int>(fd);
	}
	/* Ends the current wait, or else the next one, with errc::cancelled. */
	result<void> try_cancel() const
	{
		return call([](perseas_standby_t *s) { return perseas_standby_cancel(s); });
	}
	result<standby_status> try_stat() const
	{
		standby_status stat{};
		auto done = call(
			[&](perseas_standby_t *s) { return perseas_standby_stat(s, &stat); });

		return done ? result<standby_status>(stat) : result<standby_status>(done.error());
	}
	result<std::vector<standby_mirror>> try_mirrors() const
	{
		std::vector<standby_mirror> all;
		auto stat = try_stat();

		if (!stat)
			return stat.error();
		for (unsigned i = 0; i < stat->mirrors; i++) {
			standby_mirror each{};

			/* The call fails if the roster has become smaller since try_stat(). */
			if (call([&](perseas_standby_t *s) {
				    return perseas_standby_mirror(s, i, &each);
			    }))
				all.push_back(each);
		}
		return all;
	}

	/* Ends the standby. A second call does nothing. No thread may be in another call. */
	void close() noexcept
	{
		if (standby_ && !detail::process_exits.load())
			(void)perseas_standby_close(standby_);
		standby_ = nullptr;
	}

#if PERSEAS_EXCEPTIONS
	standby(const std::string &name, const std::string &mirrors, const options &how = {})
	    : standby(try_begin(name, mirrors, how).value())
	{
	}
	store wait()
	{
		return try_wait().value();
	}
	std::optional<store> wait(std::chrono::milliseconds most)
	{
		return try_wait(most).value();
	}
	int fd() const
	{
		return try_fd().value();
	}
	void cancel() const
	{
		try_cancel().value();
	}
	standby_status stat() const
	{
		return try_stat().value();
	}
	std::vector<standby_mirror> mirrors() const
	{
		return try_mirrors().value();
	}
#endif

    private:
	std::optional<failure> refusal() const
	{
		if (!standby_)
			return failure(errc::invalid_argument,
			               "this standby was closed, or moved from: use the object "
			               "that it was moved to, or begin another one");
		if (detail::process_exits.load())
			return failure(errc::invalid_argument,
			               "the process is exiting: close standbys that are globals "
			               "before main returns");
		return std::nullopt;
	}
	template <class F>
	result<void> call(F &&function) const
	{
		if (auto refused = refusal())
			return *refused;
		if (const int rc = function(standby_))
			return failure::last(nullptr, rc);
		return {};
	}
	result<std::optional<store>> wait_ms(std::int64_t ms)
	{
		perseas_t *p = nullptr;
		auto done = call(
			[&](perseas_standby_t *s) { return perseas_standby_wait(s, ms, &p); });

		if (!done && done.error().code() == errc::timeout)
			return std::optional<store>();
		if (!done)
			return done.error();
		return std::optional<store>(store::adopt(p, on_event_));
	}

	perseas_standby_t *standby_ = nullptr;
	/* Shared with the stores that the standby opened, until they close. */
	std::shared_ptr<std::function<void(const event &)>> on_event_;
};

} // namespace perseas

#endif
