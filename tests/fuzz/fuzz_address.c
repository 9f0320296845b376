/*
 * fuzz_address.c - any text as a list of mirrors: it is refused with a sentence, or each of its
 * entries means the same when it is parsed again.
 */
#include "../../client/core/address.h"
#include "target.h"

static void require_same(const struct ps_address *address)
{
	struct ps_address again;

	require(ps_address_parse(address->text, &again, NULL) == 0);
	require(again.scheme == address->scheme);
	require(strcmp(again.host, address->host) == 0);
	require(strcmp(again.port, address->port) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ps_address addresses[PS_MIRRORS_MAX];
	struct ps_error error = { 0 };
	unsigned count = 0, i;
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (ps_address_parse_list(text, addresses, &count, &error)) {
		require(error.code == PERSEAS_EINVAL);
		require(strlen(error.text) > 0 && strlen(error.text) < sizeof(error.text));
		for (i = 0; error.text[i]; i++)
			require((unsigned char)error.text[i] >= ' ' && error.text[i] != 0x7f);
	} else {
		require(count >= 1 && count <= PS_MIRRORS_MAX);
		for (i = 0; i < count; i++)
			require_same(&addresses[i]);
	}
	free(text);
	return 0;
}
