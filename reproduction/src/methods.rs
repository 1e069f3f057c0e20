//! The methods that are compared.

/// A method of the paper or of this library.
pub(super) struct Method {
    /// Its name in tables and figures.
    pub name: &'static str,
    /// Its arguments of `fit` and `tune`.
    pub arguments: &'static [&'static str],
    /// Its iterations until convergence, where it needs more than the paper's settings have.
    pub epochs: Option<&'static str>,
    /// Iterations between two evaluations, if not 1.
    pub eval_every: Option<&'static str>,
    /// Whether it starts from the paper's settings, without mean and biases; otherwise from the defaults of this library.
    pub has_paper_preset: bool,
    pub uses_matrices: bool,
    pub kind: MethodKind,
}

/// The role of a method in the claims of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MethodKind {
    /// A version of S3CMTF as the paper describes it.
    Paper,
    /// A competitor that takes unobserved cells as zeros, as in the paper.
    ZeroFilled,
    /// Another method: a competitor that fits observed entries, or an algorithm of this library beyond the paper.
    Other,
}

pub(super) const NAIVE: &str = "S3CMTF-naive";
pub(super) const OPT: &str = "S3CMTF-opt";
pub(super) const TUCKER: &str = "S3CMTF-TUCKER";
pub(super) const CP: &str = "S3CMTF-CP";
pub(super) const CMTF_OPT: &str = "CMTF-OPT (observed)";
pub(super) const CMTF_OPT_ZEROS: &str = "CMTF-OPT (zeros)";
pub(super) const TUCKER_ALS: &str = "CMTF-Tucker-ALS";
pub(super) const SALS: &str = "SALS-single";
pub(super) const BLOCKED: &str = "blocked";
pub(super) const GIBBS: &str = "gibbs";

/// An iteration of CMTF-OPT is one step with all parameters, which lowers the error far less than a pass of SGD does.
const CMTF_OPT_EPOCHS: Option<&str> = Some("500");

/// All methods, in the order of tables.
pub(super) const METHODS: [Method; 10] = [
    paper(NAIVE, &["--algorithm", "naive"], true),
    paper(OPT, &["--algorithm", "opt"], true),
    paper(TUCKER, &["--algorithm", "opt"], false),
    paper(CP, &["--algorithm", "opt", "--model", "cp"], false),
    Method {
        name: BLOCKED,
        arguments: &["--algorithm", "blocked"],
        epochs: None,
        eval_every: None,
        has_paper_preset: false,
        uses_matrices: true,
        kind: MethodKind::Other,
    },
    Method {
        name: GIBBS,
        arguments: &["--algorithm", "gibbs"],
        epochs: None,
        eval_every: None,
        has_paper_preset: false,
        uses_matrices: true,
        kind: MethodKind::Other,
    },
    Method {
        name: CMTF_OPT,
        arguments: &[
            "--algorithm",
            "cmtf-opt",
            "--model",
            "cp",
            "--unobserved",
            "unknown",
        ],
        epochs: CMTF_OPT_EPOCHS,
        eval_every: Some("10"),
        has_paper_preset: true,
        uses_matrices: true,
        kind: MethodKind::Other,
    },
    Method {
        name: CMTF_OPT_ZEROS,
        arguments: &[
            "--algorithm",
            "cmtf-opt",
            "--model",
            "cp",
            "--unobserved",
            "zeros",
        ],
        epochs: CMTF_OPT_EPOCHS,
        eval_every: Some("10"),
        has_paper_preset: true,
        uses_matrices: true,
        kind: MethodKind::ZeroFilled,
    },
    Method {
        name: TUCKER_ALS,
        arguments: &["--algorithm", "tucker-als", "--model", "tucker"],
        epochs: None,
        eval_every: None,
        has_paper_preset: true,
        uses_matrices: true,
        kind: MethodKind::ZeroFilled,
    },
    Method {
        name: SALS,
        arguments: &["--algorithm", "sals", "--model", "cp"],
        epochs: None,
        eval_every: None,
        has_paper_preset: true,
        uses_matrices: false,
        kind: MethodKind::Other,
    },
];

const fn paper(
    name: &'static str,
    arguments: &'static [&'static str],
    uses_matrices: bool,
) -> Method {
    Method {
        name,
        arguments,
        epochs: None,
        eval_every: None,
        has_paper_preset: true,
        uses_matrices,
        kind: MethodKind::Paper,
    }
}

/// Returns whether the comparison with SALS-single has a method.
pub(super) fn is_of_sals(name: &str) -> bool {
    [SALS, CP, TUCKER].contains(&name)
}

/// Returns the methods with some names.
pub(super) fn methods(names: &[&str]) -> Vec<&'static Method> {
    let is_named = |m: &&Method| names.contains(&m.name);
    METHODS.iter().filter(is_named).collect()
}

/// Returns the kind of a method in results, which may be one of another program.
pub(super) fn kind_of(name: &str) -> Option<MethodKind> {
    METHODS.iter().find(|m| m.name == name).map(|m| m.kind)
}
