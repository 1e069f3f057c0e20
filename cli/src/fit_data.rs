//! The files that a fit reads: a tensor, its weights, coupled matrices and graphs.

use std::path::{Path, PathBuf};

use clap::{ArgMatches, FromArgMatches};
use s3cmtf::format::{CooFile, TextOptions};
use s3cmtf::options::Options;
use s3cmtf::problem::Problem;
use s3cmtf::{Error, Result};

use crate::coupling_spec::CouplingSpec;
use crate::input::{
    InputFormat, TextArguments, VerifyArguments, any_text, same_file, set_text_option,
};
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

/// The opened input files of a fit.
pub(crate) struct FitData {
    tensor: CooFile,
    /// Weights of the entries of the tensor.
    weights: Option<CooFile>,
    pub matrices: Vec<(CouplingSpec, CooFile)>,
    /// The format of tensor, test and validation files.
    entry_format: InputFormat,
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
        let weights = weights
            .map(|w| entry_format.open(w, progress))
            .transpose()?;
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
        let mut matrices: Vec<(CouplingSpec, CooFile)> = Vec::new();
        for spec in couplings {
            let file = matrix_format.open(&spec.file, progress)?;
            matrices.push((spec, file));
        }
        Ok(FitData {
            tensor,
            weights,
            matrices,
            entry_format,
        })
    }

    /// Opens test or validation entries, in the format of the tensor.
    pub(crate) fn open_entries(&self, path: &Path, progress: &Progress) -> Result<CooFile> {
        self.entry_format.open(path, progress)
    }

    /// Builds the problem of a fit with these options.
    pub(crate) fn build_problem(
        &self,
        options: &Options,
        progress: &Progress,
    ) -> Result<Problem<'_>> {
        let entries = match &self.weights {
            Some(weights) => self.tensor.view().with_weights_of(&weights.view())?,
            None => self.tensor.view(),
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

    /// Rejects outputs that would overwrite an input: the files of this problem, the `--config` file or `other_inputs`.
    pub(crate) fn check_outputs(
        &self,
        a: &ArgMatches,
        other_inputs: &[Option<&PathBuf>],
        outputs: &[Option<&PathBuf>],
    ) -> Result<()> {
        let named = ["tensor", "weights", "config"].map(|name| a.get_one::<PathBuf>(name));
        let inputs = named
            .into_iter()
            .chain(other_inputs.iter().copied())
            .flatten();
        let coupled = self.matrices.iter().map(|(spec, _)| &spec.file);
        let inputs: Vec<&PathBuf> = inputs.chain(coupled).collect();
        for output in outputs.iter().copied().flatten() {
            if inputs.iter().any(|input| same_file(input, output)) {
                return Err(Error::Argument(format!(
                    "{} is read by this command and would be overwritten; write to another file",
                    output.display()
                )));
            }
        }
        Ok(())
    }
}
