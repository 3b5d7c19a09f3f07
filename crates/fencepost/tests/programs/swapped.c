/* Stores a value and marks it as ready by a compare-and-swap, which happens to be a fence. FENCED: there is one of its own before that. */
#include <fcntl.h>
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
typedef struct { uint64_t value, pad[7], ready, pad2[7]; } pool;
static void publish(pool *p) {
    uint64_t none = 0;
    __atomic_compare_exchange_n(&p->ready, &none, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    _mm_clwb(&p->ready);
    _mm_sfence();
}
int main(int argc, char **argv) {
    int fd = open(argv[1], O_RDWR | O_CREAT, 0666);
    if (fd < 0 || ftruncate(fd, 4096)) return 9;
    pool *p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (argc > 2) return p->ready && p->value != 7;
    p->value = 7;
    _mm_clwb(&p->value);
#ifdef FENCED
    _mm_sfence();
#endif
    publish(p);
    return 0;
}
