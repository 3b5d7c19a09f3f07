//! Buffers behind pointers in memory: `iovec`, `msghdr`, `mmsghdr`, lists of strings. The kernel gets copies of the lists in which
//! every address in PM is replaced by the alias.

use alloc::vec::Vec;

use syscalls::Access;

use super::event;
use crate::load::user;
use crate::pm;
use crate::thread::Thread;

/// `UIO_MAXIOV`.
pub const MOST: u64 = 1024;
/// Strings of an exec.
const MOST_TEXTS: u64 = 1 << 16;

/// `struct iovec`: address and length.
pub type Vector = [u64; 2];

/// `struct msghdr`, in words: name, its length, vectors, their count, control data, its length, flags.
const WORDS: usize = 7;
const NAME: usize = 0;
const NAME_LEN: usize = 1;
const VECTORS: usize = 2;
const COUNT: usize = 3;
const CONTROL: usize = 4;
const CONTROL_LEN: usize = 5;

/// Bytes of a `msghdr`, or of a `mmsghdr`, in which a length follows.
pub fn size(many: bool) -> u64 {
    if many { 64 } else { 56 }
}

/// The buffers of a vector.
#[derive(Debug, Default)]
pub struct Parts {
    /// As the program gave them.
    pub asked: Vec<Vector>,
    /// As the kernel gets them: address, length, address, length.
    pub given: Vec<u64>,
}

/// `struct futex_waitv`: value, address, flags.
pub type Waiter = [u64; 3];
pub const WAITER_BYTES: u64 = 24;
/// `FUTEX_WAITV_MAX`.
pub const MOST_WAITERS: u64 = 128;

pub fn waiters(address: u64, bytes: u64) -> Option<Vec<Waiter>> {
    (0..bytes / WAITER_BYTES).map(|i| user::read::<Waiter>(address.wrapping_add(i * WAITER_BYTES))).collect()
}

/// The elements of a vector.
pub fn read_list(address: u64, count: u64) -> Option<Vec<Vector>> {
    (0..count).map(|i| user::read::<Vector>(address.wrapping_add(i * 16))).collect()
}

impl Parts {
    pub fn read(address: u64, count: u64) -> Option<Parts> {
        let asked = read_list(address, count)?;
        let mut given = Vec::with_capacity(asked.len() * 2);
        for &[mut address, mut len] in &asked {
            if len == 0 {
                given.extend([address, 0]);
            }
            while len != 0 {
                let (at, part) = pm::first_part(address, len);
                given.extend([at, part]);
                address = address.wrapping_add(part);
                len -= part;
            }
        }
        Some(Parts { asked, given })
    }

    /// The kernel wrote `len` bytes, into one buffer after the other.
    pub fn written(&self, thread: &mut Thread, len: u64) {
        let mut left = len;
        for &[address, len] in &self.asked {
            let len = len.min(left);
            event::kernel_write(thread, address, len);
            left -= len;
        }
    }
}

/// A message: its header as the program gave it, and its buffers.
#[derive(Debug)]
pub struct Letter {
    header: [u64; WORDS],
    /// The word behind the header in a `mmsghdr`.
    len: u64,
    parts: Parts,
}

impl Letter {
    pub fn read(address: u64, many: bool) -> Option<Letter> {
        let header = user::read::<[u64; WORDS]>(address)?;
        let len = if many { user::read::<u64>(address + 56)? } else { 0 };
        // Too many are the kernel's to refuse.
        let parts = if header[COUNT] > MOST { Parts::default() } else { Parts::read(header[VECTORS], header[COUNT])? };
        Some(Letter { header, len, parts })
    }

    /// The header as the kernel gets it.
    fn passed(&self) -> [u64; WORDS] {
        let mut header = self.header;
        header[NAME] = pm::alias_of(header[NAME]);
        header[CONTROL] = pm::alias_of(header[CONTROL]);
        if header[COUNT] <= MOST {
            header[VECTORS] = self.parts.given.as_ptr() as u64;
            header[COUNT] = self.parts.given.len() as u64 / 2;
        }
        header
    }
}

/// The headers as the kernel gets them, one after the other.
pub fn list_of(letters: &[Letter], many: bool) -> Vec<u8> {
    let mut list = Vec::with_capacity(letters.len() * 64);
    for letter in letters {
        letter.passed().iter().for_each(|word| list.extend(word.to_le_bytes()));
        if many {
            list.extend(letter.len.to_le_bytes());
        }
    }
    list
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at * 8..at * 8 + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// What `recvmsg` or `recvmmsg` has left in the `list` of headers goes to the program's own, and what it wrote is recorded.
pub fn received(thread: &mut Thread, address: u64, list: &[u8], letters: &[Letter], many: bool, result: i64) {
    let filled = if many { result.max(0) as usize } else { 1 };
    let each = size(many) as usize;
    for (i, letter) in letters.iter().enumerate().take(filled) {
        let now = &list[i * each..(i + 1) * each];
        let len = if many { word(now, 7) & 0xffff_ffff } else { result.max(0) as u64 };
        // msg_namelen is an int, with padding behind it; msg_flags too.
        let name_len = word(now, NAME_LEN) & 0xffff_ffff;
        let place = address + (i * each) as u64;
        user::write(place + 8, &(name_len as u32));
        user::write(place + 40, &word(now, CONTROL_LEN));
        user::write(place + 48, &(word(now, 6) as u32));
        if many {
            user::write(place + 56, &(len as u32));
        }
        event::kernel_write(thread, place, each as u64);
        if letter.header[NAME] != 0 {
            let most = letter.header[NAME_LEN] & 0xffff_ffff;
            event::kernel_write(thread, letter.header[NAME], name_len.min(most));
        }
        letter.parts.written(thread, len);
        if letter.header[CONTROL] != 0 {
            event::kernel_write(thread, letter.header[CONTROL], word(now, CONTROL_LEN).min(letter.header[CONTROL_LEN]));
        }
    }
}

/// What `sendmmsg` has left in the `list` of headers: the length of each message that went out.
pub fn sent(thread: &mut Thread, address: u64, list: &[u8], letters: &[Letter], result: i64) {
    for i in 0..letters.len().min(result.max(0) as usize) {
        let len = word(&list[i * 64..(i + 1) * 64], 7) as u32;
        user::give(thread, address + i as u64 * 64 + 56, &len);
    }
}

/// What the kernel reads of a message.
pub fn message_reads(address: u64, many: bool, access: Access, ranges: &mut Vec<(u64, u64)>) -> Option<()> {
    let header = user::read::<[u64; WORDS]>(address)?;
    ranges.push((address, size(many)));
    let count = header[COUNT].min(MOST);
    ranges.push((header[VECTORS], count * 16));
    if access == Access::Read {
        ranges.push((header[NAME], header[NAME_LEN] & 0xffff_ffff));
        ranges.push((header[CONTROL], header[CONTROL_LEN]));
        ranges.extend(read_list(header[VECTORS], count)?.into_iter().map(|[at, len]| (at, len)));
    }
    Some(())
}

/// The addresses in a list of strings.
pub fn text_list(address: u64) -> Option<Vec<u64>> {
    let mut list = Vec::new();
    for i in 0..MOST_TEXTS {
        match user::read::<u64>(address.wrapping_add(i * 8))? {
            0 => return Some(list),
            text => list.push(text),
        }
    }
    None
}

/// A copy of a list of strings of which some lie in PM; `None`: none do, or a pointer is bad, which the kernel shall say.
pub fn texts(address: u64) -> Option<(Vec<u64>, Vec<Vec<u8>>)> {
    let addresses = text_list(address)?;
    let mut texts = Vec::with_capacity(addresses.len());
    let mut inside = pm::is_pm(address);
    for &at in &addresses {
        let mut text = user::c_string(at)?;
        text.push(0);
        inside |= !pm::pieces(at, text.len() as u64).is_empty();
        texts.push(text);
    }
    let mut list: Vec<u64> = texts.iter().map(|text| text.as_ptr() as u64).collect();
    list.push(0);
    inside.then_some((list, texts))
}
