//! Reads operations from their lines.

use std::str::FromStr;

use crate::content::{SEEDS, Seed};
use crate::op::{Allocate, Fd, File, Offset, Op, Path, Way};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadOp {
    #[error("`{0}` is no system call that is known; docs/file-systems.md lists them")]
    Unknown(String),
    #[error("`{line}`: {what}")]
    Malformed { line: String, what: String },
}

impl FromStr for Op {
    type Err = BadOp;

    fn from_str(line: &str) -> Result<Op, BadOp> {
        let mut words = Words::of(line);
        let kind = words.plain.first().copied().unwrap_or_default();
        let op = match words.operation(kind) {
            None => return Err(BadOp::Unknown(kind.to_owned())),
            Some(op) => op.and_then(|op| words.used_up().map(|()| op)),
        };
        op.map_err(|what| BadOp::Malformed { line: line.trim().to_owned(), what })
    }
}

/// The words of a line: plain ones in order, `key=value`, and flags.
struct Words<'a> {
    plain: Vec<&'a str>,
    next: usize,
    named: Vec<(&'a str, &'a str)>,
}

impl<'a> Words<'a> {
    fn of(line: &'a str) -> Words<'a> {
        let (named, plain): (Vec<&str>, Vec<&str>) =
            line.split_whitespace().partition(|word| word.starts_with("fd=") || word.starts_with("seed="));
        Words { plain, next: 1, named: named.into_iter().filter_map(|word| word.split_once('=')).collect() }
    }

    fn operation(&mut self, kind: &str) -> Option<Result<Op, String>> {
        Some(match kind {
            "creat" => self.path().map(Op::Creat),
            "mkdir" => self.path().map(Op::Mkdir),
            "rmdir" => self.path().map(Op::Rmdir),
            "unlink" => self.path().map(Op::Unlink),
            "remove" => self.path().map(Op::Remove),
            "link" => self.two(Op::Link),
            "symlink" => self.two(Op::Symlink),
            "rename" => self.two(Op::Rename),
            "open" => self.open(),
            "close" => self.descriptor().and_then(|fd| fd.ok_or("it names no descriptor (fd=N)".into())).map(Op::Close),
            "write" => self.write(Way::Buffered),
            "dwrite" => self.write(Way::Direct),
            "mmap" => self.write(Way::Mapped),
            "read" => self.range().map(|(file, at, len)| Op::Read { file, at, len }),
            "truncate" => self.file().and_then(|file| Ok(Op::Truncate { file, len: self.number()? })),
            "fallocate" => self.fallocate(),
            "fsync" => self.file().map(Op::Fsync),
            "fdatasync" => self.file().map(Op::Fdatasync),
            "sync" => Ok(Op::Sync),
            "reset" => Ok(Op::Reset),
            "setxattr" => self.path().and_then(|path| {
                Ok(Op::Setxattr { path, name: self.word("name")?.to_owned(), value: self.word("value")?.to_owned() })
            }),
            "removexattr" => {
                self.path().and_then(|path| Ok(Op::Removexattr { path, name: self.word("name")?.to_owned() }))
            }
            "chmod" => self.path().and_then(|path| {
                let mode = u32::from_str_radix(self.word("mode")?, 8).ok().filter(|mode| *mode <= 0o7777);
                Ok(Op::Chmod(path, mode.ok_or("a mode has up to four octal digits")?))
            }),
            "chown" => self.path().and_then(|path| Ok(Op::Chown(path, self.id()?, self.id()?))),
            _ => return None,
        })
    }

    fn word(&mut self, what: &str) -> Result<&'a str, String> {
        let word = self.plain.get(self.next).copied();
        self.next += 1;
        word.ok_or_else(|| format!("the {what} is missing"))
    }

    fn path(&mut self) -> Result<Path, String> {
        let path = self.word("path")?;
        if path.starts_with('/') || path.split('/').any(|part| part == "..") {
            return Err("paths are relative to the file system under test and do not leave it".into());
        }
        Ok(path.to_owned())
    }

    fn two(&mut self, make: fn(Path, Path) -> Op) -> Result<Op, String> {
        Ok(make(self.path()?, self.path()?))
    }

    fn number(&mut self) -> Result<u64, String> {
        let word = self.word("number")?;
        word.parse().map_err(|_| format!("`{word}` is no number of bytes"))
    }

    fn id(&mut self) -> Result<u32, String> {
        let word = self.word("user or group")?;
        word.parse().map_err(|_| format!("`{word}` is no number of a user or group"))
    }

    fn offset(&mut self) -> Result<Offset, String> {
        let word = self.word("offset")?;
        let offset = match word.strip_prefix("end") {
            Some("") => Some(Offset::BeforeEnd(0)),
            Some(back) => back.strip_prefix('-').and_then(|back| back.parse().ok()).map(Offset::BeforeEnd),
            None => word.parse().ok().map(Offset::At),
        };
        offset.ok_or_else(|| format!("`{word}` is no offset; write a number, `end` or `end-N`"))
    }

    fn named(&self, key: &str) -> Option<&'a str> {
        self.named.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    fn descriptor(&self) -> Result<Option<Fd>, String> {
        let parsed = self.named("fd").map(str::parse).transpose();
        parsed.map(|fd| fd.map(Fd)).map_err(|_| "fd= wants a number from 0 to 255".into())
    }

    fn file(&mut self) -> Result<File, String> {
        Ok(File { path: self.path()?, fd: self.descriptor()? })
    }

    fn range(&mut self) -> Result<(File, Offset, u64), String> {
        Ok((self.file()?, self.offset()?, self.number()?))
    }

    fn write(&mut self, way: Way) -> Result<Op, String> {
        let (file, at, len) = self.range()?;
        let seed = self.named("seed").and_then(|seed| seed.parse().ok()).filter(|seed| *seed > 0);
        let seed = seed.ok_or_else(|| format!("seed= wants a number from 1 to {SEEDS}"))?;
        Ok(Op::Write { file, at, len, seed: Seed(seed), way })
    }

    fn fallocate(&mut self) -> Result<Op, String> {
        let word = self.word("mode")?;
        let mode = Allocate::ALL.iter().find(|(_, name, _)| *name == word).map(|(mode, ..)| *mode);
        let mode = mode.ok_or_else(|| format!("`{word}` is no mode of fallocate"))?;
        let (file, at, len) = self.range()?;
        Ok(Op::Fallocate { mode, file, at, len })
    }

    fn open(&mut self) -> Result<Op, String> {
        let file = self.path()?;
        let fd = self.descriptor()?.ok_or("it names no descriptor (fd=N)")?;
        let (mut truncate, mut append) = (false, false);
        while self.next < self.plain.len() {
            match self.word("flag")? {
                "trunc" => truncate = true,
                "append" => append = true,
                other => return Err(format!("`{other}` is no flag of open; there are trunc and append")),
            }
        }
        Ok(Op::Open { file, fd, truncate, append })
    }

    fn used_up(&self) -> Result<(), String> {
        match self.plain.get(self.next) {
            Some(word) if !self.plain.is_empty() => Err(format!("there is a word too many: `{word}`")),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_survives_as_text() {
        let lines = [
            "creat A/foo",
            "mkdir A",
            "rmdir A",
            "unlink foo",
            "remove foo",
            "link foo bar",
            "symlink a/b c",
            "rename A/foo bar",
            "open foo fd=2 trunc append",
            "close fd=2",
            "write foo 5 1024 seed=3 fd=2",
            "dwrite foo end 4096 seed=255",
            "mmap foo 0 64 seed=1",
            "read foo 0 100 fd=1",
            "truncate foo 256",
            "truncate foo 0 fd=7",
            "fallocate keep-size foo end-1024 2048",
            "fallocate punch-hole foo 0 10 fd=1",
            "fsync foo",
            "fdatasync A fd=2",
            "sync",
            "setxattr foo user.a value",
            "removexattr foo user.a",
            "chmod foo 600",
            "chown foo 1 2",
            "reset",
        ];
        for line in lines {
            assert_eq!(line.parse::<Op>().map(|op| op.to_string()), Ok(line.to_owned()));
        }
    }

    #[test]
    fn what_is_no_operation() {
        let why = |line: &str| line.parse::<Op>().unwrap_err().to_string();
        assert!(why("fly foo").starts_with("`fly` is no system call"));
        assert_eq!(why("creat"), "`creat`: the path is missing");
        assert_eq!(why("creat a b"), "`creat a b`: there is a word too many: `b`");
        assert!(why("creat ../a").contains("do not leave it"));
        assert!(why("write foo 0 8").contains("seed= wants"));
        assert!(why("write foo 0 8 seed=0").contains("seed= wants"));
        assert!(why("fallocate big foo 0 8").contains("no mode"));
        assert!(why("close").contains("no descriptor"));
        assert!(why("").starts_with("``"));
    }
}
