// What the C++ programs need: a mapped pool, flushes and fences. The instructions are written out, so that no compiler
// flag is needed and the compiler moves no store across them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bugs.h"

/// An aligned 8-byte store past the cache. A macro, so that the line is that of the program.
#define PM_STREAM(place, value) asm volatile("movnti %1, %0" : "=m"(place) : "r"(value) : "memory")

namespace pm {

using u64 = std::uint64_t;
using u8 = std::uint8_t;

/// Starts the write-back of every line of the range.
inline void flush(const void *start, std::size_t bytes)
{
    auto end = reinterpret_cast<std::uintptr_t>(start) + bytes;
    for (auto line = reinterpret_cast<std::uintptr_t>(start) & ~std::uintptr_t{63}; line < end; line += 64)
        asm volatile("clwb (%0)" ::"r"(line) : "memory");
}

inline void fence()
{
    asm volatile("sfence" ::: "memory");
}

inline void persist(const void *start, std::size_t bytes)
{
    flush(start, bytes);
    fence();
}

/// Stores before it come before stores behind it: within one line that is the order in which they reach PM.
inline void in_order()
{
    asm volatile("" ::: "memory");
}

[[noreturn]] inline void fail(const char *what)
{
    std::fprintf(stderr, "broken: %s\n", what);
    std::exit(1);
}

inline void *map(int fd, std::size_t bytes)
{
    void *pool = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (pool == MAP_FAILED)
        fail("cannot map the pool");
    close(fd);
    return pool;
}

/// A fresh pool of zeros.
inline void *create(const char *path, std::size_t bytes)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0)
        fail("cannot create the pool");
    return map(fd, bytes);
}

/// The pool at `path`; none if its creation had not even given it its length.
inline void *reopen(const char *path, std::size_t bytes)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0 || info.st_size < static_cast<off_t>(bytes))
        return nullptr;
    return map(fd, bytes);
}

/// Bytes that follow from key and version alone, so that every copy can be checked. Not inlined: the line of a store of its
/// result would be in here.
[[gnu::noinline]] inline u64 mix(u64 key, u64 version)
{
    u64 x = (key * 0x9e3779b97f4a7c15u) ^ (version * 0xc2b2ae3d27d4eb4fu);
    x ^= x >> 29;
    return x * 0xbf58476d1ce4e5b9u | 1;
}

} // namespace pm
