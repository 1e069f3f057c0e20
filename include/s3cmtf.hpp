// s3cmtf for C++17: the functions of s3cmtf.h as classes that free what they own, move and do not copy, and
// throw s3cmtf::error instead of returning a status. Header only; link the same library.
//
// Objects follow the rules of s3cmtf.h: const member functions may run concurrently on one object, others may
// not. A span or matrix_view does not own what it shows: it lives as long as the object that gave it.
#ifndef S3CMTF_HPP
#define S3CMTF_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "s3cmtf.h"

namespace s3cmtf {

/// A call that failed: its status, and what() in words.
class error : public std::runtime_error {
public:
    error(std::int32_t status, const std::string &message)
        : std::runtime_error(std::string(s3cmtf_status_name(status)) + ": " + message), status_(status) {}
    std::int32_t status() const noexcept { return status_; }

private:
    std::int32_t status_;
};

/// Items that lie somewhere else, one after the other.
template <class T> class span {
public:
    constexpr span() noexcept = default;
    constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <std::size_t N> constexpr span(T (&array)[N]) noexcept : data_(array), size_(N) {}
    template <class Container, class = decltype(static_cast<T *>(std::declval<Container &>().data()))>
    constexpr span(Container &items) noexcept : data_(items.data()), size_(items.size()) {}
    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }
    constexpr T &operator[](std::size_t i) const noexcept { return data_[i]; }

private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

/// Rows of numbers where they are, `stride` apart.
class matrix_view {
public:
    matrix_view(const float *data, std::size_t rows, std::size_t rank, std::size_t stride) noexcept
        : data_(data), rows_(rows), rank_(rank), stride_(stride) {}
    std::size_t rows() const noexcept { return rows_; }
    std::size_t rank() const noexcept { return rank_; }
    std::size_t stride() const noexcept { return stride_; }
    const float *data() const noexcept { return data_; }
    span<const float> operator[](std::size_t row) const noexcept { return {data_ + row * stride_, rank_}; }
    float operator()(std::size_t row, std::size_t column) const noexcept { return data_[row * stride_ + column]; }

private:
    const float *data_;
    std::size_t rows_, rank_, stride_;
};

namespace detail {

/// Runs a call with an error handle and throws if it failed.
template <class Call> void check(Call call)
{
    s3cmtf_error *handle = nullptr;
    if (s3cmtf_error_new(&handle) != S3CMTF_OK) throw std::bad_alloc();
    const std::unique_ptr<s3cmtf_error, void (*)(s3cmtf_error *)> owner(handle, s3cmtf_error_free);
    const std::int32_t status = call(handle);
    if (status != S3CMTF_OK) throw error(status, s3cmtf_error_message(handle));
}

/// A handle that is freed once.
template <class T, void (*Free)(T *)> struct deleter {
    void operator()(T *object) const noexcept { Free(object); }
};
template <class T, void (*Free)(T *)> using owned = std::unique_ptr<T, deleter<T, Free>>;

template <class T> constexpr std::int32_t index_type()
{
    static_assert(std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::uint64_t>,
                  "indices are std::uint32_t or std::uint64_t");
    return std::is_same_v<T, std::uint32_t> ? S3CMTF_U32 : S3CMTF_U64;
}

template <class T> constexpr std::int32_t number_type()
{
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "numbers are float or double");
    return std::is_same_v<T, float> ? S3CMTF_F32 : S3CMTF_F64;
}

} // namespace detail

/// The version of the library that is linked.
inline std::string version() { return s3cmtf_version(); }

/// The indices of some cells, where they are: an array per mode, or records of all modes.
template <class Index> class cells {
public:
    /// One array per mode, all of one length.
    static cells columns(const std::vector<span<const Index>> &modes, int base = 0)
    {
        cells c;
        c.base_ = base;
        c.count_ = modes.empty() ? 0 : modes[0].size();
        for (const auto &mode : modes) {
            if (mode.size() != c.count_) throw error(S3CMTF_BAD_ARGUMENT, "index arrays have different lengths");
            c.pointers_.push_back(mode.data());
        }
        return c;
    }
    /// The indices of a cell side by side, then those of the next.
    static cells records(span<const Index> items, std::size_t order, int base = 0)
    {
        if (order == 0 || items.size() % order != 0)
            throw error(S3CMTF_BAD_ARGUMENT, "records have not the same number of indices");
        cells c;
        c.base_ = base;
        c.stride_ = order;
        c.count_ = items.size() / order;
        for (std::size_t n = 0; n < order; n++) c.pointers_.push_back(items.data() + (c.count_ == 0 ? 0 : n));
        return c;
    }
    std::size_t order() const noexcept { return pointers_.size(); }
    std::size_t count() const noexcept { return count_; }
    const void *const *pointers() const noexcept { return pointers_.data(); }
    std::size_t stride() const noexcept { return stride_; }
    int base() const noexcept { return base_; }

private:
    cells() = default;
    std::vector<const void *> pointers_;
    std::size_t count_ = 0, stride_ = 1;
    int base_ = 0;
};

/// Ends work from any thread. See s3cmtf_cancel.
class cancel_token {
public:
    cancel_token()
    {
        s3cmtf_cancel *made = nullptr;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_cancel_new(&made, e); });
        handle_.reset(made);
    }
    void request() const noexcept { s3cmtf_cancel_request(get()); }
    void reset() const noexcept { s3cmtf_cancel_reset(get()); }
    bool requested() const noexcept { return s3cmtf_cancel_requested(get()) != 0; }
    const s3cmtf_cancel *get() const noexcept { return handle_.get(); }

private:
    detail::owned<s3cmtf_cancel, s3cmtf_cancel_free> handle_;
};

/// How text is read. See s3cmtf_text.
class text_options {
public:
    text_options()
    {
        s3cmtf_text *made = nullptr;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_text_new(&made, e); });
        handle_.reset(made);
    }
    text_options &set(const std::string &name, const std::string &value)
    {
        detail::check([&](s3cmtf_error *e) { return s3cmtf_text_set(handle_.get(), name.c_str(), value.c_str(), e); });
        return *this;
    }
    const s3cmtf_text *get() const noexcept { return handle_.get(); }

private:
    detail::owned<s3cmtf_text, s3cmtf_text_free> handle_;
};

/// A sparse tensor or matrix. See s3cmtf_coo.
class coo {
public:
    explicit coo(s3cmtf_coo *owned) noexcept : handle_(owned) {}

    static coo open(const std::string &path, std::int32_t mode = S3CMTF_OPEN_MAPPED,
                    const text_options *text = nullptr, const cancel_token *cancel = nullptr)
    {
        s3cmtf_coo *made = nullptr;
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_coo_open(path.c_str(), mode, text ? text->get() : nullptr, cancel ? cancel->get() : nullptr,
                                   &made, e);
        });
        return coo(made);
    }
    /// Copies entries. Without sizes, they are the largest indices.
    template <class Index, class Value>
    static coo copy(const cells<Index> &where, span<const Value> values, const std::vector<std::uint64_t> &dims = {})
    {
        if (values.size() != where.count() || (!dims.empty() && dims.size() != where.order()))
            throw error(S3CMTF_BAD_ARGUMENT, "indices, values and sizes do not have the same length");
        s3cmtf_coo *made = nullptr;
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_coo_new(where.order(), dims.empty() ? nullptr : dims.data(), where.count(), where.pointers(),
                                  detail::index_type<Index>(), where.stride(), where.base(), values.data(),
                                  detail::number_type<Value>(), &made, e);
        });
        return coo(made);
    }
    /// Uses arrays where they are; they must outlive everything made from this.
    template <class Value>
    static coo view(const std::vector<span<const std::uint32_t>> &modes, span<const Value> values,
                    const std::vector<std::uint64_t> &dims)
    {
        std::vector<const std::uint32_t *> pointers;
        for (const auto &mode : modes) {
            if (mode.size() != values.size()) throw error(S3CMTF_BAD_ARGUMENT, "arrays have different lengths");
            pointers.push_back(mode.data());
        }
        if (dims.size() != modes.size()) throw error(S3CMTF_BAD_ARGUMENT, "there must be a size for each mode");
        s3cmtf_coo *made = nullptr;
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_coo_new_view(modes.size(), dims.data(), values.size(), pointers.data(), values.data(),
                                       detail::number_type<Value>(), &made, e);
        });
        return coo(made);
    }
    std::vector<std::uint64_t> dims() const
    {
        std::uint64_t order = 0;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_coo_get_order(get(), &order, e); });
        std::vector<std::uint64_t> dims(order);
        detail::check([&](s3cmtf_error *e) { return s3cmtf_coo_get_dims(get(), dims.data(), order, e); });
        return dims;
    }
    std::size_t count() const
    {
        std::uint64_t count = 0;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_coo_get_count(get(), &count, e); });
        return static_cast<std::size_t>(count);
    }
    span<const std::uint32_t> indices(std::size_t mode) const
    {
        const std::uint32_t *data = nullptr;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_coo_view_indices(get(), mode, &data, e); });
        return {data, count()};
    }
    /// What is wrong with it: the counts at S3CMTF_CHECK_..., all 0 if nothing is.
    std::array<std::uint64_t, S3CMTF_CHECK_COUNTS> check(const cancel_token *cancel = nullptr) const
    {
        std::array<std::uint64_t, S3CMTF_CHECK_COUNTS> counts{};
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_coo_check(get(), cancel ? cancel->get() : nullptr, counts.data(), counts.size(), e);
        });
        return counts;
    }
    void write(const std::string &path, std::int32_t value_type = 0) const
    {
        detail::check([&](s3cmtf_error *e) { return s3cmtf_coo_write(get(), path.c_str(), value_type, nullptr, e); });
    }
    const s3cmtf_coo *get() const noexcept { return handle_.get(); }

private:
    detail::owned<s3cmtf_coo, s3cmtf_coo_free> handle_;
};

/// Options of a fit. See s3cmtf_options.
class options {
public:
    explicit options(const std::string &preset = "default")
    {
        s3cmtf_options *made = nullptr;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_options_new(preset.c_str(), &made, e); });
        handle_.reset(made);
    }
    explicit options(s3cmtf_options *owned) noexcept : handle_(owned) {}
    options &set(const std::string &name, const std::string &value)
    {
        detail::check([&](s3cmtf_error *e) { return s3cmtf_options_set(handle_.get(), name.c_str(), value.c_str(), e); });
        return *this;
    }
    options &set(const std::string &name, const char *value) { return set(name, std::string(value)); }
    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
    options &set(const std::string &name, T value)
    {
        detail::check([&](s3cmtf_error *e) {
            if constexpr (std::is_same_v<T, bool>)
                return s3cmtf_options_set_flag(handle_.get(), name.c_str(), value, e);
            else if constexpr (std::is_floating_point_v<T>)
                return s3cmtf_options_set_real(handle_.get(), name.c_str(), static_cast<double>(value), e);
            else
                return s3cmtf_options_set(handle_.get(), name.c_str(), std::to_string(value).c_str(), e);
        });
        return *this;
    }
    std::string get(const std::string &name) const
    {
        std::string text(256, '\0');
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_options_get(handle_.get(), name.c_str(), &text[0], text.size(), e);
        });
        return text.c_str();
    }
    const s3cmtf_options *get() const noexcept { return handle_.get(); }

private:
    detail::owned<s3cmtf_options, s3cmtf_options_free> handle_;
};

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
    /// The root of the mean squared error on entries.
    double rmse(const coo &entries, bool clip = true, std::size_t threads = 0) const
    {
        double found = 0;
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_model_evaluate(get(), entries.get(), clip, threads, nullptr, &found, nullptr, e);
        });
        return found;
    }
    matrix_view factor(std::size_t mode) const { return rows(s3cmtf_model_view_factor, mode); }
    matrix_view matrix(std::size_t number) const { return rows(s3cmtf_model_view_matrix, number); }

    /// The index of each row of a factor.
    std::vector<std::uint64_t> row_indices(std::size_t mode) const
    {
        std::uint64_t count = 0;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_model_get_rows(get(), mode, &count, e); });
        std::vector<std::uint64_t> indices(count);
        // A vector without items may have no memory, which is not the same as no pointer.
        if (count > 0) detail::check([&](s3cmtf_error *e) {
            return s3cmtf_model_copy_rows(get(), mode, indices.data(), count, S3CMTF_U64, e);
        });
        return indices;
    }
    /// The core (of CP: its diagonal), row-major or column-major.
    template <class T = double> std::vector<T> core(std::int32_t layout = S3CMTF_ROW_MAJOR) const
    {
        std::int32_t kind = 0;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_model_get_kind(get(), &kind, e); });
        const auto js = ranks();
        std::size_t size = static_cast<std::size_t>(js[0]);
        if (kind == S3CMTF_MODEL_TUCKER)
            for (std::size_t n = 1; n < js.size(); n++) size *= static_cast<std::size_t>(js[n]);
        std::vector<T> numbers(size);
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_model_copy_core(get(), numbers.data(), size, detail::number_type<T>(), layout, e);
        });
        return numbers;
    }
    options fitted_with() const
    {
        s3cmtf_options *made = nullptr;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_model_get_options(get(), &made, e); });
        return options(made);
    }
    const s3cmtf_model *get() const noexcept { return handle_.get(); }

private:
    template <class Get> std::vector<std::uint64_t> list(Get get_list) const
    {
        std::vector<std::uint64_t> numbers(order());
        detail::check([&](s3cmtf_error *e) { return get_list(get(), numbers.data(), numbers.size(), e); });
        return numbers;
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
    fit &start_from(const model &start) { return set(s3cmtf_fit_set_start, start.get()); }
    fit &checkpoint(const std::string &path) { return set(s3cmtf_fit_set_checkpoint, path.c_str()); }
    fit &resume(const std::string &path) { return set(s3cmtf_fit_set_resume, path.c_str()); }
    fit &cancelled_by(const cancel_token &token) { return set(s3cmtf_fit_set_cancel, token.get()); }

    /// Runs here.
    model run(callback each = nullptr)
    {
        state called{std::move(each), nullptr};
        if (called.each)
            detail::check([&](s3cmtf_error *e) { return s3cmtf_fit_set_callback(handle_.get(), call, &called, e); });
        s3cmtf_model *made = nullptr;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_fit_run(handle_.get(), &made, e); });
        model result(made);
        if (called.thrown) std::rethrow_exception(called.thrown);
        return result;
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

private:
    struct state {
        callback each;
        std::exception_ptr thrown;
    };
    static std::int32_t call(const s3cmtf_progress *progress, void *user) noexcept
    {
        auto *called = static_cast<state *>(user);
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
