//! The first stack: argc, argv, envp and the auxiliary vector (System V ABI, x86-64 supplement §3.4.1), at the addresses where
//! the kernel would have put them for the target (`fs/exec.c`, `create_elf_tables` in `fs/binfmt_elf.c`).

use alloc::vec::Vec;

use super::image::Image;

pub const AT_NULL: u64 = 0;
pub const AT_IGNORE: u64 = 1;
pub const AT_PHDR: u64 = 3;
pub const AT_PHENT: u64 = 4;
pub const AT_PHNUM: u64 = 5;
pub const AT_BASE: u64 = 7;
pub const AT_ENTRY: u64 = 9;
pub const AT_PLATFORM: u64 = 15;
pub const AT_RANDOM: u64 = 25;
pub const AT_EXECFN: u64 = 31;
pub const AT_SYSINFO_EHDR: u64 = 33;

/// What the kernel gave to the probe, copied off the stack.
#[derive(Debug)]
pub struct Initial {
    pub argv: Vec<Vec<u8>>,
    pub envp: Vec<Vec<u8>>,
    pub auxv: Vec<(u64, u64)>,
    /// What the kernel put into `AT_EXECFN` for the probe.
    pub exec_fn: Vec<u8>,
    /// End of the strings: the highest byte in use.
    top: u64,
    platform: Vec<u8>,
    random: [u8; 16],
}

impl Initial {
    /// # Safety
    /// `at` is the stack pointer at the probe's first instruction.
    pub unsafe fn read(at: *const u64) -> Initial {
        // SAFETY: the kernel ends each list with a zero word, and each string with a zero byte.
        unsafe {
            let argc = *at as usize;
            let mut word = at.add(1);
            let argv = (0..argc).map(|i| string(*word.add(i))).collect();
            word = word.add(argc + 1);
            let mut envp = Vec::new();
            while *word != 0 {
                envp.push(string(*word));
                word = word.add(1);
            }
            word = word.add(1);
            let mut auxv = Vec::new();
            while *word != AT_NULL {
                auxv.push((*word, *word.add(1)));
                word = word.add(2);
            }
            let find = |key| auxv.iter().find(|(k, _)| *k == key).map(|(_, v)| *v);
            let exec_fn = find(AT_EXECFN).map(|a| string(a)).unwrap_or_default();
            let top = find(AT_EXECFN).unwrap_or(at as u64) + exec_fn.len() as u64 + 1;
            let platform = find(AT_PLATFORM).map(|a| string(a)).unwrap_or_default();
            let random = find(AT_RANDOM).map_or([0; 16], |a| *(a as *const [u8; 16]));
            Initial { argv, envp, auxv, exec_fn, top, platform, random }
        }
    }

    fn set_aux(&mut self, key: u64, value: u64) {
        for entry in &mut self.auxv {
            if entry.0 == key {
                entry.1 = value;
            }
        }
    }

    pub fn set_random(&mut self, bytes: [u8; 16]) {
        self.random = bytes;
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

    /// Writes the stack anew for a program started as `exec_fn`.
    ///
    /// # Safety
    /// The stack that the kernel set up is in use by nobody (the engine runs on its own).
    pub unsafe fn build(&mut self, exec_fn: &[u8]) -> Built {
        let mut down = Down { at: self.top };
        let exec_fn = down.string(exec_fn);
        let mut envp: Vec<u64> = self.envp.iter().rev().map(|text| down.string(text)).collect();
        envp.reverse();
        let mut argv: Vec<u64> = self.argv.iter().rev().map(|text| down.string(text)).collect();
        argv.reverse();
        let env_start = envp.first().copied().unwrap_or(exec_fn);
        let arg_start = argv.first().copied().unwrap_or(env_start);
        down.at = arg_start & !15;
        let platform = down.string(&self.platform);
        let random = down.bytes(&self.random);
        self.set_aux(AT_EXECFN, exec_fn);
        self.set_aux(AT_PLATFORM, platform);
        self.set_aux(AT_RANDOM, random);

        let mut words = alloc::vec![argv.len() as u64];
        words.extend(&argv);
        words.push(0);
        words.extend(&envp);
        words.push(0);
        let list = words.len();
        words.extend(self.auxv.iter().flat_map(|(key, value)| [*key, *value]));
        words.extend([AT_NULL, 0]);
        let stack = (random - words.len() as u64 * 8) & !15;
        for (i, word) in words.iter().enumerate() {
            // SAFETY: by contract.
            unsafe { *((stack + i as u64 * 8) as *mut u64) = *word };
        }
        let arguments = argv.iter().zip(&self.argv).map(|(&at, text)| (at, text.len() as u64)).collect();
        Built { stack, arg_start, env_start, env_end: exec_fn, auxv: words[list..].to_vec(), arguments }
    }
}

/// Writes from the top of the stack downward.
struct Down {
    at: u64,
}

impl Down {
    fn bytes(&mut self, bytes: &[u8]) -> u64 {
        self.at -= bytes.len() as u64;
        // SAFETY: part of `Initial::build`: stack that nobody uses, and that grows on its own.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at as *mut u8, bytes.len()) };
        self.at
    }

    fn string(&mut self, text: &[u8]) -> u64 {
        self.bytes(&[0]);
        self.bytes(text)
    }
}

/// # Safety
/// A C string on the first stack.
unsafe fn string(address: u64) -> Vec<u8> {
    // SAFETY: by contract.
    unsafe { core::ffi::CStr::from_ptr(address as *const _) }.to_bytes().to_vec()
}

/// Where things are on the new stack.
#[derive(Debug)]
pub struct Built {
    pub stack: u64,
    pub arg_start: u64,
    pub env_start: u64,
    pub env_end: u64,
    pub auxv: Vec<u64>,
    /// Address and length of each argument.
    pub arguments: Vec<(u64, u64)>,
}
