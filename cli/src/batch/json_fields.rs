//! The fields of a JSON object, which are removed one by one as they are parsed.

use std::collections::HashSet;
use std::path::PathBuf;

use s3cmtf::format::TextOptions;
use s3cmtf::options::OPTION_TABLE;
use serde_json::{Map, Value};

use super::json::type_name;

/// A parsed value, or an error message.
pub(super) type Parsed<T> = std::result::Result<T, String>;

/// The fields of an object that are not parsed yet.
pub(super) struct JsonFields(pub Map<String, Value>);

impl JsonFields {
    /// Removes a field. The others keep their order.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.0.shift_remove(name)
    }

    /// Removes a field that must be a non-empty string, if it exists.
    pub(super) fn text(&mut self, name: &str) -> Parsed<Option<String>> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) if !text.is_empty() => Ok(Some(text)),
            Some(Value::String(_)) => {
                Err(format!("{name:?} is empty; leave it out, or give a value"))
            }
            Some(other) => Err(format!(
                "{name:?} is {}; it must be a string",
                type_name(&other)
            )),
        }
    }

    /// Removes a field that must be a path, if it exists.
    pub(super) fn path(&mut self, name: &str) -> Parsed<Option<PathBuf>> {
        Ok(self.text(name)?.map(PathBuf::from))
    }

    /// Removes a field that must exist and be a non-empty string.
    pub(super) fn required(&mut self, name: &str) -> Parsed<String> {
        self.text(name)?
            .ok_or_else(|| format!("{name:?} is missing"))
    }

    /// Removes a field that must be a list; empty if it does not exist.
    pub(super) fn list(&mut self, name: &str) -> Parsed<Vec<Value>> {
        match self.take(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => Ok(items),
            Some(other) => Err(format!(
                "{name:?} is {}; it must be an array",
                type_name(&other)
            )),
        }
    }

    /// Removes an object of options and returns their names and values as texts. Lists are joined by commas.
    pub(super) fn options(&mut self, name: &str) -> Parsed<Vec<(String, String)>> {
        let fields = match self.take(name) {
            None => return Ok(Vec::new()),
            Some(Value::Object(fields)) => fields,
            Some(other) => {
                return Err(format!(
                    "{name:?} is {}; it must be an object",
                    type_name(&other)
                ));
            }
        };
        let mut options: Vec<(String, String)> = Vec::new();
        let mut names = HashSet::new();
        for (option, value) in fields {
            let texts = match value {
                Value::Array(items) => items.iter().map(scalar_text).collect::<Option<Vec<_>>>(),
                one => scalar_text(&one).map(|text| vec![text]),
            };
            let texts = texts.ok_or_else(|| {
                format!("{name}, {option:?}: it must be a string, a number, true, false, or an array of those")
            })?;
            let option = option.replace('-', "_");
            if !names.insert(option.clone()) {
                return Err(format!("{name}: {option:?} is given twice"));
            }
            options.push((option, texts.join(",")));
        }
        Ok(options)
    }

    /// Removes an object of text parsing options, with the names of the command line.
    pub(super) fn text_options(&mut self, name: &str) -> Parsed<TextOptions> {
        let mut options = TextOptions::default();
        for (option, value) in self.options(name)? {
            if option != "names" {
                options
                    .set(&option, &value)
                    .map_err(|e| format!("{name}: {e}"))?;
                continue;
            }
            for spec in value.split(',') {
                let parsed = spec.split_once(':').and_then(|(mode, file)| {
                    let mode: usize = mode.parse().ok()?;
                    Some((mode.checked_sub(1)?, file)).filter(|(_, f)| !f.is_empty())
                });
                let (mode, file) = parsed.ok_or_else(|| {
                    format!(
                        "{name}: names is {spec:?}; it must be MODE:FILE, such as \"1:users.tsv\""
                    )
                })?;
                options.delimited.names.push((mode, file.into()));
            }
        }
        Ok(options)
    }

    /// Returns an error if a field remains. `owner` is the kind of the object.
    pub(super) fn require_empty(&self, owner: &str) -> Parsed<()> {
        let Some(name) = self.0.keys().next() else {
            return Ok(());
        };
        let is_option = OPTION_TABLE
            .iter()
            .any(|o| o.name == name.replace('-', "_"));
        // Matrices and graphs have no options.
        if is_option && ["fit", "predict"].contains(&owner) {
            return Err(format!("{name:?} is an option; it belongs in \"options\""));
        }
        Err(format!(
            "a {owner} has no {name:?}; docs/reference/batch.md lists its fields"
        ))
    }
}

/// Returns a string, number or Boolean as text.
fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}
