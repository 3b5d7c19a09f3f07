//! A JSON Schema checker for the keywords that our schemas and that of SARIF use. A keyword that it does not know is an error of
//! the test, so that nothing passes unchecked. The well-known crates take longer to build than all of these tests.

use regex::Regex;
use serde_json::{Map, Value};

/// Keywords that say nothing about validity. `format` is one of them unless a validator is told otherwise.
const ANNOTATIONS: [&str; 8] = ["$schema", "$id", "$defs", "definitions", "title", "description", "default", "format"];

pub struct Schema<'a> {
    pub root: &'a Value,
    /// Properties that an object's schema does not name are errors, whether it forbids them or not.
    pub closed: bool,
}

impl Schema<'_> {
    /// What is wrong with the value, with the place of each error.
    pub fn errors(&self, value: &Value) -> Vec<String> {
        let mut errors = Vec::new();
        self.check(self.root, value, "", &mut errors);
        errors
    }

    fn check(&self, schema: &Value, value: &Value, at: &str, errors: &mut Vec<String>) {
        let keywords = match schema {
            Value::Bool(true) => return,
            Value::Object(keywords) => keywords,
            other => panic!("{other} is no schema"),
        };
        for (keyword, argument) in keywords {
            if let Err(why) = self.keyword(keywords, keyword, argument, value, at, errors) {
                errors.push(format!("{}: {why}", if at.is_empty() { "/" } else { at }));
            }
        }
    }

    fn keyword(
        &self,
        keywords: &Map<String, Value>,
        keyword: &str,
        argument: &Value,
        value: &Value,
        at: &str,
        errors: &mut Vec<String>,
    ) -> Result<(), String> {
        let wrong = |holds: bool| if holds { Ok(()) } else { Err(format!("{value} breaks {keyword} {argument}")) };
        let list = || argument.as_array().unwrap_or_else(|| panic!("{keyword} {argument} is no list"));
        match keyword {
            "type" => {
                let one = std::slice::from_ref(argument);
                let types = argument.as_array().map_or(one, Vec::as_slice);
                return wrong(types.iter().filter_map(Value::as_str).any(|name| is_of_type(value, name)));
            }
            "const" => return wrong(value == argument),
            "enum" => return wrong(list().contains(value)),
            "$ref" => {
                let path = argument.as_str().and_then(|path| path.strip_prefix('#')).expect("a reference inside");
                let target = self.root.pointer(path).unwrap_or_else(|| panic!("there is no {path}"));
                self.check(target, value, at, errors);
            }
            "anyOf" | "oneOf" => {
                let tries: Vec<Vec<String>> = list().iter().map(|schema| self.errors_at(schema, value, at)).collect();
                let fitting = tries.iter().filter(|errors| errors.is_empty()).count();
                if fitting == 0 || (keyword == "oneOf" && fitting > 1) {
                    return Err(format!("{fitting} of {keyword} fit: {tries:#?}"));
                }
            }
            "minimum" => return wrong(value.as_f64().is_none_or(|it| it >= argument.as_f64().expect("a number"))),
            "maximum" => return wrong(value.as_f64().is_none_or(|it| it <= argument.as_f64().expect("a number"))),
            "minLength" => {
                let least = argument.as_u64().expect("a number");
                return wrong(value.as_str().is_none_or(|text| text.chars().count() as u64 >= least));
            }
            "pattern" => {
                let pattern = Regex::new(argument.as_str().expect("text")).expect("a regular expression");
                return wrong(value.as_str().is_none_or(|text| pattern.is_match(text)));
            }
            "minItems" => {
                let least = argument.as_u64().expect("a number");
                return wrong(value.as_array().is_none_or(|items| items.len() as u64 >= least));
            }
            "uniqueItems" => {
                let twice = |items: &Vec<Value>| items.iter().enumerate().any(|(n, item)| items[..n].contains(item));
                return wrong(*argument == Value::Bool(false) || !value.as_array().is_some_and(twice));
            }
            "items" => {
                for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                    self.check(argument, item, &format!("{at}/{number}"), errors);
                }
            }
            "required" => {
                let Some(object) = value.as_object() else { return Ok(()) };
                let missing = list().iter().filter_map(Value::as_str).find(|name| !object.contains_key(*name));
                return missing.map_or(Ok(()), |name| Err(format!("{name} is missing")));
            }
            "properties" => {
                for (name, item) in value.as_object().into_iter().flatten() {
                    match argument.get(name) {
                        Some(schema) => self.check(schema, item, &format!("{at}/{name}"), errors),
                        None if self.closed => return Err(format!("the schema does not name {name}")),
                        None => {}
                    }
                }
            }
            "additionalProperties" => {
                let named = |name: &str| keywords.get("properties").is_some_and(|known| known.get(name).is_some());
                for (name, item) in value.as_object().into_iter().flatten().filter(|(name, _)| !named(name)) {
                    match argument {
                        Value::Bool(false) => return Err(format!("{name} is not allowed")),
                        schema => self.check(schema, item, &format!("{at}/{name}"), errors),
                    }
                }
            }
            known if ANNOTATIONS.contains(&known) => {}
            unknown => panic!("this checker does not know {unknown}"),
        }
        Ok(())
    }

    fn errors_at(&self, schema: &Value, value: &Value, at: &str) -> Vec<String> {
        let mut errors = Vec::new();
        self.check(schema, value, at, &mut errors);
        errors
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("there is no type {other}"),
    }
}
