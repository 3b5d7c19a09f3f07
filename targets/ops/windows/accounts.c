/* Accounts that several threads change at the same time: `a ACCOUNT N` adds and answers the new balance, `b ACCOUNT` asks for
 * it. A line may be a window, `a 1 5 || a 2 7 || a 1 3`: a thread for each part, answers in the order of the parts. One thread
 * makes the changes of all durable when they are done (group commit). An account is one aligned word on a line of its
 * own, so each addition happens whole or not at all.
 *
 * BUG 1: the group has a first and a last, and those between are forgotten. A line with one operation, or with two, is answered
 * rightly after every crash: only windows of three show it.
 *
 * Not in the table of the suite, since a grammar makes no windows: crates/fencepost/tests/checks/ops_windows.rs checks it. */
#include "ops.h"
#include <pthread.h>

#define ACCOUNTS 16
#define PARTS 8

struct account {
	uint64_t balance LINE_ALIGNED;
};

struct pool {
	uint64_t magic;
	struct account accounts[ACCOUNTS];
};

struct part {
	pthread_t thread;
	const char *text;
	struct account *account;
	uint64_t balance;
};

static struct pool *p;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void start(void *pm, int is_new)
{
	(void)is_new;
	p = pm;
}

static void *run(void *argument)
{
	struct part *part = argument;
	char kind = 0;
	uint64_t account = 0, amount = 0;
	sscanf(part->text, " %c %" SCNu64 " %" SCNu64, &kind, &account, &amount);
	part->account = &p->accounts[account % ACCOUNTS];
	pthread_mutex_lock(&lock);
	if (kind == 'a')
		PUT(part->account->balance, part->account->balance + amount);
	part->balance = part->account->balance;
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* What the threads did becomes durable. */
static void commit(struct part *parts, int count)
{
	for (int i = 0; i < count; i++) {
		int between = i > 0 && i < count - 1;
		if (HAS_BUG(1) && between)
			continue;
		persist(&parts[i].account->balance, 8);
	}
}

static void window(char *line)
{
	struct part parts[PARTS];
	int count = 0;
	for (char *text = line; text && count < PARTS; count++) {
		char *end = strstr(text, "||");
		parts[count].text = text;
		if (end)
			*end = 0;
		text = end ? end + 2 : NULL;
	}
	for (int i = 1; i < count; i++)
		pthread_create(&parts[i].thread, NULL, run, &parts[i]);
	run(&parts[0]);
	for (int i = 1; i < count; i++)
		pthread_join(parts[i].thread, NULL);
	commit(parts, count);
	for (int i = 0; i < count; i++)
		printf("%" PRIu64 "\n", parts[i].balance);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s POOL < OPERATIONS\n", argv[0]);
		return 2;
	}
	ops_start(argv[1], sizeof *p, start);
	char line[256];
	while (fgets(line, sizeof line, stdin))
		window(line);
	return 0;
}
