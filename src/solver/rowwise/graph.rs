//! Similarity graphs between the rows of a mode, and their greedy colouring.
//!
//! A graph penalty makes the rows that it joins dependent. Rows of one colour are not adjacent, so they can be
//! updated in parallel given the others.

use crate::error::{Error, Result};
use crate::try_alloc::{try_collect, try_to_vec, try_zeroed};

/// The adjacency lists of an undirected weighted graph.
pub(super) struct Adjacency {
    /// First neighbour of each row, and the number of neighbours of all rows at the end.
    starts: Vec<usize>,
    /// Neighbouring row and similarity.
    neighbours: Vec<(u32, f32)>,
}

impl Adjacency {
    /// Builds the lists of a graph on `rows` rows from pairs of rows and their similarities. Each pair counts in
    /// both directions; loops are ignored.
    pub(super) fn new(rows: usize, pairs: &[u32], similarities: &[f32]) -> Result<Adjacency> {
        let pairs = pairs.as_chunks::<2>().0;
        let both = || {
            let edges = pairs.iter().zip(similarities).filter(|([a, b], _)| a != b);
            edges.flat_map(|(&[a, b], &s)| [(a, b, s), (b, a, s)])
        };
        let mut starts: Vec<usize> = try_zeroed(rows + 1, "rows")?;
        both().for_each(|(a, _, _)| starts[a as usize + 1] += 1);
        (0..rows).for_each(|i| starts[i + 1] += starts[i]);
        let mut next = try_to_vec(&starts, "rows")?;
        let none = std::iter::repeat((0, 0.0));
        let mut neighbours = try_collect(starts[rows], none, "similarities")?;
        for (a, b, s) in both() {
            neighbours[next[a as usize]] = (b, s);
            next[a as usize] += 1;
        }
        // Sums over neighbours must not depend on the order of the pairs.
        for i in 0..rows {
            let list = &mut neighbours[starts[i]..starts[i + 1]];
            list.sort_unstable_by(|x, y| x.0.cmp(&y.0).then(x.1.total_cmp(&y.1)));
        }
        Ok(Adjacency { starts, neighbours })
    }

    /// The neighbours of a row and their similarities to it.
    pub(super) fn neighbours(&self, row: usize) -> &[(u32, f32)] {
        &self.neighbours[self.starts[row]..self.starts[row + 1]]
    }
}

/// Colours the union of some graphs greedily, in the order of the rows, and returns the rows of each colour.
pub(super) fn colour_classes(rows: usize, graphs: &[&Adjacency]) -> Result<Vec<Vec<u32>>> {
    if graphs.is_empty() {
        return Ok(vec![try_collect(rows, 0..rows as u32, "rows")?]);
    }
    let mut colour = try_collect(rows, std::iter::repeat(u32::MAX), "rows")?;
    let mut classes: Vec<Vec<u32>> = Vec::new();
    // For each colour the last row that has a neighbour of this colour.
    let mut blocked_by: Vec<usize> = Vec::new();
    for row in 0..rows {
        blocked_by.resize(classes.len(), usize::MAX);
        for (other, _) in graphs.iter().flat_map(|g| g.neighbours(row)) {
            if let Some(slot) = blocked_by.get_mut(colour[*other as usize] as usize) {
                *slot = row;
            }
        }
        let free = blocked_by
            .iter()
            .position(|&t| t != row)
            .unwrap_or(classes.len());
        if free == classes.len() {
            classes.push(Vec::new());
        }
        colour[row] = free as u32;
        let class = &mut classes[free];
        class
            .try_reserve(1)
            .map_err(|_| Error::out_of_memory(rows, "rows"))?;
        class.push(row as u32);
    }
    Ok(classes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    #[test]
    fn adjacent_rows_have_different_colours() {
        let mut s = RandomStream::new(&[1]);
        let pairs: Vec<u32> = (0..400).map(|_| s.below(60) as u32).collect();
        let graph = Adjacency::new(60, &pairs, &[1.0; 200]).unwrap();
        let classes = colour_classes(60, &[&graph]).unwrap();
        let mut colour = [usize::MAX; 60];
        for (c, class) in classes.iter().enumerate() {
            class.iter().for_each(|&row| colour[row as usize] = c);
        }
        assert!(colour.iter().all(|&c| c != usize::MAX));
        for pair in pairs.as_chunks::<2>().0.iter().filter(|[a, b]| a != b) {
            assert_ne!(colour[pair[0] as usize], colour[pair[1] as usize]);
            assert!(
                graph
                    .neighbours(pair[0] as usize)
                    .iter()
                    .any(|n| n.0 == pair[1])
            );
            assert!(
                graph
                    .neighbours(pair[1] as usize)
                    .iter()
                    .any(|n| n.0 == pair[0])
            );
        }
        assert_eq!(colour_classes(3, &[]).unwrap(), [[0, 1, 2]]);
    }
}
