//! Bytes as text in JSON: each byte becomes the character with its number. Text stays readable and short; nothing is lost.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

pub fn of(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// None if a character is no byte.
pub fn bytes(text: &str) -> Option<Vec<u8>> {
    text.chars().map(|character| u8::try_from(u32::from(character)).ok()).collect()
}

pub fn serialize<B: AsRef<[u8]>, S: Serializer>(bytes: &B, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&of(bytes.as_ref()))
}

pub fn deserialize<'de, B: From<Vec<u8>>, D: Deserializer<'de>>(deserializer: D) -> Result<B, D::Error> {
    let text = String::deserialize(deserializer)?;
    bytes(&text).map(B::from).ok_or_else(|| D::Error::custom("a character is no byte"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(bytes(&of(&all)), Some(all));
        assert_eq!(bytes("…"), None);
    }
}
