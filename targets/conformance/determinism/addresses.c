//@ build: c
//@ cflags: -O1
//@ compare: exact lengths
//@ pool: varies
// Addresses of stack, heap, code, libraries and fresh mappings are the same in every recording.
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 4096);
	int local;
	*(void *volatile *)pm = &local;
	*(void *volatile *)(pm + 8) = malloc(10);
	*(void *volatile *)(pm + 16) = (void *)main;
	*(void *volatile *)(pm + 24) = (void *)memcpy;
	*(void *volatile *)(pm + 32) = pm;
	*(void *volatile *)(pm + 40) = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*(void *volatile *)(pm + 48) = malloc(1 << 20);
	*(void *volatile *)(pm + 56) = sbrk(0);
	*(void *volatile *)(pm + 64) = argv[0];
	return 0;
}
