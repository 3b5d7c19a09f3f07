//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// One fence for the data and the flag that says that the data is there: the flag may reach PM first.
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
	PUT(e->valid, 1);
	_mm_clwb(&e->valid);
	_mm_sfence(); //~ FP0304
	return 0;
}
