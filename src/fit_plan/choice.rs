//! What a fit chose where the options left it open.

/// A choice that the options left to the library.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// What was open, such as `rank` or the name of a matrix.
    pub question: String,
    /// What was chosen and why, in words.
    pub answer: String,
    /// The numbers behind it, by name.
    pub evidence: Vec<(String, f64)>,
}

impl Choice {
    /// Makes a choice. Numbers that were not measured, which are NaN, are left out.
    pub fn new(question: &str, answer: String, evidence: &[(&str, f64)]) -> Choice {
        let measured = evidence.iter().filter(|(_, x)| x.is_finite());
        let evidence = measured.map(|&(name, x)| (name.into(), x));
        Choice {
            question: question.into(),
            answer,
            evidence: evidence.collect(),
        }
    }
}
