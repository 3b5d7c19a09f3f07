//! A slab allocator: a bitmap per slab, roots that own the objects, and an intent record that is redone after a crash.
//! variants: 10
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
//
// An operation writes the new object, says in the intent what is going to change, changes it and clears the intent. The
// first line of the intent ends with its state, so that the order of stores within a line makes it whole; its second
// line, which only swaps need, is durable before.
#include "../include/pm.hpp"

using namespace pm;

namespace {

constexpr u64 MAGIC = 0x736c616230303031;
constexpr u64 ROOTS = 16;
constexpr u64 SLABS = 8;
constexpr u64 SLAB_BYTES = 1024;

template <u64 BYTES> struct Object {
    u64 bytes;
    u64 version;
    u64 words[BYTES / 8 - 2];
};

struct Slab {
    alignas(64) u64 object_bytes;
    alignas(64) u64 used;
    alignas(64) u8 data[SLAB_BYTES];
};

struct Intent {
    alignas(64) u64 take;
    u64 give_back;
    u64 root;
    u64 object;
    bool is_swap : 1;
    u64 state;
    alignas(64) u64 other_root;
    u64 other_object;
};

struct Pool {
    alignas(64) u64 magic;
    /// Operations that are finished.
    alignas(64) u64 ack;
    Intent intent;
    alignas(64) u64 slab_count;
    alignas(64) u64 roots[ROOTS];
    Slab slabs[SLABS];
};

Pool *pool;

struct Op {
    char kind;
    u64 root;
    /// Bytes, or the other root of a swap.
    u64 argument;
};

constexpr Op OPS[] = {
    {'a', 0, 64},  {'a', 1, 64},  {'a', 2, 128}, {'a', 3, 256}, {'s', 0, 2},   {'f', 1, 0},   {'a', 4, 256},
    {'r', 2, 64},  {'a', 5, 128}, {'a', 6, 64},  {'s', 4, 5},   {'f', 5, 0},   {'a', 1, 128}, {'a', 7, 256},
    {'a', 8, 256}, {'a', 9, 256}, {'a', 10, 64}, {'r', 0, 128}, {'f', 6, 0},   {'s', 8, 1},   {'a', 11, 64},
    {'r', 3, 64},  {'f', 2, 0},   {'a', 12, 128}, {'s', 12, 13},
};
constexpr u64 OP_COUNT = sizeof OPS / sizeof *OPS;

u64 offset_of(const void *thing)
{
    return static_cast<u64>(static_cast<const u8 *>(thing) - reinterpret_cast<const u8 *>(pool));
}

u64 *words_at(u64 offset)
{
    return reinterpret_cast<u64 *>(reinterpret_cast<u8 *>(pool) + offset);
}

/// None for an offset outside of all slabs.
Slab *slab_of(u64 offset)
{
    u64 first = offset_of(pool->slabs);
    return offset < first || offset >= sizeof(Pool) ? nullptr : &pool->slabs[(offset - first) / sizeof(Slab)];
}

u64 bit_of(const Slab *slab, u64 offset)
{
    return u64{1} << ((offset - offset_of(slab->data)) / slab->object_bytes);
}

Slab *add_slab(u64 object_bytes)
{
    Slab *slab = &pool->slabs[pool->slab_count];
    slab->object_bytes = object_bytes; //~ 6 durability 7 ordering
#if HAS_BUG(7)
    flush(&slab->object_bytes, 8);
#elif !HAS_BUG(6)
    persist(&slab->object_bytes, 8);
#endif
    pool->slab_count++;
    persist(&pool->slab_count, 8);
    return slab;
}

u64 find_free(u64 object_bytes)
{
    u64 all = SLAB_BYTES / object_bytes;
    Slab *slab = nullptr;
    for (u64 i = 0; i < pool->slab_count && !slab; i++)
        if (pool->slabs[i].object_bytes == object_bytes && pool->slabs[i].used != (u64{1} << all) - 1)
            slab = &pool->slabs[i];
    if (!slab)
        slab = add_slab(object_bytes);
    return offset_of(slab->data) + static_cast<u64>(__builtin_ctzll(~slab->used)) * object_bytes;
}

template <u64 BYTES> u64 construct(u64 version)
{
    u64 offset = find_free(BYTES);
    auto *object = reinterpret_cast<Object<BYTES> *>(words_at(offset));
    PM_STREAM(object->bytes, BYTES);     //~ 1 ordering
    PM_STREAM(object->version, version); //~ 1 ordering
    for (u64 i = 0; i < BYTES / 8 - 2; i++)
        PM_STREAM(object->words[i], mix(i, version)); //~ 1 ordering
#if !HAS_BUG(1)
    fence();
#endif
    return offset;
}

u64 construct(u64 bytes, u64 version)
{
    return bytes == 64 ? construct<64>(version) : bytes == 128 ? construct<128>(version) : construct<256>(version);
}

void commit(u64 take, u64 give_back, u64 root, u64 object)
{
    Intent *intent = &pool->intent;
    intent->take = take;
    intent->give_back = give_back;
    intent->root = root;
    intent->object = object;
    intent->is_swap = false;
    in_order();
    intent->state = 1;
    persist(intent, 64);
    if (take) {
        Slab *slab = slab_of(take);
        slab->used |= bit_of(slab, take); //~ 4 ordering
        flush(&slab->used, 8);
    }
    if (give_back) {
        Slab *slab = slab_of(give_back);
        slab->used &= ~bit_of(slab, give_back); //~ 3 durability 4 ordering
#if HAS_BUG(3)
        if (!take || slab_of(take) == slab)
#endif
            flush(&slab->used, 8);
    }
    pool->roots[root] = object; //~ 4 ordering
    flush(&pool->roots[root], 8);
#if !HAS_BUG(4)
    fence();
#endif
    intent->state = 0;
    persist(&intent->state, 8);
}

void give_back(u64 root)
{
#if HAS_BUG(2)
    u64 object = pool->roots[root];
    pool->roots[root] = 0; //~ 2 atomicity
    persist(&pool->roots[root], 8);
    Slab *slab = slab_of(object);
    slab->used &= ~bit_of(slab, object); //~ 2 atomicity
    persist(&slab->used, 8);
#else
    commit(0, pool->roots[root], root, 0);
#endif
}

void swap(u64 a, u64 b)
{
    u64 from_a = pool->roots[a];
    u64 from_b = pool->roots[b];
#if HAS_BUG(10)
    pool->roots[a] = from_b; //~ 10 atomicity
    persist(&pool->roots[a], 8);
    pool->roots[b] = from_a; //~ 10 atomicity
    persist(&pool->roots[b], 8);
#else
    Intent *intent = &pool->intent;
    intent->other_root = b;        //~ 5 ordering
    intent->other_object = from_a; //~ 5 ordering
#if HAS_BUG(5)
    flush(&intent->other_root, 16);
#else
    persist(&intent->other_root, 16);
#endif
    intent->take = 0;
    intent->give_back = 0;
    intent->root = a;
    intent->object = from_b;
    intent->is_swap = true;
    in_order();
    intent->state = 1;
    persist(intent, 64);
    pool->roots[a] = from_b;
    pool->roots[b] = from_a;
    flush(&pool->roots[a], 8);
    flush(&pool->roots[b], 8);
    fence();
    intent->state = 0;
    persist(&intent->state, 8);
#endif
}

void run(const char *path)
{
    pool = static_cast<Pool *>(create(path, sizeof(Pool)));
    pool->magic = MAGIC;
    persist(&pool->magic, 8);
    for (u64 i = 0; i < OP_COUNT; i++) {
        const Op &op = OPS[i];
        if (op.kind == 's') {
            swap(op.root, op.argument);
        } else if (op.kind == 'f') {
            give_back(op.root);
        } else {
            u64 object = construct(op.argument, i + 1);
            commit(object, pool->roots[op.root], op.root, object);
        }
        pool->ack = i + 1;
        persist(&pool->ack, 8);
    }
}

void redo()
{
    Intent *intent = &pool->intent;
    do {
        if (HAS_BUG(9) && intent->is_swap && !intent->object)
            continue; //~ 9 recovery
        if (intent->take) {
            Slab *slab = slab_of(intent->take);
            slab->used |= bit_of(slab, intent->take);
            flush(&slab->used, 8);
        }
        if (HAS_BUG(8) || intent->give_back) {
            Slab *slab = slab_of(intent->give_back);
            slab->used &= ~bit_of(slab, intent->give_back); //~ 8 recovery
            flush(&slab->used, 8);
        }
        pool->roots[intent->root] = intent->object;
        flush(&pool->roots[intent->root], 8);
        if (intent->is_swap) {
            pool->roots[intent->other_root] = intent->other_object;
            flush(&pool->roots[intent->other_root], 8);
        }
        fence();
        intent->state = 0;
        persist(&intent->state, 8);
    } while (HAS_BUG(9) && intent->state); //~ 9 recovery
}

bool is_object(u64 offset)
{
    const Slab *slab = slab_of(offset);
    u64 first = slab ? offset_of(slab->data) : 0;
    return slab && offset >= first && (offset - first) % slab->object_bytes == 0;
}

void check_slabs()
{
    if (pool->slab_count > SLABS)
        fail("the number of slabs");
    for (u64 i = 0; i < pool->slab_count; i++) {
        u64 bytes = pool->slabs[i].object_bytes;
        if (bytes != 64 && bytes != 128 && bytes != 256)
            fail("the class of a slab");
    }
}

void check_intent()
{
    const Intent &intent = pool->intent;
    bool ok = intent.root < ROOTS && (!intent.object || is_object(intent.object));
    ok = ok && (!intent.take || is_object(intent.take)) && (!intent.give_back || is_object(intent.give_back));
    if (intent.is_swap)
        ok = ok && intent.other_root < ROOTS && (!intent.other_object || is_object(intent.other_object));
    if (!ok)
        fail("the intent");
}

void collect(u64 (&versions)[ROOTS])
{
    u64 owned[SLABS] = {};
    for (u64 root = 0; root < ROOTS; root++) {
        u64 offset = pool->roots[root];
        if (!offset)
            continue;
        Slab *slab = slab_of(offset);
        if (!is_object(offset) || slab >= pool->slabs + pool->slab_count)
            fail("a root leads nowhere");
        u64 bit = bit_of(slab, offset);
        if (owned[slab - pool->slabs] & bit)
            fail("an object with two owners");
        owned[slab - pool->slabs] |= bit;
        const u64 *words = words_at(offset);
        if (words[0] != slab->object_bytes)
            fail("the size of an object");
        versions[root] = words[1];
        for (u64 i = 0; i < words[0] / 8 - 2; i++)
            if (words[i + 2] != mix(i, words[1]))
                fail("the content of an object");
    }
    for (u64 i = 0; i < pool->slab_count; i++)
        if (pool->slabs[i].used != owned[i])
            fail(pool->slabs[i].used & ~owned[i] ? "an object without owner" : "an object that is not taken");
}

bool is_after(u64 ops, const u64 (&versions)[ROOTS])
{
    u64 model[ROOTS] = {};
    for (u64 i = 0; i < ops && i < OP_COUNT; i++) {
        u64 &own = model[OPS[i].root];
        if (OPS[i].kind == 's') {
            u64 other = model[OPS[i].argument];
            model[OPS[i].argument] = own;
            own = other;
        } else {
            own = OPS[i].kind == 'f' ? 0 : i + 1;
        }
    }
    return std::memcmp(model, versions, sizeof model) == 0;
}

int check(const char *path)
{
    pool = static_cast<Pool *>(reopen(path, sizeof(Pool)));
    if (!pool || pool->magic != MAGIC) {
        std::puts("empty");
        return 0;
    }
    check_slabs();
    if (pool->intent.state) {
        check_intent();
        redo();
    }
    u64 versions[ROOTS] = {};
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
