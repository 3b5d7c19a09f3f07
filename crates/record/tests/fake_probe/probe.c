// A stand-in for the probe: speaks the wire protocol, but plays a script that the test names in argv[1] instead of
// running a program. It shows that the host does its part whatever the engine does.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CONTROL = 1 << 20, RING = 1 << 20 };
enum { STORE = 1, FLUSH = 3, MAP = 6, PROCESS_START = 16, PROCESS_EXIT = 17, SITE = 32, POOL = 35, MESSAGE = 36, PLEASE = 37 };

// The head of `wire::control::Control`, up to where this program looks.
struct control {
    uint32_t version, options;
    uint64_t cache_bytes;
    _Atomic uint64_t head;
    uint64_t pad0[6];
    _Atomic uint64_t tail;
    uint64_t pad1[7];
    _Atomic uint32_t doorbell, host_sleeps, probe_sleeps, tail_moved, answered, request;
};

struct header {
    uint8_t kind, aux;
    uint16_t thread;
    uint32_t size, site, context;
    uint64_t address;
};

static struct control *control;
static char *ring;
static int sock;

static void futex(_Atomic uint32_t *word, int op, uint32_t value) { syscall(SYS_futex, word, op, value, NULL); }

static void bell(void) {
    atomic_fetch_add(&control->doorbell, 1);
    if (atomic_load(&control->host_sleeps)) futex(&control->doorbell, FUTEX_WAKE, 1);
}

static void emit(int kind, int aux, int thread, int site, int context, uint64_t address, const void *data, uint32_t size) {
    uint64_t need = sizeof(struct header) + (size + 7) / 8 * 8;
    uint64_t head = atomic_load(&control->head);
    while (head + need - atomic_load(&control->tail) > RING) {
        uint32_t moved = atomic_load(&control->tail_moved);
        atomic_store(&control->probe_sleeps, 1);
        if (head + need - atomic_load(&control->tail) > RING) {
            bell();
            futex(&control->tail_moved, FUTEX_WAIT, moved);
        }
        atomic_store(&control->probe_sleeps, 0);
    }
    struct header h = {kind, aux, thread, size, site, context, address};
    memcpy(ring + head % RING, &h, sizeof h);
    memcpy(ring + head % RING + sizeof h, data, size);
    atomic_store_explicit(&control->head, head + need, memory_order_release);
}

static void please(void) {
    uint32_t number = atomic_fetch_add(&control->request, 1) + 1;
    emit(PLEASE, 0, 0, 0, 0, number, NULL, 0);
    bell();
    for (;;) {
        uint32_t answered = atomic_load(&control->answered);
        if ((int32_t)(answered - number) >= 0) return;
        futex(&control->answered, FUTEX_WAIT, answered);
    }
}

static void start(void) {
    int p = atoi(strrchr((char *)getauxval(AT_EXECFN), '/') + 1);
    sock = p - 2;
    control = mmap(NULL, CONTROL, PROT_READ | PROT_WRITE, MAP_SHARED, p - 1, 0);
    ring = mmap(NULL, 2 * RING, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 2; i++)
        mmap(ring + i * RING, RING, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, p - 1, CONTROL);
    if (control == MAP_FAILED || control->version != WIRE_VERSION) _exit(99);
    uint32_t process[3] = {0, ~0u, getpid()};
    emit(PROCESS_START, 0, 0, 0, 0, 0, process, sizeof process);
}

static void send_descriptor(uint32_t number, int fd) {
    char buffer[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec data = {&number, sizeof number};
    struct msghdr m = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = buffer, .msg_controllen = sizeof buffer};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    if (sendmsg(sock, &m, 0) < 0) _exit(98);
}

// A pool of one page, mapped at 0x10000.
static int pool(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 4096)) _exit(97);
    char payload[24 + 4096];
    struct stat s;
    fstat(fd, &s);
    uint64_t numbers[3] = {s.st_dev, s.st_ino, 4096};
    memcpy(payload, numbers, 24);
    memcpy(payload + 24, path, strlen(path));
    send_descriptor(0, fd);
    emit(POOL, 0, 0, 0, 0, 0, payload, 24 + strlen(path));
    please();
    uint64_t map[3] = {0, 0, 4096};
    emit(MAP, 0, 0, 0, 0, 0x10000, map, sizeof map);
    unsigned char clwb[5] = {0x66, 0x0f, 0xae, 0x30}, mov[3] = {0x48, 0x89, 0x07};
    emit(SITE, 0, 0, 1, 0, 0x401000, mov, 3);
    emit(SITE, 0, 0, 2, 0, 0x401003, clwb, 4);
    return fd;
}

static void store(int fd, uint64_t offset, uint64_t value) {
    if (fd >= 0 && pwrite(fd, &value, 8, offset) != 8) _exit(96);
    emit(STORE, 0, 0, 1, 0, 0x10000 + offset, &value, 8);
}

static void leave(int code) {
    emit(PROCESS_EXIT, 0, 0, 0, 0, code, NULL, 0);
    _exit(code);
}

int main(int argc, char **argv) {
    start();
    const char *script = argv[1], *path = argc > 2 ? argv[2] : "";
    if (!strcmp(script, "exit")) leave(7);
    if (!strcmp(script, "die")) {
        pool(path);
        raise(SIGKILL);
    }
    if (!strcmp(script, "store")) {
        int fd = pool(path);
        store(fd, 64, 0x1122334455667788);
        emit(FLUSH, 2, 0, 2, 0, 0x10040, NULL, 0);
        emit(FLUSH, 2, 0, 2, 0, 0x20000, NULL, 0);
        leave(0);
    }
    if (!strcmp(script, "many")) {
        int fd = pool(path);
        long n = atol(argv[3]);
        for (long i = 0; i < n; i++) emit(STORE, 0, 0, 1, 0, 0x10000 + i * 8 % 4096, &i, 8);
        (void)fd;
        leave(0);
    }
    if (!strcmp(script, "refuse")) {
        const char *text = "this program holds 32-bit code";
        emit(MESSAGE, 2, 0, 0, 0, 0, text, strlen(text));
        bell();
        for (;;) pause();
    }
    if (!strcmp(script, "damage")) {
        emit(77, 0, 0, 0, 0, 0, NULL, 0);
        bell();
        for (;;) pause();
    }
    if (!strcmp(script, "orphan")) {
        // A grandchild in its own session: nothing but the supervisor can end it.
        if (!fork()) {
            setsid();
            if (fork()) _exit(0);
            int fd = open(path, O_RDWR | O_CREAT, 0600);
            struct flock lock = {.l_type = F_WRLCK};
            fcntl(fd, F_SETLK, &lock);
            for (;;) pause();
        }
        wait(NULL);
        for (;;) pause();
    }
    return 95;
}
