//@ build: c
//@ cflags: -O1 -lpmemobj
//@ rules: FP04
// The transaction that follows an aborted one has its own log, which is empty.
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
		PUT(D_RW(root)->count, 3); //~ FP0402
	} TX_END
	pmemobj_close(pool);
	return 0;
}
