//! Dependencies between jobs through the files that they read and write.

use std::collections::HashMap;
use std::path::PathBuf;

/// The jobs that must end before a job may start.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Dependencies {
    /// Earlier jobs that write a file which the job reads. They must succeed.
    pub writers: Vec<usize>,
    /// Earlier jobs that read a file which the job writes.
    pub readers: Vec<usize>,
}

/// A file that two jobs write.
#[derive(Debug, PartialEq)]
pub(super) struct WriteConflict {
    /// The earlier of the two jobs.
    pub job: usize,
    pub file: PathBuf,
}

/// The readers and the writer of each file, in the order of the lines.
#[derive(Default)]
pub(super) struct DependencyGraph {
    writers: HashMap<PathBuf, usize>,
    readers: HashMap<PathBuf, Vec<usize>>,
}

impl DependencyGraph {
    /// Adds a job and returns its dependencies, which make the result equal to that of a sequential run.
    ///
    /// Returns an error if an earlier job writes one of its files.
    pub(super) fn add(
        &mut self,
        job: usize,
        reads: &[PathBuf],
        writes: &[PathBuf],
    ) -> Result<Dependencies, WriteConflict> {
        for file in writes {
            if let Some(&job) = self.writers.get(file) {
                let file = file.clone();
                return Err(WriteConflict { job, file });
            }
        }
        let mut dependencies = Dependencies::default();
        dependencies
            .writers
            .extend(reads.iter().filter_map(|f| self.writers.get(f).copied()));
        dependencies
            .readers
            .extend(writes.iter().filter_map(|f| self.readers.get(f)).flatten());
        for list in [&mut dependencies.writers, &mut dependencies.readers] {
            list.sort_unstable();
            list.dedup();
        }
        for file in reads {
            self.readers.entry(file.clone()).or_default().push(job);
        }
        for file in writes {
            self.writers.insert(file.clone(), job);
        }
        Ok(dependencies)
    }

    /// Records that a rejected job did not write its output, so that later jobs that read the file fail.
    ///
    /// Does nothing if an earlier job reads or writes the file, since its contents are then as those jobs expect.
    pub(super) fn add_unwritten(&mut self, job: usize, file: PathBuf) {
        if !self.readers.contains_key(&file) {
            self.writers.entry(file).or_insert(job);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn dependencies_make_the_result_that_of_a_sequential_run() {
        let mut graph = DependencyGraph::default();
        let mut add =
            |job, reads: &[&str], writes: &[&str]| graph.add(job, &paths(reads), &paths(writes));
        assert_eq!(add(0, &["t"], &["m"]), Ok(Dependencies::default()));
        assert_eq!(add(1, &["t", "x"], &["n"]), Ok(Dependencies::default()));
        let both = Dependencies {
            writers: vec![0, 1],
            readers: vec![],
        };
        assert_eq!(add(2, &["m", "n", "m"], &["p"]), Ok(both));
        // A file is overwritten after its readers have ended.
        let later = Dependencies {
            writers: vec![],
            readers: vec![1],
        };
        assert_eq!(add(3, &[], &["x"]), Ok(later));
        let conflict = WriteConflict {
            job: 0,
            file: "m".into(),
        };
        assert_eq!(add(4, &["t"], &["q", "m"]), Err(conflict));
        // A rejected job leaves no dependencies, except for an output that no other job reads or writes.
        assert_eq!(add(5, &["q"], &["r"]), Ok(Dependencies::default()));
        for file in ["t", "m", "u"] {
            graph.add_unwritten(6, file.into());
        }
        let mut writers = |file: &str| graph.add(7, &paths(&[file]), &[]).unwrap().writers;
        assert_eq!(
            [writers("t"), writers("m"), writers("u")],
            [vec![], vec![0], vec![6]]
        );
    }
}
