/*
 * rvm_rig.h - what the tests of librvm-perseas share: a mirror in a process of its own, a store as
 * the log, and an external data segment in a folder that goes with the mirror's.
 */
#ifndef PERSEAS_TESTS_RVM_RIG_H
#define PERSEAS_TESTS_RVM_RIG_H

#include "tellers.h"

#include "../../client/core/handle.h"
#include "../../client/rvm/rvm_statistics.h"
#include "../../client/rvm/state.h"

enum { RVM_PAGE = 4096, RVM_FILE = 16 * RVM_PAGE };

struct rvm_rig {
	struct place place;
	char log[400], data[128];
	rvm_region_t region; /* the whole segment, as rvm_rig_map left it */
};

/* Returns a byte of the external data segment as it is before any mapping. */
static inline uint8_t rvm_first(size_t at)
{
	return (uint8_t)(at / RVM_PAGE * 16 + at % 13);
}

static inline void rvm_rig_make_data(const char *path)
{
	uint8_t bytes[RVM_FILE];
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	for (size_t i = 0; i < RVM_FILE; i++)
		bytes[i] = rvm_first(i);
	assert_true(file >= 0);
	assert_int_equal(write(file, bytes, RVM_FILE), RVM_FILE);
	close(file);
}

static inline void rvm_rig_read_data(const char *path, uint8_t *bytes, size_t length)
{
	int file = open(path, O_RDONLY);

	assert_true(file >= 0);
	assert_int_equal(read(file, bytes, length), length);
	close(file);
}

#define assert_rvm(call)                                                      \
	do {                                                                  \
		rvm_return_t code_ = (call);                                  \
		if (code_ != RVM_SUCCESS)                                     \
			fail_msg("%s: %s", rvm_return(code_), rvm_message()); \
	} while (0)

#define assert_rvm_eio(call, number)             \
	do {                                     \
		assert_int_equal(call, RVM_EIO); \
		assert_int_equal(errno, number); \
	} while (0)

static inline rvm_options_t rvm_rig_options(struct rvm_rig *rig)
{
	rvm_options_t options;

	rvm_init_options(&options);
	options.log_dev = rig->log;
	return options;
}

/* Opens the existing store as a new process would, with these flags. */
static inline void rvm_rig_open(struct rvm_rig *rig, rvm_length_t flags)
{
	rvm_options_t options = rvm_rig_options(rig);

	ps_rvm_reset();
	options.flags = flags;
	assert_rvm(RVM_INIT(&options));
}

/* Holds back commits until they are asked for. The second that an application may set is too short:
 * a busy machine can take that long between two lines of a test. */
static inline void rvm_rig_hold(void)
{
	ps_rvm.store->options.gather_us = 600000000;
	ps_rvm.store->options.commit_timeout_ms = 1200000;
}

static inline rvm_region_t rvm_rig_part(struct rvm_rig *rig, rvm_length_t offset,
                                        rvm_length_t length, void *vmaddr)
{
	rvm_region_t region;

	rvm_init_region(&region);
	region.data_dev = rig->data;
	region.offset = RVM_LENGTH_TO_OFFSET(offset);
	region.length = length;
	region.vmaddr = vmaddr;
	return region;
}

/* Maps a part of the segment. */
static inline rvm_region_t rvm_rig_map_part(struct rvm_rig *rig, rvm_length_t offset,
                                            rvm_length_t length, void *vmaddr)
{
	rvm_region_t region = rvm_rig_part(rig, offset, length, vmaddr);

	assert_rvm(rvm_map(&region, NULL));
	return region;
}

static inline void rvm_rig_map(struct rvm_rig *rig)
{
	rig->region = rvm_rig_map_part(rig, 0, 0, NULL);
}

static inline rvm_tid_t rvm_rig_begin(void)
{
	rvm_tid_t tid;

	rvm_init_tid(&tid);
	assert_rvm(rvm_begin_transaction(&tid, restore));
	return tid;
}

/* Opens the log again, as rvm_rig_open, and maps the whole segment. */
static inline void rvm_rig_open_mapped(struct rvm_rig *rig, rvm_length_t flags)
{
	rvm_rig_open(rig, flags);
	rvm_rig_map(rig);
}

/* Returns an open transaction that has set bytes of the region. */
static inline rvm_tid_t rvm_rig_change(struct rvm_rig *rig, size_t offset, size_t length, int value)
{
	rvm_tid_t tid = rvm_rig_begin();

	assert_rvm(rvm_set_range(&tid, rig->region.vmaddr + offset, length));
	memset(rig->region.vmaddr + offset, value, length);
	return tid;
}

static inline void rvm_rig_put(struct rvm_rig *rig, size_t offset, size_t length, int value,
                               rvm_mode_t mode)
{
	rvm_tid_t tid = rvm_rig_change(rig, offset, length, value);

	assert_rvm(rvm_end_transaction(&tid, mode));
}

/* Sets up a mirror, a data file, and the library in its initial state. */
static inline int rvm_rig_setup_bare(void **state)
{
	struct rvm_rig *rig = calloc(1, sizeof(*rig));

	if (!rig || place_start(&rig->place))
		return -1;
	snprintf(rig->log, sizeof(rig->log), "perseas:rvm@%s", rig->place.local);
	snprintf(rig->data, sizeof(rig->data), "%s/data", rig->place.folder);
	rvm_rig_make_data(rig->data);
	ps_rvm_reset();
	*state = rig;
	return 0;
}

/* Sets up the same with an open log. */
static inline int rvm_rig_setup(void **state)
{
	struct rvm_rig *rig;
	rvm_options_t options;

	if (rvm_rig_setup_bare(state))
		return -1;
	rig = *state;
	options = rvm_rig_options(rig);
	options.create_log_file = rvm_true;
	if (RVM_INIT(&options) == RVM_SUCCESS)
		return 0;
	print_error("the log is not opened: %s\n", rvm_message());
	return -1;
}

/* Sets up the same with the whole segment mapped. */
static inline int rvm_rig_setup_mapped(void **state)
{
	if (rvm_rig_setup(state))
		return -1;
	rvm_rig_map(*state);
	return 0;
}

static inline int rvm_rig_teardown(void **state)
{
	struct rvm_rig *rig = *state;
	int rc;

	ps_rvm_reset();
	rc = place_end(&rig->place);
	free(rig);
	return rc;
}

#endif
