/* A counter: `a` adds a step of one, anything else asks for the count.
 *
 * SETUP: a new pool is in use before its step is durable. FIRST: nothing makes the first addition durable but the second. */
#include <fcntl.h>
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
typedef struct { uint64_t magic, pad[7], step, pad2[7], count; } pool;
static void persist(void *at) { _mm_clwb(at); _mm_sfence(); }
static void put(uint64_t *at, uint64_t value) { *at = value; persist(at); }
int main(int argc, char **argv) {
    int fd = open(argv[1], O_RDWR | O_CREAT, 0666);
    if (fd < 0 || ftruncate(fd, 4096)) return 9;
    pool *p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (!p->magic) {
#ifdef SETUP
        put(&p->magic, 1);
        put(&p->step, 1);
#else
        put(&p->step, 1);
        put(&p->magic, 1);
#endif
    }
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        if (line[0] == 'a') {
            p->count += p->step;
#ifdef FIRST
            if (p->count > 1)
#endif
                persist(&p->count);
            puts("ok");
        } else printf("%lu\n", p->count);
        fflush(stdout);
    }
    (void)argc;
    return 0;
}
