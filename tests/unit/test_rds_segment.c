/*
 * test_rds_segment.c - the segment loader: load maps that are written and read, regions at their
 * addresses, what is refused, and load maps that somebody has changed.
 */
#include "rds_rig.h"

#include <limits.h>

struct unit_fixture unit_fixture = { rvm_rig_setup, rds_rig_teardown };

TEST(regions_come_where_they_were, struct rvm_rig *rig)
{
	rvm_region_def_t defs[3] = { { .length = 2 * RVM_PAGE, .vmaddr = RDS_AT },
		                     { .length = RVM_PAGE },
		                     { .length = RVM_PAGE, .vmaddr = RDS_AT + 4 * RVM_PAGE } };
	rvm_region_def_t *got = NULL, *kept;
	unsigned long count = 0;
	rvm_tid_t tid;

	assert_rvm(rvm_create_segment(rig->data, rds_rig_any(), NULL, 3, defs));
	assert_int_equal(defs[0].offset.low, RVM_PAGE);
	assert_int_equal(defs[1].offset.low, 3 * RVM_PAGE);
	assert_int_equal(defs[2].offset.low, 4 * RVM_PAGE);
	rvm_rig_open(rig, 0);
	assert_rvm(rvm_load_segment(rig->data, rds_rig_any(), NULL, &count, &got));
	assert_int_equal(count, 3);
	assert_ptr_equal(got[0].vmaddr, RDS_AT);
	assert_ptr_equal(got[2].vmaddr, RDS_AT + 4 * RVM_PAGE);
	assert_non_null(got[1].vmaddr);
	/* Only the first page of the segment is another one. */
	assert_int_equal((uint8_t)got[0].vmaddr[5], rvm_first(RVM_PAGE + 5));
	assert_int_equal((uint8_t)got[1].vmaddr[5], rvm_first(3 * RVM_PAGE + 5));
	tid = rvm_rig_begin();
	assert_rvm(rvm_set_range(&tid, got[1].vmaddr, 1));
	assert_int_equal(rvm_release_segment(count, &got), RVM_EUNCOMMIT);
	assert_null(got[0].vmaddr);
	assert_non_null(got[1].vmaddr);
	assert_rvm(rvm_abort_transaction(&tid));
	assert_rvm(rvm_release_segment(count, &got));
	assert_null(got);
	assert_int_equal(rvm_release_segment(count, &got), RVM_EREGION_DEF);
	/* Where one is mapped already, none is. */
	assert_rvm(rvm_load_segment(rig->data, rds_rig_any(), NULL, &count, &got));
	kept = NULL;
	assert_int_equal(rvm_load_segment(rig->data, rds_rig_any(), NULL, &count, &kept),
	                 RVM_EVM_OVERLAP);
	assert_null(kept);
	assert_rvm(rvm_release_segment(count, &got));
}

/* When one region cannot be mapped, those mapped before it are unmapped. */
TEST(half_a_load_is_taken_back, struct rvm_rig *rig)
{
	rvm_region_def_t defs[2] = { { .length = RVM_PAGE, .vmaddr = RDS_AT },
		                     { .length = RVM_PAGE, .vmaddr = RDS_AT + 4 * RVM_PAGE } };
	rvm_region_def_t *got = NULL;
	unsigned long count = 0;
	rvm_region_t second;

	assert_rvm(rvm_create_segment(rig->data, rds_rig_any(), NULL, 2, defs));
	rvm_rig_open(rig, 0);
	second = rvm_rig_map_part(rig, defs[1].offset.low, RVM_PAGE, RDS_AT + 4 * RVM_PAGE);
	assert_int_not_equal(rvm_load_segment(rig->data, rds_rig_any(), NULL, &count, &got),
	                     RVM_SUCCESS);
	assert_null(got);
	assert_rvm(rvm_unmap(&second));
	assert_rvm(rvm_load_segment(rig->data, rds_rig_any(), NULL, &count, &got));
	assert_rvm(rvm_release_segment(count, &got));
}

TEST(bad_regions_are_refused, struct rvm_rig *rig)
{
	const struct {
		rvm_region_def_t defs[2];
		rvm_return_t code;
	} bad[] = {
		{ { { .length = 0 }, { .length = RVM_PAGE } }, RVM_ERANGE },
		{ { { .length = RVM_PAGE }, { .length = 100 } }, RVM_ERANGE },
		{ { { .length = RVM_PAGE, .vmaddr = RDS_AT + 1 }, { .length = RVM_PAGE } },
		  RVM_ERANGE },
		{ { { .length = RVM_PAGE }, { .length = ULONG_MAX - 4095 } }, RVM_ERANGE },
		{ { { .length = 2 * RVM_PAGE, .vmaddr = RDS_AT },
		    { .length = RVM_PAGE, .vmaddr = RDS_AT + RVM_PAGE } },
		  RVM_EVM_OVERLAP },
	};
	static rvm_region_def_t many[170];

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		rvm_region_def_t defs[2] = { bad[i].defs[0], bad[i].defs[1] };

		assert_int_equal(rvm_create_segment(rig->data, rds_rig_any(), NULL, 2, defs),
		                 bad[i].code);
	}
	assert_int_equal(rvm_create_segment(rig->data, rds_rig_any(), NULL, 0, many),
	                 RVM_EREGION_DEF);
	for (unsigned i = 0; i < 170; i++)
		many[i].length = RVM_PAGE;
	assert_int_equal(rvm_create_segment(rig->data, rds_rig_any(), NULL, 170, many),
	                 RVM_ENO_MEMORY);
	assert_rvm(rvm_create_segment(rig->data, rds_rig_any(), NULL, 169, many));
}

/* Changes a word of the load map. */
static void put_word(struct rvm_rig *rig, rvm_length_t at, uint64_t value, uint64_t *before)
{
	rvm_region_t page = rvm_rig_part(rig, 0, RVM_PAGE, NULL);
	rvm_tid_t tid = rvm_rig_begin();

	assert_rvm(rvm_map(&page, NULL));
	memcpy(before, page.vmaddr + at, sizeof(*before));
	assert_rvm(rvm_modify_bytes(&tid, page.vmaddr + at, &value, sizeof(value)));
	assert_rvm(rvm_end_transaction(&tid, flush));
	assert_rvm(rvm_unmap(&page));
}

TEST(load_maps_that_lie_are_refused, struct rvm_rig *rig)
{
	rvm_region_def_t defs[2] = { { .length = RVM_PAGE, .vmaddr = RDS_AT },
		                     { .length = RVM_PAGE } };
	const struct {
		rvm_length_t at;
		uint64_t value;
		rvm_return_t code;
	} lies[] = { { 0, 1, RVM_ESEGMENT_HDR },
		     { 8, 2, RVM_EVERSION_SKEW },
		     { 16, 0, RVM_ESEGMENT_HDR },
		     { 16, UINT64_MAX, RVM_ESEGMENT_HDR },
		     { 24, 0, RVM_EOVERLAP },
		     { 32, 100, RVM_EOVERLAP },
		     { 32, UINT64_MAX - 4095, RVM_EOVERLAP },
		     { 40, (uint64_t)(uintptr_t)RDS_AT + 1, RVM_ERANGE },
		     { 56, UINT64_MAX - 4095, RVM_ERANGE } };
	rvm_region_def_t *got = NULL;
	unsigned long count;
	uint64_t before, lie;

	assert_int_equal(rvm_load_segment(rig->data, rds_rig_any(), NULL, &count, &got),
	                 RVM_ESEGMENT_HDR);
	assert_rvm(rvm_create_segment(rig->data, rds_rig_any(), NULL, 2, defs));
	for (unsigned i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		put_word(rig, lies[i].at, lies[i].value, &before);
		assert_int_equal(rvm_load_segment(rig->data, rds_rig_any(), NULL, &count, &got),
		                 lies[i].code);
		assert_null(got);
		put_word(rig, lies[i].at, before, &lie);
	}
	assert_rvm(rvm_load_segment(rig->data, rds_rig_any(), NULL, &count, &got));
	assert_rvm(rvm_release_segment(count, &got));
}

/* A load map never replaces memory of the program, neither a page nor a region: its author could
 * put anything there. */
TEST(memory_of_the_programs_stays, struct rvm_rig *rig)
{
	rvm_region_def_t defs[2] = { { .length = RVM_PAGE }, { .length = 3 * RVM_PAGE } };
	rvm_region_def_t *got = NULL;
	unsigned long count;

	for (unsigned pages = 1; pages <= 3; pages += 2) {
		const size_t length = pages * (size_t)RVM_PAGE;
		char *mine = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		                  -1, 0);

		assert_true(mine != MAP_FAILED);
		memset(mine, 'm', length);
		defs[1].vmaddr = mine;
		assert_rvm(rvm_create_segment(rig->data, rds_rig_any(), NULL, 2, defs));
		assert_int_equal(rvm_load_segment(rig->data, rds_rig_any(), NULL, &count, &got),
		                 RVM_ERANGE);
		assert_non_null(strstr(rds_message(), "region 1 "));
		assert_null(got);
		for (size_t i = 0; i < length; i++)
			assert_int_equal(mine[i], 'm');
		munmap(mine, length);
	}
}
