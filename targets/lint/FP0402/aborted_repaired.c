//@ build: c
//@ cflags: -O1 -lpmemobj
//@ rules: FP04
// An aborted transaction is over: the next one has to add the object again, and a store behind it is in none.
#include "obj.h"

int main(int argc, char **argv)
{
	PMEMobjpool *pool = obj_create(argv[1]);
	TOID(struct root) root = POBJ_ROOT(pool, struct root);
	TX_BEGIN(pool) {
		TX_ADD(root);
		PUT(D_RW(root)->count, 1);
		pmemobj_tx_abort(1);
	} TX_END
	PUT(D_RW(root)->count, 2);
	pmemobj_persist(pool, &D_RW(root)->count, sizeof(uint64_t));
	TX_BEGIN(pool) {
		TX_ADD(root);
		PUT(D_RW(root)->count, 3);
	} TX_END
	pmemobj_close(pool);
	return 0;
}
