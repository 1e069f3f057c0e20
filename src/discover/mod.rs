//! Questions that a fitted [`Model`](crate::model::Model) answers about its rows.
//!
//! - [`recommend`]: the rows of one mode with the largest predictions for given rows of the other modes.
//! - [`similar_rows`]: the nearest neighbours of a row, by the cosine of their predictions.
//! - [`evaluate_ranking`]: hit rate, recall and NDCG of recommendations on test entries.
//! - [`cluster_rows`]: k-means clusters of the rows of a mode, with the gap statistic and label enrichment.
//! - [`describe_concepts`]: the meaning of the columns of a factor.
//! - [`RowNames`]: names of rows, and lookup of rows by name or number.
//!
//! A fitted model enters, together with COO matrices for labels and exclusions. Lists of rows leave, as indices counted
//! from 0. Start with `recommend.rs`; `batch_scoring.rs` holds the inner loop of `recommend` and `similar_rows`.

mod batch_scoring;
mod cluster_points;
mod clusters;
mod compatibility;
mod concepts;
mod core_contraction;
mod enrichment;
mod gap_statistic;
mod kmeans;
mod model_rows;
mod name_suggestions;
mod observed_pairs;
mod parameter_view;
mod prediction_metric;
mod ranking_metrics;
mod recommend;
mod row_names;
mod similar;
mod top_k;

pub use cluster_points::ClusterSpace;
pub use clusters::{Cluster, ClusterOptions, Clusters, Member, cluster_rows, compare_clusterings};
pub use compatibility::{check_label_matrix, check_same_data};
pub use concepts::{Association, Concept, ConceptOptions, Concepts, Profile, describe_concepts};
pub use enrichment::Label;
pub use gap_statistic::{GapCurve, GapPoint};
pub(crate) use name_suggestions::find_by_name;
pub use observed_pairs::ObservedPairs;
pub use ranking_metrics::{RankingMetrics, RankingOptions, RankingReport, evaluate_ranking};
pub use recommend::{RankBy, RecommendOptions, recommend};

pub use crate::model::AVERAGE_ROW;
pub use row_names::RowNames;
pub use similar::{SimilarOptions, similar_rows};
pub use top_k::RankedRow;
