//! A table of two levels (after Level hashing): tokens commit, items move between buckets, growing drains the lower level.
//! variants: 11
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
//
// A bucket's token word says which of its slots hold items; it shares a line with the keys, so that a key stored before its
// token reaches PM before it. Values lie in lines of their own and are durable first. An item that is moved or updated is for
// a while in two places; recovery keeps the newer one.
#include "../include/pm.hpp"

using namespace pm;

namespace {

constexpr u64 MAGIC = 0x6c6576656c303031;
constexpr u64 KEYS = 32;
constexpr u64 SLOTS = 3;
constexpr u64 LEVELS = 5;

struct Value {
    u64 version;
    u64 words[3];
};

struct Bucket {
    alignas(64) u64 token;
    u64 keys[SLOTS];
    alignas(64) Value values[SLOTS];
};

/// Written in one piece.
union State {
    u64 word;
    struct {
        /// The lower level; the upper one is the next.
        u64 generation : 32;
        u64 is_growing : 1;
    };
};

struct Pool {
    alignas(64) u64 magic;
    /// Operations that are finished.
    alignas(64) u64 ack;
    alignas(64) u64 state;
    /// Level n has 2^n buckets and begins at bucket 2^n - 1.
    Bucket buckets[(1 << LEVELS) - 1];
};

Pool *pool;

struct Place {
    Bucket *bucket;
    u64 slot;
    explicit operator bool() const { return bucket != nullptr; }
    bool operator==(const Place &other) const { return bucket == other.bucket && slot == other.slot; }
    u64 bit() const { return u64{1} << slot; }
    Value &value() const { return bucket->values[slot]; }
};

struct Op {
    char kind;
    u64 key;
};

constexpr Op OPS[] = {
    {'i', 1},  {'i', 2},  {'i', 3},  {'u', 2},  {'i', 4},  {'d', 1},  {'i', 5},  {'i', 6},  {'u', 4},
    {'i', 7},  {'i', 8},  {'i', 9},  {'d', 3},  {'u', 7},  {'i', 10}, {'i', 11}, {'i', 12}, {'i', 13},
    {'u', 13}, {'i', 14}, {'i', 15}, {'i', 16}, {'i', 17}, {'d', 9},  {'i', 18}, {'i', 19}, {'u', 5},
    {'i', 20}, {'d', 20}, {'u', 12}, {'d', 14}, {'i', 21}, {'i', 22}, {'i', 23}, {'u', 22}, {'d', 21}, {'u', 16}, {'u', 10},
};
constexpr u64 OP_COUNT = sizeof OPS / sizeof *OPS;

State state()
{
    return State{pool->state};
}

Bucket *level(u64 number)
{
    return &pool->buckets[(u64{1} << number) - 1];
}

/// One of the two buckets of a level that may hold the key.
Bucket *candidate(u64 number, u64 key, unsigned which)
{
    u64 hash = (key + 1) * (which ? 0x9e3779b97f4a7c15u : 0xc2b2ae3d27d4eb4fu);
    return level(number) + ((hash >> 40) & ((u64{1} << number) - 1));
}

Place free_slot(Bucket *bucket)
{
    for (u64 slot = 0; slot < SLOTS; slot++)
        if (!(bucket->token >> slot & 1))
            return {bucket, slot};
    return {nullptr, 0};
}

/// Where the key is in this level, other than at `except`.
Place find_in(u64 number, u64 key, Place except)
{
    for (unsigned which = 0; which < 2; which++)
        for (u64 slot = 0; slot < SLOTS; slot++) {
            Place place{candidate(number, key, which), slot};
            if (place.bucket->token & place.bit() && place.bucket->keys[slot] == key && !(place == except))
                return place;
        }
    return {nullptr, 0};
}

Place find(u64 key, Place except)
{
    Place upper = find_in(state().generation + 1, key, except);
    return upper ? upper : find_in(state().generation, key, except);
}

Place free_in(u64 number, u64 key)
{
    Place first = free_slot(candidate(number, key, 0));
    return first ? first : free_slot(candidate(number, key, 1));
}

/// `is_last`: nothing that follows relies on the item.
void place(Place at, u64 key, const Value &value, bool is_last)
{
    Bucket *bucket = at.bucket;
    bucket->values[at.slot] = value; //~ 1 ordering
    flush(&bucket->values[at.slot], sizeof value);
#if !HAS_BUG(1)
    fence();
#endif
#if HAS_BUG(3)
    bucket->token = bucket->token | at.bit(); //~ 3 ordering
    in_order();
    bucket->keys[at.slot] = key; //~ 3 ordering
#else
    bucket->keys[at.slot] = key; //~ 8 ordering
    in_order();
    bucket->token = bucket->token | at.bit(); //~ 8 ordering
#endif
    flush(bucket, 64);
    if (!HAS_BUG(8) || is_last)
        fence();
}

void clear(Place at)
{
    at.bucket->token = at.bucket->token & ~at.bit();
    persist(&at.bucket->token, 8);
}

void move(Place from, Place to)
{
    u64 key = from.bucket->keys[from.slot];
#if HAS_BUG(11)
    from.bucket->token = from.bucket->token & ~from.bit(); //~ 11 ordering
    persist(&from.bucket->token, 8);
    Value value = from.value();
    to.value() = value; //~ 11 ordering
    persist(&to.value(), sizeof value);
    to.bucket->keys[to.slot] = key; //~ 11 ordering
    in_order();
    to.bucket->token = to.bucket->token | to.bit(); //~ 11 ordering
    persist(to.bucket, 64);
#else
    place(to, key, from.value(), false);
    clear(from);
#endif
}

/// Moves the items of the lower level up. An item that is up already was moved before a crash.
void drain(u64 generation)
{
    for (u64 b = 0; b < u64{1} << generation; b++)
        for (u64 slot = 0; slot < SLOTS; slot++) {
            Place from{level(generation) + b, slot};
            if (!(from.bucket->token & from.bit()))
                continue;
            u64 key = from.bucket->keys[slot];
            Place there = find_in(generation + 2, key, {nullptr, 0});
            if (!there)
                there = find_in(generation + 1, key, {nullptr, 0});
            if (there) {
                clear(from);
                continue;
            }
            Place to = free_in(generation + 2, key);
            if (!to)
                to = free_in(generation + 1, key);
            if (!to)
                fail("no room to grow");
            move(from, to);
        }
}

void set_state(u64 generation, bool is_growing)
{
    State next{0};
    next.generation = generation;
    next.is_growing = is_growing;
    pool->state = next.word;
    persist(&pool->state, 8);
}

void grow()
{
    u64 generation = state().generation;
    if (generation + 3 > LEVELS)
        fail("too many items");
    set_state(generation, true);
    drain(generation);
    set_state(generation + 1, false);
}

/// A free slot for the key in the upper level, made by moving another item to its other bucket.
Place displace(u64 number, u64 key)
{
    for (unsigned which = 0; which < 2; which++)
        for (u64 slot = 0; slot < SLOTS; slot++) {
            Place from{candidate(number, key, which), slot};
            u64 other = from.bucket->keys[slot];
            bool is_second = candidate(number, other, 0) == from.bucket;
            Place to = free_slot(candidate(number, other, is_second));
            if (to && to.bucket != from.bucket) {
                move(from, to);
                return from;
            }
        }
    return {nullptr, 0};
}

Place room_for(u64 key)
{
    for (;;) {
        u64 generation = state().generation;
        Place at = free_in(generation + 1, key);
        if (!at)
            at = free_in(generation, key);
        if (!at)
            at = displace(generation + 1, key);
        if (at)
            return at;
        grow();
    }
}

Value value_of(u64 key, u64 version)
{
    return {version, {mix(key, version), mix(key + 1, version), mix(key + 2, version)}};
}

void update(u64 key, u64 version)
{
    Place old = find(key, {nullptr, 0});
    Value value = value_of(key, version);
#if HAS_BUG(4)
    old.value().version = version; //~ 4 atomicity
    persist(&old.value().version, 8);
    for (u64 i = 0; i < 3; i++)
        old.value().words[i] = value.words[i]; //~ 4 atomicity
    persist(&old.value(), sizeof value);
    return;
#endif
    Place beside = free_slot(old.bucket);
    if (beside) {
        Bucket *bucket = old.bucket;
        beside.value() = value; //~ 2 durability
#if !HAS_BUG(2)
        persist(&beside.value(), sizeof value);
#endif
        bucket->keys[beside.slot] = key;
        in_order();
#if HAS_BUG(5)
        bucket->token = bucket->token & ~old.bit(); //~ 5 atomicity
        persist(bucket, 64);
        bucket->token = bucket->token | beside.bit(); //~ 5 atomicity
#else
        bucket->token = bucket->token ^ (old.bit() | beside.bit());
#endif
        persist(bucket, 64);
    } else {
        Place at = room_for(key);
        place(at, key, value, true);
        clear(find(key, at));
    }
}

void remove(u64 key)
{
    Place at = find(key, {nullptr, 0});
    at.bucket->token = at.bucket->token & ~at.bit(); //~ 6 ordering 7 durability
#if HAS_BUG(6)
    flush(&at.bucket->token, 8);
#elif !HAS_BUG(7)
    persist(&at.bucket->token, 8);
#endif
}

void run(const char *path)
{
    pool = static_cast<Pool *>(create(path, sizeof(Pool)));
    pool->magic = MAGIC;
    persist(&pool->magic, 8);
    for (u64 i = 0; i < OP_COUNT; i++) {
        u64 key = OPS[i].key;
        if (OPS[i].kind == 'i')
            place(room_for(key), key, value_of(key, i + 1), true);
        else if (OPS[i].kind == 'u')
            update(key, i + 1);
        else
            remove(key);
        pool->ack = i + 1;
        persist(&pool->ack, 8);
    }
}

void resume_growing()
{
    u64 generation = state().generation;
    if (generation + 3 > LEVELS)
        fail("the generation");
#if HAS_BUG(9)
    u64 buckets = u64{1} << generation;
    u64 next = 0;
    while (!level(generation)[next].token) //~ 9 recovery
        next = (next + 1) % buckets;
#endif
    drain(generation);
    set_state(generation + 1, false);
}

/// Of two items with the same key the older one, or either of two that are equal, goes.
void drop_copies()
{
    Place seen[KEYS] = {};
    u64 lowest = (u64{1} << state().generation) - 1;
    u64 end = (u64{1} << (state().generation + 2)) - 1;
    for (u64 b = lowest; b < end; b++)
        for (u64 slot = 0; slot < SLOTS; slot++) {
            Place at{&pool->buckets[b], slot};
            u64 key = at.bucket->keys[slot];
            if (!(at.bucket->token & at.bit()) || key >= KEYS)
                continue;
            Place first = seen[key];
            if (!first) {
                seen[key] = at;
                continue;
            }
            const Value *newer = &at.value();
            if (at.value().version < first.value().version)
                newer = &first.value();
#if HAS_BUG(10)
            else if (at.value().version == first.value().version)
                newer = nullptr;
#endif
            if (newer->words[0] == mix(key, newer->version)) { //~ 10 recovery
                bool is_first_newer = newer == &first.value();
                clear(is_first_newer ? at : first);
                seen[key] = is_first_newer ? first : at;
            }
        }
}

void collect(u64 (&versions)[KEYS])
{
    u64 generation = state().generation;
    for (u64 number = 0; number < LEVELS; number++)
        for (u64 b = 0; b < u64{1} << number; b++) {
            Bucket *bucket = level(number) + b;
            if (bucket->token && (number < generation || number > generation + 1))
                fail("items in a level that is not in use");
            for (u64 slot = 0; slot < SLOTS; slot++) {
                if (!(bucket->token >> slot & 1))
                    continue;
                u64 key = bucket->keys[slot];
                if (key >= KEYS || (candidate(number, key, 0) != bucket && candidate(number, key, 1) != bucket))
                    fail("a key in the wrong bucket");
                if (versions[key])
                    fail("a key twice");
                const Value &value = bucket->values[slot];
                Value right = value_of(key, value.version);
                if (std::memcmp(&value, &right, sizeof value) != 0)
                    fail("a value");
                versions[key] = value.version;
            }
        }
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
    if (state().is_growing)
        resume_growing();
    if (state().generation + 2 > LEVELS)
        fail("the generation");
    drop_copies();
    u64 versions[KEYS] = {};
    collect(versions);
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
