/* What most conformance programs need: map a pool, flush and fence, check. */
#ifndef PM_H
#define PM_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: not so: %s (errno %d)\n", __FILE__, __LINE__, #cond, errno); \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* Creates the file with this length, without mapping it. */
static inline int pm_file(const char *path, size_t len)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK(fd >= 0);
	CHECK(ftruncate(fd, (off_t)len) == 0);
	return fd;
}

static inline char *pm_map_at(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	char *pm = (char *)mmap(addr, len, prot, flags, fd, offset);
	CHECK(pm != MAP_FAILED);
	return pm;
}

static inline char *pm_map(int fd, size_t len)
{
	return pm_map_at(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

/* A fresh pool at `path`, mapped whole. */
static inline char *pm_create(const char *path, size_t len)
{
	int fd = pm_file(path, len);
	char *pm = pm_map(fd, len);
	close(fd);
	return pm;
}

/* `clflush` is the one flush that every x86-64 CPU has. */
static inline void pm_flush(const volatile void *p) { __asm__ volatile("clflush %0" : "+m"(*(volatile char *)p)); }
static inline void pm_fence(void) { __asm__ volatile("sfence" ::: "memory"); }

static inline void pm_persist(const volatile void *p)
{
	pm_flush(p);
	pm_fence();
}

/* A store that the compiler neither drops, merges nor widens. */
#define PUT(type, p, v) (*(volatile type *)(p) = (type)(v))
#endif
