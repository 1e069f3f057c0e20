/* Part of misuse.c: sparse tensors and matrices. */

static void test_s3cmtf_coo_open(void)
{
    NUL(s3cmtf_coo_open(NULL, 0, NULL, NULL, &out.coo, error));
    NUL(s3cmtf_coo_open("x.coo", 0, NULL, NULL, NULL, error));
    NOFILE(s3cmtf_coo_open("/no/such/file.coo", 0, NULL, NULL, &out.coo, error));
    NOFILE(s3cmtf_coo_open("/", 0, NULL, NULL, &out.coo, error));
    NOFILE(s3cmtf_coo_open("/dev/null", 1, NULL, NULL, &out.coo, error));
    EACH_WRONG(mode) BAD(s3cmtf_coo_open("x.coo", mode, NULL, NULL, &out.coo, error));
}

/* Entries that s3cmtf_coo_new() and s3cmtf_fit_entries() must refuse: `USE(change)` passes `entries` after a change. */
#define BAD_ENTRIES(USE)                                                                                              \
    NUL(USE(entries.indices.modes = NULL));                                                                           \
    NUL(USE(entries.indices.modes = missing));                                                                        \
    NUL(USE(entries.values = NULL));                                                                                  \
    BAD(USE(entries.indices.modes = misaligned));                                                                     \
    BAD(USE(entries.values = (const char *)data.stars + 2));                                                          \
    BAD(USE(entries.dims = zero));                                                                                    \
    BAD(USE(entries.dims = large));                                                                                   \
    ENTRY(USE(entries.dims = small));                                                                                 \
    ENTRY(USE((entries.indices.count = ENTRIES, entries.indices.base = 1))); /* a one-based 0 */                      \
    BAD(USE((entries.dims = NULL, entries.indices.count = 0)));              /* unknown dims */                       \
    EACH_WRONG(x) {                                                                                                   \
        BAD(USE(entries.indices.type = x));                                                                           \
        BAD(USE(entries.indices.base = x));                                                                           \
        BAD(USE(entries.value_type = x));                                                                             \
        BAD(USE((entries.weights = data.stars, entries.weight_type = x)));                                            \
        BAD(USE(entries.order = (uint64_t)(int64_t)x));                                                               \
    }                                                                                                                 \
    BAD(USE((entries.weights = data.stars, entries.weight_type = 0)));                                                \
    BAD(USE((entries.weights = (const char *)data.stars + 2, entries.weight_type = S3CMTF_F32)));                     \
    BAD(USE((entries.indices.type = S3CMTF_F32, entries.value_type = S3CMTF_U32))); /* interchanged */                \
    BAD(USE(entries.value_type = 0));                                                                                 \
    BAD(USE(entries.indices.type = 0));                                                                               \
    BAD(USE(entries.order = 0));                                                                                      \
    BAD(USE(entries.order = 1));                                                                                      \
    BAD(USE(entries.order = 9));                                                                                      \
    BAD(USE(entries.size = 0));                                                                                       \
    BAD(USE(entries.indices.count = HUGE_COUNT));                                                                     \
    BAD(USE(entries.indices.stride = HUGE_COUNT));                                                                    \
    BAD(USE((entries.indices.count = UINT64_MAX, entries.indices.stride = UINT64_MAX)));                              \
    NOMEMORY(USE(entries.indices.count = (uint64_t)1 << 60));

#define ENTRIES_TO_REFUSE                                                                                             \
    const void *const modes[3] = {data.user, data.film, data.month};                                                  \
    const void *const missing[3] = {data.user, NULL, data.month};                                                     \
    const void *const misaligned[3] = {data.user, (const char *)data.film + 1, data.month};                           \
    const uint64_t zero[3] = {3, 0, 3}, small[3] = {3, 3, 3}, large[3] = {1, UINT64_MAX, 1};                          \
    const s3cmtf_entries valid = entries_f32(3, DIMS, indices_u32(modes, 9), data.stars);                             \
    s3cmtf_entries entries = valid;

static void test_s3cmtf_coo_new(void)
{
    ENTRIES_TO_REFUSE
#define NEW(change) (entries = valid, change, s3cmtf_coo_new(&entries, &out.coo, error))
    BAD_ENTRIES(NEW)
#undef NEW
    NUL(s3cmtf_coo_new(NULL, &out.coo, error));
    NUL(s3cmtf_coo_new(&valid, NULL, error));

    s3cmtf_coo *none = empty_tensor(error); /* no entries need no arrays */
    s3cmtf_coo_free(none);
    s3cmtf_coo_free(none = NULL);
    /* The type of weights is ignored without weights. */
    entries = valid;
    entries.weight_type = 77;
    OK(s3cmtf_coo_new(&entries, &none, error));
    s3cmtf_coo_free(none);
    /* Strides 0 and 1 are the same. Weights of another type than the values are copied with them. */
    double weights[9];
    const void *copied = NULL;
    const uint32_t *films = NULL;
    for (int i = 0; i < 9; i++) weights[i] = i;
    entries.indices.stride = 1;
    entries.weights = weights;
    entries.weight_type = S3CMTF_F64;
    OK(s3cmtf_coo_new(&entries, &none, error));
    CHECK(coo_info_of(none, error).count == 9 && coo_info_of(none, error).weight_type == S3CMTF_F64);
    OK(s3cmtf_coo_view_indices(none, 1, &films, error));
    CHECK(!memcmp(films, data.film, 9 * sizeof *films));
    OK(s3cmtf_coo_view_weights(none, &copied, error));
    CHECK(copied != (const void *)weights && !memcmp(copied, weights, sizeof weights));
    s3cmtf_coo_free(none);
}

static void test_s3cmtf_coo_new_view(void)
{
    ENTRIES_TO_REFUSE
    (void)small;
    (void)large;
#define VIEW(change) (entries = valid, change, s3cmtf_coo_new_view(&entries, &out.coo, error))
    NUL(s3cmtf_coo_new_view(NULL, &out.coo, error));
    NUL(s3cmtf_coo_new_view(&valid, NULL, error));
    NUL(VIEW(entries.dims = NULL));
    NUL(VIEW(entries.indices.modes = NULL));
    NUL(VIEW(entries.indices.modes = missing));
    NUL(VIEW(entries.values = NULL));
    BAD(VIEW(entries.indices.modes = misaligned));
    BAD(VIEW(entries.dims = zero));
    BAD(VIEW(entries.order = 0));
    BAD(VIEW(entries.order = UINT64_MAX));
    BAD(VIEW(entries.size = 0));
    BAD(VIEW(entries.indices.count = HUGE_COUNT));
    BAD(VIEW(entries.indices.stride = 2));
    BAD(VIEW(entries.indices.base = 1));
    BAD(VIEW(entries.indices.type = S3CMTF_U64));
    BAD(VIEW(entries.values = (const char *)data.stars + 2));
    BAD(VIEW((entries.weights = (const char *)data.stars + 2, entries.weight_type = S3CMTF_F32)));
    BAD(VIEW((entries.weights = data.stars, entries.weight_type = 0)));
    EACH_WRONG(x) {
        BAD(VIEW(entries.value_type = x));
        BAD(VIEW((entries.weights = data.stars, entries.weight_type = x)));
    }
#undef VIEW
    /* Arrays stay where they are, weights too. */
    const uint32_t *films = NULL;
    const void *values = NULL, *weights = NULL;
    s3cmtf_coo *view = NULL;
    entries = valid;
    entries.indices.stride = 1;
    entries.weights = data.stars + 9;
    entries.weight_type = S3CMTF_F32;
    OK(s3cmtf_coo_new_view(&entries, &view, error));
    OK(s3cmtf_coo_view_indices(view, 1, &films, error));
    OK(s3cmtf_coo_view_values(view, &values, error));
    OK(s3cmtf_coo_view_weights(view, &weights, error));
    CHECK(films == data.film && values == data.stars && weights == data.stars + 9);
    s3cmtf_coo_free(view);
}

static void test_s3cmtf_coo_get_info(void)
{
    s3cmtf_coo_info info, before;
    memset(&info, 0x5a, sizeof info);
    info.size = sizeof info;
    before = info;
    NUL(s3cmtf_coo_get_info(NULL, &info, error));
    NUL(s3cmtf_coo_get_info(coo, NULL, error));
    CHECK(!memcmp(&info, &before, sizeof info));
    OK(s3cmtf_coo_get_info(coo, &info, error));
    CHECK(info.order == 3 && info.count == ENTRIES && info.value_type == S3CMTF_F32 && info.weight_type == 0);
}
static void test_s3cmtf_coo_get_dims(void)
{
    NUL(s3cmtf_coo_get_dims(NULL, out.u, 3, error));
    NUL(s3cmtf_coo_get_dims(coo, NULL, 3, error));
    FITS_NOT(s3cmtf_coo_get_dims(coo, out.u, 2, error));
    FITS_NOT(s3cmtf_coo_get_dims(coo, out.u, 0, error));
    BAD(s3cmtf_coo_get_dims(coo, out.u, HUGE_COUNT, error));
}
static void test_s3cmtf_coo_view_indices(void)
{
    NUL(s3cmtf_coo_view_indices(NULL, 0, &out.indices, error));
    NUL(s3cmtf_coo_view_indices(coo, 0, NULL, error));
    BAD(s3cmtf_coo_view_indices(coo, 3, &out.indices, error));
    BAD(s3cmtf_coo_view_indices(coo, UINT64_MAX, &out.indices, error));
}
static void test_s3cmtf_coo_view_values(void)
{
    NUL(s3cmtf_coo_view_values(NULL, &out.values, error));
    NUL(s3cmtf_coo_view_values(coo, NULL, error));
}
static void test_s3cmtf_coo_view_weights(void)
{
    const void *weights = data.stars;
    NUL(s3cmtf_coo_view_weights(NULL, &out.values, error));
    NUL(s3cmtf_coo_view_weights(coo, NULL, error));
    OK(s3cmtf_coo_view_weights(coo, &weights, error));
    CHECK(!weights);
}
static void test_s3cmtf_coo_new_weighted(void)
{
    NUL(s3cmtf_coo_new_weighted(NULL, data.stars, S3CMTF_F32, &out.coo, error));
    NUL(s3cmtf_coo_new_weighted(coo, NULL, S3CMTF_F32, &out.coo, error));
    NUL(s3cmtf_coo_new_weighted(coo, data.stars, S3CMTF_F32, NULL, error));
    BAD(s3cmtf_coo_new_weighted(coo, (const char *)data.stars + 2, S3CMTF_F32, &out.coo, error));
    EACH_WRONG(type) BAD(s3cmtf_coo_new_weighted(coo, data.stars, type, &out.coo, error));
}
static void test_s3cmtf_coo_new_weighted_by(void)
{
    const void *const modes[3] = {data.film, data.film, data.month};
    s3cmtf_coo *other = NULL, *weighted = NULL;
    NUL(s3cmtf_coo_new_weighted_by(NULL, coo, &out.coo, error));
    NUL(s3cmtf_coo_new_weighted_by(coo, NULL, &out.coo, error));
    NUL(s3cmtf_coo_new_weighted_by(coo, coo, NULL, error));
    other = new_coo(entries_f32(3, NULL, indices_u32(modes, ENTRIES), data.stars), error);
    ENTRY(s3cmtf_coo_new_weighted_by(coo, other, &out.coo, error));
    /* Entries and weights are shared: their source may be freed. */
    const void *weights = NULL;
    OK(s3cmtf_coo_new_weighted_by(other, other, &weighted, error));
    s3cmtf_coo_free(other);
    OK(s3cmtf_coo_view_weights(weighted, &weights, error));
    CHECK(weights && !memcmp(weights, data.stars, ENTRIES * sizeof(float)));
    s3cmtf_coo_free(weighted);
}
static void test_s3cmtf_coo_check(void)
{
    s3cmtf_coo_faults faults, before;
    memset(&faults, 0x5a, sizeof faults);
    faults.size = sizeof faults;
    before = faults;
    NUL(s3cmtf_coo_check(NULL, NULL, &faults, error));
    NUL(s3cmtf_coo_check(coo, NULL, NULL, error));
    s3cmtf_cancel_request(cancel);
    CANCELLED(s3cmtf_coo_check(coo, cancel, &faults, error));
    s3cmtf_cancel_reset(cancel);
    CHECK(!memcmp(&faults, &before, sizeof faults));
    faults.size = 0;
    BAD(s3cmtf_coo_check(coo, NULL, &faults, error));
}
static void test_s3cmtf_coo_summarize(void)
{
    s3cmtf_coo_summary summary, before;
    memset(&summary, 0x5a, sizeof summary);
    summary.size = sizeof summary;
    before = summary;
    NUL(s3cmtf_coo_summarize(NULL, NULL, &summary, NULL, 0, error));
    FITS_NOT(s3cmtf_coo_summarize(coo, NULL, &summary, out.u, 2, error));
    BAD(s3cmtf_coo_summarize(coo, NULL, &summary, out.u, HUGE_COUNT, error));
    CHECK(!memcmp(&summary, &before, sizeof summary));
    summary.size = 0;
    BAD(s3cmtf_coo_summarize(coo, NULL, &summary, out.u, 3, error)); /* and no rows */
    OK(s3cmtf_coo_summarize(coo, NULL, NULL, NULL, 0, error));
    const uint32_t zero[1] = {0};
    const void *const modes[3] = {zero, zero, zero};
    const float not_finite[1] = {(float)NAN};
    s3cmtf_coo *damaged = new_coo(entries_f32(3, DIMS, indices_u32(modes, 1), not_finite), error);
    ENTRY(s3cmtf_coo_summarize(damaged, NULL, NULL, out.u, 3, error));
    FITS_NOT(s3cmtf_coo_summarize(damaged, NULL, NULL, out.u, 2, error)); /* entries are not read */
    s3cmtf_coo_free(damaged);
    summary.size = sizeof summary;
    OK(s3cmtf_coo_summarize(empty, NULL, &summary, NULL, 0, error));
    CHECK(isnan(summary.min) && isnan(summary.max) && isnan(summary.mean) && isnan(summary.standard_deviation));
}
static void test_s3cmtf_coo_write(void)
{
    NUL(s3cmtf_coo_write(NULL, "x.coo", 0, NULL, error));
    NUL(s3cmtf_coo_write(coo, NULL, 0, NULL, error));
    EACH_WRONG(type) BAD(s3cmtf_coo_write(coo, "x.coo", type, NULL, error));
    NOFILE(s3cmtf_coo_write(coo, "/tmp/x.csv", 0, NULL, error));
    CHECK(s3cmtf_coo_write(coo, "/no/such/folder/x.coo", 0, NULL, error) != S3CMTF_OK);
}
static void test_s3cmtf_coo_convert(void)
{
    NUL(s3cmtf_coo_convert(NULL, "x.coo", NULL, NULL, error));
    NUL(s3cmtf_coo_convert("/no/such/file", NULL, NULL, NULL, error));
    NOFILE(s3cmtf_coo_convert("/no/such/file", "x.coo", NULL, NULL, error));
}
static void test_s3cmtf_coo_fix(void)
{
    NUL(s3cmtf_coo_fix(NULL, "x.coo", 0, NULL, NULL, NULL, error));
    NUL(s3cmtf_coo_fix(coo, NULL, 0, NULL, NULL, NULL, error));
    EACH_WRONG(keep) BAD(s3cmtf_coo_fix(coo, "x.coo", keep, NULL, out.u, out.u + 1, error));
    BAD(s3cmtf_coo_fix(coo, "x.coo", 0, NULL, out.u, out.u + 1, error)); /* not a file */
}
static void test_s3cmtf_coo_split(void)
{
    const s3cmtf_split_request valid = {.size = sizeof valid, .test_fraction = 0.2};
    NUL(s3cmtf_coo_split(NULL, "x", &valid, error));
    NUL(s3cmtf_coo_split(coo, NULL, &valid, error));
    NUL(s3cmtf_coo_split(coo, "x", NULL, error));
    BAD(s3cmtf_coo_split(coo, "x", &valid, error)); /* not a file; struct_sizes.c has requests with a file */
}
static void test_s3cmtf_coo_free(void) { s3cmtf_coo_free(NULL); }
