//! Records on a machine whose caches survive: no flushes, but the order of stores and their width still matter.
//! variants: 3
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
//! flags: -O2
//! options: --model eadr
#include "pm.h"

#define RECORDS 3

struct record {
	uint64_t data LINE_ALIGNED;
	uint64_t valid LINE_ALIGNED;
};

struct pair {
	uint64_t valid;
	uint64_t data;
} __attribute__((aligned(16)));

struct pool {
	uint64_t magic;
	struct record records[RECORDS];
	struct pair pairs[RECORDS];
	uint64_t streamed[RECORDS] LINE_ALIGNED;
	uint64_t is_streamed[RECORDS] LINE_ALIGNED;
};

static __attribute__((noinline)) void put_record(struct record *r, uint64_t data)
{
#if HAS_BUG(1)
	PUT(r->valid, 1); //~ 1 ordering
	PUT(r->data, data); //~ 1 ordering
#else
	PUT(r->data, data);
	PUT(r->valid, 1);
#endif
}

/* At -O2 a struct of two words is one store of 16 bytes. */
static __attribute__((noinline)) void put_pair(struct pair *to, uint64_t data)
{
#if HAS_BUG(2)
	struct pair pair = {1, data};
	*to = pair; //~ 2 atomicity
#else
	PUT(to->data, data);
	PUT(to->valid, 1);
#endif
}

/* Write-combining buffers are no caches. */
static __attribute__((noinline)) void stream(struct pool *p, unsigned i, uint64_t data)
{
	PUT_NT(p->streamed[i], data); //~ 3 ordering
#if !HAS_BUG(3)
	fence();
#endif
	PUT(p->is_streamed[i], 1); //~ 3 ordering
	fence();
}

static void run(void *pm)
{
	struct pool *p = pm;
	PUT(p->magic, POOL_MAGIC);
	for (unsigned i = 0; i < RECORDS; i++) {
		put_record(&p->records[i], 100 + i);
		put_pair(&p->pairs[i], 200 + i);
		stream(p, i, 300 + i);
	}
}

static void check(void *pm)
{
	const struct pool *p = pm;
	for (unsigned i = 0; i < RECORDS; i++) {
		insist(!p->records[i].valid || p->records[i].data == 100 + i, "a record is valid without its data");
		insist(!p->pairs[i].valid || p->pairs[i].data == 200 + i, "a pair is valid without its data");
		insist(!p->is_streamed[i] || p->streamed[i] == 300 + i, "streamed data is missing");
	}
}

int main(int argc, char **argv)
{
	return pm_main(argc, argv, sizeof(struct pool), run, check);
}
