// The C++ layer: owning, moving, throwing. The argument is a folder to write to.
#include <cmath>
#include <s3cmtf_discover.hpp>
#include <s3cmtf_tune.hpp>

#include "check.h"

#include <stdexcept>

namespace s3 = s3cmtf;

static_assert(!std::is_copy_constructible_v<s3::coo> && std::is_nothrow_move_constructible_v<s3::coo>);
static_assert(!std::is_copy_constructible_v<s3::model> && std::is_nothrow_move_constructible_v<s3::model>);
static_assert(!std::is_copy_constructible_v<s3::fit> && std::is_nothrow_move_constructible_v<s3::fit>);

template <class Function> static std::int32_t status_of(Function function)
{
    try {
        function();
    } catch (const s3::error &e) {
        CHECK(std::string(e.what()).find(s3cmtf_status_name(e.status())) == 0);
        return e.status();
    }
    return S3CMTF_OK;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    const std::string folder = argv[1];
    static planted data;
    plant(&data);
    const std::vector<s3::span<const std::uint32_t>> columns = {data.user, data.film, data.month};
    const s3::span<const float> stars(data.stars);
    const std::vector<std::uint64_t> dims(DIMS, DIMS + 3);
    CHECK(s3::version() == s3cmtf_version() && s3::build_info().find(s3::version()) != std::string::npos);
    const auto kernels = s3::kernels();
    CHECK(kernels.size() == 4 && kernels[0].name == "scalar" && kernels[0].available);
    CHECK(kernels[static_cast<std::size_t>(s3cmtf_kernel_best())].available);
    CHECK(s3::option_table().size() == s3cmtf_option_count() && s3::option_table()[0].help.size() > 10);
    CHECK(s3::presets().size() > 1);

    // Copies of any width and layout, and views, hold the same.
    const auto where = s3::cells<std::uint32_t>::columns(columns);
    s3::coo tensor = s3::coo::copy(where, stars, dims);
    std::vector<std::uint64_t> records;
    std::vector<double> doubles;
    for (int i = 0; i < ENTRIES; i++) {
        records.insert(records.end(), {data.user[i] + 1u, data.film[i] + 1u, data.month[i] + 1u});
        doubles.push_back(static_cast<double>(data.stars[i]));
    }
    const s3::span<const std::uint64_t> all_records(records);
    const auto from_records = s3::cells<std::uint64_t>::records(all_records, 3, 1);
    const s3::coo again = s3::coo::copy(from_records, s3::span<const double>(doubles));
    const s3::coo view = s3::coo::view(columns, stars, dims);
    CHECK(tensor.count() == ENTRIES && again.dims() == tensor.dims() && view.dims() == dims);
    for (std::size_t n = 0; n < 3; n++)
        for (std::size_t i = 0; i < ENTRIES; i++)
            CHECK(again.indices(n)[i] == columns[n][i] && view.indices(n)[i] == columns[n][i]);
    const auto found = tensor.check();
    CHECK(found[S3CMTF_CHECK_OUT_OF_RANGE] == 0 && found[S3CMTF_CHECK_SURPLUS] > 0);

    CHECK(view.values<float>().size() == ENTRIES && view.value_type() == S3CMTF_F32);
    CHECK(status_of([&] { view.values<double>(); }) == S3CMTF_BAD_ARGUMENT);
    const auto figures = tensor.summarize();
    CHECK(figures.smallest < figures.mean && figures.mean < figures.largest && figures.rows_used[0] == USERS);
    tensor.write(folder + "/raii.coo");
    const s3::coo file = s3::coo::open(folder + "/raii.coo");
    CHECK(file.fix(folder + "/raii.fixed.coo").merged == found[S3CMTF_CHECK_SURPLUS]);
    file.split(folder + "/raii", 0.2);
    CHECK(s3::coo::open(folder + "/raii.test.coo").count() > 0);
    s3::convert(folder + "/raii.coo", folder + "/raii.tns");
    CHECK(s3::coo::open(folder + "/raii.tns").count() == ENTRIES);

    // Moved objects are where they went.
    s3::coo moved = std::move(tensor);
    s3::problem problem(moved);
    const std::vector<s3::span<const std::uint32_t>> genre_columns = {data.genre_film, data.genre};
    const s3::span<const float> ones(data.one);
    problem.matrix(1, s3::coo::copy(s3::cells<std::uint32_t>::columns(genre_columns), ones,
                                    {GENRE_DIMS[0], GENRE_DIMS[1]}), 1.0);
    const s3::coo films = s3::coo::copy(s3::cells<std::uint32_t>::columns(genre_columns), ones,
                                        {GENRE_DIMS[0], GENRE_DIMS[1]});
    s3::problem(moved).full_matrix(1, films).sampled_matrix(1, films, 2, 0.5);
    s3::options options;
    options.set("rank", 3).set("eta", 0.005).set("epochs", 6).set("threads", "2").set("nonneg", false);
    CHECK(options.get("rank") == "3" && options.get("nonneg") == "false");
    std::uint64_t epochs = 0;
    s3::fit fit(problem, options);
    fit.test(moved).checkpoint(folder + "/raii.checkpoint");
    s3::model model = fit.run([&](const s3cmtf_progress &p) {
        epochs += p.event == S3CMTF_EVENT_EPOCH;
        return true;
    });
    CHECK(epochs == 6 && fit.progress().stop_reason == S3CMTF_STOP_EPOCHS);
    CHECK(std::fabs(model.rmse(moved) - fit.progress().test_rmse) < 1e-6);

    // A search for options, and what its callback throws.
    s3::options base;
    base.set("rank", 3).set("eta", 0.005).set("lambda_reg", 0.1).set("epochs", 6).set("threads", 2);
    s3::tune search(problem, base);
    search.trials(4).rungs(2).fraction(0.2).range("eta", "0.001..0.01").range("rank", "2,3");
    std::size_t measured = 0;
    const s3::options best = search.run([&](const s3cmtf_trial &trial) {
        measured += trial.total >= trial.done && !(trial.valid_rmse < trial.best_rmse);
        return true;
    });
    CHECK(search.count() == 4 && measured >= 5 && search.trial(0).rungs == 2 && search.trial(0).failed == nullptr);
    CHECK(search.trial(0).valid_rmse <= search.trial(1).valid_rmse || search.trial(1).rungs < 2);
    CHECK(search.text(0).find("\nrank=" + best.get("rank") + "\n") != std::string::npos);
    CHECK(status_of([&] { search.run(); }) == S3CMTF_BAD_STATE);
    s3::tune stopped(problem, base);
    bool thrown = false;
    try {
        stopped.trials(3).run([](const s3cmtf_trial &) -> bool { throw std::runtime_error("enough"); });
    } catch (const std::runtime_error &e) {
        thrown = std::string(e.what()) == "enough";
    }
    CHECK(thrown);

    // Predictions are the same however cells are given, and those of the factors.
    const auto a = model.predict(where, false), b = model.predict(from_records, false, 1);
    CHECK(a == b);
    const auto core = model.core();
    const auto f0 = model.factor(0), f1 = model.factor(1), f2 = model.factor(2);
    CHECK(f0.rows() == USERS && f1.rank() == 3 && f2[0].size() == 3 && model.matrix(0).rows() == GENRES);
    CHECK(model.row_indices(0)[7] == 7 && model.ranks() == std::vector<std::uint64_t>(3, 3));
    for (std::size_t i = 0; i < 50; i++) {
        double sum = 0;
        for (std::size_t j = 0; j < 27; j++)
            sum += core[j] * static_cast<double>(f0(data.user[i], j / 9) * f1(data.film[i], j / 3 % 3) *
                                                 f2(data.month[i], j % 3));
        sum += model.mean() + model.biases(0)[data.user[i]] + model.biases(1)[data.film[i]];
        sum += static_cast<double>(model.bias_view(2)[data.month[i]]);
        CHECK(std::fabs(sum - a[i]) < 1e-4);
    }
    const auto offsets = model.offset_view(0);
    CHECK(model.mean() > 0 && offsets.size() == GENRES && model.offsets<float>(0)[4] == offsets[4]);
    const auto errors = model.evaluate(moved);
    CHECK(errors.mae == model.mae(moved) && errors.mae < errors.rmse && model.predict(moved, false) == a);
    CHECK(model.range().first < model.range().second && model.kind() == S3CMTF_MODEL_TUCKER);
    CHECK(model.epochs() == 6 && model.epoch(5).epoch == 6);
    CHECK(model.matrices().size() == 1 && model.matrices()[0].rows == GENRES && model.matrix_indices(0)[4] == 4);
    const auto rows = model.copy_factor<float>(0), columns_of_v = model.copy_matrix<float>(0, S3CMTF_COLUMN_MAJOR);
    CHECK(rows[3 * 7 + 1] == f0(7, 1) && columns_of_v[GENRES + 2] == model.matrix(0)(2, 1));
    CHECK(model.copy_row(0, 7)[1] == static_cast<double>(f0(7, 1)));
    CHECK(model.core_view().rows() == 9 && static_cast<double>(model.core_view()(4, 2)) == core[4 * 3 + 2]);
    model.export_to(folder + "/raii.exported");
    model.save(folder + "/raii.s3m");
    const s3::model loaded = s3::model::load(folder + "/raii.s3m");
    CHECK(loaded.predict(where, false) == a && loaded.fitted_with().get("rank") == "3");

    // A model of samples knows how sure it is; rows come later.
    s3::options draws;
    draws.set("algorithm", "gibbs").set("rank", 3).set("samples", 5);
    const s3::model sure = s3::fit(problem, draws).run();
    const std::vector<double> nine_in_ten = {0.05, 0.95};
    const auto spread = sure.predict_spread(moved, nine_in_ten, false);
    CHECK(sure.samples() == 5 && model.samples() == 0 && spread.quantiles.size() == 2 * a.size());
    CHECK(spread.quantiles[2] < spread.predictions[1] && spread.predictions[1] < spread.quantiles[3]);
    CHECK(spread.deviations[1] > 0 && sure.predict_spread(where, nine_in_ten, false).quantiles == spread.quantiles);
    const std::vector<std::uint32_t> late_film = {FILMS}, late_genre = {2};
    const std::vector<s3::span<const std::uint32_t>> late = {late_film, late_genre};
    const std::vector<float> single = {1};
    const s3::coo what = s3::coo::copy(s3::cells<std::uint32_t>::columns(late), s3::span<const float>(single));
    for (const s3::model *from : {static_cast<const s3::model *>(&model), &sure}) {
        const s3::model more = from->fold_in(1, {{0, &what}});
        CHECK(more.dims()[1] == FILMS + 1 && more.predict(where) == from->predict(where));
        CHECK(status_of([&] { from->fold_in(0, moved); }) == S3CMTF_BAD_ARGUMENT);
        CHECK(from->fold_in(1, moved, {}, true).dims() == from->dims());
    }

    // Lists of rows, and how good they are.
    s3::recommend_options five;
    five.top = 5;
    const auto lists = s3::recommend(sure, 1, {{3, 0, 1}, {4, 0, 1}}, {2}, five);
    CHECK(lists.size() == 2 && lists[1].size() == 5 && lists[1][0].score >= lists[1][4].score);
    five.only_some = true;
    CHECK(s3::recommend(sure, 1, {{3, 0, 1}}, {2}, five)[0].empty());
    (five.only = {2, 7}, five.without = {2}, five.quantile = 0.1, five.exclude = &what);
    CHECK(status_of([&] { s3::recommend(sure, 1, {{3, 0, 1}}, {2}, five); }) == S3CMTF_BAD_ARGUMENT);
    five.exclude = nullptr;
    const auto one = s3::recommend(sure, 1, {{3, 0, 1}}, {2}, five);
    CHECK(one[0].size() == 1 && one[0][0].row == 7);
    CHECK(s3::similar(sure, 1, {0, 1}, 3)[1].size() == 3);
    CHECK(s3::similar(sure, 1, {0, 1}, SIZE_MAX)[1].size() == s3::similar(sure, 1, {1}, FILMS)[0].size());
    CHECK(status_of([&] { s3::similar(sure, 9, {0}); }) == S3CMTF_BAD_ARGUMENT);
    CHECK(status_of([&] { s3::recommend(sure, 9, {{3, 0, 1}}, {2}); }) == S3CMTF_BAD_ARGUMENT);
    CHECK(status_of([&] { s3::recommend(sure, 1, {{3, 0, 1}}, {9}); }) == S3CMTF_BAD_ARGUMENT);
    const auto meant = s3::concepts(sure, 1, {{0, 3}}, 4);
    CHECK(meant.size() == sure.ranks()[1] && meant[0].strength >= meant.back().strength && meant[0].effect >= 0);
    CHECK(meant[0].largest.size() == 4 && meant[0].largest[0].score >= meant[0].smallest[0].score);
    const auto matrix = s3::profile(sure, 1, {{0, 3}});
    CHECK(matrix.mode == 2 && matrix.columns == sure.ranks()[2] && matrix.numbers.size() == meant.size() * matrix.columns);
    CHECK(s3::profile(sure, 1, {}).numbers.empty());
    CHECK(status_of([&] { s3::concepts(sure, 1, {{1, 3}}); }) == S3CMTF_BAD_ARGUMENT);
    const std::vector<std::uint32_t> some_films = {0, 1, 2, 3}, their_genres = {0, 1, 2, 0};
    const std::vector<s3::span<const std::uint32_t>> some = {some_films, their_genres};
    const std::vector<float> four(4, 1.0f);
    const s3::coo kinds = s3::coo::copy(s3::cells<std::uint32_t>::columns(some), s3::span<const float>(four));
    s3::cluster_options three;
    (three.k = 3, three.max_k = 4, three.restarts = 2, three.references = 2, three.matrices = {&what});
    CHECK(status_of([&] { s3::clusters(sure, 1, three); }) == S3CMTF_BAD_ARGUMENT); // a film more than the model has
    three.matrices = {&kinds};
    const auto groups = s3::clusters(sure, 1, three);
    CHECK(groups.clusters.size() == 3 && groups.gaps.size() == 4 && groups.chosen >= 1 && groups.information.size() == 1);
    CHECK(groups.rows.size() == groups.which.size() && groups.clusters[0].size >= groups.clusters[2].size);
    CHECK(groups.log_within.size() == 4 && std::abs(groups.references[3] - groups.log_within[3] - groups.gaps[3]) < 1e-12);
    CHECK(groups.settled == (groups.chosen < 4 || groups.gaps.size() < 2) && groups.curve_rows == groups.rows.size());
    for (const auto &group : groups.clusters) {
        CHECK(group.centre.size() == sure.ranks()[1]);
        for (const auto &label : group.labels)
            CHECK(label.log_odds > 0 && std::abs(std::pow(10.0, label.log10_p) / label.p_value - 1) < 1e-9);
    }
    three.max_k = 0;
    CHECK(s3::clusters(sure, 1, three).gaps.empty());
    CHECK(sure.record().find("reason=epochs\n") != std::string::npos);
    CHECK(s3::evaluate_ranking(sure, moved, moved, 1, 0).users == 0); // nothing that was not trained on
    CHECK(s3::row_names::beside(folder + "/none.coo", 0).count() == 0);
    CHECK(status_of([&] { s3::row_names::open("/no/such/file"); }) == S3CMTF_BAD_FILE);
    CHECK(s3::row_names::open("/dev/null")[3].empty());

    // Failures are exceptions, and exceptions of a callback come through.
    CHECK(status_of([&] { options.set("rnak", 3); }) == S3CMTF_BAD_ARGUMENT);
    CHECK(status_of([&] { options.set("epochs", -1); }) == S3CMTF_BAD_ARGUMENT);
    CHECK(status_of([&] { s3::coo::open("/no/such/file"); }) == S3CMTF_BAD_FILE);
    CHECK(status_of([&] { fit.run(); }) == S3CMTF_BAD_STATE);
    bool came = false;
    try {
        s3::fit(problem, options).run([](const s3cmtf_progress &) -> bool { throw std::domain_error("mine"); });
    } catch (const std::domain_error &e) {
        came = std::string(e.what()) == "mine";
    }
    CHECK(came);
    // Also if the fit fails for it, and nothing is called after it has thrown.
    came = false;
    int calls = 0;
    s3::options high;
    high.set("rank", 20).set("epochs", 1000);
    try {
        s3::fit(problem, high).run([&](const s3cmtf_progress &) -> bool {
            calls++;
            throw std::domain_error("mine");
        });
    } catch (const std::domain_error &) {
        came = true;
    }
    CHECK(came && calls == 1);
    s3::fit warm(problem, options);
    CHECK(warm.get() != nullptr && warm.init(model).run().epochs() == 6);

    // In the background.
    options.set("epochs", 1000000);
    const s3::cancel_token token;
    s3::fit endless(problem, options);
    endless.cancelled_by(token).start();
    while (endless.progress().epoch < 2) CHECK(endless.wait(0.001));
    token.request();
    CHECK(!endless.wait());
    CHECK(endless.take().order() == 3 && token.requested());
    CHECK(endless.progress().stop_reason == S3CMTF_STOP_CANCELLED);
    std::puts("ok");
    return 0;
}
