//! A lock-free sorted list (after Harris) with two threads; a link is tagged until it is durable, and readers help.
//! variants: 9
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
//
// A link is the offset of a node, with two tags: MARK (the node that holds this link is removed) and DIRTY (this link may
// not be durable yet: whoever reads it flushes it before relying on it). The threads own the even and the odd keys, so
// that each has a sequence of operations to be compared with. They take turns at fixed places, so that each run is the same;
// one place is the middle of an insertion, when the link is there and not durable.
include!("../include/pm.rs");
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

const MAGIC: u64 = 0x6c69737430303031;
const THREADS: usize = 2;
const NODES: usize = 24;
const KEYS: usize = 40;
const MARK: u64 = 1;
const DIRTY: u64 = 2;

#[repr(C)]
struct Node {
    key: u64,
    version: u64,
    next: u64,
    payload: Line<[u64; 8]>,
}

#[repr(C)]
struct Pool {
    magic: Line<u64>,
    /// Operations that are finished, for each thread.
    acks: [Line<u64>; THREADS],
    head: Line<u64>,
    nodes: [Node; THREADS * NODES],
}

#[derive(Clone, Copy)]
enum Op {
    Insert(u64),
    Replace(u64),
    Remove(u64),
}
use Op::*;

#[rustfmt::skip]
const OPS: [&[Op]; THREADS] = [
    &[
        Insert(10), Insert(20), Insert(4), Replace(20), Insert(30), Remove(10), Insert(16), Remove(4), Insert(6),
        Replace(30), Insert(36), Remove(16), Remove(36),
    ],
    &[
        Insert(11), Insert(21), Insert(5), Replace(21), Insert(31), Remove(11), Insert(17), Replace(17), Remove(31),
        Insert(13), Insert(37), Remove(13), Insert(35),
    ],
];

/// Whose turn it is, and who has ended.
static TURN: AtomicUsize = AtomicUsize::new(0);
static ENDED: [AtomicBool; THREADS] = [AtomicBool::new(false), AtomicBool::new(false)];

fn let_other_run(me: usize) {
    if ENDED[1 - me].load(Ordering::Acquire) {
        return;
    }
    TURN.store(1 - me, Ordering::Release);
    await_turn(me);
}

fn await_turn(me: usize) {
    while TURN.load(Ordering::Acquire) != me {
        std::thread::yield_now();
    }
}

/// `lock cmpxchg`, written out: the line is that of the caller.
#[collapse_debuginfo(yes)]
macro_rules! cas {
    ($link:expr, $old:expr, $new:expr) => {{
        let old: u64 = $old;
        let seen: u64;
        std::arch::asm!("lock cmpxchg [{}], {}", in(reg) $link, in(reg) $new, inout("rax") old => seen, options(nostack));
        seen == old
    }};
}

#[derive(Clone, Copy)]
struct List {
    pool: *mut Pool,
}

// SAFETY: what threads share is changed by compare-and-swap only.
unsafe impl Send for List {}

impl List {
    /// Null for the offset 0.
    fn node(&self, link: u64) -> *mut Node {
        let offset = (link & !(MARK | DIRTY)) as usize;
        let node = if offset == 0 { std::ptr::null_mut() } else { self.pool.wrapping_byte_add(offset).cast() };
        std::hint::black_box(node)
    }

    fn offset_of(&self, node: *const Node) -> u64 {
        node as u64 - self.pool as u64
    }

    fn head(&self) -> *mut u64 {
        // SAFETY: inside the pool.
        unsafe { &raw mut (*self.pool).head.0 }
    }

    /// The link, without DIRTY and durable.
    fn load(&self, link: *mut u64) -> u64 {
        // SAFETY: links are aligned words of the pool.
        let value = unsafe { AtomicU64::from_ptr(link) }.load(Ordering::Acquire);
        if value & DIRTY != 0 && !has_bug(3) {
            persist(link, 8);
            // SAFETY: as above.
            let _ = unsafe { cas!(link, value, value & !DIRTY) };
        }
        value & !DIRTY
    }

    /// Changes a link if it is still `old`; it is durable when this returns.
    fn swing(&self, link: *mut u64, old: u64, new: u64, pause: Option<usize>) -> bool {
        // SAFETY: links are aligned words of the pool.
        unsafe {
            let current = AtomicU64::from_ptr(link).load(Ordering::Acquire);
            if current & !DIRTY != old || !cas!(link, current, new | DIRTY) {
                //~^ 3 ordering 5 atomicity
                return false;
            }
            if let Some(me) = pause {
                let_other_run(me);
            }
            persist(link, 8);
            let _ = cas!(link, new | DIRTY, new);
        }
        true
    }

    /// The link that leads to the first node whose key is not smaller, and its value. Takes removed nodes out.
    fn find(&self, key: u64) -> (*mut u64, u64) {
        let mut link = self.head();
        let mut value = self.load(link);
        // SAFETY: offsets in links are those of nodes.
        unsafe {
            while value != 0 {
                let node = self.node(value);
                let next = self.load(&raw mut (*node).next);
                if next & MARK != 0 {
                    self.swing(link, value, next & !MARK, None);
                    link = self.head();
                    value = self.load(link);
                } else if (*node).key >= key {
                    break;
                } else {
                    link = &raw mut (*node).next;
                    value = next;
                }
            }
        }
        (link, value)
    }
}

/// One of the threads, with nodes of its own.
struct Worker {
    list: List,
    me: usize,
    used: usize,
}

impl Worker {
    fn allocate(&mut self) -> *mut Node {
        self.used += 1;
        // SAFETY: inside the pool; there are more nodes than operations.
        unsafe { (&raw mut (*self.list.pool).nodes).cast::<Node>().add(self.me * NODES + self.used - 1) }
    }

    fn insert(&mut self, key: u64, version: u64) {
        let node = self.allocate();
        loop {
            let (link, value) = self.list.find(key);
            // SAFETY: inside the pool, and nobody else sees the node yet.
            unsafe {
                for i in 0..8 {
                    (*node).payload.0[i] = mix(key + i as u64, version); //~ 1 ordering
                }
                (*node).key = key; //~ 1 ordering
                (*node).version = version; //~ 1 ordering
                (*node).next = value; //~ 1 ordering
                in_order();
            }
            if !has_bug(1) {
                persist(node, size_of::<Node>());
            }
            let pause = (!has_bug(1) && self.me == 0 && version % 2 == 1).then_some(self.me);
            let is_in = self.list.swing(link, value, self.list.offset_of(node), pause);
            if has_bug(1) {
                persist(node, size_of::<Node>());
            }
            if is_in {
                return;
            }
        }
    }

    /// One swing removes the old node and puts the new one behind it.
    fn replace(&mut self, key: u64, version: u64) {
        if has_bug(5) {
            self.remove(key);
            self.insert(key, version);
            return;
        }
        let node = self.allocate();
        loop {
            let (link, value) = self.list.find(key);
            let old = self.list.node(value);
            // SAFETY: inside the pool, and nobody else sees the new node yet.
            unsafe {
                if has_bug(6) {
                    (*old).version = version; //~ 6 atomicity
                    persist(old, 64);
                    for i in 0..8 {
                        (*old).payload.0[i] = mix(key + i as u64, version); //~ 6 atomicity
                    }
                    persist(&raw const (*old).payload, 64);
                    return;
                }
                let next = self.list.load(&raw mut (*old).next);
                for i in 0..8 {
                    (*node).payload.0[i] = mix(key + i as u64, version); //~ 2 durability
                }
                (*node).key = key;
                (*node).version = version;
                if !has_bug(9) {
                    (*node).next = next;
                }
                persist(node, if has_bug(2) { 64 } else { size_of::<Node>() });
                if has_bug(9) {
                    (*node).next = next; //~ 9 durability
                    in_order();
                }
                let new = self.list.offset_of(node);
                if next & MARK == 0 && self.list.swing(&raw mut (*old).next, next, new | MARK, None) {
                    self.list.swing(link, value, new, None);
                    return;
                }
            }
        }
    }

    fn remove(&mut self, key: u64) {
        loop {
            let (link, value) = self.list.find(key);
            // SAFETY: inside the pool.
            unsafe {
                let node = self.list.node(value);
                let next = self.list.load(&raw mut (*node).next);
                if has_bug(4) {
                    if cas!(&raw mut (*node).next, next, next | MARK) {
                        //~^ 4 durability
                        return;
                    }
                } else if self.list.swing(&raw mut (*node).next, next, next | MARK, None) {
                    self.list.swing(link, value, next, None);
                    return;
                }
            }
        }
    }

    fn work(mut self) {
        await_turn(self.me);
        for (op, version) in OPS[self.me].iter().zip(1..) {
            match *op {
                Insert(key) => self.insert(key, version),
                Replace(key) => self.replace(key, version),
                Remove(key) => self.remove(key),
            }
            // SAFETY: inside the pool; each thread has its own.
            unsafe {
                let ack = &raw mut (*self.list.pool).acks[self.me].0;
                *ack = version;
                persist(ack, 8);
            }
            let_other_run(self.me);
        }
        ENDED[self.me].store(true, Ordering::Release);
        TURN.store(1 - self.me, Ordering::Release);
    }
}

fn run(path: &str) {
    let list = List { pool: create::<Pool>(path) };
    // SAFETY: the mapping holds a `Pool`.
    unsafe {
        (*list.pool).magic.0 = MAGIC;
        persist(list.pool, 8);
    }
    let start = |me| std::thread::spawn(move || Worker { list: { list }, me, used: 0 }.work());
    let threads = [start(0), start(1)];
    for thread in threads {
        thread.join().unwrap_or_else(|_| fail("a thread panicked"));
    }
}

/// Takes removed nodes out and tags off.
fn repair(list: &List) {
    let mut link = list.head();
    let mut steps = 0;
    // SAFETY: every link is checked before it is followed.
    unsafe {
        while *link & !DIRTY != 0 {
            let value = *link & !DIRTY;
            let first = size_of::<Pool>() - size_of::<[Node; THREADS * NODES]>();
            let is_node = value as usize >= first && (value as usize - first) % size_of::<Node>() == 0;
            if !is_node || value as usize >= size_of::<Pool>() {
                fail("a link leads nowhere");
            }
            steps += 1;
            if steps > 4 * THREADS * NODES && !has_bug(8) {
                fail("the list is a ring");
            }
            let next = (*list.node(value)).next & !DIRTY;
            if next & MARK == 0 {
                link = &raw mut (*list.node(value)).next;
                continue;
            }
            if has_bug(7) && (*list.node(next)).key < (*list.node(value)).key {
                //~^ 7 recovery
                fail("the order of keys behind a removed node");
            }
            if has_bug(8) && link == list.head() {
                continue; //~ 8 recovery
            }
            *link = next & !MARK;
            persist(link, 8);
        }
    }
}

fn collect(list: &List, versions: &mut [u64; KEYS]) {
    // SAFETY: `repair` has checked all links.
    unsafe {
        let mut value = *list.head() & !DIRTY;
        let mut last = 0;
        while value != 0 {
            let node = &*list.node(value);
            if node.key <= last || node.key >= KEYS as u64 {
                fail("the order of keys");
            }
            if (0..8).any(|i| node.payload.0[i] != mix(node.key + i as u64, node.version)) {
                fail("a payload");
            }
            last = node.key;
            versions[node.key as usize] = node.version;
            value = node.next & !DIRTY;
        }
    }
}

fn is_after(thread: usize, ops: usize, versions: &[u64; KEYS]) -> bool {
    let mut model = [0; KEYS];
    for (op, version) in OPS[thread][..ops.min(OPS[thread].len())].iter().zip(1..) {
        match *op {
            Insert(key) | Replace(key) => model[key as usize] = version,
            Remove(key) => model[key as usize] = 0,
        }
    }
    (thread..KEYS).step_by(THREADS).all(|key| model[key] == versions[key])
}

fn check(path: &str) {
    let pool = reopen::<Pool>(path);
    // SAFETY: the mapping holds a `Pool`; any bytes are one.
    let Some(pool) = pool.filter(|pool| unsafe { (**pool).magic.0 } == MAGIC) else {
        println!("empty");
        return;
    };
    let list = List { pool };
    repair(&list);
    let mut versions = [0; KEYS];
    collect(&list, &mut versions);
    for thread in 0..THREADS {
        // SAFETY: as above.
        let ack = unsafe { (*pool).acks[thread].0 } as usize;
        if !is_after(thread, ack, &versions) && !is_after(thread, ack + 1, &versions) {
            fail("operations are lost");
        }
    }
    println!("ok");
}

fn main() {
    command(run, check);
}
