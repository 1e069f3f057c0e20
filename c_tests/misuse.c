/* Calls every function of the header with wrong arguments: each call returns a status, and outputs are unchanged.
 * With an argument, prints the names of all functions in the table. */
#include "check.h"

static s3cmtf_error *error;
static planted data;
static s3cmtf_cancel *cancel;
static s3cmtf_text *text;
static s3cmtf_coo *coo, *genres, *empty;
static s3cmtf_options *options;
static s3cmtf_problem *problem;
static s3cmtf_fit *fit, *ended;
static s3cmtf_model *model, *sampled;
static s3cmtf_tune *search, *searched;
static s3cmtf_names *names;
static s3cmtf_concepts *concepts;
static s3cmtf_clusters *clusters;

/* The outputs of all calls. A call that fails must not change any byte. */
static struct outputs {
    s3cmtf_error *error;
    s3cmtf_cancel *cancel;
    s3cmtf_text *text;
    s3cmtf_coo *coo;
    s3cmtf_options *options;
    s3cmtf_problem *problem;
    s3cmtf_fit *fit;
    s3cmtf_tune *tune;
    s3cmtf_model *model;
    s3cmtf_names *names;
    s3cmtf_concepts *concepts;
    s3cmtf_clusters *clusters;
    const char *name;
    const uint32_t *indices;
    const void *values;
    s3cmtf_view view;
    uint64_t u[64];
    double d[64];
    int32_t i[4];
    char bytes[64];
} out, sentinel;

static void expect(int32_t wanted, int32_t status, int line, const char *call)
{
    if (status != wanted || memcmp(&out, &sentinel, sizeof out) != 0) {
        fprintf(stderr, "line %d: %s: %s instead of %s, outputs %s\n", line, call, s3cmtf_status_name(status),
                s3cmtf_status_name(wanted), memcmp(&out, &sentinel, sizeof out) ? "changed" : "unchanged");
        exit(1);
    }
    if (error == NULL) return;
    CHECK(status == S3CMTF_OK || s3cmtf_error_status(error) == status);
    CHECK(status == S3CMTF_OK || s3cmtf_error_message(error)[0] != 0);
}

#define NUL(call) expect(S3CMTF_NULL_ARGUMENT, (call), __LINE__, #call)
#define BAD(call) expect(S3CMTF_BAD_ARGUMENT, (call), __LINE__, #call)
#define FITS_NOT(call) expect(S3CMTF_BUFFER_TOO_SMALL, (call), __LINE__, #call)
#define STATE(call) expect(S3CMTF_BAD_STATE, (call), __LINE__, #call)
#define NOFILE(call) expect(S3CMTF_BAD_FILE, (call), __LINE__, #call)
#define ENTRY(call) expect(S3CMTF_BAD_ENTRY, (call), __LINE__, #call)
#define CANCELLED(call) expect(S3CMTF_CANCELLED, (call), __LINE__, #call)
#define NOMEMORY(call) expect(S3CMTF_OUT_OF_MEMORY, (call), __LINE__, #call)

static const int32_t NO_ENUM[] = {-1, 77, INT32_MIN, INT32_MAX};
#define EACH_WRONG(x) for (int k = 0, x = NO_ENUM[0]; k < 4; k++, x = NO_ENUM[k % 4])
#define HUGE_COUNT (UINT64_MAX / 2)
/* More items than any array of these programs has: to read them is a segmentation fault. */
#define UNREADABLE (UINT64_C(1) << 40)

static void test_s3cmtf_status_name(void)
{
    CHECK(!strcmp(s3cmtf_status_name(S3CMTF_OK), "S3CMTF_OK"));
    CHECK(!strcmp(s3cmtf_status_name(S3CMTF_INTERNAL), "S3CMTF_INTERNAL"));
    EACH_WRONG(status) CHECK(!strcmp(s3cmtf_status_name(status), "S3CMTF_RESERVED"));
}
static void test_s3cmtf_error_new(void)
{
    CHECK(s3cmtf_error_new(NULL) == S3CMTF_NULL_ARGUMENT);
}
static void test_s3cmtf_error_message(void) { CHECK(!strcmp(s3cmtf_error_message(NULL), "")); }
static void test_s3cmtf_error_status(void) { CHECK(s3cmtf_error_status(NULL) == S3CMTF_OK); }
static void test_s3cmtf_error_free(void) { s3cmtf_error_free(NULL); }

static void test_s3cmtf_version_number(void) { CHECK(s3cmtf_version_number() == S3CMTF_VERSION_NUMBER); }
static void test_s3cmtf_version(void)
{
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", S3CMTF_VERSION_MAJOR, S3CMTF_VERSION_MINOR, S3CMTF_VERSION_PATCH);
    CHECK(!strcmp(version, s3cmtf_version()));
}
static void test_s3cmtf_build_info(void) { CHECK(strstr(s3cmtf_build_info(), s3cmtf_version()) != NULL); }
static void test_s3cmtf_kernel_name(void)
{
    NUL(s3cmtf_kernel_name(0, NULL, error));
    EACH_WRONG(kernel) BAD(s3cmtf_kernel_name(kernel, &out.name, error));
}
static void test_s3cmtf_kernel_available(void)
{
    NUL(s3cmtf_kernel_available(0, NULL, error));
    EACH_WRONG(kernel) BAD(s3cmtf_kernel_available(kernel, out.i, error));
}
static void test_s3cmtf_kernel_best(void)
{
    int32_t available = 0;
    OK(s3cmtf_kernel_available(s3cmtf_kernel_best(), &available, error));
    CHECK(available == 1);
}

static void test_s3cmtf_cancel_new(void) { NUL(s3cmtf_cancel_new(NULL, error)); }
static void test_s3cmtf_cancel_request(void) { s3cmtf_cancel_request(NULL); }
static void test_s3cmtf_cancel_reset(void) { s3cmtf_cancel_reset(NULL); }
static void test_s3cmtf_cancel_requested(void)
{
    CHECK(s3cmtf_cancel_requested(NULL) == 0);
    CHECK(s3cmtf_cancel_requested(cancel) == 0);
    s3cmtf_cancel_request(cancel);
    CHECK(s3cmtf_cancel_requested(cancel) == 1);
    s3cmtf_cancel_reset(cancel);
}
static void test_s3cmtf_cancel_free(void) { s3cmtf_cancel_free(NULL); }

static void test_s3cmtf_text_new(void) { NUL(s3cmtf_text_new(NULL, error)); }
static void test_s3cmtf_text_set(void)
{
    NUL(s3cmtf_text_set(NULL, "from", "csv", error));
    NUL(s3cmtf_text_set(text, NULL, "csv", error));
    NUL(s3cmtf_text_set(text, "from", NULL, error));
    BAD(s3cmtf_text_set(text, "from", "xls", error));
    BAD(s3cmtf_text_set(text, "form", "csv", error));
    BAD(s3cmtf_text_set(text, "from", "\xff\xfe", error));
}
static void test_s3cmtf_text_free(void) { s3cmtf_text_free(NULL); }

#include "misuse_coo.h"
#include "misuse_fit.h"
#include "misuse_tune.h"
#include "misuse_model.h"
#include "misuse_predict.h"
#include "misuse_discover.h"

#define TABLE(X)                                                                                                       \
    X(s3cmtf_status_name) X(s3cmtf_error_new) X(s3cmtf_error_message) X(s3cmtf_error_status) X(s3cmtf_error_free)      \
    X(s3cmtf_version_number) X(s3cmtf_version) X(s3cmtf_build_info) X(s3cmtf_kernel_name) X(s3cmtf_kernel_available)   \
    X(s3cmtf_kernel_best) X(s3cmtf_cancel_new) X(s3cmtf_cancel_request) X(s3cmtf_cancel_reset)                         \
    X(s3cmtf_cancel_requested) X(s3cmtf_cancel_free) X(s3cmtf_text_new) X(s3cmtf_text_set) X(s3cmtf_text_free)         \
    X(s3cmtf_coo_new) X(s3cmtf_coo_new_view) X(s3cmtf_coo_open) X(s3cmtf_coo_new_weighted)                             \
    X(s3cmtf_coo_new_weighted_by) X(s3cmtf_coo_get_info) X(s3cmtf_coo_get_dims) X(s3cmtf_coo_view_indices)             \
    X(s3cmtf_coo_view_values) X(s3cmtf_coo_view_weights) X(s3cmtf_coo_summarize) X(s3cmtf_coo_check)                   \
    X(s3cmtf_coo_fix) X(s3cmtf_coo_split) X(s3cmtf_coo_write) X(s3cmtf_coo_convert) X(s3cmtf_coo_free)                 \
    X(s3cmtf_options_new) X(s3cmtf_options_parse) X(s3cmtf_options_set) X(s3cmtf_options_set_integer)                  \
    X(s3cmtf_options_set_real) X(s3cmtf_options_set_bool) X(s3cmtf_options_set_ranks) X(s3cmtf_options_get)            \
    X(s3cmtf_options_free) X(s3cmtf_option_count) X(s3cmtf_option_get_info) X(s3cmtf_preset_name)                      \
    X(s3cmtf_problem_new) X(s3cmtf_problem_add_matrix) X(s3cmtf_problem_free) X(s3cmtf_fit_entries)                    \
    X(s3cmtf_fit_file) X(s3cmtf_fit_new) X(s3cmtf_fit_set_test) X(s3cmtf_fit_set_valid) X(s3cmtf_fit_set_init)         \
    X(s3cmtf_fit_set_checkpoint) X(s3cmtf_fit_set_resume) X(s3cmtf_fit_set_plan) X(s3cmtf_fit_plan)                    \
    X(s3cmtf_fit_set_cancel) X(s3cmtf_fit_set_callback)                                                                \
    X(s3cmtf_fit_run) X(s3cmtf_fit_start) X(s3cmtf_fit_get_progress) X(s3cmtf_fit_wait) X(s3cmtf_fit_cancel)           \
    X(s3cmtf_fit_take) X(s3cmtf_fit_free) X(s3cmtf_tune_new) X(s3cmtf_tune_set_range) X(s3cmtf_tune_set_checkpoint)    \
    X(s3cmtf_tune_set_resume) X(s3cmtf_tune_set_cancel) X(s3cmtf_tune_set_callback) X(s3cmtf_tune_run)                 \
    X(s3cmtf_tune_get_count) X(s3cmtf_tune_get_trial) X(s3cmtf_tune_get_options) X(s3cmtf_tune_get_text)               \
    X(s3cmtf_tune_free) X(s3cmtf_model_load) X(s3cmtf_model_save) X(s3cmtf_model_export) X(s3cmtf_model_get_info)      \
    X(s3cmtf_model_get_mode) X(s3cmtf_model_get_matrix) X(s3cmtf_model_get_options) X(s3cmtf_model_get_record)         \
    X(s3cmtf_model_get_plan)                                                                                           \
    X(s3cmtf_model_get_epoch) X(s3cmtf_model_copy_row_indices) X(s3cmtf_model_copy_factor) X(s3cmtf_model_copy_row)    \
    X(s3cmtf_model_copy_biases) X(s3cmtf_model_copy_core) X(s3cmtf_model_copy_matrix_indices)                          \
    X(s3cmtf_model_copy_matrix) X(s3cmtf_model_copy_offsets) X(s3cmtf_model_view_factor) X(s3cmtf_model_view_biases)   \
    X(s3cmtf_model_view_core) X(s3cmtf_model_view_matrix) X(s3cmtf_model_view_offsets) X(s3cmtf_model_free)            \
    X(s3cmtf_model_predict_cell) X(s3cmtf_model_predict) X(s3cmtf_model_predict_coo) X(s3cmtf_model_evaluate)          \
    X(s3cmtf_model_evaluate_binary) X(s3cmtf_model_evaluate_distributions)                                             \
    X(s3cmtf_model_fold_in) X(s3cmtf_model_recommend) X(s3cmtf_model_similar) X(s3cmtf_model_evaluate_ranking)         \
    X(s3cmtf_concepts_new) X(s3cmtf_concepts_get_count) X(s3cmtf_concepts_get) X(s3cmtf_concepts_copy_rows)            \
    X(s3cmtf_concepts_get_column) X(s3cmtf_concepts_free) X(s3cmtf_concepts_copy_profile) X(s3cmtf_clusters_new)       \
    X(s3cmtf_clusters_get_info) X(s3cmtf_clusters_get) X(s3cmtf_clusters_copy_members) X(s3cmtf_clusters_get_label)    \
    X(s3cmtf_clusters_copy_centre) X(s3cmtf_clusters_copy_rows) X(s3cmtf_clusters_get_gap)                             \
    X(s3cmtf_clusters_copy_information) X(s3cmtf_clusters_free) X(s3cmtf_names_open) X(s3cmtf_names_open_beside)       \
    X(s3cmtf_names_get_count) X(s3cmtf_names_get) X(s3cmtf_names_find) X(s3cmtf_names_free)

static const struct {
    const char *name;
    void (*test)(void);
} table[] = {
#define ROW(name) {#name, test_##name},
    TABLE(ROW)
};

/* A model with posterior samples. */
static s3cmtf_model *sampled_model(void)
{
    const void *const modes[3] = {data.user, data.film, data.month};
    const s3cmtf_entries entries = entries_f32(3, DIMS, indices_u32(modes, ENTRIES), data.stars);
    s3cmtf_model *made = NULL;
    OK(s3cmtf_fit_entries(&entries, "algorithm=gibbs rank=2 samples=4 threads=1", &made, error));
    return made;
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        for (size_t i = 0; i < sizeof table / sizeof *table; i++)
            puts(table[i].name);
        return 0;
    }
    memset(&sentinel, 0x5a, sizeof sentinel);
    memcpy(&out, &sentinel, sizeof out);
    plant(&data);
    CHECK(s3cmtf_error_new(&error) == S3CMTF_OK);
    s3cmtf_error *const handle = error;
    OK(s3cmtf_cancel_new(&cancel, error));
    OK(s3cmtf_text_new(&text, error));
    coo = planted_tensor(&data, error);
    genres = planted_genres(&data, error);
    empty = empty_tensor(error);
    problem = planted_problem(&data, error);
    options = small_options(2, 1, error);
    fit = small_fit(&data, 2, 1, error);
    ended = small_fit(&data, 2, 1, error);
    OK(s3cmtf_fit_run(ended, &model, error));
    sampled = sampled_model();
    OK(s3cmtf_names_open("/dev/null", &names, error));
    const s3cmtf_concepts_request three_rows = {.size = sizeof three_rows, .top = 3, .min_entries = 1};
    OK(s3cmtf_concepts_new(model, 1, &three_rows, &concepts, error));
    const s3cmtf_coo *const matrices[1] = {genres};
    const s3cmtf_clusters_request two_clusters = small_clusters(matrices);
    OK(s3cmtf_clusters_new(model, 1, &two_clusters, &clusters, error));
    OK(s3cmtf_tune_new(problem, options, NULL, &search, error));
    const s3cmtf_tune_request two_trials = {.size = sizeof two_trials, .trials = 2};
    OK(s3cmtf_tune_new(problem, options, &two_trials, &searched, error));
    OK(s3cmtf_tune_run(searched, error));
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        table[i].test();
    /* The same without an error handle. */
    error = NULL;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        table[i].test();
    error = handle;
    /* The objects still work. */
    s3cmtf_model *again = NULL;
    OK(s3cmtf_fit_run(fit, &again, error));
    s3cmtf_model_free(again);
    /* Freeing NULL does nothing. */
    for (int twice = 0; twice < 2; twice++) {
        s3cmtf_model_free(model), model = NULL;
        s3cmtf_model_free(sampled), sampled = NULL;
        s3cmtf_names_free(names), names = NULL;
        s3cmtf_concepts_free(concepts), concepts = NULL;
        s3cmtf_clusters_free(clusters), clusters = NULL;
        s3cmtf_tune_free(search), search = NULL;
        s3cmtf_tune_free(searched), searched = NULL;
        s3cmtf_fit_free(fit), fit = NULL;
        s3cmtf_fit_free(ended), ended = NULL;
        s3cmtf_options_free(options), options = NULL;
        s3cmtf_problem_free(problem), problem = NULL;
        s3cmtf_coo_free(empty), empty = NULL;
        s3cmtf_coo_free(genres), genres = NULL;
        s3cmtf_coo_free(coo), coo = NULL;
        s3cmtf_text_free(text), text = NULL;
        s3cmtf_cancel_free(cancel), cancel = NULL;
        s3cmtf_error_free(error), error = NULL;
    }
    puts("ok");
    return 0;
}
