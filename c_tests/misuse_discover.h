/* Part of misuse.c: recommendations, similar rows, ranking measures, names, concepts and clusters. */

static void test_s3cmtf_model_recommend(void)
{
    const uint64_t far[1] = {UINT64_MAX}, unknown[1] = {USERS + 5}, zero[1] = {0};
    const void *const modes[3] = {data.user, NULL, data.month}, *const beyond[3] = {far, NULL, NULL};
    const void *const none[3] = {unknown, NULL, NULL}, *const below[3] = {zero, NULL, NULL};
    const s3cmtf_recommend_request valid = {
        .size = sizeof valid, .mode = 1, .top = 5, .queries = indices_u32(modes, 4), .threads = 1};
    s3cmtf_recommend_request request = valid;
    uint64_t *u = out.u, *counts = out.u + 40;
    double *d = out.d;
#define ASK(change) (request = valid, change, s3cmtf_model_recommend(model, &request, u, d, 20, counts, error))
#define ONE(modes_of_one, change) \
    ASK((request.queries = indices_u64(modes_of_one, 1), change))
    NUL(s3cmtf_model_recommend(NULL, &valid, u, d, 20, counts, error));
    NUL(s3cmtf_model_recommend(model, NULL, u, d, 20, counts, error));
    NUL(s3cmtf_model_recommend(model, &valid, u, d, 20, NULL, error));
    FITS_NOT(s3cmtf_model_recommend(model, &valid, u, NULL, 19, counts, error));
    FITS_NOT(s3cmtf_model_recommend(model, &valid, NULL, d, 19, counts, error));
    BAD(s3cmtf_model_recommend(model, &valid, u, d, HUGE_COUNT, counts, error));
    NUL(ASK(request.queries.modes = NULL));
    NUL(ASK(request.candidate_count = 3));
    NUL(ASK(request.exclude_row_count = 3));
    FITS_NOT(ASK(request.top = 0)); /* means 10 */
    FITS_NOT(ONE(beyond, request.queries.count = UNREADABLE));
    FITS_NOT(ASK((request.top = 6, request.candidates = zero, request.candidate_count = UNREADABLE)));
    FITS_NOT(ASK((request.top = 6, request.exclude_rows = zero, request.exclude_row_count = UNREADABLE)));
    BAD(ASK(request.size = 0));
    BAD(ASK(request.mode = 3));
    BAD(ASK(request.queries.count = HUGE_COUNT));
    BAD(ASK(request.top = HUGE_COUNT));
    BAD(ASK((request.candidate_count = HUGE_COUNT, request.candidates = zero)));
    BAD(ASK((request.exclude_row_count = HUGE_COUNT, request.exclude_rows = zero)));
    BAD(ASK(request.threads = 5000));
    BAD(ASK((request.exclude = coo, request.exclude_mode = 1))); /* the ranked mode itself */
    BAD(ASK((request.exclude = coo, request.exclude_mode = 3)));
    BAD(ASK(request.exclude = genres)); /* another order */
    BAD(ASK(request.quantile = 0.5));   /* no samples */
    BAD(ASK(request.quantile = -1));
    BAD(ASK(request.quantile = (double)NAN));
    BAD(ONE(below, (request.exclude = coo, request.exclude_mode = 2))); /* averaged over */
    BAD(ONE(none, request.top = 5));
    ENTRY(ONE(beyond, request.top = 5));
    ENTRY(ONE(below, request.queries.base = 1));
    EACH_WRONG(x) {
        BAD(ASK(request.queries.type = x));
        BAD(ASK(request.queries.base = x));
    }
    s3cmtf_cancel_request(cancel);
    CANCELLED(ASK(request.cancel = cancel));
    s3cmtf_cancel_reset(cancel);
#undef ASK
#undef ONE
}
static void test_s3cmtf_model_similar(void)
{
    const uint64_t rows[2] = {0, 1}, beyond[2] = {0, FILMS}, far[1] = {UINT64_MAX};
    const s3cmtf_similar_request valid = {
        .size = sizeof valid, .mode = 1, .top = 5, .rows = rows, .row_count = 2, .threads = 1};
    s3cmtf_similar_request request = valid;
    uint64_t *u = out.u, *counts = out.u + 40;
    double *d = out.d;
#define ASK(change) (request = valid, change, s3cmtf_model_similar(model, &request, u, d, 10, counts, error))
    NUL(s3cmtf_model_similar(NULL, &valid, u, d, 10, counts, error));
    NUL(s3cmtf_model_similar(model, NULL, u, d, 10, counts, error));
    NUL(s3cmtf_model_similar(model, &valid, u, d, 10, NULL, error));
    FITS_NOT(s3cmtf_model_similar(model, &valid, u, d, 9, counts, error));
    NUL(ASK(request.rows = NULL));
    BAD(ASK(request.size = 0));
    BAD(ASK(request.mode = 3));
    BAD(ASK(request.rows = beyond));
    BAD(ASK((request.rows = far, request.row_count = 1)));
    FITS_NOT(ASK(request.top = 0)); /* means 10 */
    FITS_NOT(ASK(request.top = HUGE_COUNT));
    FITS_NOT(ASK(request.row_count = UNREADABLE));
    FITS_NOT(ASK((request.rows = beyond, request.top = 6)));
    BAD(ASK(request.row_count = HUGE_COUNT));
    BAD(ASK(request.threads = 5000));
    s3cmtf_cancel_request(cancel);
    CANCELLED(ASK(request.cancel = cancel));
    s3cmtf_cancel_reset(cancel);
#undef ASK
}
static void test_s3cmtf_model_evaluate_ranking(void)
{
    const s3cmtf_ranking_request valid = {.size = sizeof valid, .mode = 1, .user_mode = 0, .length = 5, .threads = 1};
    s3cmtf_ranking_request request = valid;
    s3cmtf_ranking ranking, before;
    memset(&ranking, 0x5a, sizeof ranking);
    ranking.size = sizeof ranking;
    before = ranking;
#define ASK(change) (request = valid, change, s3cmtf_model_evaluate_ranking(model, coo, empty, &request, &ranking, error))
    NUL(s3cmtf_model_evaluate_ranking(NULL, coo, coo, &valid, &ranking, error));
    NUL(s3cmtf_model_evaluate_ranking(model, NULL, coo, &valid, &ranking, error));
    NUL(s3cmtf_model_evaluate_ranking(model, coo, NULL, &valid, &ranking, error));
    NUL(s3cmtf_model_evaluate_ranking(model, coo, coo, NULL, &ranking, error));
    NUL(s3cmtf_model_evaluate_ranking(model, coo, coo, &valid, NULL, error));
    BAD(s3cmtf_model_evaluate_ranking(model, genres, empty, &valid, &ranking, error));
    BAD(s3cmtf_model_evaluate_ranking(model, coo, genres, &valid, &ranking, error));
    BAD(ASK(request.size = 0));
    BAD(ASK(request.mode = 3));
    BAD(ASK(request.user_mode = 3));
    BAD(ASK(request.user_mode = 1));
    BAD(ASK(request.quantile = 0.5)); /* no samples */
    BAD(ASK((request.has_min_relevant_value = 1, request.min_relevant_value = (double)NAN)));
    BAD(ASK(request.threads = 5000));
    EACH_WRONG(x) BAD(ASK(request.has_min_relevant_value = x));
    s3cmtf_cancel_request(cancel);
    CANCELLED(ASK(request.cancel = cancel));
    s3cmtf_cancel_reset(cancel);
    CHECK(!memcmp(&ranking, &before, sizeof ranking));
    ranking.size = 0;
    BAD(ASK(request.length = 5));
#undef ASK
}

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
    const s3cmtf_concepts_request valid = {
        .size = sizeof valid, .top = 3, .min_entries = 1, .given_modes = modes, .given_rows = rows, .given_count = 2};
    s3cmtf_concepts_request request = valid;
#define ASK(change) (request = valid, change, s3cmtf_concepts_new(model, 1, &request, &out.concepts, error))
    NUL(s3cmtf_concepts_new(NULL, 1, NULL, &out.concepts, error));
    NUL(s3cmtf_concepts_new(model, 1, NULL, NULL, error));
    BAD(s3cmtf_concepts_new(model, 3, NULL, &out.concepts, error));
    BAD(ASK(request.size = 0));
    NUL(ASK(request.given_modes = NULL));
    NUL(ASK(request.given_rows = NULL));
    BAD(ASK(request.given_modes = same));
    BAD(ASK((request.given_modes = own, request.given_count = 1)));
    BAD(ASK((request.given_modes = far, request.given_count = 1)));
    BAD(ASK((request.given_rows = far, request.given_count = 1)));
    BAD(ASK(request.given_count = HUGE_COUNT));
    s3cmtf_cancel_request(cancel);
    CANCELLED(ASK(request.cancel = cancel));
    s3cmtf_cancel_reset(cancel);
#undef ASK
}
static void test_s3cmtf_concepts_get_count(void)
{
    NUL(s3cmtf_concepts_get_count(NULL, out.u, error));
    NUL(s3cmtf_concepts_get_count(concepts, NULL, error));
}
static void test_s3cmtf_concepts_get(void)
{
    s3cmtf_concept info, before;
    memset(&info, 0x5a, sizeof info);
    info.size = sizeof info;
    before = info;
    NUL(s3cmtf_concepts_get(NULL, 0, &info, error));
    NUL(s3cmtf_concepts_get(concepts, 0, NULL, error));
    BAD(s3cmtf_concepts_get(concepts, 1000, &info, error));
    CHECK(!memcmp(&info, &before, sizeof info));
    info.size = 0;
    BAD(s3cmtf_concepts_get(concepts, 0, &info, error));
}
static void test_s3cmtf_concepts_copy_rows(void)
{
    NUL(s3cmtf_concepts_copy_rows(NULL, 0, S3CMTF_LARGEST, out.u, out.d, 3, error));
    BAD(s3cmtf_concepts_copy_rows(concepts, 1000, S3CMTF_LARGEST, out.u, out.d, 3, error));
    BAD(s3cmtf_concepts_copy_rows(concepts, 0, S3CMTF_LARGEST, out.u, out.d, HUGE_COUNT, error));
    FITS_NOT(s3cmtf_concepts_copy_rows(concepts, 0, S3CMTF_LARGEST, out.u, NULL, 2, error));
    FITS_NOT(s3cmtf_concepts_copy_rows(concepts, 0, S3CMTF_SMALLEST, NULL, out.d, 2, error));
    EACH_WRONG(x) BAD(s3cmtf_concepts_copy_rows(concepts, 0, x, out.u, out.d, 3, error));
    OK(s3cmtf_concepts_copy_rows(concepts, 0, S3CMTF_LARGEST, NULL, NULL, 0, error));
}
static void test_s3cmtf_concepts_get_column(void)
{
    s3cmtf_concept_column column, before;
    memset(&column, 0x5a, sizeof column);
    column.size = sizeof column;
    before = column;
    NUL(s3cmtf_concepts_get_column(NULL, 0, S3CMTF_LARGEST, 0, &column, error));
    NUL(s3cmtf_concepts_get_column(concepts, 0, S3CMTF_LARGEST, 0, NULL, error));
    BAD(s3cmtf_concepts_get_column(concepts, 1000, S3CMTF_LARGEST, 0, &column, error));
    BAD(s3cmtf_concepts_get_column(concepts, 0, S3CMTF_LARGEST, 1000, &column, error));
    EACH_WRONG(x) BAD(s3cmtf_concepts_get_column(concepts, 0, x, 0, &column, error));
    CHECK(!memcmp(&column, &before, sizeof column));
    column.size = 0;
    BAD(s3cmtf_concepts_get_column(concepts, 0, S3CMTF_LARGEST, 0, &column, error));
}
static void test_s3cmtf_concepts_copy_profile(void)
{
    const uint64_t mode[1] = {0}, row[1] = {1};
    const s3cmtf_concepts_request request = {
        .size = sizeof request, .given_modes = mode, .given_rows = row, .given_count = 1};
    s3cmtf_concepts *own = NULL;
    OK(s3cmtf_concepts_new(model, 1, &request, &own, error));
    NUL(s3cmtf_concepts_copy_profile(NULL, out.d, 9, out.u, out.u + 1, out.u + 2, error));
    NUL(s3cmtf_concepts_copy_profile(own, out.d, 9, out.u, out.u + 1, NULL, error));
    FITS_NOT(s3cmtf_concepts_copy_profile(own, out.d, 2, out.u, out.u + 1, out.u + 2, error));
    BAD(s3cmtf_concepts_copy_profile(own, out.d, HUGE_COUNT, out.u, out.u + 1, out.u + 2, error));
    s3cmtf_concepts_free(own);
}
static void test_s3cmtf_concepts_free(void) { s3cmtf_concepts_free(NULL); }

/* Two clusters labelled by one matrix, and a gap curve up to three. */
static s3cmtf_clusters_request small_clusters(const s3cmtf_coo *const *matrices)
{
    const s3cmtf_clusters_request request = {.size = sizeof request,
                                             .k = 2,
                                             .max_k = 3,
                                             .restarts = 1,
                                             .references = 2,
                                             .min_entries = 1,
                                             .members = 2,
                                             .labels = 2,
                                             .matrices = matrices,
                                             .matrix_count = 1,
                                             .threads = 1};
    return request;
}
static void test_s3cmtf_clusters_new(void)
{
    const s3cmtf_coo *const one[1] = {genres}, *const none[1] = {NULL}, *const wrong[1] = {coo};
    const s3cmtf_clusters_request valid = small_clusters(one);
    s3cmtf_clusters_request request = valid;
#define ASK(change) (request = valid, change, s3cmtf_clusters_new(model, 1, &request, &out.clusters, error))
    NUL(s3cmtf_clusters_new(NULL, 1, &valid, &out.clusters, error));
    NUL(s3cmtf_clusters_new(model, 1, &valid, NULL, error));
    BAD(s3cmtf_clusters_new(model, 3, &valid, &out.clusters, error));
    BAD(s3cmtf_clusters_new(model, 0, &valid, &out.clusters, error)); /* the matrix has the rows of another mode */
    BAD(ASK(request.size = 0));
    NUL(ASK(request.matrices = NULL));
    NUL(ASK(request.matrices = none));
    BAD(ASK(request.matrices = wrong)); /* no matrix */
    BAD(ASK(request.matrix_count = HUGE_COUNT));
    BAD(ASK(request.threads = 5000));
    BAD(ASK(request.min_entries = UINT64_MAX));
    EACH_WRONG(x) BAD(ASK(request.space = x));
    s3cmtf_cancel_request(cancel);
    CANCELLED(ASK(request.cancel = cancel));
    s3cmtf_cancel_reset(cancel);
#undef ASK
}
static void test_s3cmtf_clusters_get_info(void)
{
    s3cmtf_clusters_info info, before;
    memset(&info, 0x5a, sizeof info);
    info.size = sizeof info;
    before = info;
    NUL(s3cmtf_clusters_get_info(NULL, &info, error));
    NUL(s3cmtf_clusters_get_info(clusters, NULL, error));
    CHECK(!memcmp(&info, &before, sizeof info));
    info.size = 0;
    BAD(s3cmtf_clusters_get_info(clusters, &info, error));
}
static void test_s3cmtf_clusters_get(void)
{
    s3cmtf_cluster info, before;
    memset(&info, 0x5a, sizeof info);
    info.size = sizeof info;
    before = info;
    NUL(s3cmtf_clusters_get(NULL, 0, &info, error));
    NUL(s3cmtf_clusters_get(clusters, 0, NULL, error));
    BAD(s3cmtf_clusters_get(clusters, 2, &info, error));
    CHECK(!memcmp(&info, &before, sizeof info));
    info.size = 0;
    BAD(s3cmtf_clusters_get(clusters, 0, &info, error));
}
static void test_s3cmtf_clusters_copy_members(void)
{
    NUL(s3cmtf_clusters_copy_members(NULL, 0, out.u, out.d, 2, error));
    BAD(s3cmtf_clusters_copy_members(clusters, 2, out.u, out.d, 2, error));
    BAD(s3cmtf_clusters_copy_members(clusters, 0, out.u, out.d, HUGE_COUNT, error));
    FITS_NOT(s3cmtf_clusters_copy_members(clusters, 0, out.u, out.d, 1, error));
    FITS_NOT(s3cmtf_clusters_copy_members(clusters, 0, NULL, out.d, 1, error));
    OK(s3cmtf_clusters_copy_members(clusters, 0, NULL, NULL, 0, error));
}
static void test_s3cmtf_clusters_get_label(void)
{
    s3cmtf_cluster_label label, before;
    memset(&label, 0x5a, sizeof label);
    label.size = sizeof label;
    before = label;
    NUL(s3cmtf_clusters_get_label(NULL, 0, 0, &label, error));
    BAD(s3cmtf_clusters_get_label(clusters, 2, 0, &label, error));
    BAD(s3cmtf_clusters_get_label(clusters, 0, 2, &label, error));
    CHECK(!memcmp(&label, &before, sizeof label));
    for (uint64_t c = 0; c < 2; c++) {
        s3cmtf_cluster info;
        info.size = sizeof info;
        OK(s3cmtf_clusters_get(clusters, c, &info, error));
        if (info.labels == 0) continue;
        NUL(s3cmtf_clusters_get_label(clusters, c, 0, NULL, error));
        label.size = 0;
        BAD(s3cmtf_clusters_get_label(clusters, c, 0, &label, error));
    }
}
static void test_s3cmtf_clusters_copy_centre(void)
{
    NUL(s3cmtf_clusters_copy_centre(NULL, 0, out.d, 9, error));
    NUL(s3cmtf_clusters_copy_centre(clusters, 0, NULL, 9, error));
    BAD(s3cmtf_clusters_copy_centre(clusters, 2, out.d, 9, error));
    FITS_NOT(s3cmtf_clusters_copy_centre(clusters, 0, out.d, 1, error));
}
static void test_s3cmtf_clusters_copy_rows(void)
{
    NUL(s3cmtf_clusters_copy_rows(NULL, out.u, out.u + 5, 5, error));
    FITS_NOT(s3cmtf_clusters_copy_rows(clusters, out.u, NULL, 1, error));
    FITS_NOT(s3cmtf_clusters_copy_rows(clusters, NULL, out.u, 1, error));
    OK(s3cmtf_clusters_copy_rows(clusters, NULL, NULL, 0, error));
}
static void test_s3cmtf_clusters_get_gap(void)
{
    s3cmtf_gap gap, before;
    memset(&gap, 0x5a, sizeof gap);
    gap.size = sizeof gap;
    before = gap;
    NUL(s3cmtf_clusters_get_gap(NULL, 0, &gap, error));
    NUL(s3cmtf_clusters_get_gap(clusters, 0, NULL, error));
    BAD(s3cmtf_clusters_get_gap(clusters, 3, &gap, error));
    CHECK(!memcmp(&gap, &before, sizeof gap));
    gap.size = 0;
    BAD(s3cmtf_clusters_get_gap(clusters, 0, &gap, error));
}
static void test_s3cmtf_clusters_copy_information(void)
{
    NUL(s3cmtf_clusters_copy_information(NULL, out.d, 1, error));
    NUL(s3cmtf_clusters_copy_information(clusters, NULL, 1, error));
    FITS_NOT(s3cmtf_clusters_copy_information(clusters, out.d, 0, error));
}
static void test_s3cmtf_clusters_free(void) { s3cmtf_clusters_free(NULL); }
