//! Which job may start when: after those whose files it needs, and when there is room for it.

use std::collections::HashMap;
use std::path::PathBuf;

/// What a job has to wait for.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Waits {
    /// Jobs that write what it reads: they must have done so.
    pub needs: Vec<usize>,
    /// Jobs that read what it writes: they must be over.
    pub after: Vec<usize>,
}

/// Who reads and writes which file, in the order of the lines.
#[derive(Default)]
pub(super) struct Files {
    writers: HashMap<PathBuf, usize>,
    readers: HashMap<PathBuf, Vec<usize>>,
}

impl Files {
    /// Adds a job. Fails if it writes what an earlier one writes, with that one and the file. Jobs come out as if they
    /// were run one after the other.
    pub(super) fn add(
        &mut self,
        job: usize,
        reads: &[PathBuf],
        writes: &[PathBuf],
    ) -> Result<Waits, (usize, PathBuf)> {
        for file in writes {
            if let Some(&other) = self.writers.get(file) {
                return Err((other, file.clone()));
            }
        }
        let mut waits = Waits::default();
        waits
            .needs
            .extend(reads.iter().filter_map(|f| self.writers.get(f).copied()));
        waits
            .after
            .extend(writes.iter().filter_map(|f| self.readers.get(f)).flatten());
        for list in [&mut waits.needs, &mut waits.after] {
            list.sort_unstable();
            list.dedup();
        }
        for file in reads {
            self.readers.entry(file.clone()).or_default().push(job);
        }
        for file in writes {
            self.writers.insert(file.clone(), job);
        }
        Ok(waits)
    }
}

impl Files {
    /// Notes that a job that was refused did not write a file, which whoever reads it later is to know; unless others
    /// have read it before, or write it: then it was not to be written, and is good as it is.
    pub(super) fn not_written(&mut self, job: usize, file: PathBuf) {
        if !self.readers.contains_key(&file) {
            self.writers.entry(file).or_insert(job);
        }
    }
}

/// What there is to share: threads, the cores they are on, and memory.
pub(super) struct Room {
    threads: usize,
    memory: u64,
    /// Cores that nobody has, in the order in which they are taken; empty if cores are not shared out.
    free: Vec<usize>,
    /// All of them.
    cores: Vec<usize>,
}

/// What a job has of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Share {
    pub threads: usize,
    pub memory: u64,
    /// As many as threads, or none.
    pub cores: Vec<usize>,
}

impl Room {
    /// `cores` are as many as threads, or none.
    pub(super) fn new(threads: usize, memory: u64, cores: Vec<usize>) -> Room {
        Room {
            threads,
            memory,
            free: cores.clone(),
            cores,
        }
    }

    /// Takes a share, if there is as much.
    pub(super) fn take(&mut self, threads: usize, memory: u64) -> Option<Share> {
        if threads > self.threads || memory > self.memory {
            return None;
        }
        self.threads -= threads;
        self.memory -= memory;
        let taken = threads.min(self.free.len());
        Some(Share {
            threads,
            memory,
            cores: self.free.drain(..taken).collect(),
        })
    }

    /// Takes a share back.
    pub(super) fn give(&mut self, share: Share) {
        self.threads += share.threads;
        self.memory += share.memory;
        let free = |core: &&usize| self.free.contains(core) || share.cores.contains(core);
        self.free = self.cores.iter().filter(free).copied().collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn jobs_come_out_as_if_they_were_run_one_after_the_other() {
        let mut files = Files::default();
        let mut add =
            |job, reads: &[&str], writes: &[&str]| files.add(job, &paths(reads), &paths(writes));
        assert_eq!(add(0, &["t"], &["m"]), Ok(Waits::default()));
        assert_eq!(add(1, &["t", "x"], &["n"]), Ok(Waits::default()));
        let both = Waits {
            needs: vec![0, 1],
            after: vec![],
        };
        assert_eq!(add(2, &["m", "n", "m"], &["p"]), Ok(both));
        // What others read is written when they have read it.
        let later = Waits {
            needs: vec![],
            after: vec![1],
        };
        assert_eq!(add(3, &[], &["x"]), Ok(later));
        assert_eq!(add(4, &["t"], &["q", "m"]), Err((0, "m".into())));
        // One that was refused has no part in anything but that it did not write what nobody else has to do with.
        assert_eq!(add(5, &["q"], &["r"]), Ok(Waits::default()));
        for file in ["t", "m", "u"] {
            files.not_written(6, file.into());
        }
        let mut needs = |file: &str| files.add(7, &paths(&[file]), &[]).unwrap().needs;
        assert_eq!(
            [needs("t"), needs("m"), needs("u")],
            [vec![], vec![0], vec![6]]
        );
    }

    #[test]
    fn shares_never_overlap_nor_exceed_what_there_is() {
        let mut room = Room::new(4, 100, vec![0, 2, 1, 3]);
        let a = room.take(2, 60).unwrap();
        assert_eq!(a.cores, [0, 2]);
        assert_eq!(room.take(1, 41), None);
        assert_eq!(room.take(3, 1), None);
        let b = room.take(1, 40).unwrap();
        assert_eq!(b.cores, [1]);
        room.give(a);
        assert_eq!(room.take(3, 60).unwrap().cores, [0, 2, 3]);
        assert_eq!(room.take(1, 0), None);
        // Without cores to share out.
        let mut room = Room::new(4, 100, vec![]);
        let a = room.take(4, 0).unwrap();
        assert!(a.cores.is_empty());
        room.give(a);
        assert!(room.take(4, 100).is_some());
    }
}
