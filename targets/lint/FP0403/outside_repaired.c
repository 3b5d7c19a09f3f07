//@ build: c
//@ cflags: -O1 -lpmemobj
//@ rules: FP04
//@ args: --set FP0403.types=1
// The node is updated in a transaction; the root is not of the chosen type.
#include "obj.h"

int main(int argc, char **argv)
{
	PMEMobjpool *pool = obj_create(argv[1]);
	TOID(struct root) root = POBJ_ROOT(pool, struct root);
	TX_BEGIN(pool) {
		TX_ADD(root);
		D_RW(root)->first = TX_ZNEW(struct node);
	} TX_END
	TOID(struct node) node = D_RO(root)->first;
	TX_BEGIN(pool) {
		TX_SET(node, value, 5);
	} TX_END
	PUT(D_RW(root)->count, 1);
	pmemobj_persist(pool, &D_RW(root)->count, sizeof(uint64_t));
	pmemobj_close(pool);
	return 0;
}
