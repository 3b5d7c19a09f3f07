//! A command line with a place for the operation.
//!
//! Words are split as a shell does, with quotes and backslashes; nothing else of a shell is understood. Where `{op}` is a
//! word of its own, the words of the operation take its place; inside another word, the operation as a whole does.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

const PLACE: &str = "{op}";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("the command {0:?} is empty; name a program")]
    Empty(String),
    #[error("the command {0:?} has a quote that does not end")]
    Quote(String),
    #[error("the command {0:?} has no place for the operation; write {{op}} where it belongs")]
    NoPlace(String),
}

/// The words of a command line.
pub fn words(text: &str) -> Result<Vec<OsString>, TemplateError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            quote @ ('\'' | '"') => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or_else(|| TemplateError::Quote(text.into()))? {
                        end if end == quote => break,
                        '\\' if quote == '"' => {
                            word.push(chars.next().ok_or_else(|| TemplateError::Quote(text.into()))?);
                        }
                        inside => word.push(inside),
                    }
                }
            }
            '\\' => {
                word.get_or_insert_default().push(chars.next().ok_or_else(|| TemplateError::Quote(text.into()))?);
            }
            char => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    if words.is_empty() {
        Err(TemplateError::Empty(text.into()))
    } else {
        Ok(words.into_iter().map(OsString::from).collect())
    }
}

/// The words of a command line that has a place for the operation.
pub fn with_place(text: &str) -> Result<Vec<OsString>, TemplateError> {
    let words = words(text)?;
    let has = words.iter().any(|word| word.to_string_lossy().contains(PLACE));
    if has { Ok(words) } else { Err(TemplateError::NoPlace(text.into())) }
}

/// The command for an operation.
pub fn filled(template: &[OsString], operation: &[u8]) -> Vec<OsString> {
    let mut words = Vec::new();
    for word in template {
        if word == PLACE {
            let parts = operation.split(|byte| byte.is_ascii_whitespace()).filter(|part| !part.is_empty());
            words.extend(parts.map(|part| OsString::from_vec(part.to_vec())));
        } else {
            words.push(replaced(word, PLACE, operation));
        }
    }
    words
}

/// The word with something else in all places of that name.
pub fn replaced(word: &OsString, place: &str, by: &[u8]) -> OsString {
    let (bytes, place) = (word.as_bytes(), place.as_bytes());
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(place) {
            out.extend_from_slice(by);
            at += place.len();
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    OsString::from_vec(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(words: &[OsString]) -> Vec<&str> {
        words.iter().map(|word| word.to_str().unwrap()).collect()
    }

    #[test]
    fn words_are_split_as_in_a_shell() {
        assert_eq!(shown(&words(r#"a  'b c' d\ e "f \"g" ''"#).unwrap()), ["a", "b c", "d e", "f \"g", ""]);
        assert_eq!(words(" "), Err(TemplateError::Empty(" ".into())));
        for open in ["a 'b", "a \"b", "a \\"] {
            assert_eq!(words(open), Err(TemplateError::Quote(open.into())));
        }
    }

    #[test]
    fn an_operation_takes_its_place() {
        let template = with_place("tool {op} --all={op};").unwrap();
        assert_eq!(shown(&filled(&template, b"put 1  2")), ["tool", "put", "1", "2", "--all=put 1  2;"]);
        assert_eq!(shown(&filled(&template, b"")), ["tool", "--all=;"]);
        assert_eq!(with_place("tool"), Err(TemplateError::NoPlace("tool".into())));
    }
}
