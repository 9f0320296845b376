/*
 * fuzz_access.c - any bytes as rules: they are refused with a sentence and a line, or one more line
 * takes nothing back: no right, and no limit that was set.
 */
#include "../../server/store/access.h"
#include "target.h"

static bool find(const char *name, uint32_t *number)
{
	*number = (uint32_t)strlen(name);
	return *name != '-';
}

static const struct access_names names = { find, find };
static const char one_more[] = "\nallow uid:3 own store a*\nlimit * memory 1 stores 1 sessions 1 "
			       "connections 1 requests 1/s\n";

static const struct identity whos[] = {
	{ .name = "uid:3", .gids = { 3, 1 }, .gid_count = 2 },
	{ .name = "uid:1000" },
	{ .name = "cert:bank-1" },
	{ .name = "anonymous" },
	{ .name = "" },
};

static const char *const stores[] = { NULL, "a", "bank", "bank-1" };

static void require_fault(const struct access_fault *fault, size_t size)
{
	require(fault->line <= size + 1);
	require(strlen(fault->text) > 0 && strlen(fault->text) < sizeof(fault->text));
	for (const char *c = fault->text; *c; c++)
		require(*c >= ' ' && *c <= '~');
}

static void compare(const struct access *access, const struct access *more)
{
	for (size_t i = 0; i < sizeof(whos) / sizeof(whos[0]); i++) {
		for (size_t j = 0; j < sizeof(stores) / sizeof(stores[0]); j++)
			for (unsigned right = RIGHT_CREATE; right <= RIGHT_ADMIN; right <<= 1)
				if (access_allows(access, &whos[i], (enum right)right, stores[j]))
					require(access_allows(more, &whos[i], (enum right)right,
					                      stores[j]));
		for (unsigned limit = 0; limit < LIMITS; limit++) {
			uint64_t figure = access_limit(access, whos[i].name, (enum limit)limit);

			if (figure != LIMIT_NONE)
				require(access_limit(more, whos[i].name, (enum limit)limit) ==
				        figure);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct access_fault fault;
	char *text = malloc(size + sizeof(one_more));
	struct access *access, *more;

	require(text);
	memcpy(text, data, size);
	memcpy(text + size, one_more, sizeof(one_more));
	access = access_parse(text, size, &names, &fault);
	if (access) {
		more = access_parse(text, size + sizeof(one_more) - 1, &names, &fault);
		if (more) {
			require(access_rule_count(more) == access_rule_count(access) + 2);
			compare(access, more);
		} else {
			require(size + sizeof(one_more) > ACCESS_TEXT_MAX ||
			        access_rule_count(access) + 2 > ACCESS_RULES_MAX);
		}
		access_free(more);
		access_free(access);
	} else {
		require_fault(&fault, size);
	}
	free(text);
	return 0;
}
