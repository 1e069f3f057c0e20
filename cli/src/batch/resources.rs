//! Allocation of threads, CPUs and memory to jobs.

/// The threads, CPUs and memory that no running job holds.
pub(super) struct ResourcePool {
    free_threads: usize,
    free_memory: u64,
    /// Free CPUs, in the order of allocation. Empty if CPUs are not assigned to jobs.
    free_cpus: Vec<usize>,
    /// All CPUs, in the order of allocation.
    all_cpus: Vec<usize>,
}

/// The resources of a job.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Allocation {
    pub threads: usize,
    pub memory: u64,
    /// One CPU per thread, or none.
    pub cpus: Vec<usize>,
}

impl ResourcePool {
    /// `cpus` holds one CPU per thread, or none.
    pub(super) fn new(threads: usize, memory: u64, cpus: Vec<usize>) -> ResourcePool {
        ResourcePool {
            free_threads: threads,
            free_memory: memory,
            free_cpus: cpus.clone(),
            all_cpus: cpus,
        }
    }

    /// Allocates resources; `None` if not enough are free.
    pub(super) fn allocate(&mut self, threads: usize, memory: u64) -> Option<Allocation> {
        if threads > self.free_threads || memory > self.free_memory {
            return None;
        }
        self.free_threads -= threads;
        self.free_memory -= memory;
        let count = threads.min(self.free_cpus.len());
        Some(Allocation {
            threads,
            memory,
            cpus: self.free_cpus.drain(..count).collect(),
        })
    }

    /// Returns resources to the pool.
    pub(super) fn release(&mut self, allocation: Allocation) {
        self.free_threads += allocation.threads;
        self.free_memory += allocation.memory;
        let is_free = |cpu: &&usize| self.free_cpus.contains(cpu) || allocation.cpus.contains(cpu);
        self.free_cpus = self.all_cpus.iter().filter(is_free).copied().collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_never_overlap_nor_exceed_the_pool() {
        let mut pool = ResourcePool::new(4, 100, vec![0, 2, 1, 3]);
        let a = pool.allocate(2, 60).unwrap();
        assert_eq!(a.cpus, [0, 2]);
        assert_eq!(pool.allocate(1, 41), None);
        assert_eq!(pool.allocate(3, 1), None);
        let b = pool.allocate(1, 40).unwrap();
        assert_eq!(b.cpus, [1]);
        pool.release(a);
        assert_eq!(pool.allocate(3, 60).unwrap().cpus, [0, 2, 3]);
        assert_eq!(pool.allocate(1, 0), None);
        // Without CPUs to assign.
        let mut pool = ResourcePool::new(4, 100, vec![]);
        let a = pool.allocate(4, 0).unwrap();
        assert!(a.cpus.is_empty());
        pool.release(a);
        assert!(pool.allocate(4, 100).is_some());
    }
}
