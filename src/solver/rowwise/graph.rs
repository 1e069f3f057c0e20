//! Similarities between the rows of a mode, by row, and colours: rows of one colour are not linked, so
//! they can be found side by side.

/// For each row its neighbours and how similar they are.
pub(super) struct Links {
    starts: Vec<usize>,
    links: Vec<(u32, f32)>,
}

impl Links {
    /// Every listed pair links both ways; a row is no neighbour of its own.
    pub(super) fn new(rows: usize, pairs: &[u32], similarities: &[f32]) -> Links {
        let pairs = pairs.as_chunks::<2>().0;
        let both = || {
            let listed = pairs.iter().zip(similarities).filter(|([a, b], _)| a != b);
            listed.flat_map(|(&[a, b], &s)| [(a, b, s), (b, a, s)])
        };
        let mut starts = vec![0; rows + 1];
        both().for_each(|(a, _, _)| starts[a as usize + 1] += 1);
        (0..rows).for_each(|i| starts[i + 1] += starts[i]);
        let mut next = starts.clone();
        let mut links = vec![(0, 0.0); starts[rows]];
        for (a, b, s) in both() {
            links[next[a as usize]] = (b, s);
            next[a as usize] += 1;
        }
        // In an order of their own, not that in which they were listed.
        for i in 0..rows {
            links[starts[i]..starts[i + 1]]
                .sort_unstable_by(|x, y| x.0.cmp(&y.0).then(x.1.total_cmp(&y.1)));
        }
        Links { starts, links }
    }

    pub(super) fn of(&self, row: usize) -> &[(u32, f32)] {
        &self.links[self.starts[row]..self.starts[row + 1]]
    }
}

/// Rows by colour: each takes the first that none of its neighbours before it has.
pub(super) fn colours(rows: usize, graphs: &[&Links]) -> Vec<Vec<u32>> {
    let mut colour = vec![u32::MAX; rows];
    let mut classes: Vec<Vec<u32>> = Vec::new();
    let mut taken: Vec<usize> = Vec::new();
    for row in 0..rows {
        taken.resize(classes.len(), usize::MAX);
        for (other, _) in graphs.iter().flat_map(|g| g.of(row)) {
            if let Some(slot) = taken.get_mut(colour[*other as usize] as usize) {
                *slot = row;
            }
        }
        let free = taken
            .iter()
            .position(|&t| t != row)
            .unwrap_or(classes.len());
        if free == classes.len() {
            classes.push(Vec::new());
        }
        colour[row] = free as u32;
        classes[free].push(row as u32);
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    #[test]
    fn linked_rows_have_different_colours_and_every_row_has_one() {
        let mut s = RandomStream::new(&[1]);
        let pairs: Vec<u32> = (0..400).map(|_| s.below(60) as u32).collect();
        let links = Links::new(60, &pairs, &[1.0; 200]);
        let classes = colours(60, &[&links]);
        let mut colour = [usize::MAX; 60];
        for (c, class) in classes.iter().enumerate() {
            class.iter().for_each(|&row| colour[row as usize] = c);
        }
        assert!(colour.iter().all(|&c| c != usize::MAX));
        for pair in pairs.as_chunks::<2>().0.iter().filter(|[a, b]| a != b) {
            assert_ne!(colour[pair[0] as usize], colour[pair[1] as usize]);
            assert!(links.of(pair[0] as usize).iter().any(|l| l.0 == pair[1]));
            assert!(links.of(pair[1] as usize).iter().any(|l| l.0 == pair[0]));
        }
        assert_eq!(colours(3, &[]), [[0, 1, 2]]);
    }
}
