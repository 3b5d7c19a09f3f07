//! What an instruction with an implicit or masked operand wrote, as records (contract rules 2 and 3).

use iced_x86::Instruction as Decoded;
use isa::effect::{Form, LoadForm, MaskSource, Opmask, StateArea, StringAt};
use wire::record::Header;

use super::vector;
use crate::layout::alias;
use crate::pm;
use crate::ring;
use crate::thread::Thread;

/// Longest piece of one record: pieces end at multiples of this in the pool.
const PIECE: u64 = 4096;

/// Records [address, address + len) as it is in PM now, in one piece if it can be: only strings are cut (rule 2).
fn whole(thread: &mut Thread, header: Header, address: u64, len: u64) {
    if len <= PIECE {
        piece(thread, header, address, len);
    } else {
        range(thread, header, address, len, false);
    }
}

/// Records [address, address + len) as it is in PM now, cut at 4 KiB boundaries of the pool offset.
fn range(thread: &mut Thread, header: Header, address: u64, len: u64, descending: bool) {
    pieces(address, len, descending, |address, len| piece(thread, header, address, len));
}

/// Cuts a range of PM at 4 KiB boundaries of the pool offset.
fn pieces(address: u64, len: u64, descending: bool, mut each: impl FnMut(u64, u64)) {
    let offset = pm::lookup(address).map_or(0, |(_, offset, _)| offset);
    let first = (PIECE - offset % PIECE).min(len);
    let pieces = 1 + (len - first).div_ceil(PIECE);
    for n in 0..pieces {
        let n = if descending { pieces - 1 - n } else { n };
        let start = if n == 0 { 0 } else { first + (n - 1) * PIECE };
        let size = if n == 0 { first } else { PIECE.min(len - start) };
        each(address + start, size);
    }
}

fn piece(thread: &mut Thread, mut header: Header, address: u64, len: u64) {
    header.address = address;
    // SAFETY: the alias of PM that the program just wrote.
    let bytes = unsafe { core::slice::from_raw_parts(alias(address) as *const u8, len as usize) };
    ring::order(thread).put(header, &[bytes]);
}

/// A string's source or destination that was read.
pub fn record_load(thread: &mut Thread, form: &LoadForm, mut header: Header) {
    let LoadForm::String { element, at, repeats } = *form else { return crate::recover::notes::incomplete() };
    let shifted = thread.shifted;
    let first = if at == StringAt::Rsi { shifted.rsi } else { shifted.rdi };
    let count = if repeats { shifted.rcx.wrapping_sub(thread.regs.rcx) } else { 1 };
    let (size, down) = (element as u64, thread.flags & 0x400 != 0);
    if count == 0 || !pm::is_pm(first) {
        return;
    }
    let low = if down { first - (count - 1) * size } else { first };
    pieces(low, count * size, down, |address, len| {
        header.address = address;
        ring::order(thread).put(header, &[&len.to_le_bytes()]);
    });
}

/// A locked instruction: the bytes before (kept in `Thread::old`) and after.
pub fn record_rmw(thread: &mut Thread, form: &Form, mut header: Header) {
    let size = form.max_size().unwrap_or(0) as usize;
    header.address = thread.shifted.address;
    let mut old = [0u8; 64];
    for (bytes, word) in old.chunks_mut(8).zip(thread.old) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    // SAFETY: the alias of PM that the program just wrote.
    let new = unsafe { core::slice::from_raw_parts(alias(header.address) as *const u8, size) };
    ring::order(thread).put(header, &[&old[..size], new]);
}

pub fn record(thread: &mut Thread, decoded: &Decoded, form: &Form, header: Header) {
    let shifted = thread.shifted;
    let at = shifted.address;
    match *form {
        Form::String { element, repeats } => {
            let count = if repeats { shifted.rcx.wrapping_sub(thread.regs.rcx) } else { 1 };
            let (size, down) = (element as u64, thread.flags & 0x400 != 0);
            if count != 0 {
                let low = if down { shifted.rdi - (count - 1) * size } else { shifted.rdi };
                range(thread, header, low, count * size, down);
            }
        }
        Form::Explicit { size } => whole(thread, header, at, size as u64),
        Form::Push { size } | Form::Pop { size } | Form::BitOffset { size, .. } => {
            whole(thread, header, at, size as u64)
        }
        Form::Movdir64b { .. } | Form::ClearLine => whole(thread, header, at, 64),
        Form::State(area) => {
            let size = state_bytes(thread, area);
            whole(thread, header, at, size);
        }
        Form::ByteMask { size, mask } => {
            let number = mask.number() as u8;
            let mask = if size == 8 {
                let mut bytes = [0u8; 64];
                bytes[..8].copy_from_slice(&vector::read_mmx(number).to_le_bytes());
                bytes
            } else {
                vector::read(thread, number, 16)
            };
            runs(thread, header, at, size as u64, |i| mask[i as usize] & 0x80 != 0);
        }
        Form::Masked { element, mask, size } => {
            let element = element as u64;
            let enabled = lane_mask(thread, mask, size as u64 / element, element);
            runs(thread, header, at, size as u64, |i| enabled >> (i / element) & 1 != 0);
        }
        Form::Compress { element, size, mask } => {
            let lanes = size as u64 / element as u64;
            let count = lane_mask(thread, MaskSource::Opmask(mask), lanes, element as u64).count_ones() as u64;
            if count != 0 {
                whole(thread, header, at, count * element as u64);
            }
        }
        Form::Scatter { element, index, count, .. } => {
            let mask = thread.mask[0];
            let lanes: alloc::vec::Vec<u64> = lanes(thread, decoded, index, count, mask).collect();
            for address in lanes {
                if !pm::is_pm(address) {
                    crate::refuse!(thread, "a scatter at {:#x} writes partly to PM and partly elsewhere", decoded.ip());
                }
                whole(thread, header, address, element as u64);
            }
        }
    }
}

/// One record per maximal run of enabled bytes.
fn runs(thread: &mut Thread, header: Header, address: u64, size: u64, enabled: impl Fn(u64) -> bool) {
    let mut i = 0;
    while i < size {
        if !enabled(i) {
            i += 1;
            continue;
        }
        let start = i;
        while i < size && enabled(i) {
            i += 1;
        }
        whole(thread, header, address + start, i - start);
    }
}

fn lane_mask(thread: &Thread, mask: MaskSource, lanes: u64, element: u64) -> u64 {
    match mask {
        MaskSource::Opmask(Opmask(k)) => {
            let value = vector::read_mask(k, lanes > 16);
            if lanes == 64 { value } else { value & ((1 << lanes) - 1) }
        }
        MaskSource::TopBits(register) => {
            let bytes = vector::read(thread, register.number() as u8, (lanes * element) as usize);
            (0..lanes).fold(0, |mask, i| mask | ((bytes[(i * element + element - 1) as usize] >> 7) as u64) << i)
        }
    }
}

/// Addresses of a scatter's enabled elements. Its mask register is cleared as it proceeds, so the mask is read before
/// ([`first_lane`]) and kept in `Thread::mask`.
fn lanes(thread: &Thread, decoded: &Decoded, index: u8, count: u8, mask: u64) -> impl Iterator<Item = u64> + use<> {
    let register = decoded.memory_index();
    let bytes = vector::read(thread, register.number() as u8, register.size());
    let base = thread.regs.get(decoded.memory_base().number() as u8);
    let base = base.wrapping_add(decoded.memory_displacement64());
    let scale = decoded.memory_index_scale() as u64;
    (0..count as usize).filter(move |i| mask >> i & 1 != 0).map(move |i| {
        let value = if index == 8 {
            u64::from_le_bytes(bytes[i * 8..i * 8 + 8].try_into().unwrap_or_default())
        } else {
            i32::from_le_bytes(bytes[i * 4..i * 4 + 4].try_into().unwrap_or_default()) as i64 as u64
        };
        base.wrapping_add(value.wrapping_mul(scale))
    })
}

/// The first enabled element of a scatter that is about to run.
pub fn first_lane(thread: &mut Thread, decoded: &Decoded, form: &Form) -> Option<u64> {
    let Form::Scatter { index, count, mask: Opmask(k), .. } = *form else { return None };
    thread.mask[0] = vector::read_mask(k, false);
    lanes(thread, decoded, index, count, thread.mask[0]).next()
}

/// Bytes of the area that an `xsave`-like instruction writes (SDM vol. 1, chapter 13).
fn state_bytes(thread: &Thread, area: StateArea) -> u64 {
    if let Some(size) = area.size() {
        return size as u64;
    }
    let requested = (thread.regs.rdx << 32) | (thread.regs.rax & 0xffff_ffff);
    let compact = matches!(area, StateArea::Xsavec | StateArea::Xsaves);
    let mut end = 576u64;
    for component in 2..63u32 {
        if requested >> component & 1 == 0 {
            continue;
        }
        let leaf = core::arch::x86_64::__cpuid_count(0xd, component);
        if leaf.eax == 0 {
            continue;
        }
        if compact {
            if leaf.ecx & 2 != 0 {
                end = (end + 63) & !63;
            }
            end += leaf.eax as u64;
        } else {
            end = end.max(leaf.ebx as u64 + leaf.eax as u64);
        }
    }
    end
}
