//! What is symbolic in the input of a program: standard input or a file, and arguments, entirely or in part.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use record::flow::InputSource;

use crate::follow::FreeBytes;

/// Bytes of a hole that says nothing else.
pub const DEFAULT_HOLE: u32 = 8;
/// The argument that stands for the path of the input file.
pub const FILE_ARGUMENT: &str = "@@";

/// A piece of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Fixed(Vec<u8>),
    /// `len` bytes of the input, from `start` on.
    Free {
        start: u32,
        len: u32,
    },
}

/// Why a template cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TemplateError {
    #[error("`{0}`: `{{` without `}}`; write `{{{{` for a brace that is meant")]
    Open(String),
    #[error("`{0}`: a hole is `{{NAME:sym}}` or `{{NAME:sym:BYTES}}`, as in 'put {{key:sym}} {{value:sym:4}}'")]
    Hole(String),
}

/// What a program gets, and what of it is free.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Standard input, or the file that stands for [`FILE_ARGUMENT`].
    pub file: Vec<Piece>,
    /// By place in the command.
    pub arguments: Vec<(u32, Vec<Piece>)>,
    /// How many bytes are free.
    pub len: u32,
    /// What is in them at first.
    pub seed: Vec<u8>,
}

/// Parts of a template: text, and holes with their lengths.
fn parse(template: &str) -> Result<Vec<Result<String, u32>>, TemplateError> {
    let mut parts: Vec<Result<String, u32>> = Vec::new();
    let mut text = String::new();
    let mut rest = template;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("{{") {
            text.push('{');
            rest = after;
        } else if let Some(after) = rest.strip_prefix("}}") {
            text.push('}');
            rest = after;
        } else if let Some(inside) = rest.strip_prefix('{') {
            let (hole, after) = inside.split_once('}').ok_or_else(|| TemplateError::Open(template.to_owned()))?;
            let mut fields = hole.split(':');
            let (name, kind, len) = (fields.next(), fields.next(), fields.next());
            let len = match len {
                None => Some(DEFAULT_HOLE),
                Some(len) => len.parse().ok().filter(|&len| (1..=4096).contains(&len)),
            };
            let right = name.is_some_and(|n| !n.is_empty()) && kind == Some("sym") && fields.next().is_none();
            let len = len.filter(|_| right).ok_or_else(|| TemplateError::Hole(format!("{{{hole}}}")))?;
            if !text.is_empty() {
                parts.push(Ok(std::mem::take(&mut text)));
            }
            parts.push(Err(len));
            rest = after;
        } else {
            text.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    if !text.is_empty() {
        parts.push(Ok(text));
    }
    Ok(parts)
}

/// What a free byte is at first: a digit is a key, a number and a word to most programs.
const FILL: u8 = b'1';

impl Shape {
    fn pieces(&mut self, template: &str) -> Result<Vec<Piece>, TemplateError> {
        let mut pieces = Vec::new();
        for part in parse(template)? {
            pieces.push(match part {
                Ok(text) => Piece::Fixed(text.into_bytes()),
                Err(len) => {
                    let start = self.len;
                    self.len += len;
                    self.seed.resize(self.len as usize, FILL);
                    Piece::Free { start, len }
                }
            });
        }
        Ok(pieces)
    }

    /// Lines of the input file, each a template.
    pub fn add_lines(&mut self, templates: &[String]) -> Result<(), TemplateError> {
        for template in templates {
            let mut pieces = self.pieces(template)?;
            pieces.push(Piece::Fixed(b"\n".to_vec()));
            self.file.append(&mut pieces);
        }
        Ok(())
    }

    /// Operations, one per line: their first words stay, letters and digits behind them are free.
    pub fn add_operations(&mut self, text: &[u8]) {
        for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let word = line.iter().position(|byte| byte.is_ascii_whitespace()).unwrap_or(line.len());
            let mut rest = line;
            let mut at = 0;
            while !rest.is_empty() {
                let is_free = |n: usize, byte: &u8| at + n >= word && byte.is_ascii_alphanumeric();
                let free = is_free(0, &rest[0]);
                let len = rest.iter().enumerate().position(|(n, b)| is_free(n, b) != free).unwrap_or(rest.len());
                let (piece, after) = rest.split_at(len);
                match free {
                    true => self.add_free(piece),
                    false => self.file.push(Piece::Fixed(piece.to_vec())),
                }
                at += len;
                rest = after;
            }
            self.file.push(Piece::Fixed(b"\n".to_vec()));
        }
    }

    /// All bytes of this content are free.
    pub fn add_free(&mut self, content: &[u8]) {
        let (start, len) = (self.len, content.len() as u32);
        self.len += len;
        self.seed.extend_from_slice(content);
        self.file.push(Piece::Free { start, len });
    }

    /// Arguments of the command with holes.
    pub fn add_arguments(&mut self, command: &[OsString]) -> Result<(), TemplateError> {
        for (at, argument) in command.iter().enumerate().skip(1) {
            let Some(text) = argument.to_str().filter(|text| text.contains(":sym")) else { continue };
            let pieces = self.pieces(text)?;
            self.arguments.push((at as u32, pieces));
        }
        Ok(())
    }

    /// The input file for these bytes.
    pub fn render_file(&self, input: &[u8]) -> Vec<u8> {
        render(&self.file, input)
    }

    /// The command for these bytes; an argument ends at its first zero byte.
    pub fn render_command(&self, command: &[OsString], input: &[u8], file: &std::path::Path) -> Vec<OsString> {
        let mut command: Vec<OsString> = command.to_vec();
        for argument in &mut command {
            if argument.as_bytes() == FILE_ARGUMENT.as_bytes() {
                *argument = file.as_os_str().to_owned();
            }
        }
        for (at, pieces) in &self.arguments {
            let mut bytes = render(pieces, input);
            bytes.truncate(bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len()));
            command[*at as usize] = OsString::from_vec(bytes);
        }
        command
    }

    /// Which bytes of which source are free.
    pub fn free(&self) -> FreeBytes {
        let places = |pieces: &[Piece]| -> Vec<Option<u32>> {
            let of = |piece: &Piece| -> Vec<Option<u32>> {
                match piece {
                    Piece::Fixed(text) => vec![None; text.len()],
                    Piece::Free { start, len } => (*start..start + len).map(Some).collect(),
                }
            };
            pieces.iter().flat_map(of).collect()
        };
        let mut free = FreeBytes::new();
        if !self.file.is_empty() {
            free.insert(InputSource::File, places(&self.file));
        }
        for (at, pieces) in &self.arguments {
            free.insert(InputSource::Argument(*at), places(pieces));
        }
        free
    }
}

fn render(pieces: &[Piece], input: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Fixed(text) => bytes.extend_from_slice(text),
            Piece::Free { start, len } => {
                bytes.extend((*start..start + len).map(|at| input.get(at as usize).copied().unwrap_or(0)));
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_free_and_the_rest_is_fixed() {
        let mut shape = Shape::default();
        shape.add_lines(&["put {key:sym:2} {value:sym:1}".to_owned(), "get {{x}}".to_owned()]).unwrap();
        assert_eq!(shape.render_file(b"abc"), b"put ab c\nget {x}\n");
        assert_eq!(shape.free()[&InputSource::File][4..9], [Some(0), Some(1), None, Some(2), None]);
        assert_eq!(shape.len, 3);
        let mut shape = Shape::default();
        shape.add_arguments(&["./prog".into(), "--n={n:sym:3}".into(), "@@".into()]).unwrap();
        let command = shape.render_command(&["./prog".into(), "x".into(), "@@".into()], b"4\x002", "/f".as_ref());
        assert_eq!(command, ["./prog", "--n=4", "/f"]);
    }

    #[test]
    fn operations_keep_their_words() {
        let mut shape = Shape::default();
        shape.add_operations(b"put k1 22\ncount\n\nget k1");
        assert_eq!(shape.seed, b"k122k1");
        assert_eq!(shape.render_file(&shape.seed), b"put k1 22\ncount\nget k1\n");
        assert_eq!(shape.render_file(b"ABCDEF"), b"put AB CD\ncount\nget EF\n");
    }

    #[test]
    fn wrong_templates_are_refused() {
        for template in ["put {key", "put {key}", "{:sym}", "{k:sym:0}", "{k:sym:3:4}"] {
            assert!(Shape::default().add_lines(&[template.to_owned()]).is_err(), "{template}");
        }
    }
}
