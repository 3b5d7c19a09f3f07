//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// The C library's memcpy makes the stores; the line that called it is to blame.
#include "pm.h"

struct record {
	uint64_t valid;
	char name[48];
};

__attribute__((noinline)) static void rename_record(struct record *r, const char *name, size_t len)
{
	memcpy(r->name, name, len); //~ FP0101
}

int main(int argc, char **argv)
{
	struct record *r = pm_create(argv[1]);
	PUT(r->valid, 1);
	PERSIST(r);
	rename_record(r, "a name of forty characters for the record", 40 + (argc > 9));
	return 0;
}
