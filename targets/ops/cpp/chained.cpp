//! A chained hash table with texts for values: a node is linked by one store; a larger table gets copies of all nodes.
//! variants: 7
//! grammar: kv.toml
//! together: 1 4 5 6 7 | 2 3
//! bug 1: lost keys — a chain that ends too early, insert
//! bug 2: lost keys — a half-done resize, insert that grows
//! bug 3: torn value, update
//! bug 4: resurrected key, delete
//! bug 5: lost keys — half of the table, insert that grows
//! bug 6: lost keys — a table that was not copied, insert that grows
//! bug 7: endless loop of a later operation — a chain without an end, update
#include "kv.hpp"

namespace {

constexpr u64 WORDS = 4;
constexpr u64 TABLES = 12;
constexpr u64 NODES = 12288;

struct Node {
    u64 key;
    /// The number of the next node of the chain, or 0.
    u64 next;
    u64 text[WORDS];
    u64 unused[2];
};

struct Pool {
    u64 magic;
    alignas(64) u64 table;
    /// Nodes that were ever used; number 0 is none.
    alignas(64) u64 used;
    /// Table n has 4 * 2^n chains, and the smaller tables lie before it.
    alignas(64) u64 chains[4 << TABLES];
    alignas(64) Node nodes[NODES];
};

Pool *pool;

u64 size_of(u64 table)
{
    return u64{4} << table;
}

u64 &chain_of(u64 table, u64 key)
{
    return pool->chains[size_of(table) + (kv::hash(key) & (size_of(table) - 1))];
}

/// The link to the node of the key, or the end of its chain.
u64 &link_to(u64 key)
{
    u64 *link = &chain_of(pool->table, key);
    while (*link && pool->nodes[*link].key != key)
        link = &pool->nodes[*link].next;
    return *link;
}

u64 take()
{
    u64 number = pool->used + 1;
    PM_PUT(pool->used, number);
    persist(&pool->used, 8);
    return number;
}

/// A new node that nobody sees yet.
u64 make(u64 key, const u64 (&text)[WORDS], u64 next)
{
    u64 number = take();
    Node &node = pool->nodes[number];
    PM_PUT(node.key, key); //~ 1 ordering
    for (u64 i = 0; i < WORDS; i++)
        PM_PUT(node.text[i], text[i]); //~ 1 ordering
    PM_PUT(node.next, next); //~ 1 ordering
    flush(&node, sizeof node);
    if (!HAS_BUG(1))
        fence();
    return number;
}

void copy_all(u64 next)
{
    for (u64 i = 0; i < size_of(pool->table); i++)
        for (u64 from = pool->chains[size_of(pool->table) + i]; from; from = pool->nodes[from].next) {
            const Node &node = pool->nodes[from];
            u64 &chain = chain_of(next, node.key);
            PM_PUT(chain, make(node.key, node.text, chain)); //~ 5 durability 6 ordering
        }
    flush(&pool->chains[size_of(next)], size_of(next) * (HAS_BUG(5) ? 4 : 8));
    if (!HAS_BUG(6))
        fence();
}

/// Bug 2: the nodes themselves go over, one by one.
void move_all(u64 next)
{
    for (u64 i = 0; i < size_of(pool->table); i++) {
        u64 &old = pool->chains[size_of(pool->table) + i];
        while (u64 number = old) {
            Node &node = pool->nodes[number];
            u64 &chain = chain_of(next, node.key);
            PM_PUT(old, node.next); //~ 2 atomicity
            persist(&old, 8);
            PM_PUT(node.next, chain); //~ 2 atomicity
            persist(&node.next, 8);
            PM_PUT(chain, number); //~ 2 atomicity
            persist(&chain, 8);
        }
    }
}

/// A copy that did not come to its end left its chains.
void clear(u64 table)
{
    for (u64 i = 0; i < size_of(table); i++)
        if (pool->chains[size_of(table) + i])
            PM_PUT(pool->chains[size_of(table) + i], 0);
}

u64 count()
{
    u64 sum = 0;
    for (u64 i = 0; i < size_of(pool->table); i++)
        for (u64 number = pool->chains[size_of(pool->table) + i]; number; number = pool->nodes[number].next)
            sum++;
    return sum;
}

bool grow()
{
    u64 next = pool->table + 1;
    if (next + 1 == TABLES)
        return false;
    clear(next);
    if (HAS_BUG(2))
        move_all(next);
    else
        copy_all(next);
    PM_PUT(pool->table, next); //~ 2 atomicity
    persist(&pool->table, 8);
    return true;
}

kv::Answer insert(u64 key, u64 value)
{
    if (link_to(key))
        return kv::EXISTS;
    u64 items = count();
    if (pool->used + items + 2 > NODES)
        return kv::FULL;
    if (items >= size_of(pool->table) && !grow())
        return kv::FULL;
    u64 text[WORDS];
    kv::spell(value, text);
    u64 &chain = chain_of(pool->table, key);
    PM_PUT(chain, make(key, text, chain));
    persist(&chain, 8);
    return kv::DONE;
}

/// A new node takes the place of the old one.
kv::Answer update(u64 key, u64 value)
{
    u64 &link = link_to(key);
    if (!link)
        return kv::MISSING;
    if (pool->used + 2 > NODES)
        return kv::FULL;
    u64 text[WORDS];
    kv::spell(value, text);
    Node &old = pool->nodes[link];
    if (HAS_BUG(3)) {
        for (u64 i = 0; i < WORDS; i++)
            PM_PUT(old.text[i], text[i]); //~ 3 atomicity
        persist(&old, sizeof old);
        return kv::DONE;
    }
    u64 next = old.next;
    if (HAS_BUG(7) && next) {
        // The old node goes behind the new one until the new one is in the chain.
        u64 number = make(key, text, link);
        PM_PUT(old.next, number); //~ 7 ordering
        persist(&old.next, 8);
        PM_PUT(pool->nodes[number].next, next); //~ 7 ordering
        persist(&pool->nodes[number].next, 8);
        PM_PUT(link, number); //~ 7 ordering
        persist(&link, 8);
        return kv::DONE;
    }
    PM_PUT(link, make(key, text, next));
    persist(&link, 8);
    return kv::DONE;
}

kv::Answer erase(u64 key)
{
    u64 &link = link_to(key);
    if (!link)
        return kv::MISSING;
    PM_PUT(link, pool->nodes[link].next); //~ 4 durability
    if (!HAS_BUG(4))
        persist(&link, 8);
    return kv::DONE;
}

const char *find(u64 key)
{
    u64 link = link_to(key);
    return link ? kv::read(pool->nodes[link].text, WORDS) : nullptr;
}

void start(void *pm, bool)
{
    pool = static_cast<Pool *>(pm);
}

} // namespace

int main(int argc, char **argv)
{
    return kv::main(argc, argv, sizeof(Pool), start, {insert, update, erase, find, count, nullptr});
}
