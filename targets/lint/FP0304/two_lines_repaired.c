//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// The data is durable before the flag is stored.
#include "pm.h"

struct entry {
	uint64_t data;
	char pad[LINE - 8];
	uint64_t valid;
};

int main(int argc, char **argv)
{
	struct entry *e = pm_create(argv[1]);
	PUT(e->data, 42);
	_mm_clwb(&e->data);
	_mm_sfence();
	PUT(e->valid, 1);
	_mm_clwb(&e->valid);
	_mm_sfence();
	return 0;
}
