/*
 * offsets.c - arithmetic of offsets of 128 bits and of pages, which the macros of rvm.h call.
 */
#include "rvm.h"

#include <unistd.h>

rvm_offset_t rvm_mk_offset(rvm_length_t high, rvm_length_t low)
{
	return (rvm_offset_t){ high, low };
}

rvm_offset_t rvm_add_offsets(rvm_offset_t *x, rvm_offset_t *y)
{
	const rvm_length_t low = x->low + y->low;

	return (rvm_offset_t){ x->high + y->high + (low < x->low), low };
}

rvm_offset_t rvm_add_length_to_offset(rvm_offset_t *offset, rvm_length_t length)
{
	rvm_offset_t other = { 0, length };

	return rvm_add_offsets(offset, &other);
}

rvm_offset_t rvm_sub_offsets(rvm_offset_t *x, rvm_offset_t *y)
{
	return (rvm_offset_t){ x->high - y->high - (x->low < y->low), x->low - y->low };
}

rvm_offset_t rvm_sub_length_from_offset(rvm_offset_t *offset, rvm_length_t length)
{
	rvm_offset_t other = { 0, length };

	return rvm_sub_offsets(offset, &other);
}

rvm_length_t rvm_page_size(void)
{
	return (rvm_length_t)sysconf(_SC_PAGESIZE);
}

rvm_length_t rvm_page_mask(void)
{
	return ~(rvm_page_size() - 1);
}

rvm_offset_t rvm_rnd_offset_dn_to_page(rvm_offset_t *x)
{
	return (rvm_offset_t){ x->high, x->low & rvm_page_mask() };
}

rvm_offset_t rvm_rnd_offset_up_to_page(rvm_offset_t *x)
{
	rvm_offset_t up = rvm_add_length_to_offset(x, rvm_page_size() - 1);

	return rvm_rnd_offset_dn_to_page(&up);
}
