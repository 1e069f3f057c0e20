/* More of the table of misuse.c: recommendations, likeness, rankings, names. */

#define ASK(m, mode, count, cells, type, stride, base, top, q, exclude, by, only_count, only, without_count, without,   \
            threads, rows, scores, capacity, found)                                                                     \
    s3cmtf_model_recommend(m, mode, count, cells, type, stride, base, top, q, exclude, by, only_count, only,            \
                           without_count, without, threads, NULL, rows, scores, capacity, found, error)
static void test_s3cmtf_model_recommend(void)
{
    const uint64_t far[1] = {UINT64_MAX}, unknown[1] = {USERS + 5}, zero[1] = {0};
    const void *cells[3] = {data.user, NULL, data.month}, *beyond[3] = {far, NULL, NULL}, *none[3] = {unknown, NULL, NULL};
    const void *below[3] = {zero, NULL, NULL};
    uint64_t *u = out.u, *found = out.u + 40;
    double *d = out.d;
    NUL(ASK(NULL, 1, 4, cells, S3CMTF_U32, 1, 0, 5, 0, NULL, 0, 0, NULL, 0, NULL, 1, u, d, 20, found));
    NUL(ASK(model, 1, 4, NULL, S3CMTF_U32, 1, 0, 5, 0, NULL, 0, 0, NULL, 0, NULL, 1, u, d, 20, found));
    NUL(ASK(model, 1, 4, cells, S3CMTF_U32, 1, 0, 5, 0, NULL, 0, 0, NULL, 0, NULL, 1, u, d, 20, NULL));
    NUL(ASK(model, 1, 4, cells, S3CMTF_U32, 1, 0, 5, 0, NULL, 0, 3, NULL, 0, NULL, 1, u, d, 20, found));
    NUL(ASK(model, 1, 4, cells, S3CMTF_U32, 1, 0, 5, 0, NULL, 0, 0, NULL, 3, NULL, 1, u, d, 20, found));
    FITS_NOT(ASK(model, 1, 4, cells, S3CMTF_U32, 1, 0, 5, 0, NULL, 0, 0, NULL, 0, NULL, 1, u, NULL, 19, found));
    FITS_NOT(ASK(model, 1, 4, cells, S3CMTF_U32, 1, 0, 5, 0, NULL, 0, 0, NULL, 0, NULL, 1, NULL, d, 19, found));
    BAD(ASK(model, 3, 4, cells, S3CMTF_U32, 1, 0, 5, 0, NULL, 0, 0, NULL, 0, NULL, 1, u, d, 20, found));
    BAD(ASK(model, 1, HUGE_COUNT, cells, S3CMTF_U32, 1, 0, 5, 0, NULL, 0, 0, NULL, 0, NULL, 1, u, d, 20, found));
    BAD(ASK(model, 1, 4, cells, S3CMTF_U32, 0, 0, 5, 0, NULL, 0, 0, NULL, 0, NULL, 1, u, d, 20, found));
    BAD(ASK(model, 1, 4, cells, S3CMTF_U32, 1, 0, 0, 0, NULL, 0, 0, NULL, 0, NULL, 1, u, d, 20, found));
    BAD(ASK(model, 1, 4, cells, S3CMTF_U32, 1, 0, HUGE_COUNT, 0, NULL, 0, 0, NULL, 0, NULL, 1, u, d, 20, found));
    BAD(ASK(model, 1, 4, cells, S3CMTF_U32, 1, 0, 5, 0, NULL, 0, HUGE_COUNT, zero, 0, NULL, 1, u, d, 20, found));
    BAD(ASK(model, 1, 4, cells, S3CMTF_U32, 1, 0, 5, 0, NULL, 0, 0, NULL, HUGE_COUNT, zero, 1, u, d, 20, found));
    BAD(ASK(model, 1, 4, cells, S3CMTF_U32, 1, 0, 5, 0, NULL, 0, 0, NULL, 0, NULL, 5000, u, d, 20, found));
    BAD(ASK(model, 1, 4, cells, S3CMTF_U32, 1, 0, 5, 0, NULL, 0, 0, NULL, 0, NULL, 1, u, d, HUGE_COUNT, found));
    BAD(ASK(model, 1, 4, cells, S3CMTF_U32, 1, 0, 5, 0, coo, 1, 0, NULL, 0, NULL, 1, u, d, 20, found)); /* itself */
    BAD(ASK(model, 1, 4, cells, S3CMTF_U32, 1, 0, 5, 0, coo, 3, 0, NULL, 0, NULL, 1, u, d, 20, found));
    BAD(ASK(model, 1, 1, below, S3CMTF_U64, 1, 0, 5, 0, coo, 2, 0, NULL, 0, NULL, 1, u, d, 20, found)); /* by nobody */
    BAD(ASK(model, 1, 4, cells, S3CMTF_U32, 1, 0, 5, 0, genres, 0, 0, NULL, 0, NULL, 1, u, d, 20, found));
    BAD(ASK(model, 1, 4, cells, S3CMTF_U32, 1, 0, 5, 0.5, NULL, 0, 0, NULL, 0, NULL, 1, u, d, 20, found)); /* no samples */
    BAD(ASK(model, 1, 4, cells, S3CMTF_U32, 1, 0, 5, -1, NULL, 0, 0, NULL, 0, NULL, 1, u, d, 20, found));
    BAD(ASK(model, 1, 1, none, S3CMTF_U64, 1, 0, 5, 0, NULL, 0, 0, NULL, 0, NULL, 1, u, d, 20, found));
    ENTRY(ASK(model, 1, 1, beyond, S3CMTF_U64, 1, 0, 5, 0, NULL, 0, 0, NULL, 0, NULL, 1, u, d, 20, found));
    ENTRY(ASK(model, 1, 1, below, S3CMTF_U64, 1, 1, 5, 0, NULL, 0, 0, NULL, 0, NULL, 1, u, d, 20, found));
    EACH_WRONG(x) {
        BAD(ASK(model, 1, 4, cells, x, 1, 0, 5, 0, NULL, 0, 0, NULL, 0, NULL, 1, u, d, 20, found));
        BAD(ASK(model, 1, 4, cells, S3CMTF_U32, 1, x, 5, 0, NULL, 0, 0, NULL, 0, NULL, 1, u, d, 20, found));
    }
}
#undef ASK
#define ASK(m, mode, count, queries, top, threads, rows, scores, capacity, found) \
    s3cmtf_model_similar(m, mode, count, queries, top, threads, NULL, rows, scores, capacity, found, error)
static void test_s3cmtf_model_similar(void)
{
    const uint64_t q[2] = {0, 1}, beyond[2] = {0, FILMS}, far[1] = {UINT64_MAX};
    uint64_t *u = out.u, *found = out.u + 40;
    double *d = out.d;
    NUL(ASK(NULL, 1, 2, q, 5, 1, u, d, 10, found));
    NUL(ASK(model, 1, 2, NULL, 5, 1, u, d, 10, found));
    NUL(ASK(model, 1, 2, q, 5, 1, u, d, 10, NULL));
    FITS_NOT(ASK(model, 1, 2, q, 5, 1, u, d, 9, found));
    BAD(ASK(model, 3, 2, q, 5, 1, u, d, 10, found));
    BAD(ASK(model, 1, 2, beyond, 5, 1, u, d, 10, found));
    BAD(ASK(model, 1, 1, far, 5, 1, u, d, 10, found));
    BAD(ASK(model, 1, 2, q, 0, 1, u, d, 10, found));
    FITS_NOT(ASK(model, 1, 2, q, HUGE_COUNT, 1, u, d, 10, found));
    BAD(ASK(model, 1, HUGE_COUNT, q, 5, 1, u, d, 10, found));
    BAD(ASK(model, 1, 2, q, 5, 5000, u, d, 10, found));
    s3cmtf_cancel_request(cancel);
    expect(S3CMTF_CANCELLED, s3cmtf_model_similar(model, 1, 2, q, 5, 1, cancel, u, d, 10, found, error), __LINE__,
           "cancelled");
    s3cmtf_cancel_reset(cancel);
}
#undef ASK
#define ASK(m, test, train, mode, by, at, q, relevant, threads) \
    s3cmtf_model_evaluate_ranking(m, test, train, mode, by, at, q, relevant, threads, NULL, out.d, out.d + 3, out.u, error)
static void test_s3cmtf_model_evaluate_ranking(void)
{
    NUL(ASK(NULL, coo, coo, 1, 0, 5, 0, 0, 1));
    NUL(ASK(model, NULL, coo, 1, 0, 5, 0, 0, 1));
    NUL(ASK(model, coo, NULL, 1, 0, 5, 0, 0, 1));
    BAD(ASK(model, coo, empty, 3, 0, 5, 0, 0, 1));
    BAD(ASK(model, coo, empty, 1, 3, 5, 0, 0, 1));
    BAD(ASK(model, coo, empty, 1, 1, 5, 0, 0, 1));
    BAD(ASK(model, coo, empty, 1, 0, 0, 0, 0, 1));
    BAD(ASK(model, coo, empty, 1, 0, 5, 0.5, 0, 1)); /* no samples */
    BAD(ASK(model, coo, empty, 1, 0, 5, 0, NAN, 1));
    BAD(ASK(model, coo, empty, 1, 0, 5, 0, 0, 5000));
    BAD(ASK(model, genres, empty, 1, 0, 5, 0, 0, 1));
    BAD(ASK(model, coo, genres, 1, 0, 5, 0, 0, 1));
}
#undef ASK

static void test_s3cmtf_names_open(void)
{
    NUL(s3cmtf_names_open(NULL, &out.names, error));
    NUL(s3cmtf_names_open("/dev/null", NULL, error));
    NOFILE(s3cmtf_names_open("/no/such/file", &out.names, error));
}
static void test_s3cmtf_names_open_beside(void)
{
    NUL(s3cmtf_names_open_beside(NULL, 0, &out.names, error));
    NUL(s3cmtf_names_open_beside("/dev/null", 0, NULL, error));
    BAD(s3cmtf_names_open_beside("/dev/null", 1000, &out.names, error));
}
static void test_s3cmtf_names_get_count(void)
{
    NUL(s3cmtf_names_get_count(NULL, out.u, error));
    NUL(s3cmtf_names_get_count(names, NULL, error));
}
static void test_s3cmtf_names_get(void)
{
    NUL(s3cmtf_names_get(NULL, 0, out.bytes, 64, out.u, error));
    NUL(s3cmtf_names_get(names, 0, NULL, 5, out.u, error));
    FITS_NOT(s3cmtf_names_get(names, 0, out.bytes, 0, out.u, error));
    BAD(s3cmtf_names_get(names, 0, out.bytes, UINT64_MAX, out.u, error));
}
static void test_s3cmtf_names_find(void)
{
    NUL(s3cmtf_names_find(NULL, "x", out.u, error));
    NUL(s3cmtf_names_find(names, NULL, out.u, error));
    NUL(s3cmtf_names_find(names, "x", NULL, error));
    BAD(s3cmtf_names_find(names, "x", out.u, error));
    BAD(s3cmtf_names_find(names, "\xff", out.u, error));
}
static void test_s3cmtf_names_free(void) { s3cmtf_names_free(NULL); }

static void test_s3cmtf_concepts_new(void)
{
    const uint64_t modes[2] = {0, 2}, rows[2] = {1, 1}, same[2] = {0, 0}, own[1] = {1}, far[1] = {UINT64_MAX};
    NUL(s3cmtf_concepts_new(NULL, 1, 0, NULL, NULL, 3, 1, &out.concepts, error));
    NUL(s3cmtf_concepts_new(model, 1, 0, NULL, NULL, 3, 1, NULL, error));
    NUL(s3cmtf_concepts_new(model, 1, 2, NULL, rows, 3, 1, &out.concepts, error));
    NUL(s3cmtf_concepts_new(model, 1, 2, modes, NULL, 3, 1, &out.concepts, error));
    BAD(s3cmtf_concepts_new(model, 3, 0, NULL, NULL, 3, 1, &out.concepts, error));
    BAD(s3cmtf_concepts_new(model, 1, 2, same, rows, 3, 1, &out.concepts, error));
    BAD(s3cmtf_concepts_new(model, 1, 1, own, rows, 3, 1, &out.concepts, error));
    BAD(s3cmtf_concepts_new(model, 1, 1, far, rows, 3, 1, &out.concepts, error));
    BAD(s3cmtf_concepts_new(model, 1, 1, modes, far, 3, 1, &out.concepts, error));
    BAD(s3cmtf_concepts_new(model, 1, HUGE_COUNT, modes, rows, 3, 1, &out.concepts, error));
}
static void test_s3cmtf_concepts_get_count(void)
{
    NUL(s3cmtf_concepts_get_count(NULL, out.u, error));
    NUL(s3cmtf_concepts_get_count(concepts, NULL, error));
}
static void test_s3cmtf_concepts_get(void)
{
    NUL(s3cmtf_concepts_get(NULL, 0, out.u, out.d, out.d + 1, error));
    BAD(s3cmtf_concepts_get(concepts, 1000, out.u, out.d, out.d + 1, error));
}
static void test_s3cmtf_concepts_copy_rows(void)
{
    NUL(s3cmtf_concepts_copy_rows(NULL, 0, S3CMTF_LARGEST, out.u, out.d, 3, out.u + 9, error));
    NUL(s3cmtf_concepts_copy_rows(concepts, 0, S3CMTF_LARGEST, out.u, out.d, 3, NULL, error));
    BAD(s3cmtf_concepts_copy_rows(concepts, 1000, S3CMTF_LARGEST, out.u, out.d, 3, out.u + 9, error));
    BAD(s3cmtf_concepts_copy_rows(concepts, 0, S3CMTF_LARGEST, out.u, out.d, HUGE_COUNT, out.u + 9, error));
    FITS_NOT(s3cmtf_concepts_copy_rows(concepts, 0, S3CMTF_LARGEST, out.u, NULL, 2, out.u + 9, error));
    FITS_NOT(s3cmtf_concepts_copy_rows(concepts, 0, S3CMTF_SMALLEST, NULL, out.d, 2, out.u + 9, error));
    EACH_WRONG(x) BAD(s3cmtf_concepts_copy_rows(concepts, 0, x, out.u, out.d, 3, out.u + 9, error));
}
static void test_s3cmtf_concepts_copy_columns(void)
{
    uint64_t *u = out.u;
    NUL(s3cmtf_concepts_copy_columns(NULL, 0, S3CMTF_LARGEST, u, u + 9, out.d, 9, u + 20, error));
    NUL(s3cmtf_concepts_copy_columns(concepts, 0, S3CMTF_LARGEST, u, u + 9, out.d, 9, NULL, error));
    BAD(s3cmtf_concepts_copy_columns(concepts, 1000, S3CMTF_LARGEST, u, u + 9, out.d, 9, u + 20, error));
    EACH_WRONG(x) BAD(s3cmtf_concepts_copy_columns(concepts, 0, x, u, u + 9, out.d, 9, u + 20, error));
}
static void test_s3cmtf_concepts_get_turned(void)
{
    int32_t turned = 0;
    NUL(s3cmtf_concepts_get_turned(NULL, 0, &turned, error));
    NUL(s3cmtf_concepts_get_turned(concepts, 0, NULL, error));
    BAD(s3cmtf_concepts_get_turned(concepts, 1000, &turned, error));
}
static void test_s3cmtf_concepts_copy_profile(void)
{
    const uint64_t mode[1] = {0}, row[1] = {1};
    s3cmtf_concepts *own = NULL;
    OK(s3cmtf_concepts_new(model, 1, 1, mode, row, 0, 1, &own, error));
    NUL(s3cmtf_concepts_copy_profile(NULL, out.d, 9, out.u, out.u + 1, out.u + 2, error));
    NUL(s3cmtf_concepts_copy_profile(own, out.d, 9, out.u, out.u + 1, NULL, error));
    FITS_NOT(s3cmtf_concepts_copy_profile(own, out.d, 2, out.u, out.u + 1, out.u + 2, error));
    BAD(s3cmtf_concepts_copy_profile(own, out.d, HUGE_COUNT, out.u, out.u + 1, out.u + 2, error));
    s3cmtf_concepts_free(own);
}
static void test_s3cmtf_concepts_free(void)
{
    s3cmtf_concepts_free(NULL);
}
#define ASK(m, mode, space, count, matrices, threads, to) \
    s3cmtf_clusters_new(m, mode, 2, 0, 1, 2, 0, 1, space, 2, 2, count, matrices, 0, threads, NULL, to, error)
static void test_s3cmtf_clusters_new(void)
{
    const s3cmtf_coo *one[1] = {genres}, *none[1] = {NULL}, *wrong[1] = {coo};
    NUL(ASK(NULL, 1, 0, 1, one, 1, &out.clusters));
    NUL(ASK(model, 1, 0, 1, one, 1, NULL));
    NUL(ASK(model, 1, 0, 1, NULL, 1, &out.clusters));
    NUL(ASK(model, 1, 0, 1, none, 1, &out.clusters));
    BAD(ASK(model, 3, 0, 1, one, 1, &out.clusters));
    BAD(ASK(model, 1, 0, 1, wrong, 1, &out.clusters)); /* no matrix */
    BAD(ASK(model, 0, 0, 1, one, 1, &out.clusters)); /* it has the rows of another mode */
    BAD(ASK(model, 1, 0, HUGE_COUNT, one, 1, &out.clusters));
    BAD(ASK(model, 1, 0, 1, one, 5000, &out.clusters));
    EACH_WRONG(x) BAD(ASK(model, 1, x, 1, one, 1, &out.clusters));
    BAD(s3cmtf_clusters_new(model, 1, 2, 0, 1, 2, 0, UINT64_MAX, 0, 2, 2, 0, NULL, 0, 1, NULL, &out.clusters, error));
    s3cmtf_cancel_request(cancel);
    expect(S3CMTF_CANCELLED,
           s3cmtf_clusters_new(model, 1, 0, 5, 50, 50, 0, 1, 0, 2, 2, 0, NULL, 0, 2, cancel, &out.clusters, error), __LINE__,
           "cancelled");
    s3cmtf_cancel_reset(cancel);
}
#undef ASK
static void test_s3cmtf_clusters_get_count(void)
{
    NUL(s3cmtf_clusters_get_count(NULL, out.u, out.d, error));
    NUL(s3cmtf_clusters_get_count(clusters, NULL, out.d, error));
}
static void test_s3cmtf_clusters_get(void)
{
    NUL(s3cmtf_clusters_get(NULL, 0, out.u, out.d, error));
    BAD(s3cmtf_clusters_get(clusters, 2, out.u, out.d, error));
}
static void test_s3cmtf_clusters_copy_members(void)
{
    NUL(s3cmtf_clusters_copy_members(NULL, 0, out.u, out.d, 2, out.u + 9, error));
    NUL(s3cmtf_clusters_copy_members(clusters, 0, out.u, out.d, 2, NULL, error));
    BAD(s3cmtf_clusters_copy_members(clusters, 2, out.u, out.d, 2, out.u + 9, error));
    FITS_NOT(s3cmtf_clusters_copy_members(clusters, 0, out.u, out.d, 1, out.u + 9, error));
    FITS_NOT(s3cmtf_clusters_copy_members(clusters, 0, NULL, out.d, 1, out.u + 9, error));
}
static void test_s3cmtf_clusters_copy_labels(void)
{
    uint64_t *u = out.u;
    double *d = out.d;
    NUL(s3cmtf_clusters_copy_labels(NULL, 0, u, u + 5, u + 10, u + 15, d, d + 5, 5, u + 20, error));
    NUL(s3cmtf_clusters_copy_labels(clusters, 0, u, u + 5, u + 10, u + 15, d, d + 5, 5, NULL, error));
    BAD(s3cmtf_clusters_copy_labels(clusters, 2, u, u + 5, u + 10, u + 15, d, d + 5, 5, u + 20, error));
}
static void test_s3cmtf_clusters_copy_label_logs(void)
{
    NUL(s3cmtf_clusters_copy_label_logs(NULL, 0, out.d, out.d + 5, 5, out.u, error));
    NUL(s3cmtf_clusters_copy_label_logs(clusters, 0, out.d, out.d + 5, 5, NULL, error));
    BAD(s3cmtf_clusters_copy_label_logs(clusters, 2, out.d, out.d + 5, 5, out.u, error));
}
static void test_s3cmtf_clusters_copy_centre(void)
{
    NUL(s3cmtf_clusters_copy_centre(NULL, 0, out.d, 9, out.u, error));
    NUL(s3cmtf_clusters_copy_centre(clusters, 0, out.d, 9, NULL, error));
    BAD(s3cmtf_clusters_copy_centre(clusters, 2, out.d, 9, out.u, error));
    FITS_NOT(s3cmtf_clusters_copy_centre(clusters, 0, out.d, 1, out.u, error));
}
static void test_s3cmtf_clusters_copy_curve(void)
{
    int32_t settled = 0;
    NUL(s3cmtf_clusters_copy_curve(NULL, out.d, out.d + 5, 5, &settled, out.u, out.u + 1, error));
    NUL(s3cmtf_clusters_copy_curve(clusters, out.d, out.d + 5, 5, &settled, out.u, NULL, error));
    FITS_NOT(s3cmtf_clusters_copy_curve(clusters, out.d, NULL, 2, &settled, out.u, out.u + 1, error));
    FITS_NOT(s3cmtf_clusters_copy_curve(clusters, NULL, out.d, 2, &settled, out.u, out.u + 1, error));
}
static void test_s3cmtf_clusters_copy_rows(void)
{
    NUL(s3cmtf_clusters_copy_rows(NULL, out.u, out.u + 5, 5, out.u + 20, error));
    NUL(s3cmtf_clusters_copy_rows(clusters, out.u, out.u + 5, 5, NULL, error));
    FITS_NOT(s3cmtf_clusters_copy_rows(clusters, out.u, NULL, 1, out.u + 20, error));
    FITS_NOT(s3cmtf_clusters_copy_rows(clusters, NULL, out.u, 1, out.u + 20, error));
}
static void test_s3cmtf_clusters_copy_gaps(void)
{
    NUL(s3cmtf_clusters_copy_gaps(NULL, out.d, out.d + 5, 5, out.u, out.u + 1, error));
    NUL(s3cmtf_clusters_copy_gaps(clusters, out.d, out.d + 5, 5, out.u, NULL, error));
    FITS_NOT(s3cmtf_clusters_copy_gaps(clusters, out.d, NULL, 2, out.u, out.u + 1, error));
    FITS_NOT(s3cmtf_clusters_copy_gaps(clusters, NULL, out.d, 2, out.u, out.u + 1, error));
}
static void test_s3cmtf_clusters_copy_information(void)
{
    NUL(s3cmtf_clusters_copy_information(NULL, out.d, 1, out.u, error));
    NUL(s3cmtf_clusters_copy_information(clusters, out.d, 1, NULL, error));
    FITS_NOT(s3cmtf_clusters_copy_information(clusters, out.d, 0, out.u, error));
}
static void test_s3cmtf_clusters_free(void)
{
    s3cmtf_clusters_free(NULL);
}
static void test_s3cmtf_model_get_record(void)
{
    NUL(s3cmtf_model_get_record(NULL, out.bytes, 64, out.u, error));
    NUL(s3cmtf_model_get_record(model, NULL, 5, out.u, error));
    FITS_NOT(s3cmtf_model_get_record(model, out.bytes, 4, out.u, error));
    BAD(s3cmtf_model_get_record(model, out.bytes, UINT64_MAX, out.u, error));
}
