/* Says that a value is ready before it is in PM; its recovery waits for such a value forever. */
#include <fcntl.h>
#include <immintrin.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
typedef struct { uint64_t value, pad[7], ready, pad2[7]; } pool;
int main(int argc, char **argv) {
    int fd = open(argv[1], O_RDWR | O_CREAT, 0666);
    if (fd < 0 || ftruncate(fd, 4096)) return 9;
    volatile pool *p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (argc > 2) {
        while (p->ready && p->value != 7) usleep(10000);
        return 0;
    }
    p->value = 7;
    p->ready = 1;
    _mm_clwb((void *)&p->value);
    _mm_clwb((void *)&p->ready);
    _mm_sfence();
    return 0;
}
