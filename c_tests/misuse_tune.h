/* Part of misuse.c: hyperparameter searches. */

static int32_t never_trial(const s3cmtf_trial *trial, void *user)
{
    (void)trial;
    (void)user;
    return 0;
}

static void test_s3cmtf_tune_new(void)
{
    s3cmtf_tune_request request;
#define TUNE(change) \
    (request = (s3cmtf_tune_request){.size = sizeof request}, change, \
     s3cmtf_tune_new(problem, options, &request, &out.tune, error))
    NUL(s3cmtf_tune_new(NULL, options, NULL, &out.tune, error));
    NUL(s3cmtf_tune_new(problem, options, NULL, NULL, error));
    BAD(TUNE(request.size = 0));
    BAD(TUNE(request.trials = UINT64_MAX));
    BAD(TUNE(request.rungs = 21));
    BAD(TUNE(request.fit_threads = 4097));
    BAD(TUNE(request.valid_fraction = 1));
    BAD(TUNE(request.valid_fraction = -0.1));
    BAD(TUNE(request.valid_fraction = (double)NAN));
#undef TUNE
    s3cmtf_tune *tune = NULL; /* 0 is the default of every field */
    request = (s3cmtf_tune_request){.size = sizeof request};
    OK(s3cmtf_tune_new(problem, NULL, &request, &tune, error));
    s3cmtf_tune_free(tune);
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
    s3cmtf_tune *without = NULL; /* no validation entries */
    const s3cmtf_tune_request request = {.size = sizeof request, .valid = empty};
    OK(s3cmtf_tune_new(problem, options, &request, &without, error));
    BAD(s3cmtf_tune_run(without, error));
    s3cmtf_tune_free(without);
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

/* A search whose callback uses the search itself, with the error handle of the call that runs it. */
static s3cmtf_tune *own_search;
static int own_trials;

static int32_t use_own_search(const s3cmtf_trial *trial, void *user)
{
    s3cmtf_trial best = {.size = sizeof best};
    (void)trial;
    (void)user;
    own_trials++;
    STATE(s3cmtf_tune_set_range(own_search, "rank", "2,3", error));
    STATE(s3cmtf_tune_set_checkpoint(own_search, "x", error));
    STATE(s3cmtf_tune_set_resume(own_search, "x", error));
    STATE(s3cmtf_tune_set_cancel(own_search, cancel, error));
    STATE(s3cmtf_tune_set_callback(own_search, NULL, NULL, error));
    STATE(s3cmtf_tune_run(own_search, error));
    STATE(s3cmtf_tune_get_count(own_search, out.u, error));
    STATE(s3cmtf_tune_get_trial(own_search, 0, &best, error));
    STATE(s3cmtf_tune_get_options(own_search, 0, &out.options, error));
    STATE(s3cmtf_tune_get_text(own_search, 0, out.bytes, 64, out.u, error));
    return own_trials == 2;
}
static int32_t free_own_search(const s3cmtf_trial *trial, void *user)
{
    (void)trial;
    (void)user;
    CHECK(++own_trials == 1);
    s3cmtf_tune_free(own_search);
    return 0;
}
/* Runs a long search with a callback. */
static int32_t run_own_search(s3cmtf_trial_callback callback)
{
    const s3cmtf_tune_request request = {.size = sizeof request, .trials = 1000};
    OK(s3cmtf_tune_new(problem, options, &request, &own_search, error));
    OK(s3cmtf_tune_set_callback(own_search, callback, NULL, error));
    own_trials = 0;
    return s3cmtf_tune_run(own_search, error);
}
static void test_s3cmtf_tune_free(void)
{
    uint64_t count = 0;
    s3cmtf_tune_free(NULL);
    OK(run_own_search(use_own_search));
    OK(s3cmtf_tune_get_count(own_search, &count, error));
    CHECK(own_trials == 2 && count == 1000);
    s3cmtf_tune_free(own_search);
    OK(run_own_search(free_own_search));
    CHECK(own_trials == 1);
}
