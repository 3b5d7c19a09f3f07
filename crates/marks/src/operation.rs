//! One operation, from its begin to its end.

use crate::{begin, end};

/// Does something as one operation. If it panics, the operation does not end.
#[inline(always)]
pub fn operation<T>(body: impl FnOnce() -> T) -> T {
    begin();
    let result = body();
    end();
    result
}

#[cfg(test)]
mod tests {
    #[test]
    fn marks_do_nothing() {
        assert_eq!(super::operation(|| 7), 7);
    }
}
