// A persistent map asked through operations, for the C++ programs: `i KEY VALUE`, `u KEY VALUE`, `d KEY`, `g KEY`, `n`, `p`.
// Stores to the pool are written in the programs themselves, never in here (but for the magic number).
#pragma once
#include "../../crash/include/pm.hpp"
#include <iostream>
#include <string>

using namespace pm;

/// A store that the compiler neither drops, merges nor moves past another.
#define PM_PUT(place, value) (*const_cast<volatile u64 *>(&(place)) = (value))

namespace kv {

enum Answer { DONE, EXISTS, MISSING, FULL };

struct Map {
    Answer (*insert)(u64 key, u64 value);
    Answer (*update)(u64 key, u64 value);
    Answer (*erase)(u64 key);
    /// Null if the key is missing.
    const char *(*find)(u64 key);
    u64 (*count)();
    /// The whole content on one line, in order; null if the map has none.
    std::string (*print)();
};

constexpr u64 MAGIC = 0x74736f7065636e66;

/// Spreads numbers. Not inlined: it must never take the line of a store.
[[gnu::noinline]] inline u64 hash(u64 key)
{
    u64 x = (key + 1) * 0x9e3779b97f4a7c15u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

/// A number as a text of several words, five digits in each.
template <u64 WORDS> void spell(u64 value, u64 (&text)[WORDS])
{
    for (u64 i = WORDS; i-- > 0; value /= 100000) {
        char chars[9];
        std::snprintf(chars, sizeof chars, "%05u...", static_cast<unsigned>(value % 100000));
        std::memcpy(&text[i], chars, 8);
    }
}

/// The digits of the text without the zeros in front.
inline const char *read(const u64 *text, u64 words)
{
    static char digits[65];
    char *end = digits;
    for (u64 i = 0; i < words; i++, end += 5)
        std::memcpy(end, &text[i], 5);
    *end = 0;
    const char *start = digits;
    while (*start == '0' && start[1])
        start++;
    return start;
}

/// The pool at `path`, made if it is missing. What no creation has finished is all zeros but for what it stores, so that it can be
/// begun again.
inline void *open_pool(const char *path, std::size_t bytes)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0)
        fail("cannot open the pool");
    if (info.st_size < static_cast<off_t>(bytes) && ftruncate(fd, static_cast<off_t>(bytes)) != 0)
        fail("cannot create the pool");
    return pm::map(fd, bytes);
}

/// A bug in the set-up, which every program can have beside its own: a mark behind the pool that is never flushed, and without which
/// the pool is not opened.
constexpr int SETUP_BUG = 30;

inline void open_map(const char *path, std::size_t bytes, void (*start)(void *pool, bool is_new))
{
    std::size_t end = (bytes + 63) / 64 * 64;
    void *pool = open_pool(path, HAS_BUG(SETUP_BUG) ? end + 64 : bytes);
    u64 &magic = *static_cast<u64 *>(pool);
    u64 *mark = &magic + end / 8;
    bool is_new = magic != MAGIC;
    if (HAS_BUG(SETUP_BUG) && is_new)
        PM_PUT(*mark, MAGIC);
    else if (HAS_BUG(SETUP_BUG) && *mark != MAGIC)
        fail("the pool was cut off");
    start(pool, is_new);
    if (is_new) {
        PM_PUT(magic, MAGIC);
        persist(&magic, 8);
    }
}

inline void operate(const Map &map, const std::string &line)
{
    static constexpr const char *ANSWERS[] = {"ok", "exists", "missing", "full"};
    char kind = 0;
    unsigned long long key = 0, value = 0;
    if (std::sscanf(line.c_str(), " %c %llu %llu", &kind, &key, &value) < 1)
        return;
    if (kind == 'i') {
        std::cout << ANSWERS[map.insert(key, value)];
    } else if (kind == 'u') {
        std::cout << ANSWERS[map.update(key, value)];
    } else if (kind == 'd') {
        std::cout << ANSWERS[map.erase(key)];
    } else if (kind == 'g') {
        const char *found = map.find(key);
        std::cout << (found ? found : "missing");
    } else if (kind == 'n') {
        std::cout << map.count();
    } else if (kind == 'p' && map.print) {
        std::cout << map.print();
    } else {
        std::cout << "what?";
    }
    std::cout << std::endl;
}

inline int main(int argc, char **argv, std::size_t bytes, void (*start)(void *pool, bool is_new), const Map &map)
{
    if (argc != 2)
        return 2;
    open_map(argv[1], bytes, start);
    std::string line;
    while (std::getline(std::cin, line))
        operate(map, line);
    return 0;
}

} // namespace kv
