//! What `cargo deny check` checks and needs no network for: every dependency is under a licence that `deny.toml` allows, and from the registry.
//! (Advisories need their database; `cargo deny` itself looks at them.)

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::build::cargo;

/// The same as `deny.toml`'s.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

pub fn check() -> anyhow::Result<ExitCode> {
    let rules = Rules::read()?;
    let arguments =
        ["metadata", "--locked", "--offline", "--all-features", "--format-version", "1", "--filter-platform"];
    let output = cargo().args(arguments).arg(PLATFORM).output().context("cannot run cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    // What this platform builds: the graph has it, the list of packages has more.
    let nodes = metadata["resolve"]["nodes"].as_array().context("no graph of dependencies")?;
    let built: BTreeSet<&str> = nodes.iter().filter_map(|node| node["id"].as_str()).collect();
    let packages = metadata["packages"].as_array().context("no packages")?;
    let (mut count, mut wrong) = (0, 0);
    for package in packages.iter().filter(|package| package["id"].as_str().is_some_and(|id| built.contains(id))) {
        count += 1;
        for problem in rules.problems(package) {
            wrong += 1;
            println!("{} {}: {problem}", text(package, "name"), text(package, "version"));
        }
    }
    println!("{count} packages, {wrong} problems");
    Ok(if wrong == 0 && count > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn text<'p>(package: &'p Value, field: &str) -> &'p str {
    package[field].as_str().unwrap_or_default()
}

/// What `deny.toml` allows.
#[derive(Debug)]
struct Rules {
    allowed: BTreeSet<String>,
    exceptions: BTreeMap<String, BTreeSet<String>>,
}

impl Rules {
    fn read() -> anyhow::Result<Rules> {
        let text = fs::read_to_string("deny.toml").context("cannot read deny.toml; run this in the repository")?;
        Rules::of(&text.parse::<toml::Table>().context("deny.toml")?)
    }

    fn of(table: &toml::Table) -> anyhow::Result<Rules> {
        let licences = table.get("licenses").context("deny.toml has no [licenses]")?;
        let names = |list: Option<&toml::Value>| -> BTreeSet<String> {
            let list = list.and_then(toml::Value::as_array).into_iter().flatten();
            list.filter_map(toml::Value::as_str).map(str::to_owned).collect()
        };
        let allowed = names(licences.get("allow"));
        ensure!(!allowed.is_empty(), "deny.toml allows no licence");
        let exceptions = licences.get("exceptions").and_then(toml::Value::as_array).into_iter().flatten();
        let exceptions = exceptions
            .filter_map(|entry| Some((entry.get("crate")?.as_str()?.to_owned(), names(entry.get("allow")))))
            .collect();
        Ok(Rules { allowed, exceptions })
    }

    fn problems(&self, package: &Value) -> Vec<String> {
        let mut problems = Vec::new();
        let source = text(package, "source");
        // Those of the workspace have no source.
        if !source.is_empty() && !source.starts_with("registry+") {
            problems.push(format!("comes from {source}"));
        }
        let licence = text(package, "license");
        let exception = self.exceptions.get(text(package, "name"));
        let is_allowed = |name: &str| self.allowed.contains(name) || exception.is_some_and(|more| more.contains(name));
        if licence.is_empty() {
            problems.push("has no licence expression".to_owned());
        } else if !allows(licence, &is_allowed) {
            problems.push(format!("is under {licence}, which deny.toml does not allow"));
        }
        problems
    }
}

/// Is an SPDX expression true if the allowed licences are? `AND` binds closer than `OR`; `/` is an old word for `OR`.
fn allows(expression: &str, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let value = any(&words, &mut at, is_allowed);
    // What cannot be read to its end is not allowed.
    value && at == words.len()
}

fn any(words: &[&str], at: &mut usize, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut value = all(words, at, is_allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        value |= all(words, at, is_allowed);
    }
    value
}

fn all(words: &[&str], at: &mut usize, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut value = one(words, at, is_allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        value &= one(words, at, is_allowed);
    }
    value
}

fn one(words: &[&str], at: &mut usize, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    let word = words.get(*at).copied();
    // Also at the end: an expression that lacks a word is not read to its end.
    *at += 1;
    let Some(word) = word else { return false };
    if word == "(" {
        let value = any(words, at, is_allowed);
        let closed = words.get(*at) == Some(&")");
        *at += 1;
        return value && closed;
    }
    if let (Some(&"WITH"), Some(exception)) = (words.get(*at), words.get(*at + 1)) {
        *at += 2;
        return is_allowed(&format!("{word} WITH {exception}"));
    }
    // `+`: this version or a later one, so that this one will do.
    is_allowed(word) || word.strip_suffix('+').is_some_and(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions() {
        let is_allowed = |name: &str| ["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"].contains(&name);
        for right in [
            "MIT",
            "MIT OR GPL-3.0",
            "GPL-3.0/MIT",
            "MIT+",
            "MIT AND Zlib",
            "(GPL-3.0 OR MIT) AND Zlib",
            "GPL-3.0 AND Zlib OR MIT",
            "Apache-2.0 WITH LLVM-exception OR Apache-2.0",
        ] {
            assert!(allows(right, &is_allowed), "{right}");
        }
        for wrong in ["GPL-3.0", "GPL-3.0+", "MIT AND GPL-3.0", "(MIT", "MIT OR", "MIT Zlib", "", "Apache-2.0"] {
            assert!(!allows(wrong, &is_allowed), "{wrong}");
        }
    }

    #[test]
    fn a_package_from_elsewhere_is_told() {
        let table = "[licenses]\nallow = [\"MIT\"]\nexceptions = [{ crate = \"x\", allow = [\"MPL-2.0\"] }]";
        let rules = Rules::of(&table.parse().unwrap()).unwrap();
        let problems = |name: &str, licence: &str, source: &str| {
            rules.problems(&serde_json::json!({ "name": name, "license": licence, "source": source })).len()
        };
        assert_eq!(problems("a", "MIT", "registry+index"), 0);
        assert_eq!(problems("a", "MPL-2.0", "registry+index"), 1);
        assert_eq!(problems("x", "MPL-2.0", "registry+index"), 0);
        assert_eq!(problems("a", "", "git+https://example.org"), 2);
    }
}
