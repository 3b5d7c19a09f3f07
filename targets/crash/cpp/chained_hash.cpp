//! A chained hash table that grows by copying itself, with a counter behind a dirty flag (as PMDK's hashmap_atomic has).
//! variants: 11
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
//
// Commit points are single 8-byte stores: a bucket's head or a node's `next` for insert, update and delete; `table` for
// growing, after a full copy. Which nodes are free is not stored: what no chain reaches is free.
#include "../include/pm.hpp"
#include <vector>

using namespace pm;

namespace {

constexpr u64 MAGIC = 0x6863746162303031;
constexpr u64 KEYS = 24;
constexpr u64 NODES = 64;
constexpr u64 FIRST_SIZE = 4;
constexpr unsigned SIZES = 4;

/// A place in the pool that survives remapping; 0 is nothing.
template <class T> struct Ptr {
    u64 offset;
    explicit operator bool() const { return offset != 0; }
    T *operator->() const { return get(); }
    T *get() const;
};

struct Node {
    alignas(64) u64 key;
    u64 version;
    Ptr<Node> next;
    alignas(64) u64 payload[8];
};

struct Table {
    alignas(64) u64 size;
    alignas(64) Ptr<Node> bucket[FIRST_SIZE << (SIZES - 1)];
};

struct Pool {
    alignas(64) u64 magic;
    /// Operations that are finished.
    alignas(64) u64 ack;
    alignas(64) Ptr<Table> table;
    /// `count` is right unless `dirty`.
    alignas(64) u64 count;
    u64 dirty;
    /// The size that the table is growing to.
    alignas(64) u64 growing;
    Table tables[SIZES];
    Node nodes[NODES];
};

Pool *pool;
std::vector<Node *> free_nodes;

template <class T> T *Ptr<T>::get() const
{
    return offset ? reinterpret_cast<T *>(reinterpret_cast<u8 *>(pool) + offset) : nullptr;
}

template <class T> [[gnu::noinline]] Ptr<T> ptr(const T *thing)
{
    return {static_cast<u64>(reinterpret_cast<const u8 *>(thing) - reinterpret_cast<const u8 *>(pool))};
}

struct Op {
    char kind;
    u64 key;
};

constexpr Op OPS[] = {
    {'i', 1},  {'i', 2},  {'i', 3},  {'i', 4},  {'u', 2},  {'d', 1},  {'i', 5},  {'i', 6},  {'i', 7},  {'i', 8},
    {'u', 5},  {'i', 9},  {'d', 3},  {'i', 10}, {'i', 1},  {'u', 9},  {'i', 11}, {'i', 12}, {'i', 13}, {'i', 14},
    {'d', 6},  {'i', 15}, {'i', 16}, {'i', 17}, {'u', 17}, {'i', 18}, {'d', 18}, {'i', 19}, {'u', 1},  {'d', 8},
};
constexpr u64 OP_COUNT = sizeof OPS / sizeof *OPS;

u64 bucket_index(u64 key, u64 size)
{
    return (key * 7 >> 1) % size;
}

Node *allocate()
{
    Node *node = free_nodes.back();
    free_nodes.pop_back();
    return node;
}

void counter_begin()
{
#if !HAS_BUG(4)
    pool->dirty = 1; //~ 5 ordering
#endif
#if HAS_BUG(5)
    flush(&pool->dirty, 8);
#else
    persist(&pool->dirty, 8);
#endif
}

void counter_end(u64 count)
{
    pool->count = count; //~ 4 atomicity
    in_order();
    pool->dirty = 0;
    persist(&pool->count, 16);
}

void grow()
{
    Table *old = pool->table.get();
    u64 size = old->size * 2;
    Table *table = old + 1;
    pool->growing = size;
    persist(&pool->growing, 8);
    std::memset(table->bucket, 0, size * sizeof *table->bucket);
    persist(table->bucket, size * sizeof *table->bucket);
    table->size = size; //~ 7 durability
#if !HAS_BUG(7)
    persist(&table->size, 8);
#endif
    std::vector<Node *> replaced;
    for (u64 b = 0; b < old->size; b++) {
        for (Ptr<Node> from = old->bucket[b]; from;) {
            Ptr<Node> *head = &table->bucket[bucket_index(from->key, size)];
#if HAS_BUG(8)
            Ptr<Node> following = from->next;
            from->next = *head; //~ 8 atomicity
            persist(&from->next, 8);
            *head = from; //~ 8 atomicity
            persist(head, 8);
            from = following;
#else
            Node *node = allocate();
            std::memcpy(node, from.get(), sizeof *node);
            node->next = *head;
            persist(node, sizeof *node);
            *head = ptr(node); //~ 6 ordering
            flush(head, 8);
            replaced.push_back(from.get());
            from = from->next;
#endif
        }
    }
#if !HAS_BUG(6)
    fence();
#endif
    pool->table = ptr(table);
    persist(&pool->table, 8);
    pool->growing = 0;
    persist(&pool->growing, 8);
    free_nodes.insert(free_nodes.end(), replaced.rbegin(), replaced.rend());
}

/// The pointer that leads to the node with this key.
Ptr<Node> *find(u64 key)
{
    Ptr<Node> *link = &pool->table->bucket[bucket_index(key, pool->table->size)];
    while (*link && (*link)->key != key)
        link = &(*link)->next;
    return link;
}

void insert(u64 key, u64 version)
{
    if (pool->count >= pool->table->size * 3 / 2)
        grow();
    Node *node = allocate();
    Ptr<Node> *head = &pool->table->bucket[bucket_index(key, pool->table->size)];
    node->key = key;         //~ 1 ordering
    node->version = version; //~ 1 ordering
    node->next = *head;      //~ 1 ordering
    for (u64 i = 0; i < 8; i++)
        node->payload[i] = mix(key + i, version); //~ 1 ordering
#if !HAS_BUG(1)
    persist(node, sizeof *node);
#endif
    counter_begin();
    *head = ptr(node); //~ 4 atomicity
#if HAS_BUG(1)
    flush(node, sizeof *node);
#endif
    persist(head, 8);
    counter_end(pool->count + 1);
}

void update(u64 key, u64 version)
{
    Ptr<Node> *link = find(key);
    Node *old = link->get();
#if HAS_BUG(9)
    old->version = version; //~ 9 atomicity
    persist(&old->version, 8);
    for (u64 i = 0; i < 8; i++)
        old->payload[i] = mix(key + i, version); //~ 9 atomicity
    persist(old->payload, sizeof old->payload);
#else
    Node *node = allocate();
    node->key = key;
    node->version = version;
    node->next = old->next;
    for (u64 i = 0; i < 8; i++)
        node->payload[i] = mix(key + i, version); //~ 2 durability
#if HAS_BUG(2)
    persist(node, 64);
#else
    persist(node, sizeof *node);
#endif
    *link = ptr(node);
    persist(link, 8);
    free_nodes.push_back(old);
#endif
}

void remove(u64 key)
{
    Ptr<Node> *link = find(key);
    Node *gone = link->get();
    counter_begin();
    *link = gone->next; //~ 3 ordering 4 atomicity
#if HAS_BUG(3)
    flush(link, 8);
#else
    persist(link, 8);
#endif
#if HAS_BUG(3)
    pool->count--;
    in_order();
    pool->dirty = 0;
    flush(&pool->count, 16);
#else
    counter_end(pool->count - 1);
#endif
    free_nodes.push_back(gone);
}

void run(const char *path)
{
    pool = static_cast<Pool *>(create(path, sizeof(Pool)));
    for (u64 i = NODES; i-- > 0;)
        free_nodes.push_back(&pool->nodes[i]);
    pool->tables[0].size = FIRST_SIZE;
    pool->table = ptr(&pool->tables[0]);
    persist(pool, sizeof *pool);
    pool->magic = MAGIC;
    persist(&pool->magic, 8);
    for (u64 i = 0; i < OP_COUNT; i++) {
        if (OPS[i].kind == 'i')
            insert(OPS[i].key, i + 1);
        else if (OPS[i].kind == 'u')
            update(OPS[i].key, i + 1);
        else
            remove(OPS[i].key);
        pool->ack = i + 1;
        persist(&pool->ack, 8);
    }
}

Table *checked_table()
{
    for (u64 i = 0; i < SIZES; i++)
        if (pool->table.offset == ptr(&pool->tables[i]).offset) {
            if (pool->tables[i].size != FIRST_SIZE << i)
                fail("the table's size");
            return &pool->tables[i];
        }
    fail("the place of the table");
}

void recount(const Table *table)
{
    u64 count = 0;
    for (u64 b = 0; b < table->size; b++) {
#if HAS_BUG(10)
        Ptr<Node> node = table->bucket[b];
        do
            count++;
        while ((node = node->next)); //~ 10 recovery
#else
        for (Ptr<Node> node = table->bucket[b]; node && count <= NODES; node = node->next)
            count++;
#endif
    }
    pool->count = count;
    persist(&pool->count, 8);
    pool->dirty = 0;
    persist(&pool->dirty, 8);
}

/// A copy that was not finished is given up.
void undo_growing(const Table *table)
{
    if (table->size != pool->growing) {
        Table *half = const_cast<Table *>(table) + 1;
#if HAS_BUG(11)
        while (*const_cast<volatile u64 *>(&half->size) != pool->growing) //~ 11 recovery
            ;
#endif
        for (u64 b = 0; b < pool->growing; b++)
            half->bucket[b] = {0};
        persist(half->bucket, sizeof half->bucket);
    }
    pool->growing = 0;
    persist(&pool->growing, 8);
}

void collect(const Table *table, u64 (&versions)[KEYS])
{
    u64 count = 0;
    u64 first = ptr(pool->nodes).offset;
    for (u64 b = 0; b < table->size; b++)
        for (Ptr<Node> at = table->bucket[b]; at; at = at->next) {
            if (at.offset < first || at.offset >= sizeof(Pool) || (at.offset - first) % sizeof(Node) != 0)
                fail("a link leads nowhere");
            if (++count > NODES)
                fail("a chain is a ring");
            if (at->key >= KEYS || bucket_index(at->key, table->size) != b)
                fail("a key in the wrong chain");
            if (versions[at->key])
                fail("a key twice");
            for (u64 i = 0; i < 8; i++)
                if (at->payload[i] != mix(at->key + i, at->version))
                    fail("a payload");
            versions[at->key] = at->version;
        }
    if (count != pool->count)
        fail("the counter");
}

bool is_after(u64 ops, const u64 (&versions)[KEYS])
{
    u64 model[KEYS] = {};
    for (u64 i = 0; i < ops && i < OP_COUNT; i++)
        model[OPS[i].key] = OPS[i].kind == 'd' ? 0 : i + 1;
    return std::memcmp(model, versions, sizeof model) == 0;
}

int check(const char *path)
{
    pool = static_cast<Pool *>(reopen(path, sizeof(Pool)));
    if (!pool || pool->magic != MAGIC) {
        std::puts("empty");
        return 0;
    }
    Table *table = checked_table();
    if (pool->growing) {
        if (pool->growing > FIRST_SIZE << (SIZES - 1))
            fail("the size to grow to");
        undo_growing(table);
    }
    if (pool->dirty)
        recount(table);
    u64 versions[KEYS] = {};
    collect(table, versions);
    if (!is_after(pool->ack, versions) && !is_after(pool->ack + 1, versions))
        fail("operations are lost");
    std::puts("ok");
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    if (std::strcmp(argv[2], "run") != 0)
        return check(argv[1]);
    run(argv[1]);
    return 0;
}
