//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// The copy ends with a fence.
#include "pm.h"

static void copy(__m128i *to, const __m128i *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		_mm_stream_si128(&to[i], from[i]);
	_mm_sfence();
}

int main(int argc, char **argv)
{
	static __m128i data[LINE / 16] = { { 1, 2 }, { 3, 4 }, { 5, 6 }, { 7, 8 } };
	__m128i *pm = pm_create(argv[1]);
	copy(pm, data, LINE / 16);
	munmap(pm, POOL_SIZE);
	_exit(0);
}
