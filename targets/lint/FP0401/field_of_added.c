//@ build: c
//@ cflags: -O1 -lpmemobj
//@ rules: FP04
// A field of an object that is in the log as a whole; the inner function does not know that.
#include "obj.h"

static void count_one(TOID(struct root) root)
{
	TX_ADD_FIELD(root, count); //~ FP0401
	PUT(D_RW(root)->count, D_RO(root)->count + 1);
}

int main(int argc, char **argv)
{
	PMEMobjpool *pool = obj_create(argv[1]);
	TOID(struct root) root = POBJ_ROOT(pool, struct root);
	TX_BEGIN(pool) {
		TX_ADD(root);
		count_one(root);
	} TX_END
	pmemobj_close(pool);
	return 0;
}
