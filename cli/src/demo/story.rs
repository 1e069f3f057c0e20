//! What a demo tells: errors, recommendations, clusters, and a page.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use s3cmtf::Result;
use s3cmtf::discover::{
    AVERAGE_ROW, Cluster, ClusterOptions, Clusters, ObservedPairs, RankedRow, RecommendOptions,
    RowNames, cluster_rows, compare_clusterings, recommend,
};
use s3cmtf::format::{CooFile, CooView};
use s3cmtf::model::Model;
use s3cmtf::report::{ReportOptions, write_report};
use serde_json::{Value, json};

use super::super::lists::row_json;
use super::super::output::{Output, counted, grouped, plain, shape};
use super::super::progress::Progress;
use super::Arguments;
use super::data::Set;
use super::fits::{Errors, Fitted};

/// How many recommendations are listed, how many of the highest entries, and how many of a cluster's rows.
const LISTED: usize = 8;
const HIGHEST: usize = 5;
const MEMBERS: usize = 3;

/// How many clusters there are at most, and how many are listed.
const MOST: usize = 30;
const SHOWN: usize = 12;

pub(super) fn tell(
    a: &Arguments,
    set: &Set,
    started: Instant,
    progress: &Progress,
    out: &mut Output,
) -> Result<()> {
    let teller = Teller {
        a,
        set,
        names: set.row_names()?,
        progress,
    };
    out.line(format!(
        "{} training entries and {} test entries, {}{}.",
        grouped(set.train.header().count),
        grouped(set.test.header().count),
        shape(&set.train.header().dims),
        match set.tables.len() {
            0 => ", and no matrices".into(),
            n => format!(
                ", with {}",
                counted(n as u64, "coupled matrix", "coupled matrices")
            ),
        }
    ));
    out.flush()?;
    let errors = teller.errors(out)?;
    // What is recommended, and told groups of if matrices know any: the first mode is who is recommended to.
    let with_matrix = || set.tables.iter().map(|t| t.mode);
    let things = with_matrix().find(|&mode| mode > 0);
    let grouped = things.or_else(|| with_matrix().next()).unwrap_or(1);
    let told = errors.told();
    let person = teller.recommendations(&told.model, things.unwrap_or(1), out)?;
    let (shown, groups) = teller.clusters(&errors, grouped, out)?;
    let page = teller.page(&errors, (grouped, shown), out)?;
    let seconds = started.elapsed().as_secs_f64();
    out.line(format!("\nAll of it took {seconds:.1} s."));
    let number = |x: f64| if x.is_finite() { json!(x) } else { Value::Null };
    out.object(&json!({
        "summary": {
            "test_rmse_mean": errors.mean,
            "test_rmse_biases": errors.biases,
            "test_rmse_uncoupled": number(errors.uncoupled.summary.test_rmse),
            "test_rmse_coupled": errors.coupled.as_ref().map(|c| number(c.summary.test_rmse)),
            "test_rmse_planted": set.floor,
            "clipped": true,
            "training_entries": set.train.header().count,
            "test_entries": set.test.header().count,
            "dims": set.train.header().dims,
            "modes": set.modes,
            "matrices": set.tables.len(),
            "fits": errors.fits().map(Fitted::to_json).collect::<Vec<_>>(),
            "entries_per_second": errors.speed,
            "threads": told.summary.threads,
            "kernel": told.summary.kernel.name(),
            "person": person,
            "clusters": groups,
            "output": a.output.display().to_string(),
            "report": page.display().to_string(),
            "seconds": seconds,
        }
    }));
    Ok(())
}

impl Set {
    fn row_names(&self) -> Result<RowNames> {
        let mut names = RowNames::new(self.modes.len());
        for (n, own) in self.names.iter().enumerate() {
            if let Some(own) = own {
                names.set(n, own.clone())?;
            }
        }
        Ok(names)
    }

    fn column_names(&self) -> Result<RowNames> {
        let mut names = RowNames::new(self.tables.len());
        for (m, table) in self.tables.iter().enumerate() {
            if let Some(columns) = &table.columns {
                names.set(m, columns.clone())?;
            }
        }
        Ok(names)
    }

    /// The columns of matrices that each row of a mode has.
    fn labels(&self, mode: usize) -> Result<Vec<Vec<String>>> {
        let names = self.column_names()?;
        let mut labels = vec![Vec::new(); self.train.header().dims[mode] as usize];
        for (m, table) in self
            .tables
            .iter()
            .enumerate()
            .filter(|(_, t)| t.mode == mode)
        {
            let view = table.file.view();
            for (i, (&row, &column)) in view.column(0).iter().zip(view.column(1)).enumerate() {
                if view.values().get(i) > 0.0
                    && let Some(own) = labels.get_mut(row as usize)
                {
                    own.push(names.display_name(m, column));
                }
            }
        }
        Ok(labels)
    }
}

/// Who tells it.
pub(super) struct Teller<'a> {
    pub a: &'a Arguments,
    pub set: &'a Set,
    names: RowNames,
    pub progress: &'a Progress,
}

impl Teller<'_> {
    /// Somebody with an ordinary number of entries, some of them among the test entries.
    fn somebody(&self, model: &Model) -> u32 {
        let own = &model.modes()[0];
        let mut tested = vec![0u32; own.rows.len()];
        for &i in self.set.test.view().column(0) {
            if let Some(row) = own.rows.compact(i) {
                tested[row as usize] += 1;
            }
        }
        let rows = own.rows.indices().zip(own.counts.iter().zip(&tested));
        let ordinary = rows.min_by_key(|(_, (count, tested))| (**tested < 10, count.abs_diff(80)));
        ordinary.map_or(0, |(index, _)| index)
    }

    /// What one person likes and should like; returns who it was.
    fn recommendations(&self, model: &Model, ranked: usize, out: &mut Output) -> Result<Value> {
        let (train, test) = (self.set.train.view(), self.set.test.view());
        let who = self.somebody(model);
        let labels = self.set.labels(ranked)?;
        let of = |view: &CooView<'_>| {
            let mut rated: Vec<RankedRow> = (0..view.len())
                .filter(|&i| view.column(0)[i] == who)
                .map(|i| RankedRow {
                    index: view.column(ranked)[i],
                    score: view.values().get(i),
                })
                .collect();
            rated.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.index.cmp(&b.index)));
            rated
        };
        let (known, kept) = (of(&train), of(&test));
        // A row may have been rated again and again.
        let mut listed = HashSet::new();
        let highest = known.iter().filter(|r| listed.insert(r.index));
        let highest: Vec<&RankedRow> = highest.take(HIGHEST).collect();
        let seen = ObservedPairs::new(&[train], 0, ranked)?;
        let how = RecommendOptions {
            exclude_observed: Some(&seen),
            threads: self.a.threads,
            ..RecommendOptions::new(ranked, LISTED)
        };
        let mut best = Vec::new();
        let index = |_: usize, cell: &mut [u32]| {
            cell.fill(AVERAGE_ROW);
            cell[0] = who;
        };
        recommend(model, 1, index, &how, self.progress, |_, list| {
            best = list.to_vec();
            Ok(())
        })?;
        let rated = |row: u32| kept.iter().find(|k| k.index == row).map(|k| k.score);
        let name = |row: u32| self.names.display_name(ranked, row);
        let label = |row: u32| match labels.get(row as usize) {
            Some(own) => cut_list(own, 24),
            None => String::new(),
        };
        let line = |score: String, row: u32, note: String| {
            format!(
                "    {score:>5}  {:<38}  {:<24}  {note}",
                cut(&name(row), 38),
                label(row)
            )
            .trim_end()
            .to_string()
        };
        let called = |row: u32| match self.names.name(0, row) {
            // Numbers for names say nothing more.
            Some(name) if name.parse::<u64>().is_err() => plain(name).into_owned(),
            _ => format!("{} {}", self.set.modes[0], u64::from(row) + 1),
        };
        out.line(format!(
            "\n{} has {} training entries. The highest:",
            called(who),
            grouped(known.len() as u64)
        ));
        for r in &highest {
            out.line(line(format!("{:.1}", r.score), r.index, String::new()));
        }
        out.line("What the model recommends besides, with what the test entries say of it where they do:");
        for r in &best {
            let note = rated(r.index).map_or(String::new(), |value| format!("rated {value:.1}"));
            out.line(line(format!("{:.1}", r.score), r.index, note));
        }
        let row = |r: &RankedRow, what: &str| {
            let mut row = row_json(&self.names, ranked, r.index);
            row[what] = r.score.into();
            row["labels"] = json!(labels.get(r.index as usize));
            row
        };
        let rows = best.iter().map(|r| {
            let mut row = row(r, "score");
            row["rated"] = rated(r.index).into();
            row
        });
        Ok(json!({
            "index": u64::from(who) + 1,
            "name": self.names.name(0, who),
            "training_entries": known.len(),
            "highest": highest.iter().map(|r| row(r, "value")).collect::<Vec<_>>(),
            "recommended": rows.collect::<Vec<_>>(),
        }))
    }

    fn found(&self, errors: &Errors, mode: usize) -> Result<(Clusters, Option<Clusters>)> {
        let views: Vec<CooView<'_>> = self.tables(mode).map(|(_, t)| t.file.view()).collect();
        let how = ClusterOptions {
            k: self.groups(mode),
            restarts: 20,
            max_members: MEMBERS,
            max_labels: 1,
            seed: self.a.seed,
            threads: self.a.threads,
            ..ClusterOptions::new(mode)
        };
        let model = &errors.told().model;
        match errors.other() {
            Some(other) => compare_clusterings(model, &other.model, &how, &views, self.progress)
                .map(|(found, other)| (found, Some(other))),
            None => Ok((cluster_rows(model, &how, &views, self.progress)?, None)),
        }
    }

    /// How many groups of rows matrices tell: all combinations where each row has one column, else the columns of the
    /// first. Without matrices the gap statistic says how many there are.
    fn groups(&self, mode: usize) -> Option<usize> {
        let mut tables = self.tables(mode).map(|(_, t)| &t.file).peekable();
        let width = |file: &CooFile| file.header().dims[1] as usize;
        let first = width(tables.peek()?);
        let single: Vec<usize> = tables.filter(|t| single(t).is_some()).map(width).collect();
        let all = match single.is_empty() {
            true => first,
            false => single.iter().fold(1usize, |all, w| all.saturating_mul(*w)),
        };
        Some(all.clamp(1, MOST))
    }

    fn tables(&self, mode: usize) -> impl Iterator<Item = (usize, &super::data::Table)> {
        let all = self.set.tables.iter().enumerate();
        all.filter(move |(_, t)| t.mode == mode)
    }

    fn clusters(&self, errors: &Errors, mode: usize, out: &mut Output) -> Result<(usize, Value)> {
        let (found, other) = self.found(errors, mode)?;
        self.progress.clear();
        let columns = self.set.column_names()?;
        let own: Vec<usize> = self.tables(mode).map(|(m, _)| m).collect();
        let told = |c: &Cluster| {
            let clear = c.labels.iter().filter(|l| l.is_significant());
            let each = clear.map(|l| {
                let share = 100.0 * l.count as f64 / c.size.max(1) as f64;
                format!(
                    "{} {share:.0}%",
                    columns.display_name(own[l.matrix], l.column)
                )
            });
            cut_list(&each.collect::<Vec<_>>(), 34)
        };
        out.line(format!(
            "\nThe {} rows of {} in {}, {}, the largest first:",
            grouped(found.rows.len() as u64),
            match format!("mode {}", mode + 1) {
                number if number == self.set.modes[mode] => number,
                number => format!("{number} ({})", self.set.modes[mode]),
            },
            counted(found.clusters.len() as u64, "cluster", "clusters"),
            match found.gap {
                Some(_) => "as the gap statistic says",
                None => "as many as matrices tell groups",
            }
        ));
        for (k, c) in found.clusters.iter().take(SHOWN).enumerate() {
            let members = c
                .members
                .iter()
                .map(|m| cut(&self.names.display_name(mode, m.index), 30));
            out.line(format!(
                "  {:>3}  {:>5} rows  {:<34}  {}",
                k + 1,
                grouped(c.size),
                told(c),
                members.collect::<Vec<_>>().join("; ")
            ));
        }
        if found.clusters.len() > SHOWN {
            out.line(format!("       and {} more", found.clusters.len() - SHOWN));
        }
        let mut matches = Vec::new();
        for (place, (_, table)) in self.tables(mode).enumerate() {
            // Where there is a matrix there is a model without.
            let Some(other) = &other else { break };
            let share = |c: &Clusters| match_of(c, &table.file);
            let (with, without) = (share(&found), share(other));
            out.line(format!(
                "  Clusters tell {1:.0}% of the {0} of a row (uncoupled {2:.0}%){3}",
                table.what,
                100.0 * found.uncertainty_coefficients[place],
                100.0 * other.uncertainty_coefficients[place],
                match (with, without) {
                    (Some(with), Some(without)) => format!(
                        "; the most frequent one of its cluster is that of {:.0}% of the rows (uncoupled {:.0}%)",
                        100.0 * with,
                        100.0 * without
                    ),
                    _ => String::new(),
                }
            ));
            matches.push(json!({
                "what": table.what,
                "told": found.uncertainty_coefficients[place],
                "told_uncoupled": other.uncertainty_coefficients[place],
                "right": with,
                "right_uncoupled": without,
            }));
        }
        out.flush()?;
        let list = found.clusters.iter().map(|c| {
            let labels = c.labels.iter().map(|l| {
                let mut label = row_json(&columns, own[l.matrix], l.column);
                label["what"] = self.set.tables[own[l.matrix]].what.clone().into();
                label["count"] = l.count.into();
                label
            });
            let members = c.members.iter();
            let members = members.map(|m| row_json(&self.names, mode, m.index));
            json!({
                "size": c.size,
                "labels": labels.collect::<Vec<_>>(),
                "members": members.collect::<Vec<_>>(),
            })
        });
        let shown = found.clusters.len();
        let told = json!({
            "mode": mode + 1,
            "rows": found.rows.len(),
            "by_gap": found.gap.is_some(),
            "clusters": list.collect::<Vec<_>>(),
            "uncoupled": other.map(|o| o.clusters.len()),
            "matches": matches,
        });
        Ok((shown, told))
    }

    fn page(
        &self,
        errors: &Errors,
        (mode, shown): (usize, usize),
        out: &mut Output,
    ) -> Result<PathBuf> {
        let (set, folder) = (self.set, &self.a.output);
        let path = folder.join("report.html");
        let options = ReportOptions {
            title: match &self.a.data {
                None => "People and places to eat: a planted example".into(),
                Some(data) => format!("A model of {}", name_of(data)),
            },
            data: Some(set.train.view()),
            test: Some(set.test.view()),
            modes: set.modes.clone(),
            names: self.names.clone(),
            matrices: set.tables.iter().map(|t| (t.mode, t.file.view())).collect(),
            columns: set.column_names()?,
            against: errors.other().map(|f| &f.model),
            clusters: vec![(mode, shown)],
            seed: self.a.seed,
            threads: self.a.threads,
            ..ReportOptions::default()
        };
        write_report(&errors.told().model, &options, &path, self.progress)?;
        self.progress.clear();
        let at = |name: &str| folder.join(name).display().to_string();
        let matrices = self.tables(mode);
        let matrices = matrices.map(|(_, t)| format!(" --matrix {}", t.file.name()));
        out.line(format!(
            "\nLook at {}: curves, core, concepts, clusters. Beside it are the models, their logs and the names of rows.\n\
             Try next:\n  s3cmtf recommend {1} --rank 2 --for 1:1 --exclude {2}\n  s3cmtf clusters {1} {3} -k {shown}{4}",
            path.display(),
            at(&format!("{}.s3m", errors.told().what)),
            set.train.name(),
            mode + 1,
            matrices.collect::<String>()
        ));
        Ok(path)
    }
}

/// The column of each row of a table in which no row has two.
fn single(file: &CooFile) -> Option<Vec<Option<u32>>> {
    let view = file.view();
    let mut column = vec![None; view.dims()[0] as usize];
    for (i, (&row, &c)) in view.column(0).iter().zip(view.column(1)).enumerate() {
        let one = view.values().get(i) > 0.0;
        if one && column.get_mut(row as usize)?.replace(c).is_some() {
            return None;
        }
    }
    Some(column)
}

/// For such a table: the share of rows whose column is the most frequent one of their cluster.
fn match_of(found: &Clusters, file: &CooFile) -> Option<f64> {
    let column = single(file)?;
    let width = file.header().dims[1] as usize;
    let mut counts = vec![0u64; found.clusters.len() * width];
    for (&row, &which) in found.rows.iter().zip(&found.assignments) {
        let c = (*column.get(row as usize)?)?;
        counts[which as usize * width + c as usize] += 1;
    }
    let right: u64 = counts.chunks(width).filter_map(|c| c.iter().max()).sum();
    Some(right as f64 / found.rows.len().max(1) as f64)
}

fn name_of(path: &Path) -> String {
    let name = path.canonicalize().unwrap_or_else(|_| path.into());
    name.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// What is left out where there is no room.
const MORE: &str = "...";

/// A text of so many letters at most, with a sign where it was longer.
fn cut(text: &str, most: usize) -> String {
    let text = plain(text);
    match text.chars().count() > most {
        true => text.chars().take(most - MORE.len()).collect::<String>() + MORE,
        false => text.into_owned(),
    }
}

/// So many whole labels as there is room for.
fn cut_list(labels: &[String], most: usize) -> String {
    let whole = labels.join(", ");
    if whole.chars().count() <= most {
        return plain(&whole).into_owned();
    }
    let mut list = String::new();
    for label in labels {
        let more = format!("{list}{label}, ");
        if more.chars().count() + MORE.len() > most {
            break;
        }
        list = more;
    }
    match list.is_empty() {
        true => cut(&labels[0], most),
        false => cut(&(list + MORE), most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_says_so() {
        let of = |labels: &[&str]| {
            cut_list(
                &labels.iter().map(|l| l.to_string()).collect::<Vec<_>>(),
                24,
            )
        };
        assert_eq!(
            of(&["15", "16", "117", "225", "488", "512"]),
            "15, 16, 117, 225, ..."
        );
        assert_eq!(
            of(&["Drama", "Fantasy", "Western"]),
            "Drama, Fantasy, Western"
        );
        assert_eq!(
            of(&["Action", "Drama", "Fantasy", "War"]),
            "Action, Drama, ..."
        );
        assert_eq!(
            of(&["a label that is long in itself", "b"]),
            "a label that is long ..."
        );
        assert_eq!(of(&[]), "");
        assert_eq!(cut("Distinguished Gentleman", 10), "Disting...");
        assert_eq!(cut("\u{1b}[31mé", 10), "\u{fffd}[31mé");
    }
}
