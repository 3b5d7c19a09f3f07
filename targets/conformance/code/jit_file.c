//@ build: c
//@ cflags: -O1
//@ args: --pm *.pool
//@ compare: exact no-context
// Generated code in a file with two mappings, one writable, one executable, as careful JITs do.
#include "jit.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 4096);
	int fd = pm_file("code.dat", 4096);
	unsigned char *writer = (unsigned char *)pm_map(fd, 4096);
	generated f = (generated)pm_map_at(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	for (int i = 0; i < 10; i++) {
		emit(writer, 8 * i, i + 5, i);
		CHECK(f(pm) == i);
	}
	return 0;
}
