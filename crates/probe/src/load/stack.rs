//! The first stack: argc, argv, envp and the auxiliary vector (System V ABI, x86-64 supplement §3.4.1).

use alloc::vec::Vec;

use super::image::Image;

pub const AT_NULL: u64 = 0;
pub const AT_IGNORE: u64 = 1;
pub const AT_PHDR: u64 = 3;
pub const AT_PHENT: u64 = 4;
pub const AT_PHNUM: u64 = 5;
pub const AT_BASE: u64 = 7;
pub const AT_ENTRY: u64 = 9;
pub const AT_RANDOM: u64 = 25;
pub const AT_EXECFN: u64 = 31;
pub const AT_SYSINFO_EHDR: u64 = 33;

/// What the kernel gave to the probe.
#[derive(Debug)]
pub struct Initial {
    /// Address of argc.
    pub address: u64,
    pub argv: Vec<u64>,
    pub envp: Vec<u64>,
    pub auxv: Vec<(u64, u64)>,
}

impl Initial {
    /// # Safety
    /// `at` is the stack pointer at the probe's first instruction.
    pub unsafe fn read(at: *const u64) -> Initial {
        // SAFETY: the kernel ends each list with a zero word.
        unsafe {
            let argc = *at as usize;
            let mut word = at.add(1);
            let argv = (0..argc).map(|i| *word.add(i)).collect();
            word = word.add(argc + 1);
            let mut envp = Vec::new();
            while *word != 0 {
                envp.push(*word);
                word = word.add(1);
            }
            word = word.add(1);
            let mut auxv = Vec::new();
            while *word != AT_NULL {
                auxv.push((*word, *word.add(1)));
                word = word.add(2);
            }
            Initial { address: at as u64, argv, envp, auxv }
        }
    }

    pub fn aux(&self, key: u64) -> Option<u64> {
        self.auxv.iter().find(|(k, _)| *k == key).map(|(_, v)| *v)
    }

    pub fn set_aux(&mut self, key: u64, value: u64) {
        for entry in &mut self.auxv {
            if entry.0 == key {
                entry.1 = value;
            }
        }
    }

    /// Fills in what depends on the program instead of the probe.
    pub fn describe(&mut self, program: &Image, header_count: usize, interpreter: Option<&Image>) {
        self.set_aux(AT_PHDR, program.header_address);
        self.set_aux(AT_PHENT, 56);
        self.set_aux(AT_PHNUM, header_count as u64);
        self.set_aux(AT_BASE, interpreter.map_or(0, |i| i.bias));
        self.set_aux(AT_ENTRY, program.entry);
        // A vDSO would show the real time, and its code would have to be translated: programs do without.
        for entry in &mut self.auxv {
            if entry.0 == AT_SYSINFO_EHDR {
                *entry = (AT_IGNORE, 0);
            }
        }
    }

    /// Writes the stack anew, right below the strings in `texts`, which go below the kernel's. `new_argv` and
    /// `exec_fn` may point to them by index.
    ///
    /// # Safety
    /// Memory below `self.address` is stack that nobody uses (the engine runs on its own).
    pub unsafe fn build(&self, texts: &[Vec<u8>], argv: &[Argument], exec_fn: usize) -> u64 {
        let mut at = self.address;
        let mut places = Vec::new();
        for text in texts {
            at -= text.len() as u64 + 1;
            places.push(at);
            // SAFETY: by contract.
            unsafe {
                core::ptr::copy_nonoverlapping(text.as_ptr(), at as *mut u8, text.len());
                *((at + text.len() as u64) as *mut u8) = 0;
            }
        }
        let mut words = alloc::vec![argv.len() as u64];
        words.extend(argv.iter().map(|a| match a {
            Argument::Old(address) => *address,
            Argument::New(index) => places[*index],
        }));
        words.push(0);
        words.extend(&self.envp);
        words.push(0);
        for (key, value) in &self.auxv {
            words.push(*key);
            words.push(if *key == AT_EXECFN { places[exec_fn] } else { *value });
        }
        words.extend([AT_NULL, 0]);
        let auxv = &words[words.len() - 2 * (self.auxv.len() + 1)..];
        // SAFETY: called once, before the target runs.
        unsafe { *core::ptr::addr_of_mut!(AUXV) = auxv.iter().flat_map(|word| word.to_le_bytes()).collect() };
        let start = (at - words.len() as u64 * 8) & !15;
        for (i, word) in words.iter().enumerate() {
            // SAFETY: by contract.
            unsafe { *((start + i as u64 * 8) as *mut u64) = *word };
        }
        start
    }
}

/// The auxiliary vector that the target got, for `/proc/self/auxv`.
static mut AUXV: Vec<u8> = Vec::new();

pub fn auxv() -> &'static [u8] {
    // SAFETY: never changed after the start.
    unsafe { &*core::ptr::addr_of!(AUXV) }
}

/// An argument of the new image.
#[derive(Clone, Copy, Debug)]
pub enum Argument {
    /// A string that the kernel put on the stack.
    Old(u64),
    /// One of the new strings.
    New(usize),
}
