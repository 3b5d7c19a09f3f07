// Cells in a pool that take operations on standard input, read in the way that the second argument names:
//   held GATE        line by line; waits before the first as long as the file GATE is there, and notes each operation in GATE.log
#define _GNU_SOURCE
#include <fcntl.h>
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CELLS 16

struct cell {
    volatile uint64_t value;
    char pad[56];
};
static struct cell *cells;

static void open_pool(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *cells * CELLS)) exit(91);
    cells = mmap(0, sizeof *cells * CELLS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (cells == MAP_FAILED) exit(92);
}

static void operate(const char *line) {
    unsigned long number = 0, value = 0;
    char answer[64];
    if (sscanf(line, "put %lu %lu", &number, &value) == 2) {
        cells[number % CELLS].value = value;
        _mm_clflush((void *)&cells[number % CELLS]);
        _mm_sfence();
        snprintf(answer, sizeof answer, "ok\n");
    } else if (sscanf(line, "get %lu", &number) == 1) {
        snprintf(answer, sizeof answer, "%lu\n", (unsigned long)cells[number % CELLS].value);
    } else {
        snprintf(answer, sizeof answer, "what?\n");
    }
    if (write(1, answer, strlen(answer)) < 0) exit(93);
}

static int held(const char *gate) {
    char reached[4096], log[4096], line[256];
    snprintf(reached, sizeof reached, "%s.reached", gate);
    snprintf(log, sizeof log, "%s.log", gate);
    if (!access(gate, F_OK)) close(open(reached, O_CREAT | O_WRONLY, 0600));
    while (!access(gate, F_OK)) usleep(1000);
    while (fgets(line, sizeof line, stdin)) {
        int fd = open(log, O_CREAT | O_WRONLY | O_APPEND, 0600);
        if (fd < 0 || write(fd, line, strlen(line)) < 0) return 94;
        close(fd);
        operate(line);
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 3) return 99;
    open_pool(argv[1]);
    if (!strcmp(argv[2], "held")) return held(argv[3]);
    return 98;
}
