//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// Each field is flushed, but both lie on one line: the first flush serves both stores, the second repeats it.
#include "pm.h"

struct record {
	uint64_t key;
	uint64_t value;
};

int main(int argc, char **argv)
{
	struct record *r = pm_create(argv[1]);
	PUT(r->key, 1);
	PUT(r->value, 2);
	_mm_clwb(&r->key); //~ FP0303
	_mm_clwb(&r->value);
	_mm_sfence();
	return 0;
}
