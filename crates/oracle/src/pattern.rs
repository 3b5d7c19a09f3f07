//! Lines of output that mean failure.

use regex::bytes::Regex;
use thiserror::Error;

/// A line that no right recovery prints.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

#[derive(Debug, Error)]
#[error(
    "the output pattern {pattern:?} is no regular expression: {source}; quote characters such as [ ( * with a backslash"
)]
pub struct PatternError {
    pattern: String,
    source: Box<regex::Error>,
}

impl Pattern {
    pub fn new(pattern: &str) -> Result<Pattern, PatternError> {
        let regex = Regex::new(pattern);
        regex.map(Pattern).map_err(|source| PatternError { pattern: pattern.into(), source: Box::new(source) })
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    pub(crate) fn matches(&self, line: &[u8]) -> bool {
        self.0.is_match(line)
    }
}

/// What the sanitizers of GCC and Clang print. A leak of ordinary memory says nothing about the pool, so LeakSanitizer
/// is not among them.
pub fn sanitizers() -> Vec<Pattern> {
    [r"(ERROR|WARNING): (Address|HWAddress|Memory|Thread|UndefinedBehavior)Sanitizer", r"^\S+:\d+:\d+: runtime error: "]
        .map(|pattern| Pattern::new(pattern).expect("valid"))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_pattern_says_so() {
        let message = Pattern::new("a(b").unwrap_err().to_string();
        assert!(message.contains("\"a(b\"") && message.contains("backslash"), "{message}");
    }

    #[test]
    fn a_go_panic_or_a_leak_is_not_a_sanitizers_complaint() {
        for line in ["panic: runtime error: index out of range", "==1==ERROR: LeakSanitizer: detected memory leaks"] {
            assert!(sanitizers().iter().all(|pattern| !pattern.matches(line.as_bytes())), "{line}");
        }
    }
}
