/*
 * fuzz_etcd.c - any bytes as what a key of etcd has, which whoever may write there wrote: it is
 * refused with a sentence that no terminal obeys, or gives a list that is taken as one.
 */
#include "../../client/host/etcd.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct ps_etcd_key key = { "127.0.0.1:2379", "perseas/bank" };
	struct ps_address addresses[PS_MIRRORS_MAX];
	struct ps_error error = { 0 };
	struct ps_etcd_value value;
	unsigned count = 0;
	int rc = ps_etcd_read((const char *)data, size, &key, &value, &error);

	if (rc) {
		require(rc == error.code && (rc == PERSEAS_EINVAL || rc == PERSEAS_EPROTOCOL));
		for (unsigned i = 0; error.text[i]; i++)
			require((unsigned char)error.text[i] >= ' ' && error.text[i] != 0x7f);
		return 0;
	}
	require(ps_address_list(value.list, addresses, &count, NULL) == 0);
	require(count >= 1 && count <= PS_MIRRORS_MAX && !strpbrk(value.list, " \"\\\n"));
	require(!value.numbered || strlen(value.store) == PS_ETCD_STORE - 1);
	return 0;
}
