//! Files beyond 4 GiB and 2^32 entries, written as sparse files with few allocated pages.
#![cfg(all(unix, target_pointer_width = "64"))]

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::common::Scratch;
use s3cmtf::format::{CooFile, Header, OpenMode, ValueKind};

#[test]
fn entries_beyond_4_gib_and_2_32_are_read() {
    let dir = Scratch::new("large");
    let path = dir.join("large.coo");
    let count = (1u64 << 32) + 1_000_003;
    let header = Header::plan(
        &[4_000_000_000, 7, 3],
        count,
        ValueKind::F64,
        Some(ValueKind::F32),
    )
    .unwrap();
    assert!(header.file_size > 90 << 30);
    let file = File::create(&path).unwrap();
    if let Err(e) = file.set_len(header.file_size) {
        println!(
            "skipped: no sparse file of {} bytes here: {e}",
            header.file_size
        );
        return;
    }
    file.write_all_at(&header.encode(), 0).unwrap();
    let probes = [0, 1, u64::from(u32::MAX), 1 << 32, (1 << 32) + 1, count - 1];
    for (k, &entry) in probes.iter().enumerate() {
        let k = k as u32 + 1;
        for (n, s) in header.indices.iter().enumerate() {
            file.write_all_at(&(k * 10 + n as u32).to_le_bytes(), s.offset + entry * 4)
                .unwrap();
        }
        file.write_all_at(
            &(f64::from(k) + 0.5).to_le_bytes(),
            header.values.offset + entry * 8,
        )
        .unwrap();
        file.write_all_at(&(k as f32).to_le_bytes(), header.weights.offset + entry * 4)
            .unwrap();
    }
    drop(file);
    let file = CooFile::open(&path, OpenMode::Mapped).unwrap();
    let view = file.view();
    assert_eq!(view.len() as u64, count);
    for (k, &entry) in probes.iter().enumerate() {
        let (k, i) = (k as u32 + 1, entry as usize);
        for n in 0..3 {
            assert_eq!(view.column(n)[i], k * 10 + n as u32);
        }
        assert_eq!(view.values().get(i), f64::from(k) + 0.5);
        assert_eq!(view.weights().unwrap().get(i), f64::from(k));
    }
    assert_eq!(view.column(0)[12_345], 0);
}
