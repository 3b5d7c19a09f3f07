//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// The object has two lines, of which an update changes one; the flush of the whole object wastes the other.
#include "pm.h"

struct object {
	uint64_t count;
	char pad[LINE - 8];
	uint64_t name;
	char pad2[LINE - 8];
};

static void persist_object(struct object *o)
{
	_mm_clwb(&o->count);
	_mm_clwb(&o->name);
	_mm_sfence();
}

int main(int argc, char **argv)
{
	struct object *o = pm_create(argv[1]);
	PUT(o->name, 7);
	PERSIST(&o->name);
	for (int i = 0; i < 3; i++) {
		PUT(o->count, i + 1);
		persist_object(o); //~ FP0201
	}
	return 0;
}
