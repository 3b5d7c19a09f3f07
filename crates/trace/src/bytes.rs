//! Little-endian numbers, varints and strings in byte buffers. Reading never panics.

use crate::error::Malformed;

pub(crate) trait PutBytes {
    fn varint(&mut self, value: u64);
    fn text(&mut self, text: &[u8]);
}

impl PutBytes for Vec<u8> {
    /// LEB128.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.push(value as u8);
    }

    fn text(&mut self, text: &[u8]) {
        self.varint(text.len() as u64);
        self.extend_from_slice(text);
    }
}

/// What is left to read of a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a>(pub &'a [u8]);

const SHORT: Malformed = Malformed("a record ends early");

impl<'a> Input<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self.0.split_at_checked(len).ok_or(SHORT)?;
        self.0 = tail;
        Ok(head)
    }

    pub fn byte(&mut self) -> Result<u8, Malformed> {
        let (&first, tail) = self.0.split_first().ok_or(SHORT)?;
        self.0 = tail;
        Ok(first)
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes(bytes.try_into().expect("four bytes")))
    }

    pub fn u64(&mut self) -> Result<u64, Malformed> {
        let bytes = self.take(8)?;
        Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    }

    pub fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed("a number has too many bytes"))
    }

    pub fn varint32(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.varint()?).map_err(|_| Malformed("a number is too large"))
    }

    /// A count of things that take at least one byte each in what follows: never larger than that.
    pub fn count(&mut self) -> Result<usize, Malformed> {
        let count = self.varint()?;
        if count > self.0.len() as u64 {
            return Err(Malformed("a count exceeds what follows it"));
        }
        Ok(count as usize)
    }

    pub fn blob(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.count()?;
        self.take(len)
    }

    pub fn string(&mut self) -> Result<String, Malformed> {
        let bytes = self.blob()?;
        Ok(std::str::from_utf8(bytes).map_err(|_| Malformed("a text is not UTF-8"))?.to_owned())
    }
}

/// Maps small negative and positive differences to small numbers.
#[inline]
pub(crate) fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ ((difference as i64 >> 63) as u64)
}

#[inline]
pub(crate) fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}
