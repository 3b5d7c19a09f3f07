//! Records of several words, stored with wide, with unaligned and with non-temporal stores: what reaches PM whole, and in which order.
//! variants: 6
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
//! flags: -O2
#include "pm.h"

#define DATA 42

struct pair {
	uint64_t valid;
	uint64_t data;
} __attribute__((aligned(16)));

struct record {
	uint64_t valid;
	uint64_t data[2];
};

struct pool {
	uint64_t magic;
	struct pair pair LINE_ALIGNED;
	struct pair header LINE_ALIGNED;
	uint64_t sum LINE_ALIGNED;
	uint64_t stream[8] LINE_ALIGNED;
	struct {
#if HAS_BUG(4)
		uint32_t before;
#endif
		uint64_t value;
	} __attribute__((packed)) number LINE_ALIGNED;
	uint64_t late LINE_ALIGNED;
	uint64_t is_late_there LINE_ALIGNED;
	struct record copied LINE_ALIGNED;
	uint64_t cached_first[8] LINE_ALIGNED;
	uint64_t cached_last[8] LINE_ALIGNED;
};

#define NUMBER UINT64_C(0x1111111122222222)

/* At -O2 a struct of two words is one store of 16 bytes. */
static __attribute__((noinline)) void put_pair(struct pool *p, uint64_t data)
{
#if HAS_BUG(1)
	struct pair pair = {1, data};
	p->pair = pair; //~ 1 atomicity
#else
	PUT(p->pair.data, data);
	PUT(p->pair.valid, 1);
#endif
	persist(&p->pair, sizeof p->pair);
}

/* A torn header does no harm if the sum is there. */
static __attribute__((noinline)) void put_header(struct pool *p, uint64_t data)
{
	PUT(p->sum, data + 1); //~ 2 ordering
	flush(&p->sum, sizeof p->sum);
#if !HAS_BUG(2)
	fence();
#endif
	struct pair header = {1, data};
	p->header = header; //~ 2 ordering
	persist(&p->header, sizeof p->header);
}

/* Two words of one line. */
static __attribute__((noinline)) void stream(struct pool *p, uint64_t data)
{
	PUT_NT(p->stream[0], data); //~ 3 ordering
#if !HAS_BUG(3)
	fence();
#endif
	PUT_NT(p->stream[1], 1); //~ 3 ordering
	fence();
}

static __attribute__((noinline)) void put_number(struct pool *p, uint64_t number)
{
	PUT(p->number.value, number); //~ 4 atomicity
	persist(&p->number, sizeof p->number);
}

/* A flush does not reach a non-temporal store. */
static __attribute__((noinline)) void put_late(struct pool *p, uint64_t data)
{
	PUT_NT(p->late, data); //~ 5 ordering
	compiler_barrier();
	_mm_clflush(&p->late);
#if !HAS_BUG(5)
	fence();
#endif
	PUT(p->is_late_there, 1); //~ 5 ordering
	persist(&p->is_late_there, sizeof p->is_late_there);
}

static inline void copy(void *to, const void *from, size_t len)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(len)::"memory"); //~ 6 atomicity
}

/* A string instruction is no more atomic than the words it copies. */
static __attribute__((noinline)) void copy_record(struct pool *p, uint64_t data)
{
	struct record record = {1, {data, data}};
#if HAS_BUG(6)
	copy(&p->copied, &record, sizeof record);
#else
	copy(p->copied.data, record.data, sizeof record.data);
	PUT(p->copied.valid, record.valid);
#endif
	persist(&p->copied, sizeof p->copied);
}

/* A line that is dirty in the cache is written back before a non-temporal store to it; and a cached store comes after those. */
static __attribute__((noinline)) void mix(struct pool *p, uint64_t data)
{
	PUT(p->cached_first[0], data);
	compiler_barrier();
	PUT_NT(p->cached_first[1], 1);
	fence();
	PUT_NT(p->cached_last[0], data);
	compiler_barrier();
	PUT(p->cached_last[1], 1);
	persist(p->cached_last, sizeof p->cached_last);
}

static void run(void *pm)
{
	struct pool *p = pm;
	PUT(p->magic, POOL_MAGIC);
	persist(&p->magic, sizeof p->magic);
	put_pair(p, DATA);
	put_header(p, DATA);
	stream(p, DATA);
	put_number(p, NUMBER);
	put_late(p, DATA);
	copy_record(p, DATA);
	mix(p, DATA);
}

static void check(void *pm)
{
	const struct pool *p = pm;
	insist(!p->pair.valid || p->pair.data == DATA, "a pair is valid without its data");
	insist(!p->header.valid || p->header.data == DATA || p->sum == DATA + 1, "a header is torn, and there is no sum");
	insist(!p->stream[1] || p->stream[0] == DATA, "a stream is valid without its data");
	uint64_t number = p->number.value;
	insist(!number || number == NUMBER, "half a number");
	insist(!p->is_late_there || p->late == DATA, "something late is missing");
	const struct record *r = &p->copied;
	insist(!r->valid || (r->data[0] == DATA && r->data[1] == DATA), "a record is valid without its data");
	insist(!p->cached_first[1] || p->cached_first[0] == DATA, "a cached store is missing below a streamed one");
	insist(!p->cached_last[1] || p->cached_last[0] == DATA, "a streamed store is missing below a cached one");
}

int main(int argc, char **argv)
{
	return pm_main(argc, argv, sizeof(struct pool), run, check);
}
