//@ build: c
//@ cflags: -O1 -lpmemobj
//@ rules: FP04
// Added once per transaction; another transaction has to add it again.
#include "obj.h"

int main(int argc, char **argv)
{
	PMEMobjpool *pool = obj_create(argv[1]);
	TOID(struct root) root = POBJ_ROOT(pool, struct root);
	TX_BEGIN(pool) {
		TX_ADD(root);
		PUT(D_RW(root)->count, 1);
		PUT(D_RW(root)->count, 2);
	} TX_END
	TX_BEGIN(pool) {
		TX_ADD(root);
		PUT(D_RW(root)->count, 3);
	} TX_END
	pmemobj_close(pool);
	return 0;
}
