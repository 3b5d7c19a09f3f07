//! The table of `cargo xtask bench infer`.

use std::time::Duration;

/// A number in decimal, of any size.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Huge {
    /// The lowest first.
    digits: Vec<u8>,
}

impl Huge {
    /// Adds a number in decimal.
    pub fn add(&mut self, decimal: &str) {
        let mut carry = 0;
        let other: Vec<u8> = decimal.bytes().rev().map(|digit| digit - b'0').collect();
        for at in 0..self.digits.len().max(other.len()) + 1 {
            let sum = self.digits.get(at).unwrap_or(&0) + other.get(at).unwrap_or(&0) + carry;
            carry = sum / 10;
            match self.digits.get_mut(at) {
                Some(digit) => *digit = sum % 10,
                None => self.digits.push(sum % 10),
            }
        }
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
    }

    /// Exact if it is short, else with its power of ten.
    pub fn show(&self) -> String {
        let decimal: String = self.digits.iter().rev().map(|digit| char::from(b'0' + digit)).collect();
        match decimal.len() {
            0 => "0".to_owned(),
            1..=9 => decimal,
            length => format!("{}.{}e{}", &decimal[..1], &decimal[1..2], length - 1),
        }
    }
}

/// What one strategy did.
#[derive(Clone, Debug)]
pub struct Side {
    pub states: u64,
    pub recoveries: u64,
    pub time: Duration,
    /// Variants with a bug that have a finding.
    pub found: u32,
    pub twin_findings: u64,
    pub complete: bool,
}

/// One program.
#[derive(Clone, Debug)]
pub struct Row {
    pub name: String,
    pub bugs: u32,
    pub possible: Huge,
    pub inferred: Side,
    pub visible: Side,
}

impl Row {
    pub fn new(name: &str) -> Self {
        let (states, recoveries, time, found, twin_findings) = Default::default();
        let side = Side { states, recoveries, time, found, twin_findings, complete: true };
        Row { name: name.to_owned(), bugs: 0, possible: Huge::default(), inferred: side.clone(), visible: side }
    }

    pub fn is_twin_guilty(&self) -> bool {
        self.inferred.twin_findings + self.visible.twin_findings > 0
    }
}

pub fn print(rows: &[Row]) {
    println!(
        "{:<18}{:>12}{:>11}{:>9}{:>9}{:>9}{:>12}{:>9}{:>9}{:>9}",
        "program", "possible", "inferred", "runs", "time", "bugs", "visible", "runs", "time", "bugs"
    );
    for row in rows {
        println!("{}", line(row));
    }
}

fn line(row: &Row) -> String {
    let side = |side: &Side, width: usize| {
        let states = format!("{}{}", side.states, if side.complete { "" } else { "*" });
        let bugs = format!("{}/{}", side.found, row.bugs);
        let twin = if side.twin_findings > 0 { "!" } else { "" };
        format!("{states:>width$}{:>9}{:>8.1}s{:>9}", side.recoveries, side.time.as_secs_f64(), format!("{bugs}{twin}"))
    };
    format!("{:<18}{:>12}{}{}", row.name, row.possible.show(), side(&row.inferred, 11), side(&row.visible, 12))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_numbers_add_up() {
        let mut sum = Huge::default();
        assert_eq!(sum.show(), "0");
        sum.add("999");
        sum.add("2");
        assert_eq!(sum.show(), "1001");
        sum.add("99999999999999999999999999");
        assert_eq!(sum.show(), "1.0e26");
        sum.add("0");
        assert_eq!(sum.show(), "1.0e26");
    }

    #[test]
    fn what_is_incomplete_or_wrong_is_marked() {
        let mut row = Row::new("c/level");
        row.bugs = 8;
        row.visible = Side { states: 70, complete: false, found: 7, twin_findings: 1, ..row.visible };
        let line = line(&row);
        assert!(line.starts_with("c/level") && line.contains("70*") && line.ends_with("7/8!"), "{line}");
    }
}
