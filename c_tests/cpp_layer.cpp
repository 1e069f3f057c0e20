// The C++ layer: every class and function once, ownership, exceptions. The argument is a folder to write to. C++17; what later
// standards add is checked with them.
#include <s3cmtf.hpp>

#include "check.h"

#include <array>
#include <cmath>
#include <fstream>
#include <stdexcept>
#ifdef __has_include
#if __has_include(<version>)
#include <version>
#endif
#endif
#ifdef __cpp_lib_span
#include <span>
#endif

namespace s3 = s3cmtf;

template <class T> constexpr bool owns =
    !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T> && std::is_nothrow_move_constructible_v<T> &&
    std::is_nothrow_move_assignable_v<T>;
static_assert(owns<s3::cancel_token> && owns<s3::text_format> && owns<s3::coo> && owns<s3::options>);
static_assert(owns<s3::problem> && owns<s3::model> && owns<s3::fit> && owns<s3::tune>);
static_assert(owns<s3::concepts> && owns<s3::clusters> && owns<s3::names>);
static_assert(std::is_base_of_v<s3::error, s3::cancelled> && std::is_base_of_v<std::runtime_error, s3::error>);
// A span of items that may change is not made from items that may not, nor from a temporary container.
static_assert(!std::is_constructible_v<s3::span<float>, const std::vector<float> &>);
static_assert(!std::is_constructible_v<s3::span<float>, std::vector<float>>);
static_assert(!std::is_constructible_v<s3::span<const float>, std::vector<double> &>);
static_assert(std::is_convertible_v<std::vector<float>, s3::span<const float>>);
static_assert(std::is_convertible_v<s3::span<float>, s3::span<const float>>);

template <class Function> static std::int32_t status_of(Function function)
{
    try {
        function();
    } catch (const s3::error &e) {
        CHECK(std::string(e.what()).find(std::string(s3cmtf_status_name(e.status())) + ": ") == 0);
        CHECK((dynamic_cast<const s3::cancelled *>(&e) != nullptr) == (e.status() == S3CMTF_CANCELLED));
        return e.status();
    }
    return S3CMTF_OK;
}

/// Checks that an object survives a move to itself, and that moves leave it without a handle.
template <class Object> static Object moved(Object &object)
{
    const void *const handle = object.get();
    Object &same = object;
    object = std::move(same);
    CHECK(object && std::as_const(object).get() == handle);
    Object other(std::move(object));
    CHECK(!object && object.get() == nullptr && object.release() == nullptr && other.get() == handle);
    object = std::move(other);
    CHECK(object && !other);
    return std::move(object);
}

static double sum(s3::span<const float> items)
{
    double total = 0;
    for (const float item : items) total += static_cast<double>(item);
    return total;
}

static void spans()
{
    float c_array[] = {1, 2, 3};
    std::vector<float> vector(c_array, c_array + 3);
    const std::vector<float> const_vector = vector;
    std::array<float, 3> array = {1, 2, 3};
    const std::array<const float, 3> const_array = {1, 2, 3};
    CHECK(sum(c_array) == 6 && sum(vector) == 6 && sum(const_vector) == 6 && sum(array) == 6 && sum(const_array) == 6);
    CHECK(sum({c_array, 2}) == 3 && sum({1, 2, 3}) == 6 && sum({}) == 0 && sum(std::vector<float>(2, 4.0f)) == 8);
    s3::span<float> changeable(vector);
    changeable[1] = 5;
    CHECK(vector[1] == 5 && sum(changeable) == 9 && changeable.size() == 3 && changeable.data() == vector.data());
    s3::span deduced(c_array);
    s3::span also(const_vector);
    static_assert(std::is_same_v<decltype(deduced), s3::span<float>> && std::is_same_v<decltype(also), s3::span<const float>>);
    CHECK(deduced.end() - deduced.begin() == 3 && also.size() == 3 && s3::span<float>().empty() && s3::span<float>().data() == nullptr);
#ifdef __cpp_lib_span
    CHECK(sum(std::span<float>(vector)) == 9 && sum(std::span<const float, 3>(c_array)) == 6);
    const std::span<const float> standard = s3::span<const float>(vector);
    CHECK(standard.data() == vector.data() && standard.size() == 3);
#endif
}

static void library()
{
    CHECK(s3::version() == s3cmtf_version() && s3::build_info().find(s3::version()) != std::string_view::npos);
    CHECK(s3::version_number() == S3CMTF_VERSION_NUMBER);
    const auto kernels = s3::kernels();
    CHECK(kernels.size() == 4 && kernels[0].name == "scalar" && kernels[0].available);
    CHECK(kernels[static_cast<std::size_t>(s3::best_kernel())].available && kernels[3].kernel == S3CMTF_KERNEL_AVX512);
    const auto table = s3::option_table();
    CHECK(table.size() == s3cmtf_option_count() && table[0].help.size() > 10 && !table[0].default_value.empty());
    bool found = false;
    for (const auto &option : table)
        if (option.name == "epochs")
            found = option.type == S3CMTF_OPTION_INTEGER && !option.min.empty() && option.choices.empty();
    CHECK(found);
    const auto presets = s3::presets();
    CHECK(presets.size() > 1 && std::count(presets.begin(), presets.end(), "paper") == 1);

    s3::cancel_token token;
    CHECK(!token.requested());
    token.request();
    CHECK(token.requested());
    token.reset();
    CHECK(!token.requested());
    token = moved(token);
    const s3::cancel_token other = std::move(token);
    token.request(); // does nothing
    CHECK(!token.requested() && !other.requested());

    s3::options options;
    options.set("rank", 3).set("eta", 0.005).set("threads", "2").set("nonneg", false).parse("epochs=6 lambda_reg=0.1");
    CHECK(options.value("rank") == "3" && options.value("nonneg") == "false" && options.value("epochs") == "6");
    CHECK(options.set_ranks({2, 3, 4}).value("rank") == "2,3,4");
    options.set("rank", std::string("3")).set("eta", 0.25f).set("epochs", std::uint64_t{7});
    CHECK(options.value("eta") == "0.25" && options.value("epochs") == "7");
    CHECK(status_of([&] { options.set("rnak", 3); }) == S3CMTF_BAD_ARGUMENT);
    CHECK(status_of([&] { options.set("epochs", -1); }) == S3CMTF_BAD_ARGUMENT);
    CHECK(status_of([&] { options.parse("rank=4 epochs=none"); }) == S3CMTF_BAD_ARGUMENT && options.value("rank") == "3");
    CHECK(status_of([&] { static_cast<void>(options.value("rnak")); }) == S3CMTF_BAD_ARGUMENT);
    CHECK(status_of([] { s3::options("no such preset"); }) == S3CMTF_BAD_ARGUMENT);
    CHECK(s3::options("paper").value("rank") == s3::options(std::string("paper")).value("rank"));
    s3::options kept = moved(options);
    CHECK(kept.value("eta") == "0.25" && status_of([&] { options.set("rank", 3); }) == S3CMTF_NULL_ARGUMENT);
    s3::options adopted(kept.release());
    CHECK(!kept && adopted.value("eta") == "0.25");
}

/// The planted data in the containers of C++.
struct sample {
    planted data;
    std::vector<std::uint64_t> records;
    std::vector<double> doubles;
    sample()
    {
        plant(&data);
        for (int i = 0; i < ENTRIES; i++) {
            records.insert(records.end(), {data.user[i] + 1u, data.film[i] + 1u, data.month[i] + 1u});
            doubles.push_back(static_cast<double>(data.stars[i]));
        }
    }
    s3::cells where() const { return s3::cells::columns(data.user, data.film, data.month); }
    s3::coo tensor() const { return s3::coo(s3::entries(where(), data.stars).dims(DIMS)); }
    s3::coo genres() const
    {
        return s3::coo(s3::entries(s3::cells::columns(data.genre_film, data.genre), data.one).dims(GENRE_DIMS));
    }
    s3::problem problem() const
    {
        s3::coupling how;
        how.weight = 1;
        s3::problem made(tensor());
        made.add_matrix(1, genres(), how);
        return made;
    }
};

static void data(const sample &given, const std::string &folder)
{
    const planted &data = given.data;
    // Copies of any type and layout, and views, have the same entries.
    s3::coo tensor = given.tensor();
    const s3::coo again(s3::entries(s3::cells::records(given.records, 3).one_based(), given.doubles));
    const std::vector<s3::span<const std::uint32_t>> columns = {data.user, data.film, data.month};
    const s3::coo view = s3::coo::view(s3::entries(s3::cells::columns(columns), data.stars).dims({USERS, FILMS, MONTHS}));
    CHECK(tensor.count() == ENTRIES && tensor.order() == 3 && again.dims() == tensor.dims() && view.dims()[1] == FILMS);
    for (std::size_t n = 0; n < 3; n++)
        for (std::size_t i = 0; i < ENTRIES; i++)
            CHECK(again.indices(n)[i] == columns[n][i] && view.indices(n).data() == columns[n].data());
    CHECK(again.info().value_type == S3CMTF_F64 && view.info().value_type == S3CMTF_F32 && view.info().weight_type == 0);
    CHECK(view.values<float>().data() == data.stars && again.values<double>()[9] == given.doubles[9]);
    CHECK(status_of([&] { view.values<double>(); }) == S3CMTF_BAD_ARGUMENT);
    CHECK(status_of([&] { view.weights<float>(); }) == S3CMTF_BAD_ARGUMENT);
    CHECK(status_of([&] { s3::coo::view(s3::entries(given.where(), data.stars)); }) != S3CMTF_OK); // no dims
    const s3::coo nothing(
        s3::entries(s3::cells::columns(std::vector<std::uint32_t>(), std::vector<std::uint32_t>()), std::vector<float>())
            .dims({2, 3}));
    CHECK(nothing.count() == 0 && std::isnan(nothing.summarize().mean) && nothing.indices(0).empty());

    // Lengths and types are checked.
    const std::vector<std::uint32_t> two = {1, 2}, three = {1, 2, 3};
    const std::vector<std::uint64_t> wide = {1, 2};
    CHECK(s3::cells::columns(two, two).count() == 2 && s3::cells::columns(s3::any_row, s3::any_row).count() == 1);
    CHECK(status_of([&] { s3::cells::columns(two, three); }) == S3CMTF_BAD_ARGUMENT);
    CHECK(status_of([&] { s3::cells::columns(two, wide); }) == S3CMTF_BAD_ARGUMENT);
    CHECK(status_of([&] { s3::cells::records(three, 2); }) == S3CMTF_BAD_ARGUMENT);
    CHECK(status_of([&] { s3::cells::records(three, 0); }) == S3CMTF_BAD_ARGUMENT);
    CHECK(s3::cells::records(three, 3).order() == 3);
    const std::vector<float> values = {1, 2};
    CHECK(status_of([&] { s3::entries(s3::cells::columns(three), values); }) == S3CMTF_BAD_ARGUMENT);
    CHECK(status_of([&] { s3::entries(s3::cells::columns(two), values).dims({3, 3}); }) == S3CMTF_BAD_ARGUMENT);
    CHECK(status_of([&] { s3::coo(s3::entries(s3::cells::columns(two, two), values).dims({2, 2})); }) == S3CMTF_BAD_ENTRY);
    CHECK(s3::entries(s3::cells::columns(two), values).count() == 2);

    // Weights.
    const std::vector<double> weights(ENTRIES, 2.0);
    const s3::coo weighted(s3::entries(given.where(), data.stars).weights(weights));
    CHECK(weighted.info().weight_type == S3CMTF_F64 && weighted.weights<double>()[5] == 2);
    CHECK(tensor.weighted(std::vector<float>(ENTRIES, 3.0f)).info().weight_type == S3CMTF_F32);
    CHECK(status_of([&] { tensor.weighted(values); }) == S3CMTF_BAD_ARGUMENT);
    const s3::coo by = tensor.weighted_by(again);
    CHECK(by.weights<double>()[7] == given.doubles[7]);
    CHECK(status_of([&] { tensor.weighted_by(given.genres()); }) != S3CMTF_OK);

    // Checks and files.
    const auto faults = tensor.check();
    CHECK(faults.out_of_range == 0 && faults.surplus_entries >= faults.duplicate_cells && faults.duplicate_cells > 0);
    const auto summary = tensor.summarize();
    CHECK(summary.min < summary.mean && summary.mean < summary.max && summary.standard_deviation > 0);
    CHECK(summary.rows_used == std::vector<std::uint64_t>({USERS, FILMS, MONTHS}));
    const s3::cancel_token token;
    token.request();
    CHECK(status_of([&] { static_cast<void>(tensor.check(&token)); }) == S3CMTF_CANCELLED);
    const std::string path = folder + "/layer.coo";
    tensor.write(path);
    const s3::coo file = s3::coo::open(path), copied = s3::coo::open(path, s3::open_mode::copied);
    CHECK(file.count() == ENTRIES && copied.values<float>()[3] == data.stars[3]);
    tensor.write(folder + "/layer64.coo", s3::value_format::float64);
    CHECK(s3::coo::open(folder + "/layer64.coo").info().value_type == S3CMTF_F64);
    for (const s3::keep which : {s3::keep::mean, s3::keep::first, s3::keep::last}) {
        const auto fixed = file.fix(folder + "/layer.fixed.coo", which);
        CHECK(fixed.dropped == 0 && fixed.merged == faults.surplus_entries);
    }
    s3::split_request fifth;
    fifth.test_fraction = 0.2;
    file.split(folder + "/layer", fifth);
    const std::size_t random = s3::coo::open(folder + "/layer.test.coo").count();
    CHECK(random > ENTRIES / 10 && random < ENTRIES / 3);
    (fifth.latest = true, fifth.row_mode = 0, fifth.time_mode = 2, fifth.valid_fraction = 0.1);
    file.split(folder + "/late", fifth);
    CHECK(s3::coo::open(folder + "/late.valid.coo").count() > 0 && s3::coo::open(folder + "/late.train.coo").count() > 0);
    s3::convert(path, folder + "/layer.tns");
    CHECK(s3::coo::open(folder + "/layer.tns").count() == ENTRIES);
    CHECK(status_of([] { s3::coo::open("/no/such/file"); }) == S3CMTF_BAD_FILE);

    // Text with names.
    const std::string csv = folder + "/named.csv";
    std::ofstream(csv) << "user;film;stars\nann;heat;5\nbob;alien;3\nann;alien;4\n";
    s3::text_format format;
    format.set("delimiter", ";");
    s3::text_format kept_format = moved(format);
    s3::convert(csv, folder + "/named.coo", &kept_format);
    CHECK(status_of([&] { kept_format.set("delimeter", ";"); }) == S3CMTF_BAD_ARGUMENT);
    const std::string numbers = folder + "/numbers.csv";
    std::ofstream(numbers) << "user;film;stars\n1;2;5\n2;1;3\n";
    CHECK(s3::coo::open(numbers, s3::open_mode::mapped, &kept_format).count() == 2);
    CHECK(status_of([&] { s3::convert(csv, folder + "/other.coo", &format); }) == S3CMTF_NULL_ARGUMENT); // moved from
    std::optional<s3::names> found = s3::names::open_beside(folder + "/named.coo", 1);
    CHECK(found && found->size() == 2);
    s3::names names = moved(*found);
    CHECK(names[names.find("alien")] == "alien" && names[7].empty());
    CHECK(status_of([&] { names.find("aliens"); }) == S3CMTF_BAD_ARGUMENT);
    CHECK(status_of([&] { static_cast<void>(found->size()); }) == S3CMTF_NULL_ARGUMENT);
    CHECK(!s3::names::open_beside(folder + "/none.coo", 0));
    CHECK(status_of([] { s3::names::open("/no/such/file"); }) == S3CMTF_BAD_FILE);
    CHECK(s3::names::open("/dev/null").size() == 0);

    // A moved-from object throws, the other has the entries.
    const s3::coo kept = moved(tensor);
    CHECK(kept.count() == ENTRIES && status_of([&] { static_cast<void>(tensor.count()); }) == S3CMTF_NULL_ARGUMENT);
    CHECK(status_of([&] { s3::problem none(tensor); }) == S3CMTF_NULL_ARGUMENT);
}

static s3::options small()
{
    s3::options made;
    // Nothing is estimated before the first epoch, which takes most of the time under memcheck.
    made.parse("rank=3 eta=0.005 epochs=6 threads=2 clip=true start=identity lambda_reg=0.1 lambda_m=1");
    return made;
}

static bool two_epochs(const s3::progress &p) { return p.epoch < 2; }

static void fits(const sample &given, const std::string &folder)
{
    const s3::coo tensor = given.tensor();
    s3::problem problem = given.problem();
    s3::options options = small();

    std::uint64_t epochs = 0;
    s3::fit fit(problem, options);
    fit.set_test(tensor).set_valid(tensor).set_checkpoint(folder + "/layer.checkpoint");
    const s3::model model = fit.run([&](const s3::progress &p) { epochs += p.event == S3CMTF_EVENT_EPOCH; });
    CHECK(epochs == 6 && fit.progress().state == S3CMTF_FIT_ENDED && fit.progress().stop_reason == S3CMTF_STOP_EPOCHS);
    CHECK(std::fabs(model.evaluate(tensor).clipped_rmse - fit.progress().test_rmse) < 1e-6);
    CHECK(status_of([&] { fit.run(); }) == S3CMTF_BAD_STATE);
    CHECK(s3::fit(problem, options).set_init(model).run().info().epochs == 6);
    CHECK(s3::fit(problem, options).set_resume("/no/such/file").get() != nullptr);
    CHECK(status_of([&] { s3::fit(problem, options).set_resume("/no/such/file").run(); }) == S3CMTF_BAD_FILE);

    // Plans.
    s3::fit planned(problem, options);
    const std::string plan = planned.plan();
    const s3::model followed = s3::fit(problem).set_plan(plan).run();
    CHECK(plan == planned.plan() && followed.plan() == plan && s3::fit(problem, options).run().plan() == plan);
    CHECK(followed.copy_factor(1) == planned.run().copy_factor(1) && followed.info().epochs == 6);
    CHECK(status_of([&] { static_cast<void>(planned.plan()); }) == S3CMTF_BAD_STATE);
    CHECK(status_of([&] { s3::fit(problem).set_plan("{"); }) == S3CMTF_BAD_ARGUMENT);
    CHECK(status_of([&] { s3::fit(s3::problem(tensor)).set_plan(plan).run(); }) == S3CMTF_BAD_ARGUMENT);

    // Callables of all kinds: functions, move-only and constant objects.
    CHECK(s3::fit(problem, options).run(two_epochs).info().epochs == 2);
    const auto owned = [limit = std::make_unique<std::uint64_t>(3)](const s3::progress &p) { return p.epoch < *limit; };
    CHECK(s3::fit(problem, options).run(owned).info().epochs == 3);
    CHECK(s3::fit(problem, options).run(std::function<bool(const s3::progress &)>(two_epochs)).info().epochs == 2);

    // Exceptions of a callback end the fit and leave run(); it is not called again.
    int calls = 0;
    const auto thrown_by = [&](const s3::options &how, auto callback) {
        calls = 0;
        try {
            s3::fit(problem, how).run(callback);
        } catch (const std::domain_error &e) {
            return std::string(e.what());
        } catch (int number) {
            return std::to_string(number);
        }
        return std::string("nothing");
    };
    const auto throws = [&](const s3::progress &) {
        calls++;
        throw std::domain_error("mine");
    };
    CHECK(thrown_by(small(), throws) == "mine" && calls == 1);
    CHECK(thrown_by(small(), [](const s3::progress &) -> bool { throw 42; }) == "42");
    // Also before the first epoch, where the fit itself fails with S3CMTF_CANCELLED.
    s3::options high;
    high.set("rank", 20).set("epochs", 1000);
    CHECK(thrown_by(high, throws) == "mine" && calls == 1);
    // Objects that were moved from do not stand for the defaults or for none.
    const s3::options taken = std::move(high);
    CHECK(status_of([&] { s3::fit(problem, high); }) == S3CMTF_NULL_ARGUMENT);
    s3::coo gone = given.genres();
    const s3::coo genres = std::move(gone);
    CHECK(status_of([&] { s3::fit(problem, options).set_test(gone); }) == S3CMTF_NULL_ARGUMENT);

    // Before the first epoch a token leaves no model.
    const s3::cancel_token token;
    token.request();
    bool was_cancelled = false;
    try {
        s3::fit(problem, options).set_cancel(token).run();
    } catch (const s3::cancelled &e) {
        was_cancelled = e.status() == S3CMTF_CANCELLED;
    }
    CHECK(was_cancelled);

    // In the background.
    token.reset();
    options.set("epochs", 1000000);
    s3::fit started(problem, options);
    started.set_cancel(token);
    started.start();
    s3::fit endless = moved(started);
    while (endless.progress().epoch < 2) CHECK(!endless.wait_for(std::chrono::milliseconds(1)));
    CHECK(!endless.wait_for(std::chrono::seconds(-1)));
    CHECK(status_of([&] { endless.take(); }) == S3CMTF_BAD_STATE);
    token.request();
    endless.wait();
    CHECK(endless.wait_for(std::chrono::hours(1)) && endless.take().order() == 3 && token.requested());
    CHECK(endless.progress().stop_reason == S3CMTF_STOP_CANCELLED);
    CHECK(status_of([&] { started.start(); }) == S3CMTF_NULL_ARGUMENT);
    started.cancel(); // does nothing
    s3::fit other(problem, options);
    other.start();
    while (other.progress().epoch < 1) other.wait_for(std::chrono::milliseconds(1));
    other.cancel();
    other.wait();
    CHECK(other.take().info().epochs > 0);
    // Freed while it runs.
    s3::fit(problem, options).start();

    // Kinds of matrices.
    std::vector<std::uint32_t> film = {0, 1, 2}, next = {1, 2, 0};
    const std::vector<float> ones(3, 1.0f);
    const s3::coo graph(s3::entries(s3::cells::columns(film, next), ones).dims({FILMS, FILMS}));
    s3::coupling full, sampled, similar, automatic;
    (full.kind = s3::matrix_kind::full, full.weight = 1.0, automatic.kind = s3::matrix_kind::automatic);
    (sampled.kind = s3::matrix_kind::sampled, sampled.zeros = 2, sampled.penalty = 0.0, sampled.weight = 1.0);
    (similar.kind = s3::matrix_kind::graph, similar.weight = 0.5);
    s3::problem several = moved(problem);
    several.add_matrix(1, genres, full).add_matrix(1, genres, sampled).add_matrix(1, graph, similar).add_matrix(1, genres, automatic);
    const s3::model coupled = s3::fit(several, small()).run();
    CHECK(coupled.info().matrices == 5 && coupled.matrix_info(0).kind == S3CMTF_MATRIX_OBSERVED);
    CHECK(coupled.matrix_info(2).kind == S3CMTF_MATRIX_SAMPLED && coupled.matrix_info(3).weight == 0.5);
    sampled.zeros = 0;
    CHECK(status_of([&] { several.add_matrix(1, genres, sampled); }) == S3CMTF_BAD_ARGUMENT);
    CHECK(status_of([&] { problem.add_matrix(1, genres); }) == S3CMTF_NULL_ARGUMENT);

    // One call.
    const s3::model quick = s3::fit_entries(s3::entries(given.where(), given.data.stars), "rank=2 epochs=3 algorithm=opt");
    CHECK(quick.info().epochs == 3 && quick.ranks() == std::vector<std::uint64_t>(3, 2));
    CHECK(s3::fit_file(folder + "/layer.coo", "rank=2 epochs=2 algorithm=opt").info().epochs == 2);
    CHECK(s3::fit(s3::problem(tensor)).get() != nullptr);
    CHECK(status_of([&] { s3::fit_file("/no/such/file"); }) == S3CMTF_BAD_FILE);
}

static void searches(const sample &given, const std::string &folder)
{
    const s3::problem problem = given.problem();
    s3::options base = small();
    base.set("lambda_reg", 0.1);
    s3::tune_request how;
    (how.trials = 4, how.rungs = 2, how.fit_threads = 1, how.valid_fraction = 0.2);
    s3::tune search(problem, base, how);
    search.set_range("eta", "0.001..0.01").set_range("rank", "2,3").set_checkpoint(folder + "/layer.tune");
    std::size_t measured = 0;
    const s3::options best = search.run([&](const s3::trial &t) {
        measured += t.total >= t.done && !(t.valid_rmse < t.best_rmse);
        return true;
    });
    CHECK(search.size() == 4 && measured >= 5 && search.trial(0).rungs == 2 && search.trial(0).error == nullptr);
    CHECK(search.trial(0).valid_rmse <= search.trial(1).valid_rmse || search.trial(1).rungs < 2);
    CHECK(("\n" + search.trial_text(0)).find("\nrank=" + best.value("rank") + "\n") != std::string::npos);
    CHECK(search.trial_options(0).value("eta") == best.value("eta"));
    CHECK(status_of([&] { search.run(); }) == S3CMTF_BAD_STATE);
    const s3::tune kept = moved(search);
    CHECK(kept.size() == 4 && status_of([&] { search.run(); }) == S3CMTF_NULL_ARGUMENT);

    bool thrown = false;
    s3::tune stopped(problem, base, how);
    try {
        stopped.run([](const s3::trial &) { throw std::runtime_error("enough"); });
    } catch (const s3::error &) {
    } catch (const std::runtime_error &e) {
        thrown = std::string(e.what()) == "enough";
    }
    CHECK(thrown);
    const s3::coo valid = given.tensor();
    how.valid = &valid;
    const s3::cancel_token token;
    token.request();
    CHECK(status_of([&] { s3::tune(problem, base, how).set_cancel(token).run(); }) == S3CMTF_CANCELLED);
    CHECK(status_of([&] { s3::tune(problem, base, how).set_resume("/no/such/file").run(); }) != S3CMTF_OK);
    CHECK(status_of([&] { s3::tune(problem).set_range("rnak", "2,3"); }) == S3CMTF_BAD_ARGUMENT);
}

static void models(const sample &given, const std::string &folder)
{
    const planted &data = given.data;
    const s3::coo tensor = given.tensor();
    const s3::cells where = given.where();
    s3::model fitted = s3::fit(given.problem(), small()).run();
    const s3::model model = moved(fitted);
    CHECK(status_of([&] { static_cast<void>(fitted.info()); }) == S3CMTF_NULL_ARGUMENT);

    const auto info = model.info();
    CHECK(info.kind == S3CMTF_MODEL_TUCKER && info.order == 3 && info.matrices == 1 && info.epochs == 6);
    CHECK(info.samples == 0 && info.min_value < info.mean && info.mean < info.max_value);
    CHECK(model.order() == 3 && model.mode(0).rows == USERS && model.epoch(5).epoch == 6);
    CHECK(model.dims() == std::vector<std::uint64_t>({USERS, FILMS, MONTHS}));
    CHECK(model.ranks() == std::vector<std::uint64_t>(3, 3));
    const auto matrix = model.matrix_info(0);
    CHECK(matrix.mode == 1 && matrix.columns == GENRES && matrix.rows == GENRES && matrix.weight == 1);
    CHECK(model.options().value("rank") == "3" && model.record().find("reason=epochs\n") != std::string::npos);
    CHECK(status_of([&] { static_cast<void>(model.mode(3)); }) == S3CMTF_BAD_ARGUMENT);

    // Predictions do not depend on how cells are given, and are those of the formula.
    s3::predict_request unclipped;
    (unclipped.clipping = s3::clip::off, unclipped.threads = 1);
    const auto a = model.predict(where, unclipped);
    CHECK(a == model.predict(s3::cells::records(given.records, 3).one_based(), unclipped));
    CHECK(a == model.predict(tensor, unclipped) && model.predict<float>(where, unclipped)[5] == static_cast<float>(a[5]));
    const auto core = model.copy_core();
    const auto f0 = model.factor(0), f1 = model.factor(1), f2 = model.factor(2);
    CHECK(f0.rows() == USERS && f1.columns() == 3 && f2[0].size() == 3 && f0.stride() >= 3 && f0.data() == f0[0].data());
    for (std::size_t i = 0; i < 50; i++) {
        double expected = info.mean + model.copy_biases(0)[data.user[i]] + model.copy_biases(1)[data.film[i]];
        expected += static_cast<double>(model.biases(2)[data.month[i]]);
        for (std::size_t j = 0; j < 27; j++)
            expected += core[j] * static_cast<double>(f0(data.user[i], j / 9) * f1(data.film[i], j / 3 % 3) *
                                                      f2(data.month[i], j % 3));
        CHECK(std::fabs(expected - a[i]) < 1e-4);
    }
    const std::vector<std::uint64_t> cell = {data.user[4], data.film[4], data.month[4]};
    CHECK(model.predict_cell(cell) == model.predict(where)[4]);
    CHECK(model.predict_cell({1, 2, 3}) >= info.min_value);
    CHECK(status_of([&] { model.predict_cell({1, 2}); }) == S3CMTF_BAD_ARGUMENT);
    CHECK(status_of([&] { model.predict(s3::cells::columns(data.user)); }) == S3CMTF_BAD_ARGUMENT);
    const std::vector<std::uint32_t> no_index;
    CHECK(model.predict(s3::cells::columns(no_index, no_index, no_index)).empty());
    const s3::cancel_token token;
    token.request();
    unclipped.cancel = &token;
    CHECK(status_of([&] { model.predict(where, unclipped); }) == S3CMTF_CANCELLED);
    const auto evaluation = model.evaluate(tensor, 1);
    CHECK(status_of([&] { model.evaluate_binary(tensor); }) == S3CMTF_BAD_ARGUMENT); // more than two values
    std::vector<float> likes;
    for (const float stars : data.stars) likes.push_back(stars > static_cast<float>(info.mean) ? 1.0F : 0.0F);
    const auto binary = model.evaluate_binary(s3::coo(s3::entries(where, likes)), 1);
    CHECK(binary.entries == ENTRIES && binary.low == 0 && binary.high == 1 && binary.auc > 0.8 && binary.auc <= 1);
    CHECK(binary.high_fraction > 0 && binary.high_fraction < 1 && binary.log_loss > 0);
    CHECK(evaluation.entries == ENTRIES && evaluation.mae < evaluation.rmse && evaluation.clipped_rmse <= evaluation.rmse);

    // Views and copies.
    CHECK(model.row_indices(0)[7] == 7 && model.matrix_indices(0)[4] == 4);
    CHECK(model.offsets(0).size() == GENRES && model.copy_offsets<float>(0)[4] == model.offsets(0)[4]);
    const auto rows = model.copy_factor<float>(0);
    const auto columns = model.copy_matrix<float>(0, s3::layout::column_major);
    CHECK(rows[3 * 7 + 1] == f0(7, 1) && columns[GENRES + 2] == model.matrix(0)(2, 1));
    CHECK(model.copy_row(0, 7)[1] == static_cast<double>(f0(7, 1)));
    CHECK(model.core().rows() == 9 && static_cast<double>(model.core()(4, 2)) == core[4 * 3 + 2]);
    CHECK(model.copy_core(s3::layout::column_major)[1] == core[9]);
    const s3::model cp = s3::fit(given.problem(), small().set("model", "cp")).run();
    CHECK(cp.info().kind == S3CMTF_MODEL_CP && cp.core().rows() == 1 && cp.core().columns() == 3 && cp.copy_core().size() == 3);

    model.export_to(folder + "/layer.exported");
    model.save(folder + "/layer.s3m");
    unclipped.cancel = nullptr;
    for (const auto mode : {s3::open_mode::mapped, s3::open_mode::copied})
        CHECK(s3::model::load(folder + "/layer.s3m", mode).predict(where, unclipped) == a);
    CHECK(status_of([] { s3::model::load("/no/such/file"); }) == S3CMTF_BAD_FILE);
    const std::vector<double> one_quantile = {0.5};
    CHECK(status_of([&] { model.predict_distribution(where, one_quantile); }) == S3CMTF_BAD_ARGUMENT); // no samples
}

static void discovery(const sample &given)
{
    const s3::coo tensor = given.tensor();
    const s3::cells where = given.where();
    s3::options options;
    options.parse("algorithm=gibbs rank=3 samples=5");
    const s3::model model = s3::fit(given.problem(), options).run();
    s3::predict_request unclipped;
    unclipped.clipping = s3::clip::off;

    // Posterior samples have deviations and quantiles.
    const auto spread = model.predict_distribution(tensor, {0.05, 0.95}, unclipped);
    CHECK(model.info().samples == 5 && spread.quantiles.size() == 2 * ENTRIES && spread.deviations[1] > 0);
    CHECK(spread.quantiles[2] < spread.predictions[1] && spread.predictions[1] < spread.quantiles[3]);
    CHECK(model.predict_distribution(where, {0.05, 0.95}, unclipped).quantiles == spread.quantiles);
    CHECK(spread.predictions == model.predict(where, unclipped));
    const s3::distribution_scores scores = model.evaluate_distributions(tensor);
    CHECK(scores.entries == ENTRIES && scores.crps > 0 && scores.coverage_50 < scores.coverage_90);
    CHECK(model.predict_distribution<float>(where).quantiles.empty());

    // Rows that come later.
    const std::vector<std::uint32_t> late_film = {FILMS}, late_genre = {2};
    const s3::coo late(s3::entries(s3::cells::columns(late_film, late_genre), std::vector<float>(1, 1.0f)));
    s3::fold_in_request film;
    film.matrices = {{0, &late}};
    const auto more = model.fold_in(1, film);
    CHECK(more.added == 1 && more.replaced == 0 && more.folded.dims()[1] == FILMS + 1);
    CHECK(more.folded.predict(where) == model.predict(where));
    s3::fold_in_request users;
    users.tensor = &tensor;
    CHECK(status_of([&] { model.fold_in(0, users); }) == S3CMTF_BAD_ARGUMENT);
    users.replace = true;
    CHECK(model.fold_in(0, users).replaced == USERS);
    film.matrices[0].entries = nullptr;
    CHECK(status_of([&] { model.fold_in(1, film); }) == S3CMTF_NULL_ARGUMENT);

    // Lists of rows.
    const std::vector<std::uint64_t> two_users = {3, 4}, user = {3};
    const auto queries = s3::cells::columns(two_users, s3::any_row, s3::any_row);
    const auto query = s3::cells::columns(user, s3::any_row, s3::any_row);
    s3::recommend_request five;
    five.top = 5;
    const auto lists = model.recommend(1, queries, five);
    CHECK(lists.size() == 2 && lists[1].size() == 5 && lists[1][0].score >= lists[1][4].score);
    CHECK(model.recommend(1, query)[0].size() == 10);
    five.candidates.emplace();
    CHECK(model.recommend(1, query, five)[0].empty());
    five.candidates = {2, 7};
    (five.exclude_rows = {2}, five.quantile = 0.1, five.exclude = &late);
    CHECK(status_of([&] { model.recommend(1, query, five); }) == S3CMTF_BAD_ARGUMENT); // not of the order of the model
    five.exclude = nullptr;
    const auto one = model.recommend(1, query, five);
    CHECK(one[0].size() == 1 && one[0][0].row == 7);
    const std::vector<std::uint32_t> from_one = {4};
    (five.candidates = {3, 8}, five.exclude_rows = {3});
    const auto counted = model.recommend(1, s3::cells::columns(from_one, s3::any_row, s3::any_row).one_based(), five);
    CHECK(counted[0].size() == 1 && counted[0][0].row == 8 && counted[0][0].score == one[0][0].score);
    (five.exclude = &tensor, five.exclude_mode = 0);
    CHECK(model.recommend(1, query, five)[0].size() <= 2);
    CHECK(status_of([&] { model.recommend(9, query); }) == S3CMTF_BAD_ARGUMENT);
    CHECK(status_of([&] { model.recommend(1, s3::cells::columns(user)); }) == S3CMTF_BAD_ARGUMENT);
    s3::similar_request three;
    three.top = 3;
    CHECK(model.similar(1, {0, 1}, three)[1].size() == 3 && model.similar(1, user)[0].size() == 10);
    three.top = SIZE_MAX;
    CHECK(model.similar(1, {0, 1}, three)[1].size() == FILMS - 1);
    CHECK(status_of([&] { model.similar(9, user); }) == S3CMTF_BAD_ARGUMENT);
    CHECK(model.evaluate_ranking(tensor, tensor, 1, 0).users == 0); // no test entry that is not in the training data
    s3::ranking_request relevant;
    (relevant.min_relevant_value = 1.0, relevant.length = 3);
    const s3::coo few(s3::entries(s3::cells::columns(std::vector<std::uint32_t>{0}, std::vector<std::uint32_t>{0},
                                                     std::vector<std::uint32_t>{0}), std::vector<float>{1}).dims(DIMS));
    const auto ranking = model.evaluate_ranking(tensor, few, 1, 0, relevant);
    CHECK(ranking.users == USERS && ranking.hit_rate > 0 && ranking.recall <= 1 && ranking.popularity_ndcg <= 1);

    // Concepts.
    s3::concepts_request described;
    (described.top = 4, described.given = {{0, 3}});
    s3::concepts all(model, 1, described);
    const s3::concepts concepts = moved(all);
    CHECK(status_of([&] { static_cast<void>(all.size()); }) == S3CMTF_NULL_ARGUMENT);
    CHECK(concepts.size() == 3 && concepts.at(0).strength >= concepts.at(2).strength && concepts.at(0).effect >= 0);
    const auto largest = concepts.rows(0, s3::extreme::largest), smallest = concepts.rows(0, s3::extreme::smallest);
    CHECK(largest.size() == 4 && smallest.size() == 4 && largest[0].score >= smallest[0].score);
    const auto with = concepts.columns(0, s3::extreme::largest), against = concepts.columns(0, s3::extreme::smallest);
    CHECK(with.size() + against.size() > 0 && with.size() == concepts.at(0).largest_columns);
    for (const auto &column : with) CHECK(column.matrix == 0 && column.column < GENRES && std::isfinite(column.share));
    const auto profile = concepts.profile();
    CHECK(profile.mode == 2 && profile.columns == 3 && profile.numbers.size() == 9);
    CHECK(s3::concepts(model, 1).profile().numbers.empty() && s3::concepts(model, 1).at(0).largest_rows == 10);
    described.given = {{1, 3}};
    CHECK(status_of([&] { s3::concepts(model, 1, described); }) == S3CMTF_BAD_ARGUMENT);
    CHECK(status_of([&] { static_cast<void>(concepts.at(3)); }) == S3CMTF_BAD_ARGUMENT);

    // Clusters.
    const s3::coo genres = given.genres();
    s3::clusters_request groups;
    (groups.k = 3, groups.max_k = 4, groups.restarts = 2, groups.references = 2, groups.matrices = {&late});
    CHECK(status_of([&] { s3::clusters(model, 1, groups); }) == S3CMTF_BAD_ARGUMENT); // more films than the model
    groups.matrices = {&genres};
    s3::clusters made(model, 1, groups);
    const s3::clusters clusters = moved(made);
    CHECK(status_of([&] { static_cast<void>(made.size()); }) == S3CMTF_NULL_ARGUMENT);
    const auto info = clusters.info();
    CHECK(clusters.size() == 3 && info.rows == FILMS && info.explained_variance > 0 && info.curve_rows == FILMS);
    const auto gaps = clusters.gaps();
    CHECK(gaps.size() == 4 && gaps[3].clusters == 4);
    CHECK(std::fabs(gaps[3].log_reference - gaps[3].log_within - gaps[3].gap) < 1e-12);
    CHECK(clusters.information().size() == 1 && clusters.at(0).rows >= clusters.at(2).rows);
    const auto rows = clusters.rows();
    CHECK(rows.size() == FILMS && rows[5].row == 5 && rows[5].cluster < 3);
    for (std::size_t c = 0; c < 3; c++) {
        const auto members = clusters.members(c);
        CHECK(!members.empty() && members[0].score <= members.back().score && rows[members[0].row].cluster == c);
        CHECK(clusters.centre(c).size() == 3 && clusters.labels(c).size() == clusters.at(c).labels);
        for (const auto &label : clusters.labels(c))
            CHECK(label.log_odds > 0 && std::fabs(std::pow(10.0, label.log10_p_value) / label.p_value - 1) < 1e-9);
    }
    (groups.max_k = 0, groups.distances = s3::space::columns);
    CHECK(s3::clusters(model, 1, groups).gaps().empty());
    CHECK(status_of([&] { clusters.members(3); }) == S3CMTF_BAD_ARGUMENT);

#if __cplusplus >= 202002L
    // Requests by designated initializers.
    CHECK(model.recommend(1, query, {.top = 5, .exclude_rows = {7}})[0].size() == 5);
    CHECK(model.predict(where, {.clipping = s3::clip::off}) == spread.predictions);
    CHECK(s3::concepts(model, 1, {.top = 2}).at(0).largest_rows == 2 && s3::clusters(model, 1, {.k = 2}).size() == 2);
    CHECK(model.fold_in(1, {.matrices = {{.number = 0, .entries = &late}}}).added == 1);
    CHECK(model.evaluate_ranking(tensor, few, 1, 0, {.length = 3, .min_relevant_value = 1.0}).users == USERS);
    CHECK(s3::problem(tensor).add_matrix(1, genres, {.weight = 0.5, .penalty = 0.1}).get() != nullptr);
#endif
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    const std::string folder = argv[1];
    static const sample given;
    try {
        spans();
        library();
        data(given, folder);
        fits(given, folder);
        searches(given, folder);
        models(given, folder);
        discovery(given);
    } catch (const std::exception &e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
    std::puts("ok");
    return 0;
}
