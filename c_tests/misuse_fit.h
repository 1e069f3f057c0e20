/* Part of misuse.c: options, problems, fits and the functions that fit in one call. */

static void test_s3cmtf_options_new(void)
{
    NUL(s3cmtf_options_new("paper", NULL, error));
    BAD(s3cmtf_options_new("papr", &out.options, error));
    BAD(s3cmtf_options_new("\xff", &out.options, error));
}
static void test_s3cmtf_options_parse(void)
{
    char text[32];
    NUL(s3cmtf_options_parse(NULL, "rank=3", error));
    NUL(s3cmtf_options_parse(options, NULL, error));
    BAD(s3cmtf_options_parse(options, "rnak=3", error));
    BAD(s3cmtf_options_parse(options, "rank", error));
    BAD(s3cmtf_options_parse(options, "rank=", error));
    BAD(s3cmtf_options_parse(options, "=3", error));
    BAD(s3cmtf_options_parse(options, "rank = 3", error));
    BAD(s3cmtf_options_parse(options, "rank=3,epochs=2", error));
    BAD(s3cmtf_options_parse(options, "preset=papr", error));
    BAD(s3cmtf_options_parse(options, "rank=5 preset=paper", error)); /* a preset comes first */
    BAD(s3cmtf_options_parse(options, "rank=5 \xff", error));
    /* All or nothing: what precedes a bad word is not set either, not even a preset. */
    BAD(s3cmtf_options_parse(options, "preset=default rank=5 epochs=many", error));
    CHECK(error == NULL || strstr(s3cmtf_error_message(error), "epochs") != NULL);
    OK(s3cmtf_options_get(options, "rank", text, sizeof text, NULL, error));
    CHECK(!strcmp(text, "3"));
    OK(s3cmtf_options_get(options, "eta", text, sizeof text, NULL, error));
    CHECK(strcmp(text, "auto") != 0);
    OK(s3cmtf_options_parse(options, "", error)); /* nothing to set */
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
static void test_s3cmtf_options_set_integer(void)
{
    NUL(s3cmtf_options_set_integer(NULL, "epochs", 3, error));
    NUL(s3cmtf_options_set_integer(options, NULL, 3, error));
    BAD(s3cmtf_options_set_integer(options, "epochs", UINT64_MAX, error));
    BAD(s3cmtf_options_set_integer(options, "nonneg", 1, error));
    BAD(s3cmtf_options_set_integer(options, "eta", 1, error));
    BAD(s3cmtf_options_set_integer(options, "rank", 3, error));
    BAD(s3cmtf_options_set_integer(options, "model", 1, error));
    BAD(s3cmtf_options_set_integer(options, "epohcs", 3, error));
}
static void test_s3cmtf_options_set_real(void)
{
    NUL(s3cmtf_options_set_real(NULL, "eta", 0.1, error));
    NUL(s3cmtf_options_set_real(options, NULL, 0.1, error));
    BAD(s3cmtf_options_set_real(options, "eta", -0.1, error));
    BAD(s3cmtf_options_set_real(options, "eta", (double)NAN, error));
    BAD(s3cmtf_options_set_real(options, "eta", (double)INFINITY, error));
    BAD(s3cmtf_options_set_real(options, "rank", 2.5, error));
    BAD(s3cmtf_options_set_real(options, "epochs", 3, error)); /* another type, although 3 is an integer */
    BAD(s3cmtf_options_set_real(options, "nonneg", 1, error));
}
static void test_s3cmtf_options_set_bool(void)
{
    NUL(s3cmtf_options_set_bool(NULL, "nonneg", 1, error));
    NUL(s3cmtf_options_set_bool(options, NULL, 1, error));
    BAD(s3cmtf_options_set_bool(options, "eta", 1, error));
    BAD(s3cmtf_options_set_bool(options, "epochs", 1, error));
    OK(s3cmtf_options_set_bool(options, "nonneg", 0, error));
    EACH_WRONG(value) BAD(s3cmtf_options_set_bool(options, "nonneg", value, error));
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
    OK(s3cmtf_options_get(options, "rank", NULL, 0, &needed, error)); /* the length alone */
    CHECK(needed == 2);
    OK(s3cmtf_options_get(options, "rank", word, 2, NULL, error));
    CHECK(!strcmp(word, "3"));
}
static void test_s3cmtf_options_free(void) { s3cmtf_options_free(NULL); }
static void test_s3cmtf_option_count(void) { CHECK(s3cmtf_option_count() > 10); }
static void test_s3cmtf_option_get_info(void)
{
    s3cmtf_option_info info, before;
    memset(&info, 0x5a, sizeof info);
    info.size = sizeof info;
    before = info;
    NUL(s3cmtf_option_get_info(0, NULL, error));
    BAD(s3cmtf_option_get_info(s3cmtf_option_count(), &info, error));
    BAD(s3cmtf_option_get_info(UINT64_MAX, &info, error));
    CHECK(!memcmp(&info, &before, sizeof info));
    info.size = 0;
    BAD(s3cmtf_option_get_info(0, &info, error));
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
    const s3cmtf_coupling valid = coupling_of(S3CMTF_MATRIX_OBSERVED, 1);
    s3cmtf_coupling coupling = valid;
#define ADD(change) (coupling = valid, change, s3cmtf_problem_add_matrix(problem, 1, genres, &coupling, error))
    NUL(s3cmtf_problem_add_matrix(NULL, 1, genres, &valid, error));
    NUL(s3cmtf_problem_add_matrix(problem, 1, NULL, &valid, error));
    BAD(s3cmtf_problem_add_matrix(problem, 3, genres, &valid, error));
    BAD(s3cmtf_problem_add_matrix(problem, UINT64_MAX, genres, NULL, error));
    BAD(s3cmtf_problem_add_matrix(problem, 0, genres, &valid, error)); /* another size */
    BAD(s3cmtf_problem_add_matrix(problem, 1, coo, &valid, error));    /* no matrix */
    BAD(ADD(coupling.size = 0));
    BAD(ADD(coupling.kind = S3CMTF_MATRIX_GRAPH)); /* not square */
    EACH_WRONG(x) {
        BAD(ADD(coupling.kind = x));
        BAD(ADD(coupling.has_penalty = x));
    }
    for (int i = 0; i < 3; i++) {
        BAD(ADD(coupling.weight = bad[i]));
        BAD(ADD((coupling.has_penalty = 1, coupling.penalty = bad[i])));
    }
    BAD(ADD(coupling.kind = S3CMTF_MATRIX_SAMPLED)); /* no number of zeros */
    BAD(ADD(coupling.zeros = 1));                    /* not sampled */
    BAD((coupling = valid, coupling.kind = S3CMTF_MATRIX_SAMPLED, coupling.zeros = 2,
         s3cmtf_problem_add_matrix(problem, 0, genres, &coupling, error)));
    BAD(ADD((coupling.kind = S3CMTF_MATRIX_SAMPLED, coupling.zeros = 2, coupling.weight = -2)));
#undef ADD
}
static void test_s3cmtf_problem_free(void) { s3cmtf_problem_free(NULL); }

static void test_s3cmtf_fit_entries(void)
{
    ENTRIES_TO_REFUSE
#define FIT(change) (entries = valid, change, s3cmtf_fit_entries(&entries, "epochs=1", &out.model, error))
    BAD_ENTRIES(FIT)
#undef FIT
    NUL(s3cmtf_fit_entries(NULL, "epochs=1", &out.model, error));
    NUL(s3cmtf_fit_entries(&valid, "epochs=1", NULL, error));
    BAD(s3cmtf_fit_entries(&valid, "epohcs=1", &out.model, error));
    BAD(s3cmtf_fit_entries(&valid, "epochs=1 rank", &out.model, error));
    BAD(s3cmtf_fit_entries(&valid, "epochs=1 preset=papr", &out.model, error));
    BAD(s3cmtf_fit_entries(&valid, "\xff", &out.model, error));
    BAD(s3cmtf_fit_entries(&valid, "epochs=1 rank=2,2", &out.model, error)); /* two ranks for three modes */
    const float values[9] = {1, 2, (float)NAN, 4, 5, 6, 7, 8, 9};
    entries = valid;
    entries.values = values;
    ENTRY(s3cmtf_fit_entries(&entries, "epochs=1", &out.model, error));
}
static void test_s3cmtf_fit_file(void)
{
    NUL(s3cmtf_fit_file(NULL, "epochs=1", &out.model, error));
    NUL(s3cmtf_fit_file("/no/such/file.coo", "epochs=1", NULL, error));
    NOFILE(s3cmtf_fit_file("/no/such/file.coo", "epochs=1", &out.model, error));
    NOFILE(s3cmtf_fit_file("/dev/null", NULL, &out.model, error));
    BAD(s3cmtf_fit_file("/no/such/file.coo", "epohcs=1", &out.model, error)); /* before the file is read */
}

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
static void test_s3cmtf_fit_set_plan(void)
{
    NUL(s3cmtf_fit_set_plan(NULL, "{}", error));
    STATE(s3cmtf_fit_set_plan(ended, "{}", error));
    BAD(s3cmtf_fit_set_plan(fit, "", error));
    BAD(s3cmtf_fit_set_plan(fit, "\xff", error));
    BAD(s3cmtf_fit_set_plan(fit, "no JSON", error));
    CHECK(error == NULL || strstr(s3cmtf_error_message(error), "not JSON") != NULL);
    BAD(s3cmtf_fit_set_plan(fit, "{}", error));
    BAD(s3cmtf_fit_set_plan(fit, "{\"s3cmtf_plan\": 1}", error));
    CHECK(error == NULL || strstr(s3cmtf_error_message(error), "plan.") != NULL); /* the missing field */
    OK(s3cmtf_fit_set_plan(fit, NULL, error));
    /* A plan of other data, here of a tensor without a matrix, and one that contradicts an option fail when the fit runs. */
    s3cmtf_problem *other = NULL;
    s3cmtf_options *longer = small_options(7, 1, error);
    OK(s3cmtf_problem_new(coo, &other, error));
    for (int k = 0; k < 2; k++) {
        s3cmtf_fit *planned = NULL, *follower = NULL;
        uint64_t needed = 0;
        OK(s3cmtf_fit_new(k == 0 ? other : problem, options, &planned, error));
        OK(s3cmtf_fit_plan(planned, NULL, 0, &needed, error));
        char *json = malloc(needed);
        OK(s3cmtf_fit_plan(planned, json, needed, NULL, error));
        OK(s3cmtf_fit_new(problem, k == 0 ? options : longer, &follower, error));
        OK(s3cmtf_fit_set_plan(follower, json, error));
        BAD(s3cmtf_fit_run(follower, &out.model, error));
        s3cmtf_fit_free(follower);
        s3cmtf_fit_free(planned);
        free(json);
    }
    s3cmtf_options_free(longer);
    s3cmtf_problem_free(other);
}
static void test_s3cmtf_fit_plan(void)
{
    NUL(s3cmtf_fit_plan(NULL, out.bytes, 64, out.u, error));
    STATE(s3cmtf_fit_plan(ended, out.bytes, 64, out.u, error));
    NUL(s3cmtf_fit_plan(fit, NULL, 64, out.u, error));
    FITS_NOT(s3cmtf_fit_plan(fit, out.bytes, 64, out.u, error));
    FITS_NOT(s3cmtf_fit_plan(fit, out.bytes, 0, out.u, error));
    BAD(s3cmtf_fit_plan(fit, out.bytes, UINT64_MAX, out.u, error));
    OK(s3cmtf_fit_set_plan(fit, NULL, error));
    /* A plan can be cancelled; another is made after that. */
    OK(s3cmtf_fit_set_cancel(fit, cancel, error));
    s3cmtf_cancel_request(cancel);
    CANCELLED(s3cmtf_fit_plan(fit, out.bytes, 64, out.u, error));
    s3cmtf_cancel_reset(cancel);
    FITS_NOT(s3cmtf_fit_plan(fit, out.bytes, 64, out.u, error));
    OK(s3cmtf_fit_set_cancel(fit, NULL, error));
    OK(s3cmtf_fit_set_plan(fit, NULL, error));
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
    /* Options that contradict the data fail when the fit runs. */
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
    STATE(s3cmtf_fit_start(fit, error)); /* a callback is not called in the background */
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
    /* A host compiled with a newer, longer struct. */
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
    OK(s3cmtf_fit_wait(fit, -1, &running, error)); /* a fit that does not run is not waited for */
    CHECK(running == 0);
    OK(s3cmtf_fit_wait(ended, (double)INFINITY, &running, error));
}
static void test_s3cmtf_fit_cancel(void) { s3cmtf_fit_cancel(NULL); }
static void test_s3cmtf_fit_take(void)
{
    NUL(s3cmtf_fit_take(NULL, &out.model, error));
    NUL(s3cmtf_fit_take(ended, NULL, error));
    STATE(s3cmtf_fit_take(fit, &out.model, error));   /* has not begun */
    STATE(s3cmtf_fit_take(ended, &out.model, error)); /* taken before */
}

/* A fit whose callback uses the fit itself, with the error handle of the call that runs it. */
static s3cmtf_fit *own_fit;
static int own_calls;

static int32_t use_own_fit(const s3cmtf_progress *progress, void *user)
{
    (void)user;
    if (progress->event == S3CMTF_EVENT_EPOCH) own_calls++;
    STATE(s3cmtf_fit_set_test(own_fit, coo, error));
    STATE(s3cmtf_fit_set_valid(own_fit, NULL, error));
    STATE(s3cmtf_fit_set_init(own_fit, model, error));
    STATE(s3cmtf_fit_set_checkpoint(own_fit, "x", error));
    STATE(s3cmtf_fit_set_resume(own_fit, "x", error));
    STATE(s3cmtf_fit_set_plan(own_fit, NULL, error));
    STATE(s3cmtf_fit_plan(own_fit, out.bytes, 64, out.u, error));
    STATE(s3cmtf_fit_set_cancel(own_fit, cancel, error));
    STATE(s3cmtf_fit_set_callback(own_fit, NULL, NULL, error));
    STATE(s3cmtf_fit_run(own_fit, &out.model, error));
    STATE(s3cmtf_fit_start(own_fit, error));
    STATE(s3cmtf_fit_wait(own_fit, -1, out.i, error)); /* it would wait for itself */
    STATE(s3cmtf_fit_wait(own_fit, 0, out.i, error));
    STATE(s3cmtf_fit_take(own_fit, &out.model, error));
    const s3cmtf_progress now = progress_of(own_fit, error);
    CHECK(now.state == S3CMTF_FIT_RUNNING && now.epoch == progress->epoch);
    if (progress->epoch == 2) s3cmtf_fit_cancel(own_fit);
    return 0;
}
static int32_t free_own_fit(const s3cmtf_progress *progress, void *user)
{
    const int32_t *event = user;
    if (progress->event != *event) return 0;
    CHECK(++own_calls == 1);
    s3cmtf_fit_free(own_fit);
    return 0;
}
/* Runs an endless fit with a callback. */
static int32_t run_own_fit(const char *settings, s3cmtf_progress_callback callback, void *user, s3cmtf_model **made)
{
    s3cmtf_options *endless = NULL;
    OK(s3cmtf_options_new("paper", &endless, error));
    OK(s3cmtf_options_parse(endless, "epochs=1000000 threads=1 eta=0.005", error));
    OK(s3cmtf_options_parse(endless, settings, error));
    OK(s3cmtf_fit_new(problem, endless, &own_fit, error));
    s3cmtf_options_free(endless);
    OK(s3cmtf_fit_set_callback(own_fit, callback, user, error));
    own_calls = 0;
    return s3cmtf_fit_run(own_fit, made, error);
}
static void test_s3cmtf_fit_free(void)
{
    s3cmtf_model *made = NULL;
    s3cmtf_fit_free(NULL);
    OK(run_own_fit("rank=3", use_own_fit, NULL, &made));
    CHECK(own_calls == 2 && progress_of(own_fit, error).stop_reason == S3CMTF_STOP_CANCELLED);
    s3cmtf_model_free(made);
    s3cmtf_fit_free(own_fit);
    /* A fit that its callback frees ends with the model of the last epoch. */
    int32_t event = S3CMTF_EVENT_EPOCH;
    OK(run_own_fit("rank=3", free_own_fit, &event, &made));
    CHECK(own_calls == 1 && model_info_of(made, error).epochs == 1);
    s3cmtf_model_free(made);
    /* The rank is lowered before the first epoch, so there is no model. */
    event = S3CMTF_EVENT_RANK_LOWERED;
    CANCELLED(run_own_fit("rank=40", free_own_fit, &event, &out.model));
    CHECK(own_calls == 1);
}
