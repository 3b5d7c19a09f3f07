//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// Two records are filled by one loop; the flush stands before the last field.
#include "pm.h"

struct record {
	uint64_t key;
	uint64_t value;
	uint64_t valid;
	char pad[LINE - 24];
};

int main(int argc, char **argv)
{
	struct record *r = pm_create(argv[1]);
	for (int i = 0; i < 2; i++) {
		PUT(r[i].key, i);
		PUT(r[i].value, i * 10);
		PERSIST(&r[i]);
		PUT(r[i].valid, 1); //~ FP0101
	}
	return 0;
}
