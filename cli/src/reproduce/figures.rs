//! The charts of the figures, from the results.

use s3cmtf::Result;

use super::chart::{Bar, Chart, Content, Curve, Panel};
use super::figure::Figure;
use super::methods::{CP, METHODS, SALS, TUCKER};
use super::store::{Measurement, Store};

/// Writes the chart of a figure, if it has measurements.
pub(super) fn write(store: &Store, figure: Figure) -> Result<()> {
    let chart = match figure {
        Figure::Accuracy => errors(store, figure, &|_| true),
        Figure::Sals => errors(store, figure, &|m| [SALS, CP, TUCKER].contains(&m)),
        Figure::IterationTime => iteration_times(store),
        Figure::Dimensionality | Figure::Entries => scaling(store, figure),
        Figure::Cores => cores(store),
        Figure::Gap => gaps(store),
    };
    if chart.panels.is_empty() {
        return Ok(());
    }
    store.write(&format!("{}.svg", figure.name()), &chart.draw()?)
}

/// Test RMSE against seconds, a panel per data set.
fn errors(store: &Store, figure: Figure, is_shown: &dyn Fn(&str) -> bool) -> Chart {
    let source = Figure::Accuracy;
    let methods = store.methods(source);
    let legend: Vec<String> = methods.into_iter().filter(|m| is_shown(m)).collect();
    let panel = |data: String| {
        let mut curves = Vec::new();
        for (key, m) in store.of_figure(source).filter(|(k, _)| k.data == data) {
            let Some(series) = legend.iter().position(|l| *l == key.method) else {
                continue;
            };
            curves.push(Curve {
                series,
                points: error_points(m),
            });
        }
        Panel {
            title: data,
            content: Content::Curves {
                curves,
                log_x: true,
                log_y: true,
                x_label: "seconds of training",
                y_label: "test RMSE",
            },
        }
    };
    Chart {
        title: figure.title().into(),
        panels: store.data_sets(source).into_iter().map(panel).collect(),
        legend,
    }
}

/// Returns the seconds and test errors of a fit; of other programs only the last point is known.
fn error_points(m: &Measurement) -> Vec<(f64, f64)> {
    let points = m.points("epochs");
    if points.is_empty()
        && let (Some(seconds), Some(rmse)) = (m.number("seconds"), m.number("test_rmse"))
    {
        return vec![(seconds, rmse)];
    }
    points.iter().map(|p| (p[0], p[2])).collect()
}

/// Bars of seconds per iteration, a panel per data set.
fn iteration_times(store: &Store) -> Chart {
    let figure = Figure::IterationTime;
    let panel = |data: String| {
        let of_set = store.of_figure(figure).filter(|(k, _)| k.data == data);
        let bars = of_set.map(|(key, m)| Bar {
            name: key.method.clone(),
            length: m.number("seconds_per_epoch").ok_or(m.status.clone()),
        });
        Panel {
            content: Content::Bars(bars.collect()),
            title: data.clone(),
        }
    };
    Chart {
        title: format!("{} (training only, logarithmic)", figure.title()),
        legend: Vec::new(),
        panels: store.data_sets(figure).into_iter().map(panel).collect(),
    }
}

fn scaling(store: &Store, figure: Figure) -> Chart {
    let legend = store.methods(figure);
    let mut curves = Vec::new();
    for (series, method) in legend.iter().enumerate() {
        let of_method = store.of_figure(figure).filter(|(k, _)| k.method == *method);
        let point =
            |x: Option<u64>, m: &Measurement| Some((x? as f64, m.number("seconds_per_epoch")?));
        let points = of_method.filter_map(|(k, m)| point(k.x, m)).collect();
        curves.push(Curve { series, points });
    }
    let x_label = match figure {
        Figure::Dimensionality => "rows per mode",
        _ => "entries",
    };
    chart_of_one(
        figure,
        legend,
        Content::Curves {
            curves,
            log_x: true,
            log_y: true,
            x_label,
            y_label: "seconds per iteration",
        },
    )
}

/// Speed-up of one fit, and of independent fits of one thread each.
fn cores(store: &Store) -> Chart {
    let figure = Figure::Cores;
    let (mut legend, mut curves) = (Vec::new(), Vec::new());
    for method in store.methods(figure) {
        for (field, suffix) in [
            ("speed_up", ""),
            ("independent_speed_up", ", independent fits"),
        ] {
            let of_method = store.of_figure(figure).filter(|(k, _)| k.method == method);
            let value = |x: Option<u64>, m: &Measurement| {
                // Independent fits with one thread are one fit.
                let y = m.number(field).or((x == Some(1)).then_some(1.0))?;
                Some((x? as f64, y))
            };
            let points: Vec<(f64, f64)> = of_method.filter_map(|(k, m)| value(k.x, m)).collect();
            curves.push(Curve {
                series: legend.len(),
                points,
            });
            legend.push(format!("{method}{suffix}"));
        }
    }
    chart_of_one(
        figure,
        legend,
        Content::Curves {
            curves,
            log_x: false,
            log_y: false,
            x_label: "threads",
            y_label: "times the speed of one thread",
        },
    )
}

fn gaps(store: &Store) -> Chart {
    let figure = Figure::Gap;
    let legend = store.methods(figure);
    let panel = |data: String| {
        let of_set = store.of_figure(figure).filter(|(k, _)| k.data == data);
        let curve = |method: &str, m: &Measurement| Curve {
            series: legend.iter().position(|l| l == method).unwrap_or(0),
            points: m.points("gap").iter().map(|p| (p[0], p[1])).collect(),
        };
        let curves = of_set.map(|(key, m)| curve(&key.method, m)).collect();
        Panel {
            title: data,
            content: Content::Curves {
                curves,
                log_x: false,
                log_y: false,
                x_label: "number of clusters",
                y_label: "gap statistic",
            },
        }
    };
    Chart {
        title: figure.title().into(),
        panels: store.data_sets(figure).into_iter().map(panel).collect(),
        legend,
    }
}

fn chart_of_one(figure: Figure, legend: Vec<String>, content: Content) -> Chart {
    let is_empty = legend.is_empty();
    let panel = Panel {
        title: String::new(),
        content,
    };
    Chart {
        title: figure.title().into(),
        legend,
        panels: if is_empty { Vec::new() } else { vec![panel] },
    }
}

/// Returns the order of a method in tables; those of other programs come last.
pub(super) fn rank_of(method: &str) -> usize {
    let place = METHODS.iter().position(|m| m.name == method);
    place.unwrap_or(METHODS.len())
}
