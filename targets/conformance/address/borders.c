//@ build: c
//@ cflags: -O2 -mno-avx
// Stores of 2 to 16 bytes at every position around a line border and a page border.
#include "pm.h"
#include <emmintrin.h>

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 16384);
	__m128i wide = _mm_set_epi32(4, 3, 2, 1);
	for (int border = 64; border <= 4096; border += 4032) {
		for (int back = 0; back <= 16; back++) {
			char *p = pm + border - back;
			PUT(uint16_t, p, 0x1111 * back);
			PUT(uint32_t, p, 0x01010101 * back);
			PUT(uint64_t, p, 0x0123456789ull * back);
			_mm_storeu_si128((__m128i *)p, wide);
			__asm__ volatile("" ::: "memory");
		}
	}
	return 0;
}
