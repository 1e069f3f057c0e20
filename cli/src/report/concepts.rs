//! The section on concepts: the strongest columns of each factor.

use std::fmt::Write;

use s3cmtf::Result;
use s3cmtf::discover::{Association, Concept, ConceptOptions, RankedRow, describe_concepts};

use super::bar_chart::inline_bar;
use super::context::PageContext;
use super::html::{format_hundredths, format_value};

/// The largest number of concepts per mode.
const MAX_CONCEPTS: usize = 9;

/// Associations with a smaller absolute contribution are not shown.
const MIN_CONTRIBUTION: f64 = 0.05;

impl PageContext<'_> {
    pub(super) fn concepts(&self) -> Result<String> {
        let model = self.model;
        let mut out = String::from(
            "<p>A concept is a column of a factor. Its strength is the root mean square of its contribution to predictions. Each card \
             lists the rows with the largest and the smallest loadings, scaled to a root mean square of 1, and the columns of coupled \
             matrices that are associated with the concept. Columns are easiest to interpret in CP and non-negative models; in other \
             models a rotation of the columns leaves all predictions unchanged.</p>\n",
        );
        for n in 0..model.order() {
            let options = ConceptOptions {
                top: self.options.top,
                ..ConceptOptions::new(n)
            };
            let found = describe_concepts(model, &options, self.monitor)?.concepts;
            let largest_strength = found.first().map_or(0.0, |c| c.strength);
            let _ = writeln!(
                out,
                "<h3>Concepts of {}</h3>\n<div class=\"grid3\">",
                self.mode_name(n)
            );
            for concept in found.iter().take(MAX_CONCEPTS) {
                out += &self.concept_card(n, concept, largest_strength);
            }
            out += "</div>\n";
            if found.len() > MAX_CONCEPTS {
                let _ = writeln!(
                    out,
                    "<p class=\"note\">The {MAX_CONCEPTS} strongest of {}.</p>",
                    found.len()
                );
            }
        }
        Ok(out)
    }

    fn concept_card(&self, n: usize, c: &Concept, largest_strength: f64) -> String {
        let fraction = if largest_strength > 0.0 {
            c.strength / largest_strength
        } else {
            0.0
        };
        let mut out = format!(
            "<div class=\"card\"><h4>Column {} <small>strength {}</small></h4>{}",
            c.column + 1,
            format_value(c.strength),
            inline_bar(fraction)
        );
        let positive = c
            .positive
            .iter()
            .filter(|a| a.contribution > MIN_CONTRIBUTION);
        let negative = c
            .negative
            .iter()
            .filter(|a| a.contribution < -MIN_CONTRIBUTION);
        let top = self.options.top;
        let positive = positive.take(top).map(|a| self.chip(a, "strong"));
        let negative = negative.take(top).map(|a| self.chip(a, "weak"));
        let chips: String = positive.chain(negative).collect();
        if !chips.is_empty() {
            let _ = write!(out, "<ul class=\"chips\">{chips}</ul>");
        }
        // One list is enough if it holds all rows.
        let lists_all = c.largest.len() < top.max(1) || c.smallest.is_empty();
        let title = if lists_all {
            "rows"
        } else {
            "largest loadings"
        };
        out += &self.row_list(n, title, &c.largest);
        if !lists_all {
            out += &self.row_list(n, "smallest loadings", &c.smallest);
        }
        out + "</div>\n"
    }

    fn chip(&self, a: &Association, class: &str) -> String {
        format!(
            "<li class=\"{class}\">{} {}</li>",
            self.column_name(a.matrix, a.column),
            format_hundredths(a.contribution)
        )
    }

    fn row_list(&self, n: usize, title: &str, rows: &[RankedRow]) -> String {
        let items: String = rows
            .iter()
            .map(|r| {
                format!(
                    "<li><span>{}</span><span>{}</span></li>",
                    self.row_name(n, r.index),
                    format_hundredths(r.score)
                )
            })
            .collect();
        format!("<h5>{title}</h5><ol>{items}</ol>")
    }
}
