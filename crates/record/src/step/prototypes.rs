//! Reads `prototypes.txt`: what each system call does to the memory behind its pointers.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::types;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prototype {
    pub name: &'static str,
    pub arguments: usize,
    pub pointers: Vec<Pointer>,
}

/// One pointer parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    pub argument: usize,
    pub role: Role,
    /// The type behind it, without `struct`.
    pub points_to: &'static str,
    pub extent: Extent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    In,
    Out,
    InOut,
    Opaque,
    Kept,
}

/// How much of it. Numbers are of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Bytes(u64),
    /// A string.
    Text,
    /// Strings up to a null pointer.
    Texts,
    /// `size` bytes for each of what this argument says, and `more`.
    Of {
        argument: usize,
        size: u64,
        more: u64,
    },
    /// The same of what the call returns; at most of what this argument says.
    Returned {
        argument: usize,
        size: u64,
        more: u64,
    },
    /// What the number behind this argument says.
    Behind(usize),
    Bits(usize),
    Pages(usize),
}

/// The prototype of a call by its number.
pub fn of(number: i64) -> Option<&'static Prototype> {
    static BY_NUMBER: LazyLock<HashMap<i64, Prototype>> = LazyLock::new(|| {
        let all = all().into_iter();
        all.filter_map(|prototype| Some((number_of(prototype.name)?, prototype))).collect()
    });
    BY_NUMBER.get(&number)
}

/// All of them, in the order of the file.
pub fn all() -> Vec<Prototype> {
    let lines = include_str!("prototypes.txt").lines();
    let text = lines.map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    text.map(|line| parse(line).unwrap_or_else(|| panic!("prototypes.txt: {line}"))).collect()
}

fn parse(line: &'static str) -> Option<Prototype> {
    let (head, rest) = line.split_once('(')?;
    let name = head.rsplit([' ', '*']).next()?;
    let list = rest.strip_suffix(')')?;
    let parameters: Vec<&'static str> = list.split(',').map(str::trim).filter(|p| !p.is_empty()).collect();
    let names: Vec<&str> = parameters.iter().map(|p| name_of(p)).collect();
    let mut pointers = Vec::new();
    for (argument, parameter) in parameters.iter().enumerate() {
        if parameter.contains(['*', '[']) {
            pointers.push(pointer(argument, parameter, &names)?);
        }
    }
    Some(Prototype { name, arguments: parameters.len(), pointers })
}

/// The name of a parameter.
fn name_of(parameter: &str) -> &str {
    let declared = parameter.split('[').next().unwrap_or(parameter);
    declared.rsplit([' ', '*']).next().unwrap_or(declared)
}

fn pointer(argument: usize, parameter: &'static str, names: &[&str]) -> Option<Pointer> {
    let (declared, length) = match parameter.split_once('[') {
        Some((declared, rest)) => (declared, Some(rest.strip_suffix(']')?)),
        None => (parameter, None),
    };
    let mut words: Vec<&'static str> = declared.split([' ', '*']).filter(|word| !word.is_empty()).collect();
    words.pop()?;
    let role = match words[0] {
        "const" => Role::In,
        "inout" => Role::InOut,
        "opaque" => Role::Opaque,
        "kept" => Role::Kept,
        _ => Role::Out,
    };
    let points_to = *words.last()?;
    let extent = match length {
        None if role == Role::In && points_to == "char" => Extent::Text,
        None => Extent::Bytes(types::bytes_of(points_to)?),
        Some("") => Extent::Texts,
        Some(length) => extent(length, points_to, names)?,
    };
    Some(Pointer { argument, role, points_to, extent })
}

fn extent(length: &str, points_to: &str, names: &[&str]) -> Option<Extent> {
    let argument = |name: &str| names.iter().position(|other| *other == name.trim());
    if let Some(bits) = length.strip_prefix("bits ") {
        return Some(Extent::Bits(argument(bits)?));
    }
    if let Some(pages) = length.strip_prefix("pages ") {
        return Some(Extent::Pages(argument(pages)?));
    }
    if let Some(behind) = length.strip_prefix('*') {
        return Some(Extent::Behind(argument(behind)?));
    }
    let size = types::bytes_of(points_to)?;
    if let Ok(count) = length.parse::<u64>() {
        return Some(Extent::Bytes(count * size));
    }
    let (count, more) = match length.split_once('+') {
        Some((count, more)) => (count, more.trim().parse().ok()?),
        None => (length, 0),
    };
    Some(match count.strip_prefix("return ") {
        Some(most) => Extent::Returned { argument: argument(most)?, size, more },
        None => Extent::Of { argument: argument(count)?, size, more },
    })
}

/// The number of a call by its name, from the C library's list.
fn number_of(name: &str) -> Option<i64> {
    let found = NUMBERS.iter().find(|(other, _)| *other == name);
    found.map(|(_, number)| *number)
}

include!("numbers.rs");

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use syscalls::{Access, Length, Shape, TABLE, Use};

    use super::*;

    /// Calls that are in the kernel's headers for history only: no manual page declares them any more.
    const NUMBERS_ONLY: [&str; 17] = [
        "uselib",
        "sysfs",
        "_sysctl",
        "create_module",
        "get_kernel_syms",
        "query_module",
        "nfsservctl",
        "getpmsg",
        "putpmsg",
        "afs_syscall",
        "tuxcall",
        "security",
        "lookup_dcookie",
        "epoll_ctl_old",
        "epoll_wait_old",
        "vserver",
        "uretprobe",
    ];

    /// A row of the probe's table in the words of a prototype.
    fn as_pointer(used: &Use) -> (usize, Role, Extent) {
        let at = |argument: u8| usize::from(argument);
        let role = match (used.access, used.shape) {
            (_, Shape::Opaque) => Role::Opaque,
            (Access::Read, _) => Role::In,
            (Access::Written, _) => Role::Out,
            (Access::Changed, _) => Role::InOut,
            (Access::Kept, _) => Role::Kept,
        };
        let extent = match used.shape {
            Shape::Opaque => Extent::Bytes(1),
            Shape::Text => Extent::Text,
            Shape::Texts => Extent::Texts,
            Shape::Vector { count } => Extent::Of { argument: at(count), size: 16, more: 0 },
            Shape::Message => Extent::Bytes(56),
            Shape::Pack => Extent::Bytes(16),
            Shape::Messages { count } => Extent::Of { argument: at(count), size: 64, more: 0 },
            Shape::Bytes(length) | Shape::Waiters(length) => match length {
                Length::Fixed(bytes) => Extent::Bytes(bytes.into()),
                Length::Argument(a) => Extent::Of { argument: at(a), size: 1, more: 0 },
                Length::Items { count, size } => Extent::Of { argument: at(count), size: size.into(), more: 0 },
                Length::Result { most } => Extent::Returned { argument: at(most), size: 1, more: 0 },
                Length::ResultItems { most, size } => {
                    Extent::Returned { argument: at(most), size: size.into(), more: 0 }
                }
                Length::Pointed(a) => Extent::Behind(at(a)),
                Length::Bits(a) => Extent::Bits(at(a)),
                Length::Pages(a) => Extent::Pages(at(a)),
                Length::Plus { argument, more } => Extent::Of { argument: at(argument), size: 1, more: more.into() },
                Length::ResultPlus { most, more } => {
                    Extent::Returned { argument: at(most), size: 1, more: more.into() }
                }
            },
        };
        (at(used.argument), role, extent)
    }

    /// Every difference between the probe's table and the prototypes, in words.
    fn differences() -> Vec<String> {
        let prototypes: BTreeMap<&str, Prototype> = all().into_iter().map(|p| (p.name, p)).collect();
        let mut told = Vec::new();
        for entry in TABLE {
            let Some(prototype) = prototypes.get(entry.name) else {
                if !NUMBERS_ONLY.contains(&entry.name) && entry.name != "uprobe" {
                    told.push(format!("{}: no prototype", entry.name));
                }
                continue;
            };
            if number_of(entry.name) != Some(entry.number.into()) {
                told.push(format!("{}: number {} against {:?}", entry.name, entry.number, number_of(entry.name)));
            }
            if prototype.arguments != usize::from(entry.arguments) {
                told.push(format!("{}: {} arguments against {}", entry.name, entry.arguments, prototype.arguments));
            }
            let ours: Vec<_> = entry.uses.iter().map(as_pointer).collect();
            let theirs: Vec<_> = prototype.pointers.iter().map(|p| (p.argument, p.role, p.extent)).collect();
            if ours != theirs {
                told.push(format!("{}: {ours:?} against {theirs:?}", entry.name));
            }
        }
        told.extend(
            prototypes
                .keys()
                .filter(|name| !TABLE.iter().any(|entry| entry.name == **name))
                .map(|name| format!("{name}: not in the table")),
        );
        told
    }

    #[test]
    fn the_probes_table_and_the_prototypes_agree() {
        assert_eq!(differences(), Vec::<String>::new());
    }

    #[test]
    fn the_kernel_headers_have_no_call_that_the_table_lacks() {
        // Debian, Fedora. Where the headers are not installed, the C library's list (`numbers.rs`) stands alone.
        let places = ["/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"];
        let headers = places.iter().find_map(|place| std::fs::read_to_string(place).ok());
        let headers = headers.expect("the kernel's headers (package linux-libc-dev)");
        let mut seen = 0;
        for line in headers.lines() {
            let Some(rest) = line.strip_prefix("#define __NR_") else { continue };
            let (name, number) = rest.split_once(' ').expect("a name and a number");
            let number: u64 = number.trim().parse().expect("a number");
            let entry = syscalls::entry(number).unwrap_or_else(|| panic!("{name} ({number}) is not in the table"));
            assert_eq!(entry.name, name);
            seen += 1;
        }
        assert!(seen > 330, "{seen} calls in the headers");
    }

    #[test]
    fn rows_are_in_order() {
        assert!(TABLE.windows(2).all(|pair| pair[0].number < pair[1].number));
        assert!(TABLE.iter().all(|entry| entry.uses.windows(2).all(|pair| pair[0].argument < pair[1].argument)));
        assert!(TABLE.iter().all(|entry| entry.uses.iter().all(|used| used.argument < entry.arguments)));
    }
}
