//@ build: c
//@ cflags: -O1 -lpmemobj
//@ rules: FP04
// Each field is added where it is changed, by itself.
#include "obj.h"

static void count_one(TOID(struct root) root)
{
	TX_ADD_FIELD(root, count);
	PUT(D_RW(root)->count, D_RO(root)->count + 1);
}

int main(int argc, char **argv)
{
	PMEMobjpool *pool = obj_create(argv[1]);
	TOID(struct root) root = POBJ_ROOT(pool, struct root);
	TX_BEGIN(pool) {
		TX_ADD_FIELD(root, first);
		D_RW(root)->first = TOID_NULL(struct node);
		count_one(root);
	} TX_END
	pmemobj_close(pool);
	return 0;
}
