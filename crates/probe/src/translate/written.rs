//! What an instruction with an implicit or masked operand wrote, as records (contract rules 2 and 3).

use iced_x86::Instruction as Decoded;
use isa::effect::{Form, MaskSource};
use wire::record::Header;

use super::vector;
use crate::layout::alias;
use crate::pm;
use crate::ring;
use crate::thread::Thread;

/// Longest piece of one record: pieces end at multiples of this in the pool.
const PIECE: u64 = 4096;

/// Records [address, address + len) as it is in PM now, cut at 4 KiB borders of the pool offset.
pub fn range(thread: &mut Thread, header: Header, address: u64, len: u64, descending: bool) {
    let offset = pm::lookup(address).map_or(0, |(_, offset, _)| offset);
    let first = (PIECE - offset % PIECE).min(len);
    let pieces = 1 + (len - first).div_ceil(PIECE);
    for n in 0..pieces {
        let n = if descending { pieces - 1 - n } else { n };
        let start = if n == 0 { 0 } else { first + (n - 1) * PIECE };
        let size = if n == 0 { first } else { PIECE.min(len - start) };
        piece(thread, header, address + start, size);
    }
}

fn piece(thread: &mut Thread, mut header: Header, address: u64, len: u64) {
    header.address = address;
    // SAFETY: the alias of PM that the program just wrote.
    let bytes = unsafe { core::slice::from_raw_parts(alias(address) as *const u8, len as usize) };
    ring::order(thread).put(header, &[bytes]);
}

pub fn record(thread: &mut Thread, decoded: &Decoded, form: &Form, header: Header) {
    let shifted = thread.shifted;
    match form {
        Form::String { element } => {
            let repeats = decoded.has_rep_prefix() || decoded.has_repne_prefix();
            let count = if repeats { shifted.rcx.wrapping_sub(thread.regs.rcx) } else { 1 };
            let (size, down) = (*element as u64, thread.flags & 0x400 != 0);
            if count != 0 {
                let low = if down { shifted.rdi - (count - 1) * size } else { shifted.rdi };
                range(thread, header, low, count * size, down);
            }
        }
        Form::Push { size } => range(thread, header, shifted.address, *size as u64, false),
        Form::BitOffset { size } => range(thread, header, shifted.address, *size as u64, false),
        Form::Movdir64b | Form::Clzero => range(thread, header, shifted.address, 64, false),
        Form::XsaveArea => {
            let size = xsave_bytes(thread, decoded);
            range(thread, header, shifted.address, size, false);
        }
        Form::MaskMov { size } => {
            let register = decoded.op2_register();
            let mask = if *size == 8 {
                let mut bytes = [0u8; 64];
                bytes[..8].copy_from_slice(&vector::read_mmx(register.number() as u8).to_le_bytes());
                bytes
            } else {
                vector::read(thread, register.number() as u8, 16)
            };
            runs(thread, header, shifted.address, *size as u64, |i| mask[i as usize] & 0x80 != 0);
        }
        Form::Masked { element, mask, size, compress } => {
            let element = *element as u64;
            let lanes = *size as u64 / element;
            let enabled = lane_mask(thread, mask, lanes, element);
            if *compress {
                let count = (0..lanes).filter(|&i| enabled >> i & 1 != 0).count() as u64;
                if count != 0 {
                    range(thread, header, shifted.address, count * element, false);
                }
            } else {
                runs(thread, header, shifted.address, *size as u64, |i| enabled >> (i / element) & 1 != 0);
            }
        }
        Form::Scatter { element, .. } => scatter(thread, decoded, *element as u64, header),
        Form::Explicit { .. } => unreachable!("explicit operands are recorded by the gate"),
        Form::Unsupported(what) => crate::refuse!(thread, "cannot record {what} at {:#x}", decoded.ip()),
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
        range(thread, header, address + start, i - start, false);
    }
}

fn lane_mask(thread: &Thread, mask: &MaskSource, lanes: u64, element: u64) -> u64 {
    match mask {
        MaskSource::Opmask(k) => {
            let value = vector::read_mask(*k, lanes > 16);
            if lanes == 64 { value } else { value & ((1 << lanes) - 1) }
        }
        MaskSource::Vector(number) => {
            let bytes = vector::read(thread, *number, (lanes * element) as usize);
            (0..lanes).fold(0, |mask, i| mask | ((bytes[(i * element + element - 1) as usize] >> 7) as u64) << i)
        }
    }
}

/// (address, lane) of each enabled element. The mask register is cleared as the instruction proceeds, so it is read
/// before (`first_lane`) and kept in `Thread::mask`.
fn lanes(thread: &Thread, decoded: &Decoded, mask: u64, element: u64) -> impl Iterator<Item = u64> {
    let index = decoded.memory_index();
    let wide_index = is_qword_index(decoded);
    let count = lane_count(decoded, element);
    let bytes = vector::read(thread, index.number() as u8, index.size());
    let base = thread.regs.get(decoded.memory_base().number() as u8);
    let base = base.wrapping_add(decoded.memory_displacement64());
    let scale = decoded.memory_index_scale() as u64;
    (0..count).filter(move |i| mask >> i & 1 != 0).map(move |i| {
        let i = i as usize;
        let value = if wide_index {
            u64::from_le_bytes(bytes[i * 8..i * 8 + 8].try_into().unwrap_or_default())
        } else {
            i32::from_le_bytes(bytes[i * 4..i * 4 + 4].try_into().unwrap_or_default()) as i64 as u64
        };
        base.wrapping_add(value.wrapping_mul(scale))
    })
}

fn is_qword_index(decoded: &Decoded) -> bool {
    use iced_x86::Mnemonic as M;
    matches!(decoded.mnemonic(), M::Vpscatterqd | M::Vpscatterqq | M::Vscatterqps | M::Vscatterqpd)
}

fn lane_count(decoded: &Decoded, element: u64) -> u64 {
    let data = decoded.op1_register().size() as u64 / element;
    let index = decoded.memory_index().size() as u64 / if is_qword_index(decoded) { 8 } else { 4 };
    data.min(index)
}

/// The first enabled lane of a scatter that is about to run; its mask is kept for afterwards.
pub fn first_lane(thread: &mut Thread, decoded: &Decoded) -> Option<u64> {
    let element = scatter_element(decoded);
    let mask = vector::read_mask(decoded.op_mask().number() as u8, false);
    thread.mask[0] = mask;
    lanes(thread, decoded, mask, element).next()
}

fn scatter_element(decoded: &Decoded) -> u64 {
    use iced_x86::Mnemonic as M;
    if matches!(decoded.mnemonic(), M::Vpscatterdd | M::Vpscatterqd | M::Vscatterdps | M::Vscatterqps) { 4 } else { 8 }
}

fn scatter(thread: &mut Thread, decoded: &Decoded, element: u64, header: Header) {
    let mask = thread.mask[0];
    let addresses: alloc::vec::Vec<u64> = lanes(thread, decoded, mask, element).collect();
    for address in addresses {
        if !pm::is_pm(address) {
            crate::refuse!(thread, "a scatter at {:#x} writes partly to PM and partly elsewhere", decoded.ip());
        }
        range(thread, header, address, element, false);
    }
}

/// Bytes of the area that an `xsave`-like instruction writes (SDM vol. 1, chapter 13).
fn xsave_bytes(thread: &Thread, decoded: &Decoded) -> u64 {
    use iced_x86::Mnemonic as M;
    if matches!(decoded.mnemonic(), M::Fxsave | M::Fxsave64) {
        return 512;
    }
    let requested = (thread.regs.rdx << 32) | (thread.regs.rax & 0xffff_ffff);
    let compact = matches!(decoded.mnemonic(), M::Xsavec | M::Xsavec64);
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

