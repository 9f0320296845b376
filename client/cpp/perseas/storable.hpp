/*
 * storable.hpp - the types that may lie in mirrored memory. perseas.hpp includes it.
 *
 * Mirrors hold bytes, and the next owner is another process, perhaps of another program. So a type
 * there must be trivially copyable and have standard layout. It may contain pointers into the same
 * store, because segments keep their addresses. It must not contain other pointers, functions,
 * references, or anything with virtual functions. A compiler cannot tell these pointers apart: the
 * program must know.
 */
#ifndef PERSEAS_CPP_STORABLE_HPP
#define PERSEAS_CPP_STORABLE_HPP

#include <cstdint>
#include <type_traits>

namespace perseas
{

/* Programs may specialize it for a type of their own that they know to be storable. */
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

/* The number of a heap object's type: T::perseas_type, or a specialization of this. */
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
