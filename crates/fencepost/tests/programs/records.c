// A target for the tests of `check` and `crash`: `records POOL run COUNT` adds records, `records POOL ACT [GATE]` is their
// recovery.
// A record's mark can reach PM before its value; with -DREPAIRED recovery does not mind.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 100, MIDDLE = 8, BYTES = 4096 * 4 };

struct record {
    uint64_t value __attribute__((aligned(64)));
    uint64_t mark __attribute__((aligned(64)));
};

static volatile struct record *records;

static void open_pool(const char *path, int flags) {
    int fd = open(path, O_RDWR | flags, 0600);
    struct stat told;
    // A crash right after it was created leaves it empty.
    if (fd < 0 || fstat(fd, &told) || (told.st_size < BYTES && ftruncate(fd, BYTES))) {
        perror(path);
        exit(90);
    }
    records = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (records == MAP_FAILED) exit(91);
}

__attribute__((noinline)) static void add(int number) {
    records[number].value = 1000 + number;
    records[number].mark = 1;
    __builtin_ia32_clflush((void *)&records[number].mark);
    __builtin_ia32_clflush((void *)&records[number].value);
    __builtin_ia32_sfence();
}

static int is_lost(void) {
    for (int number = 0; number < MOST; number++)
        if (records[number].mark && records[number].value != 1000 + (uint64_t)number) return 1;
    return 0;
}

__attribute__((noinline)) static void hang(void) {
    while (is_lost()) __asm__ volatile("");
}

static void eat(void) {
    for (int megabytes = 0; megabytes < 512; megabytes++) memset(malloc(1 << 20), 1, 1 << 20);
}

static void bomb(void) {
    // Bounded here, whatever the limits do.
    for (int forks = 0; forks < 300; forks++) {
        pid_t child = fork();
        if (child < 0) exit(8);
        if (child == 0)
            for (;;) pause();
    }
}

// As long as the file is there.
static void wait_at(const char *gate) {
    char reached[4096];
    snprintf(reached, sizeof reached, "%s.reached", gate);
    if (!access(gate, F_OK)) close(open(reached, O_CREAT | O_WRONLY, 0600));
    while (!access(gate, F_OK)) usleep(1000);
}

// In every second run, counted in a file elsewhere.
static int is_odd(const char *turns) {
    struct stat told;
    int fd = open(turns, O_CREAT | O_WRONLY | O_APPEND, 0600);
    if (fd < 0 || fstat(fd, &told) || write(fd, "x", 1) != 1) exit(93);
    return told.st_size % 2;
}

static int recover(const char *act, const char *path, const char *gate) {
#define IS(word) (!strcmp(act, word))
    if (IS("moody")) return !records[is_odd(gate)].mark & 0;
    int lost = is_lost();
    if (IS("slow")) {
        // Each run leaves a byte elsewhere, takes a tenth of a second, and fails before the 60th record.
        (void)is_odd(gate);
        usleep(100000);
        return !records[59].mark;
    }
    if (gate && records[MIDDLE].mark && !records[MIDDLE + 4].mark) wait_at(gate);
#ifdef REPAIRED
    lost = 0;
#endif
    if (IS("never")) {
        fprintf(stderr, "no such option\n");
        return 9;
    }
    if (IS("clean")) {
        // Repairs nothing, says nothing.
        return 0;
    }
    if (IS("deletes") && unlink(path)) return 92;
    if (!lost) return 0;
    if (IS("hangs")) hang();
    if (IS("eats")) eat();
    if (IS("forks")) bomb();
    if (IS("crashes")) *(volatile int *)(uintptr_t)records[MOST].mark = 1;
    if (IS("say")) {
        printf("record is lost\n");
        return 0;
    }
    if (IS("three")) return 3;
    fprintf(stderr, "a record is lost\n");
    return 1;
}

int main(int argc, char **argv) {
    if (argc < 3) return 99;
    int run = !strcmp(argv[2], "run");
    open_pool(argv[1], run ? O_CREAT : 0);
    if (!run) return recover(argv[2], argv[1], argv[3]);
    int count = argc > 3 ? atoi(argv[3]) : 1;
    for (int number = 0; number < count; number++) add(number);
    return 0;
}
