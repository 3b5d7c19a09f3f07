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
    /// The two states of every point; with those that break a condition; with all that recovery can tell apart.
    pub sides: [Side; 3],
}

impl Row {
    pub fn new(name: &str) -> Self {
        let (states, recoveries, time, found, twin_findings) = Default::default();
        let side = Side { states, recoveries, time, found, twin_findings, complete: true };
        let sides = [side.clone(), side.clone(), side];
        Row { name: name.to_owned(), bugs: 0, possible: Huge::default(), sides }
    }

    pub fn inferred(&self) -> &Side {
        &self.sides[1]
    }

    pub fn visible(&self) -> &Side {
        &self.sides[2]
    }

    /// Of one side, beyond those of the first.
    pub fn recoveries(&self, side: usize) -> u64 {
        self.sides[side].recoveries.saturating_sub(if side == 0 { 0 } else { self.sides[0].recoveries })
    }

    /// How many of every hundred recoveries of `visible` those of `inferred` are.
    fn part(&self) -> u64 {
        (self.recoveries(1) * 100).div_ceil(self.recoveries(2).max(1))
    }

    pub fn is_twin_guilty(&self) -> bool {
        self.sides.iter().any(|side| side.twin_findings > 0)
    }
}

pub fn print(rows: &[Row]) {
    print!("{:<16}{:>10}", "program", "possible");
    for name in ["two", "inferred", "visible"] {
        print!("{name:>11}{:>11}{:>9}{:>7}", "recoveries", "time", "bugs");
    }
    println!("{:>6}", "part");
    for row in rows {
        println!("{}", line(row));
    }
}

pub fn line(row: &Row) -> String {
    let mut line = format!("{:<16}{:>10}", row.name, row.possible.show());
    for (at, side) in row.sides.iter().enumerate() {
        let two = (at > 0).then_some(&row.sides[0]);
        let states = side.states.saturating_sub(two.map_or(0, |two| two.states));
        let states = format!("{states}{}", if side.complete { "" } else { "*" });
        let bugs = format!("{}/{}{}", side.found, row.bugs, if side.twin_findings > 0 { "!" } else { "" });
        line.push_str(&format!("{states:>11}{:>11}{:>8.1}s{bugs:>7}", row.recoveries(at), side.time.as_secs_f64()));
    }
    line.push_str(&format!("{:>5}%", row.part()));
    line
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
        row.sides[0].states = 30;
        row.sides[0].recoveries = 20;
        row.sides[1].recoveries = 25;
        let recoveries = 60;
        row.sides[2] =
            Side { states: 100, recoveries, complete: false, found: 7, twin_findings: 1, ..row.sides[2].clone() };
        let line = line(&row);
        assert!(line.starts_with("c/level") && line.contains("70*") && line.contains("7/8!"), "{line}");
        assert!(line.ends_with(" 13%"), "5 of 40, rounded up: {line}");
    }
}
