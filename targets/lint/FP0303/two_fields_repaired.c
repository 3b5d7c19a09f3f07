//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// One flush for the record, which is aligned to a line.
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
	_mm_clwb(r);
	_mm_sfence();
	return 0;
}
