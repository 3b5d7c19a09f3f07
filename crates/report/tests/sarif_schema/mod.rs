//! The parts of the SARIF 2.1.0 schema that concern what fencepost writes, as a table: for each object its properties, their
//! types, and which are required. As in the schema, nothing else is allowed (`additionalProperties: false`), and no `null`.

use serde_json::Value;

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Uri,
    /// A whole number, not less than this.
    Number(i64),
    Flag,
    OneOf(&'static [&'static str]),
    Object(&'static str),
    Array(&'static Kind),
    /// Property names are free, values of this kind.
    MapOf(&'static Kind),
    /// A property bag: names and values are free.
    Bag,
}

use Kind::{Array, Bag, Flag, MapOf, Number, Object, OneOf, Text, Uri};

const LEVELS: Kind = OneOf(&["none", "note", "warning", "error"]);

/// Object, property, required, kind.
const SCHEMA: &[(&str, &str, bool, Kind)] = &[
    ("document", "$schema", false, Uri),
    ("document", "version", true, OneOf(&["2.1.0"])),
    ("document", "runs", true, Array(&Object("run"))),
    ("run", "tool", true, Object("tool")),
    ("run", "originalUriBaseIds", false, MapOf(&Object("artifactLocation"))),
    ("run", "invocations", false, Array(&Object("invocation"))),
    ("run", "results", false, Array(&Object("result"))),
    ("run", "properties", false, Bag),
    ("tool", "driver", true, Object("toolComponent")),
    ("toolComponent", "name", true, Text),
    ("toolComponent", "version", false, Text),
    ("toolComponent", "semanticVersion", false, Text),
    ("toolComponent", "rules", false, Array(&Object("reportingDescriptor"))),
    ("reportingDescriptor", "id", true, Text),
    ("reportingDescriptor", "name", false, Text),
    ("reportingDescriptor", "shortDescription", false, Object("multiformatMessageString")),
    ("reportingDescriptor", "help", false, Object("multiformatMessageString")),
    ("reportingDescriptor", "properties", false, Bag),
    ("multiformatMessageString", "text", true, Text),
    ("multiformatMessageString", "markdown", false, Text),
    ("invocation", "executionSuccessful", true, Flag),
    ("invocation", "exitCode", false, Number(i64::MIN)),
    ("invocation", "arguments", false, Array(&Text)),
    ("invocation", "workingDirectory", false, Object("artifactLocation")),
    ("invocation", "toolExecutionNotifications", false, Array(&Object("notification"))),
    ("notification", "level", false, LEVELS),
    ("notification", "message", true, Object("message")),
    ("message", "text", true, Text),
    ("result", "ruleId", false, Text),
    ("result", "ruleIndex", false, Number(-1)),
    ("result", "level", false, LEVELS),
    ("result", "message", true, Object("message")),
    ("result", "locations", false, Array(&Object("location"))),
    ("result", "relatedLocations", false, Array(&Object("location"))),
    ("result", "occurrenceCount", false, Number(1)),
    ("result", "partialFingerprints", false, MapOf(&Text)),
    ("result", "stacks", false, Array(&Object("stack"))),
    ("result", "properties", false, Bag),
    ("location", "id", false, Number(-1)),
    ("location", "message", false, Object("message")),
    ("location", "physicalLocation", false, Object("physicalLocation")),
    ("location", "logicalLocations", false, Array(&Object("logicalLocation"))),
    ("physicalLocation", "artifactLocation", false, Object("artifactLocation")),
    ("physicalLocation", "region", false, Object("region")),
    ("physicalLocation", "address", false, Object("address")),
    ("artifactLocation", "uri", false, Uri),
    ("artifactLocation", "uriBaseId", false, Text),
    ("region", "startLine", false, Number(1)),
    ("address", "fullyQualifiedName", false, Text),
    ("address", "kind", false, Text),
    ("logicalLocation", "name", false, Text),
    ("logicalLocation", "fullyQualifiedName", false, Text),
    ("logicalLocation", "kind", false, Text),
    ("stack", "message", false, Object("message")),
    ("stack", "frames", true, Array(&Object("stackFrame"))),
    ("stackFrame", "location", false, Object("location")),
    ("stackFrame", "module", false, Text),
];

/// Panics where the document breaks the schema, or refers to what it does not have.
pub fn check(document: &Value) {
    value(document, Object("document"), "document");
    for run in document["runs"].as_array().unwrap() {
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        for result in run["results"].as_array().unwrap() {
            let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            assert_eq!(rules[index]["id"], result["ruleId"]);
        }
    }
}

fn value(value: &Value, kind: Kind, at: &str) {
    let text = || value.as_str().unwrap_or_else(|| panic!("{at} is not a text: {value}"));
    match kind {
        Text => assert!(!text().is_empty(), "{at} is empty"),
        Uri => {
            let allowed = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=%".contains(c);
            assert!(text().chars().all(allowed), "{at} is not a URI: {value}");
        }
        OneOf(words) => assert!(words.contains(&text()), "{at}: {value} is not one of {words:?}"),
        Number(least) => assert!(value.as_i64().is_some_and(|number| number >= least), "{at}: {value}"),
        Flag => assert!(value.is_boolean(), "{at}: {value}"),
        Array(of) => {
            let items = value.as_array().unwrap_or_else(|| panic!("{at} is not an array"));
            items.iter().enumerate().for_each(|(number, item)| self::value(item, *of, &format!("{at}[{number}]")));
        }
        MapOf(of) => members(value, at).for_each(|(name, item)| self::value(item, *of, &format!("{at}.{name}"))),
        Bag => members(value, at).for_each(|(name, item)| assert!(!item.is_null(), "{at}.{name} is null")),
        Object(object) => {
            for (name, item) in members(value, at) {
                let known = SCHEMA.iter().find(|(owner, property, ..)| *owner == object && property == name);
                let (.., kind) = known.unwrap_or_else(|| panic!("{at}: {object} has no property {name}"));
                self::value(item, *kind, &format!("{at}.{name}"));
            }
            for (_, property, ..) in SCHEMA.iter().filter(|(owner, _, required, _)| *owner == object && *required) {
                assert!(value.get(property).is_some(), "{at} lacks {property}");
            }
            // The schema's only `anyOf` among these.
            let place = value.get("artifactLocation").or(value.get("address"));
            assert!(object != "physicalLocation" || place.is_some(), "{at} says neither file nor address");
        }
    }
}

fn members<'a>(value: &'a Value, at: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value.as_object().unwrap_or_else(|| panic!("{at} is not an object: {value}")).iter()
}
