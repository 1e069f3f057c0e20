//! `fit --weights` and `convert --weighted`.

use crate::common::{ProgramRun, Scratch};
use crate::runner::run;

/// Weights in a separate file and in a column of the tensor give the same fit.
#[test]
fn weights_file_equals_weight_column() {
    let dir = Scratch::new("weights-file");
    let lines = |line: &dyn Fn(usize, u32, u32) -> String| -> String {
        (0..400)
            .map(|e| line(e, e as u32 % 20 + 1, e as u32 / 20 + 1))
            .collect()
    };
    let value = |e: usize| 1.0 + ((e * 7) % 11) as f64 / 4.0;
    let weight = |e: usize| 0.5 + (e % 4) as f64;
    let plain = dir.file("x.tns", lines(&|e, i, j| format!("{i} {j} {}\n", value(e))));
    let both = dir.file(
        "both.tns",
        lines(&|e, i, j| format!("{i} {j} {} {}\n", value(e), weight(e))),
    );
    let weights = dir.file(
        "w.tns",
        lines(&|e, i, j| format!("{i} {j} {}\n", weight(e))),
    );
    let swapped = dir.file(
        "swapped.tns",
        lines(&|e, i, j| format!("{} {j} {}\n", if e == 9 { i + 1 } else { i }, weight(e))),
    );
    let converted = dir.join("both.coo");
    let text = |path: &std::path::Path| path.to_str().unwrap().to_string();
    run(["convert", "--weighted", &text(&both), &text(&converted)]).ok();
    let fit = |tensor: &std::path::Path, extra: &[&str]| {
        let (tensor, out) = (text(tensor), text(&dir.join("m.s3m")));
        let mut words = vec!["fit", "--tensor", &tensor, "-o", &out, "--json"];
        words.extend(["--preset", "paper", "--rank", "2", "--epochs", "2"]);
        words.extend(["--threads", "1"]);
        words.extend(extra);
        run(words)
    };
    let of = |ran: ProgramRun| ran.ok().json().pop().unwrap()["summary"]["train_rmse"].clone();
    let listed = of(fit(&plain, &["--weights", &text(&weights)]));
    assert_eq!(listed, of(fit(&converted, &[])));
    assert_ne!(listed, of(fit(&plain, &[])));
    fit(&plain, &["--weights", &text(&swapped)])
        .failed(2, &["swapped.tns", "entry 10", "same order"]);
}
