/*
 * error.hpp - errors for C++: codes of a std::error_category, an exception with the library's
 * sentence, and results for programs without exceptions. perseas.hpp includes it. Sentences are
 * copied: nothing here keeps a pointer to a text of the library.
 */
#ifndef PERSEAS_CPP_ERROR_HPP
#define PERSEAS_CPP_ERROR_HPP

/* Some C structures share their names with functions. */
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif
#include <perseas.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#include <cstdlib>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

/* 1: functions that throw exist. 0 (-fno-exceptions): only the try_… functions exist. */
#if defined(__cpp_exceptions)
#define PERSEAS_EXCEPTIONS 1
#else
#define PERSEAS_EXCEPTIONS 0
#endif

namespace perseas
{

/* Names for C structures that share their names with functions, so that programs need not write
 * `struct`. */
using status = struct ::perseas_stat;
using heap_status = struct ::perseas_heap_stat;
using segment_info = struct ::perseas_segment_info;
using event = struct ::perseas_event;

/* The codes of perseas.h under C++ names, with the same numbers. */
enum class errc : int {
	ok = PERSEAS_OK,
	invalid_argument = PERSEAS_EINVAL,
	out_of_memory = PERSEAS_ENOMEM,
	system = PERSEAS_ESYSTEM,
	unreachable = PERSEAS_EUNREACHABLE,
	protocol = PERSEAS_EPROTOCOL,
	version = PERSEAS_EVERSION,
	no_store = PERSEAS_ENOSTORE,
	exists = PERSEAS_EEXIST,
	busy = PERSEAS_EBUSY,
	fenced = PERSEAS_EFENCED,
	no_quorum = PERSEAS_EQUORUM,
	in_doubt = PERSEAS_EINDOUBT,
	blocked = PERSEAS_EBLOCKED,
	damaged = PERSEAS_EDAMAGED,
	mirror_memory = PERSEAS_EMIRRORMEM,
	no_segment = PERSEAS_ENOSEGMENT,
	size = PERSEAS_ESIZE,
	address = PERSEAS_EADDRESS,
	range = PERSEAS_ERANGE,
	unpublished = PERSEAS_EUNPUBLISHED,
	too_big = PERSEAS_ETOOBIG,
	ended = PERSEAS_EENDED,
	conflict = PERSEAS_ECONFLICT,
	undeclared = PERSEAS_EUNDECLARED,
	roster = PERSEAS_EROSTER,
	limit = PERSEAS_ELIMIT,
	salvage = PERSEAS_ESALVAGE,
	rdma = PERSEAS_ERDMA,
	denied = PERSEAS_EDENIED,
	tls = PERSEAS_ETLS,
	timeout = PERSEAS_ETIMEOUT,
	cancelled = PERSEAS_ECANCELLED,
	heap = PERSEAS_EHEAP,
	object = PERSEAS_EOBJECT,
	epoch = PERSEAS_EEPOCH,
	again = PERSEAS_EAGAIN,
	unfinished = PERSEAS_EUNFINISHED
};

namespace detail
{

class category_type final : public std::error_category
{
    public:
	const char *name() const noexcept override { return "perseas"; }
	std::string message(int code) const override { return perseas_strerror(code); }

	/* Maps the code to a std::errc, so that code that knows nothing of Perseas can compare
	 * it. */
	std::error_condition default_error_condition(int code) const noexcept override
	{
		switch (code) {
		case PERSEAS_EINVAL:
			return std::errc::invalid_argument;
		case PERSEAS_ENOMEM:
			return std::errc::not_enough_memory;
		case PERSEAS_EBUSY:
			return std::errc::device_or_resource_busy;
		case PERSEAS_EDENIED:
			return std::errc::permission_denied;
		case PERSEAS_ETIMEOUT:
			return std::errc::timed_out;
		case PERSEAS_ECANCELLED:
			return std::errc::operation_canceled;
		case PERSEAS_EAGAIN:
			return std::errc::resource_unavailable_try_again;
		default:
			return { code, *this };
		}
	}
};

} // namespace detail

/* Returns the category of these codes. It is never destroyed: global stores may still need it. */
inline const std::error_category &category() noexcept
{
	static const detail::category_type *const lasting = new detail::category_type;

	return *lasting;
}

inline std::error_code make_error_code(errc code) noexcept
{
	return { static_cast<int>(code), category() };
}

} // namespace perseas

template <>
struct std::is_error_code_enum<perseas::errc> : std::true_type {
};

namespace perseas
{

/* An error: a code for programs, and a sentence for people that says what to do. */
class failure
{
    public:
	failure(errc code, std::string sentence) : code_(code), sentence_(std::move(sentence)) {}

	/* Returns the failure of the calling thread's last call with handle p, or of its last call
	 * without a handle if p is nullptr. rc is the code that the call returned. */
	static failure last(const perseas_t *p, int rc)
	{
		char sentence[1024];
		int code = 0;

		if (perseas_error(p, sentence, sizeof(sentence), &code) || code != rc)
			return { static_cast<errc>(rc), perseas_strerror(rc) };
		return { static_cast<errc>(rc), sentence };
	}

	errc code() const noexcept { return code_; }
	const std::string &sentence() const noexcept { return sentence_; }

    private:
	errc code_;
	std::string sentence_;
};

#if PERSEAS_EXCEPTIONS

/* The exception that functions without try_ throw. what() is the sentence, followed by the code's
 * text. */
class error : public std::system_error
{
    public:
	explicit error(const failure &what)
	    : std::system_error(make_error_code(what.code()), what.sentence()),
	      length_(what.sentence().size())
	{
	}

	errc reason() const noexcept { return static_cast<errc>(code().value()); }
	std::string sentence() const { return std::string(what(), length_); }

    private:
	std::string::size_type length_;
};

#endif

namespace detail
{

[[noreturn]] inline void raise(const failure &what)
{
#if PERSEAS_EXCEPTIONS
	throw error(what);
#else
	(void)what; /* value() without a value, and without exceptions to report it */
	std::abort();
#endif
}

} // namespace detail

/*
 * The result of a try_… function: a value, or a failure. value() without a value throws
 * perseas::error, or ends the program if exceptions are disabled. operator*, -> and error() may
 * only be called if the caller knows which of the two the result holds.
 */
template <class T>
class [[nodiscard]] result
{
    public:
	using value_type = T;

	result(T value) : held_(std::in_place_index<0>, std::move(value)) {}
	result(failure why) : held_(std::in_place_index<1>, std::move(why)) {}

	bool has_value() const noexcept { return held_.index() == 0; }
	explicit operator bool() const noexcept { return has_value(); }

	T &operator*() &noexcept { return *std::get_if<0>(&held_); }
	const T &operator*() const &noexcept { return *std::get_if<0>(&held_); }
	T &&operator*() &&noexcept { return std::move(*std::get_if<0>(&held_)); }
	T *operator->() noexcept { return std::get_if<0>(&held_); }
	const T *operator->() const noexcept { return std::get_if<0>(&held_); }

	T &value() &
	{
		expect();
		return **this;
	}
	const T &value() const &
	{
		expect();
		return **this;
	}
	T &&value() &&
	{
		expect();
		return std::move(**this);
	}
	template <class U>
	T value_or(U &&other) &&
	{
		return has_value() ? std::move(**this) : static_cast<T>(std::forward<U>(other));
	}

	const failure &error() const noexcept { return *std::get_if<1>(&held_); }
	/* Returns the failure's code, or 0 if there is a value. */
	std::error_code code() const noexcept
	{
		return make_error_code(has_value() ? errc::ok : error().code());
	}

    private:
	void expect() const
	{
		if (!has_value())
			detail::raise(error());
	}

	std::variant<T, failure> held_;
};

/* The result of a try_… function that returns no value: success, or a failure. */
template <>
class [[nodiscard]] result<void>
{
    public:
	using value_type = void;

	result() noexcept = default;
	result(failure why) : why_(std::move(why)) {}

	bool has_value() const noexcept { return !why_; }
	explicit operator bool() const noexcept { return has_value(); }
	void value() const
	{
		if (why_)
			detail::raise(*why_);
	}
	const failure &error() const noexcept { return *why_; }
	std::error_code code() const noexcept
	{
		return make_error_code(why_ ? why_->code() : errc::ok);
	}

    private:
	std::optional<failure> why_;
};

} // namespace perseas

#endif
