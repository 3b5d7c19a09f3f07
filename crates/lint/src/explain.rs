//! The explanation pages: what each built-in rule and each class of crash finding means, a bad example and its repair.

use finding::finding::Class;
use finding::severity::Severity;

macro_rules! page {
    ($id:literal) => {
        include_str!(concat!("../explain/", $id, ".md"))
    };
}

macro_rules! pages {
    ($($id:literal),* $(,)?) => {
        /// Rule ids with their pages, in order.
        pub const PAGES: &[(&str, &str)] = &[$(($id, page!($id))),*];
    };
}

pages![
    "FP0101", "FP0102", "FP0103", "FP0104", "FP0201", "FP0202", "FP0203", "FP0204", "FP0205", "FP0301", "FP0302",
    "FP0303", "FP0304", "FP0401", "FP0402", "FP0403", "FP0404", "FP0501", "FP0502",
];

/// What a crash brought to light. No rule looks for it, so the registry does not have it.
#[derive(Clone, Copy, Debug)]
pub struct CrashClass {
    pub id: &'static str,
    /// What users know it by.
    pub name: &'static str,
    pub class: Class,
    pub severity: Severity,
    pub title: &'static str,
    pub page: &'static str,
}

/// The classes of findings that crash states and recovery runs lead to.
pub const CRASH_CLASSES: [CrashClass; 8] = [
    CrashClass {
        id: "FP0601",
        name: "durability",
        class: Class::Durability,
        severity: Severity::Error,
        title: "a store that recovery needs is never made durable",
        page: page!("FP0601"),
    },
    CrashClass {
        id: "FP0602",
        name: "ordering",
        class: Class::Ordering,
        severity: Severity::Error,
        title: "stores can reach PM in an order that recovery does not survive",
        page: page!("FP0602"),
    },
    CrashClass {
        id: "FP0603",
        name: "atomicity",
        class: Class::Atomicity,
        severity: Severity::Error,
        title: "stores that belong together can be torn apart by a crash",
        page: page!("FP0603"),
    },
    CrashClass {
        id: "FP0604",
        name: "recovery",
        class: Class::Recovery,
        severity: Severity::Error,
        title: "recovery crashes or hangs on what a crash left",
        page: page!("FP0604"),
    },
    CrashClass {
        id: "FP0605",
        name: "lost-without-crash",
        class: Class::Durability,
        severity: Severity::Error,
        title: "what the complete run acknowledged is not there after reopening, without any power failure",
        page: page!("FP0605"),
    },
    CrashClass {
        id: "FP0606",
        name: "listing-order",
        class: Class::Ordering,
        severity: Severity::Warning,
        title: "a listing comes in another order after a power failure",
        page: page!("FP0606"),
    },
    CrashClass {
        id: "FP0607",
        name: "locked-instead-of-fence",
        class: Class::Ordering,
        severity: Severity::Warning,
        title: "durable in time only because a locked instruction happens to come after the flush",
        page: page!("FP0607"),
    },
    CrashClass {
        id: "FP0701",
        name: "breakdown",
        class: Class::Breakdown,
        severity: Severity::Error,
        title: "the program crashes or hangs without any power failure",
        page: page!("FP0701"),
    },
];

/// The page of a rule, by its id, or of a class of crash findings, by id or name.
pub fn page(wanted: &str) -> Option<&'static str> {
    let rule = PAGES.iter().find(|(known, _)| known.eq_ignore_ascii_case(wanted)).map(|(_, page)| *page);
    let is_wanted =
        |known: &&CrashClass| known.id.eq_ignore_ascii_case(wanted) || known.name.eq_ignore_ascii_case(wanted);
    rule.or_else(|| CRASH_CLASSES.iter().find(is_wanted).map(|known| known.page))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{Settings, built_in};

    fn check(id: &str, name: &str, severity: &str) {
        let page = page(id).unwrap();
        let head = format!("# {id}: {name}\n");
        assert!(page.starts_with(&head), "{id} must begin with {head:?}");
        assert!(page.contains("## Bad\n") && page.contains("## Repaired\n"), "{id}");
        assert!(page.contains(&format!("**{severity}**")), "{id} must name its severity");
    }

    #[test]
    fn every_rule_has_a_page_with_a_bad_and_a_repaired_example() {
        let rules = built_in(&Settings::default());
        let ids: Vec<&str> = rules.iter().map(|rule| &*rule.info().id).collect();
        assert_eq!(ids, PAGES.iter().map(|(id, _)| *id).collect::<Vec<_>>());
        for rule in &rules {
            let info = rule.info();
            check(&info.id, &info.name, &info.severity.to_string());
        }
    }

    #[test]
    fn every_class_of_crash_findings_has_one_too() {
        for known in CRASH_CLASSES {
            check(known.id, known.name, known.severity.name());
            assert_eq!(page(known.name), Some(known.page));
        }
    }
}
