//! The state that an algorithm carries from epoch to epoch and that checkpoints keep: lines `name=value`, which only the algorithm
//! interprets.

/// Lines `name=value`. Floats are the hexadecimal digits of their bits, so that a resumed fit is exactly where it was.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AlgorithmState(String);

/// A number of a state.
pub enum StateField<'a> {
    /// A whole number.
    Integer(&'a mut u64),
    /// A float, which keeps all its bits.
    Real(&'a mut f64),
    /// True or false.
    Flag(&'a mut bool),
}

/// A state whose default is that before the first epoch.
pub trait NamedFields: Clone + Default {
    /// Returns all fields under their names in a checkpoint.
    fn fields(&mut self) -> Vec<(&'static str, StateField<'_>)>;

    /// Returns the name of a field with a value that no fit reaches; `None` if there is none.
    fn invalid_field(&self) -> Option<&'static str> {
        None
    }
}

impl AlgorithmState {
    /// Returns the lines of a state.
    pub fn of<S: NamedFields>(state: &S) -> AlgorithmState {
        let mut copy = state.clone();
        let lines = copy.fields().into_iter().map(|(name, field)| match field {
            StateField::Integer(x) => format!("{name}={x}\n"),
            StateField::Flag(x) => format!("{name}={}\n", u8::from(*x)),
            StateField::Real(x) => format!("{name}={:016x}\n", x.to_bits()),
        });
        AlgorithmState(lines.collect())
    }

    /// Reads the fields of a state. Those that are absent have their defaults; `None` if one cannot be parsed.
    pub fn read<S: NamedFields>(&self) -> Option<S> {
        let mut state = S::default();
        for (name, field) in state.fields() {
            let Some((_, value)) = lines(&self.0).find(|(n, _)| *n == name) else {
                continue;
            };
            match field {
                StateField::Integer(x) => *x = value.parse().ok()?,
                StateField::Flag(x) => *x = value.parse::<u8>().ok().filter(|x| *x <= 1)? == 1,
                StateField::Real(x) => *x = f64::from_bits(u64::from_str_radix(value, 16).ok()?),
            }
        }
        Some(state)
    }

    /// Checks that the fields of a state can be read and are valid. The error says what is wrong with "its state".
    pub fn check<S: NamedFields>(&self) -> std::result::Result<(), String> {
        let state: S = self.read().ok_or("its state cannot be read")?;
        match state.invalid_field() {
            Some(name) => Err(format!("'{name}' of its state has an invalid value")),
            None => Ok(()),
        }
    }

    /// Returns the names of the fields.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        lines(&self.0).map(|(name, _)| name)
    }

    /// Returns the lines.
    pub(super) fn as_text(&self) -> &str {
        &self.0
    }

    /// Takes lines, of which other parts of a checkpoint may have some.
    pub(super) fn from_lines(text: &str) -> AlgorithmState {
        AlgorithmState(text.to_string())
    }

    /// Returns the lines with these names.
    pub(super) fn with_names(&self, names: &[&str]) -> AlgorithmState {
        let kept = lines(&self.0).filter(|(name, _)| names.contains(name));
        AlgorithmState(
            kept.map(|(name, value)| format!("{name}={value}\n"))
                .collect(),
        )
    }
}

/// Returns the names and values of lines `name=value`.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|l| l.split_once('='))
}
