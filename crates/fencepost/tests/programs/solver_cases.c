/* For `fencepost explore`: ways to treat an input, by the name that is the second argument. The first is the pool, a third some modes have.
 * In all of them a store is never flushed if the input begins with "BUG". */
#define _GNU_SOURCE
#include <fcntl.h>
#include <immintrin.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static volatile uint64_t *pool;
static char in[64];

static void put(int at, uint64_t value)
{
	pool[at * 8] = value;
	_mm_clflush((void *)&pool[at * 8]);
	_mm_sfence();
}

static void bug(const char *text)
{
	/* The line is flushed elsewhere. */
	put(1, 1);
	if (text[0] == 'B' && text[1] == 'U' && text[2] == 'G')
		pool[8] = 2; /* the bug */
}

static unsigned counted;

__attribute__((noinline)) static void count(void)
{
	counted++;
}

static void *thread(void *text)
{
	bug(text);
	return NULL;
}

static int made_code(int with)
{
	static unsigned char *code;
	if (!code)
		code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* mov eax, with; ret */
	unsigned char bytes[6] = {0xb8, (unsigned char)with, 0, 0, 0, 0xc3};
	memcpy(code, bytes, sizeof bytes);
	return ((int (*)(void))code)();
}

static int serve(const char *place)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	strncpy(address.sun_path, place, sizeof address.sun_path - 1);
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1))
		return 3;
	int client = accept(listener, NULL, NULL);
	for (ssize_t len; (len = recv(client, in, sizeof in - 1, 0)) > 0;) {
		in[len] = 0;
		if (memcmp(in, "put ", 4) == 0)
			bug(in + 4);
		if (send(client, "ok\n", 3, 0) != 3)
			return 4;
	}
	return 0;
}

int main(int argc, char **argv)
{
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	if (argc < 3 || fd < 0 || ftruncate(fd, 4096))
		return 2;
	pool = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	const char *mode = argv[2];
	put(0, 1);
	if (!strcmp(mode, "deaf"))
		return 0;
	if (!strcmp(mode, "serve"))
		return serve(argv[3]);
	if (!strcmp(mode, "operation")) {
		bug(argv[3]);
		puts("ok");
		return 0;
	}
	ssize_t len = read(0, in, sizeof in);
	if (len < 4)
		return 2;
	if (!strcmp(mode, "copy")) {
		put(1, *(uint64_t *)in);
	} else if (!strcmp(mode, "plain")) {
		bug(in);
	} else if (!strcmp(mode, "loop")) {
		/* The input decides in every round. */
		for (unsigned n = 0; n < 30000; n++)
			if ((unsigned char)in[n % 4] == n % 256)
				count();
		put(2, counted);
	} else if (!strcmp(mode, "endless")) {
		while (in[0] == '1')
			usleep(10);
	} else if (!strcmp(mode, "code")) {
		if (made_code(1) + made_code(2) == 3)
			bug(in);
	} else if (!strcmp(mode, "thread")) {
		pthread_t other;
		pthread_create(&other, NULL, thread, in);
		pthread_join(other, NULL);
	} else if (!strcmp(mode, "float")) {
		double number = in[0];
		if (number * 1.5 > 200.0)
			put(2, 1);
		bug(in);
	} else if (!strcmp(mode, "seek")) {
		if (lseek(fd, in[0], SEEK_SET) > 120)
			put(2, 1);
		bug(in);
	} else if (!strcmp(mode, "name")) {
		in[8] = 0;
		if (access(in, F_OK) == 0)
			put(2, 1);
		bug(in);
	} else if (!strcmp(mode, "hard")) {
		/* Nothing for the cheap stages. */
		uint32_t a, b;
		memcpy(&a, in, 4);
		memcpy(&b, in + 4, 4);
		uint64_t product = (uint64_t)a * b;
		if (product == 0x3c9a8e1f5b7d2063 && a > 3 && b > 3)
			put(2, 1);
		bug(in);
	}
	return 0;
}
