/* A persistent map from numbers to numbers, asked through operations: `i KEY VALUE`, `u KEY VALUE`, `d KEY`, `g KEY`, `n`, `p`, `l`. */
#ifndef KV_H
#define KV_H
#include "ops.h"

/* What a program is asked; `each` calls `show` for every item in whatever order. */
struct kv {
	enum answer (*insert)(uint64_t key, uint64_t value);
	enum answer (*update)(uint64_t key, uint64_t value);
	enum answer (*erase)(uint64_t key);
	/* NULL if the key is missing. */
	const uint64_t *(*find)(uint64_t key);
	uint64_t (*count)(void);
	void (*each)(void (*show)(uint64_t key, uint64_t value));
};

static const struct kv *kv;

#define KV_PRINTED 8192
static struct {
	uint64_t key, value;
} kv_shown[KV_PRINTED];
static size_t kv_shown_count;

static void kv_show(uint64_t key, uint64_t value)
{
	if (kv_shown_count < KV_PRINTED) {
		kv_shown[kv_shown_count].key = key;
		kv_shown[kv_shown_count++].value = value;
	}
}

static int kv_compare(const void *a, const void *b)
{
	const uint64_t *x = (const uint64_t *)a, *y = (const uint64_t *)b;
	int i = x[0] == y[0];
	return x[i] < y[i] ? -1 : x[i] > y[i];
}

/* Sorted, so that the answer does not depend on where an item happens to lie. */
static void kv_print(void)
{
	kv_shown_count = 0;
	kv->each(kv_show);
	qsort(kv_shown, kv_shown_count, sizeof *kv_shown, kv_compare);
	fputs("all", stdout);
	for (size_t i = 0; i < kv_shown_count; i++)
		printf(" %" PRIu64 "=%" PRIu64, kv_shown[i].key, kv_shown[i].value);
	putchar('\n');
}

static void kv_list_one(uint64_t key, uint64_t value)
{
	printf("%" PRIu64 "=%" PRIu64 "\n", key, value);
}

/* In the order in which the items happen to lie, one line each: what most programs do. */
static void kv_list(void)
{
	kv->each(kv_list_one);
	puts("end");
}

static void kv_operate(char kind, uint64_t key, uint64_t value)
{
	const uint64_t *found;
	switch (kind) {
	case 'i':
		puts(answer_text(kv->insert(key, value)));
		break;
	case 'u':
		puts(answer_text(kv->update(key, value)));
		break;
	case 'd':
		puts(answer_text(kv->erase(key)));
		break;
	case 'g':
		found = kv->find(key);
		if (found)
			printf("%" PRIu64 "\n", *found);
		else
			puts("missing");
		break;
	case 'n':
		printf("%" PRIu64 "\n", kv->count());
		break;
	case 'p':
		kv_print();
		break;
	case 'l':
		kv_list();
		break;
	default:
		puts("what?");
	}
}

static inline int kv_main(int argc, char **argv, size_t size, void (*start)(void *pm, int is_new), const struct kv *map)
{
	kv = map;
	return ops_main(argc, argv, size, start, kv_operate);
}

/* Spreads numbers; not inlined, so that it never takes the line of a store. */
static __attribute__((noinline, unused)) uint64_t kv_hash(uint64_t key)
{
	uint64_t x = (key + 1) * UINT64_C(0x9e3779b97f4a7c15);
	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	return x ^ x >> 32;
}
#endif
