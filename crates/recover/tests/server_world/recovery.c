/* Recoveries for the tests of the fork server: `recovery ACT POOL...` */
#define _GNU_SOURCE
#include <fcntl.h>
#include <immintrin.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned char *pool;
static unsigned char byte;
static size_t len;

static volatile unsigned char *map(const char *path, int flags)
{
	int fd = open(path, O_RDWR);
	struct stat st;
	if (fd < 0 || fstat(fd, &st)) {
		perror(path);
		exit(99);
	}
	len = st.st_size;
	volatile unsigned char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (p == MAP_FAILED) {
		perror("mmap");
		exit(98);
	}
	return p;
}

__attribute__((noinline)) static void store_to_nowhere(void)
{
	*(volatile int *)(uintptr_t)pool[1] = 1;
	__asm__ volatile("");
}

__attribute__((noinline)) static void spin(void)
{
	while (pool[1])
		__asm__ volatile("");
}

__attribute__((noinline)) static void give_up(void)
{
	abort();
}

static int bomb(void)
{
	/* Bounded here, whatever the limits do. */
	for (int forks = 0; forks < 300; forks++) {
		pid_t child = fork();
		if (child == 0)
			for (;;)
				pause();
		if (child < 0)
			return 8;
	}
	return 0;
}

/* The child goes on when its parent has ended. */
static int in_background(void)
{
	int ends[2];
	char byte;
	if (pipe(ends))
		return 97;
	if (fork())
		return 1;
	setsid();
	close(ends[1]);
	if (read(ends[0], &byte, 1) != 0)
		exit(96);
	return 0;
}

static void *reader(void *line)
{
	return (void *)(uintptr_t)pool[(uintptr_t)line * 64];
}

/* How much of the heap is mapped, to the page. */
static uintptr_t heap_end(void)
{
	return ((uintptr_t)sbrk(0) + 4095) & ~(uintptr_t)4095;
}

/* Moves the break by odd steps; what comes is zero, what was there stays. */
static int move_break(void)
{
	unsigned char *base = sbrk(0);
	for (size_t size = 0; size < 9 << 20; size += 70001) {
		if (sbrk(70001) != base + size)
			return 1;
		for (size_t at = size; at < size + 70001; at++)
			if (base[at])
				return 2;
		memset(base + size, 0x5a, 70001);
	}
	for (int round = 0; round < 2; round++) {
		unsigned char *end = sbrk(0);
		if (sbrk(-(6 << 20) - 5) != end || sbrk(6 << 20) != end - (6 << 20) - 5)
			return 3;
		/* The rest of the page is as it was. */
		for (unsigned char *at = end - (6 << 20) + 4096; at < end - 5; at++)
			if (*at)
				return 4;
		for (unsigned char *at = base; at < end - (6 << 20) - 5; at++)
			if (*at != 0x5a)
				return 5;
	}
	int status;
	pid_t child = fork();
	if (child == 0) {
		base[0] = 1;
		_exit(sbrk(1 << 20) == (void *)-1);
	}
	waitpid(child, &status, 0);
	return status != 0 || base[0] != 0x5a ? 6 : 0;
}

/* A mapping that is filled and one of which little is used: both are new, that is zero, each time. */
static int fill_mappings(void)
{
	const size_t size = 7 << 20;
	for (int round = 0; round < 2; round++) {
		unsigned char *full = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		unsigned char *sparse = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (size_t at = 0; at < size; at++) {
			if (full[at])
				return 1;
			full[at] = at;
		}
		if (sparse[size / 2])
			return 2;
		sparse[size / 2] = 1;
		for (size_t at = 0; at < size; at++)
			if (full[at] != (unsigned char)at)
				return 3;
		munmap(full, size);
		munmap(sparse, size);
	}
	return 0;
}

static int act(const char *name, char **paths)
{
	const char *path = paths[0];
#define IS(word) (!strcmp(name, word))
	if (IS("prefix")) {
		printf("before\n");
		fprintf(stderr, "early\n");
		fflush(stdout);
	}
	if (IS("no-pool"))
		return 6;
	if (IS("pread")) {
		uint64_t value = 0;
		int fd = open(path, O_RDONLY);
		if (fd < 0 || pread(fd, &value, 8, 128) != 8)
			return 95;
		printf("%lu\n", value);
		return 0;
	}
	if (IS("private"))
		return map(path, MAP_PRIVATE)[64];
	pool = map(path, MAP_SHARED);
	if (IS("prefix") || IS("print")) {
		printf("%s\n", (const char *)pool);
		return 0;
	}
	if (IS("proc-mem")) {
		/* By another name for the process, and not through any mapping. */
		char name[64];
		snprintf(name, sizeof name, "/proc/%d/mem", getpid());
		int fd = open(name, O_RDONLY);
		return pread(fd, &byte, 1, (off_t)(uintptr_t)(pool + 64)) == 1 ? byte : 95;
	}
	if (IS("vm-readv")) {
		struct iovec own = {&byte, 1}, other = {(void *)(uintptr_t)(pool + 64), 1};
		return process_vm_readv(getpid(), &own, 1, &other, 1, 0) == 1 ? byte : 95;
	}
	if (IS("readv")) {
		struct iovec own = {&byte, 1};
		int fd = open(path, O_RDONLY);
		return preadv(fd, &own, 1, 64) == 1 ? byte : 95;
	}
	if (IS("sendfile")) {
		int fd = open(path, O_RDONLY), pipes[2];
		off_t offset = 64;
		if (pipe(pipes) || sendfile(pipes[1], fd, &offset, 1) != 1 || read(pipes[0], &byte, 1) != 1)
			return 95;
		return byte;
	}
	if (IS("code"))
		return pool[0];
	if (IS("segv"))
		return store_to_nowhere(), 0;
	if (IS("abort"))
		return give_up(), 0;
	if (IS("spin"))
		return spin(), 5;
	if (IS("sleep"))
		return pause();
	if (IS("eat")) {
		for (int megabytes = 0; megabytes < 512; megabytes++)
			memset(malloc(1 << 20), 1, 1 << 20);
		return 0;
	}
	if (IS("bomb"))
		return bomb();
	if (IS("delete"))
		return unlink(path);
	if (IS("recreate")) {
		if (unlink(path))
			return 94;
		int fd = open(path, O_RDWR | O_CREAT, 0600);
		return write(fd, "other", 5) != 5;
	}
	if (IS("rename")) {
		char away[4096];
		snprintf(away, sizeof away, "%s.old", path);
		return rename(path, away);
	}
	if (IS("shorten"))
		return truncate(path, 64);
	if (IS("flood")) {
		static char much[1 << 16];
		for (int i = 0; i < 1000; i++)
			if (write(1, much, sizeof much) < 0)
				return 93;
		return 0;
	}
	if (IS("daemon")) {
		if (in_background())
			return 4;
		pool[64] = 7;
		return 0;
	}
	if (IS("daemon-crash")) {
		if (in_background())
			return 0;
		abort();
	}
	if (IS("daemon-stays")) {
		if (in_background())
			return 3;
		for (;;)
			pause();
	}
	if (IS("child-crash")) {
		int status;
		if (fork() == 0)
			abort();
		wait(&status);
		return 0;
	}
	if (IS("threads")) {
		pthread_t one, two;
		void *a, *b;
		pthread_create(&one, NULL, reader, (void *)1);
		pthread_create(&two, NULL, reader, (void *)2);
		pthread_join(one, &a);
		pthread_join(two, &b);
		return (uintptr_t)a + (uintptr_t)b;
	}
	if (IS("write"))
		return write(1, (const void *)(pool + 192), 8) != 8;
	if (IS("own")) {
		for (int i = 0; i < 64; i++)
			pool[256 + i] = i;
		return pool[256 + 5] != 5;
	}
	if (IS("partly-own")) {
		pool[8 * 64] = 1;
		if (pool[8 * 64] != 1)
			return 91;
		int rest = pool[8 * 64 + 1] + pool[9 * 64];
		pool[9 * 64] = 2;
		pool[10 * 64 + 3] = 3;
		return rest + pool[10 * 64 + 3] + pool[9 * 64];
	}
	if (IS("mappings"))
		return fill_mappings();
	if (IS("heap"))
		return move_break();
	if (IS("heap-end")) {
		sbrk(5 << 20);
		*(volatile char *)(heap_end() - 1) = 1;
		return *(volatile char *)heap_end();
	}
	if (IS("lines"))
		return pool[5 * 64] + pool[3 * 64] + pool[5 * 64 + 8] + pool[4 * 64 + 63];
	if (IS("world")) {
		uint64_t random;
		struct timespec now;
		if (getrandom(&random, sizeof random, 0) != sizeof random)
			return 92;
		clock_gettime(CLOCK_REALTIME, &now);
		printf("%lx %ld.%09ld %ld %llx\n", random, now.tv_sec, now.tv_nsec, time(NULL), __rdtsc());
		/* Which line is read depends on all that. */
		return pool[(random ^ now.tv_nsec) % (len / 64) * 64];
	}
	if (IS("two")) {
		volatile unsigned char *second = map(paths[1], MAP_SHARED);
		printf("%s %s\n", (const char *)pool, (const char *)second);
		second[64] = 1;
		return 0;
	}
	return 100;
}

/* Touches so many MiB and keeps them. */
static int hoard(size_t mib)
{
	char *all = malloc(mib << 20);
	if (!all)
		return 8;
	memset(all, 1, mib << 20);
	/* The compiler would leave out what nobody reads. */
	__asm__ volatile("" ::"r"(all) : "memory");
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	/* Before anything is done to a pool. */
	if (argc > 2 && !strcmp(argv[1], "hoard-first"))
		return hoard(900);
	if (argc > 2 && !strcmp(argv[1], "spin-first"))
		for (;;)
			__asm__ volatile("");
	if (argc > 2 && !strcmp(argv[1], "hoard")) {
		map(argv[2], MAP_SHARED);
		return hoard(200);
	}
	return argc < 3 ? 101 : act(argv[1], argv + 2);
}
