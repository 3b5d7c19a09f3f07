//@ build: c
//@ cflags: -O1
//@ pool: varies
// Every source of random bytes, stored to PM: getrandom, getentropy,, AT_RANDOM, the stack protector's canary.
#include "pm.h"
#include <sys/auxv.h>
#include <sys/random.h>

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 4096);
	char bytes[40];
	CHECK(getrandom(bytes, sizeof bytes, 0) == sizeof bytes);
	memcpy(pm, bytes, sizeof bytes);
	CHECK(getrandom(pm + 64, 13, 0) == 13);
	CHECK(getentropy(bytes, 32) == 0);
	memcpy(pm + 128, bytes, 32);
	memcpy(pm + 256, (void *)getauxval(AT_RANDOM), 16);
	long canary;
	__asm__("mov %%fs:0x28, %0" : "=r"(canary));
	PUT(long, pm + 320, canary);
	return 0;
}
