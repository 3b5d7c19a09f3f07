//! Accounts under an undo log: old contents are logged and counted before they are overwritten.
//! variants: 10
//! together: 1 3 4 | 2 6 7 | 5 | 8 | 9 | 10
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
//! options: --again
#include "pm.h"

#define ACCOUNTS 12
#define LOG_ENTRIES 4

struct account {
	uint64_t key;
	uint64_t version;
	uint64_t amount;
	uint64_t check;
};

struct totals {
	uint64_t accounts;
	uint64_t amount;
};

struct entry {
	uint64_t offset;
	uint64_t length;
	uint8_t old[48] LINE_ALIGNED;
};

struct pool {
	uint64_t magic;
	uint64_t ack LINE_ALIGNED;
	uint64_t logged LINE_ALIGNED;
	struct entry log[LOG_ENTRIES];
	struct totals totals LINE_ALIGNED;
	struct account accounts[ACCOUNTS] LINE_ALIGNED;
};

static uint64_t check_of(const struct account *a)
{
	return (a->key * 31 + a->version) * 1009 + a->amount;
}

/* Keeps the content of a range until the transaction ends. */
static void undo_add(struct pool *p, void *range, uint64_t length)
{
	struct entry *e = &p->log[p->logged];
	PUT(e->offset, (uint64_t)((char *)range - (char *)p)); //~ 1 ordering
	PUT(e->length, length); //~ 1 ordering
	memcpy(e->old, range, length); //~ 1 ordering 2 durability
#if HAS_BUG(1)
	flush(e, sizeof *e);
#elif HAS_BUG(2)
	persist(e, offsetof(struct entry, old));
#else
	persist(e, sizeof *e);
#endif
	PUT(p->logged, p->logged + 1); //~ 6 ordering
#if HAS_BUG(6)
	flush(&p->logged, 8);
#else
	persist(&p->logged, 8);
#endif
}

static void commit(struct pool *p)
{
#if HAS_BUG(5)
	uint64_t first = 1;
#else
	uint64_t first = 0;
#endif
	for (uint64_t i = first; i < p->logged; i++)
		flush((char *)p + p->log[i].offset, p->log[i].length);
#if !HAS_BUG(4)
	fence();
#endif
	PUT(p->logged, 0);
	persist(&p->logged, 8);
}

static void set_account(struct account *a, uint64_t key, uint64_t version, uint64_t amount)
{
	PUT(a->key, key);                     //~ 5 durability 4 ordering
	PUT(a->version, version);             //~ 5 durability 4 ordering 7 atomicity
	PUT(a->amount, amount);               //~ 5 durability 4 ordering 7 atomicity
	PUT(a->check, key ? check_of(a) : 0); //~ 5 durability 4 ordering 7 atomicity
}

static void add_to_totals(struct pool *p, uint64_t accounts, uint64_t amount)
{
#if !HAS_BUG(3)
	undo_add(p, &p->totals, sizeof p->totals);
#endif
	PUT(p->totals.accounts, p->totals.accounts + accounts); //~ 3 atomicity 4 ordering
	PUT(p->totals.amount, p->totals.amount + amount); //~ 3 atomicity 4 ordering
#if HAS_BUG(3)
	flush(&p->totals, sizeof p->totals);
#endif
}

static void open_account(struct pool *p, unsigned i, uint64_t amount)
{
	struct account *a = &p->accounts[i];
	undo_add(p, a, sizeof *a);
	set_account(a, i + 1, 1, amount);
	add_to_totals(p, 1, amount);
	commit(p);
}

static void close_account(struct pool *p, unsigned i)
{
	struct account *a = &p->accounts[i];
	uint64_t amount = a->amount;
	undo_add(p, a, sizeof *a);
	set_account(a, 0, 0, 0);
	add_to_totals(p, -1, -amount);
	commit(p);
}

static void transfer(struct pool *p, unsigned from, unsigned to, uint64_t amount)
{
	struct account *a = &p->accounts[from], *b = &p->accounts[to];
	undo_add(p, a, sizeof *a);
#if HAS_BUG(7)
	undo_add(p, &b->amount, sizeof b->amount);
#else
	undo_add(p, b, sizeof *b);
#endif
	set_account(a, a->key, a->version + 1, a->amount - amount);
	set_account(b, b->key, b->version + 1, b->amount + amount);
	commit(p);
}

static const struct operation {
	char kind;
	unsigned a, b;
} script[] = {
	{'o', 0, 0}, {'o', 5, 0}, {'t', 0, 5}, {'o', 2, 0}, {'o', 11, 0}, {'t', 11, 0}, {'t', 5, 2}, {'c', 5, 0}, {'o', 7, 0},
	{'t', 7, 11}, {'o', 5, 0}, {'c', 0, 0}, {'o', 3, 0}, {'o', 9, 0}, {'t', 3, 2}, {'t', 9, 5}, {'c', 11, 0}, {'c', 2, 0},
	{'t', 7, 3}, {'o', 2, 0}, {'t', 2, 9}, {'o', 0, 0},
};
#define OPERATIONS (sizeof script / sizeof script[0])

static uint64_t opening_amount(uint64_t operation)
{
	return 1000 + operation;
}

static uint64_t transferred(uint64_t operation)
{
	return 1 + operation;
}

static void run(void *pm)
{
	struct pool *p = pm;
	PUT(p->magic, POOL_MAGIC);
	persist(&p->magic, 8);
	for (uint64_t i = 0; i < OPERATIONS; i++) {
		const struct operation *o = &script[i];
		switch (o->kind) {
		case 'o': open_account(p, o->a, opening_amount(i)); break;
		case 'c': close_account(p, o->a); break;
		case 't': transfer(p, o->a, o->b, transferred(i)); break;
		}
		PUT(p->ack, i + 1);
		persist(&p->ack, 8);
	}
}

/* Contents go back in reverse: the oldest entry of a range is the one that counts. */
static void roll_back(struct pool *p)
{
	uint64_t logged = p->logged;
	insist(logged <= LOG_ENTRIES, "more log entries than fit");
#if HAS_BUG(9)
	PUT(p->logged, 0); //~ 9 ordering
	persist(&p->logged, 8);
#endif
	for (uint64_t i = logged; i-- > 0;) {
		const struct entry *e = &p->log[i];
		insist(e->offset >= offsetof(struct pool, totals) && e->length <= sizeof e->old &&
			       e->offset + e->length <= sizeof *p,
		       "a log entry has no range");
#if HAS_BUG(8)
		struct account *a = NULL;
		if (e->offset >= offsetof(struct pool, accounts))
			a = &p->accounts[(e->offset - offsetof(struct pool, accounts)) / sizeof *a];
		insist(*(volatile uint64_t *)&a->key <= ACCOUNTS, "a log entry of no account"); //~ 8 recovery
#endif
		memcpy((char *)p + e->offset, e->old, e->length); //~ 9 ordering 10 durability
#if !HAS_BUG(10)
		flush((char *)p + e->offset, e->length);
#endif
	}
	fence();
#if !HAS_BUG(9)
	PUT(p->logged, 0);
	persist(&p->logged, 8);
#endif
}

static int equals_model(struct pool *p, uint64_t operations)
{
	struct account model[ACCOUNTS] = {0};
	if (operations > OPERATIONS)
		return 0;
	for (uint64_t i = 0; i < operations; i++) {
		const struct operation *o = &script[i];
		struct account *a = &model[o->a];
		if (o->kind == 't') {
			a->version++;
			a->amount -= transferred(i);
			model[o->b].version++;
			model[o->b].amount += transferred(i);
		} else {
			int opens = o->kind == 'o';
			*a = (struct account){opens ? o->a + 1 : 0, opens, opens ? opening_amount(i) : 0, 0};
		}
	}
	for (unsigned i = 0; i < ACCOUNTS; i++) {
		struct account *a = &p->accounts[i], *m = &model[i];
		if (a->key != m->key || a->version != m->version || a->amount != m->amount)
			return 0;
	}
	return 1;
}

static void check(void *pm)
{
	struct pool *p = pm;
	if (p->logged)
		roll_back(p);
	struct totals totals = {0, 0};
	for (unsigned i = 0; i < ACCOUNTS; i++) {
		struct account *a = &p->accounts[i];
		insist(a->key == 0 || a->key == i + 1, "an account is in the wrong place");
		insist(a->check == (a->key ? check_of(a) : 0), "an account is torn");
		totals.accounts += a->key != 0;
		totals.amount += a->amount;
	}
	insist(totals.accounts == p->totals.accounts, "the number of accounts is wrong");
	insist(totals.amount == p->totals.amount, "the sum of the accounts is wrong");
	insist(equals_model(p, p->ack) || equals_model(p, p->ack + 1), "not what the finished operations left");
}

int main(int argc, char **argv)
{
	return pm_main(argc, argv, sizeof(struct pool), run, check);
}
