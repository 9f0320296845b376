/*
 * fuzz_srv.c - any bytes as the answer of a DNS server, which may be anybody on the way: it is
 * refused with a sentence that no terminal obeys, or gives a list that is taken as one.
 */
#include "../../client/host/srv.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ps_address addresses[PS_MIRRORS_MAX];
	struct ps_error error = { 0 };
	char list[PS_LIST_TEXT];
	unsigned count = 0;
	int rc = ps_srv_parse(data, size, "mirrors.example", list, &error);

	if (rc) {
		require(rc == error.code && !*list);
		require(rc == PERSEAS_EINVAL || rc == PERSEAS_EPROTOCOL || rc == PERSEAS_ELIMIT);
		for (unsigned i = 0; error.text[i]; i++)
			require((unsigned char)error.text[i] >= ' ' && error.text[i] != 0x7f);
		return 0;
	}
	require(strlen(list) < sizeof(list));
	require(ps_address_parse_list(list, addresses, &count, NULL) == 0);
	require(count >= 1 && count <= PS_MIRRORS_MAX);
	return 0;
}
