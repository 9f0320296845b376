/*
 * p.hpp - members whose assignment declares itself, and the transaction that it is declared to: the
 * only thing of the binding that hangs on a thread. transaction.set and transaction.writable do the
 * same, and say the transaction. perseas.hpp includes it.
 */
#ifndef PERSEAS_CPP_P_HPP
#define PERSEAS_CPP_P_HPP

#include "storable.hpp"
#include "transaction.hpp"

#include <type_traits>
#include <utility>

namespace perseas
{

#if PERSEAS_EXCEPTIONS

namespace detail
{
/* Only perseas::p looks at it. */
inline thread_local transaction *current = nullptr;
} // namespace detail

/*
 * While it lives, assignments to perseas::p of this thread are declared to the transaction, which
 * must not be moved or destroyed meanwhile. store::transact makes one. It must end in the thread
 * that made it: no co_await while it lives.
 */
class scope
{
    public:
	explicit scope(transaction &tx) noexcept : before_(std::exchange(detail::current, &tx)) {}
	~scope() { detail::current = before_; }
	scope(const scope &) = delete;
	scope &operator=(const scope &) = delete;

    private:
	transaction *before_;
};

namespace detail
{

inline transaction &current_transaction()
{
	if (!current)
		raise({ errc::invalid_argument,
		        "no transaction is current in this thread, to which an assignment to a "
		        "perseas::p could be declared: assign inside of store.transact, make a "
		        "perseas::scope, or use transaction.set" });
	return *current;
}

} // namespace detail

/*
 * A member of an object in mirrored memory whose assignment declares itself, in the transaction
 * that is current in the thread (perseas::scope). It is as large as T, and reads as T does. It may
 * be assigned through a const object, as roots and segments give them. Copies of an object are not
 * mirrored: to assign to their members is refused (errc::range).
 *
 * A struct with a p in it cannot be assigned as a whole, since that would not be declared, and is
 * trivially copyable for that. From a p that is not const, assign get().
 */
template <class T>
class p
{
	static_assert(std::is_trivially_copyable_v<T> && std::is_standard_layout_v<T>,
	              "perseas: p<T> is for a T that is trivially copyable and of standard layout");

    public:
	p() = default;
	constexpr p(const T &value) noexcept : value_(value) {}
	p(const p &) = default;
	p &operator=(const p &) = delete;

	constexpr operator const T &() const noexcept { return value_; }
	constexpr const T &get() const noexcept { return value_; }
	/* Of a pointer. */
	constexpr const T &operator->() const noexcept
	{
		static_assert(std::is_pointer_v<T>, "perseas: -> is for a p of a pointer");
		return value_;
	}

	p &operator=(const T &value)
	{
		detail::current_transaction().set(value_, value);
		return *this;
	}
	const p &operator=(const T &value) const
	{
		detail::current_transaction().set(value_, value);
		return *this;
	}
	template <class U>
	const p &operator+=(const U &other) const
	{
		return *this = static_cast<T>(value_ + other);
	}
	template <class U>
	const p &operator-=(const U &other) const
	{
		return *this = static_cast<T>(value_ - other);
	}
	template <class U>
	const p &operator*=(const U &other) const
	{
		return *this = static_cast<T>(value_ * other);
	}
	template <class U>
	const p &operator/=(const U &other) const
	{
		return *this = static_cast<T>(value_ / other);
	}
	template <class U>
	const p &operator%=(const U &other) const
	{
		return *this = static_cast<T>(value_ % other);
	}
	template <class U>
	const p &operator|=(const U &other) const
	{
		return *this = static_cast<T>(value_ | other);
	}
	template <class U>
	const p &operator&=(const U &other) const
	{
		return *this = static_cast<T>(value_ & other);
	}
	template <class U>
	const p &operator^=(const U &other) const
	{
		return *this = static_cast<T>(value_ ^ other);
	}
	const p &operator++() const { return *this += 1; }
	const p &operator--() const { return *this -= 1; }
	T operator++(int) const
	{
		const T before = value_;

		*this += 1;
		return before;
	}
	T operator--(int) const
	{
		const T before = value_;

		*this -= 1;
		return before;
	}

    private:
	T value_;
};

#endif

} // namespace perseas

#endif
