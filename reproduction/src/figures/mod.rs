//! The charts of the figures, from the results.

mod styles;

use s3cmtf::Result;

use super::chart::{
    Bar, Bars, Chart, Content, Curve, Curves, GREY, Panel, Scale, Series, Stroke, colour, lighter,
};
use super::figure::Figure;
use super::methods::{METHODS, is_of_sals};
use super::store::{Key, Measurement, Store};
use styles::{Styles, has_mark, status};

/// The largest number of panels beside each other.
const COLUMNS: usize = 3;

/// Writes the chart of a figure that has measurements.
pub(super) fn write(store: &Store, figure: Figure) -> Result<()> {
    let styles = Styles::of(store);
    let chart = match figure {
        Figure::Accuracy => accuracy(store, &styles),
        Figure::Sals => sals(store, &styles),
        Figure::IterationTime => iteration_times(store, &styles),
        Figure::Dimensionality | Figure::Entries => scaling(store, &styles, figure),
        Figure::Cores => cores(store, &styles),
        Figure::Gap => gaps(store, &styles),
    };
    store.write(&format!("{}.svg", figure.name()), &chart.draw()?)
}

/// Returns the methods of a figure with a curve, or with a mark that does not name its method.
fn drawn_methods(store: &Store, figure: Figure) -> Vec<String> {
    let is_drawn = |method: &String| {
        let mut of_method = store.of_figure(figure).filter(|(k, _)| k.method == *method);
        of_method.any(|(k, m)| m.is_ok() || k.x.is_some() && has_mark(m))
    };
    store.methods(figure).into_iter().filter(is_drawn).collect()
}

/// The measurements of a panel.
fn of_set<'a>(
    store: &'a Store,
    figure: Figure,
    data: &str,
) -> impl Iterator<Item = (&'a Key, &'a Measurement)> {
    store.of_figure(figure).filter(move |(k, _)| k.data == data)
}

/// Test RMSE against seconds, a panel per data set.
fn accuracy(store: &Store, styles: &Styles) -> Chart {
    let figure = Figure::Accuracy;
    let panel = |data: String| errors(store, styles, &data, &|_| true, &seconds_and_errors);
    Chart {
        title: figure.title().into(),
        legend: styles.legend(drawn_methods(store, figure)),
        panels: store.data_sets(figure).iter().cloned().map(panel).collect(),
        columns: COLUMNS,
    }
}

/// Test RMSE against seconds, and against iterations beside it.
fn sals(store: &Store, styles: &Styles) -> Chart {
    let source = Figure::Accuracy;
    let panels = |data: String| {
        let mut iterations = errors(store, styles, &data, &is_of_sals, &iterations_and_errors);
        if let Content::Curves(content) = &mut iterations.content {
            content.x = Scale::Whole;
            content.x_label = "iterations";
            content.marks.clear();
        }
        [
            errors(store, styles, &data, &is_of_sals, &seconds_and_errors),
            iterations,
        ]
    };
    let methods = drawn_methods(store, source).into_iter();
    Chart {
        title: Figure::Sals.title().into(),
        legend: styles.legend(methods.filter(|m| is_of_sals(m)).collect()),
        panels: store
            .data_sets(source)
            .into_iter()
            .flat_map(panels)
            .collect(),
        columns: 2,
    }
}

/// Returns a panel with the test errors of some methods on a data set.
fn errors(
    store: &Store,
    styles: &Styles,
    data: &str,
    is_shown: &dyn Fn(&str) -> bool,
    points: &dyn Fn(&Measurement) -> Vec<(f64, f64)>,
) -> Panel {
    let shown = || of_set(store, Figure::Accuracy, data).filter(|(k, _)| is_shown(&k.method));
    let curves = shown().map(|(key, m)| styles.curve(&key.method, points(m)));
    Panel {
        title: data.into(),
        content: Content::Curves(Curves {
            curves: curves.collect(),
            marks: styles.marks(shown()),
            x: Scale::Log,
            y: Scale::Log,
            x_label: "seconds of training",
            y_label: "test RMSE",
            may_break: true,
        }),
    }
}

/// Returns the seconds and test errors of a fit; of other programs only the last point is known.
fn seconds_and_errors(m: &Measurement) -> Vec<(f64, f64)> {
    let points = m.points("epochs");
    if points.is_empty()
        && let (Some(seconds), Some(rmse)) = (m.number("seconds"), m.number("test_rmse"))
    {
        return vec![(seconds, rmse)];
    }
    points.iter().map(|p| (p[0], p[2])).collect()
}

fn iterations_and_errors(m: &Measurement) -> Vec<(f64, f64)> {
    let points = m.points("epochs");
    let numbered = points.iter().enumerate();
    numbered.map(|(k, p)| (k as f64 + 1.0, p[2])).collect()
}

/// Bars of seconds per iteration, a panel per data set.
fn iteration_times(store: &Store, styles: &Styles) -> Chart {
    let figure = Figure::IterationTime;
    let seconds = |m: &Measurement| m.number("seconds_per_epoch").filter(|s| *s > 0.0);
    let evaluation = |m: &Measurement| m.number("evaluation_seconds").filter(|s| *s > 0.0);
    let all = store.of_figure(figure);
    let all = all.flat_map(|(_, m)| [seconds(m), evaluation(m)]).flatten();
    let (low, high) = all.fold((f64::INFINITY, 0.0f64), |(l, h), s| (l.min(s), h.max(s)));
    let ends = match low <= high {
        // Bars begin at a power of ten.
        true => (10f64.powf(low.log10().floor()), high),
        // There are only texts.
        false => (0.1, 1.0),
    };
    let panel = |data: String| {
        let mut shown: Vec<_> = of_set(store, figure, &data).collect();
        shown.sort_by_key(|(k, _)| styles.order(&k.method));
        let bar = |(key, m): &(&Key, &Measurement)| Bar {
            name: key.method.clone(),
            colour: colour(styles.place(&key.method)),
            training: seconds(m).ok_or_else(|| status(m)),
            evaluation: evaluation(m),
        };
        let bars = shown.iter().map(bar).collect();
        let label = "seconds per iteration";
        Panel {
            content: Content::Bars(Bars { bars, label, ends }),
            title: data,
        }
    };
    let series = |name: &str, colour| Series {
        name: name.into(),
        stroke: Stroke {
            colour,
            is_dashed: false,
        },
    };
    Chart {
        title: figure.title().into(),
        legend: vec![
            series("training", GREY),
            series("evaluation of the training and test errors", lighter(GREY)),
        ],
        panels: store.data_sets(figure).into_iter().map(panel).collect(),
        columns: COLUMNS,
    }
}

fn scaling(store: &Store, styles: &Styles, figure: Figure) -> Chart {
    let methods = drawn_methods(store, figure);
    let curve = |m: &String| styles.curve(m, store.curve(figure, m, "seconds_per_epoch"));
    let x_label = match figure {
        Figure::Dimensionality => "rows per mode",
        _ => "entries",
    };
    let content = Curves {
        curves: methods.iter().map(curve).collect(),
        marks: styles.marks(store.of_figure(figure)),
        x: Scale::Log,
        y: Scale::Log,
        x_label,
        y_label: "seconds per iteration",
        may_break: false,
    };
    chart_of_one(figure, styles.legend(methods), content)
}

/// Speed-up of one fit, and of independent fits of one thread each.
fn cores(store: &Store, styles: &Styles) -> Chart {
    let figure = Figure::Cores;
    let mut threads: Vec<f64> = store
        .of_figure(figure)
        .filter_map(|(k, _)| Some(k.x? as f64))
        .collect();
    threads.sort_by(f64::total_cmp);
    threads.dedup();
    let ideal = Stroke {
        colour: GREY,
        is_dashed: false,
    };
    let mut curves = vec![Curve {
        stroke: ideal,
        points: threads.iter().map(|&t| (t, t)).collect(),
        errors: Vec::new(),
    }];
    let mut names = Vec::new();
    for method in drawn_methods(store, figure) {
        for (field, suffix) in [
            ("speed_up", ""),
            ("independent_speed_up", ", independent fits"),
        ] {
            let name = format!("{method}{suffix}");
            let mut points = store.curve(figure, &method, field);
            // Independent fits with one thread are one fit.
            if points.first().is_some_and(|p| p.0 > 1.0) {
                points.insert(0, (1.0, 1.0));
            }
            curves.push(styles.curve(&name, points));
            names.push(name);
        }
    }
    let speeds = curves.iter().flat_map(|c| c.points.iter().map(|p| p.1));
    let (low, high) = speeds.fold((1.0f64, 1.0f64), |(l, h), s| (l.min(s), h.max(s)));
    let powers = low.max(1e-3).log2().ceil() as i32..=high.log2().floor() as i32;
    let mut legend = styles.legend(names);
    legend.push(Series {
        name: "ideal".into(),
        stroke: ideal,
    });
    let content = Curves {
        curves,
        marks: styles.marks(store.of_figure(figure)),
        x: Scale::LogAt(threads),
        y: Scale::LogAt(powers.map(|e| 2f64.powi(e)).collect()),
        x_label: "threads",
        y_label: "times the speed of one thread",
        may_break: false,
    };
    chart_of_one(figure, legend, content)
}

fn gaps(store: &Store, styles: &Styles) -> Chart {
    let figure = Figure::Gap;
    let panel = |data: String| {
        let curve = |(key, m): (&Key, &Measurement)| {
            let points = m.points("gap");
            Curve {
                stroke: styles.stroke(&key.method),
                errors: points.iter().map(|p| p[2]).collect(),
                points: points.iter().map(|p| (p[0], p[1])).collect(),
            }
        };
        let content = Curves {
            curves: of_set(store, figure, &data).map(curve).collect(),
            marks: styles.marks(of_set(store, figure, &data)),
            x: Scale::Whole,
            y: Scale::Linear,
            x_label: "number of clusters",
            y_label: "gap statistic",
            may_break: false,
        };
        Panel {
            title: data,
            content: Content::Curves(content),
        }
    };
    Chart {
        title: figure.title().into(),
        legend: styles.legend(drawn_methods(store, figure)),
        panels: store.data_sets(figure).into_iter().map(panel).collect(),
        columns: COLUMNS,
    }
}

fn chart_of_one(figure: Figure, legend: Vec<Series>, content: Curves) -> Chart {
    let panel = Panel {
        title: String::new(),
        content: Content::Curves(content),
    };
    Chart {
        title: figure.title().into(),
        legend,
        panels: vec![panel],
        columns: 1,
    }
}

/// Returns the order of a method in tables; those of other programs come last.
pub(super) fn table_position(method: &str) -> usize {
    let place = METHODS.iter().position(|m| m.name == method);
    place.unwrap_or(METHODS.len())
}
