//! All settings of a fit, and the command that makes it again.

use std::fmt::Write;

use super::Context;
use super::html::{escape, number};
use crate::options::{OPTION_TABLE, OptionKind};

impl Context<'_> {
    pub(super) fn settings(&self) -> String {
        let options = self.model.options();
        let mut out = format!(
            "<p>The command that fits this model again{}:</p>\n<pre>{}</pre>\n\
             <p>All options; those that differ from their defaults, chosen by somebody or by the fit itself, are bold.</p>\n\
             <div class=\"scroll\"><table><thead><tr><th>Option</th><th>Value</th><th>Default</th><th>What it is</th></tr></thead><tbody>\n",
            match self.options.data {
                Some(_) => "",
                None => " (put in the names of its files)",
            },
            escape(&self.command())
        );
        for option in OPTION_TABLE {
            let value = options.get(option.name).unwrap_or_default();
            let changed = if value == option.default {
                ""
            } else {
                " class=\"changed\""
            };
            let _ = writeln!(
                out,
                "<tr{changed}><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td class=\"note\">{}</td></tr>",
                option.name,
                escape(&value),
                escape(option.default),
                escape(option.help)
            );
        }
        let _ = writeln!(
            out,
            "</tbody></table></div>\n<p class=\"note\">Added to every prediction: {}{}.</p>",
            number(self.model.mean()),
            match self.model.modes().iter().any(|m| !m.biases.is_empty()) {
                true => ", and biases of rows",
                false => "; rows have no biases",
            }
        );
        out
    }

    /// The command line that fits the model again.
    fn command(&self) -> String {
        let (model, o) = (self.model, self.model.options());
        let file = |view: Option<&str>, instead: &str| quoted(view.unwrap_or(instead));
        let data = self.options.data.as_ref().map(|v| v.name());
        let mut words = vec![format!("s3cmtf fit --tensor {}", file(data, "TRAIN.coo"))];
        if let Some(test) = &self.options.test {
            words.push(format!("--test {}", quoted(test.name())));
        }
        for (m, matrix) in model.matrices().iter().enumerate() {
            let given = self
                .options
                .matrices
                .get(m)
                .filter(|(mode, _)| *mode == matrix.mode);
            let name = given.map_or_else(
                || format!("MATRIX{}.coo", m + 1),
                |(_, v)| v.name().to_string(),
            );
            let penalty = matrix.penalty.map_or(String::new(), |p| format!(":{p}"));
            let (option, kind) = match matrix.kind {
                k if k.is_graph() => ("graph", String::new()),
                k => ("matrix", format!(":{k}")),
            };
            let spec = format!(
                "{}:{name}:{}{penalty}{kind}",
                matrix.mode + 1,
                matrix.weight
            );
            words.push(format!("--{option} {}", quoted(&spec)));
        }
        for option in OPTION_TABLE {
            let value = o.get(option.name).unwrap_or_default();
            let long = option.name.replace('_', "-");
            // Weights stand with the matrices.
            if value == option.default || option.name == "matrix_weights" {
                continue;
            }
            words.push(match option.kind {
                OptionKind::Flag if option.default == "true" => format!("--no-{long}"),
                OptionKind::Flag => format!("--{long}"),
                _ => format!("--{long} {}", quoted(&value)),
            });
        }
        words.push("-o model.s3m".into());
        words.join(" \\\n  ")
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+%@".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
