/* What the programs on libpmemobj share. Stores stand in the programs themselves. */
#ifndef OBJ_H
#define OBJ_H
#include <libpmemobj.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../include/bugs.h"

/* A store that the compiler neither drops, merges nor moves past another. */
#define PUT(field, value) (*(volatile __typeof__(field) *)&(field) = (value))

struct op {
	char kind;
	uint64_t key;
};

static inline _Noreturn void fail(const char *what)
{
	fprintf(stderr, "broken: %s\n", what);
	exit(1);
}

/* A word that follows from key and version alone, so that every copy can be checked. Not inlined: the line of a store of its
 * result would be in here. */
static __attribute__((noinline)) uint64_t mix(uint64_t key, uint64_t version)
{
	uint64_t x = key * UINT64_C(0x9e3779b97f4a7c15) ^ version * UINT64_C(0xc2b2ae3d27d4eb4f);
	return (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9) | 1;
}

static inline PMEMobjpool *create_pool(const char *path, const char *layout)
{
	remove(path);
	PMEMobjpool *pool = pmemobj_create(path, layout, PMEMOBJ_MIN_POOL, 0644);
	if (!pool)
		fail(pmemobj_errormsg());
	return pool;
}

/* None if the creation was not finished. The library does not expect a file without its length. */
static inline PMEMobjpool *open_pool(const char *path, const char *layout)
{
	struct stat info;
	if (stat(path, &info) != 0 || (size_t)info.st_size < PMEMOBJ_MIN_POOL)
		return NULL;
	PMEMobjpool *pool = pmemobj_open(path, layout);
	return pool && pmemobj_root_size(pool) != 0 ? pool : NULL;
}

/* The offsets of all objects of a type; returns how many there are. */
static inline unsigned allocated(PMEMobjpool *pool, uint64_t type, uint64_t *offsets, unsigned most)
{
	unsigned count = 0;
	for (PMEMoid oid = pmemobj_first(pool); !OID_IS_NULL(oid); oid = pmemobj_next(oid)) {
		if (pmemobj_type_num(oid) != type)
			continue;
		if (count == most)
			fail("too many objects");
		offsets[count++] = oid.off;
	}
	return count;
}

static inline int is_among(uint64_t offset, const uint64_t *offsets, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (offsets[i] == offset)
			return 1;
	return 0;
}

/* Whether these are the versions after that many operations ('d' deletes). */
static inline int is_after(uint64_t done, const struct op *ops, uint64_t op_count, const uint64_t *versions,
			   unsigned keys)
{
	for (unsigned key = 0; key < keys; key++) {
		uint64_t version = 0;
		for (uint64_t i = 0; i < done && i < op_count; i++)
			if (ops[i].key == key)
				version = ops[i].kind == 'd' ? 0 : ops[i].kind == 'm' ? version : i + 1;
		if (versions[key] != version)
			return 0;
	}
	return 1;
}
#endif
