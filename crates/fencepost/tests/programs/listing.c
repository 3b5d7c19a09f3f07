/* A set that is kept in order: `i KEY` appends a key and then sorts into the other of two areas; `l` lists, a line each (ONE_LINE: all on one line); `g KEY` asks for one.
 * A crash between the two leaves the keys in another order, which is right.
 *
 * BUG: the count is durable before the key is. */
#include <fcntl.h>
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
struct area { uint64_t count, pad[7], keys[64]; };
struct pool { uint64_t which, pad[7]; struct area areas[2]; };
static void persist(void *at, size_t len) {
    for (char *line = at; line < (char *)at + len; line += 64) _mm_clwb(line);
    _mm_sfence();
}
static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}
static void insert(struct pool *p, uint64_t key) {
    struct area *own = &p->areas[p->which], *other = &p->areas[!p->which];
#ifdef BUG
    own->count++;
    persist(&own->count, 8);
    own->keys[own->count - 1] = key;
    persist(&own->keys[own->count - 1], 8);
#else
    own->keys[own->count] = key;
    persist(&own->keys[own->count], 8);
    own->count++;
    persist(&own->count, 8);
#endif
    uint64_t sorted[64];
    for (uint64_t i = 0; i < own->count; i++) sorted[i] = own->keys[i];
    qsort(sorted, own->count, 8, compare);
    for (uint64_t i = 0; i < own->count; i++) ((volatile uint64_t *)other->keys)[i] = sorted[i];
    other->count = own->count;
    persist(other, sizeof *other);
    p->which = !p->which;
    persist(&p->which, 8);
}
int main(int argc, char **argv) {
    int fd = open(argv[argc - 1], O_RDWR | O_CREAT, 0666);
    if (fd < 0 || ftruncate(fd, 4096)) return 9;
    struct pool *p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        struct area *own = &p->areas[p->which];
        uint64_t key = strtoull(line + 1, NULL, 10), found = 0;
        for (uint64_t i = 0; i < own->count; i++) found |= own->keys[i] == key;
        if (line[0] == 'i') { insert(p, key); puts("ok"); }
        else if (line[0] == 'g') puts(found ? "yes" : "no");
#ifdef ONE_LINE
        else {
            printf("keys: ");
            for (uint64_t i = 0; i < own->count; i++) printf("%skey %lu", i ? ", " : "", own->keys[i]);
            puts("");
        }
#else
        else {
            puts("all");
            for (uint64_t i = 0; i < own->count; i++) printf("%lu\n", own->keys[i]);
        }
#endif
        fflush(stdout);
    }
    return 0;
}
