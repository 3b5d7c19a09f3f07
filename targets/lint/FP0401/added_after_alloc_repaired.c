//@ build: c
//@ cflags: -O1 -lpmemobj
//@ rules: FP04
// Only the object that was there before is added.
#include "obj.h"

int main(int argc, char **argv)
{
	PMEMobjpool *pool = obj_create(argv[1]);
	TOID(struct root) root = POBJ_ROOT(pool, struct root);
	TX_BEGIN(pool) {
		TOID(struct node) node = TX_ZNEW(struct node);
		PUT(D_RW(node)->key, 1);
		TX_ADD(root);
		D_RW(root)->first = node;
	} TX_END
	pmemobj_close(pool);
	return 0;
}
