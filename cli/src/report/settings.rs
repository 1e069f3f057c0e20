//! The section on settings: all options of the fit, its plan, and the command that repeats it.

use std::fmt::Write;

use s3cmtf::options::{OPTION_TABLE, OptionKind};

use super::context::PageContext;
use super::html::{escape, format_value};

impl PageContext<'_> {
    pub(super) fn settings(&self) -> String {
        let options = self.model.options();
        let mut out = format!(
            "<p>The command that repeats this fit{}:</p>\n<pre>{}</pre>\n\
             <p>All options. Those that differ from their defaults, by choice of the user or of the fit, are bold.</p>\n\
             <div class=\"scroll\"><table><thead><tr><th>Option</th><th>Value</th><th>Default</th><th>Meaning</th></tr></thead><tbody>\n",
            match self.options.data {
                Some(_) => "",
                None => " (with placeholders for the names of its files)",
            },
            escape(&self.fit_command())
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
            "</tbody></table></div>\n<p class=\"note\">The mean {} is added to every prediction{}.</p>",
            format_value(self.model.mean()),
            if self.model.modes().iter().any(|m| !m.biases.is_empty()) {
                ", and the biases of its rows"
            } else {
                "; rows have no biases"
            }
        );
        out + &self.plan()
    }

    /// Returns the plan of the fit and the evidence of its choices.
    fn plan(&self) -> String {
        let Some(plan) = self.model.plan() else {
            return String::new();
        };
        let text = plan.to_string();
        let lines = text.lines().filter(|line| !line.starts_with("options:"));
        let lines: Vec<String> = lines.map(escape).collect();
        let mut out = format!(
            "<h3>Plan</h3>\n<p>What the fit decided before it trained.</p>\n<pre>{}</pre>\n",
            lines.join("\n")
        );
        let evidence = plan.choices.iter().flat_map(|choice| {
            let numbers = choice.evidence.iter();
            numbers.map(|(name, number)| (&choice.question, name, *number))
        });
        let rows: Vec<String> = evidence
            .map(|(question, name, number)| {
                let (question, name) = (escape(question), escape(name));
                let number = format_value(number);
                format!("<tr><td>{question}</td><td>{name}</td><td>{number}</td></tr>\n")
            })
            .collect();
        if !rows.is_empty() {
            let _ = write!(
                out,
                "<div class=\"scroll\"><table><thead><tr><th>Choice</th><th>Evidence</th><th></th></tr></thead>\
                 <tbody>\n{}</tbody></table></div>\n",
                rows.concat()
            );
        }
        out
    }

    /// Returns the command line that repeats the fit.
    fn fit_command(&self) -> String {
        let (model, o) = (self.model, self.model.options());
        let data = self.options.data.as_ref().map(|v| v.name());
        let tensor = shell_quoted(data.unwrap_or("TRAIN.coo"));
        let mut arguments = vec![format!("s3cmtf fit --tensor {tensor}")];
        if let Some(test) = &self.options.test {
            arguments.push(format!("--test {}", shell_quoted(test.name())));
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
            arguments.push(format!("--{option} {}", shell_quoted(&spec)));
        }
        for option in OPTION_TABLE {
            let value = o.get(option.name).unwrap_or_default();
            let long = option.name.replace('_', "-");
            if value == option.default {
                continue;
            }
            arguments.push(match option.kind {
                OptionKind::Flag if value == "false" => format!("--no-{long}"),
                OptionKind::Flag => format!("--{long}"),
                _ => format!("--{long} {}", shell_quoted(&value)),
            });
        }
        arguments.push("-o model.s3m".into());
        arguments.join(" \\\n  ")
    }
}

/// Quotes an argument for a POSIX shell, if needed.
fn shell_quoted(argument: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+%@".contains(c);
    if !argument.is_empty() && argument.chars().all(is_safe) {
        argument.into()
    } else {
        format!("'{}'", argument.replace('\'', "'\\''"))
    }
}
