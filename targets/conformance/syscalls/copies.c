//@ build: c
//@ cflags: -O1
// The kernel copies between files: copy_file_range, sendfile and splice into the pool's file.
#include "pm.h"
#include <sys/sendfile.h>

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	int fd = pm_file(argv[1], 16384);
	char *pm = pm_map(fd, 16384), text[3000];
	for (int i = 0; i < 3000; i++)
		text[i] = (char)('A' + i % 26);
	int in = pm_file("input.dat", 0);
	CHECK(write(in, text, sizeof text) == sizeof text);
	PUT(int, pm, 1);
	off_t from = 26, to = 100;
	ssize_t n = copy_file_range(in, &from, fd, &to, 2000, 0);
	CHECK(n == 2000 || (n == -1 && (errno == EXDEV || errno == ENOSYS || errno == EOPNOTSUPP)));
	if (n == 2000)
		CHECK(pm[100] == 'A' && pm[2099] == text[2025]);
	CHECK(lseek(fd, 5000, SEEK_SET) == 5000);
	from = 1;
	CHECK(sendfile(fd, in, &from, 2500) == 2500 && pm[5000] == 'B');
	int ends[2];
	CHECK(pipe(ends) == 0 && write(ends[1], "spliced", 7) == 7);
	to = 9000;
	CHECK(splice(ends[0], NULL, fd, &to, 7, 0) == 7 && memcmp(pm + 9000, "spliced", 7) == 0);
	PUT(int, pm + 12000, 2);
	return 0;
}
