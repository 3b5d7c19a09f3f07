//! A server with a text protocol (after memcached): `set KEY TEXT`, `get KEY`, `del KEY`, `count`; one line for each answer. It
//! serves several connections, on a socket's path or a port of the loopback address, and ends on SIGTERM.
//! variants: 4
//! run: {bin} {pool} {socket}
//! grammar: server.toml
//! bug 1: lost keys — an item without its content, insert
//! bug 2: resurrected key, delete
//! bug 3: torn value, update
//! bug 4: wrong count, insert and delete
#include "ops.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#define CHAINS 32
#define ITEMS 8192
#define KEY_WORDS 3
#define TEXT_WORDS 6
#define CONNECTIONS 16

struct item {
	/* The number of the next item of the chain, or 0. */
	uint64_t next LINE_ALIGNED;
	uint64_t key[KEY_WORDS];
	uint64_t text[TEXT_WORDS];
};

struct pool {
	uint64_t magic;
	uint64_t count LINE_ALIGNED;
	/* Items that were ever used; number 0 is none. */
	uint64_t used LINE_ALIGNED;
	uint64_t chains[CHAINS] LINE_ALIGNED;
	struct item items[ITEMS];
};

static struct pool *p;

static uint64_t *link_to(const uint64_t *key)
{
	uint64_t hash = (key[0] ^ key[1] ^ key[2]) * UINT64_C(0x9e3779b97f4a7c15);
	uint64_t *link = &p->chains[hash >> 32 & (CHAINS - 1)];
	while (*link && memcmp(p->items[*link].key, key, sizeof p->items->key) != 0)
		link = &p->items[*link].next;
	return link;
}

static void count_by(uint64_t difference)
{
	PUT(p->count, p->count + difference); //~ 4 atomicity
	persist(&p->count, 8);
}

static uint64_t make(const uint64_t *key, const uint64_t *text, uint64_t next)
{
	uint64_t number = p->used + 1;
	PUT(p->used, number);
	persist(&p->used, 8);
	struct item *item = &p->items[number];
	for (unsigned i = 0; i < KEY_WORDS; i++)
		PUT(item->key[i], key[i]); //~ 1 ordering
	for (unsigned i = 0; i < TEXT_WORDS; i++)
		PUT(item->text[i], text[i]); //~ 1 ordering
	PUT(item->next, next); //~ 1 ordering
	flush(item, sizeof *item);
	if (BUG != 1)
		fence();
	return number;
}

/* A new item takes the place of the old one. */
static const char *set(const uint64_t *key, const uint64_t *text)
{
	uint64_t *link = link_to(key), old = *link;
	if (old && BUG == 3) {
		for (unsigned i = 0; i < TEXT_WORDS; i++)
			PUT(p->items[old].text[i], text[i]); //~ 3 atomicity
		persist(p->items[old].text, sizeof p->items->text);
		return "STORED";
	}
	if (p->used + 1 == ITEMS)
		return "SERVER_ERROR full";
	PUT(*link, make(key, text, old ? p->items[old].next : 0)); //~ 4 atomicity
	persist(link, 8);
	if (!old)
		count_by(1); //~ 4 atomicity
	return "STORED";
}

static const char *del(const uint64_t *key)
{
	uint64_t *link = link_to(key);
	if (!*link)
		return "NOT_FOUND";
	PUT(*link, p->items[*link].next); //~ 2 durability 4 atomicity
	if (BUG != 2)
		persist(link, 8);
	count_by(-UINT64_C(1)); //~ 4 atomicity
	return "DELETED";
}

/* Writes the answer to a request, without the end of the line. */
static void serve_line(const char *line, char *answer, size_t size)
{
	char verb[8] = "";
	union {
		char chars[(KEY_WORDS + TEXT_WORDS) * 8];
		struct {
			uint64_t key[KEY_WORDS], text[TEXT_WORDS];
		};
	} words = {{0}};
	int found = sscanf(line, "%7s %23s %47[^\r\n]", verb, words.chars, words.chars + sizeof words.key);
	if (found == 3 && strcmp(verb, "set") == 0) {
		snprintf(answer, size, "%s", set(words.key, words.text));
	} else if (found == 2 && strcmp(verb, "del") == 0) {
		snprintf(answer, size, "%s", del(words.key));
	} else if (found == 2 && strcmp(verb, "get") == 0) {
		uint64_t item = *link_to(words.key);
		if (item)
			snprintf(answer, size, "VALUE %.47s", (const char *)p->items[item].text);
		else
			snprintf(answer, size, "NOT_FOUND");
	} else if (found == 1 && strcmp(verb, "count") == 0) {
		snprintf(answer, size, "COUNT %" PRIu64, p->count);
	} else {
		snprintf(answer, size, "ERROR");
	}
}

static void start(void *pm, int is_new)
{
	p = pm;
	if (is_new)
		return;
	uint64_t items = 0;
	for (unsigned i = 0; i < CHAINS; i++)
		for (uint64_t at = p->chains[i]; at; at = p->items[at].next)
			items++;
	if (items != p->count && BUG != 4) {
		PUT(p->count, items);
		persist(&p->count, 8);
	}
}

struct connection {
	char text[512];
	size_t length;
};

static int send_all(int fd, const char *text, size_t length)
{
	while (length > 0) {
		ssize_t sent = send(fd, text, length, MSG_NOSIGNAL);
		if (sent < 0 && errno != EINTR)
			return 0;
		if (sent > 0) {
			text += sent;
			length -= (size_t)sent;
		}
	}
	return 1;
}

/* Answers the whole lines that have come; returns 0 when the connection is over. */
static int serve(int fd, struct connection *connection)
{
	ssize_t got = recv(fd, connection->text + connection->length, sizeof connection->text - 1 - connection->length, 0);
	if (got <= 0)
		return got < 0 && errno == EINTR;
	connection->length += (size_t)got;
	connection->text[connection->length] = 0;
	char *line = connection->text, *end;
	while ((end = strchr(line, '\n'))) {
		char answer[80];
		*end = 0;
		serve_line(line, answer, sizeof answer - 1);
		strcat(answer, "\n");
		if (!send_all(fd, answer, strlen(answer)))
			return 0;
		line = end + 1;
	}
	connection->length -= (size_t)(line - connection->text);
	memmove(connection->text, line, connection->length);
	return connection->length + 1 < sizeof connection->text;
}

/* A number is a port of the loopback address, anything else a path. */
static int listen_at(const char *where)
{
	struct sockaddr_un local = {.sun_family = AF_UNIX};
	struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int is_port = where[strspn(where, "0123456789")] == 0, one = 1;
	int fd = socket(is_port ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int bound;
	if (is_port) {
		loopback.sin_port = htons((uint16_t)atoi(where));
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
		bound = bind(fd, (struct sockaddr *)&loopback, sizeof loopback);
	} else {
		snprintf(local.sun_path, sizeof local.sun_path, "%s", where);
		unlink(where);
		bound = bind(fd, (struct sockaddr *)&local, sizeof local);
	}
	if (bound != 0 || listen(fd, CONNECTIONS) != 0) {
		perror(where);
		exit(2);
	}
	return fd;
}

static volatile sig_atomic_t is_over;

static void end(int signal)
{
	(void)signal;
	is_over = 1;
}

/* The signal is only let in while `ppoll` waits, so that none is missed. */
static void serve_all(int listener)
{
	static struct connection connections[CONNECTIONS + 1];
	struct pollfd fds[CONNECTIONS + 1] = {{.fd = listener, .events = POLLIN}};
	nfds_t count = 1;
	sigset_t blocked, open;
	struct sigaction action = {.sa_handler = end};
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, &open);
	sigdelset(&open, SIGTERM);
	sigaction(SIGTERM, &action, NULL);
	while (!is_over) {
		fds[0].events = count <= CONNECTIONS ? POLLIN : 0;
		if (ppoll(fds, count, NULL, &open) < 0)
			continue;
		for (nfds_t i = count; i-- > 1;)
			if (fds[i].revents && !serve(fds[i].fd, &connections[i])) {
				close(fds[i].fd);
				fds[i] = fds[--count];
				connections[i] = connections[count];
			}
		int fd = fds[0].revents ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
		if (fd >= 0) {
			connections[count].length = 0;
			fds[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
		}
	}
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: %s POOL PORT|SOCKET\n", argv[0]);
		return 2;
	}
	ops_start(argv[1], sizeof(struct pool), start);
	serve_all(listen_at(argv[2]));
	return 0;
}
