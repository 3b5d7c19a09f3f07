//@ build: c
//@ cflags: -O1 -lpmemobj
//@ rules: FP04
// The counter is changed without an entry in the undo log: if the transaction aborts, the change stays.
#include "obj.h"

int main(int argc, char **argv)
{
	PMEMobjpool *pool = obj_create(argv[1]);
	TOID(struct root) root = POBJ_ROOT(pool, struct root);
	TX_BEGIN(pool) {
		TX_ADD_FIELD(root, first);
		D_RW(root)->first = TX_ZNEW(struct node);
		PUT(D_RW(root)->count, 1); //~ FP0402
	} TX_END
	pmemobj_close(pool);
	return 0;
}
