//! The operations of a workload and the queries of its readback, as lines of one text.

use std::ops::Range;
use std::sync::Arc;

use recover::command::{MAX_ANSWERS, MAX_BYTE_RANGES};
use serde::{Deserialize, Serialize};

use crate::grammar::LineOrder;
use crate::queries::Queries;
use crate::resumed::EXIT;

/// Operations in order, then the readback.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    #[serde(with = "fleet::text")]
    text: Arc<[u8]>,
    /// Each line with its newline.
    operations: Vec<Range<u64>>,
    readback: Vec<Range<u64>>,
    queries: Queries,
    /// Of operations that are windows: their parts, as lines behind the readback. Empty for all others.
    parts: Vec<Vec<Range<u64>>>,
    /// What kind of operation each is, if somebody has names for them.
    kinds: Vec<String>,
    /// Of the lines of answers to queries, if somebody has said.
    pub order: Option<LineOrder>,
    /// Between the items of an answer on one line; none: spaces.
    pub separator: Option<String>,
}

/// Operations and queries of a program that reads them from standard input: one run is given all of them, and the end of the
/// last answer is a boundary, too.
pub const MAX_LINES: usize = MAX_ANSWERS - 1;

/// Operations at the same time in one window: every order of every part of them must be run once.
pub const MAX_PARTS: usize = 4;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    #[error("there is not one operation in it; write one per line")]
    Empty,
    #[error("operation {0} has a zero byte in it; operations are lines of text")]
    ZeroByte(usize),
    #[error(
        "{operations} operations and {queries} queries are more than the {MAX_LINES} whose answers can be told apart in one run; \
         give it fewer operations, or a shorter readback"
    )]
    TooLong { operations: usize, queries: usize },
    #[error(
        "operation {number} is a window of {parts} operations at the same time; more than {MAX_PARTS} have too many orders to \
         try: make it smaller"
    )]
    TooManyParts { number: usize, parts: usize },
}

impl Workload {
    /// From the lines of two texts. Empty lines are operations too: some programs take them.
    pub fn new(operations: &[u8], readback: &[u8]) -> Result<Workload, WorkloadError> {
        let workload = Workload::of_lines(operations, readback)?;
        match (workload.count(), workload.readback_count()) {
            (operations, queries) if operations + queries > MAX_LINES => {
                Err(WorkloadError::TooLong { operations, queries })
            }
            _ => Ok(workload),
        }
    }

    fn of_lines(operations: &[u8], readback: &[u8]) -> Result<Workload, WorkloadError> {
        let mut text = Vec::with_capacity(operations.len() + readback.len() + 2);
        let operations = add_lines(&mut text, operations);
        let readback = add_lines(&mut text, readback);
        if operations.is_empty() {
            return Err(WorkloadError::Empty);
        }
        let queries = Queries::of(&text, &operations, &readback);
        let parts = vec![Vec::new(); operations.len()];
        let workload = Workload {
            text: text.into(),
            operations,
            readback,
            queries,
            parts,
            kinds: Vec::new(),
            order: None,
            separator: None,
        };
        match (0..workload.count()).find(|&number| workload.line(number).contains(&0)) {
            Some(number) => Err(WorkloadError::ZeroByte(number)),
            None => Ok(workload),
        }
    }

    /// With windows: lines whose parts, between separators, happen at the same time.
    pub fn with_windows(mut self, separator: &str) -> Result<Workload, WorkloadError> {
        let mut text = self.text.to_vec();
        for number in 0..self.count() {
            let line = self.shown(number);
            let parts: Vec<&str> = line.split(separator).map(str::trim).collect();
            match parts.len() {
                0 | 1 => {}
                2..=MAX_PARTS => self.parts[number] = add_lines(&mut text, parts.join("\n").as_bytes()),
                parts => return Err(WorkloadError::TooManyParts { number, parts }),
            }
        }
        self.text = text.into();
        Ok(self)
    }

    /// The parts of an operation that is a window, as byte_ranges; none if it is none.
    pub fn parts(&self, number: usize) -> &[Range<u64>] {
        self.parts.get(number).map_or(&[], Vec::as_slice)
    }

    /// The first window from this operation on; or how many operations there are.
    pub fn next_window(&self, from: usize) -> usize {
        (from..self.count()).find(|&number| !self.parts(number).is_empty()).unwrap_or(self.count())
    }

    /// Operations of a program that reads them itself: their text if it is known. The end of a run is the only query.
    pub fn unread(count: usize, text: Option<&[u8]>) -> Result<Workload, WorkloadError> {
        let nameless = "operation\n".repeat(count);
        Workload::of_lines(text.unwrap_or(nameless.as_bytes()), EXIT.as_bytes())
    }

    /// All lines: what the byte_ranges refer to.
    pub fn text(&self) -> &Arc<[u8]> {
        &self.text
    }

    /// Stands for the text (FNV-1a).
    pub fn fingerprint(&self) -> u64 {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        self.text.iter().fold(0xcbf2_9ce4_8422_2325, step) ^ self.operations.len() as u64
    }

    /// False if its lines are not in its text: another machine sent it.
    pub(crate) fn is_sound(&self) -> bool {
        let is_inside = |lines: &[Range<u64>]| {
            let places: Vec<u64> = lines.iter().flat_map(|line| [line.start, line.end]).collect();
            places.is_sorted() && places.last().is_none_or(|end| *end <= self.text.len() as u64)
        };
        let mut lines = [&self.operations, &self.readback].into_iter().chain(&self.parts);
        lines.all(|lines| is_inside(lines)) && self.queries.is_sound(self.readback.len())
    }

    /// The operations, without the readback, as the program reads them.
    pub fn operations(&self) -> &[u8] {
        self.slice(&merged(&self.operations))
    }

    /// How many operations there are, without the readback.
    pub fn count(&self) -> usize {
        self.operations.len()
    }

    pub fn readback_count(&self) -> usize {
        self.readback.len()
    }

    /// An operation as the program reads it.
    fn line(&self, number: usize) -> &[u8] {
        self.slice(&self.operations[number])
    }

    fn slice(&self, range: &Range<u64>) -> &[u8] {
        &self.text[range.start as usize..range.end as usize]
    }

    /// An operation, or a query of the readback (they follow the last operation), for people.
    pub fn shown(&self, number: usize) -> String {
        let range = self.operations.get(number).or_else(|| self.readback.get(number - self.operations.len()));
        let line = range.map_or(&b"?"[..], |range| self.slice(range));
        String::from_utf8_lossy(line.trim_ascii_end()).into_owned()
    }

    /// Names for the kinds of the operations, in their order.
    pub fn name_kinds(&mut self, kinds: Vec<String>) {
        self.kinds = kinds;
    }

    /// What kind of operation it is: its name in the grammar, or its first word, however words are separated (`i;177;542`).
    pub fn kind(&self, number: usize) -> String {
        if let Some(name) = self.kinds.get(number) {
            return name.clone();
        }
        let separates = |c: char| c.is_whitespace() || ";,:|=/".contains(c);
        self.shown(number).split(separates).find(|word| !word.is_empty()).unwrap_or_default().to_owned()
    }

    /// A process that recovered is asked at most so many queries of the readback.
    pub fn limit_queries(&mut self, most: usize) {
        self.queries.limit(most.min(MAX_BYTE_RANGES - 1 - MAX_PARTS));
    }

    /// How many that are.
    pub fn asked_queries(&self) -> usize {
        self.queries.count()
    }

    /// The operations of a run that recovered before operation `range.start`: these, then queries of the readback. Their numbers as
    /// [`shown`](Self::shown) takes them.
    pub fn numbers(&self, range: Range<usize>) -> impl Iterator<Item = usize> + use<> {
        let (count, queries) = (self.count(), self.queries.asked(range.start));
        range.chain(queries.into_iter().map(move |query| count + query))
    }

    /// What such a run reads.
    pub fn byte_ranges(&self, range: Range<usize>) -> Vec<Range<u64>> {
        let queries = self.readback_ranges(range.start);
        [self.byte_range(range)].into_iter().chain(queries).filter(|byte_range| !byte_range.is_empty()).collect()
    }

    /// The queries that are asked after a crash before operation `next`.
    pub fn readback_ranges(&self, next: usize) -> Vec<Range<u64>> {
        let mut byte_ranges: Vec<Range<u64>> = Vec::new();
        for query in self.queries.asked(next) {
            let line = &self.readback[query];
            match byte_ranges.last_mut().filter(|last| last.end == line.start) {
                Some(last) => last.end = line.end,
                None => byte_ranges.push(line.clone()),
            }
        }
        byte_ranges
    }

    /// Their numbers in the readback.
    pub fn queries(&self, next: usize) -> Vec<usize> {
        self.queries.asked(next)
    }

    /// These operations, as one byte range of the text.
    pub fn byte_range(&self, range: Range<usize>) -> Range<u64> {
        merged(&self.operations[range])
    }

    pub fn readback_range(&self) -> Range<u64> {
        merged(&self.readback)
    }

    /// One query of the readback.
    pub fn query_range(&self, number: usize) -> Range<u64> {
        self.readback.get(number).cloned().unwrap_or_default()
    }
}

/// Adjacent lines are one byte range.
fn merged(lines: &[Range<u64>]) -> Range<u64> {
    match lines {
        [first, .., last] => first.start..last.end,
        [only] => only.clone(),
        [] => 0..0,
    }
}

fn add_lines(text: &mut Vec<u8>, lines: &[u8]) -> Vec<Range<u64>> {
    let lines = lines.strip_suffix(b"\n").unwrap_or(lines);
    if lines.is_empty() {
        return Vec::new();
    }
    let mut ranges = Vec::new();
    for line in lines.split(|&byte| byte == b'\n') {
        let start = text.len() as u64;
        text.extend_from_slice(line);
        text.push(b'\n');
        ranges.push(start..text.len() as u64);
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_byte_ranges() {
        let workload = Workload::new(b"i 1 2\nd 1\ng 1", b"g 1\nn\n").unwrap();
        assert_eq!((workload.count(), workload.readback_count()), (3, 2));
        assert_eq!(workload.shown(0), "i 1 2");
        assert_eq!(workload.shown(4), "n");
        assert_eq!(workload.kind(1), "d");
        let text = |range: Range<u64>| workload.slice(&range).to_vec();
        assert_eq!(text(workload.byte_range(1..3)), b"d 1\ng 1\n");
        assert_eq!(text(workload.readback_range()), b"g 1\nn\n");
        assert_eq!(workload.byte_range(2..2), 0..0);
        assert_eq!(workload.numbers(1..2).collect::<Vec<_>>(), [1, 3, 4]);
    }

    #[test]
    fn a_kind_is_the_first_word_whatever_separates_words() {
        let workload = Workload::new(b"i;177;542\nd,3\n put\t1 2\ns:a=b\n/get/7\ni|1", b"").unwrap();
        let kinds: Vec<String> = (0..workload.count()).map(|number| workload.kind(number)).collect();
        assert_eq!(kinds, ["i", "d", "put", "s", "get", "i"]);
    }

    #[test]
    fn windows_have_parts() {
        let workload = Workload::new(b"a\nb 1 || c\nd", b"q").unwrap().with_windows(" || ").unwrap();
        let parts: Vec<&[u8]> = workload.parts(1).iter().map(|part| workload.slice(part)).collect();
        assert_eq!(parts, [&b"b 1\n"[..], b"c\n"]);
        assert_eq!((workload.parts(0).len(), workload.next_window(0), workload.next_window(2)), (0, 1, 3));
        assert_eq!(workload.operations(), b"a\nb 1 || c\nd\n");
        let five = Workload::new(b"a||b||c||d||e", b"").unwrap().with_windows("||");
        assert_eq!(five, Err(WorkloadError::TooManyParts { number: 0, parts: 5 }));
    }

    #[test]
    fn what_is_no_workload() {
        assert_eq!(Workload::new(b"", b"g 1"), Err(WorkloadError::Empty));
        assert_eq!(Workload::new(b"a\n\0\n", b""), Err(WorkloadError::ZeroByte(1)));
        let most = "a\n".repeat(MAX_LINES);
        assert!(Workload::new(most.as_bytes(), b"").is_ok());
        let too_long = WorkloadError::TooLong { operations: MAX_LINES, queries: 1 };
        assert_eq!(Workload::new(most.as_bytes(), b"q"), Err(too_long));
        assert!(Workload::unread(2 * MAX_LINES, None).is_ok(), "nobody serves these");
    }
}
