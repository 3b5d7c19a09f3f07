/* Two fences are missing, after the flush of a new node and after that of a new table; one before `ready` is set would do for the table and
 * its nodes, but not for nodes that are linked elsewhere. `fences POOL` writes, `fences POOL check` looks. */
#include <fcntl.h>
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
struct line { uint64_t word, pad[7]; };
struct pool { struct line ready, linked[4], table[4], nodes[8]; };
static struct pool *p;
#define PUT(to, value) (*(volatile uint64_t *)&(to) = (value))
static __attribute__((noinline)) uint64_t make(uint64_t number) {
    PUT(p->nodes[number].word, 7);
    _mm_clwb(&p->nodes[number]);
    return number + 1;
}
static __attribute__((noinline)) void insert(uint64_t number) {
    PUT(p->linked[number].word, make(number));
    _mm_clwb(&p->linked[number]);
    _mm_sfence();
}
static __attribute__((noinline)) void copy_all(void) {
    for (int i = 0; i < 4; i++)
        PUT(p->table[i].word, make(4 + i));
    for (int i = 0; i < 4; i++)
        _mm_clwb(&p->table[i]);
}
static __attribute__((noinline)) void grow(void) {
    copy_all();
    PUT(p->ready.word, 1);
    _mm_clwb(&p->ready);
    _mm_sfence();
}
static int check(void) {
    for (int i = 0; i < 4; i++) {
        uint64_t linked = p->linked[i].word, entry = p->table[i].word;
        if (linked && p->nodes[linked - 1].word != 7) { fputs("a node is empty\n", stderr); return 1; }
        if (p->ready.word && !entry) { fputs("the table has a hole\n", stderr); return 1; }
        if (p->ready.word && p->nodes[entry - 1].word != 7) { fputs("a copy is empty\n", stderr); return 1; }
    }
    return 0;
}
int main(int argc, char **argv) {
    int fd = open(argv[1], O_RDWR | O_CREAT, 0666);
    if (fd < 0 || ftruncate(fd, 4096)) return 9;
    p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (argc > 2) return check();
    for (int i = 0; i < 4; i++) insert(i);
    grow();
    return 0;
}
