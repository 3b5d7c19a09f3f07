//! The CRC-32 that `.gnu_debuglink` uses to tell whether a debug file belongs to a binary (GDB manual,
//! "Debugging Information in Separate Files").

pub(super) fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    !bytes.iter().fold(!0, |crc, byte| TABLE[usize::from(crc as u8 ^ byte)] ^ crc >> 8)
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    #[test]
    fn check_value() {
        // The check value that every description of CRC-32/ISO-HDLC gives.
        assert_eq!(super::crc32(b"123456789"), 0xcbf4_3926);
    }
}
