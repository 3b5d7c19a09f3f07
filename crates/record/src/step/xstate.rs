//! Vector, mask and MMX registers out of an `xsave` image in standard format.
//!
//! Intel SDM vol. 1 §13.4: the legacy region holds x87/MMX and XMM registers; the place of every other component
//! comes from `CPUID.(EAX=0DH,ECX=i)`: EBX is its offset, EAX its size. A component whose bit in `XSTATE_BV` is
//! clear is in its initial state, all zero, whatever the image holds.

use std::arch::x86_64::{__cpuid_count, _xgetbv};

const AVX: u32 = 2;
const OPMASK: u32 = 5;
const ZMM_HIGH: u32 = 6;
const ZMM_MORE: u32 = 7;
/// Legacy region and header.
pub const AREA_START: u64 = 576;

/// Offset and size of component `i` in the standard format.
fn component(i: u32) -> (usize, usize) {
    let leaf = __cpuid_count(0xd, i);
    (leaf.ebx as usize, leaf.eax as usize)
}

fn enabled_components() -> u64 {
    // SAFETY: the operating system has enabled xsave: `NT_X86_XSTATE` would not exist without it.
    unsafe { read_xcr0() }
}

/// # Safety
/// The processor and the operating system must support `xsave`.
#[target_feature(enable = "xsave")]
unsafe fn read_xcr0() -> u64 {
    // SAFETY: the caller guarantees xsave; register 0 always exists then.
    unsafe { _xgetbv(0) }
}

/// Bytes from the operand of `xsave`/`xsaveopt` (standard) or `xsavec` (compacted) to the end of what it may write.
pub fn area_bytes(requested: u64, compacted: bool) -> u64 {
    let components = requested & enabled_components();
    let mut end = AREA_START;
    for i in (2..63).filter(|i| components & (1 << i) != 0) {
        let leaf = __cpuid_count(0xd, i);
        if compacted {
            let aligned = leaf.ecx & 2 != 0;
            let start = if aligned { end.next_multiple_of(64) } else { end };
            end = start + u64::from(leaf.eax);
        } else {
            end = end.max(u64::from(leaf.ebx) + u64::from(leaf.eax));
        }
    }
    end
}

/// The registers of one thread.
#[derive(Clone, Debug, Default)]
pub struct ExtendedState {
    image: Vec<u8>,
}

impl ExtendedState {
    pub fn new(image: Vec<u8>) -> ExtendedState {
        ExtendedState { image }
    }

    fn bytes<const N: usize>(&self, component: u32, offset: usize) -> [u8; N] {
        let in_use =
            self.image.get(512..520).is_some_and(|bits| bits[component as usize / 8] & (1 << (component % 8)) != 0);
        let mut bytes = [0; N];
        if in_use && let Some(part) = self.image.get(offset..offset + N) {
            bytes.copy_from_slice(part);
        }
        bytes
    }

    /// All 64 bytes of vector register `n`.
    pub fn vector(&self, n: u8) -> [u8; 64] {
        let n = usize::from(n);
        if n >= 16 {
            return self.bytes(ZMM_MORE, component(ZMM_MORE).0 + (n - 16) * 64);
        }
        let mut vector = [0; 64];
        vector[..16].copy_from_slice(&self.bytes::<16>(1, 160 + n * 16));
        vector[16..32].copy_from_slice(&self.bytes::<16>(AVX, component(AVX).0 + n * 16));
        vector[32..].copy_from_slice(&self.bytes::<32>(ZMM_HIGH, component(ZMM_HIGH).0 + n * 32));
        vector
    }

    /// Mask register `k<n>`.
    pub fn mask(&self, n: u8) -> u64 {
        u64::from_le_bytes(self.bytes(OPMASK, component(OPMASK).0 + usize::from(n) * 8))
    }

    /// MMX register `mm<n>`: the low half of an x87 slot.
    pub fn mmx(&self, n: u8) -> [u8; 8] {
        self.bytes(0, 32 + usize::from(n) * 16)
    }
}
