//! Reads the payload of a record: little-endian numbers, then text or bytes.

/// Ran past the end of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Short;

/// What is left of a payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Payload<'a>(pub &'a [u8]);

impl<'a> Payload<'a> {
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Short> {
        let (head, rest) = self.0.split_first_chunk::<4>().ok_or(Short)?;
        self.0 = rest;
        Ok(u32::from_le_bytes(*head))
    }

    #[inline]
    pub fn u64(&mut self) -> Result<u64, Short> {
        let (head, rest) = self.0.split_first_chunk::<8>().ok_or(Short)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*head))
    }

    /// The rest as text; what is not UTF-8 is replaced.
    pub fn text(self) -> String {
        String::from_utf8_lossy(self.0).into_owned()
    }
}
