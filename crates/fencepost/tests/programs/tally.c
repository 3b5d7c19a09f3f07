// One operation per process, on a pool with sixteen numbers:
//   put CELL VALUE, get CELL    the number is flushed, and is counted by another line
//   sum                         of all, and how many were put
//   die CELL, fail CELL         SIGSEGV, exit code 3, where the cell is not zero; after a line of output
//   bump CELL, count            looks at the cell and counts one put more; how many were put
//   grow, size                  a page more at the end of the pool, with a number in it; how long the pool is
//   mark, marked                makes a file in the working directory; is it there?
//   append FILE                 a byte more at the end of a file
//   draw, drawn                 keeps a random number and the time in the pool; are they those of the last draw?
#include <fcntl.h>
#include <immintrin.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

struct line {
    volatile uint64_t word;
    char pad[56];
};

static void put(struct line *line, uint64_t word) {
    line->word = word;
    _mm_clflush((void *)line);
    _mm_sfence();
}

int main(int argc, char **argv) {
    int fd = open(argv[1], O_RDWR);
    if (fd < 0) fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    const off_t size = 32 * sizeof(struct line);
    if (argc < 3 || fd < 0 || (lseek(fd, 0, SEEK_END) < size && ftruncate(fd, size))) return 91;
    struct line *pool = mmap(0, 32 * sizeof *pool, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (pool == MAP_FAILED) return 92;
    struct line *cells = pool, *puts = &pool[16], *drawn = &pool[17];
    const char *what = argv[2];
    struct line *cell = &cells[argc > 3 ? atoi(argv[3]) % 16 : 0];
    if (!strcmp(what, "put")) {
        put(cell, strtoul(argv[4], 0, 10));
        put(puts, puts->word + 1);
        printf("ok\n");
    } else if (!strcmp(what, "get")) {
        printf("%lu\n", (unsigned long)cell->word);
    } else if (!strcmp(what, "sum")) {
        unsigned long sum = 0;
        for (int i = 0; i < 16; i++) sum += cells[i].word;
        printf("%lu\n", sum);
    } else if (!strcmp(what, "die") || !strcmp(what, "fail")) {
        printf("about to\n");
        fflush(stdout);
        if (cell->word && *what == 'd') raise(SIGSEGV);
        if (cell->word) return 3;
    } else if (!strcmp(what, "bump")) {
        unsigned long seen = (unsigned long)cell->word;
        put(puts, puts->word + 1);
        printf("%lu\n", seen);
    } else if (!strcmp(what, "count")) {
        printf("%lu\n", (unsigned long)puts->word);
    } else if (!strcmp(what, "grow")) {
        const off_t page = 4096, end = (lseek(fd, 0, SEEK_END) + page - 1) / page * page + page;
        if (ftruncate(fd, end)) return 95;
        struct line *last = mmap(0, (size_t)page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, end - page);
        if (last == MAP_FAILED) return 96;
        put(last, 7);
        printf("ok\n");
    } else if (!strcmp(what, "size")) {
        printf("%ld\n", (long)lseek(fd, 0, SEEK_END));
    } else if (!strcmp(what, "mark")) {
        close(open("mark", O_WRONLY | O_CREAT, 0600));
        printf("ok\n");
    } else if (!strcmp(what, "marked")) {
        printf("%s\n", access("mark", F_OK) ? "no" : "yes");
    } else if (!strcmp(what, "append")) {
        int file = open(argv[3], O_WRONLY | O_APPEND);
        if (file < 0 || write(file, ".", 1) != 1) return 97;
        printf("ok\n");
    } else if (!strcmp(what, "draw")) {
        // Two draws never give the same.
        uint64_t number;
        struct timespec now;
        if (getrandom(&number, 8, 0) != 8 || clock_gettime(CLOCK_REALTIME, &now)) return 93;
        uint64_t ns = (uint64_t)now.tv_nsec + 1;
        for (int i = 0; i < 6; i += 2)
            if (drawn[i].word == number || drawn[i + 1].word == ns) return 94;
        int at = (int)(puts->word % 3) * 2;
        put(&drawn[at], number);
        put(&drawn[at + 1], ns);
        put(puts, puts->word + 1);
        printf("ok\n");
    } else {
        printf("what?\n");
    }
    return 0;
}
