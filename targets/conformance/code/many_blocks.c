//@ build: c
//@ args: --cache-bytes 131072
//@ cflags: -O1
//@ compare: exact no-context
// Two thousand generated functions: more code than a small cache or table of blocks holds at first.
#include "jit.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 16384);
	unsigned char *code = (unsigned char *)pm_map_at(NULL, 1 << 16, PROT_READ | PROT_WRITE | PROT_EXEC,
							  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 2000; i++)
		emit(code + 32 * i, 4 * i, i, i);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 2000; i++)
			CHECK(((generated)(code + 32 * i))(pm) == i);
	return 0;
}
