//! An array of texts that grows when it is written behind its end. A text is several words: a write goes through a redo log.
//! variants: 6
//! grammar: array.toml
//! together: 1 3 4 6 | 2 5
//! bug 1: wrong text — recovery writes what was logged before, write
//! bug 2: torn text, write
//! bug 3: lost texts — an array that was not copied, append and write that grow
//! bug 4: wrong print — the array is too short, append
//! bug 5: wrong print — the array is longer, but the text is not there, append
//! bug 6: lost text — the log is gone before the text is there, write
#include "ops.h"

#define WORDS 5
/* Array n has room for 4 * 2^n texts, and the smaller arrays lie before it. */
#define ARRAYS 11

union text {
	char chars[WORDS * 8];
	uint64_t words[WORDS];
};

struct pool {
	uint64_t magic;
	uint64_t array LINE_ALIGNED;
	uint64_t length LINE_ALIGNED;
	/* Index of the logged text, plus 1; or 0. */
	uint64_t logged LINE_ALIGNED;
	union text log LINE_ALIGNED;
	union text texts[4 << ARRAYS] LINE_ALIGNED;
};

static struct pool *p;

static uint64_t room(uint64_t array)
{
	return UINT64_C(4) << array;
}

static union text *text_at(uint64_t array, uint64_t index)
{
	return &p->texts[room(array) + index];
}

static void grow(uint64_t array)
{
	for (uint64_t i = 0; i < p->length; i++)
		for (unsigned word = 0; word < WORDS; word++)
			PUT(text_at(array, i)->words[word], text_at(p->array, i)->words[word]); //~ 3 ordering
	flush(text_at(array, 0), p->length * sizeof(union text));
	if (!HAS_BUG(3))
		fence();
	PUT(p->array, array);
	persist(&p->array, 8);
}

static void write_text(uint64_t index, const union text *text)
{
	union text *at = text_at(p->array, index);
	for (unsigned word = 0; word < WORDS; word++)
		PUT(at->words[word], text->words[word]); //~ 2 atomicity 6 ordering
	flush(at, sizeof *at);
	if (!HAS_BUG(6))
		fence();
}

static void lengthen(uint64_t index)
{
	if (index >= p->length) {
		PUT(p->length, index + 1); //~ 4 durability 5 ordering
		if (!HAS_BUG(4))
			persist(&p->length, 8);
	}
}

static void truncate_log(void)
{
	PUT(p->logged, 0);
	persist(&p->logged, 8);
}

static enum answer set(uint64_t index, uint64_t value)
{
	union text text = {{0}};
	if (index >= room(ARRAYS - 2))
		return FULL;
	uint64_t array = p->array;
	while (index >= room(array))
		array++;
	if (array != p->array)
		grow(array);
	snprintf(text.chars, sizeof text, "%020" PRIu64 ":%06" PRIu64, value, value * 7919 % 1000003);
	if (HAS_BUG(5))
		lengthen(index);
	if (!HAS_BUG(2)) {
		for (unsigned word = 0; word < WORDS; word++)
			PUT(p->log.words[word], text.words[word]); //~ 1 ordering
		flush(&p->log, sizeof p->log);
		if (!HAS_BUG(1))
			fence();
		PUT(p->logged, index + 1); //~ 5 ordering
		persist(&p->logged, 8);
	}
	write_text(index, &text);
	lengthen(index);
	truncate_log();
	return DONE;
}

static const char *show(uint64_t index)
{
	const char *chars = text_at(p->array, index)->chars;
	return *chars ? chars : "-";
}

static void operate(char kind, uint64_t index, uint64_t value)
{
	switch (kind) {
	case 'w':
		puts(answer_text(set(index, value)));
		break;
	case 'a':
		value = index;
		index = p->length;
		if (set(index, value) == DONE)
			printf("at %" PRIu64 "\n", index);
		else
			puts("full");
		break;
	case 'g':
		puts(index < p->length ? show(index) : "missing");
		break;
	case 'p':
		fputs("all", stdout);
		for (uint64_t i = 0; i < p->length; i++)
			printf(" %s", show(i));
		putchar('\n');
		break;
	default:
		puts("what?");
	}
}

static void start(void *pm, int is_new)
{
	p = pm;
	if (!is_new && p->logged) {
		uint64_t index = p->logged - 1;
		write_text(index, &p->log);
		lengthen(index);
		truncate_log();
	}
}

int main(int argc, char **argv)
{
	return ops_main(argc, argv, sizeof(struct pool), start, operate);
}
