// s3cmtf for C++17: the functions of s3cmtf.h as classes that free what they own, move and do not copy, and
// throw s3cmtf::error instead of returning a status. Header only; link the same library.
//
// Objects follow the rules of s3cmtf.h: const member functions may run concurrently on one object, others may
// not. A span or matrix_view does not own what it shows: it lives as long as the object that gave it, and is not
// given by temporaries. Every class has get(), the handle for what only s3cmtf.h has.
#ifndef S3CMTF_HPP
#define S3CMTF_HPP

#include <exception>
#include <functional>

#include "s3cmtf_options.hpp"

namespace s3cmtf {

/// A tensor with what is coupled to it. See s3cmtf_problem.
class problem {
public:
    explicit problem(const coo &tensor)
    {
        s3cmtf_problem *made = nullptr;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_problem_new(tensor.get(), &made, e); });
        handle_.reset(made);
    }
    problem &matrix(std::size_t mode, const coo &matrix, double weight = S3CMTF_FROM_OPTIONS,
                    double penalty = S3CMTF_FROM_OPTIONS, std::int32_t kind = S3CMTF_MATRIX_OBSERVED)
    {
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_problem_add_matrix(handle_.get(), mode, matrix.get(), kind, weight, penalty, e);
        });
        return *this;
    }
    /// All cells count; those that are not listed are 0.
    problem &full_matrix(std::size_t mode, const coo &ones, double weight = S3CMTF_FROM_OPTIONS,
                         double penalty = S3CMTF_FROM_OPTIONS)
    {
        return matrix(mode, ones, weight, penalty, S3CMTF_MATRIX_FULL);
    }
    /// So many zeros are drawn for every entry.
    problem &sampled_matrix(std::size_t mode, const coo &ones, std::uint32_t zeros, double weight = S3CMTF_FROM_OPTIONS,
                            double penalty = S3CMTF_FROM_OPTIONS)
    {
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_problem_add_sampled_matrix(handle_.get(), mode, ones.get(), zeros, weight, penalty, e);
        });
        return *this;
    }
    problem &graph(std::size_t mode, const coo &similarities, double weight = S3CMTF_FROM_OPTIONS)
    {
        return matrix(mode, similarities, weight, S3CMTF_FROM_OPTIONS, S3CMTF_MATRIX_GRAPH);
    }
    const s3cmtf_problem *get() const noexcept { return handle_.get(); }

private:
    detail::owned<s3cmtf_problem, s3cmtf_problem_free> handle_;
};

/// A fitted model. See s3cmtf_model.
class model {
public:
    explicit model(s3cmtf_model *owned) noexcept : handle_(owned) {}

    static model load(const std::string &path, std::int32_t mode = S3CMTF_OPEN_MAPPED)
    {
        s3cmtf_model *made = nullptr;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_model_load(path.c_str(), mode, &made, e); });
        return model(made);
    }
    void save(const std::string &path) const
    {
        detail::check([&](s3cmtf_error *e) { return s3cmtf_model_save(get(), path.c_str(), e); });
    }
    void export_to(const std::string &folder, const cancel_token *cancel = nullptr) const
    {
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_model_export(get(), folder.c_str(), cancel ? cancel->get() : nullptr, e);
        });
    }
    /// S3CMTF_MODEL_TUCKER or S3CMTF_MODEL_CP.
    std::int32_t kind() const
    {
        std::int32_t kind = 0;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_model_get_kind(get(), &kind, e); });
        return kind;
    }
    /// The smallest and the largest training value.
    std::pair<double, double> range() const
    {
        double low = 0, high = 0;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_model_get_range(get(), &low, &high, e); });
        return {low, high};
    }
    /// The number of epochs it was fitted for, and the figures of one, counted from 0.
    std::size_t epochs() const
    {
        std::uint64_t epochs = 0;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_model_get_epochs(get(), &epochs, e); });
        return static_cast<std::size_t>(epochs);
    }
    s3cmtf_progress epoch(std::size_t number) const
    {
        s3cmtf_progress figures{};
        figures.size = sizeof figures;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_model_get_epoch(get(), number, &figures, e); });
        return figures;
    }
    std::size_t order() const
    {
        std::uint64_t order = 0;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_model_get_order(get(), &order, e); });
        return static_cast<std::size_t>(order);
    }
    std::vector<std::uint64_t> dims() const { return list(s3cmtf_model_get_dims); }
    std::vector<std::uint64_t> ranks() const { return list(s3cmtf_model_get_ranks); }

    /// Predictions of cells, as T.
    template <class T = double, class Index>
    std::vector<T> predict(const cells<Index> &where, bool clip = true, std::size_t threads = 0,
                           const cancel_token *cancel = nullptr) const
    {
        if (where.order() != order()) throw error(S3CMTF_BAD_ARGUMENT, "cells and model have different orders");
        std::vector<T> made(where.count());
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_model_predict(get(), where.count(), where.pointers(), detail::index_type<Index>(),
                                        where.stride(), where.base(), clip, threads, cancel ? cancel->get() : nullptr,
                                        made.data(), made.size(), detail::number_type<T>(), e);
        });
        return made;
    }
    /// Predictions of the cells of entries, whose values do not matter.
    template <class T = double>
    std::vector<T> predict(const coo &entries, bool clip = true, std::size_t threads = 0,
                           const cancel_token *cancel = nullptr) const
    {
        std::vector<T> made(entries.count());
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_model_predict_coo(get(), entries.get(), clip, threads, cancel ? cancel->get() : nullptr,
                                            made.data(), made.size(), detail::number_type<T>(), e);
        });
        return made;
    }
    /// How many samples predictions are means over; 0 unless the model was fitted with "gibbs".
    std::size_t samples() const
    {
        std::uint64_t samples = 0;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_model_get_samples(get(), &samples, e); });
        return static_cast<std::size_t>(samples);
    }
    /// Predictions with how sure a model of samples is of them.
    template <class T = double, class Index>
    spread<T> predict_spread(const cells<Index> &where, span<const double> quantiles = {}, bool clip = true,
                             std::size_t threads = 0, const cancel_token *cancel = nullptr) const
    {
        if (where.order() != order()) throw error(S3CMTF_BAD_ARGUMENT, "cells and model have different orders");
        spread<T> made(where.count(), quantiles.size());
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_model_predict_spread(
                get(), where.count(), where.pointers(), detail::index_type<Index>(), where.stride(), where.base(),
                quantiles.size(), quantiles.data(), clip, threads, cancel ? cancel->get() : nullptr,
                made.predictions.data(), made.deviations.data(), made.quantiles.data(), where.count(),
                detail::number_type<T>(), e);
        });
        return made;
    }
    template <class T = double>
    spread<T> predict_spread(const coo &entries, span<const double> quantiles = {}, bool clip = true,
                             std::size_t threads = 0, const cancel_token *cancel = nullptr) const
    {
        spread<T> made(entries.count(), quantiles.size());
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_model_predict_spread_coo(
                get(), entries.get(), quantiles.size(), quantiles.data(), clip, threads,
                cancel ? cancel->get() : nullptr, made.predictions.data(), made.deviations.data(),
                made.quantiles.data(), entries.count(), detail::number_type<T>(), e);
        });
        return made;
    }

    /// A model that has rows of a mode which came after training, from their entries in the tensor and in matrices.
    model fold_in(std::size_t mode, const coo &tensor, const std::vector<new_entries> &matrices = {},
                  bool replace = false, std::size_t threads = 0, const cancel_token *cancel = nullptr) const
    {
        return fold(mode, tensor.get(), matrices, replace, threads, cancel);
    }
    /// The same of rows that only matrices know.
    model fold_in(std::size_t mode, const std::vector<new_entries> &matrices, bool replace = false,
                  std::size_t threads = 0, const cancel_token *cancel = nullptr) const
    {
        return fold(mode, nullptr, matrices, replace, threads, cancel);
    }

    /// The root of the mean squared error on entries, and the mean absolute error.
    struct errors {
        double rmse, mae;
    };
    errors evaluate(const coo &entries, bool clip = true, std::size_t threads = 0,
                    const cancel_token *cancel = nullptr) const
    {
        errors found{};
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_model_evaluate(get(), entries.get(), clip, threads, cancel ? cancel->get() : nullptr,
                                         &found.rmse, &found.mae, e);
        });
        return found;
    }
    double rmse(const coo &entries, bool clip = true, std::size_t threads = 0) const
    {
        return evaluate(entries, clip, threads).rmse;
    }
    double mae(const coo &entries, bool clip = true, std::size_t threads = 0) const
    {
        return evaluate(entries, clip, threads).mae;
    }

    /// Factors of modes and of coupled matrices, where they are.
    matrix_view factor(std::size_t mode) const & { return rows(s3cmtf_model_view_factor, mode); }
    matrix_view factor(std::size_t mode) const && = delete;
    matrix_view matrix(std::size_t number) const & { return rows(s3cmtf_model_view_matrix, number); }
    matrix_view matrix(std::size_t number) const && = delete;
    /// The core where it is, a row for each choice of all indices but the last; of CP one row, the diagonal.
    matrix_view core_view() const &
    {
        const float *data = nullptr;
        std::uint64_t stride = 0;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_model_view_core(get(), &data, &stride, e); });
        const auto js = ranks();
        const std::size_t last = static_cast<std::size_t>(js.back());
        return {data, core_size(js) / last, last, static_cast<std::size_t>(stride)};
    }
    matrix_view core_view() const && = delete;

    /// Copies of the same, row-major or column-major.
    template <class T = double>
    std::vector<T> copy_factor(std::size_t mode, std::int32_t layout = S3CMTF_ROW_MAJOR) const
    {
        return copy<T>(s3cmtf_model_copy_factor, factor(mode), mode, layout);
    }
    template <class T = double>
    std::vector<T> copy_matrix(std::size_t number, std::int32_t layout = S3CMTF_ROW_MAJOR) const
    {
        return copy<T>(s3cmtf_model_copy_matrix, matrix(number), number, layout);
    }
    /// What is added to every prediction.
    double mean() const
    {
        double found = 0;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_model_get_mean(get(), &found, e); });
        return found;
    }
    /// The biases of the rows of a mode, and the offsets of the columns of a coupled matrix, where they are; empty
    /// if the model has none.
    span<const float> bias_view(std::size_t mode) const & { return numbers(s3cmtf_model_view_biases, mode); }
    span<const float> bias_view(std::size_t mode) const && = delete;
    span<const float> offset_view(std::size_t number) const & { return numbers(s3cmtf_model_view_offsets, number); }
    span<const float> offset_view(std::size_t number) const && = delete;
    /// Copies of the same; zeros if the model has none.
    template <class T = double> std::vector<T> biases(std::size_t mode) const
    {
        return copy_list<T>(s3cmtf_model_copy_biases, factor(mode).rows(), mode);
    }
    template <class T = double> std::vector<T> offsets(std::size_t number) const
    {
        return copy_list<T>(s3cmtf_model_copy_offsets, matrix(number).rows(), number);
    }
    /// The row that stands for an index, whether it occurred or not.
    template <class T = double> std::vector<T> copy_row(std::size_t mode, std::uint64_t index) const
    {
        std::vector<T> row(factor(mode).rank());
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_model_copy_row(get(), mode, index, row.data(), row.size(), detail::number_type<T>(), e);
        });
        return row;
    }

    /// The index of each row of a factor.
    std::vector<std::uint64_t> row_indices(std::size_t mode) const
    {
        std::vector<std::uint64_t> indices(factor(mode).rows());
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_model_copy_row_indices(get(), mode, indices.data(), indices.size(), S3CMTF_U64, e);
        });
        return indices;
    }
    /// The index of each row of a coupled matrix's factor.
    std::vector<std::uint64_t> matrix_indices(std::size_t number) const
    {
        std::vector<std::uint64_t> indices(matrix(number).rows());
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_model_copy_matrix_indices(get(), number, indices.data(), indices.size(), S3CMTF_U64, e);
        });
        return indices;
    }
    /// What the coupled matrices are. See s3cmtf_model_get_matrix().
    struct matrix_info {
        std::uint64_t mode;
        std::int32_t kind;
        double weight;
        std::uint64_t columns, rows;
    };
    std::vector<matrix_info> matrices() const
    {
        std::uint64_t count = 0;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_model_get_matrices(get(), &count, e); });
        std::vector<matrix_info> all(static_cast<std::size_t>(count));
        for (std::size_t i = 0; i < all.size(); i++)
            detail::check([&](s3cmtf_error *e) {
                return s3cmtf_model_get_matrix(get(), i, &all[i].mode, &all[i].kind, &all[i].weight, &all[i].columns,
                                               &all[i].rows, e);
            });
        return all;
    }
    /// A copy of the core (of CP: its diagonal), row-major or column-major.
    template <class T = double> std::vector<T> core(std::int32_t layout = S3CMTF_ROW_MAJOR) const
    {
        std::vector<T> numbers(core_size(ranks()));
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_model_copy_core(get(), numbers.data(), numbers.size(), detail::number_type<T>(), layout, e);
        });
        return numbers;
    }
    options fitted_with() const
    {
        s3cmtf_options *made = nullptr;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_model_get_options(get(), &made, e); });
        return options(made);
    }
    /// What happened in the fit and how it ended. See s3cmtf_model_get_record().
    std::string record() const
    {
        std::uint64_t needed = 0;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_model_get_record(get(), nullptr, 0, &needed, e); });
        std::string text(static_cast<std::size_t>(needed), '\0');
        detail::check([&](s3cmtf_error *e) { return s3cmtf_model_get_record(get(), &text[0], needed, nullptr, e); });
        text.pop_back(); // the NUL
        return text;
    }
    const s3cmtf_model *get() const noexcept { return handle_.get(); }

private:
    model fold(std::size_t mode, const s3cmtf_coo *tensor, const std::vector<new_entries> &matrices, bool replace,
               std::size_t threads, const cancel_token *cancel) const
    {
        std::vector<const s3cmtf_coo *> entries;
        std::vector<std::uint64_t> numbers;
        std::vector<double> weights;
        for (const auto &m : matrices) {
            entries.push_back(m.entries->get());
            numbers.push_back(m.matrix);
            weights.push_back(m.weight);
        }
        s3cmtf_model *made = nullptr;
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_model_fold_in(get(), mode, tensor, matrices.size(), entries.data(), numbers.data(),
                                        weights.data(), replace, threads, cancel ? cancel->get() : nullptr, &made,
                                        nullptr, nullptr, e);
        });
        return model(made);
    }
    template <class Get> std::vector<std::uint64_t> list(Get get_list) const
    {
        std::vector<std::uint64_t> numbers(order());
        detail::check([&](s3cmtf_error *e) { return get_list(get(), numbers.data(), numbers.size(), e); });
        return numbers;
    }
    std::size_t core_size(const std::vector<std::uint64_t> &js) const
    {
        std::size_t size = static_cast<std::size_t>(js[0]);
        if (kind() == S3CMTF_MODEL_TUCKER)
            for (std::size_t n = 1; n < js.size(); n++) size *= static_cast<std::size_t>(js[n]);
        return size;
    }
    template <class T, class Copy>
    std::vector<T> copy(Copy copy_numbers, const matrix_view &from, std::size_t which, std::int32_t layout) const
    {
        std::vector<T> numbers(from.rows() * from.rank());
        detail::check([&](s3cmtf_error *e) {
            return copy_numbers(get(), which, numbers.data(), numbers.size(), detail::number_type<T>(), layout, e);
        });
        return numbers;
    }
    template <class T, class Copy>
    std::vector<T> copy_list(Copy copy_numbers, std::size_t count, std::size_t which) const
    {
        std::vector<T> made(count);
        detail::check([&](s3cmtf_error *e) {
            return copy_numbers(get(), which, made.data(), made.size(), detail::number_type<T>(), e);
        });
        return made;
    }
    template <class View> span<const float> numbers(View view, std::size_t which) const
    {
        const float *data = nullptr;
        std::uint64_t count = 0;
        detail::check([&](s3cmtf_error *e) { return view(get(), which, &data, &count, e); });
        return {data, static_cast<std::size_t>(count)};
    }
    template <class View> matrix_view rows(View view, std::size_t which) const
    {
        const float *data = nullptr;
        std::uint64_t rows = 0, rank = 0, stride = 0;
        detail::check([&](s3cmtf_error *e) { return view(get(), which, &data, &rows, &rank, &stride, e); });
        return {data, static_cast<std::size_t>(rows), static_cast<std::size_t>(rank), static_cast<std::size_t>(stride)};
    }
    detail::owned<s3cmtf_model, s3cmtf_model_free> handle_;
};

/// One fit. See s3cmtf_fit.
class fit {
public:
    /// Returns whether to go on. What it throws ends the fit and comes out of run().
    using callback = std::function<bool(const s3cmtf_progress &)>;

    explicit fit(const problem &what) : fit(what, options()) {}
    fit(const problem &what, const options &how)
    {
        s3cmtf_fit *made = nullptr;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_fit_new(what.get(), how.get(), &made, e); });
        handle_.reset(made);
    }
    fit &test(const coo &entries) { return set(s3cmtf_fit_set_test, entries.get()); }
    fit &valid(const coo &entries) { return set(s3cmtf_fit_set_valid, entries.get()); }
    fit &init(const model &start) { return set(s3cmtf_fit_set_init, start.get()); }
    fit &checkpoint(const std::string &path) { return set(s3cmtf_fit_set_checkpoint, path.c_str()); }
    fit &resume(const std::string &path) { return set(s3cmtf_fit_set_resume, path.c_str()); }
    fit &cancelled_by(const cancel_token &token) { return set(s3cmtf_fit_set_cancel, token.get()); }

    /// Runs here. What the callback throws comes out, whatever became of the fit.
    model run(callback each = nullptr)
    {
        state called{std::move(each), nullptr};
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_fit_set_callback(handle_.get(), called.each ? call : nullptr, &called, e);
        });
        try {
            s3cmtf_model *made = nullptr;
            detail::check([&](s3cmtf_error *e) { return s3cmtf_fit_run(handle_.get(), &made, e); });
            model result(made);
            if (called.thrown) std::rethrow_exception(called.thrown);
            return result;
        } catch (const error &) {
            // A fit that did not begin keeps its callback, which is about to go.
            static_cast<void>(s3cmtf_fit_set_callback(handle_.get(), nullptr, nullptr, nullptr) == S3CMTF_OK);
            if (called.thrown) std::rethrow_exception(called.thrown);
            throw;
        }
    }
    /// Runs in the background.
    void start()
    {
        detail::check([&](s3cmtf_error *e) { return s3cmtf_fit_start(handle_.get(), e); });
    }
    s3cmtf_progress progress() const
    {
        s3cmtf_progress now{};
        now.size = sizeof now;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_fit_get_progress(handle_.get(), &now, e); });
        return now;
    }
    /// Waits up to some seconds, or for ever; whether it still runs.
    bool wait(double seconds = -1) const
    {
        std::int32_t running = 0;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_fit_wait(handle_.get(), seconds, &running, e); });
        return running != 0;
    }
    void cancel() const noexcept { s3cmtf_fit_cancel(handle_.get()); }
    model take()
    {
        s3cmtf_model *made = nullptr;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_fit_take(handle_.get(), &made, e); });
        return model(made);
    }
    s3cmtf_fit *get() const noexcept { return handle_.get(); }

private:
    struct state {
        callback each;
        std::exception_ptr thrown;
    };
    static std::int32_t call(const s3cmtf_progress *progress, void *user) noexcept
    {
        auto *called = static_cast<state *>(user);
        if (called->thrown) return 1;
        try {
            return called->each(*progress) ? 0 : 1;
        } catch (...) {
            called->thrown = std::current_exception();
            return 1;
        }
    }
    template <class Set, class Value> fit &set(Set set_value, Value value)
    {
        detail::check([&](s3cmtf_error *e) { return set_value(handle_.get(), value, e); });
        return *this;
    }
    detail::owned<s3cmtf_fit, s3cmtf_fit_free> handle_;
};

} // namespace s3cmtf

#endif
