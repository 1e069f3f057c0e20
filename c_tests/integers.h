/* Beginning of the program that tests/c_abi/integers.rs generates from the header: calls with numbers that no machine can do, in a
 * process whose memory is limited. Each call ends with a status. */
#define _POSIX_C_SOURCE 200809L
#include <sys/resource.h>

#include "check.h"

static s3cmtf_error *error;
static planted data;
static s3cmtf_text *text;
static s3cmtf_coo *coo, *genres;
static s3cmtf_options *options;
static s3cmtf_problem *problem, *tensor_alone;
static s3cmtf_model *model;
static s3cmtf_fit *fit;
static s3cmtf_tune *tune;
static s3cmtf_names *names;
static s3cmtf_concepts *concepts;
static s3cmtf_clusters *clusters;

static const uint64_t NUMBERS[] = {UINT64_C(1) << 31, UINT64_C(1) << 40, UINT64_C(1) << 63, UINT64_MAX};
static const int32_t SMALL_NUMBERS[] = {INT32_MIN, -1, 1 << 30, INT32_MAX};
static const uint32_t UNSIGNED_NUMBERS[] = {UINT32_C(1) << 31, UINT32_MAX};
enum { NUMBER_COUNT = 4, SMALL_NUMBER_COUNT = 4, UNSIGNED_NUMBER_COUNT = 2 };

/* Outputs of all calls, with room for a number per entry: a call that is told of more room writes no more. */
enum { CAPACITY = 2 * ENTRIES };
static uint64_t scratch[CAPACITY];
static const void *pointer;
static int32_t integer;
static s3cmtf_view view;

/* Objects that a call may create. */
static struct made {
    s3cmtf_coo *coo;
    s3cmtf_options *options;
    s3cmtf_tune *tune;
    s3cmtf_model *model;
    s3cmtf_names *names;
    s3cmtf_concepts *concepts;
    s3cmtf_clusters *clusters;
} made;

/* Room for an output struct of this size. */
static void *sized(uint64_t size)
{
    scratch[0] = size;
    return scratch;
}

/* Checks the status of a call and frees what it has created. */
static void checked(int32_t status, const char *what, uint64_t number)
{
    const struct made all = made;
    if (status < S3CMTF_OK || status > S3CMTF_OUT_OF_MEMORY) {
        fprintf(stderr, "%s = %llu: %s: %s\n", what, (unsigned long long)number, s3cmtf_status_name(status),
                s3cmtf_error_message(error));
        exit(1);
    }
    CHECK(status == S3CMTF_OK || s3cmtf_error_message(error)[0] != 0);
    memset(&made, 0, sizeof made);
    s3cmtf_coo_free(all.coo);
    s3cmtf_options_free(all.options);
    s3cmtf_tune_free(all.tune);
    s3cmtf_model_free(all.model);
    s3cmtf_names_free(all.names);
    s3cmtf_concepts_free(all.concepts);
    s3cmtf_clusters_free(all.clusters);
}

/* Requests that succeed, or would with a file. */

static const void *all_modes[3];
static const uint64_t rows[4] = {0, 1, 2, 3};
static const double probabilities[2] = {0.1, 0.9};
static const s3cmtf_coo *matrices[1];
static double deviations[ENTRIES], quantiles[2 * ENTRIES];

static s3cmtf_indices valid_s3cmtf_indices(void)
{
    return indices_u32(all_modes, 4);
}
static s3cmtf_entries valid_s3cmtf_entries(void)
{
    return entries_f32(3, DIMS, indices_u32(all_modes, ENTRIES), data.stars);
}
static s3cmtf_coupling valid_s3cmtf_coupling(void)
{
    s3cmtf_coupling coupling = coupling_of(S3CMTF_MATRIX_SAMPLED, 1);
    coupling.zeros = 1;
    return coupling;
}
static s3cmtf_split_request valid_s3cmtf_split_request(void)
{
    const s3cmtf_split_request request = {.size = sizeof request, .test_fraction = 0.1, .latest = 1, .time_mode = 2};
    return request;
}
static s3cmtf_tune_request valid_s3cmtf_tune_request(void)
{
    const s3cmtf_tune_request request = {.size = sizeof request, .trials = 2};
    return request;
}
static s3cmtf_predict_request valid_s3cmtf_predict_request(void)
{
    s3cmtf_predict_request request = unclipped(1);
    request.deviations = deviations;
    request.quantiles = probabilities;
    request.quantile_count = 2;
    request.quantile_values = quantiles;
    return request;
}
static s3cmtf_fold_in_request valid_s3cmtf_fold_in_request(void)
{
    const s3cmtf_fold_in_request request = {
        .size = sizeof request, .tensor = coo, .matrix_numbers = rows, .replace = 1, .threads = 1};
    return request;
}
static s3cmtf_recommend_request valid_s3cmtf_recommend_request(void)
{
    const s3cmtf_recommend_request request = {.size = sizeof request,
                                              .mode = 1,
                                              .top = 5,
                                              .queries = indices_u32(all_modes, 4),
                                              .exclude = coo,
                                              .candidates = rows,
                                              .candidate_count = 4,
                                              .exclude_rows = rows,
                                              .exclude_row_count = 1,
                                              .threads = 1};
    return request;
}
static s3cmtf_similar_request valid_s3cmtf_similar_request(void)
{
    const s3cmtf_similar_request request = {
        .size = sizeof request, .mode = 1, .top = 5, .rows = rows, .row_count = 4, .threads = 1};
    return request;
}
static s3cmtf_ranking_request valid_s3cmtf_ranking_request(void)
{
    const s3cmtf_ranking_request request = {.size = sizeof request, .mode = 1, .length = 5, .threads = 1};
    return request;
}
static s3cmtf_concepts_request valid_s3cmtf_concepts_request(void)
{
    const s3cmtf_concepts_request request = {
        .size = sizeof request, .top = 3, .given_modes = rows + 2, .given_rows = rows + 1, .given_count = 1};
    return request;
}
static s3cmtf_clusters_request valid_s3cmtf_clusters_request(void)
{
    const s3cmtf_clusters_request request = {.size = sizeof request,
                                             .k = 2,
                                             .max_k = 3,
                                             .restarts = 1,
                                             .references = 2,
                                             .curve_rows = 10,
                                             .members = 2,
                                             .labels = 2,
                                             .matrices = matrices,
                                             .matrix_count = 1,
                                             .threads = 1};
    return request;
}

/* Ends a fit after its first epoch, or when it reports anything else before. */
static int32_t stop_fit(const s3cmtf_progress *progress, void *user)
{
    (void)user;
    return progress->event == S3CMTF_EVENT_EPOCH;
}
static int32_t stop_search(const s3cmtf_trial *trial, void *user)
{
    (void)trial;
    (void)user;
    return 1;
}

/* Fits with an option at a number, if the option may have it. */
static void fit_with(const char *algorithm, const char *name, uint64_t number)
{
    s3cmtf_options *given = NULL;
    s3cmtf_fit *fit = NULL;
    OK(s3cmtf_options_new(NULL, &given, error));
    OK(s3cmtf_options_parse(given, algorithm, error));
    OK(s3cmtf_options_parse(given, "epochs=2 burn_in=1 samples=2 rank=2 start=normal threads=1", error));
    int32_t status = s3cmtf_options_set_integer(given, name, number, error);
    checked(status, name, number);
    if (status == S3CMTF_OK) {
        OK(s3cmtf_fit_new(tensor_alone, given, &fit, error));
        OK(s3cmtf_fit_set_callback(fit, stop_fit, NULL, error));
        status = s3cmtf_fit_run(fit, &made.model, error);
        /* The limit of the memory may be too low for the stacks of all threads; patience needs validation entries. */
        const int is_refused = !strcmp(name, "threads") || !strcmp(name, "patience");
        if (status != S3CMTF_OK && !is_refused) {
            fprintf(stderr, "%s %s=%llu: %s\n", algorithm, name, (unsigned long long)number, s3cmtf_error_message(error));
            exit(1);
        }
        checked(status, name, number);
        s3cmtf_fit_free(fit);
    }
    s3cmtf_options_free(given);
}

/* Every integer option of a fit, also at the end of its range: what it sizes is not allocated before it is needed. */
static void fit_with_all_options(void)
{
    const char *const algorithms[] = {"algorithm=blocked", "algorithm=gibbs", "algorithm=als"};
    uint64_t tested = 0;
    for (uint64_t i = 0; i < s3cmtf_option_count(); i++) {
        s3cmtf_option_info info = {.size = sizeof info};
        OK(s3cmtf_option_get_info(i, &info, error));
        if (info.type != S3CMTF_OPTION_INTEGER) continue;
        for (int a = 0; a < 3; a++) {
            for (int k = 0; k < NUMBER_COUNT; k++) fit_with(algorithms[a], info.name, NUMBERS[k]);
            fit_with(algorithms[a], info.name, strtoull(info.max, NULL, 10));
        }
        tested++;
    }
    CHECK(tested >= 8);
    for (int k = 0; k < NUMBER_COUNT; k++) {
        const uint64_t rank = NUMBERS[k];
        FAILS(S3CMTF_BAD_ARGUMENT, s3cmtf_options_set_ranks(options, &rank, 1, error));
    }
}

/* Numbers of requests at the ends of their ranges. */
static void use_ends_of_ranges(void)
{
    s3cmtf_clusters_request request = valid_s3cmtf_clusters_request();
    const uint64_t defaults = request.restarts;
    request.k = 10000;
    checked(s3cmtf_clusters_new(model, 1, &request, &made.clusters, error), "k", request.k);
    request.k = 2;
    request.restarts = 1000;
    checked(s3cmtf_clusters_new(model, 1, &request, &made.clusters, error), "restarts", request.restarts);
    request.restarts = defaults;
    request.references = 1000;
    checked(s3cmtf_clusters_new(model, 1, &request, &made.clusters, error), "references", request.references);
    request.references = 2;
    request.max_k = 1000;
    request.curve_rows = 1000000;
    checked(s3cmtf_clusters_new(model, 1, &request, &made.clusters, error), "max_k", request.max_k);
    s3cmtf_tune_request search = {.size = sizeof search, .trials = 10000, .rungs = 20};
    OK(s3cmtf_tune_new(problem, options, &search, &made.tune, error));
    OK(s3cmtf_tune_set_callback(made.tune, stop_search, NULL, error));
    checked(s3cmtf_tune_run(made.tune, error), "trials", search.trials);
}

static void begin(void)
{
    plant(&data);
    all_modes[0] = data.user, all_modes[1] = data.film, all_modes[2] = data.month;
    CHECK(s3cmtf_error_new(&error) == S3CMTF_OK);
    OK(s3cmtf_text_new(&text, error));
    coo = planted_tensor(&data, error);
    genres = planted_genres(&data, error);
    matrices[0] = genres;
    problem = planted_problem(&data, error);
    OK(s3cmtf_problem_new(coo, &tensor_alone, error));
    options = small_options(2, 1, error);
    s3cmtf_entries entries = valid_s3cmtf_entries();
    OK(s3cmtf_fit_entries(&entries, "algorithm=gibbs rank=2 samples=4 threads=1", &model, error));
    OK(s3cmtf_names_open("/dev/null", &names, error));
    OK(s3cmtf_concepts_new(model, 1, NULL, &concepts, error));
    const s3cmtf_clusters_request request = valid_s3cmtf_clusters_request();
    OK(s3cmtf_clusters_new(model, 1, &request, &clusters, error));
    const s3cmtf_tune_request search = valid_s3cmtf_tune_request();
    OK(s3cmtf_fit_new(problem, options, &fit, error));
    OK(s3cmtf_tune_new(problem, options, &search, &tune, error));
    OK(s3cmtf_tune_run(tune, error));
    const struct rlimit limit = {1 << 30, 1 << 30};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
}

static void end(void)
{
    s3cmtf_fit_free(fit);
    s3cmtf_tune_free(tune);
    s3cmtf_clusters_free(clusters);
    s3cmtf_concepts_free(concepts);
    s3cmtf_names_free(names);
    s3cmtf_model_free(model);
    s3cmtf_options_free(options);
    s3cmtf_problem_free(tensor_alone);
    s3cmtf_problem_free(problem);
    s3cmtf_coo_free(genres);
    s3cmtf_coo_free(coo);
    s3cmtf_text_free(text);
    s3cmtf_error_free(error);
    puts("ok");
}
