//@ build: c
//@ cflags: -O1
// Buffers the kernel may not write to give EFAULT natively and must do so here.
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	int fd = pm_file(argv[1], 8192);
	char *room = pm_map_at(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *pm = pm_map_at(room, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	char *volatile nowhere = (char *)8;
	int ends[2];
	CHECK(pipe(ends) == 0);
	CHECK(write(ends[1], "0123456789", 10) == 10);
	CHECK(read(ends[0], nowhere, 4) == -1 && errno == EFAULT);
	CHECK(mprotect(pm, 4096, PROT_READ) == 0);
	CHECK(read(ends[0], pm, 4) == -1 && errno == EFAULT);
	CHECK(mprotect(pm, 4096, PROT_READ | PROT_WRITE) == 0);
	CHECK(read(ends[0], pm, 4) == 4);
	PUT(int, pm + 8, 1);
	return 0;
}
