//! Squared errors of shuffled entries, which are predicted fiber by fiber, against their definition entry by entry in `f64`.

use super::entries::{Entries, EntryList};
use super::loss::{SquaredErrors, tensor_squared_errors};
use super::standardization::Standardization;
use crate::format::{CooView, Values};
use crate::kernel::reference;
use crate::model::Model;
use crate::options::{ModelKind, Options};
use crate::parallel::ThreadPool;
use crate::problem::Problem;
use crate::random::RandomStream;
use crate::simd::{Level, padded_len};
use crate::value_range::ValueRange;

/// A model with random parameters and biases, and the standardization of its values.
struct Fixture {
    model: Model,
    standardization: Standardization,
}

impl Fixture {
    /// Prepares a model of `rows` rows per mode with tensor entries, and of the row of each mode without any.
    fn new(rows: &[u64], kind: ModelKind, ranks: &[usize], biases: bool) -> Fixture {
        let options = Options {
            model: kind,
            rank: ranks.to_vec(),
            biases,
            ..Options::preset("paper").unwrap()
        };
        let count = rows.iter().max().map_or(0, |&n| n as u32);
        let columns = rows
            .iter()
            .map(|&n| (0..count).map(|i| i % n as u32).collect::<Vec<u32>>());
        let columns: Vec<Vec<u32>> = columns.collect();
        let columns: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
        let values: Vec<f64> = (0..count).map(|i| f64::from(i % 5) - 2.0).collect();
        let view = CooView::new("x", rows, &columns, Values::F64(&values)).unwrap();
        let problem = Problem::builder(view).build(&()).unwrap();
        let pool = ThreadPool::new(1, false, 0);
        let (mut model, _) = Model::zeros(&problem, &options).unwrap();
        let mut standardization = Standardization::new(&problem, &options, &pool).unwrap();
        let mut stream = RandomStream::new(&[1]);
        let mut normal = |scale: f64| (scale * stream.standard_normal()) as f32;
        let last = model.shape.ranks()[model.order() - 1];
        for row in model.core.chunks_mut(padded_len(last)) {
            row[..last].fill_with(|| normal(0.5));
        }
        for (n, mode) in model.modes.iter_mut().enumerate() {
            assert_eq!(mode.factor.len(), rows[n] as usize + 1);
            let (rank, stride) = (mode.factor.rank(), mode.factor.stride());
            for row in mode.factor.as_mut_slice().unwrap().chunks_mut(stride) {
                row[..rank].fill_with(|| normal(0.8));
            }
            if let Some(biases) = standardization.biases.get_mut(n) {
                biases.fill_with(|| normal(0.5));
            }
        }
        assert_eq!(standardization.biases.is_empty(), !biases);
        model.range = ValueRange {
            min: -0.7,
            max: 1.2,
        };
        Fixture {
            model,
            standardization,
        }
    }

    /// Draws random entries. Some have rows without training entries.
    fn entries(&self, count: usize, is_weighted: bool) -> EntryList {
        let mut stream = RandomStream::new(&[2, count as u64]);
        let mut entries = EntryList {
            order: self.model.order(),
            rows: Vec::new(),
            values: Vec::new(),
            weights: Vec::new(),
            values_with_biases: Vec::new(),
        };
        for _ in 0..count {
            let modes = self.model.modes.iter();
            let rows = modes.map(|m| stream.below(m.factor.len() as u64) as u32);
            entries.rows.extend(rows);
            entries.values.push(stream.standard_normal() as f32);
            if is_weighted {
                entries.weights.push(0.1 + 3.0 * stream.uniform() as f32);
            }
        }
        entries
    }

    /// Computes the squared errors from their definition.
    fn by_definition(&self, entries: &EntryList) -> SquaredErrors {
        let model = &self.model;
        let wide = |xs: &[f32]| xs.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
        let core = wide(&model.shape.dense_core(&model.core).unwrap());
        let clip = self.standardization.standardized_range(model.range);
        let (mut plain, mut clipped) = (0.0, 0.0);
        for i in 0..entries.len() {
            let row = |(n, &r): (usize, &u32)| wide(model.modes[n].factor.row(r as usize));
            let rows: Vec<Vec<f64>> = entries.row(i).iter().enumerate().map(row).collect();
            let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
            let x = reference::value(&core, &rows);
            let biases = self.standardization.biases.iter().zip(entries.row(i));
            let bias: f64 = biases.map(|(b, &r)| f64::from(b[r as usize])).sum();
            let value = f64::from(entries.values[i]);
            let weight = f64::from(entries.weight(i));
            plain += weight * (value - x).powi(2);
            clipped += weight * (value + bias - (x + bias).clamp(clip.min, clip.max)).powi(2);
        }
        SquaredErrors { plain, clipped }
    }

    fn by_fibers(
        &self,
        entries: &Entries,
        clip: ValueRange,
        level: Level,
        threads: usize,
    ) -> SquaredErrors {
        let pool = ThreadPool::new(threads, false, 0);
        let (model, standardization) = (&self.model, &self.standardization);
        tensor_squared_errors(model, entries, standardization, clip, level, &pool).unwrap()
    }

    /// Compares both at every level and with several thread counts.
    fn compare(&self, count: usize, is_weighted: bool, case: &str) {
        let entries = self.entries(count, is_weighted);
        let expected = self.by_definition(&entries);
        let entries = Entries::List(entries);
        assert!(count == 0 || expected.plain != expected.clipped, "{case}");
        let clip = self.standardization.standardized_range(self.model.range);
        for level in Level::available() {
            let found = self.by_fibers(&entries, clip, level, 1);
            let unclipped = self.by_fibers(&entries, ValueRange::UNBOUNDED, level, 1);
            assert_eq!(unclipped.plain, unclipped.clipped, "{case}");
            assert!((unclipped.plain - found.plain).abs() <= 1e-12 * found.plain);
            for (found, expected) in [
                (found.plain, expected.plain),
                (found.clipped, expected.clipped),
            ] {
                assert!(
                    (found - expected).abs() <= 1e-6 * expected,
                    "{found} instead of {expected}: {case}, {count} entries, {level:?}"
                );
            }
            let threaded = self.by_fibers(&entries, clip, level, 3);
            assert_eq!(
                [threaded.plain, threaded.clipped].map(f64::to_bits),
                [found.plain, found.clipped].map(f64::to_bits),
                "{case}, {count} entries, {level:?}"
            );
        }
    }
}

#[test]
fn squared_errors_of_shuffled_entries_agree_with_their_definition() {
    use ModelKind::{Cp, Tucker};
    for (rows, kind, ranks) in [
        (&[30, 20][..], Tucker, &[3, 5][..]),
        (&[20, 300], Cp, &[17]),
        (&[40, 30, 7], Tucker, &[4, 11, 5]),
        (&[5, 60, 30], Tucker, &[3, 18, 2]),
        (&[40, 7, 30], Cp, &[6]),
        // Hardly any entries share a row.
        (&[9000, 8000], Tucker, &[3, 5]),
        (&[9000, 8000, 7000], Tucker, &[2, 3, 2]),
        (&[9000, 8000, 7000], Cp, &[6]),
        (&[12, 11, 6, 9], Tucker, &[2, 3, 4, 2]),
        (&[12, 11, 10, 5], Cp, &[3]),
    ] {
        for (is_weighted, biases) in [(false, false), (true, true)] {
            let fixture = Fixture::new(rows, kind, ranks, biases);
            let case = format!("{rows:?} {kind:?} {ranks:?}, weights and biases {is_weighted}");
            // None, part of a chunk, and several chunks of which the last is incomplete.
            for count in [0, 100, 9000] {
                fixture.compare(count, is_weighted, &case);
            }
        }
    }
}
