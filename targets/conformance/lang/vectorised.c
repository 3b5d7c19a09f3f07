//@ build: c
//@ cflags: -O3 -mavx2
//@ needs: avx2
// Loops that the compiler turns into vector stores, with heads and tails of odd length.
#include "pm.h"

struct record { int key; double weight; char name[19]; short tail; };

static void __attribute__((noinline)) fill(float *to, const float *from, int n)
{
	for (int i = 0; i < n; i++)
		to[i] = from[i] * 2 + 1;
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 65536);
	static float from[203];
	for (int i = 0; i < 203; i++)
		from[i] = (float)i;
	for (int n = 1; n < 40; n += 3)
		fill((float *)(pm + 4096 + n * 4), from, n);
	fill((float *)pm, from, 203);
	struct record *records = (struct record *)(pm + 8192);
	for (int i = 0; i < 20; i++)
		records[i] = (struct record){ i, i * 0.5, "a name", (short)-i };
	records[3] = records[7];
	pm_persist(records);
	return 0;
}
