//@ build: c
//@ cflags: -O0 -fno-builtin
// The C library's copying functions, which pick their variant by CPU (IFUNC): all lengths up to 300, then long ones.
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 1 << 16);
	static char from[1 << 14];
	for (size_t i = 0; i < sizeof from; i++)
		from[i] = (char)(i * 7 + 1);
	for (size_t len = 0; len < 300; len += 1 + len / 7) {
		memcpy(pm + 512 + len % 3, from + len % 5, len);
		memset(pm + 1024 + len % 7, (int)len, len);
		memmove(pm + 512 + 13, pm + 512, len);
		memmove(pm + 512, pm + 512 + 13, len);
	}
	memcpy(pm + 4096, from, sizeof from);
	memset(pm + 32768 + 5, 0x55, 10001);
	memmove(pm + 4096 + 100, pm + 4096, 5000);
	strcpy(pm + 100, "a string");
	strcat(pm + 100, " and its tail");
	strncpy(pm + 200, "padded", 40);
	snprintf(pm + 300, 100, "%d %s %g", 42, pm + 100, 0.5);
	pm_persist(pm);
	return 0;
}
