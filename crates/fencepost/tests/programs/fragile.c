// A server for the tests of drivers: `fragile POOL SOCKET` keeps one value. `put N` and `get` are answered; on `close` the connection is
// closed, on `die` the server dies. The mark can reach PM before the value, and `get` then reads through a null pointer.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct pool {
    uint64_t value __attribute__((aligned(64)));
    uint64_t mark __attribute__((aligned(64)));
};

static volatile struct pool *pool;

__attribute__((noinline)) static void put(uint64_t value) {
    pool->value = value;
    pool->mark = 1;
    __builtin_ia32_clflush((void *)&pool->mark);
    __builtin_ia32_clflush((void *)&pool->value);
    __builtin_ia32_sfence();
}

__attribute__((noinline)) static uint64_t lookup(void) {
    if (pool->mark && !pool->value) return *(volatile uint64_t *)(uintptr_t)pool->value;
    return pool->value;
}

int main(int argc, char **argv) {
    if (argc != 3) return 99;
    int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 4096)) return 90;
    pool = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "%s", argv[2]);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (pool == MAP_FAILED || bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 1)) return 91;
    FILE *in = fdopen(accept(listener, NULL, NULL), "r+");
    if (!in) return 92;
    setvbuf(in, NULL, _IONBF, 0);
    char line[64];
    while (fgets(line, sizeof line, in)) {
        if (!strncmp(line, "put ", 4)) {
            put(strtoull(line + 4, NULL, 10));
            fputs("ok\n", in);
        } else if (!strcmp(line, "get\n")) {
            fprintf(in, "%llu\n", (unsigned long long)lookup());
        } else if (!strcmp(line, "die\n")) {
            abort();
        } else {
            fclose(in);
            for (;;) pause();
        }
    }
    for (;;) pause();
}
