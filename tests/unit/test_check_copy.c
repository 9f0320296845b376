/*
 * test_check_copy.c - what a standby says of its copy, and how soon it wants to say that again, is
 * refused where it is out of range.
 */
#include "check_rig.h"

/* A copy has at most what the store has, and that is bounded. */
TEST(a_copy_out_of_range_is_refused)
{
	Perseas__WatchRequest watch = PERSEAS__WATCH_REQUEST__INIT;
	Perseas__Standby standby = PERSEAS__STANDBY__INIT;
	Perseas__Request request = MESSAGE_REQUEST(watch, WATCH, &watch);
	uint8_t mark[4] = { 0 };

	watch.store = standby.name = message_bank;
	watch.standby = &standby;
	standby.mark = (ProtobufCBinaryData){ 4, mark };
	assert_accepted_with(request, standby.memory, 128 * PS_SEGMENT_MAX);
	assert_accepted_with(request, standby.memory, 128 * PS_SEGMENT_MAX - 1);
	assert_refused_with(request, standby.memory, 128 * PS_SEGMENT_MAX + 1);
	assert_refused_with(request, standby.warm, 1);
	standby.warm = 128 * PS_SEGMENT_MAX;
	assert_accepted_with(request, standby.memory, 128 * PS_SEGMENT_MAX);
	assert_refused_with(request, standby.memory, 128 * PS_SEGMENT_MAX - 1);
}

/* 0 is as long as the mirror pleases. */
TEST(a_watch_for_a_time_out_of_range_is_refused)
{
	Perseas__WatchRequest watch = PERSEAS__WATCH_REQUEST__INIT;
	Perseas__Request request = MESSAGE_REQUEST(watch, WATCH, &watch);

	watch.store = message_bank;
	assert_refused_with(request, watch.within_ms, 999);
	assert_accepted_with(request, watch.within_ms, 1000);
	assert_accepted_with(request, watch.within_ms, 30000);
	assert_refused_with(request, watch.within_ms, 30001);
}
