/* Many paths, all decided by two bytes of standard input. With an argument "all": the paths of all inputs, one number per line. Otherwise the
 * first argument is a pool, and the path of the input is stored there. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* No conditional move in place of a branch. */
#define BRANCH __asm__ volatile("" ::: "memory")

__attribute__((noinline)) static unsigned path(unsigned char a, unsigned char b)
{
	unsigned way = 0;
	switch (a) {
	case 'a': BRANCH; way = 1; break;
	case 'b': BRANCH; way = 2; break;
	case 'c': BRANCH; way = 3; break;
	case 'd': BRANCH; way = 4; break;
	case 'e': BRANCH; way = 5; break;
	case 'f': BRANCH; way = 6; break;
	}
	if ((unsigned)a * b == 1554) {
		BRANCH;
		way |= 16;
	}
	if ((a ^ b) % 7 == 3) {
		BRANCH;
		way |= 32;
	}
	while (b > 200) {
		b = (unsigned char)(b - 9);
		way += 64;
	}
	if (a == b && way > 64) {
		BRANCH;
		way |= 4096;
	}
	return way;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "all")) {
		for (unsigned n = 0; n < 65536; n++)
			printf("%u\n", path((unsigned char)n, (unsigned char)(n >> 8)));
		return 0;
	}
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	unsigned char in[2];
	if (fd < 0 || ftruncate(fd, 4096) || read(0, in, 2) != 2)
		return 2;
	volatile uint64_t *pool = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	*pool = path(in[0], in[1]);
	return 0;
}
