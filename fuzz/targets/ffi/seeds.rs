//! Sequences of calls to start from, in the bytes that [`Host`](super::Host) reads.

use std::path::Path;

use crate::targets::Seeds;

/// Returns the call that makes entries of `order` modes, 2 or 3, in `slot`. The bytes are those that [`Host`] reads.
fn seed_entries(order: u8, slot: u8) -> Vec<u8> {
    const COUNT: u8 = 12;
    // The order, the number of entries, stride 1, 32-bit indices from 0.
    let mut bytes = vec![0, if order == 2 { 3 } else { 1 }, COUNT, 1, 2, 0];
    for mode in 0..order {
        bytes.push(0);
        bytes.extend((0..COUNT).map(|i| (i >> mode) % 4));
    }
    // 32-bit values, no weights, no sizes; copied.
    bytes.extend([0, 2, 2]);
    bytes.extend((0..COUNT).map(|i| i * 5 % 16));
    bytes.extend([1, 1, 0, 1, 0, slot]);
    bytes
}

/// Returns the calls that fit a model to a tensor with a matrix, and save and load it. `flags` are those of [`Host::fit`].
fn seed_fit(options: &str, flags: u8, arguments: &[u8]) -> Vec<u8> {
    let matrix = [9, 1, 0, 0, 0, 4, 4, 0, 1, 0];
    let set = [&[13, 0, 0, 4], options.as_bytes(), &[0, 0]].concat();
    let fit = [&[16, 0, 0, flags], arguments, &[0, 0]].concat();
    let save = [21, 0, 3, 1, 0, 0, 1];
    [
        &seed_entries(3, 0)[..],
        &seed_entries(2, 1),
        &[7, 0, 0],
        &matrix,
        &set,
        &fit,
        &save,
    ]
    .concat()
}

pub fn seeds(_: &Path) -> Seeds {
    let predict = [24, 0, 0, 12, 0, 0, 1, 0, 1, 3, 0, 0, 0];
    let intervals = [24, 0, 2, 1, 2, 12, 0, 1, 1, 1, 1, 4, 0, 0, 0];
    // One query, whose row is 0 in all modes.
    let query = [&[1, 1, 2, 0][..], &[0; 16], &[0]].concat();
    let recommend = [&[26, 0], &query[..], &[0, 0, 0, 1, 3, 0, 2, 0, 1, 12, 0]].concat();
    let similar = [28, 0, 1, 0, 0, 1, 2, 1, 12, 0];
    let fold_in = [29, 0, 0, 0, 0, 0, 1, 1, 0, 0, 2];
    let concepts = [30, 0, 0, 0, 3, 0, 1, 0];
    let evaluate = [31, 0, 0, 1, 0, 0];
    let read = [22, 0, 23, 1, 0, 3, 0, 1, 0];
    let fit = seed_fit("rank=2\nepochs=1\nstart=identity", 0, &[]);
    vec![
        ("predict", [&fit[..], &predict, &evaluate, &read].concat()),
        (
            "recommend",
            [&fit[..], &recommend, &similar, &concepts].concat(),
        ),
        ("fold-in", [&fit[..], &fold_in, &evaluate].concat()),
        (
            "gibbs",
            [
                &seed_fit("algorithm=gibbs\nrank=2\nburn_in=0\nsamples=2", 0, &[])[..],
                &intervals,
                &recommend,
            ]
            .concat(),
        ),
        // With test and validation entries and a checkpoint, in the background.
        (
            "background",
            seed_fit(
                "algorithm=als\nrank=2\nepochs=1",
                1 | 2 | 8 | 32,
                &[0, 0, 0, 0, 4, 0, 0, 0],
            ),
        ),
    ]
}
