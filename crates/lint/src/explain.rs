//! The explanation pages: for each built-in rule what it means, a bad example and its repair.

macro_rules! pages {
    ($($id:literal),* $(,)?) => {
        /// Rule ids with their pages, in order.
        pub const PAGES: &[(&str, &str)] = &[$(($id, include_str!(concat!("../explain/", $id, ".md")))),*];
    };
}

pages![
    "FP0101", "FP0102", "FP0103", "FP0201", "FP0202", "FP0203", "FP0204", "FP0301", "FP0302", "FP0303", "FP0304",
    "FP0401", "FP0402", "FP0403", "FP0501", "FP0502",
];

/// The page of a rule.
pub fn page(id: &str) -> Option<&'static str> {
    PAGES.iter().find(|(known, _)| known.eq_ignore_ascii_case(id)).map(|(_, page)| *page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{Settings, built_in};

    #[test]
    fn every_rule_has_a_page_with_a_bad_and_a_repaired_example() {
        let rules = built_in(&Settings::default());
        let ids: Vec<&str> = rules.iter().map(|rule| &*rule.info().id).collect();
        assert_eq!(ids, PAGES.iter().map(|(id, _)| *id).collect::<Vec<_>>());
        for rule in &rules {
            let info = rule.info();
            let page = page(&info.id).unwrap();
            let head = format!("# {}: {}\n", info.id, info.name);
            assert!(page.starts_with(&head), "{} must begin with {head:?}", info.id);
            assert!(page.contains("## Bad\n") && page.contains("## Repaired\n"), "{}", info.id);
            assert!(page.contains(&format!("**{}**", info.severity)), "{} must name its severity", info.id);
        }
    }
}
