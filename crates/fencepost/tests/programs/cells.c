// A few cells in a pool that take operations: put CELL VALUE, get CELL, sum. How they come is the second argument:
//   stdin            line by line
//   do WORD...       one, in the arguments
//   serve PLACE      at a TCP port (a number) or a Unix socket (a path)
//   file OPS [start N] [skip N] [answers FILE]   all of a file's lines
// and the rest are ways to misbehave on standard input. With -DBUG a put acknowledges a value that is not in PM.
#include <arpa/inet.h>
#include <fcntl.h>
#include <immintrin.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#ifdef MARKS
#include "fencepost.h"
#else
#define FENCEPOST_OPERATION_BEGIN() ((void)0)
#define FENCEPOST_OPERATION_END() ((void)0)
#endif

#define CELLS 16
#define LINE 64

struct cell {
    volatile uint64_t used;
    char pad[LINE - 8];
    volatile uint64_t value;
    char more[LINE - 8];
};
static struct cell *cells;

static void persist(volatile void *at) {
    _mm_clflush((void *)at);
    _mm_sfence();
}

static void open_pool(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *cells * CELLS)) exit(91);
    cells = mmap(0, sizeof *cells * CELLS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (cells == MAP_FAILED) exit(92);
}

static void put(struct cell *cell, uint64_t value) {
    cell->value = value;
#ifdef BUG
    if (cell->used)
#endif
    persist(&cell->value);
    cell->used = 1;
    persist(&cell->used);
}

__attribute__((noinline)) void operate(char *line, char *answer, size_t room) {
    unsigned long number = 0, value = 0;
    if (sscanf(line, "put %lu %lu", &number, &value) == 2) {
        put(&cells[number % CELLS], value);
        snprintf(answer, room, "ok\n");
    } else if (sscanf(line, "get %lu", &number) == 1) {
        struct cell *cell = &cells[number % CELLS];
        if (cell->used) snprintf(answer, room, "%lu\n", (unsigned long)cell->value);
        else snprintf(answer, room, "none\n");
    } else if (!strncmp(line, "sum", 3)) {
        unsigned long sum = 0;
        for (int i = 0; i < CELLS; i++) sum += cells[i].used ? cells[i].value : 0;
        snprintf(answer, room, "%lu\n", sum);
    } else {
        snprintf(answer, room, "what?\n");
    }
}

__attribute__((noinline)) void begin_operation(void) { __asm__ volatile(""); }
__attribute__((noinline)) void end_operation(void) { __asm__ volatile(""); }

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

struct part {
    pthread_t thread;
    char *line, answer[256];
};

static void *one_part(void *argument) {
    struct part *part = argument;
    pthread_mutex_lock(&one_at_a_time);
    operate(part->line, part->answer, sizeof part->answer);
    pthread_mutex_unlock(&one_at_a_time);
    return 0;
}

// A line with `||` in it: a thread for each part.
static void window(char *line) {
    struct part parts[8];
    int count = 0;
    for (char *at = line; at && count < 8; count++) {
        parts[count].line = at;
        at = strstr(at, "||");
        if (at) *at = 0, at += 3;
        pthread_create(&parts[count].thread, 0, one_part, &parts[count]);
    }
    for (int i = 0; i < count; i++) pthread_join(parts[i].thread, 0);
    for (int i = 0; i < count; i++) fputs(parts[i].answer, stdout);
}

static int from_stdin(const char *how) {
    char line[256], answer[256], held[256] = "";
    static char all[1 << 16];
    int count = 0;
    if (!strcmp(how, "late")) setvbuf(stdout, all, _IOFBF, sizeof all);
    if (!strcmp(how, "deaf")) {
        snprintf(line, sizeof line, "put 1 1");
        operate(line, answer, sizeof answer);
        return 0;
    }
    while (fgets(line, sizeof line, stdin)) {
        if (strstr(line, "||")) {
            window(line);
            continue;
        }
        operate(line, answer, sizeof answer);
        count++;
        if (!strcmp(how, "dies") && count == 3) abort();
        if (!strcmp(how, "fails") && count == 3) return 7;
        if (!strcmp(how, "stops") && count == 3) return 0;
        if (!strcmp(how, "mute")) continue;
        if (!strcmp(how, "varies") && count == 2) {
            struct timespec now;
            int fd = open("/proc/uptime", O_RDONLY);
            clock_gettime(CLOCK_MONOTONIC, &now);
            char text[64] = "";
            if (fd < 0 || read(fd, text, 63) <= 0) return 93;
            printf("%ld %s", (long)getpid() + now.tv_nsec, text);
            continue;
        }
        if (!strcmp(how, "ahead")) {
            // Answers an operation when it has read the next.
            fputs(held, stdout);
            strcpy(held, answer);
            continue;
        }
        fputs(answer, stdout);
        if (strcmp(how, "late")) fflush(stdout);
    }
    fputs(held, stdout);
    return 0;
}

static int once(int count, char **words) {
    char line[256] = "", answer[256];
    for (int i = 0; i < count; i++) {
        strcat(line, words[i]);
        strcat(line, " ");
    }
    operate(line, answer, sizeof answer);
    fputs(answer, stdout);
    return 0;
}

static int serve(const char *place) {
    int fd;
    if (strchr(place, '/')) {
        struct sockaddr_un unix_address = {.sun_family = AF_UNIX};
        strncpy(unix_address.sun_path, place, sizeof unix_address.sun_path - 1);
        fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (bind(fd, (struct sockaddr *)&unix_address, sizeof unix_address)) return 94;
    } else {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(place))};
        int on = 1;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        fd = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (bind(fd, (struct sockaddr *)&address, sizeof address)) return 94;
    }
    if (listen(fd, 8)) return 95;
    for (;;) {
        int client = accept(fd, 0, 0);
        if (client < 0) return 96;
        FILE *in = fdopen(client, "r"), *out = fdopen(dup(client), "w");
        char line[256], answer[256];
        while (fgets(line, sizeof line, in)) {
            operate(line, answer, sizeof answer);
            fputs(answer, out);
            fflush(out);
        }
        fclose(in);
        fclose(out);
    }
}

static int from_file(int count, char **words) {
    FILE *in = fopen(words[0], "r"), *out = stdout;
    char line[256], answer[256];
    int start = 0, skip = -1;
    for (int i = 1; i + 1 < count; i += 2) {
        if (!strcmp(words[i], "start")) start = atoi(words[i + 1]);
        if (!strcmp(words[i], "skip")) skip = atoi(words[i + 1]);
        if (!strcmp(words[i], "answers")) out = fopen(words[i + 1], "w");
    }
    if (!in || !out) return 97;
    for (int number = 0; fgets(line, sizeof line, in); number++) {
        if (number < start || number == skip) continue;
        begin_operation();
        FENCEPOST_OPERATION_BEGIN();
        operate(line, answer, sizeof answer);
        fputs(answer, out);
        fflush(out);
        FENCEPOST_OPERATION_END();
        end_operation();
    }
    return 0;
}

// A byte more in this file for every start.
static void count_start(const char *file) {
    int fd = file ? open(file, O_WRONLY | O_APPEND) : -1;
    if (fd >= 0 && write(fd, ".", 1) != 1) exit(90);
    if (fd >= 0) close(fd);
}

int main(int argc, char **argv) {
    if (argc < 3) return 99;
    count_start(getenv("CELLS_STARTS"));
    const char *how = argv[2];
    open_pool(argv[1]);
    if (!strcmp(how, "do")) return once(argc - 3, argv + 3);
    if (!strcmp(how, "serve")) return serve(argv[3]);
    if (!strcmp(how, "file")) return from_file(argc - 3, argv + 3);
    return from_stdin(how);
}
