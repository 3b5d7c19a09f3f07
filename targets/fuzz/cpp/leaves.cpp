//! A sorted map in a chain of leaves: a full leaf is split, an empty one is taken out of the chain and used again later. What a split leaves
//! behind in the old leaf is stale: keys from the next leaf's lowest one on do not count.
//! variants: 3
//! grammar: kv.toml
//! bug 1: lost keys — a link to a leaf that is not whole, insert that splits a leaf
//! bug 2: wrong value — what the leaf held before, insert that splits into a leaf that was used before
//! bug 3: resurrected keys — what a split left behind, delete that empties a leaf
#include "../../ops/include/kv.hpp"
#include <algorithm>

namespace {

constexpr u64 ENTRIES = 6;
constexpr u64 LEAVES = 512;

struct Leaf {
    alignas(64) u64 low;
    /// The number of the next leaf, or 0.
    u64 next;
    /// Which entries are in use.
    u64 used;
    alignas(64) u64 keys[ENTRIES];
    alignas(64) u64 values[ENTRIES];
};

struct Pool {
    u64 magic;
    /// Number 0 is the first leaf; it is never taken out.
    alignas(64) Leaf leaves[LEAVES];
};

Pool *pool;

u64 end_of(const Leaf &leaf)
{
    return leaf.next ? pool->leaves[leaf.next].low : ~u64{0};
}

bool counts(const Leaf &leaf, u64 i)
{
    return (leaf.used >> i & 1) != 0 && leaf.keys[i] < end_of(leaf);
}

Leaf &leaf_of(u64 key)
{
    Leaf *leaf = &pool->leaves[0];
    while (leaf->next && pool->leaves[leaf->next].low <= key)
        leaf = &pool->leaves[leaf->next];
    return *leaf;
}

u64 entry_of(const Leaf &leaf, u64 key)
{
    for (u64 i = 0; i < ENTRIES; i++)
        if (counts(leaf, i) && leaf.keys[i] == key)
            return i;
    return ENTRIES;
}

/// A leaf that is not in the chain; 0 if there is none. Found by looking, so that no crash can lose one.
u64 take()
{
    static bool is_used[LEAVES];
    std::fill(is_used, is_used + LEAVES, false);
    for (u64 at = 0;;) {
        is_used[at] = true;
        at = pool->leaves[at].next;
        if (!at)
            break;
    }
    for (u64 at = 1; at < LEAVES; at++)
        if (!is_used[at])
            return at;
    return 0;
}

bool split(Leaf &leaf)
{
    u64 number = take();
    if (!number)
        return false;
    Leaf &fresh = pool->leaves[number];
    bool again = fresh.low != 0;
    u64 sorted[ENTRIES];
    for (u64 i = 0; i < ENTRIES; i++)
        sorted[i] = leaf.keys[i];
    std::sort(sorted, sorted + ENTRIES);
    u64 low = sorted[ENTRIES / 2], count = 0;
    for (u64 i = 0; i < ENTRIES; i++)
        if (leaf.keys[i] >= low) {
            PM_PUT(fresh.keys[count], leaf.keys[i]); //~ 1 ordering
            PM_PUT(fresh.values[count], leaf.values[i]); //~ 1 ordering 2 durability
            count++;
        }
    PM_PUT(fresh.low, low); //~ 1 ordering
    PM_PUT(fresh.next, leaf.next); //~ 1 ordering
    PM_PUT(fresh.used, (u64{1} << count) - 1); //~ 1 ordering
    flush(&fresh, BUG == 2 && again ? 2 * 64 : sizeof fresh);
    if (BUG != 1)
        fence();
    PM_PUT(leaf.next, number); //~ 1 ordering
    persist(&leaf.next, 8);
    return true;
}

kv::Answer insert(u64 key, u64 value)
{
    Leaf *leaf = &leaf_of(key);
    if (entry_of(*leaf, key) < ENTRIES)
        return kv::EXISTS;
    u64 i = 0;
    while (i < ENTRIES && counts(*leaf, i))
        i++;
    if (i == ENTRIES) {
        if (!split(*leaf))
            return kv::FULL;
        return insert(key, value);
    }
    if (leaf->used >> i & 1) {
        PM_PUT(leaf->used, leaf->used & ~(u64{1} << i));
        persist(&leaf->used, 8);
    }
    PM_PUT(leaf->keys[i], key);
    persist(&leaf->keys[i], 8);
    PM_PUT(leaf->values[i], value);
    persist(&leaf->values[i], 8);
    PM_PUT(leaf->used, leaf->used | u64{1} << i);
    persist(&leaf->used, 8);
    return kv::DONE;
}

/// Forgets what splits left behind in a leaf.
void clean(Leaf &leaf, u64 end)
{
    u64 used = leaf.used;
    for (u64 i = 0; i < ENTRIES; i++)
        if (leaf.keys[i] >= end)
            used &= ~(u64{1} << i);
    PM_PUT(leaf.used, used); //~ 3 ordering
    persist(&leaf.used, 8);
}

kv::Answer erase(u64 key)
{
    Leaf &leaf = leaf_of(key);
    u64 i = entry_of(leaf, key);
    if (i == ENTRIES)
        return kv::MISSING;
    PM_PUT(leaf.used, leaf.used & ~(u64{1} << i));
    persist(&leaf.used, 8);
    for (i = 0; i < ENTRIES; i++)
        if (counts(leaf, i))
            return kv::DONE;
    u64 number = static_cast<u64>(&leaf - pool->leaves), before = 0;
    if (number == 0)
        return kv::DONE;
    while (pool->leaves[before].next != number)
        before = pool->leaves[before].next;
    Leaf &prior = pool->leaves[before];
    u64 end = leaf.low;
    // Entries that the leaf itself has left behind may not come back either.
    if (BUG != 3)
        clean(prior, end);
    PM_PUT(prior.next, leaf.next); //~ 3 ordering
    persist(&prior.next, 8);
    if (BUG == 3)
        clean(prior, end);
    return kv::DONE;
}

kv::Answer update(u64 key, u64 value)
{
    Leaf &leaf = leaf_of(key);
    u64 i = entry_of(leaf, key);
    if (i == ENTRIES)
        return kv::MISSING;
    PM_PUT(leaf.values[i], value);
    persist(&leaf.values[i], 8);
    return kv::DONE;
}

const char *find(u64 key)
{
    static char text[24];
    const Leaf &leaf = leaf_of(key);
    u64 i = entry_of(leaf, key);
    if (i == ENTRIES)
        return nullptr;
    std::snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(leaf.values[i]));
    return text;
}

u64 count()
{
    u64 total = 0;
    for (u64 at = 0;;) {
        for (u64 i = 0; i < ENTRIES; i++)
            total += counts(pool->leaves[at], i);
        at = pool->leaves[at].next;
        if (!at)
            return total;
    }
}

void start(void *pm, bool)
{
    pool = static_cast<Pool *>(pm);
}

} // namespace

int main(int argc, char **argv)
{
    static constexpr kv::Map MAP{insert, update, erase, find, count, nullptr};
    return kv::main(argc, argv, sizeof(Pool), start, MAP);
}
