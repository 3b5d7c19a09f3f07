/* What the programs of this suite need: a mapped pool, stores that the compiler leaves alone, flushes and fences.
 *
 * Stores are written in the programs themselves, never in here: a finding's guilty line must be a line of the program. */
#ifndef PM_H
#define PM_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bugs.h"

#define LINE 64
#define LINE_ALIGNED __attribute__((aligned(LINE)))
#define POOL_MAGIC UINT64_C(0x74736f7065636e66)

/* Written before an include of this file: which instruction `flush` uses. */
#ifndef PM_FLUSH
#define PM_FLUSH _mm_clwb
#endif

/* A store of the field's own size that the compiler neither drops, merges, widens nor moves past another. */
#define PUT(field, value) (*(volatile __typeof__(field) *)&(field) = (value))

/* A non-temporal store of 8 bytes. The builtin and not the intrinsic: the line is that of the program. */
#define PUT_NT(field, value) __builtin_ia32_movnti64((long long *)&(field), (long long)(value))

/* Keeps the compiler from moving stores. */
static inline void compiler_barrier(void)
{
	__asm__ volatile("" ::: "memory");
}

/* Starts writing back the lines of `len` bytes from `p`; complete after the next `fence`. */
static inline void flush(const volatile void *p, size_t len)
{
	compiler_barrier();
	uintptr_t end = (uintptr_t)p + len;
	for (uintptr_t line = (uintptr_t)p & ~(uintptr_t)(LINE - 1); line < end; line += LINE)
		PM_FLUSH((void *)line);
	compiler_barrier();
}

static inline void fence(void)
{
	compiler_barrier();
	_mm_sfence();
	compiler_barrier();
}

static inline void persist(const volatile void *p, size_t len)
{
	flush(p, len);
	fence();
}

/* The verdict of `check` on content that no crash may leave. */
static inline void __attribute__((noreturn, cold)) broken(const char *what)
{
	fputs(what, stderr);
	fputc('\n', stderr);
	exit(1);
}

static inline void insist(int so, const char *what)
{
	if (!so)
		broken(what);
}

static inline void *pm_map(int fd, size_t size)
{
	void *pm = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (pm == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
	close(fd);
	return pm;
}

/* A fresh pool of zeros. */
static inline void *pm_create(const char *path, size_t size)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || ftruncate(fd, (off_t)size) != 0) {
		perror(path);
		exit(2);
	}
	return pm_map(fd, size);
}

/* The pool at `path`, or NULL where the crash came before the file had its size. */
static inline void *pm_open(const char *path, size_t size)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat st;
	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) != 0 || (size_t)st.st_size < size) {
		close(fd);
		return NULL;
	}
	return pm_map(fd, size);
}

/* `prog POOL run` and `prog POOL check`. A pool's first 8 bytes are POOL_MAGIC once it has been created whole: the last
 * store of its creation. Without it `check` has nothing to recover. */
static inline int pm_main(int argc, char **argv, size_t size, void (*run)(void *), void (*check)(void *))
{
	if (argc == 3 && strcmp(argv[2], "run") == 0) {
		run(pm_create(argv[1], size));
		return 0;
	}
	if (argc == 3 && strcmp(argv[2], "check") == 0) {
		void *pm = pm_open(argv[1], size);
		if (!pm || *(volatile uint64_t *)pm != POOL_MAGIC) {
			puts("empty");
			return 0;
		}
		check(pm);
		puts("ok");
		return 0;
	}
	fprintf(stderr, "usage: %s POOL run|check\n", argv[0]);
	return 2;
}
#endif
