//! Seconds since 1970 as a date, in UTC.

/// `2026-11-15T16:13:02Z`, as `time` elements want it.
pub fn machine(seconds: u64) -> String {
    let (year, month, day) = civil(seconds / 86400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// `15 November 2026, 16:13 UTC`.
pub fn human(seconds: u64) -> String {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let (year, month, day) = civil(seconds / 86400);
    format!("{day} {} {year}, {:02}:{:02} UTC", MONTHS[month as usize - 1], seconds / 3600 % 24, seconds / 60 % 60)
}

/// Year, month and day of a number of days since 1970-01-01. Years are counted from March, so that the leap day is the last
/// (H. Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`).
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(machine(0), "1970-01-01T00:00:00Z");
        assert_eq!(machine(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(machine(1_709_251_199), "2024-02-29T23:59:59Z");
        assert_eq!(machine(1_709_251_200), "2024-03-01T00:00:00Z");
        assert_eq!(human(1_794_759_182), "15 November 2026, 16:13 UTC");
    }
}
