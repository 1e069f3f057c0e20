//! A strict JSON parser and a writer of objects on one line.
//!
//! Numbers keep their text: an option given as `0.1` is parsed once, by the code that knows its type. Duplicate names in
//! an object are an error, since one of the two values would be lost. Errors give the character, counted from 1.

use std::fmt::Write;

/// Deepest nesting of arrays and objects.
const MAX_DEPTH: usize = 32;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    /// The text of the number.
    Number(String),
    String(String),
    Array(Vec<Json>),
    /// Names and values in the order of the text.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Returns the type of the value, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "true or false",
            Json::Number(_) => "a number",
            Json::String(_) => "a string",
            Json::Array(_) => "an array",
            Json::Object(_) => "an object",
        }
    }

    /// Returns the value of a name, if this is an object that has it.
    pub(crate) fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object(fields) => fields.iter().find(|(n, _)| n == name).map(|(_, v)| v),
            _ => None,
        }
    }

    /// Returns the text, if this is a string.
    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Json::String(text) => Some(text),
            _ => None,
        }
    }

    /// Parses the number as `T`; `None` if this is no number or `T` cannot represent it.
    pub(crate) fn parse_number<T: std::str::FromStr>(&self) -> Option<T> {
        match self {
            Json::Number(digits) => digits.parse().ok(),
            _ => None,
        }
    }
}

/// Parses a text that consists of one value, with blanks around it.
pub(crate) fn parse(text: &str) -> Result<Json, String> {
    let mut parser = Parser { text, at: 0 };
    let value = parser.value(0)?;
    parser.skip_blanks();
    match parser.peek() {
        None => Ok(value),
        Some(_) => Err(parser.error("nothing may follow the value")),
    }
}

struct Parser<'a> {
    text: &'a str,
    /// Position of the next byte.
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Returns the message of an error at the current position.
    fn error(&self, reason: &str) -> String {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        let column = before.chars().count() + 1;
        match self
            .text
            .get(self.at..)
            .and_then(|rest| rest.chars().next())
        {
            Some(c) => format!("character {column} ({c:?}): {reason}"),
            None => format!("character {column} (the end): {reason}"),
        }
    }

    fn expect(&mut self, byte: u8, reason: &str) -> Result<(), String> {
        self.skip_blanks();
        if self.peek() != Some(byte) {
            return Err(self.error(reason));
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<Json, String> {
        self.skip_blanks();
        if depth > MAX_DEPTH {
            return Err(self.error("values are nested too deeply"));
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(Json::String(self.string()?)),
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
                Err(self.error("a value is expected: an object, an array, a string in double quotes, a number, true, false or null"))
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, String> {
        self.at += 1;
        let mut fields: Vec<(String, Json)> = Vec::new();
        self.skip_blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Json::Object(fields));
        }
        loop {
            self.skip_blanks();
            let begin = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.error("a name in double quotes is expected"));
            }
            let name = self.string()?;
            if fields.iter().any(|(n, _)| *n == name) {
                self.at = begin;
                return Err(self.error(&format!("{name:?} occurs twice")));
            }
            self.expect(b':', "a colon is expected after a name")?;
            fields.push((name, self.value(depth + 1)?));
            self.skip_blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(self.error("a comma or } is expected")),
            }
        }
        self.at += 1;
        Ok(Json::Object(fields))
    }

    fn array(&mut self, depth: usize) -> Result<Json, String> {
        self.at += 1;
        let mut items = Vec::new();
        self.skip_blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.skip_blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(self.error("a comma or ] is expected")),
            }
        }
        self.at += 1;
        Ok(Json::Array(items))
    }

    fn digits(&mut self) -> Result<usize, String> {
        let begin = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        match self.at - begin {
            0 => Err(self.error("a digit is expected")),
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
            return Err(self.error("a number does not begin with 0 and another digit"));
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
                    return Err(self
                        .error("a string must not have control characters; write \\n or \\u000a"));
                }
                None => return Err(self.error("a string must end with a double quote")),
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
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.error("\\ must be followed by one of \" \\ / b f n r t u")),
        };
        self.at += 1;
        Ok(plain)
    }

    /// Parses the character of `\u` and four digits, or of a surrogate pair of two of them.
    fn unicode_escape(&mut self) -> Result<char, String> {
        let begin = self.at;
        let code = match self.hex4() {
            Some(high @ 0xd800..0xdc00) if self.text[self.at..].starts_with("\\u") => {
                self.at += 1;
                match self.hex4() {
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
            self.error(
                "\\u must be followed by four hexadecimal digits of a character, or of a surrogate pair",
            )
        })
    }

    /// Parses the four hexadecimal digits after a `u`.
    fn hex4(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at + 1..self.at + 5)?;
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        self.at += 5;
        u32::from_str_radix(digits, 16).ok()
    }
}

/// Writes an object on one line.
pub(crate) struct ObjectWriter(String);

impl ObjectWriter {
    pub(crate) fn new() -> ObjectWriter {
        ObjectWriter("{".into())
    }

    fn name(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        push_quoted(name, &mut self.0);
        self.0.push(':');
    }

    pub(crate) fn string(mut self, name: &str, text: &str) -> ObjectWriter {
        self.name(name);
        push_quoted(text, &mut self.0);
        self
    }

    pub(crate) fn integer(mut self, name: &str, number: u64) -> ObjectWriter {
        self.name(name);
        let _ = write!(self.0, "{number}");
        self
    }

    /// Adds a number; null if it is not finite, since JSON has no NaN.
    pub(crate) fn number(mut self, name: &str, number: f64) -> ObjectWriter {
        self.name(name);
        let _ = if number.is_finite() {
            write!(self.0, "{number:?}")
        } else {
            write!(self.0, "null")
        };
        self
    }

    pub(crate) fn integers(
        mut self,
        name: &str,
        numbers: impl IntoIterator<Item = u64>,
    ) -> ObjectWriter {
        self.name(name);
        let numbers: Vec<String> = numbers.into_iter().map(|n| n.to_string()).collect();
        let _ = write!(self.0, "[{}]", numbers.join(","));
        self
    }

    pub(crate) fn object(mut self, name: &str, object: ObjectWriter) -> ObjectWriter {
        self.name(name);
        self.0 += &object.finish();
        self
    }

    pub(crate) fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

fn push_quoted(text: &str, out: &mut String) {
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
    fn values_are_parsed_and_numbers_keep_their_text() {
        let parsed =
            parse(r#" {"a": [1, -2.50e+3, true, null], "b\u00e9\n": {"": "\ud83d\ude00/\/"}} "#);
        let expected = Json::Object(vec![
            (
                "a".into(),
                Json::Array(vec![
                    Json::Number("1".into()),
                    Json::Number("-2.50e+3".into()),
                    Json::Bool(true),
                    Json::Null,
                ]),
            ),
            (
                "bé\n".into(),
                Json::Object(vec![("".into(), Json::String("😀//".into()))]),
            ),
        ]);
        assert_eq!(parsed, Ok(expected));
        assert_eq!(parse("[]"), Ok(Json::Array(vec![])));
        assert_eq!(parse("{ }"), Ok(Json::Object(vec![])));
    }

    #[test]
    fn errors_give_the_character_and_the_reason() {
        for (text, words) in [
            ("", "character 1 (the end): a value is expected"),
            ("{", "a name in double quotes"),
            ("{\"a\" 1}", "character 6 ('1'): a colon"),
            ("{\"a\":1 \"b\":2}", "character 8 ('\"'): a comma or }"),
            ("{\"a\":1,}", "character 8 ('}'): a name"),
            (
                "{\"a\":1,\"a\":2}",
                "character 8 ('\"'): \"a\" occurs twice",
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
            ("\"é", "character 3 (the end): a string must end"),
            ("\"a\tb\"", "control characters"),
            ("\"\\x\"", "\\ must be followed"),
            ("\"\\u12\"", "four hexadecimal digits"),
            ("\"\\u+123\"", "four hexadecimal digits"),
            ("\"\\ud800\"", "four hexadecimal digits"),
            ("\"\\ud800\\u0041\"", "four hexadecimal digits"),
            ("\"\\udc00\"", "four hexadecimal digits"),
            ("\"\\ud800\\u\"", "four hexadecimal digits"),
            ("\"\\ud800é\"", "four hexadecimal digits"),
            ("{} {}", "character 4 ('{'): nothing may follow"),
            ("{}é", "nothing may follow"),
            (&"[".repeat(100_000), "too deeply"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn parsing_inverts_writing() {
        let inner = ObjectWriter::new().integer("one", 1);
        let line = ObjectWriter::new()
            .string("t", "a\"\\\n\u{1}é")
            .integer("n", u64::MAX)
            .number("x", 0.1)
            .number("none", f64::NAN)
            .integers("l", [1, 2])
            .object("o", inner)
            .finish();
        assert!(!line.contains('\n'));
        let read = parse(&line).unwrap();
        assert_eq!(read.get("t").unwrap().as_str(), Some("a\"\\\n\u{1}é"));
        assert_eq!(read.get("n").unwrap().parse_number(), Some(u64::MAX));
        assert_eq!(read.get("x").unwrap().parse_number(), Some(0.1));
        assert_eq!(read.get("none"), Some(&Json::Null));
        assert_eq!(
            read.get("o").unwrap().get("one").unwrap().parse_number(),
            Some(1)
        );
    }
}
