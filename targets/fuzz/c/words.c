//! Reads bytes, not operations: commands separated by semicolons, each a word and a number. Some words are known to nobody who has
//! not read the source, or the dictionary.
//! variants: 4
//! dictionary: words.dict
//! bug 1: lost value — never made durable, STORE of a number above 1000
//! bug 2: half of a pair — torn by a crash, SWAP
//! bug 3: a missing value — it goes before the counter does, COMPACT after three values
//! run: {bin} {pool}
//! recover: {bin} {pool}
//! bug 4: signal — without any power failure, PRINT of a value that is not there
#include "rare.h"

#define VALUES 64

struct pool {
	uint64_t magic;
	uint64_t count LINE_ALIGNED;
	uint64_t pair[2] LINE_ALIGNED;
	uint64_t mirror LINE_ALIGNED;
	uint64_t values[VALUES] LINE_ALIGNED;
};

static struct pool *p;

static void store(uint64_t number)
{
	if (p->count == VALUES)
		return;
	PUT(p->values[p->count], number + 1); //~ 1 durability
	if (!(BUG == 1 && number > 1000))
		persist(&p->values[p->count], 8);
	PUT(p->count, p->count + 1);
	persist(&p->count, 8);
}

static void swap(uint64_t number)
{
	if (BUG == 2) {
		PUT(p->pair[0], number); //~ 2 atomicity
		persist(&p->pair[0], 8);
		PUT(p->mirror, number); //~ 2 atomicity
		persist(&p->mirror, 8);
	} else {
		PUT(p->pair[0], number);
		persist(&p->pair[0], 8);
	}
}

static void compact(void)
{
	if (p->count < 3)
		return;
	if (BUG == 3) {
		PUT(p->values[p->count - 1], 0); //~ 3 ordering
		persist(&p->values[p->count - 1], 8);
		PUT(p->count, p->count - 1); //~ 3 ordering
		persist(&p->count, 8);
	} else {
		PUT(p->count, p->count - 1);
		persist(&p->count, 8);
	}
}

static void print(uint64_t number)
{
	if (BUG == 4 && number >= p->count)
		__builtin_trap(); //~ 4 recovery
	if (number < p->count)
		printf("%" PRIu64 "\n", p->values[number]);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	p = ops_pool(argv[1], sizeof *p);
	if (p->magic != POOL_MAGIC) {
		PUT(p->magic, POOL_MAGIC);
		persist(&p->magic, 8);
	}
	/* What no crash may leave. */
	for (uint64_t i = 0; i < p->count; i++)
		insist(p->values[i] != 0, "a value is missing");
	insist(BUG != 2 || p->pair[0] == p->mirror, "half of a pair");
	static char text[1 << 16];
	size_t len = fread(text, 1, sizeof text - 1, stdin);
	text[len] = 0;
	for (char *at = text, *word; (word = strsep(&at, ";"));) {
		uint64_t number = 0;
		char name[17] = "";
		if (sscanf(word, "%16s %" SCNu64, name, &number) < 1)
			continue;
		if (!strcmp(name, "STORE"))
			store(number);
		else if (!strcmp(name, "SWAP"))
			swap(number);
		else if (!strcmp(name, "COMPACT"))
			compact();
		else if (!strcmp(name, "PRINT"))
			print(number);
	}
	return 0;
}
