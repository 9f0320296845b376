/*
 * A program for RVM in the tests of the packages: it counts its runs in an external data segment.
 * debian/tests/bindings compiles it against what librvm-perseas-dev installs. It must use nothing
 * that RVM does not have but rvm_message.
 *
 *     counter_rvm LOG SEGMENT
 */
#include <rvm.h>
#include <rvm/rvm_statistics.h>
#include <stdio.h>

enum { REGION_BYTES = 4096 };

static int fail(const char *what, rvm_return_t code)
{
	fprintf(stderr, "counter_rvm: %s: %s: %s\n", what, rvm_return(code), rvm_message());
	return 1;
}

/* Adds one in a transaction that is permanent when it returns. */
static rvm_return_t count(long *runs)
{
	rvm_tid_t tid;
	rvm_return_t code;

	rvm_init_tid(&tid);
	code = rvm_begin_transaction(&tid, restore);
	if (code == RVM_SUCCESS)
		code = rvm_set_range(&tid, runs, sizeof(*runs));
	if (code != RVM_SUCCESS)
		return code;
	*runs += 1;
	return rvm_end_transaction(&tid, flush);
}

int main(int argc, char **argv)
{
	rvm_options_t options;
	rvm_region_t region;
	rvm_return_t code;

	if (argc != 3)
		return 2;
	rvm_init_options(&options);
	options.log_dev = argv[1];
	code = RVM_INIT(&options);
	if (code != RVM_SUCCESS)
		return fail("rvm_initialize", code);
	rvm_init_region(&region);
	region.data_dev = argv[2];
	region.dev_length = RVM_MK_OFFSET(0, REGION_BYTES);
	region.length = REGION_BYTES;
	code = rvm_map(&region, NULL);
	if (code != RVM_SUCCESS)
		return fail("rvm_map", code);

	code = count((long *)(void *)region.vmaddr);
	if (code != RVM_SUCCESS)
		return fail("a transaction", code);
	printf("run %ld\n", *(long *)(void *)region.vmaddr);
	code = rvm_truncate();
	if (code == RVM_SUCCESS)
		code = rvm_terminate();
	return code == RVM_SUCCESS ? 0 : fail("the end", code);
}
