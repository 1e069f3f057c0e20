// A part of s3cmtf.hpp, which includes it: what the library has, and options.
#ifndef S3CMTF_OPTIONS_HPP
#define S3CMTF_OPTIONS_HPP

#include "s3cmtf_data.hpp"

namespace s3cmtf {

/// A kernel, S3CMTF_KERNEL_...: its name for the option "kernel", and whether this machine has it.
struct kernel_info {
    std::int32_t kernel;
    std::string name;
    bool available;
};

/// All kernels, slowest first; s3cmtf_kernel_best() is the number of the fastest that is there.
inline std::vector<kernel_info> kernels()
{
    std::vector<kernel_info> all;
    for (std::int32_t kernel = 0; kernel <= S3CMTF_KERNEL_AVX512; kernel++) {
        const char *name = nullptr;
        std::int32_t available = 0;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_kernel_name(kernel, &name, e); });
        detail::check([&](s3cmtf_error *e) { return s3cmtf_kernel_available(kernel, &available, e); });
        all.push_back({kernel, name, available != 0});
    }
    return all;
}

/// A row of the table of options; type is S3CMTF_OPTION_TYPE_...
struct option_info {
    std::int32_t type;
    std::string name, standard, help, low, high, words;
};

/// The table of options.
inline std::vector<option_info> option_table()
{
    std::vector<option_info> table(static_cast<std::size_t>(s3cmtf_option_count()));
    for (std::size_t i = 0; i < table.size(); i++) {
        const auto text = [i](std::int32_t what) {
            const char *found = nullptr;
            detail::check([&](s3cmtf_error *e) { return s3cmtf_option_text(i, what, &found, e); });
            return std::string(found);
        };
        detail::check([&](s3cmtf_error *e) { return s3cmtf_option_type(i, &table[i].type, e); });
        table[i].name = text(S3CMTF_OPTION_NAME);
        table[i].standard = text(S3CMTF_OPTION_DEFAULT);
        table[i].help = text(S3CMTF_OPTION_HELP);
        table[i].low = text(S3CMTF_OPTION_LOW);
        table[i].high = text(S3CMTF_OPTION_HIGH);
        table[i].words = text(S3CMTF_OPTION_WORDS);
    }
    return table;
}

/// The names of the presets.
inline std::vector<std::string> presets()
{
    std::vector<std::string> names;
    const char *name = nullptr;
    while (s3cmtf_preset_name(names.size(), &name, nullptr) == S3CMTF_OK) names.push_back(name);
    return names;
}

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
        std::uint64_t size = 0;
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_options_get(handle_.get(), name.c_str(), nullptr, 0, &size, e);
        });
        std::string text(static_cast<std::size_t>(size), '\0');
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_options_get(handle_.get(), name.c_str(), &text[0], size, nullptr, e);
        });
        text.pop_back(); // the NUL
        return text;
    }
    const s3cmtf_options *get() const noexcept { return handle_.get(); }

private:
    detail::owned<s3cmtf_options, s3cmtf_options_free> handle_;
};

} // namespace s3cmtf

#endif
