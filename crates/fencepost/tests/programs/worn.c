/* A recovery that sees whether its process was used before: `worn POOL run` stores, `worn POOL check` fails if so. */
#include <fcntl.h>
#include <immintrin.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES 4096
#define STEPS 50

int main(int argc, char **argv)
{
	/* All runs share it, since they are forked after this. */
	pid_t *last = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fd = open(argv[1], O_RDWR | O_CREAT, 0644);
	if (argc != 3 || fd < 0 || ftruncate(fd, BYTES))
		return 2;
	volatile uint64_t *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED || last == MAP_FAILED)
		return 2;
	if (strcmp(argv[2], "run") == 0) {
		for (uint64_t i = 1; i <= STEPS; i++) {
			p[0] = i;
			_mm_clflush((void *)p);
			_mm_sfence();
		}
		return 0;
	}
	int used = *last == getpid();
	*last = getpid();
	return used || p[0] > STEPS;
}
