//! The words that the table is written in.

/// One system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyscallFacts {
    pub number: u16,
    /// As in the kernel's headers.
    pub name: &'static str,
    /// How many arguments it has. Registers beyond them hold anything, perhaps an address in PM.
    pub arguments: u8,
    /// Its pointers, by ascending argument.
    pub uses: &'static [Use],
}

/// What the kernel does with the memory behind one pointer argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    pub argument: u8,
    pub access: Access,
    pub shape: Shape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only read.
    Read,
    /// All of it is written if the call succeeds.
    Written,
    /// May be read, and parts of it may be written, even if the call fails: only a comparison tells which.
    Changed,
    /// The kernel goes on using it after the call.
    Kept,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Bytes(Length),
    /// A string that ends with a NUL.
    Text,
    /// A list of such strings that ends with a null pointer.
    Texts,
    /// An array of `iovec`; its length is in another argument.
    Vector {
        count: u8,
    },
    /// A `msghdr`.
    Message,
    /// An array of `mmsghdr`; its length is in another argument.
    Messages {
        count: u8,
    },
    /// A pointer and, in the next word, the 32-bit length of what it points to: a signal mask, the value of an attribute.
    Pack,
    /// An array of `futex_waitv`, so many bytes. Each names a word that is read.
    Waiters(Length),
    /// Depends on the command or the device; no kernel structure that is meant is longer than [`Length::MOST`]. It may hold
    /// pointers.
    Opaque,
}

/// How many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    Fixed(u32),
    /// As many as this argument says.
    Argument(u8),
    /// This argument times so many.
    Items {
        count: u8,
        size: u32,
    },
    /// As many as the call returns, at most what this argument says.
    Result {
        most: u8,
    },
    /// As many items of this size as the call returns, at most what this argument says.
    ResultItems {
        most: u8,
        size: u32,
    },
    /// As the `u32` behind this argument says: at most what it says before, and as many as it says afterwards.
    Pointed(u8),
    /// One bit for each of this argument, in words of 64.
    Bits(u8),
    /// One byte for each page of this argument.
    Pages(u8),
    /// What this argument says, and so many more.
    Plus {
        argument: u8,
        more: u32,
    },
    /// What the call returns and so many more; at most what this argument says, and so many more.
    ResultPlus {
        most: u8,
        more: u32,
    },
}

impl Length {
    /// What is looked at behind an opaque pointer.
    pub const MOST: u64 = 4096;

    /// How much the kernel may touch. `pointed` reads the `u32` behind an address.
    pub fn most(self, args: &[u64; 6], pointed: impl Fn(u64) -> Option<u32>) -> u64 {
        let argument = |at: u8| args[at as usize];
        match self {
            Length::Fixed(len) => u64::from(len),
            Length::Argument(at) | Length::Result { most: at } => argument(at),
            Length::Items { count: at, size } | Length::ResultItems { most: at, size } => {
                // Counts are 32-bit numbers in nearly all of these calls.
                (argument(at) & 0xffff_ffff).saturating_mul(u64::from(size))
            }
            Length::Pointed(at) => pointed(argument(at)).map_or(0, u64::from),
            Length::Bits(at) => (argument(at) & 0xffff_ffff).div_ceil(64).saturating_mul(8),
            Length::Pages(at) => argument(at).div_ceil(4096),
            Length::Plus { argument: at, more } | Length::ResultPlus { most: at, more } => {
                argument(at).saturating_add(u64::from(more))
            }
        }
    }

    /// How much it touched in a call that returned `result` (no error), of the `most` that it might have.
    pub fn done(self, most: u64, args: &[u64; 6], result: u64, pointed: impl Fn(u64) -> Option<u32>) -> u64 {
        match self {
            Length::Result { .. } => result.min(most),
            Length::ResultItems { size, .. } => result.saturating_mul(u64::from(size)).min(most),
            Length::ResultPlus { more, .. } => result.saturating_add(u64::from(more)).min(most),
            Length::Pointed(at) => pointed(args[at as usize]).map_or(0, u64::from).min(most),
            _ => most,
        }
    }
}
