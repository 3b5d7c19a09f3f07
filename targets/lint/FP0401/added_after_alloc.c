//@ build: c
//@ cflags: -O1 -lpmemobj
//@ rules: FP04
// An object that was allocated in the transaction vanishes with it when it aborts: no undo log is needed.
#include "obj.h"

int main(int argc, char **argv)
{
	PMEMobjpool *pool = obj_create(argv[1]);
	TOID(struct root) root = POBJ_ROOT(pool, struct root);
	TX_BEGIN(pool) {
		TOID(struct node) node = TX_ZNEW(struct node);
		TX_ADD(node); //~ FP0401
		PUT(D_RW(node)->key, 1);
		TX_ADD(root);
		D_RW(root)->first = node;
	} TX_END
	pmemobj_close(pool);
	return 0;
}
