/* More of the table of misuse.c: how sure a model is, and rows that come later. */

static void test_s3cmtf_model_get_samples(void)
{
    NUL(s3cmtf_model_get_samples(NULL, out.u, error));
    NUL(s3cmtf_model_get_samples(model, NULL, error));
}
#define SPREAD(m, count, indices, type, stride, base, quantiles, q, clip, threads, a, b, c, capacity, kind)             \
    s3cmtf_model_predict_spread(m, count, indices, type, stride, base, quantiles, q, clip, threads, NULL, a, b, c,      \
                                capacity, kind, error)
static void test_s3cmtf_model_predict_spread(void)
{
    const uint64_t far[1] = {UINT64_MAX}, zero[1] = {0};
    const double q[2] = {0.1, 0.9};
    const void *cells[3] = {data.user, data.film, data.month}, *missing[3] = {data.user, data.film, NULL};
    const void *beyond[3] = {zero, far, zero};
    double *d = out.d;
    NUL(SPREAD(NULL, 4, cells, S3CMTF_U32, 1, 0, 2, q, 0, 1, d, d + 4, d + 8, 4, S3CMTF_F64));
    NUL(SPREAD(model, 4, NULL, S3CMTF_U32, 1, 0, 2, q, 0, 1, d, d + 4, d + 8, 4, S3CMTF_F64));
    NUL(SPREAD(model, 4, missing, S3CMTF_U32, 1, 0, 2, q, 0, 1, d, d + 4, d + 8, 4, S3CMTF_F64));
    NUL(SPREAD(model, 4, cells, S3CMTF_U32, 1, 0, 2, NULL, 0, 1, d, d + 4, d + 8, 4, S3CMTF_F64));
    FITS_NOT(SPREAD(model, 4, cells, S3CMTF_U32, 1, 0, 2, q, 0, 1, d, d + 4, d + 8, 3, S3CMTF_F64));
    BAD(SPREAD(model, 4, cells, S3CMTF_U32, 1, 0, 2, q, 0, 1, d, d + 4, d + 8, HUGE_COUNT, S3CMTF_F64));
    BAD(SPREAD(model, 4, cells, S3CMTF_U32, 1, 0, HUGE_COUNT, q, 0, 1, d, d + 4, d + 8, 4, S3CMTF_F64));
    BAD(SPREAD(model, HUGE_COUNT, cells, S3CMTF_U32, 1, 0, 2, q, 0, 1, d, d + 4, d + 8, 4, S3CMTF_F64));
    BAD(SPREAD(model, 4, cells, S3CMTF_U32, 0, 0, 2, q, 0, 1, d, d + 4, d + 8, 4, S3CMTF_F64));
    BAD(SPREAD(model, 4, cells, S3CMTF_U32, 1, 0, 2, q, 0, 5000, d, d + 4, d + 8, 4, S3CMTF_F64));
    ENTRY(SPREAD(model, 1, beyond, S3CMTF_U64, 1, 0, 2, q, 0, 1, d, d + 4, d + 8, 4, S3CMTF_F64));
    EACH_WRONG(x) {
        BAD(SPREAD(model, 4, cells, x, 1, 0, 2, q, 0, 1, d, d + 4, d + 8, 4, S3CMTF_F64));
        BAD(SPREAD(model, 4, cells, S3CMTF_U32, 1, x, 2, q, 0, 1, d, d + 4, d + 8, 4, S3CMTF_F64));
        BAD(SPREAD(model, 4, cells, S3CMTF_U32, 1, 0, 2, q, x, 1, d, d + 4, d + 8, 4, S3CMTF_F64));
        BAD(SPREAD(model, 4, cells, S3CMTF_U32, 1, 0, 2, q, 0, 1, d, d + 4, d + 8, 4, x));
    }
    BAD(SPREAD(model, 4, cells, S3CMTF_U32, 1, 0, 2, q, 0, 1, d, d + 4, d + 8, 4, S3CMTF_F64)); /* no samples */
}
#undef SPREAD
#define SPREAD(m, coo, quantiles, q, clip, threads, a, b, c, capacity, kind) \
    s3cmtf_model_predict_spread_coo(m, coo, quantiles, q, clip, threads, NULL, a, b, c, capacity, kind, error)
static void test_s3cmtf_model_predict_spread_coo(void)
{
    const double q[2] = {0.1, 0.9};
    double *d = out.d;
    NUL(SPREAD(NULL, coo, 2, q, 0, 1, NULL, NULL, NULL, 0, S3CMTF_F64));
    NUL(SPREAD(model, NULL, 2, q, 0, 1, NULL, NULL, NULL, 0, S3CMTF_F64));
    NUL(SPREAD(model, coo, 2, NULL, 0, 1, NULL, NULL, NULL, 0, S3CMTF_F64));
    FITS_NOT(SPREAD(model, coo, 2, q, 0, 1, d, NULL, NULL, 64, S3CMTF_F64));
    BAD(SPREAD(model, coo, 2, q, 0, 1, NULL, d, NULL, HUGE_COUNT, S3CMTF_F64));
    BAD(SPREAD(model, coo, 2, q, 0, 5000, NULL, NULL, NULL, 0, S3CMTF_F64));
    EACH_WRONG(x) {
        BAD(SPREAD(model, coo, 2, q, x, 1, NULL, NULL, NULL, 0, S3CMTF_F64));
        BAD(SPREAD(model, coo, 2, q, 0, 1, NULL, NULL, NULL, 0, x));
    }
    BAD(SPREAD(model, genres, 2, q, 0, 1, NULL, NULL, NULL, 0, S3CMTF_F64)); /* another order */
    BAD(SPREAD(model, empty, 2, q, 0, 1, NULL, NULL, NULL, 0, S3CMTF_F64));  /* no samples */
}
#undef SPREAD

#define FOLD(m, mode, tensor, count, matrices, numbers, weights, replace, threads, to) \
    s3cmtf_model_fold_in(m, mode, tensor, count, matrices, numbers, weights, replace, threads, NULL, to, out.u, out.u + 1, \
                         error)
static void test_s3cmtf_model_fold_in(void)
{
    const uint64_t first[2] = {0, 0}, beyond[1] = {7};
    const double negative[1] = {-2};
    const s3cmtf_coo *const one[2] = {genres, genres}, *const none[1] = {NULL};
    NUL(FOLD(NULL, 0, coo, 0, NULL, NULL, NULL, 1, 1, &out.model));
    NUL(FOLD(model, 0, NULL, 0, NULL, NULL, NULL, 1, 1, &out.model)); /* nothing to fold in */
    NUL(FOLD(model, 0, coo, 0, NULL, NULL, NULL, 1, 1, NULL));
    NUL(FOLD(model, 1, coo, 1, NULL, first, NULL, 1, 1, &out.model));
    NUL(FOLD(model, 1, coo, 1, none, first, NULL, 1, 1, &out.model));
    NUL(FOLD(model, 1, coo, 1, one, NULL, NULL, 1, 1, &out.model));
    BAD(FOLD(model, 3, coo, 0, NULL, NULL, NULL, 1, 1, &out.model));
    BAD(FOLD(model, UINT64_MAX, coo, 0, NULL, NULL, NULL, 1, 1, &out.model));
    BAD(FOLD(model, 0, coo, 0, NULL, NULL, NULL, 0, 1, &out.model)); /* rows it has */
    BAD(FOLD(model, 0, empty, 0, NULL, NULL, NULL, 0, 1, &out.model));
    BAD(FOLD(model, 0, genres, 0, NULL, NULL, NULL, 0, 1, &out.model)); /* another order */
    BAD(FOLD(model, 0, coo, 1, one, first, NULL, 1, 1, &out.model));    /* a matrix of another mode */
    BAD(FOLD(model, 1, coo, 1, one, beyond, NULL, 1, 1, &out.model));
    BAD(FOLD(model, 1, coo, 2, one, first, NULL, 1, 1, &out.model)); /* one matrix twice */
    BAD(FOLD(model, 1, coo, 1, one, first, negative, 1, 1, &out.model));
    BAD(FOLD(model, 1, coo, HUGE_COUNT, one, first, NULL, 1, 1, &out.model));
    BAD(FOLD(model, 1, coo, 1, one, first, NULL, 1, 5000, &out.model));
    EACH_WRONG(x) BAD(FOLD(model, 0, coo, 0, NULL, NULL, NULL, x, 1, &out.model));
    s3cmtf_cancel_request(cancel);
    expect(S3CMTF_CANCELLED,
           s3cmtf_model_fold_in(model, 0, coo, 0, NULL, NULL, NULL, 1, 1, cancel, &out.model, NULL, NULL, error), __LINE__,
           "cancelled");
    s3cmtf_cancel_reset(cancel);
}
#undef FOLD
