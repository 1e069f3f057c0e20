//! JSON, read strictly and written plainly.
//!
//! Numbers stay as they were written: an option given as `0.1` is parsed by whoever knows its type, once. Names that
//! occur twice in an object are refused, since one of the two would be lost. Errors say where, counted from 1.

use std::fmt::Write;

/// Values inside values, at most so deep.
const DEEPEST: usize = 32;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    /// As it was written.
    Number(String),
    Text(String),
    List(Vec<Json>),
    /// In the order they were written.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// What it is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "true or false",
            Json::Number(_) => "a number",
            Json::Text(_) => "a text",
            Json::List(_) => "a list",
            Json::Object(_) => "an object",
        }
    }

    /// A value of an object.
    pub(crate) fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object(fields) => fields.iter().find(|(n, _)| n == name).map(|(_, v)| v),
            _ => None,
        }
    }

    /// The text that it is.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number that it is, if the type has it.
    pub(crate) fn number<T: std::str::FromStr>(&self) -> Option<T> {
        match self {
            Json::Number(digits) => digits.parse().ok(),
            _ => None,
        }
    }
}

/// Reads one value, which is all there is but for blanks around it.
pub(crate) fn parse(text: &str) -> Result<Json, String> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.blanks();
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err(reader.wrong("nothing may follow the value")),
    }
}

struct Reader<'a> {
    text: &'a str,
    /// The byte that is next.
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// What is wrong here.
    fn wrong(&self, what: &str) -> String {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        let column = before.chars().count() + 1;
        match self
            .text
            .get(self.at..)
            .and_then(|rest| rest.chars().next())
        {
            Some(c) => format!("character {column} ({c:?}): {what}"),
            None => format!("character {column} (the end): {what}"),
        }
    }

    fn expect(&mut self, byte: u8, what: &str) -> Result<(), String> {
        self.blanks();
        if self.peek() != Some(byte) {
            return Err(self.wrong(what));
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<Json, String> {
        self.blanks();
        if depth > DEEPEST {
            return Err(self.wrong("values inside values too deep"));
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => Ok(Json::Text(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => {
                let words = [
                    ("null", Json::Null),
                    ("true", Json::Bool(true)),
                    ("false", Json::Bool(false)),
                ];
                for (word, value) in words {
                    if self.text[self.at..].starts_with(word) {
                        self.at += word.len();
                        return Ok(value);
                    }
                }
                Err(self.wrong("a value is expected: an object, a list, a text in double quotes, a number, true, false or null"))
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, String> {
        self.at += 1;
        let mut fields: Vec<(String, Json)> = Vec::new();
        self.blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Json::Object(fields));
        }
        loop {
            self.blanks();
            let begin = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.wrong("a name in double quotes is expected"));
            }
            let name = self.string()?;
            if fields.iter().any(|(n, _)| *n == name) {
                self.at = begin;
                return Err(self.wrong(&format!("{name:?} is there twice")));
            }
            self.expect(b':', "a colon is expected behind a name")?;
            fields.push((name, self.value(depth + 1)?));
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(self.wrong("a comma or } is expected")),
            }
        }
        self.at += 1;
        Ok(Json::Object(fields))
    }

    fn list(&mut self, depth: usize) -> Result<Json, String> {
        self.at += 1;
        let mut items = Vec::new();
        self.blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(self.wrong("a comma or ] is expected")),
            }
        }
        self.at += 1;
        Ok(Json::List(items))
    }

    fn digits(&mut self) -> Result<usize, String> {
        let begin = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        match self.at - begin {
            0 => Err(self.wrong("a digit is expected")),
            n => Ok(n),
        }
    }

    fn number(&mut self) -> Result<Json, String> {
        let begin = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let zero = self.peek() == Some(b'0');
        if self.digits()? > 1 && zero {
            self.at = begin;
            return Err(self.wrong("a number does not begin with 0 and another digit"));
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(Json::Number(self.text[begin..self.at].to_string()))
    }

    fn string(&mut self) -> Result<String, String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let begin = self.at;
            while !matches!(self.peek(), None | Some(b'"' | b'\\' | 0..=0x1f)) {
                self.at += 1;
            }
            out.push_str(&self.text[begin..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                Some(_) => {
                    return Err(
                        self.wrong("a text has no control characters; write \\n or \\u000a")
                    );
                }
                None => return Err(self.wrong("a text ends with a double quote")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        self.at += 1;
        let plain = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err(self.wrong("behind \\ stands one of \" \\ / b f n r t u")),
        };
        self.at += 1;
        Ok(plain)
    }

    /// The character that `\u` and four digits stand for, or two of those.
    fn unicode(&mut self) -> Result<char, String> {
        let begin = self.at;
        let code = match self.digits_of_unicode() {
            Some(high @ 0xd800..0xdc00) if self.text[self.at..].starts_with("\\u") => {
                self.at += 1;
                match self.digits_of_unicode() {
                    Some(low @ 0xdc00..0xe000) => {
                        Some(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
                    }
                    _ => None,
                }
            }
            code => code,
        };
        code.and_then(char::from_u32).ok_or_else(|| {
            self.at = begin;
            self.wrong(
                "\\u stands before four hexadecimal digits of a character, or of each half of one",
            )
        })
    }

    /// The number behind a `u`.
    fn digits_of_unicode(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at + 1..self.at + 5)?;
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        self.at += 5;
        u32::from_str_radix(digits, 16).ok()
    }
}

/// An object as it is written, on one line.
pub(crate) struct Writer(String);

impl Writer {
    pub(crate) fn new() -> Writer {
        Writer("{".into())
    }

    fn name(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        quote(name, &mut self.0);
        self.0.push(':');
    }

    pub(crate) fn text(mut self, name: &str, text: &str) -> Writer {
        self.name(name);
        quote(text, &mut self.0);
        self
    }

    pub(crate) fn whole(mut self, name: &str, number: u64) -> Writer {
        self.name(name);
        let _ = write!(self.0, "{number}");
        self
    }

    /// JSON has no NaN: what was not measured is null.
    pub(crate) fn real(mut self, name: &str, number: f64) -> Writer {
        self.name(name);
        let _ = match number.is_finite() {
            true => write!(self.0, "{number:?}"),
            false => write!(self.0, "null"),
        };
        self
    }

    pub(crate) fn list(mut self, name: &str, numbers: impl IntoIterator<Item = u64>) -> Writer {
        self.name(name);
        let numbers: Vec<String> = numbers.into_iter().map(|n| n.to_string()).collect();
        let _ = write!(self.0, "[{}]", numbers.join(","));
        self
    }

    pub(crate) fn object(mut self, name: &str, object: Writer) -> Writer {
        self.name(name);
        self.0 += &object.finish();
        self
    }

    pub(crate) fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c < ' ' || c == '\u{7f}' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_were_written() {
        let read =
            parse(r#" {"a": [1, -2.50e+3, true, null], "b\u00e9\n": {"": "\ud83d\ude00/\/"}} "#);
        let expected = Json::Object(vec![
            (
                "a".into(),
                Json::List(vec![
                    Json::Number("1".into()),
                    Json::Number("-2.50e+3".into()),
                    Json::Bool(true),
                    Json::Null,
                ]),
            ),
            (
                "bé\n".into(),
                Json::Object(vec![("".into(), Json::Text("😀//".into()))]),
            ),
        ]);
        assert_eq!(read, Ok(expected));
        assert_eq!(parse("[]"), Ok(Json::List(vec![])));
        assert_eq!(parse("{ }"), Ok(Json::Object(vec![])));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, words) in [
            ("", "character 1 (the end): a value is expected"),
            ("{", "a name in double quotes"),
            ("{\"a\" 1}", "character 6 ('1'): a colon"),
            ("{\"a\":1 \"b\":2}", "character 8 ('\"'): a comma or }"),
            ("{\"a\":1,}", "character 8 ('}'): a name"),
            (
                "{\"a\":1,\"a\":2}",
                "character 8 ('\"'): \"a\" is there twice",
            ),
            ("[1 2]", "a comma or ]"),
            ("[1,]", "a value is expected"),
            ("01", "does not begin with 0"),
            ("1.", "a digit"),
            ("-", "a digit"),
            ("1e", "a digit"),
            ("+1", "a value is expected"),
            ("NaN", "a value is expected"),
            ("'a'", "a value is expected"),
            ("\"é", "character 3 (the end): a text ends"),
            ("\"a\tb\"", "control characters"),
            ("\"\\x\"", "behind \\ stands"),
            ("\"\\u12\"", "four hexadecimal digits"),
            ("\"\\u+123\"", "four hexadecimal digits"),
            ("\"\\ud800\"", "four hexadecimal digits"),
            ("\"\\ud800\\u0041\"", "four hexadecimal digits"),
            ("\"\\udc00\"", "four hexadecimal digits"),
            ("\"\\ud800\\u\"", "four hexadecimal digits"),
            ("\"\\ud800é\"", "four hexadecimal digits"),
            ("{} {}", "character 4 ('{'): nothing may follow"),
            ("{}é", "nothing may follow"),
            (&"[".repeat(100_000), "too deep"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let inner = Writer::new().whole("one", 1);
        let line = Writer::new()
            .text("t", "a\"\\\n\u{1}é")
            .whole("n", u64::MAX)
            .real("x", 0.1)
            .real("none", f64::NAN)
            .list("l", [1, 2])
            .object("o", inner)
            .finish();
        assert!(!line.contains('\n'));
        let read = parse(&line).unwrap();
        assert_eq!(read.get("t").unwrap().text(), Some("a\"\\\n\u{1}é"));
        assert_eq!(read.get("n").unwrap().number(), Some(u64::MAX));
        assert_eq!(read.get("x").unwrap().number(), Some(0.1));
        assert_eq!(read.get("none"), Some(&Json::Null));
        assert_eq!(read.get("o").unwrap().get("one").unwrap().number(), Some(1));
    }
}
