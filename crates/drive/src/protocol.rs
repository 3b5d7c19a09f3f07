//! Text protocols: how an operation is sent, and where its answer ends.

use std::io::{self, BufRead, Read};

/// What the server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// A line is answered by a line.
    Line,
    /// Redis: inline commands, RESP answers (<https://redis.io/docs/latest/develop/reference/protocol-spec/>).
    Redis,
    /// Memcached's text protocol (`doc/protocol.txt` of its sources).
    Memcached,
}

/// Deeper answers than this are nobody's.
const DEPTH: u32 = 16;

impl Protocol {
    /// What is sent for an operation.
    pub fn request(self, operation: &[u8]) -> Result<Vec<u8>, String> {
        let end: &[u8] = if self == Protocol::Line { b"\n" } else { b"\r\n" };
        let command = if self == Protocol::Memcached { with_data(operation)? } else { operation.to_vec() };
        Ok([&command, end].concat())
    }

    /// One answer, as it came but for the carriage returns.
    pub fn answer(self, from: &mut dyn BufRead) -> io::Result<Vec<u8>> {
        let mut answer = Vec::new();
        match self {
            Protocol::Line => drop(line(from, &mut answer)?),
            Protocol::Redis => resp(from, &mut answer, 0)?,
            Protocol::Memcached => memcached(from, &mut answer)?,
        }
        answer.retain(|&byte| byte != b'\r');
        Ok(answer)
    }
}

/// A command that stores has its data on the same line, and `*` may stand for its length.
fn with_data(operation: &[u8]) -> Result<Vec<u8>, String> {
    let text = String::from_utf8_lossy(operation);
    let mut rest = text.as_ref();
    let mut word = || {
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = after;
        word.to_owned()
    };
    let verb = word();
    if !["set", "add", "replace", "append", "prepend", "cas"].contains(&verb.as_str()) {
        return Ok(operation.to_vec());
    }
    let (key, flags, time, len) = (word(), word(), word(), word());
    let unique = if verb == "cas" { format!(" {}", word()) } else { String::new() };
    let len = if len == "*" { rest.len().to_string() } else { len };
    if len.parse() != Ok(rest.len()) {
        return Err(format!(
            "it names {len:?} bytes of data, and {} follow; write the data behind the command, and * for its length",
            rest.len()
        ));
    }
    Ok(format!("{verb} {key} {flags} {time} {len}{unique}\r\n{rest}").into_bytes())
}

/// One line, added to the answer; where it begins there.
fn line(from: &mut dyn BufRead, answer: &mut Vec<u8>) -> io::Result<usize> {
    let at = answer.len();
    from.read_until(b'\n', answer)?;
    if answer[at..].last() == Some(&b'\n') { Ok(at) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Data of a known length, and the end of its line. Memory is taken for what comes, not for what was announced.
fn data(from: &mut dyn BufRead, answer: &mut Vec<u8>, len: u64) -> io::Result<()> {
    let whole = len.saturating_add(2);
    let got = Read::take(from, whole).read_to_end(answer)?;
    if got as u64 == whole { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn garbled(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn resp(from: &mut dyn BufRead, answer: &mut Vec<u8>, depth: u32) -> io::Result<()> {
    let at = line(from, answer)?;
    let head = String::from_utf8_lossy(&answer[at..]).trim_end().to_owned();
    let number = || head.get(1..).and_then(|text| text.parse::<i64>().ok());
    let wrong = || garbled(format!("`{head}` begins no reply"));
    match head.as_bytes().first() {
        Some(b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(') => Ok(()),
        Some(b'$' | b'=' | b'!') => match number().ok_or_else(wrong)? {
            // Null.
            len if len < 0 => Ok(()),
            len => data(from, answer, len.unsigned_abs()),
        },
        Some(kind @ (b'*' | b'~' | b'>' | b'%')) if depth < DEPTH => {
            let pairs = if *kind == b'%' { 2 } else { 1 };
            (0..number().ok_or_else(wrong)?.saturating_mul(pairs)).try_for_each(|_| resp(from, answer, depth + 1))
        }
        _ => Err(wrong()),
    }
}

fn memcached(from: &mut dyn BufRead, answer: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let at = line(from, answer)?;
        let head = String::from_utf8_lossy(&answer[at..]).trim_end().to_owned();
        let words: Vec<&str> = head.split(' ').collect();
        let len = |number: usize| {
            let len = words.get(number).and_then(|word| word.parse().ok());
            len.ok_or_else(|| garbled(format!("`{head}` does not say how long its data is")))
        };
        match words[0] {
            "VALUE" => data(from, answer, len(3)?)?,
            "VA" => return data(from, answer, len(1)?),
            "STAT" | "ITEM" => {}
            _ => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All answers in what a server sent.
    fn answers(protocol: Protocol, mut sent: &[u8]) -> Vec<String> {
        let mut answers = Vec::new();
        while !sent.is_empty() {
            answers.push(String::from_utf8(protocol.answer(&mut sent).unwrap()).unwrap());
        }
        answers
    }

    #[test]
    fn lines() {
        assert_eq!(answers(Protocol::Line, b"ok\n7\r\n"), ["ok\n", "7\n"]);
        assert_eq!(Protocol::Line.request(b"g 1").unwrap(), b"g 1\n");
    }

    #[test]
    fn redis_answers() {
        let sent = b"+OK\r\n$5\r\na\r\nbc\r\n$-1\r\n*2\r\n:1\r\n*1\r\n$0\r\n\r\n%1\r\n+a\r\n:1\r\n-ERR no\r\n";
        let expected = ["+OK\n", "$5\na\nbc\n", "$-1\n", "*2\n:1\n*1\n$0\n\n", "%1\n+a\n:1\n", "-ERR no\n"];
        assert_eq!(answers(Protocol::Redis, sent), expected);
        let error = Protocol::Redis.answer(&mut &b"hello\r\n"[..]).unwrap_err();
        assert_eq!(error.to_string(), "`hello` begins no reply");
    }

    #[test]
    fn memcached_answers() {
        let sent = b"STORED\r\nVALUE k 0 5\r\nEND\r\n\r\nEND\r\n12\r\nNOT_FOUND\r\nVA 2\r\nhi\r\nSTAT a 1\r\nEND\r\n";
        let expected =
            ["STORED\n", "VALUE k 0 5\nEND\n\nEND\n", "12\n", "NOT_FOUND\n", "VA 2\nhi\n", "STAT a 1\nEND\n"];
        assert_eq!(answers(Protocol::Memcached, sent), expected);
    }

    #[test]
    fn memcached_data_is_on_the_line() {
        let request = |text: &str| Protocol::Memcached.request(text.as_bytes()).map(|r| String::from_utf8(r).unwrap());
        assert_eq!(request("set k 0 0 * a b").unwrap(), "set k 0 0 3\r\na b\r\n");
        assert_eq!(request("cas k 0 0 1 77 a").unwrap(), "cas k 0 0 1 77\r\na\r\n");
        assert_eq!(request("get k").unwrap(), "get k\r\n");
        assert!(request("set k 0 0 2 a").unwrap_err().contains("2"));
    }

    #[test]
    fn an_answer_that_is_cut_off() {
        for (protocol, sent) in [
            (Protocol::Line, "o"),
            (Protocol::Redis, "$5\r\nab"),
            (Protocol::Redis, "$9223372036854775807\r\nab"),
            (Protocol::Redis, "%9223372036854775807\r\n+a\r\n"),
            (Protocol::Memcached, "VALUE k 0 9\r\n"),
            (Protocol::Memcached, "VA 18446744073709551615\r\n"),
        ] {
            let error = protocol.answer(&mut sent.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{protocol:?}");
        }
    }
}
