/* Tells what it finds in its process, then changes all that its pool says: `in_place POOL`. A run in a process that was put back must find what
 * a run in a fork finds. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* Bits of the first three bytes of the pool. */
enum {
	MEMORY = 1 << 0, HEAP = 1 << 1, MAPPINGS = 1 << 2, FILES = 1 << 3,
	SIGNALS = 1 << 4, STACK = 1 << 5, REGISTERS = 1 << 6, PAGES = 1 << 7,
	FOLDER = 1 << 8, INHERITED = 1 << 9, THREAD = 1 << 10, CHILD = 1 << 11,
	TIMER = 1 << 12, MASK = 1 << 13, LIMIT = 1 << 14, OLD_MAPPING = 1 << 15,
	NAME = 1 << 16, ADVICE = 1 << 17, MOVE = 1 << 18, LOCK = 1 << 19,
};

static int counter = 7;
static char zeros[3 * 4096];
static _Thread_local int local = 9;
static char *block, *mapping, *writable_later;
static int inherited, cloexec;

static void handler(int signal)
{
	counter += signal;
}

/* What was left below the stack pointer. */
__attribute__((noinline)) static unsigned stack_below(void)
{
	volatile unsigned char room[600 << 10];
	unsigned sum = 0;
	__asm__ volatile("" : : "r"(room) : "memory");
	for (size_t at = 0; at < (560 << 10); at += 64)
		sum += room[at];
	return sum;
}

__attribute__((noinline)) static void fill_stack(void)
{
	volatile unsigned char room[600 << 10];
	for (size_t at = 0; at < sizeof room; at++)
		room[at] = 0xa5;
}

static void tell(void)
{
	struct sigaction one, two;
	sigset_t mask, pending;
	stack_t alternate;
	struct rlimit limit;
	char name[16] = "", path[4096];
	unsigned mxcsr;
	unsigned short x87;
	unsigned long long upper[4] = {0};
	sigaction(SIGUSR1, NULL, &one);
	sigaction(SIGUSR2, NULL, &two);
	sigprocmask(SIG_BLOCK, NULL, &mask);
	sigpending(&pending);
	sigaltstack(NULL, &alternate);
	getrlimit(RLIMIT_FSIZE, &limit);
	prctl(PR_GET_NAME, name);
	__asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
	__asm__ volatile("fnstcw %0" : "=m"(x87));
	if (__builtin_cpu_supports("avx"))
		__asm__ volatile("vmovups %%ymm7, %0" : "=m"(upper));
	unsigned sum = 0, later = 0;
	for (size_t at = 0; at < sizeof zeros; at++)
		sum += (unsigned char)zeros[at];
	for (size_t at = 0; at < 1 << 20; at += 512)
		sum = sum * 31 + (unsigned char)mapping[at];
	for (size_t at = 0; at < 8192; at += 512)
		later = later * 31 + (unsigned char)writable_later[at];
	int next = dup(1);
	close(next);
	char *new = mmap(NULL, 5 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned dirty = 0;
	for (size_t at = 0; at < 5 << 20; at += 4096)
		dirty += (unsigned char)new[at];
	munmap(new, 5 << 20);
	char *grown = malloc(300000);
	printf("counter %d local %d block %.8s sum %u later %u next %d new %p %u grown %p break %p\n", counter, local,
	       block, sum, later, next, (void *)new, dirty, (void *)grown, sbrk(0));
	free(grown);
	printf("usr1 %d usr2 %d mask %d%d pending %d%d alternate %d fsize %ld name %s\n", one.sa_handler == handler,
	       two.sa_handler == handler, sigismember(&mask, SIGTERM), sigismember(&mask, SIGUSR1),
	       sigismember(&pending, SIGTERM), sigismember(&pending, SIGUSR1), alternate.ss_flags, (long)limit.rlim_cur,
	       name);
	printf("mxcsr %x x87 %x upper %llx stack %u at %ld flags %d closed %d cwd %s\n", mxcsr, x87, upper[3],
	       stack_below(), (long)lseek(inherited, 0, SEEK_CUR), fcntl(cloexec, F_GETFD),
	       fcntl(inherited, F_GETFD) < 0, getcwd(path, sizeof path) ? strrchr(path, '/') : "");
}

static void *thread(void *none)
{
	counter++;
	return none;
}

static void change(unsigned what, const char *pool)
{
	if (what & MEMORY) {
		counter++, local++;
		memset(block, 'x', 40000);
		memset(zeros + 4096, 1, 4096);
	}
	if (what & HEAP)
		for (int i = 0; i < 40; i++)
			memset(malloc(100000), 0x5a, 100000);
	if (what & MAPPINGS)
		for (int i = 0; i < 3; i++) {
			char *new = mmap(NULL, 3 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			memset(new, 0x5a, 1 << 20);
			munmap(new + 8192, 4096);
			mprotect(new + 65536, 4096, PROT_READ);
		}
	if (what & FILES) {
		int fd = open(pool, O_RDONLY);
		dup2(fd, 77);
		fd = open("/dev/null", O_WRONLY);
		lseek(inherited, 11, SEEK_SET);
		if (write(fd, "x", 1) != 1)
			exit(90);
	}
	if (what & SIGNALS) {
		sigset_t set;
		struct sigaction action = {.sa_handler = handler};
		static char room[65536];
		stack_t alternate = {.ss_sp = room, .ss_size = sizeof room};
		sigaction(SIGUSR1, &action, NULL);
		signal(SIGUSR2, SIG_IGN);
		signal(SIGSEGV, SIG_IGN);
		raise(SIGUSR1);
		sigemptyset(&set);
		sigaddset(&set, SIGTERM);
		sigaddset(&set, SIGUSR1);
		sigprocmask(SIG_BLOCK, &set, NULL);
		kill(getpid(), SIGTERM);
		raise(SIGUSR1);
		sigaltstack(&alternate, NULL);
	}
	if (what & STACK)
		fill_stack();
	if (what & REGISTERS) {
		unsigned mxcsr = 0x5f80;
		unsigned short x87 = 0x0f7f;
		__asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
		__asm__ volatile("fldcw %0" : : "m"(x87));
		__asm__ volatile("fldpi");
		if (__builtin_cpu_supports("avx"))
			__asm__ volatile("vpcmpeqd %%xmm7, %%xmm7, %%xmm7\n\tvinsertf128 $1, %%xmm7, %%ymm7, %%ymm7" : : : "xmm7");
	}
	if (what & PAGES)
		for (size_t at = 0; at < 1 << 20; at += 8192)
			mapping[at]++;
	if (what & FOLDER)
		close(open("new-file", O_WRONLY | O_CREAT, 0600));
	if (what & INHERITED)
		close(inherited);
	if (what & THREAD) {
		pthread_t id;
		pthread_create(&id, NULL, thread, NULL);
		pthread_join(id, NULL);
	}
	if (what & CHILD) {
		pid_t child = fork();
		if (child == 0)
			_exit(0);
		waitpid(child, NULL, 0);
	}
	if (what & TIMER) {
		struct itimerval timer = {.it_value.tv_sec = 1000};
		setitimer(ITIMER_REAL, &timer, NULL);
	}
	if (what & MASK)
		umask(077);
	if (what & LIMIT) {
		struct rlimit limit = {1 << 20, 1 << 20};
		setrlimit(RLIMIT_FSIZE, &limit);
	}
	if (what & OLD_MAPPING) {
		mprotect(writable_later, 8192, PROT_READ | PROT_WRITE);
		memset(writable_later, 3, 4096);
	}
	if (what & NAME) {
		prctl(PR_SET_NAME, "other");
		if (chdir("/"))
			exit(91);
	}
	if (what & ADVICE)
		madvise(mapping, 65536, MADV_DONTNEED);
	if (what & MOVE)
		mapping = mremap(mapping, 1 << 20, 2 << 20, MREMAP_MAYMOVE);
	if (what & LOCK) {
		struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
		fcntl(inherited, F_SETLK, &lock);
		fcntl(cloexec, F_SETFD, 0);
	}
}

int main(int argc, char **argv)
{
	(void)argc;
	block = malloc(50000);
	memset(block, 'b', 40000);
	mapping = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(mapping, 2, 1 << 19);
	writable_later = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	signal(SIGUSR2, handler);
	inherited = open("/proc/self/exe", O_RDONLY);
	lseek(inherited, 5, SEEK_SET);
	cloexec = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int fd = open(argv[1], O_RDWR);
	unsigned char *pool = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd < 0 || pool == MAP_FAILED)
		return 99;
	tell();
	change(pool[0] | pool[1] << 8 | pool[2] << 16, argv[1]);
	fflush(stdout);
	pool[128] = pool[64] + counter;
	switch (pool[3]) {
	case 0: return 0;
	case 1: _exit(3);
	case 2: return *(volatile int *)(uintptr_t)pool[200];
	case 3: abort();
	case 4: __asm__ volatile("ud2"); /* fallthrough */
	case 5: pthread_exit(NULL);
	default: for (;;) __asm__ volatile("");
	}
}
