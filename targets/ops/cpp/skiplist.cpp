//! A skip list: the lowest level is what counts; recovery builds the others anew.
//! variants: 6
//! grammar: ordered.toml
//! together: 1 2 4 5 6 | 3
//! bug 1: unexpected key — found, but not printed, insert of a tall node
//! bug 2: resurrected key — found, but not printed, delete of a tall node
//! bug 3: lost keys — the list ends too early, insert
//! bug 4: stale value, update
//! bug 5: wrong count, insert and delete
//! bug 6: lost keys — everything behind the deleted one, delete
#include "kv.hpp"

namespace {

constexpr u64 HEIGHT = 4;
constexpr u64 NODES = 4096;

struct Node {
    alignas(64) u64 key;
    u64 value;
    u64 height;
    /// Numbers of nodes, or 0.
    u64 next[HEIGHT];
};

struct Pool {
    u64 magic;
    alignas(64) u64 count;
    /// Nodes that were ever used.
    alignas(64) u64 used;
    /// Number 0 is the head.
    Node nodes[NODES];
};

Pool *pool;

u64 height_of(u64 key)
{
    return 1 + static_cast<u64>(__builtin_ctzll(kv::hash(key) | u64{1} << (HEIGHT - 1)));
}

/// The nodes before the key on each level; the node of the key itself, or 0.
u64 search(u64 key, u64 (&before)[HEIGHT])
{
    u64 at = 0, found = 0;
    for (u64 level = HEIGHT; level-- > 0;) {
        u64 next;
        while ((next = pool->nodes[at].next[level]) && pool->nodes[next].key < key)
            at = next;
        before[level] = at;
        if (next && pool->nodes[next].key == key)
            found = next;
    }
    return found;
}

void add_to_count(u64 difference)
{
    PM_PUT(pool->count, pool->count + difference); //~ 5 atomicity
    persist(&pool->count, 8);
}

/// On the levels that are only ways to get there faster.
void link_above(u64 number, const u64 (&before)[HEIGHT])
{
    for (u64 level = pool->nodes[number].height; level-- > 1;) {
        PM_PUT(pool->nodes[before[level]].next[level], number); //~ 1 ordering
        flush(&pool->nodes[before[level]].next[level], 8);
    }
    fence();
}

void unlink_above(u64 number, const u64 (&before)[HEIGHT])
{
    for (u64 level = pool->nodes[number].height; level-- > 1;) {
        u64 &link = pool->nodes[before[level]].next[level];
        if (link == number) {
            PM_PUT(link, pool->nodes[number].next[level]); //~ 2 ordering
            flush(&link, 8);
        }
    }
    fence();
}

kv::Answer insert(u64 key, u64 value)
{
    u64 before[HEIGHT];
    if (search(key, before))
        return kv::EXISTS;
    if (pool->used + 1 == NODES)
        return kv::FULL;
    u64 number = pool->used + 1;
    PM_PUT(pool->used, number);
    persist(&pool->used, 8);
    Node &node = pool->nodes[number];
    PM_PUT(node.key, key);
    PM_PUT(node.value, value);
    PM_PUT(node.height, height_of(key));
    if (HAS_BUG(3))
        persist(&node, sizeof node);
    for (u64 level = 0; level < node.height; level++)
        PM_PUT(node.next[level], pool->nodes[before[level]].next[level]); //~ 3 ordering
    flush(&node, sizeof node);
    if (!HAS_BUG(3))
        fence();
    if (HAS_BUG(1))
        link_above(number, before);
    u64 &link = pool->nodes[before[0]].next[0];
    PM_PUT(link, number); //~ 1 ordering 3 ordering
    persist(&link, 8);
    if (!HAS_BUG(1))
        link_above(number, before);
    add_to_count(1); //~ 5 atomicity
    return kv::DONE;
}

kv::Answer update(u64 key, u64 value)
{
    u64 before[HEIGHT];
    u64 found = search(key, before);
    if (!found)
        return kv::MISSING;
    PM_PUT(pool->nodes[found].value, value); //~ 4 durability
    if (!HAS_BUG(4))
        persist(&pool->nodes[found].value, 8);
    return kv::DONE;
}

kv::Answer erase(u64 key)
{
    u64 before[HEIGHT];
    u64 found = search(key, before);
    if (!found)
        return kv::MISSING;
    Node &node = pool->nodes[found];
    if (!HAS_BUG(2))
        unlink_above(found, before);
    u64 &link = pool->nodes[before[0]].next[0];
    u64 rest = node.next[0];
    if (HAS_BUG(6)) {
        PM_PUT(node.next[0], 0); //~ 6 ordering
        persist(&node.next[0], 8);
    }
    if (link == found)
        PM_PUT(link, rest); //~ 2 ordering 6 ordering
    persist(&link, 8);
    if (HAS_BUG(2))
        unlink_above(found, before);
    add_to_count(-u64{1}); //~ 5 atomicity
    return kv::DONE;
}

const char *find(u64 key)
{
    static std::string text;
    u64 before[HEIGHT];
    u64 found = search(key, before);
    text = std::to_string(pool->nodes[found].value);
    return found ? text.c_str() : nullptr;
}

u64 count()
{
    return pool->count;
}

std::string print()
{
    std::string all = "all";
    for (u64 at = pool->nodes[0].next[0]; at; at = pool->nodes[at].next[0])
        all += " " + std::to_string(pool->nodes[at].key) + "=" + std::to_string(pool->nodes[at].value);
    return all;
}

void relink(u64 at, u64 level, u64 next)
{
    if (pool->nodes[at].next[level] == next || HAS_BUG(1) || HAS_BUG(2))
        return;
    PM_PUT(pool->nodes[at].next[level], next);
    persist(&pool->nodes[at].next[level], 8);
}

/// Everything above the lowest level, and the count.
void rebuild()
{
    u64 last[HEIGHT] = {};
    u64 items = 0;
    for (u64 at = pool->nodes[0].next[0]; at; at = pool->nodes[at].next[0], items++)
        for (u64 level = 1; level < pool->nodes[at].height; level++) {
            relink(last[level], level, at);
            last[level] = at;
        }
    for (u64 level = 1; level < HEIGHT; level++)
        relink(last[level], level, 0);
    if (pool->count != items && !HAS_BUG(5)) {
        PM_PUT(pool->count, items);
        persist(&pool->count, 8);
    }
}

void start(void *pm, bool is_new)
{
    pool = static_cast<Pool *>(pm);
    if (!is_new)
        rebuild();
}

} // namespace

int main(int argc, char **argv)
{
    return kv::main(argc, argv, sizeof(Pool), start, {insert, update, erase, find, count, print});
}
