//! A server with a text protocol (after memcached): `set KEY TEXT`, `get KEY`, `del KEY`, `count`; one line for each answer. It
//! serves several connections, on a socket's path or a port of the loopback address, and ends on SIGTERM. Values are sent from the pool
//! itself (`sendmsg`); it waits by epoll, and a timer (timerfd) ticks meanwhile, as in servers that look after idle connections.
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
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
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
	if (!HAS_BUG(1))
		fence();
	return number;
}

/* A new item takes the place of the old one. */
static const char *set(const uint64_t *key, const uint64_t *text)
{
	uint64_t *link = link_to(key), old = *link;
	if (old && HAS_BUG(3)) {
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
	if (!HAS_BUG(2))
		persist(link, 8);
	count_by(-UINT64_C(1)); //~ 4 atomicity
	return "DELETED";
}

/* Sends all parts, also those that lie in the pool, or returns 0. */
static int send_parts(int fd, struct iovec *parts, size_t count)
{
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
	while (message.msg_iovlen > 0) {
		ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
		if (sent < 0 && errno != EINTR)
			return 0;
		for (; sent > 0 && message.msg_iovlen > 0; message.msg_iov++, message.msg_iovlen--) {
			if ((size_t)sent < message.msg_iov->iov_len) {
				message.msg_iov->iov_base = (char *)message.msg_iov->iov_base + sent;
				message.msg_iov->iov_len -= (size_t)sent;
				break;
			}
			sent -= (ssize_t)message.msg_iov->iov_len;
		}
	}
	return 1;
}

static struct iovec part(const void *text, size_t length)
{
	return (struct iovec){.iov_base = (void *)(uintptr_t)text, .iov_len = length};
}

static int send_text(int fd, const char *text)
{
	struct iovec parts[] = {part(text, strlen(text)), part("\n", 1)};
	return send_parts(fd, parts, 2);
}

static int send_value(int fd, const struct item *item)
{
	const char *text = (const char *)item->text;
	struct iovec parts[] = {part("VALUE ", 6), part(text, strnlen(text, sizeof item->text - 1)), part("\n", 1)};
	return send_parts(fd, parts, 3);
}

/* Answers a request; returns 0 when the connection is over. */
static int serve_line(int fd, const char *line)
{
	char verb[8] = "", text[40];
	union {
		char chars[(KEY_WORDS + TEXT_WORDS) * 8];
		struct {
			uint64_t key[KEY_WORDS], text[TEXT_WORDS];
		};
	} words = {{0}};
	int found = sscanf(line, "%7s %23s %47[^\r\n]", verb, words.chars, words.chars + sizeof words.key);
	if (found == 3 && strcmp(verb, "set") == 0)
		return send_text(fd, set(words.key, words.text));
	if (found == 2 && strcmp(verb, "del") == 0)
		return send_text(fd, del(words.key));
	if (found == 2 && strcmp(verb, "get") == 0) {
		uint64_t item = *link_to(words.key);
		return item ? send_value(fd, &p->items[item]) : send_text(fd, "NOT_FOUND");
	}
	if (found == 1 && strcmp(verb, "count") == 0) {
		snprintf(text, sizeof text, "COUNT %" PRIu64, p->count);
		return send_text(fd, text);
	}
	return send_text(fd, "ERROR");
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
	if (items != p->count && !HAS_BUG(4)) {
		PUT(p->count, items);
		persist(&p->count, 8);
	}
}

struct connection {
	int fd;
	char text[512];
	size_t length;
};

/* Answers the whole lines that have come; returns 0 when the connection is over. */
static int serve(struct connection *connection)
{
	ssize_t got = recv(connection->fd, connection->text + connection->length, sizeof connection->text - 1 - connection->length, 0);
	if (got <= 0)
		return got < 0 && errno == EINTR;
	connection->length += (size_t)got;
	connection->text[connection->length] = 0;
	char *line = connection->text, *end;
	while ((end = strchr(line, '\n'))) {
		*end = 0;
		if (!serve_line(connection->fd, line))
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

static void wait_for(int epoll, int fd, void *who)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = who};
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
		perror("epoll_ctl");
		exit(2);
	}
}

/* The signal is only let in while `epoll_pwait` waits, so that none is missed. */
static void serve_all(int listener)
{
	static struct connection connections[CONNECTIONS], ticks;
	int epoll = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	struct itimerspec second = {.it_interval.tv_sec = 1, .it_value.tv_sec = 1};
	sigset_t blocked, open;
	struct sigaction action = {.sa_handler = end};
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, &open);
	sigdelset(&open, SIGTERM);
	sigaction(SIGTERM, &action, NULL);
	for (unsigned i = 0; i < CONNECTIONS; i++)
		connections[i].fd = -1;
	timerfd_settime(timer, 0, &second, NULL);
	wait_for(epoll, listener, NULL);
	wait_for(epoll, timer, &ticks);
	while (!is_over) {
		struct epoll_event event;
		if (epoll_pwait(epoll, &event, 1, -1, &open) < 1)
			continue;
		struct connection *connection = event.data.ptr;
		uint64_t expired;
		if (connection == &ticks) {
			if (read(timer, &expired, sizeof expired) == sizeof expired)
				ticks.length += expired;
		} else if (connection) {
			if (!serve(connection)) {
				close(connection->fd);
				connection->fd = -1;
			}
		} else {
			int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
			unsigned i = 0;
			while (i < CONNECTIONS && connections[i].fd >= 0)
				i++;
			if (fd >= 0 && i == CONNECTIONS) {
				close(fd);
			} else if (fd >= 0) {
				connections[i].fd = fd;
				connections[i].length = 0;
				wait_for(epoll, fd, &connections[i]);
			}
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
