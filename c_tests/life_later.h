/* What comes after a fit: how sure a model of samples is, and rows that come later. Part of life.c. */

/* A model of samples: predictions are those without deviations, quantiles those of a normal distribution. */
static void how_sure(const s3cmtf_model *model, const s3cmtf_coo *test)
{
    enum { CELLS = 50 };
    const double quantiles[3] = {0.5, 0.05, 0.975}, wrong[1] = {1.0};
    const uint32_t *columns[3];
    const void *cells[3];
    uint64_t samples = 0, count = 0;
    OK(s3cmtf_model_get_samples(model, &samples, error));
    CHECK(samples == 12);
    OK(s3cmtf_coo_get_count(test, &count, error));
    CHECK(count >= CELLS);
    for (uint64_t n = 0; n < 3; n++) {
        OK(s3cmtf_coo_view_indices(test, n, &columns[n], error));
        cells[n] = columns[n];
    }
    double plain[CELLS], mean[CELLS], deviation[CELLS], values[CELLS][3], alone[CELLS];
    float single[CELLS];
    OK(s3cmtf_model_predict(model, CELLS, cells, S3CMTF_U32, 1, 0, 0, 1, NULL, plain, CELLS, S3CMTF_F64, error));
    OK(s3cmtf_model_predict_spread(model, CELLS, cells, S3CMTF_U32, 1, 0, 3, quantiles, 0, 2, NULL, mean, deviation,
                                   values, CELLS, S3CMTF_F64, error));
    for (int i = 0; i < CELLS; i++) {
        CHECK(fabs(mean[i] - plain[i]) < 1e-9 && deviation[i] > 0 && fabs(values[i][0] - mean[i]) < 1e-6);
        CHECK(fabs(mean[i] - values[i][1] - 1.6448536 * deviation[i]) < 1e-6);
        CHECK(fabs(values[i][2] - mean[i] - 1.9599640 * deviation[i]) < 1e-6);
    }
    /* Any output may be left out. */
    OK(s3cmtf_model_predict_spread(model, CELLS, cells, S3CMTF_U32, 1, 0, 0, NULL, 0, 1, NULL, NULL, alone, NULL, CELLS,
                                   S3CMTF_F64, error));
    CHECK(!memcmp(alone, deviation, sizeof alone));
    OK(s3cmtf_model_predict_spread(model, CELLS, cells, S3CMTF_U32, 1, 0, 0, NULL, 0, 1, NULL, single, NULL, NULL, CELLS,
                                   S3CMTF_F32, error));
    CHECK(fabs((double)single[7] - mean[7]) < 1e-5);
    FAILS(S3CMTF_BAD_ARGUMENT, s3cmtf_model_predict_spread(model, CELLS, cells, S3CMTF_U32, 1, 0, 1, wrong, 0, 1, NULL,
                                                           NULL, alone, NULL, CELLS, S3CMTF_F64, error));

    double *all = malloc(sizeof *all * count), *both = malloc(sizeof *both * count * 2);
    OK(s3cmtf_model_predict_spread_coo(model, test, 2, quantiles, 0, 2, NULL, NULL, all, both, count, S3CMTF_F64, error));
    for (int i = 0; i < CELLS; i++) CHECK(all[i] == deviation[i] && both[2 * i + 1] == values[i][1]);
    FAILS(S3CMTF_BUFFER_TOO_SMALL, s3cmtf_model_predict_spread_coo(model, test, 2, quantiles, 0, 2, NULL, NULL, all, both,
                                                                   count - 1, S3CMTF_F64, error));
    free(all);
    free(both);
}

/* A user and a film that nobody knew: from a rating each, and the film from its genre. */
static void later(const s3cmtf_model *model, const s3cmtf_coo *test)
{
    uint64_t dims[3] = {0, 0, 0}, added = 0, replaced = 9, rows = 0, old_rows = 0;
    OK(s3cmtf_model_get_dims(model, dims, 3, error));
    const uint32_t user[2] = {(uint32_t)dims[0], (uint32_t)dims[0]}, film[2] = {0, 1}, month[2] = {0, 0};
    const float stars[2] = {5, 5};
    const void *const ratings[3] = {user, film, month};
    s3cmtf_coo *coo = NULL, *genre = NULL;
    s3cmtf_model *more = NULL, *again = NULL;
    OK(s3cmtf_coo_new(3, NULL, 2, ratings, S3CMTF_U32, 1, 0, stars, S3CMTF_F32, &coo, error));
    OK(s3cmtf_model_fold_in(model, 0, coo, 0, NULL, NULL, NULL, 0, 2, NULL, &more, &added, &replaced, error));
    CHECK(added == 1 && replaced == 0);
    OK(s3cmtf_model_get_dims(more, dims, 3, error));
    CHECK(dims[0] == user[0] + 1u && same_predictions(model, more, test));
    OK(s3cmtf_model_get_rows(model, 0, &old_rows, error));
    OK(s3cmtf_model_get_rows(more, 0, &rows, error));
    CHECK(rows == old_rows + 1);
    double before[2], after[2];
    OK(s3cmtf_model_predict_coo(model, coo, 0, 1, NULL, before, 2, S3CMTF_F64, error));
    OK(s3cmtf_model_predict_coo(more, coo, 0, 1, NULL, after, 2, S3CMTF_F64, error));
    CHECK(fabs(after[0] - 5) + fabs(after[1] - 5) < fabs(before[0] - 5) + fabs(before[1] - 5));
    FAILS(S3CMTF_BAD_ARGUMENT, s3cmtf_model_fold_in(more, 0, coo, 0, NULL, NULL, NULL, 0, 1, NULL, &again, NULL, NULL,
                                                    error));
    OK(s3cmtf_model_fold_in(more, 0, coo, 0, NULL, NULL, NULL, 1, 1, NULL, &again, &added, &replaced, error));
    CHECK(added == 0 && replaced == 1);
    s3cmtf_model_free(again);

    const uint32_t new_film[1] = {(uint32_t)dims[1] + 3}, which[1] = {0};
    const float one[1] = {1};
    const void *const entry[2] = {new_film, which};
    const uint64_t number[1] = {0};
    const double weight[1] = {S3CMTF_FROM_OPTIONS};
    OK(s3cmtf_coo_new(2, NULL, 1, entry, S3CMTF_U32, 1, 0, one, S3CMTF_F32, &genre, error));
    const s3cmtf_coo *const matrices[1] = {genre};
    OK(s3cmtf_model_fold_in(more, 1, NULL, 1, matrices, number, weight, 0, 1, NULL, &again, &added, NULL, error));
    CHECK(added == 1 && same_predictions(more, again, test));
    OK(s3cmtf_model_get_dims(again, dims, 3, error));
    CHECK(dims[1] == new_film[0] + 1u);
    s3cmtf_model_free(again);
    s3cmtf_model_free(more);
    s3cmtf_coo_free(genre);
    s3cmtf_coo_free(coo);
}

/* Both, for a model of samples; rows alone for another. */
static void after_fits(const s3cmtf_problem *problem, const s3cmtf_model *other, const s3cmtf_coo *test)
{
    s3cmtf_options *options = NULL;
    uint64_t samples = 9;
    OK(s3cmtf_options_new(NULL, &options, error));
    OK(s3cmtf_options_set(options, "algorithm", "gibbs", error));
    OK(s3cmtf_options_set(options, "rank", "3", error));
    OK(s3cmtf_options_set(options, "samples", "12", error));
    s3cmtf_fit *fit = new_fit(problem, options);
    s3cmtf_model *model = run(fit);
    how_sure(model, test);
    later(model, test);
    later(other, test);
    OK(s3cmtf_model_get_samples(other, &samples, error));
    CHECK(samples == 0);
    FAILS(S3CMTF_BAD_ARGUMENT, s3cmtf_model_predict_spread_coo(other, test, 0, NULL, 0, 1, NULL, NULL, NULL, NULL, 0,
                                                               S3CMTF_F64, error));
    s3cmtf_model_free(model);
    s3cmtf_fit_free(fit);
    s3cmtf_options_free(options);
}
