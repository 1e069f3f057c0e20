//! Seconds per iteration of every method, training and evaluation apart.

use s3cmtf::Result;

use super::budget::Budget;
use super::data_sets::DataSet;
use super::figure::Figure;
use super::methods::{METHODS, Method, OPT};
use super::session::Session;
use super::store::Key;

/// The name of S3CMTF-opt with one thread, which the paper shows beside that with all.
pub(super) const OPT_ONE_THREAD: &str = "S3CMTF-opt, 1 thread";

/// Iterations per fit; their median counts.
const EPOCHS: u64 = 3;

pub(super) fn measure(session: &mut Session<'_>, sets: &[DataSet], budget: Budget) -> Result<()> {
    let mut open = Vec::new();
    for set in sets {
        for method in &METHODS {
            let mut variants = vec![(method.name, None)];
            if method.name == OPT && session.threads() > 1 {
                variants.push((OPT_ONE_THREAD, Some(1)));
            }
            for (name, threads) in variants {
                let key = Key {
                    figure: Figure::IterationTime,
                    data: set.name.clone(),
                    method: name.into(),
                    x: None,
                };
                if session.needs(&key) {
                    open.push((key, set, method, threads));
                }
            }
        }
    }
    let total = open.len();
    for (done, (key, set, method, threads)) in open.into_iter().enumerate() {
        session.show(&key, done, total);
        let mut arguments = set.arguments(method.uses_matrices);
        arguments.extend(set.test_arguments());
        arguments.extend(fixed_options(method, set.paper_rank(), EPOCHS));
        if let Some(threads) = threads {
            arguments.extend(["--threads".into(), format!("{threads}")]);
        }
        let seconds = budget.seconds_for_one_of(total - done);
        let measurement = session.fit(arguments, seconds)?;
        session.keep(key, measurement)?;
    }
    Ok(())
}

/// Returns the options of a fit whose time per iteration is measured: the same rank for every method, the weight of matrices
/// fixed, and starting values that take no time.
pub(super) fn fixed_options(method: &Method, rank: &str, epochs: u64) -> Vec<String> {
    let mut list: Vec<String> = method.arguments.iter().map(|a| a.to_string()).collect();
    let is_gibbs = list.iter().any(|a| a == "gibbs");
    list.extend(["--preset", "paper", "--rank", rank].map(String::from));
    if is_gibbs {
        list.extend(["--burn-in", "1", "--samples"].map(String::from));
        list.push((epochs - 1).to_string());
    } else {
        list.extend(["--epochs".into(), epochs.to_string()]);
    }
    list
}
