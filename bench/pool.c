/* The same few changes in a pool of any size: what a crash state costs must not depend on what it does not change.
 *
 *   pool FILE MIB run     makes the pool and moves sixteen records from one place to the other, forth and back
 *   pool FILE MIB check   the recovery: exactly one of a record's two places is valid, and holds it
 *
 * The records lie a 32nd of the pool apart, so that a large pool has its changes all over it. */
#define _GNU_SOURCE
#include <emmintrin.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RECORDS 16
#define ROUNDS 8

struct record {
	uint64_t words[7];
	uint64_t sum;
} __attribute__((aligned(64)));

struct pool {
	/* Bit 2n: the first place of record n is valid; bit 2n + 1: the second. */
	uint64_t valid;
	uint64_t made __attribute__((aligned(64)));
};

static char *base;
static size_t size;

static struct record *place(unsigned record, unsigned side)
{
	return (struct record *)(base + 4096 + (2 * record + side) * ((size - 8192) / (2 * RECORDS) & ~(size_t)63));
}

static void persist(const void *address)
{
	_mm_clflush(address);
	_mm_sfence();
}

static void write_record(unsigned record, unsigned side, uint64_t seed)
{
	struct record *r = place(record, side);
	uint64_t sum = 0;
	for (unsigned i = 0; i < 7; i++) {
		r->words[i] = (seed + i) * UINT64_C(0x9e3779b97f4a7c15);
		sum = sum * 31 + r->words[i];
	}
	r->sum = sum;
	persist(r);
}

static int holds(unsigned record, unsigned side)
{
	const struct record *r = place(record, side);
	uint64_t sum = 0;
	for (unsigned i = 0; i < 7; i++)
		sum = sum * 31 + r->words[i];
	return r->sum == sum;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return fprintf(stderr, "usage: %s FILE MIB run|check\n", argv[0]), 2;
	size = strtoul(argv[2], NULL, 10) << 20;
	int run = strcmp(argv[3], "run") == 0;
	int fd = open(argv[1], run ? O_RDWR | O_CREAT : O_RDWR, 0644);
	if (fd < 0 || (run && ftruncate(fd, (off_t)size) != 0))
		return perror(argv[1]), 2;
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return perror("mmap"), 2;
	struct pool *pool = (struct pool *)base;
	if (!run) {
		/* A crash before the first records were all there. */
		if (!pool->made)
			return 0;
		for (unsigned n = 0; n < RECORDS; n++) {
			unsigned sides = pool->valid >> (2 * n) & 3;
			if ((sides != 1 && sides != 2) || !holds(n, sides >> 1))
				return printf("record %u is lost\n", n), 1;
		}
		return 0;
	}
	uint64_t valid = 0;
	for (unsigned n = 0; n < RECORDS; n++) {
		write_record(n, 0, n);
		valid |= UINT64_C(1) << (2 * n);
	}
	pool->valid = valid;
	persist(&pool->valid);
	pool->made = 1;
	persist(&pool->made);
	for (unsigned round = 1; round <= ROUNDS; round++)
		for (unsigned n = 0; n < RECORDS; n++) {
			write_record(n, round & 1, round * 100 + n);
			/* One store moves the record: the bits of both places change together. */
			pool->valid ^= UINT64_C(3) << (2 * n);
			persist(&pool->valid);
		}
	return 0;
}
