//@ build: c
//@ cflags: -O1
// Windows onto a file, moved along; lengths that are no multiple of the page.
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	int fd = pm_file(argv[1], 65536);
	for (int i = 0; i < 8; i++) {
		char *w = pm_map_at(NULL, 5000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096 * i);
		PUT(int, w + 8 * i, i + 1);
		PUT(int, w + 4996, -i);
		pm_persist(w);
		CHECK(munmap(w, 5000) == 0);
	}
	return 0;
}
