/*
 * span.hpp - a pointer and a length. C++17 has no std::span, and what a header returns must not
 * depend on the standard that it is compiled with: so this is the same in each, and converts to
 * std::span, which takes whatever has data() and size(). perseas.hpp includes it.
 */
#ifndef PERSEAS_CPP_SPAN_HPP
#define PERSEAS_CPP_SPAN_HPP

#include <cstddef>
#include <type_traits>

#if __has_include(<version>)
#include <version>
#endif
#if defined(__cpp_lib_ranges)
#include <ranges>
#endif

namespace perseas
{

/* Elements that lie side by side, and are somebody else's. */
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
	/* Of what may be changed, one that only reads. */
	template <class U, class = std::enable_if_t<std::is_convertible_v<U (*)[], T (*)[]>>>
	constexpr span(span<U> other) noexcept : first_(other.data()), count_(other.size())
	{
	}

	constexpr T *data() const noexcept { return first_; }
	constexpr std::size_t size() const noexcept { return count_; }
	constexpr std::size_t size_bytes() const noexcept { return count_ * sizeof(T); }
	constexpr bool empty() const noexcept { return count_ == 0; }
	constexpr T &operator[](std::size_t at) const noexcept { return first_[at]; }
	constexpr T &front() const noexcept { return first_[0]; }
	constexpr T &back() const noexcept { return first_[count_ - 1]; }
	constexpr T *begin() const noexcept { return first_; }
	constexpr T *end() const noexcept { return first_ + count_; }

	/* Elements from `from` on, `count` of them: both must lie in it. */
	constexpr span subspan(std::size_t from, std::size_t count) const noexcept
	{
		return { first_ + from, count };
	}
	constexpr span first(std::size_t count) const noexcept { return { first_, count }; }

    private:
	T *first_ = nullptr;
	std::size_t count_ = 0;
};

} // namespace perseas

#if defined(__cpp_lib_ranges)
template <class T>
inline constexpr bool std::ranges::enable_borrowed_range<perseas::span<T>> = true;
template <class T>
inline constexpr bool std::ranges::enable_view<perseas::span<T>> = true;
#endif

#endif
