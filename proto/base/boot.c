/*
 * boot.c - reads and parses the kernel's boot id (see boot.h).
 */
#include "boot.h"

#include "standard_streams.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int digit_value(int c)
{
	return isdigit(c) ? c - '0' : isxdigit(c) ? tolower(c) - 'a' + 10 : -1;
}

bool ps_boot_parse(const char *text, uint8_t id[PS_BOOT_ID_SIZE])
{
	unsigned digits = 0;

	memset(id, 0, PS_BOOT_ID_SIZE);
	for (; *text; text++) {
		int value = digit_value((unsigned char)*text);

		if (*text == '-')
			continue;
		if (value < 0 || digits == 2 * PS_BOOT_ID_SIZE)
			return false;
		id[digits / 2] = (uint8_t)(id[digits / 2] << 4 | value);
		digits++;
	}
	return digits == 2 * PS_BOOT_ID_SIZE;
}

bool ps_boot_id(uint8_t id[PS_BOOT_ID_SIZE])
{
	int fd = ps_above_standard(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
	char text[64] = "";
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[len > 0 ? strcspn(text, "\n") : 0] = '\0';
	return ps_boot_parse(text, id);
}
