//@ build: c
//@ cflags: -O1 -lpmemobj
//@ rules: FP04
// The inner transaction belongs to the outer one: what was added there is logged, the rest is not.
#include "obj.h"

static void insert(PMEMobjpool *pool, TOID(struct root) root)
{
	TX_BEGIN(pool) {
		D_RW(root)->first = TX_ZNEW(struct node);
		PUT(D_RW(root)->count, 1); //~ FP0402
	} TX_END
}

int main(int argc, char **argv)
{
	PMEMobjpool *pool = obj_create(argv[1]);
	TOID(struct root) root = POBJ_ROOT(pool, struct root);
	TX_BEGIN(pool) {
		TX_ADD_FIELD(root, first);
		insert(pool, root);
	} TX_END
	pmemobj_close(pool);
	return 0;
}
