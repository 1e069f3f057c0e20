//! Property tests: what holds for every input, checked on random inputs. A failure prints the smallest input that still fails.
//!
//! Inputs are the same in every run. `S3CMTF_LONG_TESTS=1` runs many more of them, `PROPTEST_CASES` a given number for each
//! property, and `PROPTEST_RNG_SEED` others.

mod bins;
mod fits;
mod formats;
mod permutations;
mod renumbering;
mod text;

use std::fmt::Debug;

use proptest::array::uniform8;
use proptest::collection::{SizeRange, vec};
use proptest::num::{f32, f64};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use s3cmtf::format::{CooView, MAX_DIM, TextOptions, ValueKind, Values};
use s3cmtf::kernel::MAX_ORDER;

/// Seed of the inputs.
const SEED: u64 = 19;

/// Inputs of the long form for each of the short form.
const LONG_FACTOR: u32 = 100;

/// Runs a property, which panics if it does not hold, on `cases` inputs.
fn check<S: Strategy>(cases: u32, inputs: S, property: impl Fn(S::Value))
where
    S::Value: Debug,
{
    // The default has what the environment sets.
    let mut config = Config {
        failure_persistence: None,
        max_shrink_iters: 2000,
        ..Config::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        let is_long = std::env::var_os("S3CMTF_LONG_TESTS").is_some_and(|v| v == "1");
        config.cases = if is_long { cases * LONG_FACTOR } else { cases };
    }
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(SEED);
    }
    let result = TestRunner::new(config).run(&inputs, |input| {
        property(input);
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

/// A column of values or weights.
#[derive(Debug, Clone)]
enum Floats {
    F32(Vec<f32>),
    F64(Vec<f64>),
}

impl Floats {
    /// Stores numbers in the given precision. Those beyond `f32` become its largest.
    fn new(kind: ValueKind, numbers: impl Iterator<Item = f64>) -> Floats {
        let narrow = |x: f64| x.clamp(f32::MIN.into(), f32::MAX.into()) as f32;
        match kind {
            ValueKind::F32 => Floats::F32(numbers.map(narrow).collect()),
            ValueKind::F64 => Floats::F64(numbers.collect()),
        }
    }

    fn values(&self) -> Values<'_> {
        match self {
            Floats::F32(values) => Values::F32(values),
            Floats::F64(values) => Values::F64(values),
        }
    }

    /// Returns the elements at the given positions.
    fn select(&self, positions: &[usize]) -> Floats {
        let all = self.values();
        Floats::new(all.kind(), positions.iter().map(|&i| all.get(i)))
    }
}

/// Entries of a tensor or matrix, with everything that a file keeps of them.
#[derive(Debug, Clone)]
struct Entries {
    dims: Vec<u64>,
    has_inferred_dims: bool,
    columns: Vec<Vec<u32>>,
    values: Floats,
    weights: Option<Floats>,
}

impl Entries {
    fn len(&self) -> usize {
        self.values.values().len()
    }

    fn order(&self) -> usize {
        self.dims.len()
    }

    fn view(&self) -> CooView<'_> {
        let columns: Vec<&[u32]> = self.columns.iter().map(Vec::as_slice).collect();
        let view = CooView::new("entries", &self.dims, &columns, self.values.values()).unwrap();
        let view = match &self.weights {
            Some(weights) => view.with_weights(weights.values()).unwrap(),
            None => view,
        };
        if self.has_inferred_dims {
            view.with_inferred_dims()
        } else {
            view
        }
    }

    /// Returns the entries at the given positions.
    fn select(&self, positions: &[usize]) -> Entries {
        let column = |column: &Vec<u32>| positions.iter().map(|&i| column[i]).collect();
        Entries {
            dims: self.dims.clone(),
            has_inferred_dims: self.has_inferred_dims,
            columns: self.columns.iter().map(column).collect(),
            values: self.values.select(positions),
            weights: self.weights.as_ref().map(|w| w.select(positions)),
        }
    }

    /// Returns the entries with the sizes that a reader of their text infers.
    fn with_inferred_dims(mut self) -> Entries {
        let size = |column: &Vec<u32>| u64::from(*column.iter().max().unwrap()) + 1;
        self.dims = self.columns.iter().map(size).collect();
        self.has_inferred_dims = true;
        self
    }
}

/// Everything in a view but its name, with floats as bits.
#[derive(Debug, PartialEq)]
struct Contents {
    dims: Vec<u64>,
    has_inferred_dims: bool,
    columns: Vec<Vec<u32>>,
    values: (ValueKind, Vec<u64>),
    weights: Option<(ValueKind, Vec<u64>)>,
}

impl Contents {
    fn new(view: &CooView<'_>) -> Contents {
        let bits = |values: Values<'_>| {
            let bits = (0..values.len()).map(|i| values.get(i).to_bits());
            (values.kind(), bits.collect())
        };
        Contents {
            dims: view.dims().to_vec(),
            has_inferred_dims: view.dims_inferred(),
            columns: (0..view.order()).map(|n| view.column(n).to_vec()).collect(),
            values: bits(view.values()),
            weights: view.weights().map(bits),
        }
    }
}

/// The choices besides its entries that make an [`Entries`].
#[derive(Debug, Clone)]
struct Form {
    dims: Vec<u64>,
    has_inferred_dims: bool,
    value_kind: ValueKind,
    weight_kind: Option<ValueKind>,
}

impl Form {
    /// Makes entries of tuples: a number for each mode that becomes an index, a value and a weight.
    fn entries(self, tuples: &[([u32; MAX_ORDER], f64, f64)]) -> Entries {
        let column = |(n, &dim): (usize, &u64)| {
            let index = |tuple: &([u32; MAX_ORDER], f64, f64)| (u64::from(tuple.0[n]) % dim) as u32;
            tuples.iter().map(index).collect()
        };
        Entries {
            columns: self.dims.iter().enumerate().map(column).collect(),
            dims: self.dims,
            has_inferred_dims: self.has_inferred_dims,
            values: Floats::new(self.value_kind, tuples.iter().map(|t| t.1)),
            weights: self
                .weight_kind
                .map(|kind| Floats::new(kind, tuples.iter().map(|t| t.2))),
        }
    }
}

fn value_kinds() -> impl Strategy<Value = ValueKind> {
    prop_oneof![Just(ValueKind::F32), Just(ValueKind::F64)]
}

/// Finite numbers of every magnitude, and integers.
fn finite_values() -> BoxedStrategy<f64> {
    let (f32_sign, f64_sign) = (f32::POSITIVE | f32::NEGATIVE, f64::POSITIVE | f64::NEGATIVE);
    let narrow = f32_sign | f32::NORMAL | f32::SUBNORMAL | f32::ZERO;
    let wide = f64_sign | f64::NORMAL | f64::SUBNORMAL | f64::ZERO;
    prop_oneof![
        narrow.prop_map(f64::from),
        wide,
        (-100..100i32).prop_map(f64::from),
    ]
    .boxed()
}

/// Numbers that are allowed as weights: finite as `f32`, 0 or more.
fn weights() -> BoxedStrategy<f64> {
    let narrow = f32::POSITIVE | f32::NORMAL | f32::SUBNORMAL | f32::ZERO;
    prop_oneof![
        Just(0.0),
        Just(1.0),
        0.0..10.0f64,
        narrow.prop_map(f64::from)
    ]
    .boxed()
}

/// Sizes of modes up to the largest.
fn any_dims() -> BoxedStrategy<Vec<u64>> {
    let dim = prop_oneof![1..5u64, 1..100_000u64, MAX_DIM - 2..=MAX_DIM];
    vec(dim, 2..=MAX_ORDER).boxed()
}

/// Entries with the given sizes and values, with and without weights.
fn entries(
    dims: BoxedStrategy<Vec<u64>>,
    count: impl Into<SizeRange>,
    values: BoxedStrategy<f64>,
) -> impl Strategy<Value = Entries> {
    let weight_kinds = prop_oneof![Just(None), value_kinds().prop_map(Some)];
    let forms = (dims, any::<bool>(), value_kinds(), weight_kinds);
    let forms = forms.prop_map(|(dims, has_inferred_dims, value_kind, weight_kind)| Form {
        dims,
        has_inferred_dims,
        value_kind,
        weight_kind,
    });
    let tuples = vec((uniform8(any::<u32>()), values, weights()), count);
    (forms, tuples).prop_map(|(form, tuples)| form.entries(&tuples))
}

/// Entries that text can have: weights have the precision of the values. There may be none if `count` allows it.
fn text_entries(
    dims: BoxedStrategy<Vec<u64>>,
    count: impl Into<SizeRange>,
) -> impl Strategy<Value = Entries> {
    entries(dims, count, finite_values()).prop_map(|mut entries| {
        let kind = entries.values.values().kind();
        let narrowed = |weights: Floats| {
            let weights = weights.values();
            Floats::new(kind, (0..weights.len()).map(|i| weights.get(i)))
        };
        entries.weights = entries.weights.map(narrowed);
        entries
    })
}

/// Returns the options that read the text of these entries, and the entries with the sizes that they then have.
fn reading(entries: Entries) -> (TextOptions, Entries) {
    let states_dims = entries.len() == 0 || !entries.has_inferred_dims;
    let options = TextOptions {
        dims: states_dims.then(|| entries.dims.clone()),
        value_kind: Some(entries.values.values().kind()),
        ..TextOptions::default()
    };
    let stated = Entries {
        has_inferred_dims: false,
        ..entries
    };
    let expected = if states_dims {
        stated
    } else {
        stated.with_inferred_dims()
    };
    (options, expected)
}
