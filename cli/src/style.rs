//! Colours of messages, where they help and are wanted.

use std::io::IsTerminal;

/// Text in a colour, if standard error shows colours.
pub(crate) fn on_stderr(text: &str, style: Style) -> String {
    style.apply(text, is_coloured(std::io::stderr().is_terminal()))
}

/// Returns whether a stream shows colours: a terminal does, unless `NO_COLOR` is set or `TERM` is `dumb`; another stream
/// does if `CLICOLOR_FORCE` is set. See <https://no-color.org> and <https://bixense.com/clicolors>.
pub(crate) fn is_coloured(is_terminal: bool) -> bool {
    choose(is_terminal, |name| std::env::var(name).ok())
}

fn choose(is_terminal: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
    let is_set = |name: &str| variable(name).is_some_and(|v| !v.is_empty());
    if is_set("NO_COLOR") {
        return false;
    }
    if is_set("CLICOLOR_FORCE") && variable("CLICOLOR_FORCE").as_deref() != Some("0") {
        return true;
    }
    is_terminal
        && variable("TERM").as_deref() != Some("dumb")
        && variable("CLICOLOR").as_deref() != Some("0")
}

/// How a word is emphasized.
#[derive(Clone, Copy)]
pub(crate) enum Style {
    /// Bold red.
    Error,
    /// Bold yellow.
    Warning,
    /// Bold.
    Heading,
}

impl Style {
    /// Returns the text with the escape sequences of the style if `coloured`.
    pub(crate) fn apply(self, text: &str, coloured: bool) -> String {
        if !coloured {
            return text.to_string();
        }
        let code = match self {
            Style::Error => "1;31",
            Style::Warning => "1;33",
            Style::Heading => "1",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_the_environment_decide_about_colours() {
        let with = |is_terminal: bool, set: &[(&str, &str)]| {
            choose(is_terminal, |name| {
                let found = set.iter().find(|(n, _)| *n == name);
                found.map(|(_, value)| value.to_string())
            })
        };
        assert!(with(true, &[]));
        assert!(!with(false, &[]));
        assert!(!with(true, &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]));
        assert!(with(true, &[("NO_COLOR", "")]));
        assert!(with(false, &[("CLICOLOR_FORCE", "1")]));
        assert!(!with(false, &[("CLICOLOR_FORCE", "0")]));
        assert!(!with(true, &[("TERM", "dumb")]));
        assert!(!with(true, &[("CLICOLOR", "0")]));
        assert_eq!(Style::Heading.apply("x", false), "x");
        assert_eq!(Style::Error.apply("x", true), "\u{1b}[1;31mx\u{1b}[0m");
    }
}
