//! Parsing of JSON in which no object has a name twice.
//!
//! `serde_json` keeps the last of two fields with the same name. In a line of a batch the other one would be lost without
//! notice, so that it is an error here.

use std::fmt;

use serde_core::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Parses a text that consists of one value. An error message gives the character, counted from 1.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    match serde_json::from_str::<UniqueNames>(text) {
        Ok(parsed) => Ok(parsed.0),
        Err(e) => Err(with_character(text, &e)),
    }
}

/// Returns the type of a value, for messages.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Returns the message of an error. `serde_json` counts the bytes of a line; this counts the characters of the text.
fn with_character(text: &str, e: &serde_json::Error) -> String {
    let full = e.to_string();
    let reason = full.rsplit_once(" at line ").map_or(&full[..], |(r, _)| r);
    let before: usize = text
        .split_inclusive('\n')
        .take(e.line().saturating_sub(1))
        .map(str::len)
        .sum();
    let end = before + e.column();
    // The first bytes of the characters up to that byte.
    let characters = text.char_indices().take_while(|&(at, _)| at < end).count();
    format!("character {}: {reason}", characters.max(1))
}

/// A value in which no object has a name twice.
struct UniqueNames(Value);

impl<'de> Deserialize<'de> for UniqueNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<UniqueNames, D::Error> {
        deserializer
            .deserialize_any(UniqueNamesVisitor)
            .map(UniqueNames)
    }
}

struct UniqueNamesVisitor;

impl<'de> Visitor<'de> for UniqueNamesVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(UniqueNames(item)) = items.next_element()? {
            array.push(item);
        }
        Ok(array.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            if object.contains_key(&name) {
                return Err(A::Error::custom(format_args!("{name:?} occurs twice")));
            }
            let UniqueNames(value) = fields.next_value()?;
            object.insert(name, value);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_parsed_in_order_and_exactly() {
        let text = r#" {"b": [18446744073709551615, -2.50e+3, true, null], "a\u00e9\n": {"": "\ud83d\ude00/\/"}} "#;
        let parsed = parse(text).unwrap();
        let expected = json!({"b": [u64::MAX, -2500.0, true, null], "aé\n": {"": "😀//"}});
        assert_eq!(parsed, expected);
        let names: Vec<&String> = parsed.as_object().unwrap().keys().collect();
        assert_eq!(names, ["b", "aé\n"]);
        // Numbers are those that Rust parses, to the last bit.
        for digits in [
            "0.1",
            "123456789.12345678",
            "5e-324",
            "1.7976931348623157e308",
        ] {
            let number: f64 = digits.parse().unwrap();
            assert_eq!(parse(digits), Ok(json!(number)));
            assert_eq!(parse(&json!(number).to_string()), Ok(json!(number)));
        }
    }

    #[test]
    fn errors_give_the_character() {
        for (text, words) in [
            ("{\"a\":1,\"a\":2}", "\"a\" occurs twice"),
            ("[{\"b\":{\"a\":1,\"a\":1}}]", "\"a\" occurs twice"),
            ("{\"a\" 1}", "character 6: expected `:`"),
            ("\"é\" x", "character 5: trailing characters"),
            ("{\"é\":1,\n \"b\" 2}", "character 14: expected `:`"),
            ("", "character 1: EOF"),
            ("[1,]", "trailing comma"),
            ("01", "invalid number"),
            ("NaN", "character 1: expected value"),
            ("'a'", "expected value"),
            ("\"a\tb\"", "control character"),
            ("\"\\x\"", "invalid escape"),
            ("\"\\ud800\"", "hex escape"),
            ("1e400", "number out of range"),
            (&"[".repeat(100_000), "recursion limit"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with("character "), "{text}: {error}");
            assert!(error.contains(words), "{text}: {error}");
            assert!(!error.contains("line 1"), "{text}: {error}");
        }
    }
}
