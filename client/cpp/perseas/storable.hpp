/*
 * storable.hpp - which types may lie in mirrored memory. perseas.hpp includes it.
 *
 * Mirrors hold bytes, and the next owner is another process, perhaps of another program: so what
 * lies there is trivially copyable, and of standard layout. Pointers to what lies in the same store
 * may be members, since segments keep their addresses; pointers to anything else may not, nor
 * functions, references, or what has virtual functions. No compiler tells the one pointer from the
 * other, so that is for the program to know.
 */
#ifndef PERSEAS_CPP_STORABLE_HPP
#define PERSEAS_CPP_STORABLE_HPP

#include <cstdint>
#include <type_traits>

namespace perseas
{

/* May be specialised by a program that knows better of a type of its own. */
template <class T>
struct storable
    : std::bool_constant<std::is_trivially_copyable_v<T> && std::is_standard_layout_v<T>> {
};

template <class T>
inline constexpr bool storable_v = storable<std::remove_cv_t<T>>::value;

namespace detail
{

template <class T>
constexpr void expect_storable()
{
	using plain = std::remove_cv_t<std::remove_all_extents_t<T>>;

	if constexpr (!storable_v<plain>) {
		static_assert(
			std::is_trivially_copyable_v<plain>,
			"perseas: T must be trivially copyable, since mirrors hold its bytes: "
			"containers and strings live in a perseas::kept");
		static_assert(
			std::is_standard_layout_v<plain>,
			"perseas: T must have standard layout: other programs read its bytes");
	}
	static_assert(!std::is_reference_v<T> && !std::is_function_v<T>,
	              "perseas: T must be an object, and no reference or function");
	static_assert(alignof(plain) <= 4096,
	              "perseas: segments are aligned to pages of 4096 bytes");
}

template <class T, class = void>
struct has_type_member : std::false_type {
};
template <class T>
struct has_type_member<T, std::void_t<decltype(T::perseas_type)>> : std::true_type {
};

} // namespace detail

/* The number of a type of objects of a heap: T::perseas_type, or a specialisation of this. */
template <class T>
struct type_number {
	static_assert(detail::has_type_member<T>::value,
	              "perseas: objects of a heap have a number for their type: give T a member "
	              "`static constexpr std::uint64_t perseas_type = …`, or specialise "
	              "perseas::type_number");
	static constexpr std::uint64_t value = T::perseas_type;
};

} // namespace perseas

#endif
