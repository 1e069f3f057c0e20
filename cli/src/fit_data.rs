//! The files that a fit reads: a tensor, its weights, coupled matrices and graphs.

use std::path::{Path, PathBuf};

use clap::{ArgMatches, FromArgMatches};
use s3cmtf::format::{CooFile, ModelNames, RowMatcher, TextOptions};
use s3cmtf::model::Model;
use s3cmtf::options::Options;
use s3cmtf::problem::Problem;
use s3cmtf::{Error, Result};

use crate::coupling_spec::CouplingSpec;
use crate::input::{
    InputFormat, MatchedFile, TextArguments, VerifyArguments, any_text, set_text_option,
};
use crate::output::print_warning;
use crate::progress::Progress;

/// Returns the options for reading tensor, test and validation entries from text.
fn tensor_text_options(a: &ArgMatches) -> Result<TextOptions> {
    TextArguments::from_arg_matches(a)
        .expect("clap parsed them")
        .options()
}

/// Returns the options for reading matrices and graphs from text. Their columns differ from those of the tensor.
pub(crate) fn matrix_text_options<'a>(
    specs: impl Iterator<Item = &'a String>,
    zero_based: bool,
) -> Result<TextOptions> {
    let mut options = TextOptions {
        zero_based,
        ..TextOptions::default()
    };
    for spec in specs {
        set_text_option(&mut options, spec, "--matrix-text")?;
    }
    Ok(options)
}

/// The opened input files of a fit. The rows of all others are matched with those of the tensor.
pub(crate) struct FitData {
    tensor: CooFile,
    /// Weights of the entries of the tensor.
    weights: Option<MatchedFile>,
    pub matrices: Vec<(CouplingSpec, MatchedFile)>,
    /// The format of tensor, test and validation files.
    entry_format: InputFormat,
    /// The rows of the tensor and the matrices.
    matcher: RowMatcher,
}

impl FitData {
    /// Opens the tensor, its weights, matrices and graphs. `other_files` are files that [`FitData::open_entries`] opens
    /// later.
    pub(crate) fn open(
        a: &ArgMatches,
        other_files: &[&PathBuf],
        progress: &Progress,
    ) -> Result<FitData> {
        let tensor = a.get_one::<PathBuf>("tensor").expect("clap requires it");
        let weights = a.get_one::<PathBuf>("weights");
        let files = [tensor].into_iter().chain(weights);
        let verify = VerifyArguments::from_arg_matches(a).expect("clap parsed them");
        let entry_format = InputFormat {
            options: tensor_text_options(a)?,
            any_text: any_text(files.chain(other_files.iter().copied()))?,
            verify,
        };
        let tensor = entry_format.open(tensor, progress)?;
        let mut matcher = RowMatcher::of_tensor(&tensor.view(), tensor.names()?.clone());
        let weights = match weights {
            // Its rows are those of the tensor, or an error.
            Some(path) => Some(entry_format.open_entries(path, &mut matcher.clone(), progress)?),
            None => None,
        };
        let mut couplings: Vec<CouplingSpec> = Vec::new();
        for option in ["matrix", "graph"] {
            for spec in a.get_many::<String>(option).into_iter().flatten() {
                let spec = CouplingSpec::parse(spec, &format!("--{option}"))?;
                if spec.kind.is_graph() && spec.penalty.is_some() {
                    return Err(Error::Argument(format!(
                        "--graph {}: a graph has no columns of its own to penalize; leave the second number out",
                        spec.file.display()
                    )));
                }
                couplings.push(spec);
            }
        }
        let any_text = any_text(couplings.iter().map(|spec| &spec.file))?;
        let matrix_format = InputFormat {
            options: matrix_text_options(
                a.get_many("matrix-text").into_iter().flatten(),
                any_text && entry_format.options.zero_based,
            )?,
            any_text,
            verify,
        };
        if couplings.is_empty() && matrix_format.options != TextOptions::default() {
            return Err(Error::Argument(
                "--matrix-text applies to matrices and graphs, and none is given".into(),
            ));
        }
        let mut matrices: Vec<(CouplingSpec, MatchedFile)> = Vec::new();
        for spec in couplings {
            let (mode, columns) = (spec.mode, spec.kind.is_graph().then_some(spec.mode));
            let file =
                matrix_format.open_coupled(&spec.file, &mut matcher, mode, columns, progress)?;
            matrices.push((spec, file));
        }
        for (_, file) in &mut matrices {
            file.rows.update_sizes(&matcher);
        }
        Ok(FitData {
            tensor,
            weights,
            matrices,
            entry_format,
            matcher,
        })
    }

    /// Opens test or validation entries, in the format of the tensor.
    pub(crate) fn open_entries(&self, path: &Path, progress: &Progress) -> Result<MatchedFile> {
        let mut matcher = self.matcher.clone();
        self.entry_format.open_entries(path, &mut matcher, progress)
    }

    /// Returns an error if rows or columns of an initial model have other names than those of the data.
    pub(crate) fn check_names_of_model(&self, model: &Model, path: &Path) -> Result<()> {
        let widths = self.matrices.iter().map(|(_, file)| file.view().dims()[1]);
        let tensor = self.matcher.tensor(self.tensor.view());
        let own = RowMatcher::of_model(
            tensor.name(),
            tensor.dims(),
            &widths.collect::<Vec<u64>>(),
            self.names()?,
        );
        let warnings = model.row_matcher(path)?.require_same_rows(&own)?;
        warnings.iter().for_each(|text| print_warning(text));
        Ok(())
    }

    /// Returns the names of the rows of the tensor and the matrices, and of the columns of the matrices.
    pub(crate) fn names(&self) -> Result<ModelNames> {
        let columns = self.matrices.iter().map(|(spec, matched)| {
            let names = matched.file.names()?.get(1).cloned().flatten();
            Ok(names.filter(|_| !spec.kind.is_graph()))
        });
        Ok(ModelNames {
            modes: self.matcher.names(),
            columns: columns.collect::<Result<_>>()?,
        })
    }

    /// Builds the problem of a fit with these options.
    pub(crate) fn build_problem(
        &self,
        options: &Options,
        progress: &Progress,
    ) -> Result<Problem<'_>> {
        let tensor = self.matcher.tensor(self.tensor.view());
        let entries = match &self.weights {
            Some(weights) => tensor.with_weights_of(&weights.view())?,
            None => tensor,
        };
        let mut builder = Problem::builder(entries)
            .seed(options.seed)
            .threads(options.threads as usize);
        for (spec, file) in &self.matrices {
            builder = builder.matrix(spec.mode, file.view(), spec.weight, spec.kind);
            if let Some(penalty) = spec.penalty {
                builder = builder.penalty(penalty);
            }
        }
        builder.build(progress)
    }
}
