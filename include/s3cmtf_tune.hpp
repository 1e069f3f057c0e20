// s3cmtf for C++17: searches for options. The rules are those of s3cmtf.hpp, which this adds to.
#ifndef S3CMTF_TUNE_HPP
#define S3CMTF_TUNE_HPP

#include "s3cmtf.hpp"

namespace s3cmtf {

/// A search for options. See s3cmtf_tune.
class tune {
public:
    /// Returns whether to go on. What it throws ends the search and comes out of run().
    using callback = std::function<bool(const s3cmtf_trial &)>;

    explicit tune(const problem &what) : tune(what, options()) {}
    tune(const problem &what, const options &base)
    {
        s3cmtf_tune *made = nullptr;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_tune_new(what.get(), base.get(), &made, e); });
        handle_.reset(made);
    }
    tune &trials(std::uint64_t count) { return set(s3cmtf_tune_set_trials, count); }
    tune &rungs(std::uint64_t count) { return set(s3cmtf_tune_set_rungs, count); }
    tune &fit_threads(std::uint64_t count) { return set(s3cmtf_tune_set_fit_threads, count); }
    tune &fraction(double held_out) { return set(s3cmtf_tune_set_fraction, held_out); }
    tune &valid(const coo &entries) { return set(s3cmtf_tune_set_valid, entries.get()); }
    tune &range(const std::string &name, const std::string &values)
    {
        return set(s3cmtf_tune_set_range, name.c_str(), values.c_str());
    }
    tune &checkpoint(const std::string &path) { return set(s3cmtf_tune_set_checkpoint, path.c_str()); }
    tune &resume(const std::string &path) { return set(s3cmtf_tune_set_resume, path.c_str()); }
    tune &cancelled_by(const cancel_token &token) { return set(s3cmtf_tune_set_cancel, token.get()); }

    /// Runs here and returns the best options. What the callback throws comes out, whatever became of the search.
    options run(callback each = nullptr)
    {
        state called{std::move(each), nullptr};
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_tune_set_callback(handle_.get(), called.each ? call : nullptr, &called, e);
        });
        try {
            detail::check([&](s3cmtf_error *e) { return s3cmtf_tune_run(handle_.get(), e); });
        } catch (const error &) {
            // A search that failed may be run again; its callback is about to go.
            static_cast<void>(s3cmtf_tune_set_callback(handle_.get(), nullptr, nullptr, nullptr) == S3CMTF_OK);
            if (called.thrown) std::rethrow_exception(called.thrown);
            throw;
        }
        if (called.thrown) std::rethrow_exception(called.thrown);
        return options_of(0);
    }
    std::size_t count() const
    {
        std::uint64_t found = 0;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_tune_get_count(handle_.get(), &found, e); });
        return static_cast<std::size_t>(found);
    }
    /// A trial, the best at place 0.
    s3cmtf_trial trial(std::size_t place) const
    {
        s3cmtf_trial found{};
        found.size = sizeof found;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_tune_get_trial(handle_.get(), place, &found, e); });
        return found;
    }
    options options_of(std::size_t place) const
    {
        s3cmtf_options *made = nullptr;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_tune_get_options(handle_.get(), place, &made, e); });
        return options(made);
    }
    /// Lines name=value.
    std::string text(std::size_t place) const
    {
        std::uint64_t needed = 0;
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_tune_get_text(handle_.get(), place, nullptr, 0, &needed, e);
        });
        std::string lines(static_cast<std::size_t>(needed), '\0');
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_tune_get_text(handle_.get(), place, &lines[0], needed, nullptr, e);
        });
        lines.pop_back(); // the NUL
        return lines;
    }
    s3cmtf_tune *get() const noexcept { return handle_.get(); }

private:
    struct state {
        callback each;
        std::exception_ptr thrown;
    };
    static std::int32_t call(const s3cmtf_trial *trial, void *user) noexcept
    {
        auto *called = static_cast<state *>(user);
        if (called->thrown) return 1;
        try {
            return called->each(*trial) ? 0 : 1;
        } catch (...) {
            called->thrown = std::current_exception();
            return 1;
        }
    }
    template <class Set, class... Values> tune &set(Set set_value, Values... values)
    {
        detail::check([&](s3cmtf_error *e) { return set_value(handle_.get(), values..., e); });
        return *this;
    }
    detail::owned<s3cmtf_tune, s3cmtf_tune_free> handle_;
};

} // namespace s3cmtf

#endif
