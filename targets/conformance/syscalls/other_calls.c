//@ build: c
//@ cflags: -O1
//@ pool: varies
//@ compare: lengths
// System calls that each_call.c does not make: many need rights, devices or kernels that a test cannot count on. Each is made twice, with its buffers in
// ordinary memory and in the pool: result, error and buffers must be the same. Nothing here changes the machine. Also run with --loads
// (other_calls_loads.c) and as a recovery (crates/recover/tests).
#include "pm.h"
#include <linux/aio_abi.h>
#include <sched.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define SIZE (256 << 10)
#define MOST 4096
static char *pm, *next;

static void *room(size_t len)
{
	char *here = next;
	next += (len + 63) / 64 * 64;
	CHECK(next <= pm + SIZE);
	return here;
}
static void *in_pm(const void *from, size_t len) { return memcpy(room(len), from, len); }
#define PM(value) ((void *)in_pm(&(value), sizeof(value)))

/* An argument: a number, or bytes that the call gets a pointer to. */
struct arg {
	long value;
	const void *bytes;
	size_t len;
};
#define N(number) { .value = (long)(number) }
#define BYTES(from, length) { .bytes = (from), .len = (length) }
#define TEXT(text) BYTES(text, sizeof(text))
#define THE(object) BYTES(&(object), sizeof(object))
static const char zeros[MOST];
#define ROOM(length) BYTES(zeros, length)

/* What a call gave. */
struct outcome {
	long result;
	int error;
};

static struct outcome made(long number, const struct arg *arg, char *const *at)
{
	long v[6];
	for (int i = 0; i < 6; i++)
		v[i] = at[i] ? (long)at[i] : arg[i].value;
	errno = 0;
	long result = syscall(number, v[0], v[1], v[2], v[3], v[4], v[5]);
	return (struct outcome){ result, result == -1 ? errno : 0 };
}

enum result { SAME, DESCRIPTOR };

static void alike(const char *name, long number, enum result kind, const struct arg *arg)
{
	char *plain[6] = { 0 }, *pool[6] = { 0 };
	for (int i = 0; i < 6; i++)
		if (arg[i].bytes) {
			plain[i] = memcpy(malloc(arg[i].len), arg[i].bytes, arg[i].len);
			pool[i] = in_pm(arg[i].bytes, arg[i].len);
		}
	struct outcome one = made(number, arg, plain);
	if (kind == DESCRIPTOR && one.result >= 0)
		close((int)one.result);
	struct outcome other = made(number, arg, pool);
	if (kind == DESCRIPTOR && other.result >= 0)
		close((int)other.result);
	if (one.result != other.result || one.error != other.error) {
		fprintf(stderr, "%s: %ld (error %d) from a pool, %ld (error %d) from memory\n", name, other.result, other.error, one.result, one.error);
		_exit(1);
	}
	for (int i = 0; i < 6; i++)
		if (plain[i] && memcmp(plain[i], pool[i], arg[i].len)) {
			fprintf(stderr, "%s: argument %d is not the same in a pool as in memory\n", name, i);
			_exit(1);
		}
	for (int i = 0; i < 6; i++)
		free(plain[i]);
}
#define ALIKE(name, number, ...) alike(name, number, SAME, (struct arg[6]){ __VA_ARGS__ })
#define OPENS(name, number, ...) alike(name, number, DESCRIPTOR, (struct arg[6]){ __VA_ARGS__ })
#define NOWHERE TEXT("/nonexistent/place")

static void of_the_machine(void)
{
	struct { unsigned long attr_set, attr_clr, propagation, userns; } attr = { 0 };
	struct { long sec, usec; } never = { 0, 2000000 };
	ALIKE("acct", 163, NOWHERE);
	ALIKE("chroot", 161, NOWHERE);
	ALIKE("clock_settime", 227, N(1), THE(never));
	ALIKE("settimeofday", 164, THE(never), N(0));
	ALIKE("mount", 165, TEXT("none"), NOWHERE, TEXT("tmpfs"), N(0), TEXT(""));
	ALIKE("umount2", 166, NOWHERE, N(0));
	ALIKE("pivot_root", 155, NOWHERE, NOWHERE);
	ALIKE("swapon", 167, NOWHERE, N(0));
	ALIKE("swapoff", 168, NOWHERE);
	ALIKE("mount_setattr", 442, N(AT_FDCWD), NOWHERE, N(0), THE(attr), N(sizeof attr));
	ALIKE("move_mount", 429, N(AT_FDCWD), NOWHERE, N(AT_FDCWD), NOWHERE, N(0));
	ALIKE("open_tree", 428, N(AT_FDCWD), NOWHERE, N(0));
	ALIKE("open_tree_attr", 467, N(AT_FDCWD), NOWHERE, N(0), THE(attr), N(sizeof attr));
	ALIKE("fsopen", 430, TEXT("no-such-file-system"), N(0));
	ALIKE("fspick", 433, N(AT_FDCWD), NOWHERE, N(0));
	ALIKE("fsconfig", 431, N(-1), N(1), TEXT("key"), TEXT("value"), N(0));
	ALIKE("quotactl", 179, N(0x80000700), NOWHERE, N(0), ROOM(64));
	ALIKE("quotactl_fd", 443, N(-1), N(0x80000700), N(0), ROOM(64));
	ALIKE("delete_module", 176, TEXT("no-such-module"), N(O_NONBLOCK));
	ALIKE("init_module", 175, TEXT("no module"), N(10), TEXT(""));
	ALIKE("finit_module", 313, N(-1), TEXT(""), N(0));
	/* More segments than there can be; no such files. */
	ALIKE("kexec_load", 246, N(0), N(100000), ROOM(64), N(0));
	ALIKE("kexec_file_load", 320, N(-1), N(-1), N(5), TEXT("text"), N(0));
	/* A name that is too long. */
	ALIKE("sethostname", 170, ROOM(100), N(100));
	ALIKE("setdomainname", 171, ROOM(100), N(100));
	ALIKE("syslog", 103, N(99), ROOM(64), N(64));
	ALIKE("ustat", 136, N(0xfffff), ROOM(32));
	ALIKE("sysfs", 139, N(1), TEXT("proc"));
	ALIKE("bpf", 321, N(0xffff), ROOM(64), N(64));
	struct { unsigned type, size; char rest[128]; } event = { 0xffff, 136, { 0 } };
	ALIKE("perf_event_open", 298, THE(event), N(0), N(-1), N(-1), N(0));
	ALIKE("fanotify_mark", 301, N(-1), N(1), N(1), N(AT_FDCWD), TEXT("."));
	unsigned long rights = 1;
	OPENS("landlock_create_ruleset", 444, THE(rights), N(8), N(0));
	ALIKE("landlock_add_rule", 445, N(-1), N(1), ROOM(16), N(0));
	struct { unsigned size, spare; unsigned long id, param, ns; } mounts = { 24, 0, ~0UL, 0, 0 };
	ALIKE("listmount", 458, THE(mounts), ROOM(64), N(8), N(0));
	mounts.id = 1;
	ALIKE("statmount", 457, THE(mounts), ROOM(512), N(512), N(0));
	unsigned size = 512;
	ALIKE("lsm_get_self_attr", 459, N(100), ROOM(512), THE(size), N(0));
	ALIKE("lsm_set_self_attr", 460, N(999), ROOM(64), N(64), N(0));
	ALIKE("lsm_list_modules", 461, ROOM(512), THE(size), N(0));
}

/* Calls that no kernel of today has. */
static void of_the_past(void)
{
	ALIKE("_sysctl", 156, ROOM(64));
	ALIKE("create_module", 174, TEXT("m"), N(1));
	ALIKE("get_kernel_syms", 177, ROOM(64));
	ALIKE("query_module", 178, TEXT("m"), N(1), ROOM(64), N(64), ROOM(8));
	ALIKE("nfsservctl", 180, N(0), ROOM(64), ROOM(64));
	ALIKE("getpmsg", 181, N(-1), ROOM(64), ROOM(64), ROOM(8), ROOM(8));
	ALIKE("putpmsg", 182, N(-1), ROOM(64), ROOM(64), N(0), N(0));
	ALIKE("afs_syscall", 183, ROOM(64), N(0), N(0), N(0), N(0));
	ALIKE("tuxcall", 184, ROOM(64), N(0), N(0));
	ALIKE("security", 185, ROOM(64), N(0), N(0));
	ALIKE("vserver", 236, ROOM(64), N(0), N(0), N(0), N(0));
	ALIKE("epoll_ctl_old", 214, N(-1), N(1), N(0), ROOM(16));
	ALIKE("epoll_wait_old", 215, N(-1), ROOM(64), N(1), N(0));
	ALIKE("uselib", 134, NOWHERE);
	ALIKE("lookup_dcookie", 212, N(1), ROOM(64), N(64));
	ALIKE("get_thread_area", 211, ROOM(16));
	ALIKE("set_thread_area", 205, ROOM(16));
}

static void of_files(void)
{
	int fd = open("other.dat", O_RDWR | O_CREAT | O_TRUNC, 0600), dir = open(".", O_RDONLY | O_DIRECTORY), ends[2];
	CHECK(fd >= 0 && dir >= 0 && pipe(ends) == 0);
	ALIKE("fchmodat2", 452, N(AT_FDCWD), TEXT("other.dat"), N(0600), N(0));
	ALIKE("lsetxattr", 189, TEXT("other.dat"), TEXT("user.t"), TEXT("value"), N(5), N(0));
	ALIKE("fremovexattr", 199, N(fd), TEXT("user.none"));
	ALIKE("lremovexattr", 198, TEXT("other.dat"), TEXT("user.none"));
	struct { unsigned long value; unsigned size, flags; } value = { (unsigned long)zeros, 5, 0 };
	ALIKE("setxattrat", 463, N(AT_FDCWD), TEXT("other.dat"), N(0), TEXT("user.t"), THE(value), N(sizeof value));
	char *got = malloc(16);
	value.value = (unsigned long)got, value.size = 16;
	ALIKE("getxattrat", 464, N(AT_FDCWD), TEXT("other.dat"), N(0), TEXT("user.t"), THE(value), N(sizeof value));
	/* The value itself in the pool. */
	value.value = (unsigned long)in_pm("in a pool", 9), value.size = 9;
	if (syscall(463 /* setxattrat */, AT_FDCWD, "other.dat", 0, "user.t", PM(value), sizeof value) == 0) {
		char *back = room(16);
		value.value = (unsigned long)back, value.size = 16;
		CHECK(syscall(464 /* getxattrat */, AT_FDCWD, "other.dat", 0, "user.t", PM(value), sizeof value) == 9 && !memcmp(back, "in a pool", 9));
	}
	ALIKE("listxattrat", 465, N(AT_FDCWD), TEXT("other.dat"), N(0), ROOM(64), N(64));
	ALIKE("removexattrat", 466, N(AT_FDCWD), TEXT("other.dat"), N(0), TEXT("user.none"));
	ALIKE("file_getattr", 468, N(AT_FDCWD), TEXT("other.dat"), ROOM(24), N(24), N(0));
	ALIKE("file_setattr", 469, N(AT_FDCWD), NOWHERE, ROOM(24), N(24), N(0));
	struct { unsigned long off, len; } range = { 0, 4096 };
	ALIKE("cachestat", 451, N(fd), THE(range), ROOM(40), N(0));
	struct { unsigned bytes; int type; char handle[128]; } handle = { 128, 0, { 0 } };
	ALIKE("name_to_handle_at", 303, N(AT_FDCWD), TEXT("other.dat"), THE(handle), ROOM(4), N(0));
	int mount_id;
	if (syscall(SYS_name_to_handle_at, AT_FDCWD, "other.dat", &handle, &mount_id, 0) == 0)
		OPENS("open_by_handle_at", 304, N(dir), THE(handle), N(O_RDONLY));
	CHECK(write(fd, "from a file", 11) == 11);
	long at = 5, *offset = PM(at);
	CHECK(syscall(SYS_splice, fd, offset, ends[1], 0, 6L, 0) == 6 && *offset == 11);
	char read_back[6];
	CHECK(read(ends[0], read_back, 6) == 6 && !memcmp(read_back, "a file", 6));
	unsigned long usr1 = 1UL << (SIGUSR1 - 1);
	OPENS("signalfd", 282, N(-1), THE(usr1), N(8));
	ALIKE("mq_notify", 244, N(-1), ROOM(64));
	close(fd), close(dir), close(ends[0]), close(ends[1]), unlink("other.dat");
}

static volatile int heard;
static void hear(int signal) { heard = signal; }

static void of_processes(void)
{
	unsigned long fs_base = 0;
	ALIKE("arch_prctl", 158, N(0x1003), THE(fs_base));
	unsigned header[2] = { 0x20080522, 0 }, caps[6];
	CHECK(syscall(SYS_capget, header, caps) == 0);
	ALIKE("capset", 126, THE(header), THE(caps));
	int groups[64], count = (int)syscall(SYS_getgroups, 64, groups);
	CHECK(count >= 0);
	ALIKE("setgroups", 116, N(count), THE(groups));
	struct { unsigned size, policy; unsigned long flags; char rest[40]; } attr = { 56, 0, 0, { 0 } };
	int priority = 0;
	ALIKE("sched_setattr", 314, N(0), THE(attr), N(0));
	ALIKE("sched_setscheduler", 144, N(0), N(0), THE(priority));
	unsigned action = 0x7fff0000;
	ALIKE("seccomp", 317, N(2), N(0), THE(action));
	ALIKE("ptrace", 101, N(12), N(-1), N(0), ROOM(256));
	ALIKE("add_key", 248, TEXT("no-such-type"), TEXT("d"), TEXT("payload"), N(7), N(-2));
	ALIKE("request_key", 249, TEXT("no-such-type"), TEXT("d"), N(0), N(-2));
	ALIKE("keyctl", 250, N(6), N(-2), ROOM(128), N(128), N(0));
	int shared = shmget(IPC_PRIVATE, 4096, 0600), set = semget(IPC_PRIVATE, 1, 0600);
	if (shared >= 0) {
		ALIKE("shmctl", 31, N(shared), N(IPC_STAT), ROOM(112));
		shmctl(shared, IPC_RMID, 0);
	}
	if (set >= 0) {
		ALIKE("semctl", 66, N(set), N(0), N(IPC_STAT), ROOM(104));
		semctl(set, 0, IPC_RMID);
	}
	long self = syscall(SYS_pidfd_open, getpid(), 0);
	char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*(volatile char *)page = 1;
	struct { void *base; size_t len; } pages = { page, 4096 };
	ALIKE("process_madvise", 440, N(self), THE(pages), N(1), N(20), N(0));
	siginfo_t info = { 0 };
	ALIKE("pidfd_send_signal", 424, N(self), N(0), THE(info), N(0));
	close((int)self);
	unsigned long nodes = 0;
	ALIKE("get_mempolicy", 239, ROOM(4), ROOM(128), N(1024), N(0), N(0));
	ALIKE("set_mempolicy", 238, N(0), THE(nodes), N(64));
	ALIKE("mbind", 237, N(page), N(4096), N(0), THE(nodes), N(64), N(0));
	ALIKE("migrate_pages", 256, N(0), N(64), THE(nodes), THE(nodes));
	ALIKE("move_pages", 279, N(0), N(1), THE(page), N(0), ROOM(4), N(0));

	/* Signals. */
	struct sigaction act = { .sa_handler = hear };
	unsigned long usr1 = 1UL << (SIGUSR1 - 1), none = 0;
	CHECK(sigaction(SIGUSR1, &act, 0) == 0 && syscall(SYS_rt_sigprocmask, SIG_BLOCK, &usr1, 0, 8L) == 0);
	siginfo_t queued = { .si_signo = SIGUSR1, .si_code = SI_QUEUE };
	CHECK(syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), SIGUSR1, PM(queued)) == 0 && heard == 0);
	CHECK(syscall(SYS_rt_sigsuspend, PM(none), 8L) == -1 && errno == EINTR && heard == SIGUSR1);
	CHECK(syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &usr1, 0, 8L) == 0);

	/* Children. */
	int status;
	long pid;
	unsigned long args[11] = { 0, 0, 0, 0, SIGCHLD }, *kept = PM(args);
	pid = syscall(SYS_clone3, kept, sizeof args);
	if (pid == 0)
		_exit(5);
	/* Sandboxes may not know it. */
	CHECK(pid > 0 ? waitpid((pid_t)pid, &status, 0) == pid && WEXITSTATUS(status) == 5 : errno == ENOSYS);
	char *words[] = { in_pm("sh", 3), in_pm("-c", 3), in_pm("exit 6", 7), 0 }, *env[] = { in_pm("A=1", 4), 0 };
	char *shell = in_pm("/bin/sh", 8), **argv = PM(words), **envp = PM(env);
	pid = fork();
	if (pid == 0) {
		syscall(SYS_execveat, AT_FDCWD, shell, argv, envp, 0);
		_exit(99);
	}
	CHECK(waitpid((pid_t)pid, &status, 0) == pid && WEXITSTATUS(status) == 6);
}

static void of_waiting(void)
{
	unsigned *word = room(4);
	*word = 5;
	struct timespec soon = { 0, 1000 };
	struct { unsigned long value, address; unsigned flags, reserved; } waiter = { 4, (unsigned long)word, 2, 0 };
	errno = 0;
	long none = syscall(449, PM(waiter), 1, 0, PM(soon), 1);
	CHECK(none == -1 && (errno == EAGAIN || errno == ENOSYS));
	unsigned here = 5;
	ALIKE("futex_waitv", 449, THE(waiter), N(1), N(0), THE(soon), N(1));
	ALIKE("futex_wake", 454, THE(here), N(~0U), N(1), N(2));
	ALIKE("futex_wait", 455, THE(here), N(4), N(~0U), N(2), THE(soon), N(1));
	struct { unsigned long value, address; unsigned flags, reserved; } pair[2] = { { 4, (unsigned long)word, 2, 0 }, { 4, (unsigned long)word, 2, 0 } };
	ALIKE("futex_requeue", 456, THE(pair), N(0), N(0), N(0));

	aio_context_t *context = room(8);
	*context = 0;
	if (syscall(SYS_io_setup, 1, context) == 0) {
		struct iocb request = { 0 };
		struct timespec now = { 0, 0 };
		unsigned long mask = 0;
		struct { void *mask; unsigned long size; } pack = { PM(mask), 8 };
		CHECK(*context != 0);
		ALIKE("io_getevents", 208, N(*context), N(0), N(1), ROOM(32), THE(now));
		CHECK(syscall(333 /* io_pgetevents */, *context, 0L, 1L, room(32), PM(now), PM(pack)) == 0);
		ALIKE("io_submit", 209, N(*context), N(0), ROOM(8));
		ALIKE("io_cancel", 210, N(*context), THE(request), ROOM(32));
		CHECK(syscall(SYS_io_destroy, *context) == 0);
	}
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	int fd = argc > 2 && !strcmp(argv[2], "recover") ? open(argv[1], O_RDWR) : pm_file(argv[1], SIZE);
	CHECK(fd >= 0);
	next = pm = pm_map(fd, SIZE);
	of_the_machine();
	of_the_past();
	of_files();
	of_processes();
	of_waiting();
	return 0;
}
