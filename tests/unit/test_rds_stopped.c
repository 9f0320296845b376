/*
 * test_rds_stopped.c - a heap that is stopped while its segment stays loaded: the segment can be
 * started or unloaded again, and no other one takes its place meanwhile.
 */
#include "rds_rig.h"

struct unit_fixture unit_fixture = { rds_rig_setup, rds_rig_teardown };

TEST(another_segment_waits_until_the_stopped_one_is_unloaded, struct rvm_rig *rig)
{
	char *place = NULL, other[sizeof(rig->data) + 8];
	const rvm_region_def_t *const defs = RegionDefs;

	snprintf(other, sizeof(other), "%s.other", rig->data);
	rvm_rig_make_data(other);
	assert_rds(rds_stop_heap(&err));
	assert_int_equal(rds_load_heap(other, rds_rig_any(), &place, &err), -1);
	assert_int_equal(err, EHEAP_INIT);
	assert_null(place);
	assert_int_equal(rds_zap_heap(other, rds_rig_any(), RDS_AT + (1 << 24), RDS_STATIC,
	                              RDS_HEAP, RDS_LISTS, RDS_CHUNK, &err),
	                 -1);
	assert_int_equal(err, EHEAP_INIT);
	assert_ptr_equal(RegionDefs, defs);
	assert_rds(rds_unload_heap(&err));
	assert_null(RegionDefs);
	assert_rds(rds_zap_heap(other, rds_rig_any(), RDS_AT + (1 << 24), RDS_STATIC, RDS_HEAP,
	                        RDS_LISTS, RDS_CHUNK, &err));
}

TEST(a_stopped_heap_is_started_by_loading_it_again, struct rvm_rig *rig)
{
	char *place = NULL;

	rds_rig_take(10, NULL);
	assert_rds(rds_stop_heap(&err));
	assert_rds(rds_load_heap(rig->data, rds_rig_any(), &place, &err));
	assert_ptr_equal(place, RegionDefs[1].vmaddr);
	assert_int_equal(rds_rig_check(), 1);
}
