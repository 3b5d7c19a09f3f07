//! "Did you mean": the nearest known name.

/// Names that are less alike are no suggestion; clap's measure and boundary, so that all suggestions are of one kind.
const ALIKE: f64 = 0.7;

/// The text to put behind a message about an unknown name; empty if no name is near.
pub fn did_you_mean<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let near = known
        .into_iter()
        .map(|name| (strsim::jaro(unknown, name), name))
        .filter(|(alike, _)| *alike > ALIKE)
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    near.map_or_else(String::new, |(_, name)| format!("; did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_if_one_is_near() {
        let known = ["fail-on", "fail-pattern", "budget"];
        assert_eq!(did_you_mean("fial-on", known), "; did you mean `fail-on`?");
        assert_eq!(did_you_mean("zzz", known), "");
    }
}
