// A target whose operations depend on one another: without `open`, `put` never ends and `get` dies. It reads operations from standard input.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct pool {
    uint64_t opened __attribute__((aligned(64)));
    uint64_t value __attribute__((aligned(64)));
};

static volatile struct pool *pool;

static void persist(volatile uint64_t *word, uint64_t value) {
    *word = value;
    __builtin_ia32_clflush((void *)word);
    __builtin_ia32_sfence();
}

int main(int argc, char **argv) {
    int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
    if (fd < 0 || ftruncate(fd, 4096)) return 90;
    pool = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (pool == MAP_FAILED) return 91;
    char line[64];
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof line, stdin)) {
        if (!strcmp(line, "open\n")) {
            persist(&pool->opened, 1);
            puts("opened");
        } else if (!strncmp(line, "put ", 4)) {
            while (!pool->opened) __asm__ volatile("");
            persist(&pool->value, strtoull(line + 4, NULL, 10));
            puts("ok");
        } else {
            if (!pool->opened) abort();
            printf("%llu\n", (unsigned long long)pool->value);
        }
    }
    return 0;
}
