/*
 * data_rig.h - an owner's end of a data connection, for the tests of the daemon's.
 */
#ifndef PERSEAS_TESTS_DATA_RIG_H
#define PERSEAS_TESTS_DATA_RIG_H

#include "../support/daemon_fixture.h"

#include "../../proto/data/frame.h"
#include "../support/unit.h"

static inline struct ps_answer open_data(struct fixture *fixture, int fd, const uint8_t *token)
{
	struct ps_hello hello = { .magic = PS_DATA_MAGIC, .version = PS_DATA_VERSION };
	struct ps_answer answer;

	memcpy(hello.token, token, PS_ID_SIZE);
	fixture_send(fd, &hello, sizeof(hello));
	assert_true(fixture_receive(fixture, fd, &answer, sizeof(answer)));
	assert_int_equal(answer.op, PS_OP_HELLO);
	return answer;
}

/* Claims the bank over `control`, which has not greeted, and opens the data path on `data`. */
static inline void claim_data(struct fixture *fixture, int control, int data, uint64_t epoch)
{
	Perseas__Reply *reply = fixture_claim(fixture, control, epoch);

	assert_int_equal(open_data(fixture, data, reply->claim->grant->token.data).status,
	                 PS_ANSWER_OK);
	fixture_done(reply);
}

struct request_frame {
	struct ps_frame frame;
	struct ps_extent extent;
};

static inline struct request_frame frame_of(enum ps_op op, uint64_t offset, uint32_t length,
                                            uint64_t cookie)
{
	struct request_frame frame = {
		.frame = { .op = (uint8_t)op, .count = 1, .cookie = cookie },
		.extent = { .region = PS_REGION_LOG, .length = length, .offset = offset },
	};

	if (op == PS_OP_WRITE)
		frame.frame.flags = PS_FRAME_SIGNALLED;
	return frame;
}

#endif
