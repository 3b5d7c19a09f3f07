//@ build: c
//@ cflags: -O1
//@ pool: varies
//@ compare: lengths
// Every system call that a test can make, with all its pointers into a pool: what it reads lies there, and what it writes goes there.
// Each answer must be the native one. Also run with --loads (each_call_loads.c) and as a recovery (crates/recover/tests).
#include "pm.h"
#include <dirent.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>

// Queues have names that all processes see: a program that includes this one has a queue of its own.
#ifndef QUEUE
#define QUEUE "each-call"
#endif

#define SIZE (256 << 10)
static char *pm, *next;

/* Fresh bytes of the pool. */
static void *room(size_t len)
{
	char *here = next;
	next += (len + 63) / 64 * 64;
	CHECK(next <= pm + SIZE);
	memset(here, 0xee, len);
	return here;
}
/* A copy in the pool. */
static void *in_pm(const void *from, size_t len) { return memcpy(room(len), from, len); }
static char *text(const char *s) { return in_pm(s, strlen(s) + 1); }
#define PM(value) ((void *)in_pm(&(value), sizeof(value)))

static void files(void)
{
	char *path = text("each.dat"), *other = text("each.2");
	int fd = (int)syscall(SYS_open, path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0);
	CHECK(syscall(SYS_write, fd, text("hello, pool"), 11) == 11);
	CHECK(syscall(SYS_pwrite64, fd, text("HE"), 2, 0) == 2);
	char *buf = room(100);
	CHECK(syscall(SYS_pread64, fd, buf, 100, 0) == 11 && !memcmp(buf, "HEllo, pool", 11));
	CHECK(syscall(SYS_lseek, fd, 0, SEEK_SET) == 0 && syscall(SYS_read, fd, room(100), 5) == 5);
	struct iovec out[] = { { text("ab"), 2 }, { text("cde"), 3 } }, in[] = { { room(8), 3 }, { room(8), 8 } };
	CHECK(syscall(SYS_writev, fd, PM(out), 2) == 5 && syscall(SYS_pwritev, fd, PM(out), 2, 0, 0) == 5);
	CHECK(syscall(SYS_preadv, fd, PM(in), 2, 0, 0) == 11 && !memcmp(in[1].iov_base, "de", 2));
	CHECK(syscall(SYS_lseek, fd, 0, SEEK_SET) == 0 && syscall(SYS_readv, fd, PM(in), 2) == 11);
	CHECK(syscall(SYS_pwritev2, fd, PM(out), 2, 4L, 0, 0) == 5 && syscall(SYS_preadv2, fd, PM(in), 2, 0L, 0, 0) == 11);
	CHECK(syscall(SYS_stat, path, room(144)) == 0 && syscall(SYS_lstat, path, room(144)) == 0);
	struct stat *s = room(144);
	CHECK(syscall(SYS_fstat, fd, s) == 0 && s->st_size == 11);
	CHECK(syscall(SYS_newfstatat, AT_FDCWD, path, room(144), 0) == 0);
	CHECK(syscall(SYS_statx, AT_FDCWD, path, 0, STATX_SIZE, room(256)) == 0);
	CHECK(syscall(SYS_statfs, text("."), room(120)) == 0 && syscall(SYS_fstatfs, fd, room(120)) == 0);
	CHECK(syscall(SYS_access, path, R_OK) == 0 && syscall(SYS_faccessat, AT_FDCWD, path, R_OK) == 0);
	CHECK(syscall(SYS_faccessat2, AT_FDCWD, path, R_OK, 0) == 0);
	CHECK(syscall(SYS_link, path, other) == 0 && syscall(SYS_unlink, other) == 0);
	CHECK(syscall(SYS_linkat, AT_FDCWD, path, AT_FDCWD, other, 0) == 0 && syscall(SYS_unlinkat, AT_FDCWD, other, 0) == 0);
	CHECK(syscall(SYS_symlink, path, other) == 0);
	char *link = room(64);
	CHECK(syscall(SYS_readlink, other, link, 64) == 8 && !memcmp(link, "each.dat", 8));
	CHECK(syscall(SYS_readlinkat, AT_FDCWD, other, room(64), 64) == 8 && syscall(SYS_unlink, other) == 0);
	CHECK(syscall(SYS_symlinkat, path, AT_FDCWD, other) == 0 && syscall(SYS_unlink, other) == 0);
	CHECK(syscall(SYS_rename, path, other) == 0 && syscall(SYS_renameat, AT_FDCWD, other, AT_FDCWD, path) == 0);
	CHECK(syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, other, 0) == 0 && syscall(SYS_rename, other, path) == 0);
	CHECK(syscall(SYS_chmod, path, 0644) == 0 && syscall(SYS_fchmodat, AT_FDCWD, path, 0600) == 0);
	CHECK(syscall(SYS_chown, path, -1, -1) == 0 && syscall(SYS_lchown, path, -1, -1) == 0);
	CHECK(syscall(SYS_fchownat, AT_FDCWD, path, -1, -1, 0) == 0);
	CHECK(syscall(SYS_truncate, path, 7L) == 0);
	CHECK(syscall(SYS_mkdir, other, 0700) == 0 && syscall(SYS_chdir, other) == 0 && syscall(SYS_chdir, text("..")) == 0);
	CHECK(syscall(SYS_rmdir, other) == 0 && syscall(SYS_mkdirat, AT_FDCWD, other, 0700) == 0);
	CHECK(syscall(SYS_unlinkat, AT_FDCWD, other, AT_REMOVEDIR) == 0);
	CHECK(syscall(SYS_mknod, other, S_IFIFO | 0600, 0) == 0 && syscall(SYS_unlink, other) == 0);
	CHECK(syscall(SYS_mknodat, AT_FDCWD, other, S_IFIFO | 0600, 0) == 0 && syscall(SYS_unlink, other) == 0);
	struct timespec times[2] = { { 1, 2 }, { 3, 4 } };
	struct timeval moments[2] = { { 5, 6 }, { 7, 8 } };
	long old_times[2] = { 9, 10 };
	CHECK(syscall(SYS_utimensat, AT_FDCWD, path, PM(times), 0) == 0 && syscall(SYS_utimes, path, PM(moments)) == 0);
	CHECK(syscall(SYS_futimesat, AT_FDCWD, path, PM(moments)) == 0 && syscall(SYS_utime, path, PM(old_times)) == 0);
	CHECK(syscall(SYS_getcwd, room(4096), 4096) > 0);
	int dir = (int)syscall(SYS_openat, AT_FDCWD, text("."), O_RDONLY | O_DIRECTORY, 0);
	CHECK(dir >= 0 && syscall(SYS_getdents64, dir, room(2048), 2048) > 0);
	CHECK(syscall(SYS_lseek, dir, 0, SEEK_SET) == 0 && syscall(SYS_getdents, dir, room(2048), 2048) > 0);
	close(dir);
	struct { unsigned long flags, mode, resolve; } how = { O_RDONLY, 0, 0 };
	int again = (int)syscall(SYS_openat2, AT_FDCWD, path, PM(how), 24L);
	CHECK(again >= 0);
	int made = (int)syscall(SYS_creat, other, 0600);
	CHECK(made >= 0);
	long zero = 0, two = 2;
	CHECK(syscall(SYS_sendfile, made, again, PM(two), 3L) == 3);
	CHECK(syscall(SYS_copy_file_range, again, PM(zero), made, PM(two), 4L, 0) == 4);
	close(made), close(again), unlink("each.2");
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	CHECK(syscall(SYS_fcntl, fd, F_SETLK, PM(lock)) == 0 && syscall(SYS_fcntl, fd, F_GETLK, PM(lock)) == 0);
	if (syscall(SYS_setxattr, path, text("user.t"), text("value"), 5L, 0) == 0) {
		char *value = room(16);
		CHECK(syscall(SYS_getxattr, path, text("user.t"), value, 16L) == 5 && !memcmp(value, "value", 5));
		CHECK(syscall(SYS_fgetxattr, fd, text("user.t"), room(16), 16L) == 5);
		CHECK(syscall(SYS_lgetxattr, path, text("user.t"), room(16), 16L) == 5);
		CHECK(syscall(SYS_listxattr, path, room(64), 64L) >= 7 && syscall(SYS_flistxattr, fd, room(64), 64L) >= 7);
		CHECK(syscall(SYS_llistxattr, path, room(64), 64L) >= 7);
		CHECK(syscall(SYS_fsetxattr, fd, text("user.t"), text("v"), 1L, 0) == 0);
		CHECK(syscall(SYS_removexattr, path, text("user.t")) == 0);
	}
	int watch = inotify_init1(IN_NONBLOCK);
	CHECK(watch >= 0 && syscall(SYS_inotify_add_watch, watch, path, IN_ATTRIB) > 0);
	CHECK(chmod("each.dat", 0640) == 0 && syscall(SYS_read, watch, room(512), 512L) > 0);
	close(watch);
	int memory = (int)syscall(SYS_memfd_create, text("in-pm"), 0);
	CHECK(memory >= 0);
	close(memory), close(fd), unlink("each.dat");
}

static void sockets(void)
{
	int *s = room(8);
	CHECK(syscall(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET, 0, s) == 0);
	int a = s[0], b = s[1];
	CHECK(syscall(SYS_sendto, a, text("one"), 3L, 0, 0, 0) == 3 && syscall(SYS_recvfrom, b, room(64), 64L, 0, 0, 0) == 3);
	struct iovec out[] = { { text("two "), 4 }, { text("parts"), 5 } }, in[] = { { room(5), 5 }, { room(64), 64 } };
	struct msghdr send = { .msg_iov = PM(out), .msg_iovlen = 2 };
	int passed = dup(0);
	union { struct cmsghdr h; char space[CMSG_SPACE(sizeof(int))]; } control;
	memset(&control, 0, sizeof control);
	control.h = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(&control.h), &passed, sizeof passed);
	send.msg_control = PM(control), send.msg_controllen = sizeof control;
	CHECK(syscall(SYS_sendmsg, a, PM(send), 0) == 9);
	struct msghdr receive = { .msg_iov = PM(in), .msg_iovlen = 2, .msg_name = room(110), .msg_namelen = 110, .msg_control = room(64), .msg_controllen = 64 };
	struct msghdr *got = PM(receive);
	CHECK(syscall(SYS_recvmsg, b, got, 0) == 9 && !memcmp(in[0].iov_base, "two p", 5) && !memcmp(in[1].iov_base, "arts", 4));
	CHECK(got->msg_controllen == sizeof control && got->msg_iov == receive.msg_iov);
	close(passed), close(*(int *)CMSG_DATA((struct cmsghdr *)got->msg_control));
	struct mmsghdr many[2] = { { .msg_hdr = { .msg_iov = PM(out), .msg_iovlen = 2 } }, { .msg_hdr = { .msg_iov = PM(out), .msg_iovlen = 1 } } };
	struct mmsghdr *sent = PM(many);
	CHECK(syscall(SYS_sendmmsg, a, sent, 2, 0) == 2 && sent[0].msg_len == 9 && sent[1].msg_len == 4);
	struct mmsghdr back[2] = { { .msg_hdr = { .msg_iov = PM(in), .msg_iovlen = 2 } }, { .msg_hdr = { .msg_iov = PM(in), .msg_iovlen = 2 } } };
	struct mmsghdr *filled = PM(back);
	CHECK(syscall(SYS_recvmmsg, b, filled, 2, 0, 0) == 2 && filled[0].msg_len == 9 && filled[1].msg_len == 4);
	int len = 4, flag = 1;
	int *value = room(4);
	CHECK(syscall(SYS_getsockopt, a, SOL_SOCKET, SO_TYPE, value, PM(len)) == 0 && *value == SOCK_SEQPACKET);
	CHECK(syscall(SYS_setsockopt, a, SOL_SOCKET, SO_PASSCRED, PM(flag), 4) == 0);
	close(a), close(b);
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "each.socket" };
	int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
	unlink(name.sun_path);
	CHECK(syscall(SYS_bind, server, PM(name), (int)sizeof name) == 0 && listen(server, 2) == 0);
	CHECK(syscall(SYS_connect, client, PM(name), (int)sizeof name) == 0);
	len = 110;
	int *size = PM(len);
	int peer = (int)syscall(SYS_accept, server, room(110), size);
	CHECK(peer >= 0);
	struct sockaddr_un *shown = room(110);
	CHECK(syscall(SYS_getsockname, server, shown, PM(len)) == 0 && !strcmp(shown->sun_path, "each.socket"));
	CHECK(syscall(SYS_getpeername, client, room(110), PM(len)) == 0);
	int second = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK(connect(second, (struct sockaddr *)&name, sizeof name) == 0);
	int other = (int)syscall(SYS_accept4, server, room(110), PM(len), SOCK_CLOEXEC);
	CHECK(other >= 0);
	close(other), close(second), close(peer), close(client), close(server), unlink(name.sun_path);
	int *ends = room(8);
	CHECK(syscall(SYS_pipe, ends) == 0 && syscall(SYS_pipe2, room(8), 0) == 0);
	struct iovec piece[] = { { text("spliced"), 7 } };
	CHECK(syscall(SYS_vmsplice, ends[1], PM(piece), 1L, 0) == 7);
	char *seven = room(7);
	CHECK(syscall(SYS_read, ends[0], seven, 7L) == 7 && !memcmp(seven, "spliced", 7));
	struct iovec into[] = { { room(7), 7 } };
	CHECK(write(ends[1], "again!!", 7) == 7 && syscall(SYS_vmsplice, ends[0], PM(into), 1L, 0) == 7);
	CHECK(!memcmp(into[0].iov_base, "again!!", 7));
	int bytes = 0, *count = PM(bytes);
	CHECK(write(ends[1], "abc", 3) == 3 && syscall(SYS_ioctl, ends[0], 0x541bL, count) == 0 && *count == 3);
	struct pollfd p = { .fd = ends[0], .events = POLLIN }, *polled = PM(p);
	CHECK(syscall(SYS_poll, polled, 1L, 0) == 1 && polled->revents == POLLIN);
	struct timespec soon = { 0, 1000 };
	unsigned long mask = 0;
	CHECK(syscall(SYS_ppoll, PM(p), 1L, PM(soon), PM(mask), 8L) == 1);
	fd_set set;
	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	struct timeval moment = { 0, 10 };
	CHECK(syscall(SYS_select, ends[0] + 1, PM(set), 0, 0, PM(moment)) == 1);
	struct { void *mask; unsigned long size; } pack = { PM(mask), 8 };
	CHECK(syscall(SYS_pselect6, ends[0] + 1, PM(set), 0, 0, PM(soon), PM(pack)) == 1);
	int poller = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 7 }, *ready = room(24);
	CHECK(syscall(SYS_epoll_ctl, poller, EPOLL_CTL_ADD, ends[0], PM(event)) == 0);
	CHECK(syscall(SYS_epoll_wait, poller, ready, 2, 0) == 1 && ready->data.u64 == 7);
	CHECK(syscall(SYS_epoll_pwait, poller, room(24), 2, 0, PM(mask), 8L) == 1);
	CHECK(syscall(441 /* epoll_pwait2 */, poller, room(24), 2, PM(soon), PM(mask), 8L) == 1);
	close(poller), close(ends[0]), close(ends[1]);
}

static void signals(void)
{
	unsigned long usr1 = 1UL << (SIGUSR1 - 1), *old = room(8);
	CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, PM(usr1), old, 8L) == 0 && *old == 0);
	unsigned long *now = room(8);
	CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, 0, now, 8L) == 0 && *now == usr1);
	CHECK(kill(getpid(), SIGUSR1) == 0);
	unsigned long *waiting = room(8);
	CHECK(syscall(SYS_rt_sigpending, waiting, 8L) == 0 && *waiting == usr1);
	struct timespec soon = { 1, 0 };
	siginfo_t *info = room(128);
	CHECK(syscall(SYS_rt_sigtimedwait, PM(usr1), info, PM(soon), 8L) == SIGUSR1 && info->si_signo == SIGUSR1);
	siginfo_t queued = { .si_signo = SIGUSR1, .si_code = SI_QUEUE };
	CHECK(syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR1, PM(queued)) == 0);
	int fd = (int)syscall(SYS_signalfd4, -1, PM(usr1), 8L, 0);
	struct signalfd_siginfo *told = room(128);
	CHECK(fd >= 0 && syscall(SYS_read, fd, told, 128L) == 128 && told->ssi_signo == SIGUSR1);
	close(fd);
	unsigned long none = 0;
	CHECK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, PM(none), 0, 8L) == 0);
	struct { void (*handler)(int); unsigned long flags; void *restorer; unsigned long mask; } act = { SIG_IGN, 0, 0, 0 }, *was = room(32);
	CHECK(syscall(SYS_rt_sigaction, SIGUSR2, PM(act), was, 8L) == 0 && was->handler == SIG_DFL);
	CHECK(syscall(SYS_rt_sigaction, SIGUSR2, 0, was, 8L) == 0 && was->handler == SIG_IGN);
	stack_t alternate = { .ss_sp = malloc(65536), .ss_size = 65536 }, *shown = room(24);
	CHECK(syscall(SYS_sigaltstack, PM(alternate), shown) == 0 && (shown->ss_flags & SS_DISABLE));
	CHECK(syscall(SYS_sigaltstack, 0, shown) == 0 && shown->ss_sp == alternate.ss_sp);
}

static void times_and_limits(void)
{
	struct timespec little = { 0, 1000 }, *clock = room(16);
	CHECK(syscall(SYS_nanosleep, PM(little), room(16)) == 0);
	CHECK(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, PM(little), room(16)) == 0);
	CHECK(syscall(SYS_clock_gettime, CLOCK_REALTIME, clock) == 0 && clock->tv_sec > 1000000000);
	CHECK(syscall(SYS_clock_getres, CLOCK_MONOTONIC, room(16)) == 0);
	CHECK(syscall(SYS_gettimeofday, room(16), 0) == 0 && syscall(SYS_time, room(8)) > 1000000000);
	CHECK(syscall(SYS_times, room(32)) != -1);
	struct itimerval long_time = { { 0, 0 }, { 1000, 0 } }, off = { { 0, 0 }, { 0, 0 } };
	CHECK(syscall(SYS_setitimer, ITIMER_REAL, PM(long_time), room(32)) == 0 && syscall(SYS_getitimer, ITIMER_REAL, room(32)) == 0);
	CHECK(syscall(SYS_setitimer, ITIMER_REAL, PM(off), room(32)) == 0);
	struct itimerspec later = { { 0, 0 }, { 1000, 0 } };
	int timer = timerfd_create(CLOCK_MONOTONIC, 0);
	CHECK(syscall(SYS_timerfd_settime, timer, 0, PM(later), room(32)) == 0 && syscall(SYS_timerfd_gettime, timer, room(32)) == 0);
	close(timer);
	struct sigevent event = { .sigev_notify = SIGEV_NONE };
	int *id = room(4);
	CHECK(syscall(SYS_timer_create, CLOCK_MONOTONIC, PM(event), id) == 0);
	CHECK(syscall(SYS_timer_settime, *id, 0, PM(later), room(32)) == 0 && syscall(SYS_timer_gettime, *id, room(32)) == 0);
	CHECK(syscall(SYS_timer_delete, *id) == 0);
	struct timex query = { .modes = 0 };
	CHECK(syscall(SYS_adjtimex, PM(query)) >= 0 && syscall(SYS_clock_adjtime, CLOCK_REALTIME, PM(query)) >= 0);
	struct rlimit *limit = room(16);
	CHECK(syscall(SYS_getrlimit, RLIMIT_CORE, limit) == 0 && syscall(SYS_setrlimit, RLIMIT_CORE, limit) == 0);
	CHECK(syscall(SYS_prlimit64, 0, RLIMIT_CORE, limit, room(16)) == 0);
	CHECK(syscall(SYS_getrusage, RUSAGE_SELF, room(144)) == 0 && syscall(SYS_sysinfo, room(112)) == 0);
	struct utsname *name = room(390);
	CHECK(syscall(SYS_uname, name) == 0 && !strcmp(name->sysname, "Linux"));
	CHECK(syscall(SYS_getresuid, room(4), room(4), room(4)) == 0 && syscall(SYS_getresgid, room(4), room(4), room(4)) == 0);
	CHECK(syscall(SYS_getgroups, 64, room(256)) >= 0 && syscall(SYS_getcpu, room(4), room(4), 0) == 0);
	CHECK(syscall(SYS_getrandom, room(100), 100L, 0) == 100);
	unsigned long *cpus = room(128);
	long got = syscall(SYS_sched_getaffinity, 0, 128L, cpus);
	CHECK(got > 0 && syscall(SYS_sched_setaffinity, 0, got, cpus) == 0);
	CHECK(syscall(SYS_sched_getparam, 0, room(4)) == 0 && syscall(SYS_sched_rr_get_interval, 0, room(16)) == 0);
	int zero = 0;
	CHECK(syscall(SYS_sched_setparam, 0, PM(zero)) == 0 && syscall(SYS_sched_getattr, 0, room(56), 56, 0) == 0);
	unsigned header[2] = { 0x20080522, 0 };
	CHECK(syscall(SYS_capget, PM(header), room(24)) == 0);
	CHECK(syscall(SYS_prctl, 15L, text("in-pm"), 0, 0, 0) == 0 && syscall(SYS_prctl, 16L, room(16), 0, 0, 0) == 0);
	char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(syscall(SYS_mincore, page, 8192L, room(2)) == 0);
	CHECK(syscall(SYS_get_robust_list, 0, room(8), room(8)) == 0);
	unsigned *word = room(4);
	*word = 5;
	CHECK(syscall(SYS_futex, word, FUTEX_WAIT, 4, PM(little), 0, 0) == -1 && errno == EAGAIN);
	CHECK(syscall(SYS_futex, word, FUTEX_WAIT, 5, PM(little), 0, 0) == -1 && errno == ETIMEDOUT);
	CHECK(syscall(SYS_futex, word, FUTEX_WAKE, 1, 0, 0, 0) == 0);
}

static void processes(void)
{
	/* Nothing is stored while a child runs: the order of events is the same in every run. */
	int *status = room(4);
	void *usage = room(144), *usage2 = room(144);
	siginfo_t *info = room(128);
	char *args[] = { text("sh"), text("-c"), text("exit $VALUE"), 0 }, *env[] = { text("VALUE=5"), 0 };
	char *shell = text("/bin/sh"), **argv = PM(args), **envp = PM(env);
	pid_t child = fork();
	if (child == 0)
		_exit(9);
	CHECK(syscall(SYS_wait4, child, status, 0, usage) == child && WEXITSTATUS(*status) == 9);
	child = fork();
	if (child == 0)
		_exit(3);
	CHECK(syscall(SYS_waitid, P_PID, child, info, WEXITED, usage2) == 0 && info->si_status == 3);
	child = fork();
	if (child == 0) {
		syscall(SYS_execve, shell, argv, envp);
		_exit(99);
	}
	CHECK(waitpid(child, status, 0) == child && WEXITSTATUS(*status) == 5);
	struct iovec local[] = { { room(16), 16 } }, remote[] = { { text("across processes"), 16 } };
	CHECK(syscall(SYS_process_vm_readv, getpid(), PM(local), 1L, PM(remote), 1L, 0L) == 16);
	CHECK(!memcmp(local[0].iov_base, "across processes", 16));
	CHECK(syscall(SYS_process_vm_writev, getpid(), PM(remote), 1L, PM(local), 1L, 0L) == 16);
	int queue = msgget(IPC_PRIVATE, 0600);
	if (queue >= 0) {
		struct { long type; char body[8]; } message = { 1, "message" }, *got = room(16);
		CHECK(syscall(SYS_msgsnd, queue, PM(message), 8L, 0) == 0 && syscall(SYS_msgrcv, queue, got, 8L, 0L, 0) == 8);
		CHECK(!strcmp(got->body, "message") && syscall(SYS_msgctl, queue, IPC_STAT, room(128)) == 0);
		msgctl(queue, IPC_RMID, 0);
	}
	int set = semget(IPC_PRIVATE, 1, 0600);
	if (set >= 0) {
		struct sembuf up = { 0, 1, 0 }, down = { 0, -1, 0 };
		struct timespec soon = { 1, 0 };
		CHECK(syscall(SYS_semop, set, PM(up), 1L) == 0 && syscall(SYS_semtimedop, set, PM(down), 1L, PM(soon)) == 0);
		semctl(set, 0, IPC_RMID);
	}
	long mq = syscall(SYS_mq_open, text(QUEUE), O_RDWR | O_CREAT, 0600, 0);
	if (mq >= 0) {
		struct timespec far = { 4000000000, 0 };
		struct mq_attr *attr = room(64);
		CHECK(syscall(SYS_mq_getsetattr, mq, 0, attr) == 0);
		CHECK(syscall(SYS_mq_timedsend, mq, text("mail"), 4L, 1, PM(far)) == 0);
		CHECK(syscall(SYS_mq_timedreceive, mq, room(attr->mq_msgsize), attr->mq_msgsize, room(4), PM(far)) == 4);
		CHECK(syscall(SYS_mq_unlink, text(QUEUE)) == 0);
	}
}

/* Byte by byte: one instruction must not store on both sides of a pool's end. */
static void fill(volatile char *at, const char *from, int step, size_t len)
{
	for (size_t i = 0; i < len; i++, from += step)
		at[i] = *from;
}

/* Buffers of which only a part lies in the pool. */
static void across(int fd)
{
	char *place = mmap(0, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(mmap(place + 4096, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, SIZE - 4096) != MAP_FAILED);
	int file = open("across.dat", O_RDWR | O_CREAT | O_TRUNC, 0600), ends[2];
	fill(place + 3900, "a", 0, 4500);
	CHECK(syscall(SYS_write, file, place + 4000, 4300L) == 4300);
	fill(place + 3900, "b", 0, 4500);
	CHECK(syscall(SYS_pread64, file, place + 4090, 200L, 0L) == 200 && place[4090] == 'a' && place[4289] == 'a' && place[4290] == 'b');
	CHECK(syscall(SYS_pread64, file, place + 8190, 200L, 0L) == 200 && place[8190] == 'a' && place[8389] == 'a');
	struct stat *s = (struct stat *)(place + 4040);
	CHECK(syscall(SYS_fstat, file, s) == 0 && s->st_size == 4300);
	fill(place + 4090, "across.dat", 1, 11);
	CHECK(syscall(SYS_access, place + 4090, R_OK) == 0);
	CHECK(pipe(ends) == 0 && syscall(SYS_write, ends[1], place + 4090, 11L) == 11);
	CHECK(syscall(SYS_read, ends[0], place + 8185, 100L) == 11 && !memcmp(place + 8185, "across.", 7));
	close(ends[0]), close(ends[1]), close(file), unlink("across.dat");
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	int fd = argc > 2 && !strcmp(argv[2], "recover") ? open(argv[1], O_RDWR) : pm_file(argv[1], SIZE);
	CHECK(fd >= 0);
	next = pm = pm_map(fd, SIZE);
	files();
	sockets();
	signals();
	times_and_limits();
	processes();
	across(fd);
	return 0;
}
