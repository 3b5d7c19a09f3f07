//@ build: c
//@ cflags: -O1 -lpmemobj
//@ rules: FP04
// The log gets the new value instead of the old one.
#include "obj.h"

int main(int argc, char **argv)
{
	PMEMobjpool *pool = obj_create(argv[1]);
	TOID(struct root) root = POBJ_ROOT(pool, struct root);
	TX_BEGIN(pool) {
		PUT(D_RW(root)->count, 1); //~ FP0402
		TX_ADD_FIELD(root, count);
	} TX_END
	pmemobj_close(pool);
	return 0;
}
