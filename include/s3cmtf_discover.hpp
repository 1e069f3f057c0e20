// s3cmtf for C++17: what to recommend, what is alike, how good rankings are, what columns stand for, which rows belong
// together, names of rows, and a page about a model. The rules are those of s3cmtf.hpp, which this adds to.
#ifndef S3CMTF_DISCOVER_HPP
#define S3CMTF_DISCOVER_HPP

#include "s3cmtf.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace s3cmtf {

/// The names of the rows of a mode. See s3cmtf_names.
class row_names {
public:
    static row_names open(const std::string &path)
    {
        s3cmtf_names *made = nullptr;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_names_open(path.c_str(), &made, e); });
        return row_names(made);
    }
    /// Those that lie beside a data file or model; without any it is empty.
    static row_names beside(const std::string &path, std::size_t mode)
    {
        s3cmtf_names *made = nullptr;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_names_open_beside(path.c_str(), mode, &made, e); });
        return row_names(made);
    }
    std::size_t count() const
    {
        std::uint64_t count = 0;
        if (get()) detail::check([&](s3cmtf_error *e) { return s3cmtf_names_get_count(get(), &count, e); });
        return static_cast<std::size_t>(count);
    }
    /// The name of a row, counted from 0; empty if it has none.
    std::string operator[](std::uint64_t row) const
    {
        std::uint64_t needed = 0;
        if (!get()) return {};
        detail::check([&](s3cmtf_error *e) { return s3cmtf_names_get(get(), row, nullptr, 0, &needed, e); });
        std::string name(static_cast<std::size_t>(needed), '\0');
        detail::check([&](s3cmtf_error *e) { return s3cmtf_names_get(get(), row, &name[0], needed, nullptr, e); });
        name.pop_back(); // the NUL
        return name;
    }
    /// The row with a name; throws with the nearest names if there is none.
    std::uint64_t find(const std::string &name) const
    {
        std::uint64_t row = 0;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_names_find(get(), name.c_str(), &row, e); });
        return row;
    }
    s3cmtf_names *get() const noexcept { return handle_.get(); }

private:
    explicit row_names(s3cmtf_names *made) { handle_.reset(made); }
    detail::owned<s3cmtf_names, s3cmtf_names_free> handle_;
};

/// A row, counted from 0, and its score.
struct ranked {
    std::uint64_t row;
    double score;
};

/// How to recommend. See s3cmtf_model_recommend().
struct recommend_options {
    std::size_t top = 10;
    /// 0 ranks by predictions.
    double quantile = 0;
    const coo *exclude = nullptr;
    std::size_t exclude_by = 0;
    /// Whether only the rows of `only` are ranked.
    bool only_some = false;
    std::vector<std::uint64_t> only, without;
    std::size_t threads = 0;
    const cancel_token *cancel = nullptr;
};

namespace detail {

/// No list has more rows than the mode: room is made for those alone.
inline std::size_t rows_listed(const model &from, std::size_t mode, std::size_t top)
{
    const auto dims = from.dims();
    if (mode >= dims.size()) throw error(S3CMTF_BAD_ARGUMENT, "mode is beyond the order of the model");
    return static_cast<std::size_t>(std::min<std::uint64_t>(top, std::max<std::uint64_t>(dims[mode], 1)));
}

template <class Make> std::vector<std::vector<ranked>> lists(std::size_t count, std::size_t top, Make make)
{
    const std::size_t all = count * top;
    std::vector<std::uint64_t> rows(all), found(count);
    std::vector<double> scores(all);
    check([&](s3cmtf_error *e) { return make(rows.data(), scores.data(), rows.size(), found.data(), e); });
    std::vector<std::vector<ranked>> made(count);
    for (std::size_t q = 0; q < count; q++)
        for (std::size_t k = 0; k < found[q]; k++) made[q].push_back({rows[q * top + k], scores[q * top + k]});
    return made;
}

} // namespace detail

/// For each query the rows of a mode that a model predicts the most for. A query has a row for each mode, counted from 0;
/// modes that `averaged` has are averaged over.
inline std::vector<std::vector<ranked>> recommend(const model &from, std::size_t mode,
                                                  const std::vector<std::vector<std::uint64_t>> &queries,
                                                  const std::vector<std::size_t> &averaged = {},
                                                  const recommend_options &how = {})
{
    const std::size_t order = from.order(), top = detail::rows_listed(from, mode, how.top);
    std::vector<std::vector<std::uint64_t>> columns(order);
    for (const auto &query : queries) {
        if (query.size() != order) throw error(S3CMTF_BAD_ARGUMENT, "query and model have different orders");
        for (std::size_t n = 0; n < order; n++) columns[n].push_back(query[n]);
    }
    std::vector<const void *> pointers(order);
    for (std::size_t n = 0; n < order; n++) pointers[n] = columns[n].data();
    pointers[mode] = nullptr;
    for (std::size_t n : averaged) {
        if (n >= order) throw error(S3CMTF_BAD_ARGUMENT, "averaged mode is beyond the order of the model");
        pointers[n] = nullptr;
    }
    const std::uint64_t none = 0;
    const std::uint64_t *only = how.only.empty() ? &none : how.only.data();
    return detail::lists(queries.size(), top, [&](auto *rows, auto *scores, auto capacity, auto *found, auto *e) {
        return s3cmtf_model_recommend(from.get(), mode, queries.size(), pointers.data(), S3CMTF_U64, 1, 0, top,
                                      how.quantile, how.exclude ? how.exclude->get() : nullptr, how.exclude_by,
                                      how.only_some ? how.only.size() : 0, how.only_some ? only : nullptr,
                                      how.without.size(), how.without.data(), how.threads,
                                      how.cancel ? how.cancel->get() : nullptr, rows, scores, capacity, found, e);
    });
}

/// For each row of a mode, those of the same mode that are most like it, with cosines for scores.
inline std::vector<std::vector<ranked>> similar(const model &from, std::size_t mode,
                                                const std::vector<std::uint64_t> &rows, std::size_t top = 10,
                                                std::size_t threads = 0, const cancel_token *cancel = nullptr)
{
    top = detail::rows_listed(from, mode, top);
    return detail::lists(rows.size(), top, [&](auto *to, auto *scores, auto capacity, auto *found, auto *e) {
        return s3cmtf_model_similar(from.get(), mode, rows.size(), rows.data(), top, threads,
                                    cancel ? cancel->get() : nullptr, to, scores, capacity, found, e);
    });
}

/// Figures of rankings, of the model and of popularity. See s3cmtf_model_evaluate_ranking().
struct ranking_report {
    struct metrics {
        double hit_rate, recall, ndcg;
    };
    metrics of_model, of_popularity;
    std::uint64_t users;
};

inline ranking_report evaluate_ranking(const model &from, const coo &test, const coo &train, std::size_t mode,
                                       std::size_t by, std::size_t at = 10,
                                       double relevant = -std::numeric_limits<double>::infinity(), double quantile = 0,
                                       std::size_t threads = 0, const cancel_token *cancel = nullptr)
{
    double own[3] = {}, common[3] = {};
    ranking_report found{};
    detail::check([&](s3cmtf_error *e) {
        return s3cmtf_model_evaluate_ranking(from.get(), test.get(), train.get(), mode, by, at, quantile, relevant, threads,
                                             cancel ? cancel->get() : nullptr, own, common, &found.users, e);
    });
    found.of_model = {own[0], own[1], own[2]};
    found.of_popularity = {common[0], common[1], common[2]};
    return found;
}

/// A column of a coupled matrix, and what it has to do with a concept.
struct association {
    std::uint64_t matrix, column;
    double share;
};

/// A column of a factor. See s3cmtf_concepts_get(). Scores of rows are loadings.
struct concept_of {
    std::uint64_t column;
    double strength, effect;
    std::vector<ranked> largest, smallest;
    std::vector<association> with, against;
    /// Whether the sign of the column was turned. See s3cmtf_concepts_get_turned().
    bool turned;
};

/// R, row by row, a row for each concept. Empty if it is no matrix. See s3cmtf_concepts_copy_profile().
struct concept_profile {
    std::uint64_t mode, columns;
    std::vector<double> numbers;
};

namespace detail {

inline std::vector<ranked> concept_rows(const s3cmtf_concepts *from, std::uint64_t index, std::int32_t end)
{
    std::uint64_t found = 0;
    check([&](s3cmtf_error *e) { return s3cmtf_concepts_copy_rows(from, index, end, nullptr, nullptr, 0, &found, e); });
    std::vector<std::uint64_t> rows(static_cast<std::size_t>(found));
    std::vector<double> loadings(rows.size());
    check([&](s3cmtf_error *e) {
        return s3cmtf_concepts_copy_rows(from, index, end, rows.data(), loadings.data(), found, &found, e);
    });
    std::vector<ranked> made;
    for (std::size_t k = 0; k < rows.size(); k++) made.push_back({rows[k], loadings[k]});
    return made;
}

inline std::vector<association> concept_columns(const s3cmtf_concepts *from, std::uint64_t index, std::int32_t end)
{
    std::uint64_t found = 0;
    check([&](s3cmtf_error *e) {
        return s3cmtf_concepts_copy_columns(from, index, end, nullptr, nullptr, nullptr, 0, &found, e);
    });
    std::vector<std::uint64_t> matrices(static_cast<std::size_t>(found)), columns(matrices.size());
    std::vector<double> shares(matrices.size());
    check([&](s3cmtf_error *e) {
        return s3cmtf_concepts_copy_columns(from, index, end, matrices.data(), columns.data(), shares.data(), found, &found, e);
    });
    std::vector<association> made;
    for (std::size_t k = 0; k < shares.size(); k++) made.push_back({matrices[k], columns[k], shares[k]});
    return made;
}

} // namespace detail

namespace detail {

using concepts_handle = owned<s3cmtf_concepts, s3cmtf_concepts_free>;

inline concepts_handle described(const model &from, std::size_t mode,
                                 const std::vector<std::pair<std::uint64_t, std::uint64_t>> &given, std::size_t top,
                                 std::uint64_t least)
{
    std::vector<std::uint64_t> modes, rows;
    for (const auto &one : given) (modes.push_back(one.first), rows.push_back(one.second));
    s3cmtf_concepts *made = nullptr;
    check([&](s3cmtf_error *e) {
        return s3cmtf_concepts_new(from.get(), mode, given.size(), modes.data(), rows.data(), top, least, &made, e);
    });
    return concepts_handle(made);
}

} // namespace detail

/// The concepts of a mode, the strongest first, for rows of other modes (mode and row, counted from 0) or for nobody.
inline std::vector<concept_of> concepts(const model &from, std::size_t mode,
                                        const std::vector<std::pair<std::uint64_t, std::uint64_t>> &given = {},
                                        std::size_t top = 10, std::uint64_t least = 1)
{
    const detail::concepts_handle handle = detail::described(from, mode, given, top, least);
    const s3cmtf_concepts *made = handle.get();
    std::uint64_t count = 0;
    detail::check([&](s3cmtf_error *e) { return s3cmtf_concepts_get_count(made, &count, e); });
    std::vector<concept_of> all;
    for (std::uint64_t c = 0; c < count; c++) {
        concept_of one{};
        detail::check([&](s3cmtf_error *e) { return s3cmtf_concepts_get(made, c, &one.column, &one.strength, &one.effect, e); });
        one.largest = detail::concept_rows(made, c, S3CMTF_LARGEST);
        one.smallest = detail::concept_rows(made, c, S3CMTF_SMALLEST);
        one.with = detail::concept_columns(made, c, S3CMTF_LARGEST);
        one.against = detail::concept_columns(made, c, S3CMTF_SMALLEST);
        std::int32_t turned = 0;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_concepts_get_turned(made, c, &turned, e); });
        one.turned = turned != 0;
        all.push_back(std::move(one));
    }
    return all;
}

/// R of a mode for rows of others: the personal profile of the paper.
inline concept_profile profile(const model &from, std::size_t mode,
                               const std::vector<std::pair<std::uint64_t, std::uint64_t>> &given)
{
    const detail::concepts_handle handle = detail::described(from, mode, given, 0, 1);
    concept_profile made{};
    std::uint64_t found = 0;
    const auto copy = [&](double *to) {
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_concepts_copy_profile(handle.get(), to, found, &made.mode, &made.columns, &found, e);
        });
    };
    copy(nullptr);
    made.numbers.resize(static_cast<std::size_t>(found));
    copy(made.numbers.data());
    return made;
}

/// How to cluster. See s3cmtf_clusters_new(); 0 is what is usual.
struct cluster_options {
    std::size_t k = 0, max_k = 0, restarts = 0, references = 0, curve_rows = 0;
    std::uint64_t least = 1;
    std::int32_t space = S3CMTF_SPACE_PREDICTIONS;
    std::size_t members = 10, labels = 5;
    std::vector<const coo *> matrices;
    std::uint64_t seed = 0;
    std::size_t threads = 0;
    const cancel_token *cancel = nullptr;
};

/// A column of a matrix that a cluster has more of than all rows. See s3cmtf_clusters_copy_labels().
struct cluster_label {
    std::uint64_t matrix, column, count, overall;
    double lift, p_value;
    /// See s3cmtf_clusters_copy_label_logs().
    double log_odds, log10_p;
};

/// A cluster; scores of its members are distances to its centre, the nearest first.
struct cluster {
    std::uint64_t size;
    double radius;
    std::vector<ranked> members;
    std::vector<cluster_label> labels;
    /// The mean of its rows in the factor.
    std::vector<double> centre;
};

/// The rows of a mode in clusters, the largest first.
struct cluster_report {
    std::vector<cluster> clusters;
    double explained;
    /// The rows that were clustered, and the cluster of each.
    std::vector<std::uint64_t> rows, which;
    /// The gaps for 1, 2, 3 ... clusters and their standard errors, if there is a curve, and what they choose. See
    /// s3cmtf_clusters_copy_gaps() for where there are more clusters than that though no k was given.
    std::vector<double> gaps, errors;
    std::uint64_t chosen;
    /// Whether the rule chose, or the last was taken; how many rows the curve was measured on; and what gaps are made of. See
    /// s3cmtf_clusters_copy_curve().
    bool settled;
    std::uint64_t curve_rows;
    std::vector<double> log_within, references;
    /// For each matrix how much of it clusters tell.
    std::vector<double> information;
};

inline cluster_report clusters(const model &from, std::size_t mode, const cluster_options &how = {})
{
    std::vector<const s3cmtf_coo *> matrices;
    for (const coo *matrix : how.matrices) matrices.push_back(matrix->get());
    s3cmtf_clusters *made = nullptr;
    detail::check([&](s3cmtf_error *e) {
        return s3cmtf_clusters_new(from.get(), mode, how.k, how.max_k, how.restarts, how.references, how.curve_rows, how.least,
                                   how.space, how.members, how.labels, matrices.size(), matrices.data(), how.seed,
                                   how.threads, how.cancel ? how.cancel->get() : nullptr, &made, e);
    });
    const detail::owned<s3cmtf_clusters, s3cmtf_clusters_free> handle(made);
    cluster_report report{};
    std::uint64_t count = 0, found = 0;
    detail::check([&](s3cmtf_error *e) { return s3cmtf_clusters_get_count(made, &count, &report.explained, e); });
    for (std::uint64_t c = 0; c < count; c++) {
        cluster one{};
        detail::check([&](s3cmtf_error *e) { return s3cmtf_clusters_get(made, c, &one.size, &one.radius, e); });
        detail::check([&](s3cmtf_error *e) { return s3cmtf_clusters_copy_members(made, c, nullptr, nullptr, 0, &found, e); });
        std::vector<std::uint64_t> rows(static_cast<std::size_t>(found));
        std::vector<double> distances(rows.size());
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_clusters_copy_members(made, c, rows.data(), distances.data(), found, &found, e);
        });
        for (std::size_t k = 0; k < rows.size(); k++) one.members.push_back({rows[k], distances[k]});
        const auto labels = [&](std::uint64_t *a, std::uint64_t *b, std::uint64_t *counts, std::uint64_t *overall, double *lifts,
                                double *p_values, std::uint64_t capacity) {
            detail::check([&](s3cmtf_error *e) {
                return s3cmtf_clusters_copy_labels(made, c, a, b, counts, overall, lifts, p_values, capacity, &found, e);
            });
        };
        labels(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 0);
        const std::size_t n = static_cast<std::size_t>(found);
        std::vector<std::uint64_t> of(n), columns(n), counts(n), overall(n);
        std::vector<double> lifts(n), p_values(n);
        labels(of.data(), columns.data(), counts.data(), overall.data(), lifts.data(), p_values.data(), found);
        std::vector<double> odds(n), logs(n);
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_clusters_copy_label_logs(made, c, odds.data(), logs.data(), n, &found, e);
        });
        for (std::size_t k = 0; k < n; k++)
            one.labels.push_back({of[k], columns[k], counts[k], overall[k], lifts[k], p_values[k], odds[k], logs[k]});
        detail::check([&](s3cmtf_error *e) { return s3cmtf_clusters_copy_centre(made, c, nullptr, 0, &found, e); });
        one.centre.resize(static_cast<std::size_t>(found));
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_clusters_copy_centre(made, c, one.centre.data(), found, &found, e);
        });
        report.clusters.push_back(std::move(one));
    }
    detail::check([&](s3cmtf_error *e) { return s3cmtf_clusters_copy_rows(made, nullptr, nullptr, 0, &found, e); });
    report.rows.resize(static_cast<std::size_t>(found));
    report.which.resize(report.rows.size());
    detail::check([&](s3cmtf_error *e) {
        return s3cmtf_clusters_copy_rows(made, report.rows.data(), report.which.data(), found, &found, e);
    });
    detail::check([&](s3cmtf_error *e) {
        return s3cmtf_clusters_copy_gaps(made, nullptr, nullptr, 0, &report.chosen, &found, e);
    });
    report.gaps.resize(static_cast<std::size_t>(found));
    report.errors.resize(report.gaps.size());
    detail::check([&](s3cmtf_error *e) {
        return s3cmtf_clusters_copy_gaps(made, report.gaps.data(), report.errors.data(), found, nullptr, &found, e);
    });
    report.log_within.resize(report.gaps.size());
    report.references.resize(report.gaps.size());
    std::int32_t settled = 0;
    detail::check([&](s3cmtf_error *e) {
        return s3cmtf_clusters_copy_curve(made, report.log_within.data(), report.references.data(), report.gaps.size(), &settled,
                                          &report.curve_rows, &found, e);
    });
    report.settled = settled != 0;
    report.information.resize(matrices.size());
    detail::check([&](s3cmtf_error *e) {
        return s3cmtf_clusters_copy_information(made, report.information.data(), report.information.size(), &found, e);
    });
    return report;
}

} // namespace s3cmtf

#endif
