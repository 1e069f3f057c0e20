/* Part of misuse.c: predictions, errors of predictions, and fold-in. */

static void test_s3cmtf_model_predict_cell(void)
{
    const uint64_t cell[3] = {0, 0, 0}, far[3] = {0, UINT64_MAX, 0};
    NUL(s3cmtf_model_predict_cell(NULL, cell, out.d, error));
    NUL(s3cmtf_model_predict_cell(model, NULL, out.d, error));
    NUL(s3cmtf_model_predict_cell(model, cell, NULL, error));
    BAD(s3cmtf_model_predict_cell(model, (const uint64_t *)(const void *)((const char *)data.user + 4), out.d, error));
    ENTRY(s3cmtf_model_predict_cell(model, far, out.d, error));
}

static void test_s3cmtf_model_predict(void)
{
    const uint64_t far[1] = {UINT64_MAX}, zero[1] = {0};
    const double quantiles[2] = {0.1, 0.9}, bad[3] = {0, 1, (double)NAN};
    const void *const modes[3] = {data.user, data.film, data.month}, *const missing[3] = {data.user, data.film, NULL};
    const void *const beyond[3] = {zero, far, zero}, *const first[3] = {zero, zero, zero};
    const s3cmtf_indices valid = indices_u32(modes, 4);
    s3cmtf_indices cells = valid;
    s3cmtf_predict_request request = unclipped(1);
#define PREDICT(m, to, capacity, type) s3cmtf_model_predict(m, &cells, to, capacity, type, &request, error)
#define CELLS(change) (cells = valid, change, PREDICT(model, out.d, 4, S3CMTF_F64))
#define REQUEST(change) (cells = valid, request = unclipped(1), change, PREDICT(model, out.d, 4, S3CMTF_F64))
    NUL(PREDICT(NULL, out.d, 4, S3CMTF_F64));
    NUL(s3cmtf_model_predict(model, NULL, out.d, 4, S3CMTF_F64, &request, error));
    NUL(PREDICT(model, NULL, 4, S3CMTF_F64)); /* no output at all */
    NUL(s3cmtf_model_predict(model, &cells, NULL, 4, S3CMTF_F64, NULL, error));
    FITS_NOT(PREDICT(model, out.d, 3, S3CMTF_F64));
    FITS_NOT(s3cmtf_model_predict(model, &cells, out.d, 3, S3CMTF_F64, NULL, error));
    BAD(PREDICT(model, out.d, HUGE_COUNT, S3CMTF_F64));
    EACH_WRONG(x) BAD(PREDICT(model, out.d, 4, x));
    NUL(CELLS(cells.modes = NULL));
    NUL(CELLS(cells.modes = missing));
    FITS_NOT(CELLS(cells.count = ENTRIES));
    FITS_NOT(CELLS((cells.modes = beyond, cells.count = UNREADABLE, cells.type = S3CMTF_U64)));
    BAD(CELLS(cells.count = HUGE_COUNT));
    BAD(CELLS(cells.stride = HUGE_COUNT));
    ENTRY(CELLS((cells.modes = beyond, cells.count = 1, cells.type = S3CMTF_U64)));
    ENTRY(CELLS((cells.modes = first, cells.count = 1, cells.type = S3CMTF_U64, cells.base = 1)));
    BAD(REQUEST(request.size = 0));
    BAD(REQUEST(request.threads = 5000));
    EACH_WRONG(x) {
        BAD(CELLS(cells.type = x));
        BAD(CELLS(cells.base = x));
        BAD(REQUEST(request.clip = x));
    }
    NUL(REQUEST((request.quantile_values = out.d + 8, request.quantile_count = 2)));
    BAD(REQUEST((request.quantile_values = out.d + 8, request.quantile_count = HUGE_COUNT, request.quantiles = quantiles)));
    /* The model has no samples, and thus neither deviations nor quantiles. */
    BAD(REQUEST(request.deviations = out.d + 4));
    BAD(REQUEST((request.quantile_values = out.d + 8, request.quantile_count = 2, request.quantiles = quantiles)));
    for (int i = 0; i < 3; i++)
        BAD(REQUEST((request.quantile_values = out.d + 8, request.quantile_count = 1, request.quantiles = &bad[i])));
    /* The same with the deviations of a model that has samples. */
#define SAMPLED(change)                                                                                                \
    (cells = valid, request = unclipped(1), request.deviations = out.d + 4, request.quantiles = quantiles,             \
     request.quantile_count = 2, request.quantile_values = out.d + 8, change,                                          \
     s3cmtf_model_predict(sampled, &cells, out.d, capacity, type, &request, error))
    uint64_t capacity = 4;
    int32_t type = S3CMTF_F64;
    FITS_NOT(SAMPLED(capacity = 3));
    FITS_NOT(SAMPLED((cells.modes = beyond, cells.count = UNREADABLE, cells.type = S3CMTF_U64)));
    BAD(SAMPLED(capacity = HUGE_COUNT));
    capacity = 4;
    NUL(SAMPLED(cells.modes = missing));
    NUL(SAMPLED(request.quantiles = NULL));
    BAD(SAMPLED(request.quantile_count = HUGE_COUNT));
    BAD(SAMPLED(cells.count = HUGE_COUNT));
    BAD(SAMPLED(request.threads = 5000));
    BAD(SAMPLED(request.deviations = (char *)out.d + 4));
    BAD(SAMPLED(request.quantile_values = (char *)out.d + 4));
    ENTRY(SAMPLED((cells.modes = beyond, cells.count = 1, cells.type = S3CMTF_U64)));
    for (int i = 0; i < 3; i++) BAD(SAMPLED((request.quantiles = &bad[i], request.quantile_count = 1)));
    EACH_WRONG(x) {
        BAD(SAMPLED(cells.type = x));
        BAD(SAMPLED(cells.base = x));
        BAD(SAMPLED(request.clip = x));
        BAD(SAMPLED(type = x));
        type = S3CMTF_F64;
    }
    s3cmtf_cancel_request(cancel);
    CANCELLED(REQUEST(request.cancel = cancel));
    CANCELLED(SAMPLED(request.cancel = cancel));
    s3cmtf_cancel_reset(cancel);
#undef SAMPLED
    cells = indices_u32(missing, 0); /* no cells need no arrays */
    request = unclipped(1);
    OK(PREDICT(model, NULL, 0, S3CMTF_F64));
#undef PREDICT
#undef CELLS
#undef REQUEST
}

static void test_s3cmtf_model_predict_coo(void)
{
    const double quantiles[2] = {0.1, 0.9};
    s3cmtf_predict_request request = unclipped(1);
#define PREDICT(m, entries, to, capacity, type) s3cmtf_model_predict_coo(m, entries, to, capacity, type, &request, error)
#define REQUEST(change) (request = unclipped(1), change, PREDICT(model, empty, NULL, 0, S3CMTF_F64))
    NUL(PREDICT(NULL, coo, out.d, 64, S3CMTF_F64));
    NUL(PREDICT(model, NULL, out.d, 64, S3CMTF_F64));
    NUL(PREDICT(model, coo, NULL, 64, S3CMTF_F64));
    FITS_NOT(PREDICT(model, coo, out.d, 64, S3CMTF_F64));
    BAD(PREDICT(model, genres, out.d, 64, S3CMTF_F64)); /* another order */
    BAD(PREDICT(model, coo, out.d, HUGE_COUNT, S3CMTF_F64));
    BAD(REQUEST(request.size = 0));
    BAD(REQUEST(request.threads = 5000));
    NUL(REQUEST((request.quantile_count = 2, request.quantile_values = out.d)));
    EACH_WRONG(x) {
        BAD(REQUEST(request.clip = x));
        BAD(PREDICT(model, coo, out.d, 64, x));
    }
    request = unclipped(1);
    OK(PREDICT(model, empty, NULL, 0, S3CMTF_F64)); /* no entries need no buffer */
    OK(s3cmtf_model_predict_coo(model, empty, NULL, 0, S3CMTF_F64, NULL, error));
    /* Deviations and quantiles. */
    request.deviations = out.d;
    BAD(PREDICT(model, empty, NULL, 0, S3CMTF_F64)); /* no samples */
    FITS_NOT(PREDICT(sampled, coo, NULL, 64, S3CMTF_F64));
    BAD(PREDICT(sampled, coo, NULL, HUGE_COUNT, S3CMTF_F64));
    BAD(PREDICT(sampled, genres, NULL, 64, S3CMTF_F64));
    request.quantiles = quantiles;
    request.quantile_count = 2;
    request.deviations = NULL;
    request.quantile_values = out.d;
    FITS_NOT(PREDICT(sampled, coo, NULL, 32, S3CMTF_F64));
#undef PREDICT
#undef REQUEST
}

static void test_s3cmtf_model_evaluate(void)
{
    s3cmtf_evaluation evaluation, before;
    memset(&evaluation, 0x5a, sizeof evaluation);
    evaluation.size = sizeof evaluation;
    before = evaluation;
    NUL(s3cmtf_model_evaluate(NULL, coo, 1, NULL, &evaluation, error));
    NUL(s3cmtf_model_evaluate(model, NULL, 1, NULL, &evaluation, error));
    NUL(s3cmtf_model_evaluate(model, coo, 1, NULL, NULL, error));
    BAD(s3cmtf_model_evaluate(model, genres, 1, NULL, &evaluation, error));
    BAD(s3cmtf_model_evaluate(model, coo, UINT64_MAX, NULL, &evaluation, error));
    s3cmtf_cancel_request(cancel);
    CANCELLED(s3cmtf_model_evaluate(model, coo, 1, cancel, &evaluation, error));
    s3cmtf_cancel_reset(cancel);
    CHECK(!memcmp(&evaluation, &before, sizeof evaluation));
    evaluation.size = 0;
    BAD(s3cmtf_model_evaluate(model, coo, 1, NULL, &evaluation, error));
}

static void test_s3cmtf_model_evaluate_binary(void)
{
    s3cmtf_binary_scores scores, before;
    memset(&scores, 0x5a, sizeof scores);
    scores.size = sizeof scores;
    before = scores;
    NUL(s3cmtf_model_evaluate_binary(NULL, coo, 1, NULL, &scores, error));
    NUL(s3cmtf_model_evaluate_binary(model, NULL, 1, NULL, &scores, error));
    NUL(s3cmtf_model_evaluate_binary(model, coo, 1, NULL, NULL, error));
    BAD(s3cmtf_model_evaluate_binary(model, coo, 1, NULL, &scores, error));
    BAD(s3cmtf_model_evaluate_binary(model, genres, 1, NULL, &scores, error));
    BAD(s3cmtf_model_evaluate_binary(model, coo, UINT64_MAX, NULL, &scores, error));
    s3cmtf_cancel_request(cancel);
    CANCELLED(s3cmtf_model_evaluate_binary(model, coo, 1, cancel, &scores, error));
    s3cmtf_cancel_reset(cancel);
    CHECK(!memcmp(&scores, &before, sizeof scores));
    scores.size = 0;
    BAD(s3cmtf_model_evaluate_binary(model, coo, 1, NULL, &scores, error));
}

static void test_s3cmtf_model_evaluate_distributions(void)
{
    s3cmtf_distribution_scores scores, before;
    memset(&scores, 0x5a, sizeof scores);
    scores.size = sizeof scores;
    before = scores;
    NUL(s3cmtf_model_evaluate_distributions(NULL, coo, 1, NULL, &scores, error));
    NUL(s3cmtf_model_evaluate_distributions(sampled, NULL, 1, NULL, &scores, error));
    NUL(s3cmtf_model_evaluate_distributions(sampled, coo, 1, NULL, NULL, error));
    BAD(s3cmtf_model_evaluate_distributions(model, coo, 1, NULL, &scores, error));
    BAD(s3cmtf_model_evaluate_distributions(sampled, genres, 1, NULL, &scores, error));
    BAD(s3cmtf_model_evaluate_distributions(sampled, coo, UINT64_MAX, NULL, &scores, error));
    s3cmtf_cancel_request(cancel);
    CANCELLED(s3cmtf_model_evaluate_distributions(sampled, coo, 1, cancel, &scores, error));
    s3cmtf_cancel_reset(cancel);
    CHECK(!memcmp(&scores, &before, sizeof scores));
    scores.size = 0;
    BAD(s3cmtf_model_evaluate_distributions(sampled, coo, 1, NULL, &scores, error));
}

static void test_s3cmtf_model_fold_in(void)
{
    const uint64_t first[2] = {0, 0}, beyond[1] = {7};
    const double bad[3] = {-2, (double)NAN, (double)INFINITY};
    const s3cmtf_coo *const one[2] = {genres, genres}, *const none[1] = {NULL};
    const s3cmtf_fold_in_request tensor = {.size = sizeof tensor, .tensor = coo, .replace = 1, .threads = 1};
    s3cmtf_fold_in_request both = tensor, request;
    both.matrix_count = 1;
    both.matrices = one;
    both.matrix_numbers = first;
#define FOLD(m, mode, to) s3cmtf_model_fold_in(m, mode, &request, to, out.u, out.u + 1, error)
#define USERS_WITH(change) (request = tensor, change, FOLD(model, 0, &out.model))
#define FILMS_WITH(change) (request = both, change, FOLD(model, 1, &out.model))
    request = tensor;
    NUL(FOLD(NULL, 0, &out.model));
    NUL(FOLD(model, 0, NULL));
    NUL(s3cmtf_model_fold_in(model, 0, NULL, &out.model, NULL, NULL, error));
    BAD(FOLD(model, 3, &out.model));
    BAD(FOLD(model, UINT64_MAX, &out.model));
    NUL(USERS_WITH(request.tensor = NULL)); /* nothing to fold in */
    NUL(FILMS_WITH(request.matrices = NULL));
    NUL(FILMS_WITH(request.matrices = none));
    NUL(FILMS_WITH(request.matrix_numbers = NULL));
    BAD(USERS_WITH(request.size = 0));
    BAD(USERS_WITH(request.replace = 0)); /* rows of the model */
    BAD(USERS_WITH(request.tensor = empty));
    BAD(USERS_WITH(request.tensor = genres)); /* another order */
    request = both;
    BAD(FOLD(model, 0, &out.model)); /* a matrix of another mode */
    BAD(FILMS_WITH(request.matrix_numbers = beyond));
    BAD(FILMS_WITH(request.matrix_count = 2)); /* one matrix twice */
    for (int i = 0; i < 3; i++) BAD(FILMS_WITH(request.weights = &bad[i]));
    BAD(FILMS_WITH(request.matrix_count = HUGE_COUNT));
    BAD(FILMS_WITH(request.threads = 5000));
    EACH_WRONG(x) BAD(USERS_WITH(request.replace = x));
    s3cmtf_cancel_request(cancel);
    CANCELLED(USERS_WITH(request.cancel = cancel));
    s3cmtf_cancel_reset(cancel);
#undef FOLD
#undef USERS_WITH
#undef FILMS_WITH
}
