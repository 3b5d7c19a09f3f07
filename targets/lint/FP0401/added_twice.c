//@ build: c
//@ cflags: -O1 -lpmemobj
//@ rules: FP04
// The same object is added to the undo log twice.
#include "obj.h"

int main(int argc, char **argv)
{
	PMEMobjpool *pool = obj_create(argv[1]);
	TOID(struct root) root = POBJ_ROOT(pool, struct root);
	TX_BEGIN(pool) {
		TX_ADD(root);
		PUT(D_RW(root)->count, 1);
		TX_ADD(root); //~ FP0401
		PUT(D_RW(root)->count, 2);
	} TX_END
	pmemobj_close(pool);
	return 0;
}
