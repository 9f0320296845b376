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
	standby.warm = standby.memory = 128 * PS_SEGMENT_MAX;
	assert_true(accepted(&request));
	standby.memory--;
	assert_false(accepted(&request));
	standby.warm = 0;
	assert_true(accepted(&request));
	standby.memory += 2;
	assert_false(accepted(&request));
	standby.memory = 0;
	standby.warm = 1;
	assert_false(accepted(&request));
}

/* 0 is as long as the mirror pleases. */
TEST(a_watch_for_a_time_out_of_range_is_refused)
{
	Perseas__WatchRequest watch = PERSEAS__WATCH_REQUEST__INIT;
	Perseas__Request request = MESSAGE_REQUEST(watch, WATCH, &watch);

	watch.store = message_bank;
	watch.within_ms = 999;
	assert_false(accepted(&request));
	watch.within_ms = 1000;
	assert_true(accepted(&request));
	watch.within_ms = 30000;
	assert_true(accepted(&request));
	watch.within_ms = 30001;
	assert_false(accepted(&request));
}
