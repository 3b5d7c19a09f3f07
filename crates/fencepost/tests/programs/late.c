/* A counter with a limit: `a` adds one unless that is reached, anything else asks for it. The limit is stored by the first addition and made
 * durable by the twentieth; without it the limit is 60.
 *
 * FLUSHED: it is made durable at once. Otherwise a crash before the twentieth addition loses it, and only the sixtieth shows that. */
#include <fcntl.h>
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
typedef struct { uint64_t count, pad[7], limit, pad2[7]; } pool;
static void persist(void *at) { _mm_clwb(at); _mm_sfence(); }
int main(int argc, char **argv) {
    int fd = open(argv[1], O_RDWR | O_CREAT, 0666);
    if (fd < 0 || ftruncate(fd, 4096)) return 9;
    pool *p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        if (line[0] == 'a') {
            if (p->count == 0) {
                p->limit = 1000;
#ifdef FLUSHED
                persist(&p->limit);
#endif
            }
            if (p->count == 20) persist(&p->limit);
            if (p->count >= (p->limit ? p->limit : 60)) puts("full");
            else { p->count = p->count + 1; persist(&p->count); puts("ok"); }
        } else printf("%lu\n", p->count);
        fflush(stdout);
    }
    (void)argc;
    return 0;
}
