//@ build: c
//@ cflags: -O1
// Without --pm, files without a name are no pools: a memfd under two mappings, one of them code, as run-time compilers have it; a deleted
// file; one made with O_TMPFILE. The named one beside them is.
#include "pm.h"

static int call(char *code) { return ((int (*)(void))code)(); }

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 4096);
	int fd = memfd_create("jit", MFD_CLOEXEC);
	CHECK(fd >= 0 && ftruncate(fd, 8192) == 0);
	char *writable = pm_map(fd, 8192);
	char *code = pm_map_at(NULL, 8192, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	for (int i = 0; i < 3; i++) {
		char bytes[] = { (char)0xb8, (char)(40 + i), 0, 0, 0, (char)0xc3 };
		memcpy(writable + 4096, bytes, sizeof bytes);
		CHECK(call(code + 4096) == 40 + i);
		PUT(int, pm + 4 * i, call(code + 4096));
	}
	int gone = pm_file("gone", 4096);
	CHECK(unlink("gone") == 0);
	PUT(int, pm_map(gone, 4096), 1);
	int unnamed = open(".", O_TMPFILE | O_RDWR, 0600);
	if (unnamed >= 0) {
		CHECK(ftruncate(unnamed, 4096) == 0);
		PUT(int, pm_map(unnamed, 4096), 2);
	}
	PUT(int, pm + 64, 3);
	return 0;
}
