//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// The copy is flushed and fenced. Its overlapping stores are no dirty overwrite.
#include "pm.h"

struct record {
	uint64_t valid;
	char name[48];
};

__attribute__((noinline)) static void rename_record(struct record *r, const char *name, size_t len)
{
	memcpy(r->name, name, len);
	PERSIST(r);
}

int main(int argc, char **argv)
{
	struct record *r = pm_create(argv[1]);
	PUT(r->valid, 1);
	PERSIST(r);
	rename_record(r, "a name of forty characters for the record", 40 + (argc > 9));
	return 0;
}
