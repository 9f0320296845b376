/*
 * span.hpp - a pointer and a length, and the store that the memory belongs to. C++17 has no
 * std::span, and what a header returns must not depend on the language standard. So this class is
 * the same in each standard, and converts to std::span, which accepts anything with data() and
 * size(). perseas.hpp includes it.
 *
 * A span from a store must not be used after the store is closed: each function that leads to its
 * memory checks that, and then throws perseas::error, as segments do. Iterators, pointers and
 * std::spans that these functions return are raw.
 */
#ifndef PERSEAS_CPP_SPAN_HPP
#define PERSEAS_CPP_SPAN_HPP

#include "session.hpp"

#include <cstddef>
#include <string>
#include <type_traits>

#if __has_include(<version>)
#include <version>
#endif
#if defined(__cpp_lib_ranges)
#include <ranges>
#endif

namespace perseas
{

/* Consecutive elements that something else owns. A span that a program makes from a pointer knows
 * no store, and checks only that an index is in range. */
template <class T>
class span
{
    public:
	using element_type = T;
	using value_type = std::remove_cv_t<T>;
	using iterator = T *;

	constexpr span() noexcept = default;
	constexpr span(T *first, std::size_t count) noexcept : first_(first), count_(count) {}
	template <std::size_t N>
	constexpr span(T (&array)[N]) noexcept : first_(array), count_(N)
	{
	}
	/* Converts to a span of const elements. */
	template <class U, class = std::enable_if_t<std::is_convertible_v<U (*)[], T (*)[]>>>
	constexpr span(span<U> other) noexcept
	    : first_(other.address()), count_(other.size()), of_(other.of_)
	{
	}

	/* Returns the beginning without checking the store, for declaring or comparing
	 * addresses. */
	constexpr T *address() const noexcept { return first_; }
	constexpr T *data() const { return checked(); }
	constexpr std::size_t size() const noexcept { return count_; }
	constexpr std::size_t size_bytes() const noexcept { return count_ * sizeof(T); }
	constexpr bool empty() const noexcept { return count_ == 0; }
	constexpr T &operator[](std::size_t at) const
	{
		T *first = checked();

		if (__builtin_expect(at >= count_, 0))
			none("element", at);
		return first[at];
	}
	constexpr T &front() const { return (*this)[0]; }
	constexpr T &back() const { return (*this)[count_ - 1]; }
	constexpr T *begin() const { return checked(); }
	constexpr T *end() const { return checked() + count_; }

	/* Returns `count` elements from `from` on. errc::range if they are not all in the span. */
	constexpr span subspan(std::size_t from, std::size_t count) const
	{
		if (__builtin_expect(from > count_ || count > count_ - from, 0))
			none("a part that ends at", from + count);
		return { first_ + from, count, of_ };
	}
	constexpr span first(std::size_t count) const { return subspan(0, count); }

    private:
	template <class U>
	friend class span;
	template <class U>
	friend class segment;
	friend class transaction;
	friend class heap;

	/* Creates a span of memory of the store to which the session `of` refers. */
	constexpr span(T *first, std::size_t count, detail::session_ref of) noexcept
	    : first_(first), count_(count), of_(of)
	{
	}

	constexpr T *checked() const
	{
		if (of_.s && __builtin_expect(!of_.alive(), 0))
			detail::raise(of_.refusal());
		return first_;
	}
	[[noreturn, gnu::cold, gnu::noinline]] void none(const char *what, std::size_t at) const
	{
		detail::raise({ errc::range, std::string(what) + " " + std::to_string(at) + " of " +
		                                     std::to_string(count_) +
		                                     " of a span: there is none" });
	}

	T *first_ = nullptr;
	std::size_t count_ = 0;
	detail::session_ref of_{ nullptr, 0 };
};

} // namespace perseas

#if defined(__cpp_lib_ranges)
template <class T>
inline constexpr bool std::ranges::enable_borrowed_range<perseas::span<T>> = true;
template <class T>
inline constexpr bool std::ranges::enable_view<perseas::span<T>> = true;
#endif

#endif
