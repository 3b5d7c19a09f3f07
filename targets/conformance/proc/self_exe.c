//@ build: c
//@ cflags: -O1
// /proc/self/exe in all its forms names the program, not the recorder; so do the auxiliary vector and comm.
#include "pm.h"
#include <elf.h>
#include <sys/auxv.h>
#include <sys/prctl.h>

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 4096), path[4096], path2[4096], by_pid[64];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
	CHECK(n > 0);
	path[n] = 0;
	CHECK(strstr(path, "self_exe"));
	snprintf(by_pid, sizeof by_pid, "/proc/%d/exe", getpid());
	CHECK(readlink(by_pid, path2, sizeof path2 - 1) == n && memcmp(path, path2, n) == 0);
	CHECK(readlinkat(AT_FDCWD, "/proc/self/exe", path2, sizeof path2 - 1) == n && memcmp(path, path2, n) == 0);
	struct stat a, b;
	CHECK(stat("/proc/self/exe", &a) == 0 && stat(path, &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev);
	int fd = open("/proc/self/exe", O_RDONLY);
	CHECK(fd >= 0 && fstat(fd, &b) == 0 && a.st_ino == b.st_ino);
	unsigned char magic[4];
	CHECK(read(fd, magic, 4) == 4 && memcmp(magic, ELFMAG, 4) == 0);
	CHECK(access("/proc/self/exe", X_OK) == 0);
	const Elf64_Phdr *phdr = (const Elf64_Phdr *)getauxval(AT_PHDR);
	CHECK(phdr && getauxval(AT_PHNUM) > 3 && getauxval(AT_PHENT) == sizeof *phdr);
	CHECK(strstr((char *)getauxval(AT_EXECFN), "self_exe"));
	CHECK(getauxval(AT_ENTRY) != 0);
	char comm[17] = "";
	CHECK(prctl(PR_GET_NAME, comm) == 0 && strncmp(comm, "self_exe", 8) == 0);
	char line[4096];
	fd = open("/proc/self/cmdline", O_RDONLY);
	CHECK(fd >= 0 && (n = read(fd, line, sizeof line)) > 0 && strcmp(line, argv[0]) == 0);
	CHECK(strcmp(line + strlen(line) + 1, argv[1]) == 0);
	PUT(int, pm, 1);
	return 0;
}
