// s3cmtf for C++17: what to recommend, what is alike, how good rankings are, and names of rows. The rules are those of
// s3cmtf.hpp, which this adds to.
#ifndef S3CMTF_DISCOVER_HPP
#define S3CMTF_DISCOVER_HPP

#include "s3cmtf.hpp"

#include <limits>

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
    const std::size_t order = from.order();
    std::vector<std::vector<std::uint64_t>> columns(order);
    for (const auto &query : queries) {
        if (query.size() != order) throw error(S3CMTF_BAD_ARGUMENT, "query and model have different orders");
        for (std::size_t n = 0; n < order; n++) columns[n].push_back(query[n]);
    }
    std::vector<const void *> pointers(order);
    for (std::size_t n = 0; n < order; n++) pointers[n] = columns[n].data();
    pointers.at(mode) = nullptr;
    for (std::size_t n : averaged) pointers.at(n) = nullptr;
    const std::uint64_t none = 0;
    const std::uint64_t *only = how.only.empty() ? &none : how.only.data();
    return detail::lists(queries.size(), how.top, [&](auto *rows, auto *scores, auto capacity, auto *found, auto *e) {
        return s3cmtf_model_recommend(from.get(), mode, queries.size(), pointers.data(), S3CMTF_U64, 1, 0, how.top,
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

} // namespace s3cmtf

#endif
