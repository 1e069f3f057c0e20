/* The second half of the table of misuse.c: options, problems, fits and models. */

static void test_s3cmtf_options_new(void)
{
    NUL(s3cmtf_options_new("paper", NULL, error));
    BAD(s3cmtf_options_new("papr", &out.options, error));
    BAD(s3cmtf_options_new("\xff", &out.options, error));
}
static void test_s3cmtf_options_set(void)
{
    NUL(s3cmtf_options_set(NULL, "rank", "3", error));
    NUL(s3cmtf_options_set(options, NULL, "3", error));
    NUL(s3cmtf_options_set(options, "rank", NULL, error));
    BAD(s3cmtf_options_set(options, "rnak", "3", error));
    BAD(s3cmtf_options_set(options, "rank", "0", error));
    BAD(s3cmtf_options_set(options, "rank", "", error));
    BAD(s3cmtf_options_set(options, "", "", error));
}
static void test_s3cmtf_options_set_whole(void)
{
    NUL(s3cmtf_options_set_whole(NULL, "epochs", 3, error));
    NUL(s3cmtf_options_set_whole(options, NULL, 3, error));
    BAD(s3cmtf_options_set_whole(options, "epochs", UINT64_MAX, error));
    BAD(s3cmtf_options_set_whole(options, "nonneg", 1, error));
    BAD(s3cmtf_options_set_whole(options, "eta", 1, error));
    BAD(s3cmtf_options_set_whole(options, "rank", 3, error));
    BAD(s3cmtf_options_set_whole(options, "model", 1, error));
    BAD(s3cmtf_options_set_whole(options, "epohcs", 3, error));
}
static void test_s3cmtf_options_set_real(void)
{
    NUL(s3cmtf_options_set_real(NULL, "eta", 0.1, error));
    NUL(s3cmtf_options_set_real(options, NULL, 0.1, error));
    BAD(s3cmtf_options_set_real(options, "eta", -0.1, error));
    BAD(s3cmtf_options_set_real(options, "eta", (double)NAN, error));
    BAD(s3cmtf_options_set_real(options, "eta", (double)INFINITY, error));
    BAD(s3cmtf_options_set_real(options, "rank", 2.5, error));
    BAD(s3cmtf_options_set_real(options, "epochs", 3, error)); /* another type, even if it would do */
    BAD(s3cmtf_options_set_real(options, "nonneg", 1, error));
}
static void test_s3cmtf_options_set_flag(void)
{
    NUL(s3cmtf_options_set_flag(NULL, "nonneg", 1, error));
    NUL(s3cmtf_options_set_flag(options, NULL, 1, error));
    BAD(s3cmtf_options_set_flag(options, "eta", 1, error));
    BAD(s3cmtf_options_set_flag(options, "epochs", 1, error));
    OK(s3cmtf_options_set_flag(options, "nonneg", 0, error));
    EACH_WRONG(value) BAD(s3cmtf_options_set_flag(options, "nonneg", value, error));
}
static void test_s3cmtf_options_set_ranks(void)
{
    const uint64_t ranks[3] = {3, 0, 3};
    NUL(s3cmtf_options_set_ranks(NULL, ranks, 1, error));
    NUL(s3cmtf_options_set_ranks(options, NULL, 1, error));
    BAD(s3cmtf_options_set_ranks(options, ranks, 3, error));
    BAD(s3cmtf_options_set_ranks(options, ranks, 0, error));
    BAD(s3cmtf_options_set_ranks(options, ranks, UINT64_MAX, error));
}
static void test_s3cmtf_options_get(void)
{
    NUL(s3cmtf_options_get(NULL, "rank", out.bytes, 64, out.u, error));
    NUL(s3cmtf_options_get(options, NULL, out.bytes, 64, out.u, error));
    NUL(s3cmtf_options_get(options, "rank", NULL, 64, out.u, error));
    BAD(s3cmtf_options_get(options, "rnak", out.bytes, 64, out.u, error));
    BAD(s3cmtf_options_get(options, "rank", out.bytes, HUGE_COUNT + 1, out.u, error));
    FITS_NOT(s3cmtf_options_get(options, "rank", out.bytes, 1, out.u, error));
    FITS_NOT(s3cmtf_options_get(options, "rank", out.bytes, 0, out.u, error));
    uint64_t needed = 0;
    char word[2] = {'x', 'x'};
    OK(s3cmtf_options_get(options, "rank", NULL, 0, &needed, error)); /* how long is it? */
    CHECK(needed == 2);
    OK(s3cmtf_options_get(options, "rank", word, 2, NULL, error));
    CHECK(!strcmp(word, "3"));
}
static void test_s3cmtf_options_free(void) { s3cmtf_options_free(NULL); }
static void test_s3cmtf_option_count(void) { CHECK(s3cmtf_option_count() > 10); }
static void test_s3cmtf_option_type(void)
{
    NUL(s3cmtf_option_type(0, NULL, error));
    BAD(s3cmtf_option_type(s3cmtf_option_count(), out.i, error));
    BAD(s3cmtf_option_type(UINT64_MAX, out.i, error));
}
static void test_s3cmtf_option_text(void)
{
    NUL(s3cmtf_option_text(0, S3CMTF_OPTION_NAME, NULL, error));
    BAD(s3cmtf_option_text(UINT64_MAX, S3CMTF_OPTION_NAME, &out.name, error));
    EACH_WRONG(what) BAD(s3cmtf_option_text(0, what, &out.name, error));
}
static void test_s3cmtf_preset_name(void)
{
    NUL(s3cmtf_preset_name(0, NULL, error));
    BAD(s3cmtf_preset_name(1000, &out.name, error));
}

static void test_s3cmtf_problem_new(void)
{
    NUL(s3cmtf_problem_new(NULL, &out.problem, error));
    NUL(s3cmtf_problem_new(coo, NULL, error));
}
static void test_s3cmtf_problem_add_matrix(void)
{
    const double bad[3] = {-2.0, (double)NAN, (double)INFINITY};
    NUL(s3cmtf_problem_add_matrix(NULL, 1, genres, 0, 1, -1, error));
    NUL(s3cmtf_problem_add_matrix(problem, 1, NULL, 0, 1, -1, error));
    BAD(s3cmtf_problem_add_matrix(problem, 3, genres, 0, 1, -1, error));
    BAD(s3cmtf_problem_add_matrix(problem, UINT64_MAX, genres, 0, 1, -1, error));
    BAD(s3cmtf_problem_add_matrix(problem, 0, genres, 0, 1, -1, error)); /* another size */
    BAD(s3cmtf_problem_add_matrix(problem, 1, coo, 0, 1, -1, error));    /* no matrix */
    BAD(s3cmtf_problem_add_matrix(problem, 1, genres, S3CMTF_MATRIX_GRAPH, 1, -1, error)); /* not square */
    EACH_WRONG(kind) BAD(s3cmtf_problem_add_matrix(problem, 1, genres, kind, 1, -1, error));
    for (int i = 0; i < 3; i++) {
        BAD(s3cmtf_problem_add_matrix(problem, 1, genres, 0, bad[i], -1, error));
        BAD(s3cmtf_problem_add_matrix(problem, 1, genres, 0, 1, bad[i], error));
    }
}
static void test_s3cmtf_problem_add_sampled_matrix(void)
{
    NUL(s3cmtf_problem_add_sampled_matrix(NULL, 1, genres, 2, 1, -1, error));
    NUL(s3cmtf_problem_add_sampled_matrix(problem, 1, NULL, 2, 1, -1, error));
    BAD(s3cmtf_problem_add_sampled_matrix(problem, 3, genres, 2, 1, -1, error));
    BAD(s3cmtf_problem_add_sampled_matrix(problem, 0, genres, 2, 1, -1, error)); /* another size */
    BAD(s3cmtf_problem_add_sampled_matrix(problem, 1, coo, 2, 1, -1, error));    /* no matrix */
    BAD(s3cmtf_problem_add_sampled_matrix(problem, 1, genres, 0, 1, -1, error)); /* no zeros */
    BAD(s3cmtf_problem_add_sampled_matrix(problem, 1, genres, 2, -2, -1, error));
    BAD(s3cmtf_problem_add_sampled_matrix(problem, 1, genres, 2, 1, (double)NAN, error));
    BAD(s3cmtf_problem_add_matrix(problem, 1, genres, S3CMTF_MATRIX_SAMPLED, 1, -1, error)); /* how many? */
}
static void test_s3cmtf_problem_free(void) { s3cmtf_problem_free(NULL); }

static int32_t never(const s3cmtf_progress *progress, void *user)
{
    (void)progress;
    (void)user;
    return 0;
}

static void test_s3cmtf_fit_new(void)
{
    NUL(s3cmtf_fit_new(NULL, options, &out.fit, error));
    NUL(s3cmtf_fit_new(problem, options, NULL, error));
}
static void test_s3cmtf_fit_set_test(void)
{
    NUL(s3cmtf_fit_set_test(NULL, coo, error));
    STATE(s3cmtf_fit_set_test(ended, coo, error));
    OK(s3cmtf_fit_set_test(fit, NULL, error));
}
static void test_s3cmtf_fit_set_valid(void)
{
    NUL(s3cmtf_fit_set_valid(NULL, coo, error));
    STATE(s3cmtf_fit_set_valid(ended, coo, error));
    OK(s3cmtf_fit_set_valid(fit, NULL, error));
}
static void test_s3cmtf_fit_set_init(void)
{
    NUL(s3cmtf_fit_set_init(NULL, model, error));
    STATE(s3cmtf_fit_set_init(ended, model, error));
    OK(s3cmtf_fit_set_init(fit, NULL, error));
}
static void test_s3cmtf_fit_set_checkpoint(void)
{
    NUL(s3cmtf_fit_set_checkpoint(NULL, "x", error));
    STATE(s3cmtf_fit_set_checkpoint(ended, "x", error));
    OK(s3cmtf_fit_set_checkpoint(fit, NULL, error));
}
static void test_s3cmtf_fit_set_resume(void)
{
    NUL(s3cmtf_fit_set_resume(NULL, "x", error));
    STATE(s3cmtf_fit_set_resume(ended, "x", error));
    OK(s3cmtf_fit_set_resume(fit, NULL, error));
}
static void test_s3cmtf_fit_set_cancel(void)
{
    NUL(s3cmtf_fit_set_cancel(NULL, cancel, error));
    STATE(s3cmtf_fit_set_cancel(ended, cancel, error));
    OK(s3cmtf_fit_set_cancel(fit, NULL, error));
}
static void test_s3cmtf_fit_set_callback(void)
{
    NUL(s3cmtf_fit_set_callback(NULL, never, NULL, error));
    STATE(s3cmtf_fit_set_callback(ended, never, NULL, error));
    OK(s3cmtf_fit_set_callback(fit, NULL, NULL, error));
}
static void test_s3cmtf_fit_run(void)
{
    NUL(s3cmtf_fit_run(NULL, &out.model, error));
    NUL(s3cmtf_fit_run(fit, NULL, error));
    STATE(s3cmtf_fit_run(ended, &out.model, error));
    /* What the data contradicts comes out when the fit runs. */
    s3cmtf_fit *wrong = NULL;
    OK(s3cmtf_options_set(options, "rank", "2,2", error));
    OK(s3cmtf_fit_new(problem, options, &wrong, error));
    BAD(s3cmtf_fit_run(wrong, &out.model, error));
    STATE(s3cmtf_fit_run(wrong, &out.model, error));
    STATE(s3cmtf_fit_take(wrong, &out.model, error));
    s3cmtf_fit_free(wrong);
    OK(s3cmtf_options_set(options, "rank", "3", error));
    OK(s3cmtf_fit_new(problem, options, &wrong, error));
    OK(s3cmtf_fit_set_resume(wrong, "/no/such/file", error));
    NOFILE(s3cmtf_fit_run(wrong, &out.model, error));
    s3cmtf_fit_free(wrong);
}
static void test_s3cmtf_fit_start(void)
{
    NUL(s3cmtf_fit_start(NULL, error));
    STATE(s3cmtf_fit_start(ended, error));
    OK(s3cmtf_fit_set_callback(fit, never, NULL, error));
    STATE(s3cmtf_fit_start(fit, error)); /* nobody would be called */
    OK(s3cmtf_fit_set_callback(fit, NULL, NULL, error));
}
static void test_s3cmtf_fit_get_progress(void)
{
    s3cmtf_progress progress, before;
    memset(&progress, 0x5a, sizeof progress);
    progress.size = sizeof progress;
    before = progress;
    NUL(s3cmtf_fit_get_progress(NULL, &progress, error));
    NUL(s3cmtf_fit_get_progress(fit, NULL, error));
    CHECK(!memcmp(&progress, &before, sizeof progress));
    progress.size = 7;
    before = progress;
    BAD(s3cmtf_fit_get_progress(fit, &progress, error));
    CHECK(!memcmp(&progress, &before, sizeof progress));
    BAD(s3cmtf_fit_get_progress(fit, (s3cmtf_progress *)(void *)((char *)&progress + 4), error));
    CHECK(!memcmp(&progress, &before, sizeof progress));
    /* A host compiled with an older, shorter struct. */
    progress.size = 16;
    OK(s3cmtf_fit_get_progress(fit, &progress, error));
    CHECK(progress.size == 16 && progress.state == S3CMTF_FIT_READY && progress.epochs == before.epochs);
    /* And with a newer, longer one. */
    struct {
        s3cmtf_progress known;
        double later;
    } longer;
    longer.known.size = sizeof longer;
    longer.later = 1.5;
    OK(s3cmtf_fit_get_progress(fit, &longer.known, error));
    CHECK(longer.known.size == sizeof(s3cmtf_progress) && longer.later == 1.5);
    CHECK(longer.known.kernel == S3CMTF_KERNEL_UNKNOWN && longer.known.threads == 0);
}
static void test_s3cmtf_fit_wait(void)
{
    NUL(s3cmtf_fit_wait(NULL, 0, out.i, error));
    NUL(s3cmtf_fit_wait(fit, 0, NULL, error));
    BAD(s3cmtf_fit_wait(fit, (double)NAN, out.i, error));
    int32_t running = 7;
    OK(s3cmtf_fit_wait(fit, -1, &running, error)); /* one that does not run is not waited for */
    CHECK(running == 0);
    OK(s3cmtf_fit_wait(ended, (double)INFINITY, &running, error));
}
static void test_s3cmtf_fit_cancel(void) { s3cmtf_fit_cancel(NULL); }
static void test_s3cmtf_fit_take(void)
{
    NUL(s3cmtf_fit_take(NULL, &out.model, error));
    NUL(s3cmtf_fit_take(ended, NULL, error));
    STATE(s3cmtf_fit_take(fit, &out.model, error));   /* has not begun */
    STATE(s3cmtf_fit_take(ended, &out.model, error)); /* was taken */
}
static void test_s3cmtf_fit_free(void) { s3cmtf_fit_free(NULL); }

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
    CHECK(s3cmtf_model_export(model, "/dev/null/x", NULL, error) == S3CMTF_SYSTEM);
}
static void test_s3cmtf_model_free(void) { s3cmtf_model_free(NULL); }

#define GETTER(name, output)                                \
    static void test_##name(void)                           \
    {                                                       \
        NUL(name(NULL, output, error));                     \
        NUL(name(model, NULL, error));                      \
    }
GETTER(s3cmtf_model_get_kind, out.i)
GETTER(s3cmtf_model_get_order, out.u)
GETTER(s3cmtf_model_get_matrices, out.u)
GETTER(s3cmtf_model_get_options, &out.options)
GETTER(s3cmtf_model_get_epochs, out.u)
GETTER(s3cmtf_model_get_mean, out.d)

#define LISTER(name)                                        \
    static void test_##name(void)                           \
    {                                                       \
        NUL(name(NULL, out.u, 3, error));                   \
        NUL(name(model, NULL, 3, error));                   \
        FITS_NOT(name(model, out.u, 2, error));             \
        BAD(name(model, out.u, HUGE_COUNT, error));         \
    }
LISTER(s3cmtf_model_get_dims)
LISTER(s3cmtf_model_get_ranks)

static void test_s3cmtf_model_get_range(void)
{
    NUL(s3cmtf_model_get_range(NULL, out.d, out.d + 1, error));
    NUL(s3cmtf_model_get_range(model, NULL, out.d, error));
    NUL(s3cmtf_model_get_range(model, out.d, NULL, error));
}
static void test_s3cmtf_model_get_rows(void)
{
    NUL(s3cmtf_model_get_rows(NULL, 0, out.u, error));
    NUL(s3cmtf_model_get_rows(model, 0, NULL, error));
    BAD(s3cmtf_model_get_rows(model, 3, out.u, error));
}
static void test_s3cmtf_model_get_matrix(void)
{
    NUL(s3cmtf_model_get_matrix(NULL, 0, out.u, out.i, out.d, out.u + 1, out.u + 2, error));
    BAD(s3cmtf_model_get_matrix(model, 1, out.u, out.i, out.d, out.u + 1, out.u + 2, error));
    OK(s3cmtf_model_get_matrix(model, 0, NULL, NULL, NULL, NULL, NULL, error));
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

#define VIEW_LIST(name, beyond)                                             \
    static void test_##name(void)                                           \
    {                                                                       \
        const float *there = NULL;                                          \
        NUL(name(NULL, 0, &out.floats, out.u, error));                      \
        NUL(name(model, 0, NULL, out.u, error));                            \
        BAD(name(model, beyond, &out.floats, out.u, error));                \
        BAD(name(model, UINT64_MAX, &out.floats, out.u, error));            \
        OK(name(model, 0, &there, NULL, error));                            \
    }
VIEW_LIST(s3cmtf_model_view_biases, 3)
VIEW_LIST(s3cmtf_model_view_offsets, 1)

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
    NUL(s3cmtf_model_view_core(NULL, &out.floats, out.u, error));
    NUL(s3cmtf_model_view_core(model, NULL, out.u, error));
}
#define VIEWER(name, beyond)                                                                  \
    static void test_##name(void)                                                             \
    {                                                                                         \
        NUL(name(NULL, 0, &out.floats, out.u, out.u + 1, out.u + 2, error));                  \
        NUL(name(model, 0, NULL, out.u, out.u + 1, out.u + 2, error));                        \
        BAD(name(model, beyond, &out.floats, out.u, out.u + 1, out.u + 2, error));            \
        BAD(name(model, UINT64_MAX, &out.floats, out.u, out.u + 1, out.u + 2, error));        \
    }
VIEWER(s3cmtf_model_view_factor, 3)
VIEWER(s3cmtf_model_view_matrix, 1)

#define PREDICT(m, count, indices, type, stride, base, clip, threads, numbers, capacity, kind) \
    s3cmtf_model_predict(m, count, indices, type, stride, base, clip, threads, NULL, numbers, capacity, kind, error)
static void test_s3cmtf_model_predict(void)
{
    const uint64_t far[1] = {UINT64_MAX}, zero[1] = {0};
    const void *cells[3] = {data.user, data.film, data.month}, *missing[3] = {data.user, data.film, NULL};
    const void *beyond[3] = {zero, far, zero}, *first[3] = {zero, zero, zero};
    NUL(PREDICT(NULL, 4, cells, S3CMTF_U32, 1, 0, 0, 1, out.d, 4, S3CMTF_F64));
    NUL(PREDICT(model, 4, NULL, S3CMTF_U32, 1, 0, 0, 1, out.d, 4, S3CMTF_F64));
    NUL(PREDICT(model, 4, missing, S3CMTF_U32, 1, 0, 0, 1, out.d, 4, S3CMTF_F64));
    NUL(PREDICT(model, 4, cells, S3CMTF_U32, 1, 0, 0, 1, NULL, 4, S3CMTF_F64));
    FITS_NOT(PREDICT(model, 4, cells, S3CMTF_U32, 1, 0, 0, 1, out.d, 3, S3CMTF_F64));
    FITS_NOT(PREDICT(model, ENTRIES, cells, S3CMTF_U32, 1, 0, 0, 1, out.d, 64, S3CMTF_F64));
    BAD(PREDICT(model, HUGE_COUNT, cells, S3CMTF_U32, 1, 0, 0, 1, out.d, 64, S3CMTF_F64));
    BAD(PREDICT(model, 4, cells, S3CMTF_U32, 1, 0, 0, 1, out.d, HUGE_COUNT, S3CMTF_F64));
    BAD(PREDICT(model, 4, cells, S3CMTF_U32, HUGE_COUNT, 0, 0, 1, out.d, 4, S3CMTF_F64));
    BAD(PREDICT(model, 4, cells, S3CMTF_U32, 0, 0, 0, 1, out.d, 4, S3CMTF_F64));
    BAD(PREDICT(model, 4, cells, S3CMTF_U32, 1, 0, 0, 5000, out.d, 4, S3CMTF_F64));
    ENTRY(PREDICT(model, 1, beyond, S3CMTF_U64, 1, 0, 0, 1, out.d, 4, S3CMTF_F64));
    ENTRY(PREDICT(model, 1, first, S3CMTF_U64, 1, 1, 0, 1, out.d, 4, S3CMTF_F64));
    EACH_WRONG(x) {
        BAD(PREDICT(model, 4, cells, x, 1, 0, 0, 1, out.d, 4, S3CMTF_F64));
        BAD(PREDICT(model, 4, cells, S3CMTF_U32, 1, x, 0, 1, out.d, 4, S3CMTF_F64));
        BAD(PREDICT(model, 4, cells, S3CMTF_U32, 1, 0, x, 1, out.d, 4, S3CMTF_F64));
        BAD(PREDICT(model, 4, cells, S3CMTF_U32, 1, 0, 0, 1, out.d, 4, x));
    }
    OK(PREDICT(model, 0, missing, S3CMTF_U32, 1, 0, 0, 1, NULL, 0, S3CMTF_F64)); /* nothing to do */
    s3cmtf_cancel_request(cancel);
    expect(S3CMTF_CANCELLED,
           s3cmtf_model_predict(model, 4, cells, S3CMTF_U32, 1, 0, 0, 1, cancel, out.d, 4, S3CMTF_F64, error), __LINE__,
           "cancelled");
    s3cmtf_cancel_reset(cancel);
}
#undef PREDICT

static void test_s3cmtf_model_predict_coo(void)
{
    NUL(s3cmtf_model_predict_coo(NULL, coo, 0, 1, NULL, out.d, 64, S3CMTF_F64, error));
    NUL(s3cmtf_model_predict_coo(model, NULL, 0, 1, NULL, out.d, 64, S3CMTF_F64, error));
    NUL(s3cmtf_model_predict_coo(model, coo, 0, 1, NULL, NULL, 64, S3CMTF_F64, error));
    FITS_NOT(s3cmtf_model_predict_coo(model, coo, 0, 1, NULL, out.d, 64, S3CMTF_F64, error));
    BAD(s3cmtf_model_predict_coo(model, genres, 0, 1, NULL, out.d, 64, S3CMTF_F64, error)); /* another order */
    EACH_WRONG(x) {
        BAD(s3cmtf_model_predict_coo(model, coo, x, 1, NULL, out.d, 64, S3CMTF_F64, error));
        BAD(s3cmtf_model_predict_coo(model, coo, 0, 1, NULL, out.d, 64, x, error));
    }
    BAD(s3cmtf_model_predict_coo(model, coo, 0, 1, NULL, out.d, HUGE_COUNT, S3CMTF_F64, error));
    OK(s3cmtf_model_predict_coo(model, empty, 0, 1, NULL, NULL, 0, S3CMTF_F64, error)); /* nothing to do */
}
static void test_s3cmtf_model_evaluate(void)
{
    NUL(s3cmtf_model_evaluate(NULL, coo, 0, 1, NULL, out.d, out.d + 1, error));
    NUL(s3cmtf_model_evaluate(model, NULL, 0, 1, NULL, out.d, out.d + 1, error));
    BAD(s3cmtf_model_evaluate(model, genres, 0, 1, NULL, out.d, out.d + 1, error));
    BAD(s3cmtf_model_evaluate(model, coo, 0, UINT64_MAX, NULL, out.d, out.d + 1, error));
    EACH_WRONG(clip) BAD(s3cmtf_model_evaluate(model, coo, clip, 1, NULL, out.d, out.d + 1, error));
}
