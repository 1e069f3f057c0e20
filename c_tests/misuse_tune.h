/* The last part of the table of misuse.c: searches for options. */

static int32_t never_trial(const s3cmtf_trial *trial, void *user)
{
    (void)trial;
    (void)user;
    return 0;
}

static void test_s3cmtf_tune_new(void)
{
    NUL(s3cmtf_tune_new(NULL, options, &out.tune, error));
    NUL(s3cmtf_tune_new(problem, options, NULL, error));
}
static void test_s3cmtf_tune_set_trials(void)
{
    NUL(s3cmtf_tune_set_trials(NULL, 3, error));
    BAD(s3cmtf_tune_set_trials(search, 0, error));
    BAD(s3cmtf_tune_set_trials(search, UINT64_MAX, error));
    STATE(s3cmtf_tune_set_trials(searched, 3, error));
}
static void test_s3cmtf_tune_set_rungs(void)
{
    NUL(s3cmtf_tune_set_rungs(NULL, 3, error));
    BAD(s3cmtf_tune_set_rungs(search, 0, error));
    BAD(s3cmtf_tune_set_rungs(search, 21, error));
    STATE(s3cmtf_tune_set_rungs(searched, 3, error));
}
static void test_s3cmtf_tune_set_fit_threads(void)
{
    NUL(s3cmtf_tune_set_fit_threads(NULL, 1, error));
    BAD(s3cmtf_tune_set_fit_threads(search, 0, error));
    BAD(s3cmtf_tune_set_fit_threads(search, 4097, error));
    STATE(s3cmtf_tune_set_fit_threads(searched, 1, error));
}
static void test_s3cmtf_tune_set_fraction(void)
{
    NUL(s3cmtf_tune_set_fraction(NULL, 0.1, error));
    BAD(s3cmtf_tune_set_fraction(search, 0, error));
    BAD(s3cmtf_tune_set_fraction(search, 1, error));
    BAD(s3cmtf_tune_set_fraction(search, (double)NAN, error));
    STATE(s3cmtf_tune_set_fraction(searched, 0.1, error));
}
static void test_s3cmtf_tune_set_valid(void)
{
    NUL(s3cmtf_tune_set_valid(NULL, coo, error));
    STATE(s3cmtf_tune_set_valid(searched, coo, error));
    OK(s3cmtf_tune_set_valid(search, NULL, error));
}
static void test_s3cmtf_tune_set_range(void)
{
    NUL(s3cmtf_tune_set_range(NULL, "rank", "2,3", error));
    NUL(s3cmtf_tune_set_range(search, NULL, "2,3", error));
    NUL(s3cmtf_tune_set_range(search, "rank", NULL, error));
    BAD(s3cmtf_tune_set_range(search, "rnak", "2,3", error));
    BAD(s3cmtf_tune_set_range(search, "rank", "2,,3", error));
    BAD(s3cmtf_tune_set_range(search, "rank", "", error));
    BAD(s3cmtf_tune_set_range(search, "eta", "0.1..0.01", error));
    BAD(s3cmtf_tune_set_range(search, "eta", "0.1..", error));
    BAD(s3cmtf_tune_set_range(search, "eta", "-1..1", error));
    BAD(s3cmtf_tune_set_range(search, "threads", "1,2", error));
    BAD(s3cmtf_tune_set_range(search, "model", "\xff", error));
    STATE(s3cmtf_tune_set_range(searched, "rank", "2,3", error));
}
static void test_s3cmtf_tune_set_checkpoint(void)
{
    NUL(s3cmtf_tune_set_checkpoint(NULL, "x", error));
    STATE(s3cmtf_tune_set_checkpoint(searched, "x", error));
    OK(s3cmtf_tune_set_checkpoint(search, NULL, error));
}
static void test_s3cmtf_tune_set_resume(void)
{
    NUL(s3cmtf_tune_set_resume(NULL, "x", error));
    STATE(s3cmtf_tune_set_resume(searched, "x", error));
    OK(s3cmtf_tune_set_resume(search, NULL, error));
}
static void test_s3cmtf_tune_set_cancel(void)
{
    NUL(s3cmtf_tune_set_cancel(NULL, cancel, error));
    STATE(s3cmtf_tune_set_cancel(searched, cancel, error));
    OK(s3cmtf_tune_set_cancel(search, NULL, error));
}
static void test_s3cmtf_tune_set_callback(void)
{
    NUL(s3cmtf_tune_set_callback(NULL, never_trial, NULL, error));
    STATE(s3cmtf_tune_set_callback(searched, never_trial, NULL, error));
    OK(s3cmtf_tune_set_callback(search, NULL, NULL, error));
}
static void test_s3cmtf_tune_run(void)
{
    NUL(s3cmtf_tune_run(NULL, error));
    STATE(s3cmtf_tune_run(searched, error));
    OK(s3cmtf_tune_set_resume(search, "/no/such", error));
    NOFILE(s3cmtf_tune_run(search, error));
    OK(s3cmtf_tune_set_resume(search, NULL, error));
    OK(s3cmtf_tune_set_valid(search, empty, error));
    BAD(s3cmtf_tune_run(search, error));
    OK(s3cmtf_tune_set_valid(search, NULL, error));
}
static void test_s3cmtf_tune_get_count(void)
{
    NUL(s3cmtf_tune_get_count(NULL, out.u, error));
    NUL(s3cmtf_tune_get_count(searched, NULL, error));
    STATE(s3cmtf_tune_get_count(search, out.u, error));
}
static void test_s3cmtf_tune_get_trial(void)
{
    s3cmtf_trial trial, before;
    memset(&trial, 0x5a, sizeof trial);
    trial.size = sizeof trial;
    before = trial;
    NUL(s3cmtf_tune_get_trial(NULL, 0, &trial, error));
    NUL(s3cmtf_tune_get_trial(searched, 0, NULL, error));
    BAD(s3cmtf_tune_get_trial(searched, 2, &trial, error));
    BAD(s3cmtf_tune_get_trial(searched, UINT64_MAX, &trial, error));
    STATE(s3cmtf_tune_get_trial(search, 0, &trial, error));
    CHECK(!memcmp(&trial, &before, sizeof trial));
    trial.size = 7;
    before = trial;
    BAD(s3cmtf_tune_get_trial(searched, 0, &trial, error));
    CHECK(!memcmp(&trial, &before, sizeof trial));
    /* A host compiled with an older, shorter struct. */
    trial.size = 16;
    OK(s3cmtf_tune_get_trial(searched, 0, &trial, error));
    CHECK(trial.size == 16 && trial.number < 2 && trial.epochs == before.epochs);
}
static void test_s3cmtf_tune_get_options(void)
{
    NUL(s3cmtf_tune_get_options(NULL, 0, &out.options, error));
    NUL(s3cmtf_tune_get_options(searched, 0, NULL, error));
    BAD(s3cmtf_tune_get_options(searched, 2, &out.options, error));
    STATE(s3cmtf_tune_get_options(search, 0, &out.options, error));
}
static void test_s3cmtf_tune_get_text(void)
{
    NUL(s3cmtf_tune_get_text(NULL, 0, out.bytes, 64, out.u, error));
    NUL(s3cmtf_tune_get_text(searched, 0, NULL, 64, out.u, error));
    FITS_NOT(s3cmtf_tune_get_text(searched, 0, out.bytes, 64, out.u, error));
    BAD(s3cmtf_tune_get_text(searched, 2, out.bytes, 64, out.u, error));
    STATE(s3cmtf_tune_get_text(search, 0, out.bytes, 64, out.u, error));
}
static void test_s3cmtf_tune_free(void) { s3cmtf_tune_free(NULL); }
