/* What the programs of this suite need: a pool, an input, and a store that is flushed or not.
 *
 * Each program reaches its store only with an input that meets a condition. Built with -DREPAIRED, the store is flushed: the twin. */
#ifndef SOLVE_H
#define SOLVE_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct pool {
	uint64_t ready;
	uint64_t pad[7];
	uint64_t value[8];
};

#define PUT(field, value) (*(volatile __typeof__(field) *)&(field) = (value))

#define FLUSH(field)                        \
	do {                                \
		_mm_clflush((void *)&(field)); \
		_mm_sfence();               \
	} while (0)

/* The flush that only the twin has. */
#ifdef REPAIRED
#define FLUSH_REPAIRED(field) FLUSH(field)
#else
#define FLUSH_REPAIRED(field) ((void)0)
#endif

static inline struct pool *pool_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, 4096) != 0)
		exit(2);
	struct pool *pool = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (pool == MAP_FAILED)
		exit(2);
	PUT(pool->ready, 1);
	FLUSH(pool->ready);
	PUT(pool->value[1], 1);
	FLUSH(pool->value[1]);
	return pool;
}

/* Standard input, up to `len` bytes; how many there were. */
static inline size_t input(void *to, size_t len)
{
	size_t got = 0;
	while (got < len) {
		ssize_t n = read(0, (char *)to + got, len - got);
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	return got;
}
#endif
