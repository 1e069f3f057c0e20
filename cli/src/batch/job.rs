//! A job: a fit or a prediction, with its files and options.

use std::path::{Path, PathBuf};

use s3cmtf::format::{OpenMode, SizeLimit, TextOptions, read_whole_text};
use s3cmtf::model;
use s3cmtf::options::Options;
use s3cmtf::problem::MatrixKind;
use s3cmtf::{Error, Result};

/// One job.
#[derive(Debug, Clone)]
pub(super) struct Job {
    /// The number of its line, counted from 1.
    pub line: u64,
    /// The text of its line.
    pub text: String,
    pub id: String,
    pub task: Task,
    pub output: PathBuf,
    /// Options by name, as given in the line.
    pub options: Vec<(String, String)>,
    /// The memory that the job takes, in bytes, if the line states it.
    pub memory: Option<u64>,
}

/// The task of a job.
#[derive(Debug, Clone)]
pub(super) enum Task {
    Fit(Box<FitTask>),
    Predict(Box<PredictTask>),
}

#[derive(Debug, Clone)]
pub(super) struct FitTask {
    pub tensor: PathBuf,
    pub weights: Option<PathBuf>,
    pub matrices: Vec<CoupledFile>,
    pub test: Option<PathBuf>,
    pub valid: Option<PathBuf>,
    pub init: Option<PathBuf>,
    pub checkpoint: Option<PathBuf>,
    pub resume: Option<PathBuf>,
    pub preset: String,
    pub config: Option<PathBuf>,
    /// How text files of tensor entries are parsed.
    pub text: TextOptions,
    /// How text files of matrices and graphs are parsed.
    pub matrix_text: TextOptions,
}

/// A coupled matrix or graph.
#[derive(Debug, Clone)]
pub(super) struct CoupledFile {
    /// The mode, counted from 0.
    pub mode: usize,
    pub file: PathBuf,
    pub weight: Option<f64>,
    pub penalty: Option<f64>,
    pub kind: MatrixKind,
}

#[derive(Debug, Clone)]
pub(super) struct PredictTask {
    pub model: PathBuf,
    pub file: PathBuf,
    /// How text files are parsed.
    pub text: TextOptions,
}

impl Job {
    /// Returns the name of the task: "fit" or "predict".
    pub(super) fn task_name(&self) -> &'static str {
        match self.task {
            Task::Fit(_) => "fit",
            Task::Predict(_) => "predict",
        }
    }

    /// Returns the path of the checkpoints that the job writes.
    pub(super) fn checkpoint(&self) -> Option<&Path> {
        match &self.task {
            Task::Fit(fit) => fit.checkpoint.as_deref().or(fit.resume.as_deref()),
            Task::Predict(_) => None,
        }
    }

    /// Returns the checkpoint that the line asks to resume from.
    pub(super) fn resume(&self) -> Option<&Path> {
        match &self.task {
            Task::Fit(fit) => fit.resume.as_deref(),
            Task::Predict(_) => None,
        }
    }

    /// Returns all files that the job reads.
    pub(super) fn inputs(&self) -> Vec<&Path> {
        let mut all: Vec<&Path> = Vec::new();
        match &self.task {
            Task::Fit(f) => {
                all.push(&f.tensor);
                all.extend(f.matrices.iter().map(|m| m.file.as_path()));
                let others = [&f.weights, &f.test, &f.valid, &f.init, &f.resume, &f.config];
                all.extend(others.into_iter().filter_map(|p| p.as_deref()));
                for text in [&f.text, &f.matrix_text] {
                    all.extend(text.delimited.names.iter().map(|(_, p)| p.as_path()));
                }
            }
            Task::Predict(p) => {
                all.extend([p.model.as_path(), p.file.as_path()]);
                all.extend(p.text.delimited.names.iter().map(|(_, p)| p.as_path()));
            }
        }
        all
    }

    /// Returns an error if an input is a folder, a device or a pipe. Nothing is opened: to open a pipe is to wait for its
    /// writer, and a wait on the thread of the scheduler would stop all jobs. A missing file is an error when it is opened.
    pub(super) fn require_regular_inputs(&self) -> Result<()> {
        for file in self.inputs() {
            let Ok(meta) = std::fs::metadata(file) else {
                continue;
            };
            let reason = if meta.is_dir() {
                "is a folder; name a file in it"
            } else if !meta.is_file() {
                "is a device or a pipe; a job reads ordinary files only"
            } else {
                continue;
            };
            return Err(Error::file(file.display().to_string(), reason));
        }
        Ok(())
    }

    /// Returns all files that the job writes, except for its log.
    pub(super) fn outputs(&self) -> Vec<&Path> {
        [Some(self.output.as_path()), self.checkpoint()]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Returns the resolved options.
    ///
    /// Options of the line have precedence over its config file. Below them are the options of the checkpoint `resume`,
    /// or else the preset with the ranks of the initial model. If none of these states the number of threads, it is
    /// `default_threads`; 0 means `all_threads`.
    pub(super) fn resolve_options(
        &self,
        resume: Option<&Path>,
        default_threads: usize,
        all_threads: usize,
    ) -> Result<Options> {
        let mut options = match &self.task {
            Task::Fit(fit) => fit.base_options(resume)?,
            Task::Predict(_) => Options::default(),
        };
        options.threads = default_threads as u64;
        if let Task::Fit(fit) = &self.task
            && let Some(file) = &fit.config
        {
            let text = read_whole_text(file, SizeLimit::Options)?;
            options
                .apply_text(&text)
                .map_err(|e| Error::argument(format!("{}: {e}", file.display())))?;
        }
        for (name, value) in &self.options {
            options.set(name, value)?;
        }
        if options.threads == 0 {
            options.threads = all_threads as u64;
        }
        Ok(options)
    }
}

impl FitTask {
    /// Returns the options before the config file and the line are applied.
    fn base_options(&self, resume: Option<&Path>) -> Result<Options> {
        if let Some(path) = resume {
            return Ok(model::load(path, OpenMode::Mapped)?.options().clone());
        }
        let mut options = Options::preset(&self.preset)?;
        if let Some(init) = &self.init {
            let init = model::load(init, OpenMode::Mapped)?;
            options.rank = init.shape().ranks().to_vec();
            options.model = init.options().model;
        }
        Ok(options)
    }
}
