//! CPUs by physical core and NUMA node, and the order in which threads occupy them.

use crate::sort::stable_sort_by;
use std::fs;
use std::path::Path;

/// CPU ids by NUMA node and physical core. No node and no core is empty.
#[derive(Debug, PartialEq)]
pub(super) struct CpuTopology(Vec<Vec<Vec<usize>>>);

impl CpuTopology {
    /// Reads the topology of the CPUs `allowed` from Linux's sysfs. Where that has no information, and on other
    /// systems, each CPU counts as a core of its own on one node.
    pub(super) fn of_this_system(allowed: &[usize]) -> CpuTopology {
        let system = Path::new("/sys/devices/system");
        let list = |path: &Path| parse_cpu_list(&fs::read_to_string(path).ok()?);
        let siblings =
            |cpu: usize| list(&system.join(format!("cpu/cpu{cpu}/topology/thread_siblings_list")));
        let numbered_node = |entry: fs::DirEntry| -> Option<(usize, Vec<usize>)> {
            let number = entry.file_name().to_str()?.strip_prefix("node")?.parse();
            Some((number.ok()?, list(&entry.path().join("cpulist"))?))
        };
        let mut nodes = Vec::new();
        if let Ok(entries) = fs::read_dir(system.join("node")) {
            for entry in entries {
                nodes.extend(entry.ok().and_then(numbered_node));
            }
        }
        stable_sort_by(&mut nodes, &Ord::cmp);
        let nodes: Vec<Vec<usize>> = nodes.into_iter().map(|(_, cpus)| cpus).collect();
        CpuTopology::new(allowed, siblings, &nodes)
    }

    /// Builds the topology of the CPUs `allowed`. `siblings` returns the CPUs that share a core with a CPU,
    /// including itself; `nodes` lists the CPUs of each node. CPUs of no node form one more node.
    fn new(
        allowed: &[usize],
        siblings: impl Fn(usize) -> Option<Vec<usize>>,
        nodes: &[Vec<usize>],
    ) -> CpuTopology {
        // The lowest CPU id of a core identifies the core, whether it is allowed or not.
        let mut found: Vec<Vec<(usize, Vec<usize>)>> = vec![Vec::new(); nodes.len() + 1];
        for &cpu in allowed {
            let core = siblings(cpu)
                .filter(|list| list.contains(&cpu))
                .and_then(|list| list.into_iter().min())
                .unwrap_or(cpu);
            let node = nodes.iter().position(|cpus| cpus.contains(&cpu));
            let node = &mut found[node.unwrap_or(nodes.len())];
            match node.iter_mut().find(|(first, _)| *first == core) {
                Some((_, cpus)) => cpus.push(cpu),
                None => node.push((core, vec![cpu])),
            }
        }
        let cores = |node: Vec<(usize, Vec<usize>)>| node.into_iter().map(|(_, cpus)| cpus);
        CpuTopology(
            found
                .into_iter()
                .filter(|node| !node.is_empty())
                .map(|node| cores(node).collect())
                .collect(),
        )
    }

    /// Returns the CPUs for `threads` threads, or all CPUs if there are fewer. One CPU of every core comes before
    /// the second of any core, and all cores of a node before those of the next. `first` selects the first CPU:
    /// successive values select different cores, then the sibling CPUs of the cores.
    pub(super) fn choose(&self, threads: usize, first: u64) -> Vec<usize> {
        let CpuTopology(nodes) = self;
        let cores: usize = nodes.iter().map(Vec::len).sum();
        let cpus_per_core = nodes.iter().flatten().map(Vec::len).max().unwrap_or(0);
        if cores == 0 {
            return Vec::new();
        }
        let first = (first % (cores * cpus_per_core) as u64) as usize;
        let (mut first_core, first_sibling) = (first % cores, first / cores);
        let mut first_node = 0;
        while first_core >= nodes[first_node].len() {
            first_core -= nodes[first_node].len();
            first_node += 1;
        }
        // The first node is rotated to begin with the selected core; the others begin with their first core.
        let mut order: Vec<&[usize]> = Vec::with_capacity(cores);
        for i in 0..nodes.len() {
            let node = &nodes[(first_node + i) % nodes.len()];
            for k in 0..node.len() {
                let begin = if i == 0 { first_core } else { 0 };
                order.push(&node[(begin + k) % node.len()]);
            }
        }
        let mut chosen = Vec::new();
        for sibling in 0..cpus_per_core {
            for cpus in &order {
                if sibling < cpus.len() && chosen.len() < threads {
                    chosen.push(cpus[(sibling + first_sibling) % cpus.len()]);
                }
            }
        }
        chosen
    }
}

/// Parses a CPU list of sysfs, such as "0,64" or "0-3,8-11". Returns `None` for any other text.
fn parse_cpu_list(list: &str) -> Option<Vec<usize>> {
    /// Upper bound of CPU ids, to reject malformed lists.
    const MAX_CPUS: usize = 1 << 16;
    let mut ids = Vec::new();
    for part in list.trim().split(',').filter(|part| !part.is_empty()) {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high): (usize, usize) = (low.parse().ok()?, high.parse().ok()?);
        if low > high || high >= MAX_CPUS {
            return None;
        }
        ids.extend(low..=high);
    }
    Some(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the topology with these cores and nodes, all CPUs allowed.
    fn topology(cores: &[&str], nodes: &[&str]) -> CpuTopology {
        let cores: Vec<Vec<usize>> = cores.iter().map(|c| parse_cpu_list(c).unwrap()).collect();
        let nodes: Vec<Vec<usize>> = nodes.iter().map(|n| parse_cpu_list(n).unwrap()).collect();
        let mut allowed: Vec<usize> = cores.concat();
        allowed.sort_unstable();
        let siblings = |cpu| cores.iter().find(|c| c.contains(&cpu)).cloned();
        CpuTopology::new(&allowed, siblings, &nodes)
    }

    #[test]
    fn cpu_lists_are_parsed() {
        assert_eq!(parse_cpu_list("0,64\n"), Some(vec![0, 64]));
        assert_eq!(parse_cpu_list("0-1\n"), Some(vec![0, 1]));
        assert_eq!(
            parse_cpu_list("0-2,8,10-11"),
            Some(vec![0, 1, 2, 8, 10, 11])
        );
        // A node without CPUs.
        assert_eq!(parse_cpu_list("\n"), Some(vec![]));
        for bad in ["a", "1-", "-1", "3-2", "0-99999999999", "0 1"] {
            assert_eq!(parse_cpu_list(bad), None, "{bad}");
        }
    }

    #[test]
    fn sibling_cpus_come_last() {
        let m = topology(&["0-1", "2-3"], &["0-3"]);
        assert_eq!(m.choose(4, 0), [0, 2, 1, 3]);
        assert_eq!(m.choose(4, 1), [2, 0, 3, 1]);
        assert_eq!(m.choose(9, 0).len(), 4);
        assert_eq!(topology(&["0,2", "1,3"], &[]).choose(4, 0), [0, 1, 2, 3]);
        // Some cores of hybrid CPUs have no second hardware thread.
        let hybrid = topology(&["0-1", "2-3", "4", "5"], &[]);
        assert_eq!(hybrid.choose(6, 0), [0, 2, 4, 5, 1, 3]);
    }

    #[test]
    fn the_first_cpu_varies_over_cores_before_siblings() {
        let m = topology(&["0,4", "1,5", "2,6", "3,7"], &["0-1,4-5", "2-3,6-7"]);
        let chosen: Vec<usize> = (0..8).map(|first| m.choose(1, first)[0]).collect();
        assert_eq!(chosen, [0, 1, 2, 3, 4, 5, 6, 7]);
        for threads in 1..=4 {
            for first in [0, 1, 2, 3, 4, 5, 6, 7, u64::MAX] {
                let mut cores: Vec<usize> =
                    m.choose(threads, first).iter().map(|cpu| cpu % 4).collect();
                cores.sort_unstable();
                cores.dedup();
                assert_eq!(cores.len(), threads, "two threads on one core");
            }
        }
    }

    #[test]
    fn a_numa_node_is_filled_before_the_next() {
        let m = topology(&["0", "1", "2", "3"], &["0,2", "", "1,3"]);
        assert_eq!(m.choose(4, 0), [0, 2, 1, 3]);
        assert_eq!(m.choose(4, 1), [2, 0, 1, 3]);
        assert_eq!(m.choose(2, 3), [3, 1]);
        let m = topology(&["0-1", "2-3", "4-5", "6-7"], &["0-3", "4-7"]);
        assert_eq!(m.choose(8, 3), [6, 4, 0, 2, 7, 5, 1, 3]);
    }

    #[test]
    fn an_unknown_topology_keeps_the_order_of_the_cpu_ids() {
        let unknown = CpuTopology::new(&[1, 3, 5], |_| None, &[]);
        assert_eq!(unknown.choose(3, 0), [1, 3, 5]);
        assert_eq!(unknown.choose(2, 2), [5, 1]);
        assert!(CpuTopology::new(&[], |_| None, &[]).choose(1, 7).is_empty());
        // Siblings that are not allowed, a CPU of no node, and a sibling list without its own CPU.
        let odd = CpuTopology::new(&[1, 2, 3], |cpu| (cpu < 3).then(|| vec![0, 1]), &[vec![3]]);
        assert_eq!(
            odd,
            CpuTopology(vec![vec![vec![3]], vec![vec![1], vec![2]]])
        );
    }

    #[test]
    fn every_cpu_of_this_system_is_chosen_once() {
        let allowed: Vec<usize> = (0..4).collect();
        let mut all = CpuTopology::of_this_system(&allowed).choose(4, 3);
        all.sort_unstable();
        assert_eq!(all, allowed);
    }
}
