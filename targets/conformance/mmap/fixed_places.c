//@ build: c
//@ cflags: -O1 -no-pie
// A program that insists on its places, as CLISP does with its heap: none of them is the engine's.
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 4096);
	unsigned long places[] = { 0x10000000UL, 0x333000000000UL, 0x100000000000UL, 0x1000000000UL, 0xc000000000UL, 0x200000000000UL };
	for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
		char *at = (char *)places[i];
		CHECK(pm_map_at(at, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
		at[4096] = (char)i;
		PUT(char, pm + i, at[4096]);
	}
	return 0;
}
