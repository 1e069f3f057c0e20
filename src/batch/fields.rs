//! The fields of an object of JSON, taken one by one.

use std::path::PathBuf;

use crate::format::TextOptions;
use crate::json::Json;
use crate::options::OPTION_TABLE;

/// What is made of a part of a line, or what is wrong with it.
pub(super) type Parsed<T> = std::result::Result<T, String>;

/// What is left of an object.
pub(super) struct Fields(pub Vec<(String, Json)>);

impl Fields {
    pub(super) fn take(&mut self, name: &str) -> Option<Json> {
        let at = self.0.iter().position(|(n, _)| n == name)?;
        Some(self.0.remove(at).1)
    }

    pub(super) fn text(&mut self, name: &str) -> Parsed<Option<String>> {
        match self.take(name) {
            None => Ok(None),
            Some(Json::Text(text)) if !text.is_empty() => Ok(Some(text)),
            Some(Json::Text(_)) => Err(format!(
                "{name:?} is empty; leave it out, or say what it is"
            )),
            Some(other) => Err(format!("{name:?} is {}; it must be a text", other.kind())),
        }
    }

    pub(super) fn path(&mut self, name: &str) -> Parsed<Option<PathBuf>> {
        Ok(self.text(name)?.map(PathBuf::from))
    }

    pub(super) fn required(&mut self, name: &str) -> Parsed<String> {
        self.text(name)?
            .ok_or_else(|| format!("{name:?} is missing"))
    }

    pub(super) fn list(&mut self, name: &str) -> Parsed<Vec<Json>> {
        match self.take(name) {
            None => Ok(Vec::new()),
            Some(Json::List(items)) => Ok(items),
            Some(other) => Err(format!("{name:?} is {}; it must be a list", other.kind())),
        }
    }

    /// An object of options, whose values become texts as they are set by.
    pub(super) fn options(&mut self, name: &str) -> Parsed<Vec<(String, String)>> {
        let fields = match self.take(name) {
            None => return Ok(Vec::new()),
            Some(Json::Object(fields)) => fields,
            Some(other) => {
                return Err(format!(
                    "{name:?} is {}; it must be an object",
                    other.kind()
                ));
            }
        };
        let mut made: Vec<(String, String)> = Vec::new();
        for (option, value) in fields {
            let words = match value {
                Json::List(items) => items.iter().map(word).collect::<Option<Vec<_>>>(),
                one => word(&one).map(|w| vec![w]),
            };
            let words = words.ok_or_else(|| {
                format!("{name}, {option:?}: it must be a text, a number, true, false, or a list of those")
            })?;
            let option = option.replace('-', "_");
            if made.iter().any(|(n, _)| *n == option) {
                return Err(format!("{name}: {option:?} is there twice"));
            }
            made.push((option, words.join(",")));
        }
        Ok(made)
    }

    /// How text is read, in the words of the command line.
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

    pub(super) fn nothing_else(&self, of: &str) -> Parsed<()> {
        let Some((name, _)) = self.0.first() else {
            return Ok(());
        };
        // Matrices and graphs have no options, whatever their fields are called.
        let of_job = ["fit", "predict"].contains(&of);
        if of_job
            && OPTION_TABLE
                .iter()
                .any(|o| o.name == name.replace('-', "_"))
        {
            return Err(format!(
                "{name:?} is an option; it belongs into \"options\""
            ));
        }
        Err(format!(
            "a {of} has no {name:?}; docs/batch.md lists what it has"
        ))
    }
}

fn word(value: &Json) -> Option<String> {
    match value {
        Json::Text(text) => Some(text.clone()),
        Json::Number(digits) => Some(digits.clone()),
        Json::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}
