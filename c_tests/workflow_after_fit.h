/* Part of workflow.c: standard deviations and quantiles of a model with posterior samples, and fold-in of new rows. */

/* Predictions with deviations are those without; quantiles are those of a normal distribution. */
static void deviations_and_quantiles(const s3cmtf_model *model, const s3cmtf_coo *test)
{
    enum { CELLS = 50 };
    const double quantiles[3] = {0.5, 0.05, 0.975}, wrong[1] = {1.0};
    const uint32_t *columns[3];
    const void *modes[3];
    const uint64_t count = coo_info_of(test, error).count;
    CHECK(model_info_of(model, error).samples == 12 && count >= CELLS);
    for (uint64_t n = 0; n < 3; n++) {
        OK(s3cmtf_coo_view_indices(test, n, &columns[n], error));
        modes[n] = columns[n];
    }
    const s3cmtf_indices cells = indices_u32(modes, CELLS);
    double plain[CELLS], mean[CELLS], deviation[CELLS], values[CELLS][3], alone[CELLS];
    float single[CELLS];
    s3cmtf_predict_request request = unclipped(1);
    OK(s3cmtf_model_predict(model, &cells, plain, CELLS, S3CMTF_F64, &request, error));
    request.threads = 2;
    request.deviations = deviation;
    request.quantiles = quantiles;
    request.quantile_count = 3;
    request.quantile_values = values;
    OK(s3cmtf_model_predict(model, &cells, mean, CELLS, S3CMTF_F64, &request, error));
    for (int i = 0; i < CELLS; i++) {
        CHECK(fabs(mean[i] - plain[i]) < 1e-9 && deviation[i] > 0 && fabs(values[i][0] - mean[i]) < 1e-6);
        CHECK(fabs(mean[i] - values[i][1] - 1.6448536 * deviation[i]) < 1e-6);
        CHECK(fabs(values[i][2] - mean[i] - 1.9599640 * deviation[i]) < 1e-6);
    }
    /* Predictions and quantiles are clipped on request. */
    const s3cmtf_model_info info = model_info_of(model, error);
    request.clip = S3CMTF_CLIP_ON;
    OK(s3cmtf_model_predict(model, &cells, alone, CELLS, S3CMTF_F64, &request, error));
    for (int i = 0; i < CELLS; i++) {
        CHECK(alone[i] >= info.min_value && alone[i] <= info.max_value);
        for (int k = 0; k < 3; k++) CHECK(values[i][k] >= info.min_value && values[i][k] <= info.max_value);
    }
    /* Each output alone. */
    request = unclipped(1);
    request.deviations = alone;
    OK(s3cmtf_model_predict(model, &cells, NULL, CELLS, S3CMTF_F64, &request, error));
    CHECK(!memcmp(alone, deviation, sizeof alone));
    request = unclipped(1);
    request.quantiles = quantiles;
    request.quantile_count = 3;
    request.quantile_values = values;
    OK(s3cmtf_model_predict(model, &cells, NULL, CELLS, S3CMTF_F64, &request, error));
    CHECK(fabs(values[7][0] - mean[7]) < 1e-6);
    request = unclipped(1);
    OK(s3cmtf_model_predict(model, &cells, single, CELLS, S3CMTF_F32, &request, error));
    CHECK(fabs((double)single[7] - mean[7]) < 1e-5);
    request.quantiles = wrong;
    request.quantile_count = 1;
    request.quantile_values = values;
    FAILS(S3CMTF_BAD_ARGUMENT, s3cmtf_model_predict(model, &cells, NULL, CELLS, S3CMTF_F64, &request, error));

    double *all = malloc(sizeof *all * count), *both = malloc(sizeof *both * count * 2);
    request = unclipped(2);
    request.deviations = all;
    request.quantiles = quantiles;
    request.quantile_count = 2;
    request.quantile_values = both;
    OK(s3cmtf_model_predict_coo(model, test, NULL, count, S3CMTF_F64, &request, error));
    for (int i = 0; i < CELLS; i++)
        CHECK(all[i] == deviation[i] && fabs(mean[i] - both[2 * i + 1] - 1.6448536 * deviation[i]) < 1e-6);
    FAILS(S3CMTF_BUFFER_TOO_SMALL, s3cmtf_model_predict_coo(model, test, NULL, count - 1, S3CMTF_F64, &request, error));
    free(all);
    free(both);
}

/* Folds in a new user with two ratings, and a new film of a genre. */
static void fold_in_rows(const s3cmtf_model *model, const s3cmtf_coo *test)
{
    uint64_t added = 0, replaced = 9;
    const s3cmtf_model_mode users = mode_of(model, 0, error), films = mode_of(model, 1, error);
    const uint32_t user[2] = {(uint32_t)users.dim, (uint32_t)users.dim}, film[2] = {0, 1}, month[2] = {0, 0};
    const float stars[2] = {5, 5};
    const void *const ratings[3] = {user, film, month};
    s3cmtf_coo *coo = new_coo(entries_f32(3, NULL, indices_u32(ratings, 2), stars), error);
    s3cmtf_model *more = NULL, *again = NULL;
    s3cmtf_fold_in_request request = {.size = sizeof request, .tensor = coo, .threads = 2};
    OK(s3cmtf_model_fold_in(model, 0, &request, &more, &added, &replaced, error));
    CHECK(added == 1 && replaced == 0);
    CHECK(mode_of(more, 0, error).dim == users.dim + 1 && mode_of(more, 0, error).rows == users.rows + 1);
    CHECK(same_predictions(model, more, test));
    const s3cmtf_predict_request plain = unclipped(1);
    double before[2], after[2];
    OK(s3cmtf_model_predict_coo(model, coo, before, 2, S3CMTF_F64, &plain, error));
    OK(s3cmtf_model_predict_coo(more, coo, after, 2, S3CMTF_F64, &plain, error));
    CHECK(fabs(after[0] - 5) + fabs(after[1] - 5) < fabs(before[0] - 5) + fabs(before[1] - 5));
    request.threads = 1;
    FAILS(S3CMTF_BAD_ARGUMENT, s3cmtf_model_fold_in(more, 0, &request, &again, NULL, NULL, error));
    request.replace = 1;
    OK(s3cmtf_model_fold_in(more, 0, &request, &again, &added, &replaced, error));
    CHECK(added == 0 && replaced == 1);
    s3cmtf_model_free(again);

    const uint32_t new_film[1] = {(uint32_t)films.dim + 3}, which[1] = {0};
    const float one[1] = {1};
    const void *const entry[2] = {new_film, which};
    const uint64_t number[1] = {0};
    const double weight_of_fit[1] = {0}, own_weight[1] = {2};
    s3cmtf_coo *genre = new_coo(entries_f32(2, NULL, indices_u32(entry, 1), one), error);
    const s3cmtf_coo *const matrices[1] = {genre};
    s3cmtf_model *of_fit[3] = {NULL, NULL, NULL};
    const double *const weights[3] = {NULL, weight_of_fit, own_weight};
    for (int k = 0; k < 3; k++) {
        request = (s3cmtf_fold_in_request){.size = sizeof request,
                                           .matrix_count = 1,
                                           .matrices = matrices,
                                           .matrix_numbers = number,
                                           .weights = weights[k]};
        OK(s3cmtf_model_fold_in(more, 1, &request, &of_fit[k], &added, NULL, error));
        CHECK(added == 1 && same_predictions(more, of_fit[k], test));
        CHECK(mode_of(of_fit[k], 1, error).dim == new_film[0] + 1u);
    }
    /* A weight of 0 is that of the fit, as without weights. */
    double row[3][64];
    for (int k = 0; k < 3; k++) OK(s3cmtf_model_copy_row(of_fit[k], 1, new_film[0], row[k], 64, S3CMTF_F64, error));
    CHECK(!memcmp(row[0], row[1], sizeof(double) * films.rank) && memcmp(row[0], row[2], sizeof(double) * films.rank) != 0);
    for (int k = 0; k < 3; k++) s3cmtf_model_free(of_fit[k]);
    s3cmtf_model_free(more);
    s3cmtf_coo_free(genre);
    s3cmtf_coo_free(coo);
}

/* Both for a model with samples; fold-in alone for the model `other`, which has none. */
static void after_fit(const s3cmtf_problem *problem, const s3cmtf_model *other, const s3cmtf_coo *test)
{
    s3cmtf_options *options = NULL;
    OK(s3cmtf_options_new(NULL, &options, error));
    OK(s3cmtf_options_set(options, "algorithm", "gibbs", error));
    OK(s3cmtf_options_set(options, "rank", "3", error));
    OK(s3cmtf_options_set(options, "samples", "12", error));
    s3cmtf_fit *fit = new_fit(problem, options);
    s3cmtf_model *model = run(fit);
    deviations_and_quantiles(model, test);
    s3cmtf_distribution_scores scores = {.size = sizeof scores};
    OK(s3cmtf_model_evaluate_distributions(model, test, 2, NULL, &scores, error));
    CHECK(scores.entries == coo_info_of(test, error).count && scores.crps > 0 && scores.width_90 > 0);
    CHECK(scores.coverage_50 < scores.coverage_90 && scores.coverage_90 <= 1);
    fold_in_rows(model, test);
    fold_in_rows(other, test);
    CHECK(model_info_of(other, error).samples == 0);
    double deviation = 9;
    const uint32_t zero = 0;
    const void *const modes[3] = {&zero, &zero, &zero};
    const s3cmtf_indices cell = indices_u32(modes, 1);
    s3cmtf_predict_request request = unclipped(1);
    request.deviations = &deviation;
    FAILS(S3CMTF_BAD_ARGUMENT, s3cmtf_model_predict(other, &cell, NULL, 1, S3CMTF_F64, &request, error));
    CHECK(deviation == 9);
    s3cmtf_model_free(model);
    s3cmtf_fit_free(fit);
    s3cmtf_options_free(options);
}
