// A target for the tests of the command line: maps the pool argv[2] and does what argv[1] says.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 1 << 20 };

int main(int argc, char **argv) {
    if (argc < 3) return 99;
    int fd = open(argv[2], O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, BYTES)) return 98;
    uint64_t *pool = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (pool == MAP_FAILED) return 97;
    const char *act = argv[1];
    if (!strcmp(act, "nothing")) return 0;
    pool[8] = 42;
    __builtin_ia32_clflush(&pool[8]);
    __builtin_ia32_sfence();
    if (!strcmp(act, "store")) {
        puts("stored");
        return 5;
    }
    if (!strcmp(act, "crash")) raise(SIGSEGV);
    if (!strcmp(act, "much")) {
        // Values that do not compress, more than any buffer holds.
        uint64_t x = 88172645463325252;
        for (long i = 0; i < 4000000; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            ((volatile uint64_t *)pool)[x % (BYTES / 8)] = x;
        }
        return 0;
    }
    if (!strcmp(act, "wait")) {
        // Locked as long as this process lives.
        struct flock lock = {.l_type = F_WRLCK};
        fcntl(fd, F_SETLK, &lock);
        puts("ready");
        fflush(stdout);
        for (;;) pause();
    }
    return 96;
}
