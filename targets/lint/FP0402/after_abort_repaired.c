//@ build: c
//@ cflags: -O1 -lpmemobj
//@ rules: FP04
// The transaction that follows an aborted one adds what it changes.
#include "obj.h"

int main(int argc, char **argv)
{
	PMEMobjpool *pool = obj_create(argv[1]);
	TOID(struct root) root = POBJ_ROOT(pool, struct root);
	TX_BEGIN(pool) {
		TX_ADD(root);
		pmemobj_tx_abort(1);
	} TX_END
	TX_BEGIN(pool) {
		TX_ADD_FIELD(root, count);
		PUT(D_RW(root)->count, 3);
	} TX_END
	pmemobj_close(pool);
	return 0;
}
