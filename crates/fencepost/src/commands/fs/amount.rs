//! How many random workloads to run: a number, or as many as a time allows.

use std::time::{Duration, Instant};

use crate::commands::options::crash::duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    Count(u64),
    Time(Duration),
}

/// `200`, or `5m`.
pub fn amount(text: &str) -> Result<Amount, String> {
    match text.parse() {
        Ok(count) => Ok(Amount::Count(count)),
        Err(_) => duration(text).map(Amount::Time).map_err(|error| format!("{error}; or a number of workloads")),
    }
}

impl Amount {
    /// A number for every workload, until there are enough.
    pub fn numbers(self) -> Box<dyn Iterator<Item = u64>> {
        match self {
            Amount::Count(count) => Box::new(0..count),
            Amount::Time(time) => {
                let end = Instant::now() + time;
                Box::new((0..).take_while(move |_| Instant::now() < end))
            }
        }
    }

    /// What one batch may take of it: one that fails in many ways must leave time for others.
    pub fn share(self) -> Option<Duration> {
        const PARTS: u32 = 8;
        match self {
            Amount::Count(_) => None,
            Amount::Time(time) => Some(time / PARTS),
        }
    }

    /// When the last one must be over.
    pub fn deadline(self) -> Option<Instant> {
        match self {
            Amount::Count(_) => None,
            Amount::Time(time) => Some(Instant::now() + time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_or_a_time() {
        assert_eq!(amount("200"), Ok(Amount::Count(200)));
        assert_eq!(amount("10m"), Ok(Amount::Time(Duration::from_secs(600))));
        assert!(amount("many").unwrap_err().contains("or a number of workloads"));
        assert_eq!(Amount::Count(3).numbers().collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(Amount::Time(Duration::ZERO).numbers().count(), 0);
        assert_eq!((Amount::Count(3).share(), amount("8m").unwrap().share()), (None, Some(Duration::from_secs(60))));
        assert!(Amount::Count(3).deadline().is_none() && Amount::Time(Duration::ZERO).deadline().is_some());
    }
}
