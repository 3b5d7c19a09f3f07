//! A small file system: directory entries, inodes, blocks, and a redo journal of words for what must change at once.
//! variants: 12
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
//
// What nobody can see yet (a new inode, a name, new blocks) is written and made durable first; then the journal takes the
// words that make it visible. Which blocks are free follows from the inodes. An inode without a name is one that a crash
// left behind: recovery frees it.
include!("../include/pm.rs");

const MAGIC: u64 = 0x696e6f6465303031;
const INODES: usize = 10;
const ENTRIES: usize = 10;
const BLOCKS: usize = 32;
const BLOCK_BYTES: usize = 128;
const FILE_BLOCKS: usize = 4;
const CHANGES: usize = 8;

#[repr(C, align(64))]
struct Inode {
    links: u64,
    /// In bytes.
    size: u64,
    version: u64,
    /// Number of the block plus one; 0 is none.
    blocks: [u64; FILE_BLOCKS],
}

#[repr(C, align(64))]
struct Entry {
    /// Number of the inode plus one; 0 means that the entry is free.
    inode: u64,
    name: [u8; 16],
}

#[repr(C)]
struct Change {
    offset: u64,
    word: u64,
}

#[repr(C, align(64))]
struct Journal {
    count: u64,
    is_valid: u64,
    changes: Line<[Change; CHANGES]>,
}

#[repr(C)]
struct Pool {
    magic: Line<u64>,
    /// Operations that are finished.
    ack: Line<u64>,
    /// Entries in use.
    files: Line<u64>,
    journal: Journal,
    inodes: [Inode; INODES],
    entries: [Entry; ENTRIES],
    blocks: [Line<[u8; BLOCK_BYTES]>; BLOCKS],
}

#[derive(Clone, Copy)]
enum Op {
    Create(&'static str),
    Write(&'static str, usize),
    Rename(&'static str, &'static str),
    Link(&'static str, &'static str),
    Unlink(&'static str),
}
use Op::*;

#[rustfmt::skip]
const OPS: [Op; 31] = [
    Create("a"), Write("a", 104), Create("b"), Write("b", 304), Rename("a", "c"), Write("c", 40), Link("b", "d"),
    Create("a"), Write("d", 200), Unlink("b"), Rename("a", "c"), Write("c", 512), Create("log.1"), Write("log.1", 136),
    Rename("log.1", "log.2"), Create("log.1"), Write("log.1", 24), Link("log.1", "log.3"), Unlink("log.1"),
    Rename("log.3", "log.2"), Write("log.2", 328), Create("e"), Create("f"), Write("f", 72), Unlink("c"),
    Write("e", 168), Link("e", "g"), Unlink("d"),
    Create("h"), Rename("g", "e"), Rename("h", "f"),
];

type Changes = Vec<(*mut u64, u64)>;

struct Fs {
    pool: *mut Pool,
}

fn word_of(version: u64, index: usize) -> u64 {
    mix(index as u64, version)
}

impl Fs {
    fn inode(&self, number: u64) -> *mut Inode {
        // SAFETY: numbers that are stored are checked by recovery; others come from searches.
        unsafe { (&raw mut (*self.pool).inodes).cast::<Inode>().add(number as usize - 1) }
    }

    /// Null for the number 0.
    fn block(&self, number: u64) -> *mut u64 {
        if number == 0 {
            return std::hint::black_box(std::ptr::null_mut());
        }
        // SAFETY: as for inodes.
        unsafe { (&raw mut (*self.pool).blocks).cast::<Line<[u8; BLOCK_BYTES]>>().add(number as usize - 1).cast() }
    }

    fn entries(&self) -> &[Entry; ENTRIES] {
        // SAFETY: any bytes are entries, and no borrow lives while they change.
        unsafe { &(*self.pool).entries }
    }

    fn inodes(&self) -> &[Inode; INODES] {
        // SAFETY: as for entries.
        unsafe { &(*self.pool).inodes }
    }

    fn files(&self) -> (*mut u64, u64) {
        // SAFETY: inside the pool.
        unsafe { (&raw mut (*self.pool).files.0, (*self.pool).files.0) }
    }

    fn find(&self, name: &str) -> Option<usize> {
        let has_name = |entry: &Entry| entry.inode != 0 && name_of(entry) == name;
        self.entries().iter().position(has_name)
    }

    fn entry(&self, index: usize) -> *mut Entry {
        // SAFETY: the index comes from a search.
        unsafe { (&raw mut (*self.pool).entries).cast::<Entry>().add(index) }
    }

    /// A free entry that already has the name, durable.
    fn named_entry(&self, name: &str) -> *mut Entry {
        let index = self.entries().iter().position(|entry| entry.inode == 0);
        let entry = self.entry(index.unwrap_or_else(|| fail("the directory is full")));
        let mut bytes = [0; 16];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        // SAFETY: inside the pool.
        unsafe { (*entry).name = bytes }; //~ 12 durability
        if !has_bug(12) {
            persist(entry, size_of::<Entry>());
        }
        entry
    }

    /// Blocks that no file has.
    fn free_blocks(&self, count: usize) -> [u64; FILE_BLOCKS] {
        let is_used = |block: u64| self.inodes().iter().any(|inode| inode.links != 0 && inode.blocks.contains(&block));
        let mut free = (1..=BLOCKS as u64).filter(|block| !is_used(*block));
        std::array::from_fn(|i| if i < count { free.next().unwrap_or_else(|| fail("no space")) } else { 0 })
    }

    /// Makes the changes, all or none.
    fn commit(&self, changes: &[(*mut u64, u64)]) {
        // SAFETY: the journal and all places lie in the pool.
        unsafe {
            let journal = &raw mut (*self.pool).journal;
            for (i, (place, word)) in changes.iter().enumerate() {
                (*journal).changes.0[i].offset = (*place).byte_offset_from(self.pool) as u64; //~ 6 ordering
                (*journal).changes.0[i].word = *word; //~ 6 ordering
            }
            flush(&raw const (*journal).changes, size_of_val(changes));
            if !has_bug(6) {
                fence();
            }
            (*journal).count = changes.len() as u64;
            in_order();
            (*journal).is_valid = 1;
            persist(journal, 16);
            for (i, (place, word)) in changes.iter().enumerate() {
                **place = *word; //~ 7 ordering 8 durability
                if !has_bug(8) || changes.len() != 4 || i != 3 {
                    flush(*place, 8);
                }
            }
            if !has_bug(7) {
                fence();
            }
            (*journal).is_valid = 0;
            persist(&raw const (*journal).is_valid, 8);
        }
    }

    fn create(&self, name: &str) {
        let index = self.inodes().iter().position(|inode| inode.links == 0);
        let number = index.unwrap_or_else(|| fail("no inode is free")) as u64 + 1;
        let inode = self.inode(number);
        // SAFETY: inside the pool.
        unsafe {
            (*inode).size = 0; //~ 1 ordering
            (*inode).version = 0; //~ 1 ordering
            (*inode).blocks = [0; FILE_BLOCKS]; //~ 1 ordering
            (*inode).links = 1; //~ 1 ordering
            if !has_bug(1) {
                persist(inode, size_of::<Inode>());
            }
            let entry = self.named_entry(name);
            let (files, count) = self.files();
            self.commit(&[(&raw mut (*entry).inode, number), (files, count + 1)]);
            if has_bug(1) {
                persist(inode, size_of::<Inode>());
            }
        }
    }

    /// Replaces the content.
    fn write(&self, name: &str, size: usize, version: u64) {
        let entry = self.find(name).unwrap_or_else(|| fail("no such file"));
        let inode = self.inode(self.entries()[entry].inode);
        let blocks = self.free_blocks(size.div_ceil(BLOCK_BYTES));
        let words: Vec<u64> = (0..size / 8).map(|i| word_of(version, i)).collect();
        for (number, content) in blocks.iter().zip(words.chunks(BLOCK_BYTES / 8)) {
            let block = self.block(*number);
            // SAFETY: the content is at most one block.
            unsafe { block.copy_from_nonoverlapping(content.as_ptr(), content.len()) }; //~ 2 ordering 3 durability
            let bytes = content.len() * 8;
            if has_bug(3) && bytes > 64 {
                flush(block, bytes / 64 * 64);
            } else if !has_bug(2) {
                flush(block, bytes);
            }
        }
        fence();
        // SAFETY: inside the pool.
        unsafe {
            if has_bug(5) {
                (*inode).size = size as u64; //~ 5 atomicity
                (*inode).version = version; //~ 5 atomicity
                persist(inode, size_of::<Inode>());
                (*inode).blocks = blocks; //~ 5 atomicity
                persist(inode, size_of::<Inode>());
                return;
            }
            let mut changes = vec![(&raw mut (*inode).size, size as u64), (&raw mut (*inode).version, version)];
            for (i, block) in blocks.iter().enumerate() {
                changes.push((&raw mut (*inode).blocks[i], *block));
            }
            self.commit(&changes);
        }
        if has_bug(2) {
            for (number, content) in blocks.iter().zip(words.chunks(BLOCK_BYTES / 8)) {
                flush(self.block(*number), content.len() * 8);
            }
            fence();
        }
    }

    fn rename(&self, from: &str, to: &str) {
        let from = self.entry(self.find(from).unwrap_or_else(|| fail("no such file")));
        // SAFETY: inside the pool.
        unsafe {
            let number = (*from).inode;
            let mut changes = Changes::new();
            let target = match self.find(to) {
                Some(index) => {
                    let target = self.entry(index);
                    let replaced = self.inode((*target).inode);
                    let (files, count) = self.files();
                    changes.push((&raw mut (*replaced).links, (*replaced).links - 1));
                    changes.push((files, count - 1));
                    target
                }
                None => self.named_entry(to),
            };
            if has_bug(4) && changes.is_empty() {
                (*from).inode = 0; //~ 4 atomicity
                persist(from, 8);
                (*target).inode = number; //~ 4 atomicity
                persist(target, 8);
                return;
            }
            changes.push((&raw mut (*target).inode, number));
            changes.push((&raw mut (*from).inode, 0));
            self.commit(&changes);
        }
    }

    fn link(&self, from: &str, to: &str) {
        let number = self.entries()[self.find(from).unwrap_or_else(|| fail("no such file"))].inode;
        let inode = self.inode(number);
        let entry = self.named_entry(to);
        let (files, count) = self.files();
        // SAFETY: inside the pool.
        unsafe {
            let mut changes = vec![(&raw mut (*entry).inode, number), (files, count + 1)];
            if has_bug(11) {
                (*inode).links += 1; //~ 11 atomicity
                persist(inode, 8);
            } else {
                changes.push((&raw mut (*inode).links, (*inode).links + 1));
            }
            self.commit(&changes);
        }
    }

    fn unlink(&self, name: &str) {
        let entry = self.entry(self.find(name).unwrap_or_else(|| fail("no such file")));
        let (files, count) = self.files();
        // SAFETY: inside the pool.
        unsafe {
            let inode = self.inode((*entry).inode);
            self.commit(&[
                (&raw mut (*entry).inode, 0),
                (&raw mut (*inode).links, (*inode).links - 1),
                (files, count - 1),
            ]);
        }
    }

    /// Makes the changes of a journal that was valid.
    fn redo(&self) {
        // SAFETY: the places are checked.
        unsafe {
            let journal = &raw mut (*self.pool).journal;
            let changes = &(*journal).changes.0;
            for change in changes.get(..(*journal).count as usize).unwrap_or_else(|| fail("the journal's length")) {
                if change.offset >= size_of::<Pool>() as u64 || change.offset % 8 != 0 || change.offset < 128 {
                    fail("a change leads nowhere");
                }
                let place = self.pool.byte_add(change.offset as usize).cast::<u64>();
                *place = change.word;
                flush(place, 8);
            }
            fence();
            (*journal).is_valid = 0;
            persist(&raw const (*journal).is_valid, 8);
        }
    }

    fn find_orphan(&self) -> Option<u64> {
        let is_named = |number: u64| self.entries().iter().any(|entry| entry.inode == number);
        (1..=INODES as u64).find(|number| self.inodes()[*number as usize - 1].links != 0 && !is_named(*number))
    }

    fn free_orphans(&self) {
        while let Some(number) = self.find_orphan() {
            let inode = self.inode(number);
            // SAFETY: inside the pool.
            unsafe {
                if has_bug(9) && *self.block((*inode).blocks[0]) == 0 {
                    //~^ 9 recovery
                    fail("a block of a lost file");
                }
                if has_bug(10) && number > 4 {
                    continue; //~ 10 recovery
                }
                (*inode).links = 0;
                persist(inode, 8);
            }
        }
    }
}

fn name_of(entry: &Entry) -> &str {
    let len = entry.name.iter().position(|byte| *byte == 0).unwrap_or(entry.name.len());
    std::str::from_utf8(&entry.name[..len]).unwrap_or_else(|_| fail("a name"))
}

fn run(path: &str) {
    let pool = create::<Pool>(path);
    let fs = Fs { pool };
    // SAFETY: the mapping holds a `Pool` and nobody else uses it.
    unsafe {
        (*pool).magic.0 = MAGIC;
        persist(&raw const (*pool).magic, 8);
        for (op, version) in OPS.iter().zip(1..) {
            match *op {
                Create(name) => fs.create(name),
                Write(name, size) => fs.write(name, size, version),
                Rename(from, to) => fs.rename(from, to),
                Link(from, to) => fs.link(from, to),
                Unlink(name) => fs.unlink(name),
            }
            (*pool).ack.0 = version;
            persist(&raw const (*pool).ack, 8);
        }
    }
}

fn check_links(fs: &Fs) {
    let entries = fs.entries();
    if entries.iter().any(|entry| entry.inode > INODES as u64) {
        fail("an entry leads nowhere");
    }
    for (number, inode) in (1..).zip(fs.inodes()) {
        if inode.links != entries.iter().filter(|entry| entry.inode == number).count() as u64 {
            fail("the number of links");
        }
    }
    let used = entries.iter().filter(|entry| entry.inode != 0).count() as u64;
    if fs.files().1 != used {
        fail("the number of files");
    }
}

fn check_blocks(fs: &Fs) {
    let mut owned = [false; BLOCKS + 1];
    for inode in fs.inodes().iter().filter(|inode| inode.links != 0) {
        let size = inode.size as usize;
        if size > FILE_BLOCKS * BLOCK_BYTES || size % 8 != 0 {
            fail("the size of a file");
        }
        for (i, number) in inode.blocks.iter().enumerate() {
            let is_needed = i < size.div_ceil(BLOCK_BYTES);
            if is_needed != (*number != 0) || *number > BLOCKS as u64 || (is_needed && owned[*number as usize]) {
                fail("the blocks of a file");
            }
            owned[*number as usize] = true;
        }
        for i in 0..size / 8 {
            let block = fs.block(inode.blocks[i * 8 / BLOCK_BYTES]);
            // SAFETY: the number was checked above.
            if unsafe { *block.add(i % (BLOCK_BYTES / 8)) } != word_of(inode.version, i) {
                fail("the content of a file");
            }
        }
    }
}

/// Name, size and version of each file, by name.
fn listing(fs: &Fs) -> Vec<(&str, u64, u64)> {
    let used = fs.entries().iter().filter(|entry| entry.inode != 0);
    let mut all: Vec<_> = used
        .map(|entry| {
            let inode = &fs.inodes()[entry.inode as usize - 1];
            (name_of(entry), inode.size, inode.version)
        })
        .collect();
    all.sort();
    all
}

fn model(ops: usize) -> Vec<(&'static str, u64, u64)> {
    let mut names: Vec<(&str, usize)> = Vec::new();
    let mut files: Vec<(u64, u64)> = Vec::new();
    for (op, version) in OPS[..ops.min(OPS.len())].iter().zip(1..) {
        let of = |names: &Vec<(&str, usize)>, name: &str| names.iter().find(|n| n.0 == name).map_or(0, |n| n.1);
        match *op {
            Create(name) => {
                names.push((name, files.len()));
                files.push((0, 0));
            }
            Write(name, size) => files[of(&names, name)] = (size as u64, version),
            Rename(from, to) => {
                let file = of(&names, from);
                names.retain(|n| n.0 != from && n.0 != to);
                names.push((to, file));
            }
            Link(from, to) => names.push((to, of(&names, from))),
            Unlink(name) => names.retain(|n| n.0 != name),
        }
    }
    let mut all: Vec<_> = names.iter().map(|(name, file)| (*name, files[*file].0, files[*file].1)).collect();
    all.sort();
    all
}

fn check(path: &str) {
    let pool = reopen::<Pool>(path);
    // SAFETY: the mapping holds a `Pool`; any bytes are one.
    let Some(pool) = pool.filter(|pool| unsafe { (**pool).magic.0 } == MAGIC) else {
        println!("empty");
        return;
    };
    let fs = Fs { pool };
    // SAFETY: as above.
    unsafe {
        if (*pool).journal.is_valid == 1 {
            fs.redo();
        }
        fs.free_orphans();
        check_links(&fs);
        check_blocks(&fs);
        let ack = (*pool).ack.0 as usize;
        let found = listing(&fs);
        if found != model(ack) && found != model(ack + 1) {
            fail("operations are lost");
        }
    }
    println!("ok");
}

fn main() {
    command(run, check);
}
