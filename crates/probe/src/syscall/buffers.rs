//! Pointers into PM. At the program's address PM cannot be written, not even by the kernel; if loads are recorded, it cannot
//! be read either. Each pointer of a call is passed on as its row in the table of [`syscalls`] says: unchanged, as the
//! alias, or, if only a part of the memory is PM, as a copy. What the kernel wrote to PM becomes an event.

use alloc::vec::Vec;

use syscalls::{Access, Length, Shape, SyscallFacts, Use};
use wire::control::option;

use super::dispatch::Call;
use super::event;
use super::vectors::{self, Letter, Parts};
use crate::layout;
use crate::load::user;
use crate::pm;
use crate::refuse;
use crate::ring;
use crate::sys;
use crate::thread::Thread;

/// The longest copy that is made of memory of which only a part is PM.
const MOST_COPIED: u64 = 4 << 20;

/// PM before a call: where, and what was there.
type Before = Vec<(u64, Vec<u8>)>;

/// Lets the kernel do a call, with pointers into PM redirected.
pub fn pass(thread: &mut Thread, call: Call) -> i64 {
    if !pm::any() {
        return call.pass(thread);
    }
    let Some(entry) = syscalls::entry(call.nr) else {
        refuse_unknown(thread, call);
        return call.pass(thread);
    };
    let mut passed = call;
    let mut pointers = Vec::with_capacity(entry.uses.len());
    for used in entry.uses {
        match Pointer::prepare(thread, entry, used, &call, &mut passed) {
            Ok(pointer) => pointers.push(pointer),
            Err(error) => return error,
        }
    }
    let result = passed.pass(thread);
    for pointer in pointers {
        pointer.settle(thread, &call, result);
    }
    result
}

/// A call that the table does not have: with a pointer into PM nobody could say what it did there.
fn refuse_unknown(thread: &mut Thread, call: Call) {
    if call.args.iter().any(|&argument| pm::is_pm(argument)) {
        refuse!(
            thread,
            "system call {} is not known to this version of the recorder, and the program gives it a pointer into a pool",
            call.nr
        );
    }
}

/// May the kernel read PM where the program sees it?
fn readable_in_place() -> bool {
    ring::control().options & option::LOADS == 0
}

/// The `u32` behind an address.
fn number_at(address: u64) -> Option<u32> {
    if address == 0 { None } else { user::read(address) }
}

/// One pointer of a call under way.
struct Pointer {
    used: Use,
    address: u64,
    /// How much the kernel may touch.
    most: u64,
    /// For what may be changed in parts.
    before: Before,
    /// What the kernel was given instead of memory of which a part is PM.
    copy: Option<Vec<u8>>,
    /// What lies behind a vector or a message; kept until the call is done.
    parts: Parts,
    letters: Vec<Letter>,
    list: Vec<u8>,
}

impl Pointer {
    /// Looks at a pointer of `call` and sets what is passed on.
    fn prepare(
        thread: &mut Thread,
        entry: &SyscallFacts,
        used: &Use,
        call: &Call,
        passed: &mut Call,
    ) -> Result<Pointer, i64> {
        let at = used.argument as usize;
        let address = call.args[at];
        let mut pointer = Pointer {
            used: *used,
            address,
            most: 0,
            before: Vec::new(),
            copy: None,
            parts: Parts::default(),
            letters: Vec::new(),
            list: Vec::new(),
        };
        if address == 0 {
            return Ok(pointer);
        }
        if used.access == Access::Kept {
            if pm::is_pm(address) {
                refuse!(
                    thread,
                    "the kernel would go on using memory of a pool after {} (argument {}), which cannot be recorded",
                    entry.name,
                    at + 1
                );
            }
            return Ok(pointer);
        }
        match used.shape {
            Shape::Bytes(length) => pointer.bytes(thread, entry, length.most(&call.args, number_at), length, passed)?,
            Shape::Opaque => pointer.opaque(passed),
            Shape::Text => pointer.text(passed),
            // Calls with lists of strings are `task::exec`'s.
            Shape::Texts => {}
            Shape::Vector { count } => pointer.vector(call.args[count as usize], count as usize, passed)?,
            Shape::Pack => pointer.pack(passed)?,
            Shape::Waiters(length) => pointer.waiters(length.most(&call.args, number_at), passed),
            Shape::Message => pointer.messages(1, false, passed)?,
            Shape::Messages { count } => pointer.messages(call.args[count as usize] & 0xffff_ffff, true, passed)?,
        }
        if used.access == Access::Changed {
            pointer.remember();
        }
        Ok(pointer)
    }

    fn bytes(
        &mut self,
        thread: &mut Thread,
        entry: &SyscallFacts,
        most: u64,
        length: Length,
        passed: &mut Call,
    ) -> Result<(), i64> {
        self.most = most;
        let (real, part) = pm::first_part(self.address, most);
        if (part == most && real == self.address) || (self.used.access == Access::Read && readable_in_place()) {
            return Ok(());
        }
        let at = self.used.argument as usize;
        if part >= most {
            passed.args[at] = real;
            return Ok(());
        }
        if most <= MOST_COPIED {
            return self.copied(passed);
        }
        let (Length::Result { most: count } | Length::Argument(count)) = length else {
            refuse!(
                thread,
                "{} is given {most} bytes at {:#x}, of which only a part lies in a pool",
                entry.name,
                self.address
            );
        };
        // Too much for a copy: a short count is a right answer of the calls that take so much.
        passed.args[at] = real;
        passed.args[count as usize] = part;
        self.most = part;
        Ok(())
    }

    /// The kernel gets a copy, and what it wrote is taken back afterwards.
    fn copied(&mut self, passed: &mut Call) -> Result<(), i64> {
        let Some(copy) = user::copy_in(self.address, self.most) else { return Err(-sys::EFAULT) };
        passed.args[self.used.argument as usize] = copy.as_ptr() as u64;
        self.copy = Some(copy);
        Ok(())
    }

    fn opaque(&mut self, passed: &mut Call) {
        // Many of these are numbers; only what lies in PM is a pointer for sure.
        if let Some(range) = pm::range_at(self.address) {
            self.most = Length::MOST.min(range.end() - self.address);
            passed.args[self.used.argument as usize] = layout::alias(self.address);
        }
    }

    fn text(&mut self, passed: &mut Call) {
        if readable_in_place() {
            return;
        }
        // A bad pointer is the kernel's to find.
        if let Some(mut text) = user::c_string(self.address) {
            text.push(0);
            if !pm::pieces(self.address, text.len() as u64).is_empty() {
                passed.args[self.used.argument as usize] = text.as_ptr() as u64;
                self.copy = Some(text);
            }
        }
    }

    fn pack(&mut self, passed: &mut Call) -> Result<(), i64> {
        if self.used.access != Access::Read || !readable_in_place() {
            let [inner, size] = user::read::<[u64; 2]>(self.address).ok_or(-sys::EFAULT)?;
            self.give(&[pm::alias_of(inner), size], passed);
        }
        Ok(())
    }

    fn waiters(&mut self, bytes: u64, passed: &mut Call) {
        if let Some(words) = waiters(self.address, bytes) {
            self.give(&words, passed);
        }
    }

    /// The kernel gets these words instead of what the program points to.
    fn give(&mut self, words: &[u64], passed: &mut Call) {
        self.list = bytes_of(words);
        passed.args[self.used.argument as usize] = self.list.as_ptr() as u64;
    }

    fn vector(&mut self, count: u64, count_at: usize, passed: &mut Call) -> Result<(), i64> {
        if count > vectors::MOST {
            // The kernel's to refuse.
            return Ok(());
        }
        self.parts = Parts::read(self.address, count).ok_or(-sys::EFAULT)?;
        if self.used.access == Access::Read && readable_in_place() && pm::pieces(self.address, count * 16).is_empty() {
            return Ok(());
        }
        passed.args[self.used.argument as usize] = self.parts.given.as_ptr() as u64;
        passed.args[count_at] = self.parts.given.len() as u64 / 2;
        Ok(())
    }

    fn messages(&mut self, count: u64, many: bool, passed: &mut Call) -> Result<(), i64> {
        // `sendmmsg` writes into the headers too.
        let writes = many && !pm::pieces(self.address, count * vectors::size(many)).is_empty();
        if self.used.access == Access::Read && readable_in_place() && !writes {
            return Ok(());
        }
        for i in 0..count.min(vectors::MOST) {
            let place = self.address + i * vectors::size(many);
            self.letters.push(Letter::read(place, many).ok_or(-sys::EFAULT)?);
        }
        self.list = vectors::list_of(&self.letters, many);
        passed.args[self.used.argument as usize] = self.list.as_ptr() as u64;
        Ok(())
    }

    /// Keeps what PM holds behind the pointer.
    fn remember(&mut self) {
        let mut keep = |address: u64, len: u64| {
            for piece in pm::pieces(address, len) {
                self.before.push((piece.start, content(piece.start, piece.len).to_vec()));
            }
        };
        keep(self.address, self.most);
        for &[address, len] in &self.parts.asked {
            keep(address, len);
        }
    }

    /// After the call: takes back what went to a copy, and records what went to PM.
    fn settle(self, thread: &mut Thread, call: &Call, result: i64) {
        if self.used.access == Access::Read {
            if let Shape::Messages { .. } = self.used.shape {
                // `sendmmsg` says of each message how much of it went out.
                vectors::sent(thread, self.address, &self.list, &self.letters, result);
            }
            return;
        }
        let done = u64::try_from(result).ok();
        match (self.used.access, self.used.shape) {
            (Access::Changed, _) => {
                if let Some(copy) = &self.copy {
                    user::copy_out(self.address, copy);
                }
                changes(thread, self.before);
            }
            (Access::Written, Shape::Bytes(length)) => {
                let Some(result) = done else { return };
                let len = length.done(self.most, &call.args, result, number_at);
                if let Some(copy) = &self.copy {
                    user::copy_out(self.address, &copy[..(len as usize).min(copy.len())]);
                }
                if self.address != 0 {
                    event::kernel_write(thread, self.address, len);
                }
            }
            (Access::Written, Shape::Pack) => {
                if let (Some(len), Some([inner, size])) = (done, user::read::<[u64; 2]>(self.address)) {
                    event::kernel_write(thread, inner, len.min(size & 0xffff_ffff));
                }
            }
            (Access::Written, Shape::Vector { .. }) => self.parts.written(thread, done.unwrap_or(0)),
            (Access::Written, Shape::Message) if done.is_some() => {
                vectors::received(thread, self.address, &self.list, &self.letters, false, result);
            }
            (Access::Written, Shape::Messages { .. }) => {
                vectors::received(thread, self.address, &self.list, &self.letters, true, result);
            }
            _ => {}
        }
    }
}

/// Records which bytes of PM differ from what they were.
fn changes(thread: &mut Thread, before: Before) {
    for (start, old) in before {
        let now = content(start, old.len() as u64);
        let differs = |i: &usize| old[*i] != now[*i];
        if let (Some(first), Some(last)) = ((0..old.len()).find(differs), (0..old.len()).rfind(differs)) {
            event::kernel_write(thread, start + first as u64, (last - first + 1) as u64);
        }
    }
}

/// PM as it is now.
fn content(start: u64, len: u64) -> Vec<u8> {
    let mut bytes = alloc::vec![0; len as usize];
    user::read_to(start, &mut bytes);
    bytes
}

/// The call with copies of what it reads from PM, for those who make it themselves. The copies must outlive it.
pub fn with_copies(mut call: Call) -> (Call, Vec<Vec<u8>>) {
    let mut copies = Vec::new();
    let entry = syscalls::entry(call.nr).filter(|_| pm::any() && !readable_in_place());
    for used in entry.map_or(&[][..], |entry| entry.uses).iter().filter(|used| used.access == Access::Read) {
        let address = call.args[used.argument as usize];
        let copy = match used.shape {
            _ if address == 0 => None,
            Shape::Text => user::c_string(address).map(|mut text| {
                text.push(0);
                text
            }),
            Shape::Bytes(length) => user::copy_in(address, length.most(&call.args, number_at).min(MOST_COPIED)),
            _ => None,
        };
        if let Some(copy) = copy.filter(|copy| !pm::pieces(address, copy.len() as u64).is_empty()) {
            call.args[used.argument as usize] = copy.as_ptr() as u64;
            copies.push(copy);
        }
    }
    (call, copies)
}

/// Waiters as the kernel gets them: words in PM are waited for at their alias, always, since whoever wakes private ones names that, too. None:
/// there are too many, or they cannot be read; the kernel shall say so.
fn waiters(address: u64, bytes: u64) -> Option<Vec<u64>> {
    if bytes > vectors::MOST_WAITERS * vectors::WAITER_BYTES {
        return None;
    }
    let list = vectors::waiters(address, bytes)?;
    Some(list.into_iter().flat_map(|[value, word, flags]| [value, pm::alias_of(word), flags]).collect())
}

fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// What the kernel will read of memory in this call. `None`: more than can be told.
pub fn reads(call: &Call) -> Option<Vec<(u64, u64)>> {
    let mut ranges = Vec::new();
    let Some(entry) = syscalls::entry(call.nr) else {
        return (!call.args.iter().any(|&argument| pm::is_pm(argument))).then_some(ranges);
    };
    for used in entry.uses {
        let address = call.args[used.argument as usize];
        if address == 0 {
            continue;
        }
        match (used.shape, used.access) {
            (Shape::Bytes(length), Access::Read | Access::Changed) => {
                ranges.push((address, length.most(&call.args, number_at)));
            }
            (Shape::Text, _) => ranges.push((address, user::c_string(address)?.len() as u64 + 1)),
            (Shape::Texts, _) => {
                for text in vectors::text_list(address)? {
                    ranges.push((text, user::c_string(text)?.len() as u64 + 1));
                }
            }
            (Shape::Vector { count }, access) => {
                let count = call.args[count as usize].min(vectors::MOST);
                ranges.push((address, count * 16));
                if access != Access::Written {
                    ranges.extend(vectors::read_list(address, count)?.into_iter().map(|[at, len]| (at, len)));
                }
            }
            (Shape::Pack, access) => {
                let [inner, size] = user::read::<[u64; 2]>(address)?;
                ranges.push((address, 16));
                if access == Access::Read {
                    ranges.push((inner, size & 0xffff_ffff));
                }
            }
            (Shape::Waiters(length), _) => {
                let bytes = length.most(&call.args, number_at).min(vectors::MOST_WAITERS * vectors::WAITER_BYTES);
                ranges.push((address, bytes));
                ranges.extend(vectors::waiters(address, bytes)?.into_iter().map(|[_, word, _]| (word, 4)));
            }
            (Shape::Message, access) => vectors::message_reads(address, false, access, &mut ranges)?,
            (Shape::Messages { count }, access) => {
                for i in 0..(call.args[count as usize] & 0xffff_ffff).min(vectors::MOST) {
                    vectors::message_reads(address + i * vectors::size(true), true, access, &mut ranges)?;
                }
            }
            (Shape::Opaque, _) if pm::is_pm(address) => return None,
            _ => {}
        }
    }
    Some(ranges)
}
