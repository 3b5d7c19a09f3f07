/* A counter that puts other files behind its standard descriptors while it answers: `a` adds one, anything else asks for it.
 *
 * BUG: an addition is never flushed. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static void say(const char *text) { if (write(1, text, strlen(text)) < 0) _exit(8); }
int main(int argc, char **argv) {
    int fd = open(argv[1], O_RDWR | O_CREAT, 0666);
    if (fd < 0 || ftruncate(fd, 4096)) return 9;
    uint64_t *value = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char line[64], text[64], none[8];
    while (fgets(line, sizeof line, stdin)) {
        if (line[0] == 'a') {
            *value += 1;
#ifndef BUG
            _mm_clwb(value);
            _mm_sfence();
#endif
            say("ok\n");
            continue;
        }
        /* What goes elsewhere is no answer. */
        int output = dup(1), scratch = open("/tmp", O_RDWR | O_TMPFILE, 0600);
        say("the value");
        dup2(scratch, 1);
        say("this is written to a file that nobody reads\n");
        dup2(output, 1);
        close(scratch);
        /* This is, although it goes through another descriptor. */
        if (write(output, " is ", 4) != 4) return 7;
        close(output);
        /* Of another input there is nothing to read, and the next operation comes from the old one. */
        int input = dup(0), empty = open("/dev/null", O_RDONLY);
        close(0);
        if (dup2(empty, 0) || read(0, none, sizeof none)) return 6;
        dup2(input, 0);
        close(input);
        close(empty);
        snprintf(text, sizeof text, "%lu\n", *value);
        say(text);
    }
    return argc < 0;
}
