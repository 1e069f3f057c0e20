//! Which CPUs share a core, and which cores share a memory: the order in which to use them.

use std::fs;
use std::path::Path;

/// CPUs by NUMA node and core. No node and no core is without one.
#[derive(Debug, PartialEq)]
pub(super) struct Machine(Vec<Vec<Vec<usize>>>);

impl Machine {
    /// What Linux says of the CPUs `allowed`. Where nothing is said, here or on other systems, CPUs
    /// are cores of their own on one node.
    pub(super) fn of_this_system(allowed: &[usize]) -> Machine {
        let system = Path::new("/sys/devices/system");
        let list = |path: &Path| parse(&fs::read_to_string(path).ok()?);
        let siblings =
            |cpu: usize| list(&system.join(format!("cpu/cpu{cpu}/topology/thread_siblings_list")));
        let mut nodes: Vec<(usize, Vec<usize>)> = fs::read_dir(system.join("node"))
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let number = entry.file_name().to_str()?.strip_prefix("node")?.parse();
                Some((number.ok()?, list(&entry.path().join("cpulist"))?))
            })
            .collect();
        nodes.sort_unstable();
        let nodes: Vec<Vec<usize>> = nodes.into_iter().map(|(_, cpus)| cpus).collect();
        Machine::new(allowed, siblings, &nodes)
    }

    /// Of the CPUs `allowed`, given those that share a core with a CPU, itself among them, and those
    /// of each node. CPUs of no node make up one more.
    fn new(
        allowed: &[usize],
        siblings: impl Fn(usize) -> Option<Vec<usize>>,
        nodes: &[Vec<usize>],
    ) -> Machine {
        // The first CPU of a core stands for it, whether it is allowed or not.
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
        Machine(
            found
                .into_iter()
                .filter(|node| !node.is_empty())
                .map(|node| cores(node).collect())
                .collect(),
        )
    }

    /// The CPUs for `threads` threads, or all if that is fewer. One of every core comes before the
    /// second of any, and all cores of a node before those of the next. `place` says where to begin:
    /// successive places are different cores first, then the other CPUs of the cores.
    pub(super) fn choose(&self, threads: usize, place: u64) -> Vec<usize> {
        let Machine(nodes) = self;
        let cores: usize = nodes.iter().map(Vec::len).sum();
        let most = nodes.iter().flatten().map(Vec::len).max().unwrap_or(0);
        if cores == 0 {
            return Vec::new();
        }
        let place = (place % (cores * most) as u64) as usize;
        let (mut begin, turn) = (place % cores, place / cores);
        let mut first = 0;
        while begin >= nodes[first].len() {
            begin -= nodes[first].len();
            first += 1;
        }
        // The node begun in is gone through from the core begun on, the others from their first.
        let order: Vec<&Vec<usize>> = rotated(nodes, first)
            .enumerate()
            .flat_map(|(i, node)| rotated(node, if i == 0 { begin } else { 0 }))
            .collect();
        (0..most)
            .flat_map(|lane| {
                order
                    .iter()
                    .filter(move |cpus| lane < cpus.len())
                    .map(move |cpus| cpus[(lane + turn) % cpus.len()])
            })
            .take(threads)
            .collect()
    }
}

/// All items, from number `begin` to the end and on from the start.
fn rotated<T>(items: &[T], begin: usize) -> impl Iterator<Item = &T> {
    items[begin..].iter().chain(&items[..begin])
}

/// Numbers as Linux lists them: "0,64", "0-3,8-11". `None` if it is anything else.
fn parse(list: &str) -> Option<Vec<usize>> {
    /// More CPUs than any system has.
    const MOST: usize = 1 << 16;
    let mut numbers = Vec::new();
    for part in list.trim().split(',').filter(|part| !part.is_empty()) {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high): (usize, usize) = (low.parse().ok()?, high.parse().ok()?);
        if low > high || high >= MOST {
            return None;
        }
        numbers.extend(low..=high);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine of these cores and nodes, all CPUs allowed.
    fn machine(cores: &[&str], nodes: &[&str]) -> Machine {
        let cores: Vec<Vec<usize>> = cores.iter().map(|c| parse(c).unwrap()).collect();
        let nodes: Vec<Vec<usize>> = nodes.iter().map(|n| parse(n).unwrap()).collect();
        let mut allowed: Vec<usize> = cores.concat();
        allowed.sort_unstable();
        let siblings = |cpu| cores.iter().find(|c| c.contains(&cpu)).cloned();
        Machine::new(&allowed, siblings, &nodes)
    }

    #[test]
    fn lists_are_read() {
        assert_eq!(parse("0,64\n"), Some(vec![0, 64]));
        assert_eq!(parse("0-1\n"), Some(vec![0, 1]));
        assert_eq!(parse("0-2,8,10-11"), Some(vec![0, 1, 2, 8, 10, 11]));
        // A node without CPUs.
        assert_eq!(parse("\n"), Some(vec![]));
        for bad in ["a", "1-", "-1", "3-2", "0-99999999999", "0 1"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn siblings_come_last() {
        let m = machine(&["0-1", "2-3"], &["0-3"]);
        assert_eq!(m.choose(4, 0), [0, 2, 1, 3]);
        assert_eq!(m.choose(4, 1), [2, 0, 3, 1]);
        assert_eq!(m.choose(9, 0).len(), 4);
        assert_eq!(machine(&["0,2", "1,3"], &[]).choose(4, 0), [0, 1, 2, 3]);
        // Of hybrid machines some cores have no second CPU.
        let hybrid = machine(&["0-1", "2-3", "4", "5"], &[]);
        assert_eq!(hybrid.choose(6, 0), [0, 2, 4, 5, 1, 3]);
    }

    #[test]
    fn places_are_cores_first_and_then_siblings() {
        let m = machine(&["0,4", "1,5", "2,6", "3,7"], &["0-1,4-5", "2-3,6-7"]);
        let first: Vec<usize> = (0..8).map(|place| m.choose(1, place)[0]).collect();
        assert_eq!(first, [0, 1, 2, 3, 4, 5, 6, 7]);
        for threads in 1..=4 {
            for place in [0, 1, 2, 3, 4, 5, 6, 7, u64::MAX] {
                let mut cores: Vec<usize> =
                    m.choose(threads, place).iter().map(|cpu| cpu % 4).collect();
                cores.sort_unstable();
                cores.dedup();
                assert_eq!(cores.len(), threads, "two threads on one core");
            }
        }
    }

    #[test]
    fn a_node_is_filled_before_the_next() {
        let m = machine(&["0", "1", "2", "3"], &["0,2", "", "1,3"]);
        assert_eq!(m.choose(4, 0), [0, 2, 1, 3]);
        assert_eq!(m.choose(4, 1), [2, 0, 1, 3]);
        assert_eq!(m.choose(2, 3), [3, 1]);
        let m = machine(&["0-1", "2-3", "4-5", "6-7"], &["0-3", "4-7"]);
        assert_eq!(m.choose(8, 3), [6, 4, 0, 2, 7, 5, 1, 3]);
    }

    #[test]
    fn without_knowledge_the_order_is_as_it_was() {
        let unknown = Machine::new(&[1, 3, 5], |_| None, &[]);
        assert_eq!(unknown.choose(3, 0), [1, 3, 5]);
        assert_eq!(unknown.choose(2, 2), [5, 1]);
        assert!(Machine::new(&[], |_| None, &[]).choose(1, 7).is_empty());
        // Siblings that are not allowed; a CPU that no node has; a list without its own CPU.
        let odd = Machine::new(&[1, 2, 3], |cpu| (cpu < 3).then(|| vec![0, 1]), &[vec![3]]);
        assert_eq!(odd, Machine(vec![vec![vec![3]], vec![vec![1], vec![2]]]));
    }

    #[test]
    fn this_system_gives_every_cpu_once() {
        let allowed: Vec<usize> = (0..4).collect();
        let mut all = Machine::of_this_system(&allowed).choose(4, 3);
        all.sort_unstable();
        assert_eq!(all, allowed);
    }
}
