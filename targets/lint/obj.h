/* What the programs on libpmemobj need: a pool with one root object. */
#ifndef OBJ_H
#define OBJ_H
#include <libpmemobj.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

POBJ_LAYOUT_BEGIN(lint);
POBJ_LAYOUT_ROOT(lint, struct root);
POBJ_LAYOUT_TOID(lint, struct node);
POBJ_LAYOUT_END(lint);

/* Three lines, so that parts of it can be added apart. */
struct node {
	uint64_t key;
	uint64_t value;
	TOID(struct node) next;
	uint64_t data[20];
};

struct root {
	TOID(struct node) first;
	uint64_t count;
};

static inline PMEMobjpool *obj_create(const char *path)
{
	PMEMobjpool *pool = pmemobj_create(path, "lint", PMEMOBJ_MIN_POOL, 0644);
	if (!pool) {
		fprintf(stderr, "%s: %s\n", path, pmemobj_errormsg());
		exit(1);
	}
	return pool;
}

/* A store that the compiler neither drops, merges nor widens. */
#define PUT(field, value) (*(volatile __typeof__(field) *)&(field) = (value))
#endif
