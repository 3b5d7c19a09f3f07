/* A counter with an undo log: `a` adds one, anything else asks for it.
 *
 * LOSSY: the log stays open, as a transaction would that is never ended; what was acknowledged is undone when the pool is opened again.
 * TWICE: recovery forgets the old value before it closes the log: after a second crash, in between, it puts back something else. */
#include <fcntl.h>
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
typedef struct { uint64_t open, old, pad[6], value, pad2[7]; } pool;
static void persist(void *at) { _mm_clwb(at); _mm_sfence(); }
int main(int argc, char **argv) {
    int fd = open(argv[1], O_RDWR | O_CREAT, 0666);
    if (fd < 0 || ftruncate(fd, 4096)) return 9;
    pool *p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p->open) {
        p->value = p->old;
        persist(&p->value);
#ifdef TWICE
        p->old = 99;
        persist(&p->old);
#endif
        p->open = 0;
        persist(&p->open);
    }
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        if (line[0] == 'a') {
            if (!p->open) { p->old = p->value; persist(&p->old); p->open = 1; persist(&p->open); }
            p->value = p->value + 1; persist(&p->value);
#ifndef LOSSY
            p->open = 0; persist(&p->open);
#endif
            puts("ok");
        } else printf("%lu\n", p->value);
        fflush(stdout);
    }
    (void)argc;
    return 0;
}
