// A part of s3cmtf.hpp, which includes it: errors, views, tokens, sparse tensors and matrices, and planted
// data.
#ifndef S3CMTF_DATA_HPP
#define S3CMTF_DATA_HPP

#include <array>
#include <cstddef>
#include <cstdint>
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

/// How it was built.
inline std::string build_info() { return s3cmtf_build_info(); }

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

/// What values are like; see s3cmtf_coo_summarize().
struct summary {
    double smallest, largest, mean, deviation;
    std::vector<std::uint64_t> rows_used;
};

/// Reads a file and writes another. See s3cmtf_coo_convert().
inline void convert(const std::string &input, const std::string &output, const text_options *text = nullptr,
                    const cancel_token *cancel = nullptr)
{
    detail::check([&](s3cmtf_error *e) {
        return s3cmtf_coo_convert(input.c_str(), output.c_str(), text ? text->get() : nullptr,
                                  cancel ? cancel->get() : nullptr, e);
    });
}

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
    /// The same entries with a weight each. See s3cmtf_coo_new_weighted().
    template <class Weight> coo weighted(span<const Weight> weights) const
    {
        if (weights.size() != count()) throw error(S3CMTF_BAD_ARGUMENT, "there must be a weight for each entry");
        s3cmtf_coo *made = nullptr;
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_coo_new_weighted(get(), weights.data(), detail::number_type<Weight>(), &made, e);
        });
        return coo(made);
    }
    /// The same entries with the values of others, which are the same in the same order, as weights.
    coo weighted_by(const coo &weights) const
    {
        s3cmtf_coo *made = nullptr;
        detail::check(
            [&](s3cmtf_error *e) { return s3cmtf_coo_new_weighted_by(get(), weights.get(), &made, e); });
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
    span<const std::uint32_t> indices(std::size_t mode) const &
    {
        const std::uint32_t *data = nullptr;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_coo_view_indices(get(), mode, &data, e); });
        return {data, count()};
    }
    span<const std::uint32_t> indices(std::size_t mode) const && = delete;
    /// S3CMTF_F32 or S3CMTF_F64.
    std::int32_t value_type() const
    {
        std::int32_t type = 0;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_coo_get_value_type(get(), &type, e); });
        return type;
    }
    /// The values where they are; T must be what value_type() says.
    template <class T> span<const T> values() const &
    {
        if (value_type() != detail::number_type<T>()) throw error(S3CMTF_BAD_ARGUMENT, "values have the other type");
        const void *data = nullptr;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_coo_view_values(get(), &data, e); });
        return {static_cast<const T *>(data), count()};
    }
    template <class T> span<const T> values() const && = delete;
    /// S3CMTF_F32 or S3CMTF_F64, or 0 if entries have no weights.
    std::int32_t weight_type() const
    {
        std::int32_t type = 0;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_coo_get_weight_type(get(), &type, e); });
        return type;
    }
    /// The weights where they are; T must be what weight_type() says.
    template <class T> span<const T> weights() const &
    {
        if (weight_type() != detail::number_type<T>())
            throw error(S3CMTF_BAD_ARGUMENT, "there are no weights of this type");
        const void *data = nullptr;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_coo_view_weights(get(), &data, e); });
        return {static_cast<const T *>(data), count()};
    }
    template <class T> span<const T> weights() const && = delete;
    summary summarize(const cancel_token *cancel = nullptr) const
    {
        summary found{};
        found.rows_used.resize(dims().size());
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_coo_summarize(get(), cancel ? cancel->get() : nullptr, &found.smallest, &found.largest,
                                        &found.mean, &found.deviation, found.rows_used.data(), found.rows_used.size(),
                                        e);
        });
        return found;
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
    void write(const std::string &path, std::int32_t value_type = 0, const cancel_token *cancel = nullptr) const
    {
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_coo_write(get(), path.c_str(), value_type, cancel ? cancel->get() : nullptr, e);
        });
    }
    /// How many entries s3cmtf_coo_fix() left out, and how many it merged.
    struct fixed {
        std::uint64_t dropped, merged;
    };
    fixed fix(const std::string &path, std::int32_t keep = S3CMTF_KEEP_MEAN, const cancel_token *cancel = nullptr) const
    {
        fixed counts{};
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_coo_fix(get(), path.c_str(), keep, cancel ? cancel->get() : nullptr, &counts.dropped,
                                  &counts.merged, e);
        });
        return counts;
    }
    void split(const std::string &prefix, double test, double valid = 0, std::uint64_t seed = 0,
               std::uint64_t row = S3CMTF_NO_MODE, std::uint64_t by = S3CMTF_NO_MODE,
               const cancel_token *cancel = nullptr) const
    {
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_coo_split(get(), prefix.c_str(), test, valid, seed, row, by, cancel ? cancel->get() : nullptr,
                                    e);
        });
    }
    const s3cmtf_coo *get() const noexcept { return handle_.get(); }

private:
    detail::owned<s3cmtf_coo, s3cmtf_coo_free> handle_;
};

/// Predictions, their standard deviations, and quantiles, those of a cell side by side.
template <class T> struct spread {
    spread(std::size_t count, std::size_t each) : predictions(count), deviations(count), quantiles(count * each) {}
    std::vector<T> predictions, deviations, quantiles;
};

/// What a matrix of a model has for rows that come later. The entries must live as long as this.
struct new_entries {
    std::size_t matrix;
    const coo *entries;
    double weight = S3CMTF_FROM_OPTIONS;
};

} // namespace s3cmtf

#endif
