/* Ways to PM code: a switch, a table of functions, a shared library's flush, and much that leads nowhere. */
#include <fcntl.h>
#include <immintrin.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile uint64_t *pool;
static volatile unsigned counted;

static void put(int at, uint64_t value)
{
	pool[at * 8] = value;
	_mm_clflush((void *)&pool[at * 8]);
	_mm_sfence();
}

static void nothing(int n) { counted += (unsigned)n; }
static void store(int n) { put(2, (uint64_t)n); put(3, 1); put(4, 1); }

static void (*const table[])(int) = {nothing, nothing, store};

__attribute__((noinline)) static void call(unsigned which, int n)
{
	void (*volatile *place)(int) = (void (*volatile *)(int))&table[which];
	(*place)(n);
}

int main(int argc, char **argv)
{
	char in[16] = {0};
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, 4096) || read(0, in, 16) != 16)
		return 2;
	pool = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	put(0, 1);
	/* Branches that lead nowhere, first. */
	for (int n = 8; n < 16; n++)
		if (in[n] == 'a' + n)
			nothing(n);
	switch (in[0]) {
	case 'a': nothing(1); break;
	case 'b': counted += 2; break;
	case 'c': counted *= 3; break;
	case 'd': counted ^= 4; break;
	case 'e': call(2, 5); break;
	case 'f': counted -= 6; break;
	}
	return argc - 2;
}
