//@ build: c
//@ cflags: -O1
//@ compare: exact no-context
// Generated code whose page is unmapped and mapped again with other code: by munmap, by MAP_FIXED, by mremap, by madvise.
#include "jit.h"

#define RWX (PROT_READ | PROT_WRITE | PROT_EXEC)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 4096);
	char *home = pm_map_at(NULL, 4096, RWX, ANON, -1, 0);
	int n = 0;
	for (int i = 0; i < 4; i++) {
		emit((unsigned char *)home, 4 * n, n + 1, n);
		CHECK(((generated)home)(pm) == n);
		n++;
		CHECK(munmap(home, 4096) == 0);
		CHECK(pm_map_at(home, 4096, RWX, ANON | MAP_FIXED, -1, 0) == home);
		emit((unsigned char *)home, 4 * n, n + 1, n);
		CHECK(((generated)home)(pm) == n);
		n++;
		CHECK(pm_map_at(home, 4096, RWX, ANON | MAP_FIXED, -1, 0) == home);
		emit((unsigned char *)home, 4 * n, n + 1, n);
		CHECK(((generated)home)(pm) == n);
		n++;
		char *other = pm_map_at(NULL, 4096, RWX, ANON, -1, 0);
		emit((unsigned char *)other, 4 * n, n + 1, n);
		CHECK(mremap(other, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, home) == home);
		CHECK(((generated)home)(pm) == n);
		n++;
		CHECK(madvise(home, 4096, MADV_DONTNEED) == 0);
		emit((unsigned char *)home, 4 * n, n + 1, n);
		CHECK(((generated)home)(pm) == n);
		n++;
	}
	return 0;
}
