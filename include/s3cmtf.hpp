// s3cmtf for C++17: classes for the functions of s3cmtf.h. They own their handles, can be moved, and throw exceptions.
//
// EXAMPLE
//
//     #include <cstdio>
//     #include <s3cmtf.hpp>
//
//     int main()
//     try {
//         // Six ratings: user, film, month and stars.
//         const std::uint32_t user[] = {0, 0, 1, 1, 2, 2}, film[] = {0, 1, 0, 2, 1, 2}, month[] = {0, 1, 1, 0, 0, 1};
//         const std::vector<float> stars = {5, 3, 4, 1, 3, 2};
//         const s3cmtf::coo ratings(s3cmtf::entries(s3cmtf::cells::columns(user, film, month), stars));
//
//         s3cmtf::options options("paper");
//         options.parse("rank=2 epochs=10").set("eta", 0.05);
//         s3cmtf::fit fit(s3cmtf::problem(ratings), options);
//         const s3cmtf::model model = fit.run([](const s3cmtf::progress &p) {
//             if (p.event == S3CMTF_EVENT_EPOCH)
//                 std::printf("epoch %d: training RMSE %.4f\n", static_cast<int>(p.epoch), p.train_rmse);
//         });
//
//         // The stars that user 0 would give film 2 in month 1.
//         std::printf("prediction %.2f\n", model.predict_cell({0, 2, 1}));
//         return 0;
//     } catch (const s3cmtf::error &e) {
//         std::fprintf(stderr, "%s\n", e.what());
//         return 1;
//     }
//
// RULES
//
// - Link the same library as for C. The layer is header only, for C++17 and later.
// - Classes own a handle of s3cmtf.h and can be moved but not copied. A moved-from object has no handle: its functions throw
//   s3cmtf::error with S3CMTF_NULL_ARGUMENT, except get(), release(), operator bool and those marked noexcept.
// - Functions throw s3cmtf::error where the C function returns a status other than S3CMTF_OK.
// - const member functions may run concurrently on one object; others must not.
// - cells, entries, span and matrix_view refer to memory that they do not own and that must outlive them.
// - Structs of results with the fields of a C struct are that C struct; their constants are those of s3cmtf.h.
// - Modes, rows and indices count from 0.
#ifndef S3CMTF_HPP
#define S3CMTF_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "s3cmtf.h"

namespace s3cmtf {

/// A failed call. what() is the name of the status and the message.
class error : public std::runtime_error {
public:
    error(std::int32_t status, const std::string &message)
        : std::runtime_error(std::string(s3cmtf_status_name(status)) + ": " + message), status_(status) {}
    /// Returns the status, S3CMTF_...
    std::int32_t status() const noexcept { return status_; }

private:
    std::int32_t status_;
};

/// A call that a cancel_token or a callback ended before it had a result (S3CMTF_CANCELLED).
class cancelled : public error {
public:
    explicit cancelled(const std::string &message) : error(S3CMTF_CANCELLED, message) {}
};

/// Contiguous items in memory of the caller. Converts from a pointer with a size, arrays, std::vector, std::array,
/// std::span and, for const items, from an initializer list.
template <class T> class span {
public:
    using value_type = std::remove_cv_t<T>;

    constexpr span() noexcept = default;
    constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <class U = T, class = std::enable_if_t<std::is_const_v<U>>>
    constexpr span(std::initializer_list<std::remove_cv_t<U>> items) noexcept : span(items.begin(), items.size()) {}
    /// Any container with std::data() and std::size(). A temporary one only for const items.
    template <class Container, class Item = std::remove_pointer_t<decltype(std::data(std::declval<Container &>()))>,
              class = std::enable_if_t<std::is_convertible_v<Item (*)[], T (*)[]> &&
                                       !std::is_same_v<std::remove_cv_t<std::remove_reference_t<Container>>, span> &&
                                       (std::is_lvalue_reference_v<Container> || std::is_const_v<T>)>>
    constexpr span(Container &&items) noexcept : data_(std::data(items)), size_(std::size(items)) {}

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

template <class Container>
span(Container &&) -> span<std::remove_pointer_t<decltype(std::data(std::declval<Container &>()))>>;

/// Rows of numbers in memory of a model. Row r begins at data() + r * stride().
class matrix_view {
public:
    explicit matrix_view(const s3cmtf_view &view) noexcept : view_(view) {}
    std::size_t rows() const noexcept { return static_cast<std::size_t>(view_.rows); }
    std::size_t columns() const noexcept { return static_cast<std::size_t>(view_.columns); }
    std::size_t stride() const noexcept { return static_cast<std::size_t>(view_.stride); }
    const float *data() const noexcept { return view_.numbers; }
    span<const float> operator[](std::size_t row) const noexcept { return {data() + row * stride(), columns()}; }
    float operator()(std::size_t row, std::size_t column) const noexcept { return data()[row * stride() + column]; }

private:
    s3cmtf_view view_;
};

// Structs of s3cmtf.h.
using progress = s3cmtf_progress;
using trial = s3cmtf_trial;
using coo_info = s3cmtf_coo_info;
using coo_faults = s3cmtf_coo_faults;
using model_info = s3cmtf_model_info;
using mode_info = s3cmtf_model_mode;
using matrix_info = s3cmtf_model_matrix;
using evaluation = s3cmtf_evaluation;
using distribution_scores = s3cmtf_distribution_scores;
using binary_scores = s3cmtf_binary_scores;
using ranking = s3cmtf_ranking;
using concept_info = s3cmtf_concept;
using concept_column = s3cmtf_concept_column;
using clusters_info = s3cmtf_clusters_info;
using cluster_info = s3cmtf_cluster;
using cluster_label = s3cmtf_cluster_label;
using cluster_gap = s3cmtf_gap;

/// How files are opened.
enum class open_mode : std::int32_t {
    mapped = S3CMTF_OPEN_MAPPED,         ///< Pages are read when they are used; the file must not change.
    copied = S3CMTF_OPEN_PRIVATE,        ///< The file is read into memory.
    /// Of coo::open(): as above, without verification of the checksums.
    mapped_unverified = S3CMTF_OPEN_MAPPED | S3CMTF_OPEN_UNVERIFIED,
    copied_unverified = S3CMTF_OPEN_PRIVATE | S3CMTF_OPEN_UNVERIFIED
};

/// Which value coo::fix() keeps for a cell with several entries.
enum class keep : std::int32_t { mean = S3CMTF_KEEP_MEAN, first = S3CMTF_KEEP_FIRST, last = S3CMTF_KEEP_LAST };

/// How values are stored in files.
enum class value_format : std::int32_t { unchanged = 0, float32 = S3CMTF_F32, float64 = S3CMTF_F64 };

/// How a coupled matrix is factorized.
enum class matrix_kind : std::int32_t {
    observed = S3CMTF_MATRIX_OBSERVED,   ///< Over its entries.
    graph = S3CMTF_MATRIX_GRAPH,         ///< Entries are similarities between rows of the mode.
    full = S3CMTF_MATRIX_FULL,           ///< Over all cells; those without an entry are 0.
    sampled = S3CMTF_MATRIX_SAMPLED,     ///< Over its entries and sampled zeros.
    automatic = S3CMTF_MATRIX_AUTO       ///< Observed, or full if all entries are equal and that predicts better.
};

/// The order of the numbers of a matrix or core.
enum class layout : std::int32_t { row_major = S3CMTF_ROW_MAJOR, column_major = S3CMTF_COLUMN_MAJOR };

/// Whether predictions are limited to the range of the training values.
enum class clip : std::int32_t { standard = S3CMTF_CLIP_DEFAULT, off = S3CMTF_CLIP_OFF, on = S3CMTF_CLIP_ON };

/// An end of the sorted rows or columns of a concept.
enum class extreme : std::int32_t { largest = S3CMTF_LARGEST, smallest = S3CMTF_SMALLEST };

/// The space in which clusters measures distances.
enum class space : std::int32_t { predictions = S3CMTF_SPACE_PREDICTIONS, columns = S3CMTF_SPACE_COLUMNS };

namespace detail {

template <class T, void (*Free)(T *)> struct deleter {
    void operator()(T *object) const noexcept { Free(object); }
};

/// Owns an object of the library. Move only.
template <class T, void (*Free)(T *)> class handle {
public:
    /// Takes ownership of an object of s3cmtf.h.
    explicit handle(T *owned) noexcept : object_(owned) {}
    /// Returns the object for functions of s3cmtf.h; nullptr after a move.
    const T *get() const noexcept { return object_.get(); }
    T *get() noexcept { return object_.get(); }
    /// Returns the object and gives up ownership.
    T *release() noexcept { return object_.release(); }
    explicit operator bool() const noexcept { return object_ != nullptr; }

private:
    std::unique_ptr<T, deleter<T, Free>> object_;
};

using error_handle = handle<s3cmtf_error, s3cmtf_error_free>;

[[noreturn]] inline void fail(std::int32_t status, const char *message)
{
    if (status == S3CMTF_CANCELLED) throw cancelled(message);
    throw error(status, message);
}

/// Calls a function whose last parameter is the error handle. Throws if it fails.
template <class Function, class... Arguments> void call(Function function, Arguments... arguments)
{
    s3cmtf_error *made = nullptr;
    if (s3cmtf_error_new(&made) != S3CMTF_OK) throw std::bad_alloc();
    error_handle owner(made);
    const std::int32_t status = function(arguments..., made);
    if (status != S3CMTF_OK) fail(status, s3cmtf_error_message(made));
}

/// Calls a function that writes a new object before the error handle. Returns the object.
template <class T, class Function, class... Arguments> T *create(Function function, Arguments... arguments)
{
    T *made = nullptr;
    call(function, arguments..., &made);
    return made;
}

/// Calls a function that writes a number or pointer before the error handle. Returns it.
template <class T, class Function, class... Arguments> T read(Function function, Arguments... arguments)
{
    T found{};
    call(function, arguments..., &found);
    return found;
}

/// Calls a function that writes a count before the error handle. Returns it.
template <class Function, class Object> std::size_t count(Function function, const Object *object)
{
    return static_cast<std::size_t>(read<std::uint64_t>(function, object));
}

/// Calls a function that fills a struct with a size field before the error handle. Returns it.
template <class T, class Function, class... Arguments> T fill(Function function, Arguments... arguments)
{
    T found{};
    found.size = sizeof found;
    call(function, arguments..., &found);
    return found;
}

/// Calls a function that copies a text into a buffer. Returns the text.
template <class Function, class... Arguments> std::string text(Function function, Arguments... arguments)
{
    std::uint64_t needed = 0;
    call(function, arguments..., nullptr, std::uint64_t{0}, &needed);
    std::string found(static_cast<std::size_t>(needed), '\0');
    call(function, arguments..., &found[0], needed, nullptr);
    found.pop_back(); // the terminating NUL
    return found;
}

/// Returns the handle of an object that must have one, where the C function would take NULL for "none".
template <class Object> auto required(const Object &object) -> decltype(object.get())
{
    if (!object) throw error(S3CMTF_NULL_ARGUMENT, "the object was moved from");
    return object.get();
}

/// Returns the handle of an optional object.
template <class Object> auto get(const Object *object) -> decltype(object->get())
{
    return object ? required(*object) : nullptr;
}

template <class T> constexpr std::int32_t index_type() noexcept
{
    static_assert(std::is_unsigned_v<T> && (sizeof(T) == 4 || sizeof(T) == 8),
                  "indices are unsigned integers of 32 or 64 bits");
    return sizeof(T) == 4 ? S3CMTF_U32 : S3CMTF_U64;
}

template <class T> constexpr std::int32_t number_type() noexcept
{
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "numbers are float or double");
    return std::is_same_v<T, float> ? S3CMTF_F32 : S3CMTF_F64;
}

/// Passes a C callback on to any callable. Catches what the callable throws, for rethrow().
template <class Info, class Callback> class guarded_callback {
    using result = std::invoke_result_t<Callback &, const Info &>;
    static_assert(std::is_void_v<result> || std::is_same_v<result, bool>,
                  "a callback returns nothing, or bool: whether to continue");

public:
    explicit guarded_callback(Callback &callback) noexcept : callback_(callback) {}
    static std::int32_t call(const Info *info, void *user) noexcept
    {
        auto &self = *static_cast<guarded_callback *>(user);
        if (self.thrown_) return 1;
        try {
            if constexpr (std::is_void_v<result>) {
                std::invoke(self.callback_, *info);
                return 0;
            } else {
                return std::invoke(self.callback_, *info) ? 0 : 1;
            }
        } catch (...) {
            self.thrown_ = std::current_exception();
            return 1;
        }
    }
    void rethrow() const
    {
        if (thrown_) std::rethrow_exception(thrown_);
    }

private:
    Callback &callback_;
    std::exception_ptr thrown_;
};

/// Runs a fit or search with a callback, and removes the callback afterwards.
template <class Info, class Callback, class Object, class Set, class Run>
auto run_with_callback(Callback &callback, Object *object, Set set, Run run)
{
    guarded_callback<Info, Callback> guarded(callback);
    detail::call(set, object, &guarded_callback<Info, Callback>::call, static_cast<void *>(&guarded));
    const auto remove = [&] {
        // Refused after the run: the callback is not called again then.
        static_cast<void>(set(object, nullptr, nullptr, nullptr) == S3CMTF_OK);
    };
    try {
        auto result = run();
        remove();
        guarded.rethrow();
        return result;
    } catch (const error &) {
        remove();
        guarded.rethrow();
        throw;
    }
}

} // namespace detail

/// Returns the version of the linked library, such as "1.2.3".
inline std::string_view version() noexcept { return s3cmtf_version(); }

/// Returns the version of the linked library as a number; S3CMTF_VERSION_NUMBER is that of the header.
inline std::uint32_t version_number() noexcept { return s3cmtf_version_number(); }

/// Returns version, target and build settings of the linked library.
inline std::string_view build_info() noexcept { return s3cmtf_build_info(); }

/// A kernel, S3CMTF_KERNEL_...
struct kernel_info {
    std::int32_t kernel;
    std::string_view name; ///< As the option "kernel" takes it.
    bool available;        ///< Whether this machine supports it.
};

/// Returns all kernels, the slowest first.
inline std::vector<kernel_info> kernels()
{
    std::vector<kernel_info> found;
    const char *name = nullptr;
    for (std::int32_t kernel = 0; s3cmtf_kernel_name(kernel, &name, nullptr) == S3CMTF_OK; kernel++)
        found.push_back({kernel, name, detail::read<std::int32_t>(s3cmtf_kernel_available, kernel) != 0});
    return found;
}

/// Returns the fastest kernel of this machine.
inline std::int32_t best_kernel() noexcept { return s3cmtf_kernel_best(); }

/// Stands for the array of a mode whose rows are not given: see model::recommend().
struct any_row_t {};
inline constexpr any_row_t any_row{};

/// Indices of cells in memory of the caller.
class cells {
public:
    /// One array per mode, all of the same length and type. any_row stands for a mode without one.
    template <class... Arrays> static cells columns(const Arrays &...modes)
    {
        cells made;
        (made.add(modes), ...);
        if (!made.type_) (made.type_ = S3CMTF_U64, made.count_ = 1);
        return made;
    }
    /// The same for a number of modes that is known at run time.
    template <class Index> static cells columns(const std::vector<span<const Index>> &modes)
    {
        cells made;
        made.type_ = detail::index_type<Index>();
        made.count_ = modes.empty() ? 0 : modes[0].size();
        for (const auto &mode : modes) made.add(mode);
        return made;
    }
    /// One array with the `order` indices of the first cell, then those of the next.
    template <class Array> static cells records(const Array &indices, std::size_t order)
    {
        const auto all = span(indices);
        if (order == 0 || all.size() % order != 0)
            throw error(S3CMTF_BAD_ARGUMENT, "the number of indices is not a multiple of the order");
        cells made;
        made.type_ = detail::index_type<typename decltype(span(indices))::value_type>();
        made.stride_ = order;
        made.count_ = all.size() / order;
        for (std::size_t n = 0; n < order; n++) made.modes_.push_back(all.empty() ? nullptr : all.data() + n);
        return made;
    }
    /// Makes indices count from 1.
    cells &one_based() noexcept
    {
        base_ = 1;
        return *this;
    }
    std::size_t order() const noexcept { return modes_.size(); }
    std::size_t count() const noexcept { return count_; }
    /// Returns the C struct, which refers to this object.
    s3cmtf_indices raw() const & noexcept { return {modes_.data(), count_, stride_, type_, base_}; }
    s3cmtf_indices raw() const && = delete;

private:
    cells() = default;
    template <class Array> void add(const Array &indices)
    {
        const auto mode = span(indices);
        const std::int32_t type = detail::index_type<typename decltype(span(indices))::value_type>();
        if (!type_) (type_ = type, count_ = mode.size());
        if (type != type_ || mode.size() != count_)
            throw error(S3CMTF_BAD_ARGUMENT, "index arrays have different lengths or types");
        modes_.push_back(mode.data());
    }
    void add(const any_row_t &) { modes_.push_back(nullptr); }

    std::vector<const void *> modes_;
    std::size_t count_ = 0, stride_ = 1;
    std::int32_t type_ = 0, base_ = 0;
};

/// Entries of a sparse tensor or matrix in memory of the caller: cells with values and, optionally, weights.
class entries {
public:
    template <class Values> entries(cells where, const Values &values) : where_(std::move(where))
    {
        values_ = numbers(values, value_type_);
    }
    /// Sets the size of each mode. The default is the largest index.
    entries &dims(span<const std::uint64_t> sizes)
    {
        if (sizes.size() != where_.order()) throw error(S3CMTF_BAD_ARGUMENT, "the number of sizes is not the order");
        dims_.assign(sizes.begin(), sizes.end());
        return *this;
    }
    /// Sets the weight of each entry, which multiplies its squared error.
    template <class Weights> entries &weights(const Weights &each)
    {
        weights_ = numbers(each, weight_type_);
        return *this;
    }
    std::size_t count() const noexcept { return where_.count(); }
    /// Returns the C struct, which refers to this object.
    s3cmtf_entries raw() const & noexcept
    {
        s3cmtf_entries made{};
        made.size = sizeof made;
        made.order = where_.order();
        made.dims = dims_.empty() ? nullptr : dims_.data();
        made.indices = where_.raw();
        made.values = values_;
        made.weights = weights_;
        made.value_type = value_type_;
        made.weight_type = weight_type_;
        return made;
    }
    s3cmtf_entries raw() const && = delete;

private:
    template <class Numbers> const void *numbers(const Numbers &array, std::int32_t &type) const
    {
        const auto items = span(array);
        if (items.size() != count())
            throw error(S3CMTF_BAD_ARGUMENT, "the number of values or weights is not that of cells");
        type = detail::number_type<typename decltype(span(array))::value_type>();
        return items.data();
    }
    cells where_;
    std::vector<std::uint64_t> dims_;
    const void *values_ = nullptr, *weights_ = nullptr;
    std::int32_t value_type_ = 0, weight_type_ = 0;
};

/// Ends work from any thread or signal handler. It stays requested until it is reset.
class cancel_token : public detail::handle<s3cmtf_cancel, s3cmtf_cancel_free> {
public:
    using handle::handle;
    cancel_token() : handle(detail::create<s3cmtf_cancel>(s3cmtf_cancel_new)) {}
    void request() const noexcept { s3cmtf_cancel_request(get()); }
    void reset() const noexcept { s3cmtf_cancel_reset(get()); }
    bool requested() const noexcept { return s3cmtf_cancel_requested(get()) != 0; }
};

/// How text files are read. See s3cmtf_text_set() for the settings.
class text_format : public detail::handle<s3cmtf_text, s3cmtf_text_free> {
public:
    using handle::handle;
    text_format() : handle(detail::create<s3cmtf_text>(s3cmtf_text_new)) {}
    text_format &set(const std::string &name, const std::string &value)
    {
        detail::call(s3cmtf_text_set, get(), name.c_str(), value.c_str());
        return *this;
    }
};

/// Converts a file of text or binary COO to binary COO or, if the name of the output ends in .tns, to text.
inline void convert(const std::string &input, const std::string &output, const text_format *text = nullptr,
                    const cancel_token *cancel = nullptr)
{
    detail::call(s3cmtf_coo_convert, input.c_str(), output.c_str(), detail::get(text), detail::get(cancel));
}

/// Statistics of the values of a coo; NaN without entries.
struct coo_summary {
    double min, max, mean, standard_deviation;
    std::vector<std::uint64_t> rows_used; ///< For each mode the number of rows with entries.
};

/// Which entries coo::split() holds out.
struct split_request {
    double test_fraction = 0, valid_fraction = 0;
    std::uint64_t seed = 0;
    /// Hold out the entries of each row of row_mode with the largest index in time_mode instead of random ones.
    bool latest = false;
    std::size_t row_mode = 0, time_mode = 0;
    const cancel_token *cancel = nullptr;
};

/// A sparse tensor or matrix. It never changes.
class coo : public detail::handle<s3cmtf_coo, s3cmtf_coo_free> {
public:
    using handle::handle;
    /// Copies entries.
    explicit coo(const entries &from) : handle(make(s3cmtf_coo_new, from)) {}
    /// Refers to entries, which must outlive everything made from the object. Indices are std::uint32_t in separate
    /// arrays and count from 0; dims() are set.
    static coo view(const entries &from) { return coo(make(s3cmtf_coo_new_view, from)); }
    /// Opens a file of binary COO, or of text through a temporary binary copy.
    static coo open(const std::string &path, open_mode mode = open_mode::mapped, const text_format *text = nullptr,
                    const cancel_token *cancel = nullptr)
    {
        return coo(detail::create<s3cmtf_coo>(s3cmtf_coo_open, path.c_str(), static_cast<std::int32_t>(mode),
                                              detail::get(text), detail::get(cancel)));
    }
    /// Returns the same entries with these weights, of float or double.
    template <class Weights> coo weighted(const Weights &weights) const
    {
        const auto each = span(weights);
        if (each.size() != count()) throw error(S3CMTF_BAD_ARGUMENT, "the number of weights is not that of entries");
        return coo(detail::create<s3cmtf_coo>(
            s3cmtf_coo_new_weighted, get(), static_cast<const void *>(each.data()),
            detail::number_type<typename decltype(span(weights))::value_type>()));
    }
    /// Returns the same entries with the values of `weights`, which has the same cells in the same order, as weights.
    coo weighted_by(const coo &weights) const
    {
        return coo(detail::create<s3cmtf_coo>(s3cmtf_coo_new_weighted_by, get(), weights.get()));
    }

    coo_info info() const { return detail::fill<coo_info>(s3cmtf_coo_get_info, get()); }
    std::size_t order() const { return static_cast<std::size_t>(info().order); }
    std::size_t count() const { return static_cast<std::size_t>(info().count); }
    std::vector<std::uint64_t> dims() const
    {
        std::vector<std::uint64_t> sizes(order());
        detail::call(s3cmtf_coo_get_dims, get(), sizes.data(), sizes.size());
        return sizes;
    }
    span<const std::uint32_t> indices(std::size_t mode) const &
    {
        return {detail::read<const std::uint32_t *>(s3cmtf_coo_view_indices, get(), mode), count()};
    }
    span<const std::uint32_t> indices(std::size_t) const && = delete;
    /// Returns the values. T is the stored type: float if info().value_type is S3CMTF_F32, else double.
    template <class T> span<const T> values() const &
    {
        return numbers<T>(s3cmtf_coo_view_values, info().value_type);
    }
    template <class T> span<const T> values() const && = delete;
    /// Returns the weights, by info().weight_type.
    template <class T> span<const T> weights() const &
    {
        return numbers<T>(s3cmtf_coo_view_weights, info().weight_type);
    }
    template <class T> span<const T> weights() const && = delete;

    coo_summary summarize(const cancel_token *cancel = nullptr) const
    {
        s3cmtf_coo_summary found{};
        found.size = sizeof found;
        std::vector<std::uint64_t> rows_used(order());
        detail::call(s3cmtf_coo_summarize, get(), detail::get(cancel), &found, rows_used.data(), rows_used.size());
        return {found.min, found.max, found.mean, found.standard_deviation, std::move(rows_used)};
    }
    /// Checks every entry and the checksums of a file. All counts are 0 if nothing is wrong.
    coo_faults check(const cancel_token *cancel = nullptr) const
    {
        return detail::fill<coo_faults>(s3cmtf_coo_check, get(), detail::get(cancel));
    }
    /// Counts of entries that fix() left out.
    struct fixed {
        std::uint64_t dropped, merged;
    };
    /// Writes a copy without invalid entries, each cell once. The object must be an opened file.
    fixed fix(const std::string &path, keep which = keep::mean, const cancel_token *cancel = nullptr) const
    {
        fixed found{};
        detail::call(s3cmtf_coo_fix, get(), path.c_str(), static_cast<std::int32_t>(which), detail::get(cancel),
                     &found.dropped, &found.merged);
        return found;
    }
    /// Writes PREFIX.train.coo and, for fractions above 0, PREFIX.test.coo and PREFIX.valid.coo. The object must be an
    /// opened file.
    void split(const std::string &prefix, const split_request &how) const
    {
        s3cmtf_split_request request{};
        request.size = sizeof request;
        request.test_fraction = how.test_fraction;
        request.valid_fraction = how.valid_fraction;
        request.seed = how.seed;
        request.latest = how.latest;
        request.row_mode = how.row_mode;
        request.time_mode = how.time_mode;
        request.cancel = detail::get(how.cancel);
        detail::call(s3cmtf_coo_split, get(), prefix.c_str(), &request);
    }
    /// Writes a file of binary COO.
    void write(const std::string &path, value_format format = value_format::unchanged,
               const cancel_token *cancel = nullptr) const
    {
        detail::call(s3cmtf_coo_write, get(), path.c_str(), static_cast<std::int32_t>(format), detail::get(cancel));
    }

private:
    template <class New> static s3cmtf_coo *make(New function, const entries &from)
    {
        const s3cmtf_entries raw = from.raw();
        return detail::create<s3cmtf_coo>(function, &raw);
    }
    template <class T, class View> span<const T> numbers(View function, std::int32_t type) const
    {
        if (type != detail::number_type<T>()) throw error(S3CMTF_BAD_ARGUMENT, "no numbers of this type are stored");
        return {static_cast<const T *>(detail::read<const void *>(function, get())), count()};
    }
};

/// An option of fits. Texts are constant; those that do not apply are empty.
struct option_info {
    std::int32_t type; ///< S3CMTF_OPTION_...
    std::string_view name, default_value, help, min, max, choices;
};

/// Returns all options of fits.
inline std::vector<option_info> option_table()
{
    std::vector<option_info> table;
    for (std::uint64_t i = 0; i < s3cmtf_option_count(); i++) {
        const auto o = detail::fill<s3cmtf_option_info>(s3cmtf_option_get_info, i);
        table.push_back({o.type, o.name, o.default_value, o.help, o.min, o.max, o.choices});
    }
    return table;
}

/// Returns the names of the presets of options.
inline std::vector<std::string_view> presets()
{
    std::vector<std::string_view> names;
    const char *name = nullptr;
    while (s3cmtf_preset_name(names.size(), &name, nullptr) == S3CMTF_OK) names.push_back(name);
    return names;
}

/// Options of a fit.
class options : public detail::handle<s3cmtf_options, s3cmtf_options_free> {
public:
    using handle::handle;
    options() : options("default") {}
    explicit options(const std::string &preset)
        : handle(detail::create<s3cmtf_options>(s3cmtf_options_new, preset.c_str())) {}
    explicit options(const char *preset) : options(std::string(preset)) {}
    /// Sets options from a text such as "rank=10 epochs=20", all or none.
    options &parse(const std::string &text)
    {
        detail::call(s3cmtf_options_parse, get(), text.c_str());
        return *this;
    }
    options &set(const std::string &name, const std::string &value)
    {
        detail::call(s3cmtf_options_set, get(), name.c_str(), value.c_str());
        return *this;
    }
    options &set(const std::string &name, const char *value) { return set(name, std::string(value)); }
    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
    options &set(const std::string &name, T value)
    {
        if constexpr (std::is_same_v<T, bool>)
            detail::call(s3cmtf_options_set_bool, get(), name.c_str(), value ? 1 : 0);
        else if constexpr (std::is_floating_point_v<T>)
            detail::call(s3cmtf_options_set_real, get(), name.c_str(), static_cast<double>(value));
        else // As a text, because options of every type take integers.
            return set(name, std::to_string(value));
        return *this;
    }
    /// Sets the rank of all modes (one number) or of each.
    options &set_ranks(span<const std::uint64_t> ranks)
    {
        detail::call(s3cmtf_options_set_ranks, get(), ranks.data(), ranks.size());
        return *this;
    }
    /// Returns the value of an option as a text that set() takes.
    std::string value(const std::string &name) const { return detail::text(s3cmtf_options_get, get(), name.c_str()); }
};

/// How a matrix is coupled to a mode.
struct coupling {
    matrix_kind kind = matrix_kind::observed;
    double weight = 0;                            ///< lambda_m of the paper; 0: the option "lambda_m".
    std::optional<double> penalty = std::nullopt; ///< On the columns; none: the option "lambda_reg".
    std::uint32_t zeros = 0;                      ///< matrix_kind::sampled: zeros sampled per entry, 1 or more.
};

/// A tensor with the matrices coupled to its modes.
class problem : public detail::handle<s3cmtf_problem, s3cmtf_problem_free> {
public:
    using handle::handle;
    explicit problem(const coo &tensor) : handle(detail::create<s3cmtf_problem>(s3cmtf_problem_new, tensor.get())) {}
    /// Couples a matrix, whose rows are those of `mode`.
    problem &add_matrix(std::size_t mode, const coo &matrix, const coupling &how = {})
    {
        s3cmtf_coupling raw{};
        raw.size = sizeof raw;
        raw.kind = static_cast<std::int32_t>(how.kind);
        raw.zeros = how.zeros;
        raw.weight = how.weight;
        raw.penalty = how.penalty.value_or(0);
        raw.has_penalty = how.penalty.has_value();
        detail::call(s3cmtf_problem_add_matrix, get(), mode, matrix.get(), &raw);
        return *this;
    }
};

/// How cells are predicted.
struct predict_request {
    clip clipping = clip::standard;
    std::size_t threads = 0; ///< 0: all the process may use.
    const cancel_token *cancel = nullptr;
};

/// Predictions, their standard deviations, and quantiles, those of a cell side by side.
template <class T> struct predictive_distribution {
    std::vector<T> predictions, deviations, quantiles;
};

/// Entries of new rows in a coupled matrix of a model, for model::fold_in().
struct fold_in_matrix {
    std::size_t number; ///< Of the matrix in the model.
    const coo *entries;
    double weight = 0; ///< 0: that of the fit.
};

/// Entries of the rows that model::fold_in() adds.
struct fold_in_request {
    const coo *tensor = nullptr; ///< May be nullptr if there are matrices.
    std::vector<fold_in_matrix> matrices = {};
    bool replace = false;    ///< Rows of the model may be replaced.
    std::size_t threads = 0; ///< 0: all the process may use.
    const cancel_token *cancel = nullptr;
};

/// A row with its score.
struct ranked_row {
    std::uint64_t row;
    double score;
};

/// What model::recommend() ranks.
struct recommend_request {
    std::size_t top = 10;         ///< Length of each list.
    double quantile = 0;          ///< 0: by predictions; else by this quantile of the posterior distribution.
    const coo *exclude = nullptr; ///< Leaves out rows with an entry here for the query's row of exclude_mode.
    std::size_t exclude_mode = 0;
    std::optional<std::vector<std::uint64_t>> candidates = std::nullopt; ///< Ranks these rows only.
    std::vector<std::uint64_t> exclude_rows = {};
    std::size_t threads = 0; ///< 0: all the process may use.
    const cancel_token *cancel = nullptr;
};

/// How many rows model::similar() lists.
struct similar_request {
    std::size_t top = 10;
    std::size_t threads = 0; ///< 0: all the process may use.
    const cancel_token *cancel = nullptr;
};

/// How model::evaluate_ranking() ranks.
struct ranking_request {
    std::size_t length = 10; ///< Of each list.
    double quantile = 0;     ///< As in recommend_request.
    std::optional<double> min_relevant_value = std::nullopt; ///< None: every test entry is relevant.
    std::size_t threads = 0; ///< 0: all the process may use.
    const cancel_token *cancel = nullptr;
};

struct fold_in_result;

/// A fitted model. It never changes.
class model : public detail::handle<s3cmtf_model, s3cmtf_model_free> {
public:
    using handle::handle;
    /// Opens a model file, or the model in a checkpoint.
    static model load(const std::string &path, open_mode mode = open_mode::mapped)
    {
        return model(detail::create<s3cmtf_model>(s3cmtf_model_load, path.c_str(), static_cast<std::int32_t>(mode)));
    }
    void save(const std::string &path) const { detail::call(s3cmtf_model_save, get(), path.c_str()); }
    /// Writes factors, core, mean, biases and offsets as .npy files and text into a folder.
    void export_to(const std::string &folder, const cancel_token *cancel = nullptr) const
    {
        detail::call(s3cmtf_model_export, get(), folder.c_str(), detail::get(cancel));
    }

    model_info info() const { return detail::fill<model_info>(s3cmtf_model_get_info, get()); }
    std::size_t order() const { return static_cast<std::size_t>(info().order); }
    mode_info mode(std::size_t number) const { return detail::fill<mode_info>(s3cmtf_model_get_mode, get(), number); }
    std::vector<std::uint64_t> dims() const { return of_modes(&mode_info::dim); }
    std::vector<std::uint64_t> ranks() const { return of_modes(&mode_info::rank); }
    /// Describes a coupled matrix.
    s3cmtf::matrix_info matrix_info(std::size_t number) const
    {
        return detail::fill<s3cmtf::matrix_info>(s3cmtf_model_get_matrix, get(), number);
    }
    /// Returns the options of the fit, with the values it chose for "auto".
    s3cmtf::options options() const
    {
        return s3cmtf::options(detail::create<s3cmtf_options>(s3cmtf_model_get_options, get()));
    }
    /// Returns events and final figures of the fit as lines NAME=VALUE. See s3cmtf_model_get_record().
    std::string record() const { return detail::text(s3cmtf_model_get_record, get()); }
    /// Returns the plan of the fit as JSON, for fit::set_plan(); empty if the model was not fitted. See s3cmtf_model_get_plan().
    std::string plan() const { return detail::text(s3cmtf_model_get_plan, get()); }
    /// Returns the figures of an epoch, from 0.
    progress epoch(std::size_t number) const { return detail::fill<progress>(s3cmtf_model_get_epoch, get(), number); }

    /// Returns the factor of a mode, rows x rank. Row r belongs to the index row_indices(mode)[r].
    matrix_view factor(std::size_t mode) const & { return view(s3cmtf_model_view_factor, mode); }
    matrix_view factor(std::size_t) const && = delete;
    /// Returns the biases of the rows of a mode; empty if the model has none.
    span<const float> biases(std::size_t mode) const & { return list(s3cmtf_model_view_biases, mode); }
    span<const float> biases(std::size_t) const && = delete;
    /// Returns the core, with the indices of all modes but the last as rows. That of CP is one row, the diagonal.
    matrix_view core() const & { return view(s3cmtf_model_view_core); }
    matrix_view core() const && = delete;
    /// Returns the factor of the columns of a coupled matrix. Row r belongs to column matrix_indices(number)[r].
    matrix_view matrix(std::size_t number) const & { return view(s3cmtf_model_view_matrix, number); }
    matrix_view matrix(std::size_t) const && = delete;
    /// Returns the offsets of the columns of a coupled matrix; empty if the model has none.
    span<const float> offsets(std::size_t number) const & { return list(s3cmtf_model_view_offsets, number); }
    span<const float> offsets(std::size_t) const && = delete;

    /// Copies of the same, as float or double. Without biases or offsets these are 0.
    template <class T = double> std::vector<T> copy_factor(std::size_t mode, layout order = layout::row_major) const
    {
        return copy_matrix_of<T>(factor(mode), order, s3cmtf_model_copy_factor, mode);
    }
    template <class T = double> std::vector<T> copy_biases(std::size_t mode) const
    {
        return copy_list<T>(this->mode(mode).rows, s3cmtf_model_copy_biases, mode);
    }
    template <class T = double> std::vector<T> copy_core(layout order = layout::row_major) const
    {
        return copy_matrix_of<T>(core(), order, s3cmtf_model_copy_core);
    }
    template <class T = double> std::vector<T> copy_matrix(std::size_t number, layout order = layout::row_major) const
    {
        return copy_matrix_of<T>(matrix(number), order, s3cmtf_model_copy_matrix, number);
    }
    template <class T = double> std::vector<T> copy_offsets(std::size_t number) const
    {
        return copy_list<T>(matrix_info(number).rows, s3cmtf_model_copy_offsets, number);
    }
    /// Copies the row of an index; the mean row for one without entries.
    template <class T = double> std::vector<T> copy_row(std::size_t mode, std::uint64_t index) const
    {
        return copy_list<T>(this->mode(mode).rank, s3cmtf_model_copy_row, mode, index);
    }
    /// Returns the index of each row of a factor, ascending.
    std::vector<std::uint64_t> row_indices(std::size_t mode) const
    {
        return copy_indices(this->mode(mode).rows, s3cmtf_model_copy_row_indices, mode);
    }
    /// Returns the column of each row of the factor of a coupled matrix, ascending.
    std::vector<std::uint64_t> matrix_indices(std::size_t number) const
    {
        return copy_indices(matrix_info(number).rows, s3cmtf_model_copy_matrix_indices, number);
    }

    /// Predicts one cell, with an index per mode.
    double predict_cell(span<const std::uint64_t> cell) const
    {
        require_order(cell.size());
        return detail::read<double>(s3cmtf_model_predict_cell, get(), cell.data());
    }
    /// Predicts cells, as float or double.
    template <class T = double> std::vector<T> predict(const cells &where, const predict_request &how = {}) const
    {
        return predict_with<T>(where, {}, false, how).predictions;
    }
    /// Predicts the cells of entries, whatever their values.
    template <class T = double> std::vector<T> predict(const coo &where, const predict_request &how = {}) const
    {
        return predict_with<T>(where, {}, false, how).predictions;
    }
    /// Predicts cells with standard deviations and quantiles, by probability. The model must have posterior samples.
    template <class T = double>
    predictive_distribution<T> predict_distribution(const cells &where, span<const double> quantiles = {},
                                                    const predict_request &how = {}) const
    {
        return predict_with<T>(where, quantiles, true, how);
    }
    template <class T = double>
    predictive_distribution<T> predict_distribution(const coo &where, span<const double> quantiles = {},
                                                    const predict_request &how = {}) const
    {
        return predict_with<T>(where, quantiles, true, how);
    }
    /// Computes RMSE and MAE of the predictions of entries.
    evaluation evaluate(const coo &test, std::size_t threads = 0, const cancel_token *cancel = nullptr) const
    {
        return detail::fill<evaluation>(s3cmtf_model_evaluate, get(), test.get(), threads, detail::get(cancel));
    }
    /// Computes AUC and log loss of the predictions of entries with exactly two values.
    binary_scores evaluate_binary(const coo &test, std::size_t threads = 0, const cancel_token *cancel = nullptr) const
    {
        return detail::fill<binary_scores>(s3cmtf_model_evaluate_binary, get(), test.get(), threads, detail::get(cancel));
    }
    /// Computes log score, CRPS and coverage of the predictive distributions of entries (models with posterior samples).
    distribution_scores evaluate_distributions(const coo &test, std::size_t threads = 0,
                                               const cancel_token *cancel = nullptr) const
    {
        return detail::fill<distribution_scores>(s3cmtf_model_evaluate_distributions, get(), test.get(), threads,
                                                 detail::get(cancel));
    }

    /// Returns a model with additional rows of a mode, computed from their entries. See s3cmtf_model_fold_in().
    fold_in_result fold_in(std::size_t mode, const fold_in_request &what) const;

    /// Lists for each query the rows of `mode` with the largest scores, which are predictions without clipping.
    /// A query has a row of each other mode. Modes with any_row are averaged over; that of `mode` is ignored.
    /// Rows in the request and in the lists count as those of the queries.
    std::vector<std::vector<ranked_row>> recommend(std::size_t mode, const cells &queries,
                                                   const recommend_request &how = {}) const
    {
        require_order(queries.order());
        const std::uint64_t no_candidate = 0;
        s3cmtf_recommend_request request{};
        request.size = sizeof request;
        request.mode = mode;
        request.top = list_length(mode, how.top);
        request.queries = queries.raw();
        request.quantile = how.quantile;
        request.exclude = detail::get(how.exclude);
        request.exclude_mode = how.exclude_mode;
        if (how.candidates) {
            // A null pointer would mean all rows.
            request.candidates = how.candidates->empty() ? &no_candidate : how.candidates->data();
            request.candidate_count = how.candidates->size();
        }
        request.exclude_rows = how.exclude_rows.data();
        request.exclude_row_count = how.exclude_rows.size();
        request.threads = how.threads;
        request.cancel = detail::get(how.cancel);
        return lists(s3cmtf_model_recommend, queries.count(), request);
    }
    /// Lists for each of `rows` the rows of the same mode with the most similar predictions; scores are cosines.
    std::vector<std::vector<ranked_row>> similar(std::size_t mode, span<const std::uint64_t> rows,
                                                 const similar_request &how = {}) const
    {
        s3cmtf_similar_request request{};
        request.size = sizeof request;
        request.mode = mode;
        request.top = list_length(mode, how.top);
        request.rows = rows.data();
        request.row_count = rows.size();
        request.threads = how.threads;
        request.cancel = detail::get(how.cancel);
        return lists(s3cmtf_model_similar, rows.size(), request);
    }
    /// Measures rankings of rows of `mode` for rows of `user_mode` on test entries, and rankings by popularity.
    ranking evaluate_ranking(const coo &test, const coo &train, std::size_t mode, std::size_t user_mode,
                             const ranking_request &how = {}) const
    {
        s3cmtf_ranking_request request{};
        request.size = sizeof request;
        request.mode = mode;
        request.user_mode = user_mode;
        request.length = how.length;
        request.quantile = how.quantile;
        request.min_relevant_value = how.min_relevant_value.value_or(0);
        request.has_min_relevant_value = how.min_relevant_value.has_value();
        request.threads = how.threads;
        request.cancel = detail::get(how.cancel);
        return detail::fill<ranking>(s3cmtf_model_evaluate_ranking, get(), test.get(), train.get(), &request);
    }

private:
    void require_order(std::size_t modes) const
    {
        if (modes != order()) throw error(S3CMTF_BAD_ARGUMENT, "the number of modes is not the order of the model");
    }
    std::vector<std::uint64_t> of_modes(std::uint64_t mode_info::*field) const
    {
        std::vector<std::uint64_t> found(order());
        for (std::size_t n = 0; n < found.size(); n++) found[n] = mode(n).*field;
        return found;
    }
    template <class View, class... Which> matrix_view view(View function, Which... which) const
    {
        return matrix_view(detail::read<s3cmtf_view>(function, get(), which...));
    }
    template <class View> span<const float> list(View function, std::size_t which) const
    {
        const matrix_view column = view(function, which);
        return {column.data(), column.rows()};
    }
    template <class T, class Copy, class... Which>
    std::vector<T> copy_matrix_of(const matrix_view &from, layout order, Copy function, Which... which) const
    {
        std::vector<T> numbers(from.rows() * from.columns());
        detail::call(function, get(), which..., static_cast<void *>(numbers.data()), numbers.size(),
                     detail::number_type<T>(), static_cast<std::int32_t>(order));
        return numbers;
    }
    template <class T, class Copy, class... Which>
    std::vector<T> copy_list(std::uint64_t count, Copy function, Which... which) const
    {
        std::vector<T> numbers(static_cast<std::size_t>(count));
        detail::call(function, get(), which..., static_cast<void *>(numbers.data()), numbers.size(),
                     detail::number_type<T>());
        return numbers;
    }
    template <class Copy>
    std::vector<std::uint64_t> copy_indices(std::uint64_t count, Copy function, std::size_t which) const
    {
        std::vector<std::uint64_t> indices(static_cast<std::size_t>(count));
        detail::call(function, get(), which, static_cast<void *>(indices.data()), indices.size(), S3CMTF_U64);
        return indices;
    }
    template <class T, class Where>
    predictive_distribution<T> predict_with(const Where &where, span<const double> quantiles, bool deviations,
                                            const predict_request &how) const
    {
        const std::size_t count = where.count();
        predictive_distribution<T> made;
        made.predictions.resize(count);
        s3cmtf_predict_request request{};
        request.size = sizeof request;
        request.clip = static_cast<std::int32_t>(how.clipping);
        request.threads = how.threads;
        request.cancel = detail::get(how.cancel);
        if (deviations) {
            made.deviations.resize(count);
            request.deviations = made.deviations.data();
        }
        if (!quantiles.empty()) {
            made.quantiles.resize(count * quantiles.size());
            request.quantiles = quantiles.data();
            request.quantile_count = quantiles.size();
            request.quantile_values = made.quantiles.data();
        }
        const auto predict_cells = [&](auto function, const auto *cells_or_coo) {
            detail::call(function, get(), cells_or_coo, static_cast<void *>(made.predictions.data()), count,
                         detail::number_type<T>(), &request);
        };
        if constexpr (std::is_same_v<Where, coo>) {
            predict_cells(s3cmtf_model_predict_coo, where.get());
        } else {
            require_order(where.order());
            const s3cmtf_indices raw = where.raw();
            predict_cells(s3cmtf_model_predict, &raw);
        }
        return made;
    }
    /// Limits the length of lists to the number of rows, to bound the buffers.
    std::uint64_t list_length(std::size_t mode, std::size_t top) const
    {
        return std::min<std::uint64_t>(top ? top : 10, std::max<std::uint64_t>(this->mode(mode).dim, 1));
    }
    template <class List, class Request>
    std::vector<std::vector<ranked_row>> lists(List function, std::size_t count, const Request &request) const
    {
        const std::size_t top = static_cast<std::size_t>(request.top);
        std::vector<std::uint64_t> rows(count * top), counts(count);
        std::vector<double> scores(rows.size());
        detail::call(function, get(), &request, rows.data(), scores.data(), rows.size(), counts.data());
        std::vector<std::vector<ranked_row>> made(count);
        for (std::size_t q = 0; q < count; q++)
            for (std::size_t k = q * top; k < q * top + counts[q]; k++) made[q].push_back({rows[k], scores[k]});
        return made;
    }
};

/// A model with additional rows.
struct fold_in_result {
    model folded;
    std::uint64_t added, replaced; ///< Numbers of rows.
};

inline fold_in_result model::fold_in(std::size_t mode, const fold_in_request &what) const
{
    std::vector<const s3cmtf_coo *> matrices;
    std::vector<std::uint64_t> numbers;
    std::vector<double> weights;
    for (const auto &matrix : what.matrices) {
        matrices.push_back(detail::get(matrix.entries));
        numbers.push_back(matrix.number);
        weights.push_back(matrix.weight);
    }
    s3cmtf_fold_in_request request{};
    request.size = sizeof request;
    request.tensor = detail::get(what.tensor);
    request.matrix_count = matrices.size();
    request.matrices = matrices.data();
    request.matrix_numbers = numbers.data();
    request.weights = weights.data();
    request.replace = what.replace;
    request.threads = what.threads;
    request.cancel = detail::get(what.cancel);
    s3cmtf_model *made = nullptr;
    std::uint64_t added = 0, replaced = 0;
    detail::call(s3cmtf_model_fold_in, get(), mode, &request, &made, &added, &replaced);
    return {model(made), added, replaced};
}

/// Fits entries in one call. `options` is as in options::parse().
inline model fit_entries(const entries &data, const std::string &options = {})
{
    const s3cmtf_entries raw = data.raw();
    return model(detail::create<s3cmtf_model>(s3cmtf_fit_entries, &raw, options.c_str()));
}

/// Fits a file in one call. `options` is as in options::parse().
inline model fit_file(const std::string &path, const std::string &options = {})
{
    return model(detail::create<s3cmtf_model>(s3cmtf_fit_file, path.c_str(), options.c_str()));
}

/// One fit, which runs once: run() on the calling thread, or start() in the background.
class fit : public detail::handle<s3cmtf_fit, s3cmtf_fit_free> {
public:
    using handle::handle;
    explicit fit(const problem &what) : fit(what, options()) {}
    fit(const problem &what, const options &how)
        : handle(detail::create<s3cmtf_fit>(s3cmtf_fit_new, what.get(), detail::required(how))) {}
    /// Sets entries whose error is reported after every epoch.
    fit &set_test(const coo &entries) { return set(s3cmtf_fit_set_test, detail::required(entries)); }
    /// Sets entries that decide, with the option "patience", when to stop and which model is best.
    fit &set_valid(const coo &entries) { return set(s3cmtf_fit_set_valid, detail::required(entries)); }
    /// Sets a model to start from.
    fit &set_init(const model &start) { return set(s3cmtf_fit_set_init, detail::required(start)); }
    /// Sets the file for checkpoints.
    fit &set_checkpoint(const std::string &path) { return set(s3cmtf_fit_set_checkpoint, path.c_str()); }
    /// Sets the checkpoint to continue from.
    fit &set_resume(const std::string &path) { return set(s3cmtf_fit_set_resume, path.c_str()); }
    /// Sets the plan that the fit follows: what plan() or model::plan() returned.
    fit &set_plan(const std::string &json) { return set(s3cmtf_fit_set_plan, json.c_str()); }
    /// Returns what the fit would do, and why, as JSON, and fits nothing. The fit then follows this plan. See s3cmtf_fit_plan().
    std::string plan() { return detail::text(s3cmtf_fit_plan, get()); }
    /// Sets a token that ends the fit from any thread, with the model of the last epoch.
    fit &set_cancel(const cancel_token &token) { return set(s3cmtf_fit_set_cancel, detail::required(token)); }

    model run() { return model(detail::create<s3cmtf_model>(s3cmtf_fit_run, get())); }
    /// Runs the fit and calls `callback` with a const progress & after every epoch and for other events. If it returns
    /// false the fit ends with the model of the last epoch. If it throws the fit ends, and run() throws the same.
    template <class Callback> model run(Callback &&callback)
    {
        return detail::run_with_callback<s3cmtf_progress>(callback, get(), s3cmtf_fit_set_callback,
                                                          [&] { return run(); });
    }
    /// Starts the fit in the background. The destructor cancels it.
    void start() { detail::call(s3cmtf_fit_start, get()); }
    s3cmtf::progress progress() const { return detail::fill<s3cmtf::progress>(s3cmtf_fit_get_progress, get()); }
    /// Waits for the end of a fit in the background.
    void wait() const { static_cast<void>(is_running(-1)); }
    /// Waits no longer than `time`. Returns whether the fit has ended.
    bool wait_for(std::chrono::duration<double> time) const { return !is_running(std::max<double>(time.count(), 0)); }
    /// Ends a fit in the background, with the model of the last epoch.
    void cancel() const noexcept { s3cmtf_fit_cancel(get()); }
    /// Returns the model of a fit in the background that has ended, once.
    model take() { return model(detail::create<s3cmtf_model>(s3cmtf_fit_take, get())); }

private:
    template <class Set, class Value> fit &set(Set function, Value value)
    {
        detail::call(function, get(), value);
        return *this;
    }
    bool is_running(double seconds) const { return detail::read<std::int32_t>(s3cmtf_fit_wait, get(), seconds) != 0; }
};

/// How a search is run. 0 is the default of the library.
struct tune_request {
    std::size_t trials = 0;      ///< 0: 200.
    std::size_t rungs = 0;       ///< Comparisons of trials; 0: 3.
    std::size_t fit_threads = 0; ///< Threads of each fit; 0: 1.
    double valid_fraction = 0;   ///< Held out to compare trials; 0: 0.1.
    const coo *valid = nullptr;  ///< Compare trials on these entries, hold out none.
};

/// A search for better options, by random search with successive halving. The best trial is at position 0 of the ranking.
class tune : public detail::handle<s3cmtf_tune, s3cmtf_tune_free> {
public:
    using handle::handle;
    explicit tune(const problem &what) : tune(what, options()) {}
    tune(const problem &what, const options &base, const tune_request &how = {}) : handle(make(what, base, how)) {}
    /// Sets the values of an option: a list ("8,16,32") or an interval ("0.005..0.1").
    tune &set_range(const std::string &name, const std::string &values)
    {
        return set(s3cmtf_tune_set_range, name.c_str(), values.c_str());
    }
    /// Sets the file for the state of the search.
    tune &set_checkpoint(const std::string &path) { return set(s3cmtf_tune_set_checkpoint, path.c_str()); }
    /// Sets the state to continue from.
    tune &set_resume(const std::string &path) { return set(s3cmtf_tune_set_resume, path.c_str()); }
    /// Sets a token that ends the search from any thread, with the trials it has.
    tune &set_cancel(const cancel_token &token) { return set(s3cmtf_tune_set_cancel, detail::required(token)); }

    /// Runs the search. Returns the best options.
    options run()
    {
        detail::call(s3cmtf_tune_run, get());
        return trial_options(0);
    }
    /// Runs the search and calls `callback` with a const trial & after every fit. If it returns false the search ends
    /// with the trials it has. If it throws the search ends, and run() throws the same.
    template <class Callback> options run(Callback &&callback)
    {
        return detail::run_with_callback<s3cmtf_trial>(callback, get(), s3cmtf_tune_set_callback,
                                                       [&] { return run(); });
    }
    /// Returns the number of trials of a search that has run.
    std::size_t size() const { return detail::count(s3cmtf_tune_get_count, get()); }
    s3cmtf::trial trial(std::size_t place) const
    {
        return detail::fill<s3cmtf::trial>(s3cmtf_tune_get_trial, get(), place);
    }
    options trial_options(std::size_t place) const
    {
        return options(detail::create<s3cmtf_options>(s3cmtf_tune_get_options, get(), place));
    }
    /// Returns the options of a trial as lines NAME=VALUE.
    std::string trial_text(std::size_t place) const { return detail::text(s3cmtf_tune_get_text, get(), place); }

private:
    static s3cmtf_tune *make(const problem &what, const options &base, const tune_request &how)
    {
        s3cmtf_tune_request request{};
        request.size = sizeof request;
        request.trials = how.trials;
        request.rungs = how.rungs;
        request.fit_threads = how.fit_threads;
        request.valid_fraction = how.valid_fraction;
        request.valid = detail::get(how.valid);
        return detail::create<s3cmtf_tune>(s3cmtf_tune_new, what.get(), detail::required(base), &request);
    }
    template <class Set, class... Values> tune &set(Set function, Values... values)
    {
        detail::call(function, get(), values...);
        return *this;
    }
};

/// A row of a mode.
struct mode_row {
    std::uint64_t mode, row;
};

/// What concepts describes.
struct concepts_request {
    std::size_t top = 0;              ///< Rows and columns at each end; 0: 10.
    std::uint64_t min_entries = 0;    ///< Only rows with so many tensor entries.
    std::vector<mode_row> given = {}; ///< Rows of other modes, for concepts of these rows.
    const cancel_token *cancel = nullptr;
};

/// The core contracted with given rows: a row of `columns` numbers per column of the factor. Empty if it is no matrix.
struct concept_profile {
    std::uint64_t mode, columns;
    std::vector<double> numbers;
};

/// Descriptions of the columns of a factor, the strongest first.
class concepts : public detail::handle<s3cmtf_concepts, s3cmtf_concepts_free> {
public:
    using handle::handle;
    concepts(const model &from, std::size_t mode, const concepts_request &how = {}) : handle(make(from, mode, how)) {}
    std::size_t size() const { return detail::count(s3cmtf_concepts_get_count, get()); }
    concept_info at(std::size_t index) const { return detail::fill<concept_info>(s3cmtf_concepts_get, get(), index); }
    /// Returns the rows with the largest or smallest loadings, which are their scores.
    std::vector<ranked_row> rows(std::size_t index, extreme which) const
    {
        const concept_info found = at(index);
        const std::uint64_t count = which == extreme::largest ? found.largest_rows : found.smallest_rows;
        std::vector<std::uint64_t> all(static_cast<std::size_t>(count));
        std::vector<double> loadings(all.size());
        detail::call(s3cmtf_concepts_copy_rows, get(), index, static_cast<std::int32_t>(which), all.data(),
                     loadings.data(), count);
        std::vector<ranked_row> made;
        for (std::size_t k = 0; k < all.size(); k++) made.push_back({all[k], loadings[k]});
        return made;
    }
    /// Returns the columns of coupled matrices with the largest or smallest shares.
    std::vector<concept_column> columns(std::size_t index, extreme which) const
    {
        const concept_info found = at(index);
        const std::uint64_t count = which == extreme::largest ? found.largest_columns : found.smallest_columns;
        std::vector<concept_column> made;
        for (std::uint64_t k = 0; k < count; k++)
            made.push_back(detail::fill<concept_column>(s3cmtf_concepts_get_column, get(), index,
                                                        static_cast<std::int32_t>(which), k));
        return made;
    }
    /// Returns the personal profile of the given rows, if they leave one mode besides that of the concepts.
    concept_profile profile() const
    {
        concept_profile made{};
        std::uint64_t found = 0;
        detail::call(s3cmtf_concepts_copy_profile, get(), nullptr, std::uint64_t{0}, &made.mode, &made.columns, &found);
        made.numbers.resize(static_cast<std::size_t>(found));
        detail::call(s3cmtf_concepts_copy_profile, get(), made.numbers.data(), found, nullptr, nullptr, &found);
        return made;
    }

private:
    static s3cmtf_concepts *make(const model &from, std::size_t mode, const concepts_request &how)
    {
        std::vector<std::uint64_t> modes, rows;
        for (const mode_row &one : how.given) (modes.push_back(one.mode), rows.push_back(one.row));
        s3cmtf_concepts_request request{};
        request.size = sizeof request;
        request.top = how.top;
        request.min_entries = how.min_entries;
        request.given_modes = modes.data();
        request.given_rows = rows.data();
        request.given_count = rows.size();
        request.cancel = detail::get(how.cancel);
        return detail::create<s3cmtf_concepts>(s3cmtf_concepts_new, from.get(), mode, &request);
    }
};

/// How rows are clustered. 0 is the default of the library. See s3cmtf_clusters_request.
struct clusters_request {
    std::size_t k = 0;     ///< Number of clusters; 0: chosen by the gap statistic.
    std::size_t max_k = 0; ///< Length of the gap curve.
    std::size_t restarts = 0, references = 0, curve_rows = 0;
    std::uint64_t min_entries = 0; ///< Only rows with so many tensor entries.
    space distances = space::predictions;
    std::size_t members = 0;                  ///< Listed members of each cluster; 0: 10.
    std::size_t labels = 0;                   ///< Listed columns of each matrix; 0: 10.
    std::vector<const coo *> matrices = {};   ///< Matrices whose columns label clusters.
    std::uint64_t seed = 0;
    std::size_t threads = 0; ///< 0: all the process may use.
    const cancel_token *cancel = nullptr;
};

/// A row with the number of its cluster.
struct clustered_row {
    std::uint64_t row, cluster;
};

/// Clusters of the rows of a mode by k-means, the largest first.
class clusters : public detail::handle<s3cmtf_clusters, s3cmtf_clusters_free> {
public:
    clusters(const model &from, std::size_t mode, const clusters_request &how = {})
        : handle(make(from, mode, how)), rank_(static_cast<std::size_t>(from.mode(mode).rank)) {}
    clusters_info info() const { return detail::fill<clusters_info>(s3cmtf_clusters_get_info, get()); }
    std::size_t size() const { return static_cast<std::size_t>(info().clusters); }
    cluster_info at(std::size_t index) const { return detail::fill<cluster_info>(s3cmtf_clusters_get, get(), index); }
    /// Returns the rows nearest to the centre of a cluster; scores are distances.
    std::vector<ranked_row> members(std::size_t index) const
    {
        std::vector<std::uint64_t> all(static_cast<std::size_t>(at(index).members));
        std::vector<double> distances(all.size());
        detail::call(s3cmtf_clusters_copy_members, get(), index, all.data(), distances.data(), all.size());
        std::vector<ranked_row> made;
        for (std::size_t k = 0; k < all.size(); k++) made.push_back({all[k], distances[k]});
        return made;
    }
    /// Returns the columns of matrices that are more frequent in a cluster than in all rows.
    std::vector<cluster_label> labels(std::size_t index) const
    {
        std::vector<cluster_label> made(static_cast<std::size_t>(at(index).labels));
        for (std::size_t k = 0; k < made.size(); k++)
            made[k] = detail::fill<cluster_label>(s3cmtf_clusters_get_label, get(), index, k);
        return made;
    }
    /// Returns the centre of a cluster: the mean of the factor rows of its members.
    std::vector<double> centre(std::size_t index) const
    {
        std::vector<double> numbers(rank_);
        detail::call(s3cmtf_clusters_copy_centre, get(), index, numbers.data(), numbers.size());
        return numbers;
    }
    /// Returns all rows that were clustered, ascending.
    std::vector<clustered_row> rows() const
    {
        std::vector<std::uint64_t> all(static_cast<std::size_t>(info().rows)), which(all.size());
        detail::call(s3cmtf_clusters_copy_rows, get(), all.data(), which.data(), all.size());
        std::vector<clustered_row> made;
        for (std::size_t k = 0; k < all.size(); k++) made.push_back({all[k], which[k]});
        return made;
    }
    /// Returns the gap statistic for 1, 2, 3 ... clusters; empty without a gap curve.
    std::vector<cluster_gap> gaps() const
    {
        std::vector<cluster_gap> made(static_cast<std::size_t>(info().curve_length));
        for (std::size_t k = 0; k < made.size(); k++)
            made[k] = detail::fill<cluster_gap>(s3cmtf_clusters_get_gap, get(), k);
        return made;
    }
    /// Returns for each matrix the mutual information of clusters and columns over the entropy of the columns.
    std::vector<double> information() const
    {
        std::vector<double> shares(static_cast<std::size_t>(info().matrices));
        detail::call(s3cmtf_clusters_copy_information, get(), shares.data(), shares.size());
        return shares;
    }

private:
    static s3cmtf_clusters *make(const model &from, std::size_t mode, const clusters_request &how)
    {
        std::vector<const s3cmtf_coo *> matrices;
        for (const coo *matrix : how.matrices) matrices.push_back(detail::get(matrix));
        s3cmtf_clusters_request request{};
        request.size = sizeof request;
        request.k = how.k;
        request.max_k = how.max_k;
        request.restarts = how.restarts;
        request.references = how.references;
        request.curve_rows = how.curve_rows;
        request.min_entries = how.min_entries;
        request.space = static_cast<std::int32_t>(how.distances);
        request.members = how.members;
        request.labels = how.labels;
        request.matrices = matrices.data();
        request.matrix_count = matrices.size();
        request.seed = how.seed;
        request.threads = how.threads;
        request.cancel = detail::get(how.cancel);
        return detail::create<s3cmtf_clusters>(s3cmtf_clusters_new, from.get(), mode, &request);
    }
    std::size_t rank_;
};

/// The names of the rows of a mode.
class names : public detail::handle<s3cmtf_names, s3cmtf_names_free> {
public:
    using handle::handle;
    /// Reads a file of names.
    static names open(const std::string &path)
    {
        return names(detail::create<s3cmtf_names>(s3cmtf_names_open, path.c_str()));
    }
    /// Reads the names of a mode from the file beside a data file or model, if there is one.
    static std::optional<names> open_beside(const std::string &path, std::size_t mode)
    {
        names found(detail::create<s3cmtf_names>(s3cmtf_names_open_beside, path.c_str(), mode));
        return found ? std::optional<names>(std::move(found)) : std::nullopt;
    }
    /// Returns one more than the last row with a name.
    std::size_t size() const { return detail::count(s3cmtf_names_get_count, get()); }
    /// Returns the name of a row; empty if it has none.
    std::string operator[](std::uint64_t row) const { return detail::text(s3cmtf_names_get, get(), row); }
    /// Returns the first row with a name. Throws if there is none, with the nearest name in the message.
    std::uint64_t find(const std::string &name) const
    {
        return detail::read<std::uint64_t>(s3cmtf_names_find, get(), name.c_str());
    }
};

} // namespace s3cmtf

#endif
