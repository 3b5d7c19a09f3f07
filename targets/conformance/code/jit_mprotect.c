//@ build: c
//@ cflags: -O1
//@ compare: exact no-context
// Generated code under W^X: written while writable, run while executable, the page toggled by mprotect.
#include "jit.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 4096);
	unsigned char *code = (unsigned char *)pm_map_at(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 10; i++) {
		CHECK(mprotect(code, 4096, PROT_READ | PROT_WRITE) == 0);
		emit(code + 64 * (i % 2), 8 * i, i * 3, i);
		CHECK(mprotect(code, 4096, PROT_READ | PROT_EXEC) == 0);
		CHECK(((generated)(code + 64 * (i % 2)))(pm) == i);
		if (i > 0)
			CHECK(((generated)(code + 64 * ((i - 1) % 2)))(pm) == i - 1);
	}
	return 0;
}
