/* Part of misuse.c: models, their descriptions, and copies and views of their numbers. */

static void test_s3cmtf_model_load(void)
{
    NUL(s3cmtf_model_load(NULL, 0, &out.model, error));
    NUL(s3cmtf_model_load("x", 0, NULL, error));
    NOFILE(s3cmtf_model_load("/no/such/file", 0, &out.model, error));
    EACH_WRONG(mode) BAD(s3cmtf_model_load("x", mode, &out.model, error));
}
static void test_s3cmtf_model_save(void)
{
    NUL(s3cmtf_model_save(NULL, "x", error));
    NUL(s3cmtf_model_save(model, NULL, error));
    CHECK(s3cmtf_model_save(model, "/no/such/folder/x", error) != S3CMTF_OK);
}
static void test_s3cmtf_model_export(void)
{
    NUL(s3cmtf_model_export(NULL, "x", NULL, error));
    NUL(s3cmtf_model_export(model, NULL, NULL, error));
    CHECK(s3cmtf_model_export(model, "/dev/null/x", NULL, error) == S3CMTF_BAD_FILE);
}
static void test_s3cmtf_model_free(void) { s3cmtf_model_free(NULL); }

static void test_s3cmtf_model_get_info(void)
{
    s3cmtf_model_info info, before;
    memset(&info, 0x5a, sizeof info);
    info.size = sizeof info;
    before = info;
    NUL(s3cmtf_model_get_info(NULL, &info, error));
    NUL(s3cmtf_model_get_info(model, NULL, error));
    CHECK(!memcmp(&info, &before, sizeof info));
    info.size = 7;
    BAD(s3cmtf_model_get_info(model, &info, error));
}
static void test_s3cmtf_model_get_options(void)
{
    NUL(s3cmtf_model_get_options(NULL, &out.options, error));
    NUL(s3cmtf_model_get_options(model, NULL, error));
}
/* A function that describes one of the modes or matrices; `beyond` is their number. */
#define GET_ONE(name, type, beyond)                          \
    static void test_##name(void)                            \
    {                                                        \
        type info, before;                                   \
        memset(&info, 0x5a, sizeof info);                    \
        info.size = sizeof info;                             \
        before = info;                                       \
        NUL(name(NULL, 0, &info, error));                    \
        NUL(name(model, 0, NULL, error));                    \
        BAD(name(model, beyond, &info, error));              \
        BAD(name(model, UINT64_MAX, &info, error));          \
        CHECK(!memcmp(&info, &before, sizeof info));         \
        info.size = 0;                                       \
        BAD(name(model, 0, &info, error));                   \
    }
GET_ONE(s3cmtf_model_get_mode, s3cmtf_model_mode, 3)
GET_ONE(s3cmtf_model_get_matrix, s3cmtf_model_matrix, 1)

static void test_s3cmtf_model_get_record(void)
{
    NUL(s3cmtf_model_get_record(NULL, out.bytes, 64, out.u, error));
    NUL(s3cmtf_model_get_record(model, NULL, 5, out.u, error));
    FITS_NOT(s3cmtf_model_get_record(model, out.bytes, 4, out.u, error));
    BAD(s3cmtf_model_get_record(model, out.bytes, UINT64_MAX, out.u, error));
}
static void test_s3cmtf_model_get_plan(void)
{
    NUL(s3cmtf_model_get_plan(NULL, out.bytes, 64, out.u, error));
    NUL(s3cmtf_model_get_plan(model, NULL, 5, out.u, error));
    FITS_NOT(s3cmtf_model_get_plan(model, out.bytes, 4, out.u, error));
    BAD(s3cmtf_model_get_plan(model, out.bytes, UINT64_MAX, out.u, error));
}
static void test_s3cmtf_model_get_epoch(void)
{
    s3cmtf_progress progress, before;
    memset(&progress, 0x5a, sizeof progress);
    progress.size = sizeof progress;
    before = progress;
    NUL(s3cmtf_model_get_epoch(NULL, 0, &progress, error));
    NUL(s3cmtf_model_get_epoch(model, 0, NULL, error));
    BAD(s3cmtf_model_get_epoch(model, 2, &progress, error));
    BAD(s3cmtf_model_get_epoch(model, UINT64_MAX, &progress, error));
    CHECK(!memcmp(&progress, &before, sizeof progress));
    progress.size = 0;
    before = progress;
    BAD(s3cmtf_model_get_epoch(model, 0, &progress, error));
    CHECK(!memcmp(&progress, &before, sizeof progress));
}

#define COPY_INDICES(name, beyond)                                          \
    static void test_##name(void)                                           \
    {                                                                       \
        NUL(name(NULL, 0, out.u, 64, S3CMTF_U64, error));                   \
        NUL(name(model, 0, NULL, 64, S3CMTF_U64, error));                   \
        BAD(name(model, beyond, out.u, 64, S3CMTF_U64, error));             \
        FITS_NOT(name(model, 0, out.u, 1, S3CMTF_U64, error));              \
        FITS_NOT(name(model, 0, out.u, 0, S3CMTF_U64, error));              \
        BAD(name(model, 0, out.u, HUGE_COUNT, S3CMTF_U64, error));          \
        BAD(name(model, 0, (char *)out.u + 1, 60, S3CMTF_U32, error));      \
        EACH_WRONG(type) BAD(name(model, 0, out.u, 64, type, error));       \
    }
COPY_INDICES(s3cmtf_model_copy_row_indices, 3)
COPY_INDICES(s3cmtf_model_copy_matrix_indices, 1)

#define COPY_NUMBERS(name, beyond)                                          \
    static void test_##name(void)                                           \
    {                                                                       \
        NUL(name(NULL, 0, out.d, 64, S3CMTF_F64, 0, error));                \
        NUL(name(model, 0, NULL, 64, S3CMTF_F64, 0, error));                \
        BAD(name(model, beyond, out.d, 64, S3CMTF_F64, 0, error));          \
        FITS_NOT(name(model, 0, out.d, 1, S3CMTF_F64, 0, error));           \
        FITS_NOT(name(model, 0, out.d, 0, S3CMTF_F64, 0, error));           \
        BAD(name(model, 0, out.d, HUGE_COUNT, S3CMTF_F64, 0, error));       \
        EACH_WRONG(x) {                                                     \
            BAD(name(model, 0, out.d, 64, x, 0, error));                    \
            BAD(name(model, 0, out.d, 64, S3CMTF_F64, x, error));           \
        }                                                                   \
    }
COPY_NUMBERS(s3cmtf_model_copy_factor, 3)
COPY_NUMBERS(s3cmtf_model_copy_matrix, 1)

#define COPY_LIST(name, beyond)                                             \
    static void test_##name(void)                                           \
    {                                                                       \
        NUL(name(NULL, 0, out.d, 64, S3CMTF_F64, error));                   \
        NUL(name(model, 0, NULL, 64, S3CMTF_F64, error));                   \
        BAD(name(model, beyond, out.d, 64, S3CMTF_F64, error));             \
        BAD(name(model, UINT64_MAX, out.d, 64, S3CMTF_F64, error));         \
        FITS_NOT(name(model, 0, out.d, 1, S3CMTF_F64, error));              \
        FITS_NOT(name(model, 0, out.d, 0, S3CMTF_F64, error));              \
        BAD(name(model, 0, out.d, HUGE_COUNT, S3CMTF_F64, error));          \
        BAD(name(model, 0, (char *)out.d + 1, 60, S3CMTF_F32, error));      \
        EACH_WRONG(type) BAD(name(model, 0, out.d, 64, type, error));       \
    }
COPY_LIST(s3cmtf_model_copy_biases, 3)
COPY_LIST(s3cmtf_model_copy_offsets, 1)

static void test_s3cmtf_model_copy_row(void)
{
    NUL(s3cmtf_model_copy_row(NULL, 0, 0, out.d, 64, S3CMTF_F64, error));
    NUL(s3cmtf_model_copy_row(model, 0, 0, NULL, 64, S3CMTF_F64, error));
    BAD(s3cmtf_model_copy_row(model, 3, 0, out.d, 64, S3CMTF_F64, error));
    BAD(s3cmtf_model_copy_row(model, 0, USERS, out.d, 64, S3CMTF_F64, error));
    BAD(s3cmtf_model_copy_row(model, 0, UINT64_MAX, out.d, 64, S3CMTF_F64, error));
    BAD(s3cmtf_model_copy_row(model, 0, 0, out.d, HUGE_COUNT, S3CMTF_F64, error));
    FITS_NOT(s3cmtf_model_copy_row(model, 0, 0, out.d, 2, S3CMTF_F64, error));
    EACH_WRONG(type) BAD(s3cmtf_model_copy_row(model, 0, 0, out.d, 64, type, error));
}
static void test_s3cmtf_model_copy_core(void)
{
    NUL(s3cmtf_model_copy_core(NULL, out.d, 64, S3CMTF_F64, 0, error));
    NUL(s3cmtf_model_copy_core(model, NULL, 64, S3CMTF_F64, 0, error));
    FITS_NOT(s3cmtf_model_copy_core(model, out.d, 26, S3CMTF_F64, 0, error));
    BAD(s3cmtf_model_copy_core(model, out.d, HUGE_COUNT, S3CMTF_F64, 0, error));
    EACH_WRONG(x) {
        BAD(s3cmtf_model_copy_core(model, out.d, 64, x, 0, error));
        BAD(s3cmtf_model_copy_core(model, out.d, 64, S3CMTF_F64, x, error));
    }
}
static void test_s3cmtf_model_view_core(void)
{
    NUL(s3cmtf_model_view_core(NULL, &out.view, error));
    NUL(s3cmtf_model_view_core(model, NULL, error));
}
#define VIEW(name, beyond)                                   \
    static void test_##name(void)                            \
    {                                                        \
        NUL(name(NULL, 0, &out.view, error));                \
        NUL(name(model, 0, NULL, error));                    \
        BAD(name(model, beyond, &out.view, error));          \
        BAD(name(model, UINT64_MAX, &out.view, error));      \
    }
VIEW(s3cmtf_model_view_factor, 3)
VIEW(s3cmtf_model_view_biases, 3)
VIEW(s3cmtf_model_view_matrix, 1)
VIEW(s3cmtf_model_view_offsets, 1)
#undef VIEW
