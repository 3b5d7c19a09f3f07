// Cells in a pool that take operations on standard input, read in the way that the second argument names:
//   held GATE        by the C library; waits before the first as long as the file GATE is there, and notes each operation in GATE.log;
//                    is killed there if GATE.kill is there
//   fragile          dies when it is asked for what was never put
//   status           ends with exit code 3 if it was
//   renames          gives its pool another name in every operation; says first whether it was closed the last time
//   WAY              large pieces, by the descriptor or call that `ways` lists; what comes in one piece is answered line by line
// With -DBUG what it has put is not in PM.
#define _GNU_SOURCE
#include <fcntl.h>
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CELLS 16

// Each has a page of its own.
struct cell {
    volatile uint64_t value;
    char pad[4088];
};
static struct cell *cells;

static void open_pool(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *cells * CELLS)) exit(91);
    cells = mmap(0, sizeof *cells * CELLS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (cells == MAP_FAILED) exit(92);
}

static const char *pool, *way;
static int is(const char *name) { return !strcmp(way, name); }

// Gives the pool another name, for a while.
static void rename_pool(void) {
    char other[4096];
    snprintf(other, sizeof other, "%s.other", pool);
    // A crash may have left it there.
    unlink(other);
    if (link(pool, other) || unlink(other)) exit(90);
}

static int missed;

// Cannot live without a value, or remembers that there was none.
__attribute__((noinline)) static uint64_t look_up(unsigned long number) {
    uint64_t value = cells[number % CELLS].value;
    if (!value && is("fragile")) *(volatile int *)8 = 0;
    missed |= !value;
    return value;
}

static void operate(const char *line) {
    unsigned long number = 0, value = 0;
    char answer[64];
    if (is("renames")) rename_pool();
    if (sscanf(line, "put %lu %lu", &number, &value) == 2) {
        cells[number % CELLS].value = value;
#ifndef BUG
        _mm_clflush((void *)&cells[number % CELLS]);
        _mm_sfence();
#endif
        snprintf(answer, sizeof answer, "ok\n");
    } else if (sscanf(line, "get %lu", &number) == 1) {
        snprintf(answer, sizeof answer, "%lu\n", (unsigned long)look_up(number));
    } else {
        snprintf(answer, sizeof answer, "what?\n");
    }
    if (write(1, answer, strlen(answer)) < 0) exit(93);
}

// Says whether it was closed the last time.
static void note_open(int is_open) {
    if (is_open && cells[CELLS - 1].value && write(1, "not closed\n", 11) < 0) exit(89);
    cells[CELLS - 1].value = (uint64_t)is_open;
    _mm_clflush((void *)&cells[CELLS - 1]);
    _mm_sfence();
}

static int held(const char *gate) {
    char reached[4096], log[4096], line[256];
    snprintf(reached, sizeof reached, "%s.reached", gate);
    snprintf(log, sizeof log, "%s.log", gate);
    if (!access(gate, F_OK)) close(open(reached, O_CREAT | O_WRONLY, 0600));
    while (!access(gate, F_OK)) usleep(1000);
    snprintf(reached, sizeof reached, "%s.kill", gate);
    if (!access(reached, F_OK)) kill(getpid(), SIGKILL);
    while (fgets(line, sizeof line, stdin)) {
        int fd = open(log, O_CREAT | O_WRONLY | O_APPEND, 0600);
        if (fd < 0 || write(fd, line, strlen(line)) < 0) return 94;
        close(fd);
        operate(line);
    }
    return 0;
}

static int input(void) {
    if (is("dup")) return dup(0);
    if (is("/dev/stdin") || is("/proc/self/fd/0")) return open(way, O_RDONLY);
    if (is("closed")) close(0);
    if (is("reopened")) {
        int kept = dup(0);
        close(0);
        if (open("/dev/null", O_RDONLY) != 0 || dup2(kept, 0) != 0) exit(95);
        close(kept);
    }
    if (is("nonblocking")) fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_NONBLOCK);
    return 0;
}

static void wait_for(int fd) {
    if (is("poll")) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (poll(&ready, 1, -1) != 1) exit(96);
    } else if (is("select")) {
        fd_set ready;
        FD_ZERO(&ready);
        FD_SET(fd, &ready);
        if (select(fd + 1, &ready, 0, 0, 0) != 1) exit(96);
    } else if (is("epoll")) {
        struct epoll_event event = {.events = EPOLLIN};
        int many = epoll_create1(0);
        if (epoll_ctl(many, EPOLL_CTL_ADD, fd, &event) || epoll_wait(many, &event, 1, -1) != 1) exit(96);
        close(many);
    }
}

static ssize_t piece(int fd, char *to, size_t room) {
    static off_t offset;
    struct iovec vectors[2] = {{.iov_base = to, .iov_len = 3}, {.iov_base = to + 3, .iov_len = room - 3}};
    if (is("bytes")) return read(fd, to, 1);
    if (is("readv")) return readv(fd, vectors, 2);
    if (is("preadv2")) return preadv2(fd, vectors, 2, -1, 0);
    if (is("recv")) return recv(fd, to, room, 0);
    if (is("pread")) {
        ssize_t got = pread(fd, to, room, offset);
        offset += got > 0 ? got : 0;
        return got;
    }
    if (is("mmap")) {
        struct stat stat;
        if (fstat(fd, &stat) || offset) return 0;
        offset = lseek(fd, 0, SEEK_END);
        const char *text = mmap(0, offset, PROT_READ, MAP_PRIVATE, fd, 0);
        if (text == MAP_FAILED) exit(97);
        memcpy(to, text, offset);
        return offset;
    }
    return read(fd, to, room);
}

static int ways(void) {
    char text[1 << 16];
    size_t len = 0;
    int fd = input(), rewound = 0;
    for (;;) {
        wait_for(fd);
        ssize_t got = piece(fd, text + len, sizeof text - len - 1);
        if (!got && is("twice") && !rewound++ && !lseek(fd, 0, SEEK_SET)) continue;
        if (got <= 0) return 0;
        len += (size_t)got;
        text[len] = 0;
        for (char *end; (end = strchr(text, '\n')); len = strlen(text)) {
            *end = 0;
            operate(text);
            memmove(text, end + 1, strlen(end + 1) + 1);
        }
    }
}

// A process for each line, or one for all of them.
static int children(int all) {
    for (int status = 0; !status;) {
        pid_t child = fork();
        if (!child) {
            char line[256];
            size_t len = 0;
            if (all) exit(ways() || 1);
            while (len < sizeof line - 1 && read(0, line + len, 1) == 1 && line[len] != '\n') len++;
            if (!len) exit(1);
            line[len] = 0;
            operate(line);
            exit(0);
        }
        if (waitpid(child, &status, 0) != child) return 94;
        if (status && (!WIFEXITED(status) || WEXITSTATUS(status) != 1)) return 94;
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 3) return 99;
    pool = argv[1];
    way = argv[2];
    open_pool(pool);
    if (is("held")) return held(argv[3]);
    if (is("child") || is("children")) return children(is("child"));
    if (is("renames")) note_open(1);
    int failed = ways();
    if (is("renames")) note_open(0);
    return is("status") && missed ? 3 : failed;
}
