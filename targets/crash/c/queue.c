//! A queue in a ring: messages of two lines, published by moving the tail with a compare-and-swap; batches are all or nothing.
//! variants: 8
//! together: 1 3 4 | 2 5 | 6 7 | 8
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#define PM_FLUSH _mm_clflushopt
#include "pm.h"

#define SLOTS 8
#define WORDS 13

struct message {
	uint32_t words : 8;
	uint32_t urgent : 1;
	uint64_t number;
	uint64_t body[WORDS];
	uint64_t check;
} LINE_ALIGNED;

struct pool {
	uint64_t magic;
	uint64_t ack LINE_ALIGNED;
	/* Both only grow; the slot is the remainder. */
	uint64_t head LINE_ALIGNED;
	uint64_t tail LINE_ALIGNED;
#if HAS_BUG(5)
	uint64_t count LINE_ALIGNED;
#endif
	struct message slots[SLOTS];
};

static uint64_t word_of(uint64_t number, unsigned i)
{
	return (number + 1) * UINT64_C(0x2545f4914f6cdd1d) + i;
}

static uint64_t check_of(const struct message *m)
{
	uint64_t sum = m->number ^ m->urgent;
	for (unsigned i = 0; i < m->words; i++)
		sum = sum * 31 + m->body[i];
	return sum;
}

static inline struct message *slot(struct pool *p, uint64_t place)
{
	return &p->slots[place % SLOTS];
}

/* Writes the message that will be at `place`, without making it part of the queue. */
static void write_message(struct pool *p, uint64_t place, uint64_t number)
{
	struct message *m = slot(p, place);
	uint64_t body[WORDS];
	for (unsigned i = 0; i < WORDS; i++)
		body[i] = word_of(number, i);
	PUT(m->number, number); //~ 1 ordering 6 ordering
	m->words = WORDS; //~ 1 ordering 6 ordering
	m->urgent = number % 3 == 0; //~ 1 ordering 6 ordering
	memcpy(m->body, body, sizeof body); //~ 1 ordering 6 ordering 2 durability
	PUT(m->check, check_of(m)); //~ 1 ordering 6 ordering 2 durability
#if HAS_BUG(1)
	flush(m, sizeof *m);
#elif HAS_BUG(2)
	persist(m, sizeof m);
#elif !HAS_BUG(6)
	persist(m, sizeof *m);
#endif
}

static void move_tail(struct pool *p, uint64_t by)
{
	uint64_t tail = p->tail;
#if HAS_BUG(1)
	PUT(p->tail, tail + by);
#else
	__atomic_compare_exchange_n(&p->tail, &tail, tail + by, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED); //~ 5 atomicity
#endif
	persist(&p->tail, 8);
#if HAS_BUG(5)
	PUT(p->count, p->count + by); //~ 5 atomicity
	persist(&p->count, 8);
#endif
#if HAS_BUG(6)
	for (uint64_t i = 0; i < by; i++)
		persist(slot(p, tail + i), sizeof(struct message));
#endif
}

static void send(struct pool *p, uint64_t number)
{
	write_message(p, p->tail, number);
	move_tail(p, 1);
}

static void send_batch(struct pool *p, uint64_t number, uint64_t count)
{
#if HAS_BUG(4)
	for (uint64_t i = 0; i < count; i++) {
		uint64_t tail = p->tail;
		write_message(p, tail, number + i);
		PUT(p->tail, tail + 1); //~ 4 atomicity
		persist(&p->tail, 8);
	}
#else
	for (uint64_t i = 0; i < count; i++)
		write_message(p, p->tail + i, number + i);
	move_tail(p, count);
#endif
}

static void receive(struct pool *p)
{
	uint64_t head = p->head;
#if HAS_BUG(7)
	/* The slot is wiped before it leaves the queue. */
	PUT(slot(p, head)->number, 0); //~ 7 ordering
	persist(slot(p, head), sizeof(struct message));
#endif
	PUT(p->head, head + 1); //~ 3 durability 5 atomicity 7 ordering
#if !HAS_BUG(3)
	persist(&p->head, 8);
#endif
#if HAS_BUG(5)
	PUT(p->count, p->count - 1); //~ 5 atomicity
	persist(&p->count, 8);
#endif
}

/* s send, b send a batch of 3, r receive. The ring wraps, is full once and empty twice. */
static const char script[] = "ssrrsbrsbsrrrsrrrrrrsbrsrrrsrs";
#define OPERATIONS (sizeof script - 1)

static void run(void *pm)
{
	struct pool *p = pm;
	PUT(p->magic, POOL_MAGIC);
	persist(&p->magic, 8);
	uint64_t number = 0;
	for (uint64_t i = 0; i < OPERATIONS; i++) {
		switch (script[i]) {
		case 's': send(p, number++); break;
		case 'b': send_batch(p, number, 3); number += 3; break;
		case 'r': receive(p); break;
		}
		PUT(p->ack, i + 1);
		persist(&p->ack, 8);
	}
}

static int equals_model(struct pool *p, uint64_t operations)
{
	uint64_t head = 0, tail = 0;
	if (operations > OPERATIONS)
		return 0;
	for (uint64_t i = 0; i < operations; i++) {
		head += script[i] == 'r';
		tail += script[i] == 's' ? 1 : script[i] == 'b' ? 3 : 0;
	}
	return p->head == head && p->tail == tail;
}

static void check_message(struct pool *p, uint64_t place)
{
	struct message *m = slot(p, place);
	insist(m->number == place, "a message is not in its place");
	insist(m->words == WORDS && m->urgent == (m->number % 3 == 0), "a message has no header");
	insist(m->check == check_of(m), "a message is torn");
	insist(m->body[WORDS - 1] == word_of(m->number, WORDS - 1), "a message is not the one that was sent");
}

static void check(void *pm)
{
	struct pool *p = pm;
	uint64_t left = p->tail - p->head;
	insist(left <= SLOTS, "more messages than slots");
#if HAS_BUG(5)
	insist(p->count == left, "the count is not that of the messages");
#endif
#if HAS_BUG(8)
	/* The first slot that can be written to. */
	volatile uint64_t unused = p->tail;
	while ((unused - p->head) % SLOTS < left) //~ 8 recovery
		unused++; //~ 8 recovery
#endif
	for (uint64_t place = p->head; place < p->tail; place++)
		check_message(p, place);
	insist(equals_model(p, p->ack) || equals_model(p, p->ack + 1), "not what the finished operations left");
}

int main(int argc, char **argv)
{
	return pm_main(argc, argv, sizeof(struct pool), run, check);
}
