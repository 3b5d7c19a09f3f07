/* A map on libpmemobj, asked through operations. Stores to the pool stand in the programs themselves. */
#ifndef OBJ_KV_H
#define OBJ_KV_H
#include "../include/kv.h"
#include <libpmemobj.h>

static PMEMobjpool *pool;

static inline _Noreturn void fail(const char *what)
{
	fprintf(stderr, "broken: %s\n", what);
	exit(2);
}

/* The pool, made anew if the library does not take it for a whole one. */
static inline void *open_root(const char *path, size_t size)
{
	struct stat st;
	if (stat(path, &st) == 0 && (size_t)st.st_size >= PMEMOBJ_MIN_POOL)
		pool = pmemobj_open(path, "ops");
	if (!pool) {
		remove(path);
		pool = pmemobj_create(path, "ops", PMEMOBJ_MIN_POOL, 0644);
	}
	if (!pool)
		fail(pmemobj_errormsg());
	/* All zeros when it is new. */
	PMEMoid root = pmemobj_root(pool, size);
	if (OID_IS_NULL(root))
		fail(pmemobj_errormsg());
	return pmemobj_direct(root);
}

static inline int obj_main(int argc, char **argv, const struct kv *map, void (*open_map)(const char *path))
{
	if (argc != 2)
		return 2;
	kv = map;
	open_map(argv[1]);
	ops_serve(kv_operate);
	pmemobj_close(pool);
	return 0;
}
#endif
