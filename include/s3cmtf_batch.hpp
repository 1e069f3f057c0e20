// s3cmtf for C++17: many jobs side by side. The rules are those of s3cmtf.hpp, which this adds to.
#ifndef S3CMTF_BATCH_HPP
#define S3CMTF_BATCH_HPP

#include "s3cmtf.hpp"

namespace s3cmtf {

/// What became of a job. See s3cmtf_job.
struct job {
    std::string id, reason, message, output, log;
    std::int32_t status = 0, kind = 0;
    std::uint64_t line = 0, threads = 0, memory = 0, epochs = 0, resumed_from = 0, predictions = 0;
    double seconds = 0, train_rmse = 0, test_rmse = 0, valid_rmse = 0;

    job() = default;
    explicit job(const s3cmtf_job &from)
        : id(from.id), reason(from.reason), message(from.message), output(from.output), log(from.log),
          status(from.status), kind(from.kind), line(from.line), threads(from.threads), memory(from.memory),
          epochs(from.epochs), resumed_from(from.resumed_from), predictions(from.predictions), seconds(from.seconds),
          train_rmse(from.train_rmse), test_rmse(from.test_rmse), valid_rmse(from.valid_rmse)
    {
    }
    /// Whether its output is there.
    bool done() const { return status == S3CMTF_JOB_DONE || status == S3CMTF_JOB_SKIPPED; }
};

/// Many fits and predictions, each a line of JSON. See s3cmtf_batch.
class batch {
public:
    /// Returns whether to go on. What it throws cancels the batch and comes out of run().
    using callback = std::function<bool(const job &)>;

    explicit batch(const std::string &folder)
    {
        s3cmtf_batch *made = nullptr;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_batch_new(folder.c_str(), &made, e); });
        handle_.reset(made);
    }
    batch &add(const std::string &lines) { return set(s3cmtf_batch_add, lines.c_str()); }
    batch &add_file(const std::string &path) { return set(s3cmtf_batch_add_file, path.c_str()); }
    batch &threads(std::uint64_t count) { return set(s3cmtf_batch_set_threads, count); }
    batch &job_threads(std::uint64_t count) { return set(s3cmtf_batch_set_job_threads, count); }
    batch &memory(std::uint64_t bytes) { return set(s3cmtf_batch_set_memory, bytes); }
    batch &cancelled_by(const cancel_token &token) { return set(s3cmtf_batch_set_cancel, token.get()); }

    /// Runs the jobs and returns what became of them, in the order of their lines.
    std::vector<job> run(callback each = nullptr)
    {
        state called{std::move(each), nullptr};
        detail::check([&](s3cmtf_error *e) {
            return s3cmtf_batch_set_callback(handle_.get(), called.each ? call : nullptr, &called, e);
        });
        const forget at_end{handle_.get()};
        detail::check([&](s3cmtf_error *e) { return s3cmtf_batch_run(handle_.get(), nullptr, e); });
        if (called.thrown) std::rethrow_exception(called.thrown);
        std::uint64_t count = 0;
        detail::check([&](s3cmtf_error *e) { return s3cmtf_batch_get_count(handle_.get(), &count, e); });
        std::vector<job> jobs;
        for (std::uint64_t i = 0; i < count; i++) {
            s3cmtf_job one{};
            one.size = sizeof one;
            detail::check([&](s3cmtf_error *e) { return s3cmtf_batch_get_job(handle_.get(), i, &one, e); });
            jobs.emplace_back(one);
        }
        return jobs;
    }
    s3cmtf_batch *get() const noexcept { return handle_.get(); }

private:
    struct state {
        callback each;
        std::exception_ptr thrown;
    };
    /// A batch may be run again; its callback is about to go.
    struct forget {
        s3cmtf_batch *from;
        ~forget() { static_cast<void>(s3cmtf_batch_set_callback(from, nullptr, nullptr, nullptr) == S3CMTF_OK); }
    };
    static std::int32_t call(const s3cmtf_job *one, void *user) noexcept
    {
        auto *called = static_cast<state *>(user);
        if (called->thrown) return 1;
        try {
            return called->each(job(*one)) ? 0 : 1;
        } catch (...) {
            called->thrown = std::current_exception();
            return 1;
        }
    }
    template <class Set, class... Values> batch &set(Set set_value, Values... values)
    {
        detail::check([&](s3cmtf_error *e) { return set_value(handle_.get(), values..., e); });
        return *this;
    }
    detail::owned<s3cmtf_batch, s3cmtf_batch_free> handle_;
};

} // namespace s3cmtf

#endif
