//@ build: c
//@ cflags: -O1
// recv, recvfrom, recvmsg and recvmmsg into PM over a socket pair.
#include "pm.h"
#include <sys/socket.h>

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 8192);
	int s[2];
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s) == 0);
	CHECK(send(s[0], "one", 3, 0) == 3 && recv(s[1], pm, 100, 0) == 3);
	CHECK(send(s[0], "two", 3, 0) == 3 && recvfrom(s[1], pm + 64, 100, 0, NULL, NULL) == 3);
	struct iovec v[] = { { pm + 4094, 4 }, { pm + 200, 50 } };
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 2 };
	CHECK(send(s[0], "three parts", 11, 0) == 11 && recvmsg(s[1], &m, 0) == 11);
	CHECK(memcmp(pm + 4094, "thre", 4) == 0 && memcmp(pm + 200, "e parts", 7) == 0);
	struct iovec w[] = { { pm + 300, 20 }, { pm + 400, 20 } };
	struct mmsghdr many[] = { { .msg_hdr = { .msg_iov = &w[0], .msg_iovlen = 1 } }, { .msg_hdr = { .msg_iov = &w[1], .msg_iovlen = 1 } } };
	CHECK(send(s[0], "x1", 2, 0) == 2 && send(s[0], "y22", 3, 0) == 3);
	CHECK(recvmmsg(s[1], many, 2, 0, NULL) == 2 && many[1].msg_len == 3);
	CHECK(recv(s[1], pm + 500, 10, MSG_DONTWAIT) == -1 && errno == EAGAIN);
	CHECK(send(s[0], pm, 3, 0) == 3 && recv(s[1], pm + 600, 2, MSG_TRUNC) == 3);
	return 0;
}
