//@ build: c
//@ cflags: -O1 -lpmemobj
//@ rules: FP04
// Everything that the transaction changes was added or allocated in it.
#include "obj.h"

int main(int argc, char **argv)
{
	PMEMobjpool *pool = obj_create(argv[1]);
	TOID(struct root) root = POBJ_ROOT(pool, struct root);
	TX_BEGIN(pool) {
		TX_ADD(root);
		TOID(struct node) node = TX_ZNEW(struct node);
		PUT(D_RW(node)->value, 5);
		D_RW(root)->first = node;
		PUT(D_RW(root)->count, 1);
	} TX_END
	pmemobj_close(pool);
	return 0;
}
