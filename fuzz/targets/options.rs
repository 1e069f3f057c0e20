//! Option strings: parse, print, and fit a few entries for one epoch with what is accepted.

use std::path::Path;

use s3cmtf::options::{OPTION_TABLE, Options};
use s3cmtf::solver::{FitInput, fit};

use super::Seeds;
use super::sample::{OneEpoch, check_saved, limit, with_problem};

pub fn run(input: &[u8], folder: &Path) -> bool {
    let text = String::from_utf8_lossy(input);
    let (preset, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let mut options = match Options::preset(preset) {
        Ok(mut options) => match options.apply_text(rest) {
            Ok(()) => options,
            Err(_) => return false,
        },
        Err(_) => match Options::from_text(&text) {
            Ok(options) => options,
            Err(_) => return false,
        },
    };
    options.validate().unwrap();
    assert_eq!(Options::from_text(&options.to_text()).unwrap(), options);
    limit(&mut options, 3);
    let input = FitInput {
        checkpoint: Some(folder.join("checkpoint.s3m")),
        ..FitInput::default()
    };
    let fitted = with_problem(&options, |problem| {
        fit(problem, &options, &input, &mut OneEpoch, &())
    });
    let Ok((model, _)) = fitted else {
        return false;
    };
    check_saved(&model, folder);
    true
}

pub fn seeds(_: &Path) -> Seeds {
    let every = |keep: fn(usize) -> bool| -> Vec<u8> {
        let chosen = OPTION_TABLE.iter().enumerate().filter(|(i, _)| keep(*i));
        let lines = chosen.map(|(_, o)| format!("{}={}\n", o.name, o.default));
        lines.collect::<String>().into_bytes()
    };
    let mut seeds = vec![
        ("first-half", every(|i| i < 16)),
        ("second-half", every(|i| i >= 16)),
    ];
    let texts = [
        (
            "opt",
            "algorithm=opt\nrank=2\neta=0.1\nschedule=inverse\ndecay=0.5\ncore-step=1e-3\n",
        ),
        (
            "naive",
            "# paper\nalgorithm=naive\nmodel=tucker\nrank=2,3,1\nnonneg=true\nkernel=scalar\n",
        ),
        (
            "als",
            "algorithm=als\nlambda_reg=0\npenalty_per=entry\nvalid_fraction=0.3\npatience=1\n",
        ),
        (
            "gibbs",
            "algorithm=gibbs\nburn_in=0\nsamples=2\nlambda_m=3\nseed=18446744073709551615\n",
        ),
        (
            "l1",
            "penalty=l1\nlambda_reg=1e30\nlambda_bias=1,2,3\nclip=false\nmean=false\nkernel=wide\n",
        ),
        ("preset", "paper\nepochs=2\nthreads=2\nstart=drawn\n"),
        (
            "zero",
            "epochs=0\ntime_limit=0.001\neval_every=3\ncheckpoint_every=2\ntolerance=1\n",
        ),
    ];
    seeds.extend(texts.map(|(name, text)| (name, text.into())));
    seeds
}
