//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// Only PM is flushed.
#include "pm.h"

struct record {
	uint64_t key;
	uint64_t value;
};

int main(int argc, char **argv)
{
	struct record *pm = pm_create(argv[1]);
	volatile struct record local = {1, 2};
	PUT(pm->key, local.key);
	PUT(pm->value, local.value);
	_mm_clwb(pm);
	_mm_sfence();
	return 0;
}
