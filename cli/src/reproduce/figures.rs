//! The charts of the figures, from the results.

use s3cmtf::Result;

use super::chart::{Bar, Chart, Content, Curve, Curves, Mark, Panel};
use super::figure::Figure;
use super::methods::{METHODS, is_of_sals};
use super::store::{Key, Measurement, Store};

/// Writes the chart of a figure, if it has measurements.
pub(super) fn write(store: &Store, figure: Figure) -> Result<()> {
    let chart = match figure {
        Figure::Accuracy => errors(store, figure, &|_| true),
        Figure::Sals => errors(store, figure, &is_of_sals),
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
        let of_set = store.of_figure(source).filter(|(k, _)| k.data == data);
        let marks = marks(of_set, &legend);
        Panel {
            title: data,
            content: Content::Curves(Curves {
                curves,
                marks,
                log_x: true,
                log_y: true,
                x_label: "seconds of training",
                y_label: "test RMSE",
            }),
        }
    };
    Chart {
        title: figure.title().into(),
        panels: store.data_sets(source).into_iter().map(panel).collect(),
        legend,
    }
}

/// Returns marks for the methods of the legend that have no results.
fn marks<'a>(
    measurements: impl Iterator<Item = (&'a Key, &'a Measurement)>,
    legend: &[String],
) -> Vec<Mark> {
    let mark = |(key, m): (&Key, &Measurement)| {
        Some(Mark {
            series: legend.iter().position(|l| *l == key.method)?,
            x: key.x.map(|x| x as f64),
            text: match key.x {
                Some(_) => m.status.clone(),
                None => format!("{}: {}", key.method, m.status),
            },
        })
    };
    let without_results = measurements.filter(|(_, m)| !m.is_ok());
    without_results.filter_map(mark).collect()
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
    let curve = |(series, method): (usize, &String)| Curve {
        series,
        points: store.curve(figure, method, "seconds_per_epoch"),
    };
    let curves = legend.iter().enumerate().map(curve).collect();
    let marks = marks(store.of_figure(figure), &legend);
    let x_label = match figure {
        Figure::Dimensionality => "rows per mode",
        _ => "entries",
    };
    chart_of_one(
        figure,
        legend,
        Content::Curves(Curves {
            curves,
            marks,
            log_x: true,
            log_y: true,
            x_label,
            y_label: "seconds per iteration",
        }),
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
            let mut points = store.curve(figure, &method, field);
            // Independent fits with one thread are one fit.
            if points.first().is_some_and(|p| p.0 > 1.0) {
                points.insert(0, (1.0, 1.0));
            }
            curves.push(Curve {
                series: legend.len(),
                points,
            });
            legend.push(format!("{method}{suffix}"));
        }
    }
    let marks = marks(store.of_figure(figure), &legend);
    chart_of_one(
        figure,
        legend,
        Content::Curves(Curves {
            curves,
            marks,
            log_x: false,
            log_y: false,
            x_label: "threads",
            y_label: "times the speed of one thread",
        }),
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
        let of_set = store.of_figure(figure).filter(|(k, _)| k.data == data);
        let marks = marks(of_set, &legend);
        Panel {
            title: data,
            content: Content::Curves(Curves {
                curves,
                marks,
                log_x: false,
                log_y: false,
                x_label: "number of clusters",
                y_label: "gap statistic",
            }),
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
pub(super) fn table_position(method: &str) -> usize {
    let place = METHODS.iter().position(|m| m.name == method);
    place.unwrap_or(METHODS.len())
}
