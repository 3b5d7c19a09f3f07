/* What the lint programs need: a mapped pool, and the intrinsics by short names. */
#ifndef PM_H
#define PM_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <immintrin.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LINE 64
#define POOL_SIZE 65536

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond);         \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* A fresh pool at `path`, mapped whole. */
static inline void *pm_create(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK(fd >= 0);
	CHECK(ftruncate(fd, POOL_SIZE) == 0);
	void *pm = mmap(NULL, POOL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(pm != MAP_FAILED);
	close(fd);
	return pm;
}

/* Macros, so that the lines of the program itself are those of the instructions. */
#define PERSIST(p)                                                                                 \
	do {                                                                                       \
		_mm_clwb((void *)(p));                                                             \
		_mm_sfence();                                                                      \
	} while (0)

/* A store that the compiler neither drops, merges nor widens. */
#define PUT(field, value) (*(volatile __typeof__(field) *)&(field) = (value))
#endif
