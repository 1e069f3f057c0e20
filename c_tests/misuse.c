/* Every function of the header, used wrongly: a status each time, never a crash, and outputs as they were.
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
static s3cmtf_model *model;
static s3cmtf_tune *search, *searched;
static s3cmtf_names *names;
static s3cmtf_concepts *concepts;
static s3cmtf_clusters *clusters;

/* All outputs of all calls; a call that fails must leave every byte of them alone. */
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
    const float *floats;
    uint64_t u[64];
    double d[64];
    int32_t i[4];
    char bytes[64];
} out, sentinel;

static void expect(int32_t wanted, int32_t status, int line, const char *call)
{
    if (status != wanted || memcmp(&out, &sentinel, sizeof out) != 0) {
        fprintf(stderr, "misuse.c:%d: %s: %s instead of %s, outputs %s\n", line, call, s3cmtf_status_name(status),
                s3cmtf_status_name(wanted), memcmp(&out, &sentinel, sizeof out) ? "changed" : "as they were");
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
#define NOMEMORY(call) expect(S3CMTF_OUT_OF_MEMORY, (call), __LINE__, #call)

static const int32_t NO_ENUM[] = {-1, 77, INT32_MIN, INT32_MAX};
#define EACH_WRONG(x) for (int k = 0, x = NO_ENUM[0]; k < 4; k++, x = NO_ENUM[k % 4])
#define HUGE_COUNT (UINT64_MAX / 2)

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
    int32_t there = 0;
    OK(s3cmtf_kernel_available(s3cmtf_kernel_best(), &there, error));
    CHECK(there == 1);
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

static void test_s3cmtf_coo_open(void)
{
    NUL(s3cmtf_coo_open(NULL, 0, NULL, NULL, &out.coo, error));
    NUL(s3cmtf_coo_open("x.coo", 0, NULL, NULL, NULL, error));
    NOFILE(s3cmtf_coo_open("/no/such/file.coo", 0, NULL, NULL, &out.coo, error));
    NOFILE(s3cmtf_coo_open("/", 0, NULL, NULL, &out.coo, error));
    NOFILE(s3cmtf_coo_open("/dev/null", 1, NULL, NULL, &out.coo, error));
    EACH_WRONG(mode) BAD(s3cmtf_coo_open("x.coo", mode, NULL, NULL, &out.coo, error));
}

#define NEW(order, dims, count, indices, type, stride, base, values, kind) \
    s3cmtf_coo_new(order, dims, count, indices, type, stride, base, values, kind, &out.coo, error)
static void test_s3cmtf_coo_new(void)
{
    const void *indices[3] = {data.user, data.film, data.month};
    const void *missing[3] = {data.user, NULL, data.month};
    const void *crooked[3] = {data.user, (const char *)data.film + 1, data.month};
    const uint64_t zero[3] = {3, 0, 3}, small[3] = {3, 3, 3}, large[3] = {1, UINT64_MAX, 1};
    NUL(NEW(3, DIMS, 9, NULL, S3CMTF_U32, 1, 0, data.stars, S3CMTF_F32));
    NUL(NEW(3, DIMS, 9, missing, S3CMTF_U32, 1, 0, data.stars, S3CMTF_F32));
    NUL(NEW(3, DIMS, 9, indices, S3CMTF_U32, 1, 0, NULL, S3CMTF_F32));
    NUL(s3cmtf_coo_new(3, DIMS, 9, indices, S3CMTF_U32, 1, 0, data.stars, S3CMTF_F32, NULL, error));
    BAD(NEW(3, DIMS, 9, crooked, S3CMTF_U32, 1, 0, data.stars, S3CMTF_F32));
    BAD(NEW(3, zero, 9, indices, S3CMTF_U32, 1, 0, data.stars, S3CMTF_F32));
    BAD(NEW(3, large, 9, indices, S3CMTF_U32, 1, 0, data.stars, S3CMTF_F32));
    ENTRY(NEW(3, small, 9, indices, S3CMTF_U32, 1, 0, data.stars, S3CMTF_F32));
    ENTRY(NEW(3, DIMS, ENTRIES, indices, S3CMTF_U32, 1, 1, data.stars, S3CMTF_F32)); /* a 0 counted from 1 */
    BAD(NEW(3, NULL, 0, indices, S3CMTF_U32, 1, 0, NULL, S3CMTF_F32)); /* sizes unknown */
    BAD(NEW(3, DIMS, 9, indices, S3CMTF_U32, 0, 0, data.stars, S3CMTF_F32));
    EACH_WRONG(x) {
        BAD(NEW(3, DIMS, 9, indices, x, 1, 0, data.stars, S3CMTF_F32));
        BAD(NEW(3, DIMS, 9, indices, S3CMTF_U32, 1, x, data.stars, S3CMTF_F32));
        BAD(NEW(3, DIMS, 9, indices, S3CMTF_U32, 1, 0, data.stars, x));
        BAD(NEW((uint64_t)(int64_t)x, DIMS, 9, indices, S3CMTF_U32, 1, 0, data.stars, S3CMTF_F32));
    }
    BAD(NEW(3, DIMS, 9, indices, S3CMTF_F32, 1, 0, data.stars, S3CMTF_U32)); /* mixed up */
    BAD(NEW(0, DIMS, 9, indices, S3CMTF_U32, 1, 0, data.stars, S3CMTF_F32));
    BAD(NEW(1, DIMS, 9, indices, S3CMTF_U32, 1, 0, data.stars, S3CMTF_F32));
    BAD(NEW(9, DIMS, 9, indices, S3CMTF_U32, 1, 0, data.stars, S3CMTF_F32));
    BAD(NEW(3, DIMS, HUGE_COUNT, indices, S3CMTF_U32, 1, 0, data.stars, S3CMTF_F32));
    BAD(NEW(3, DIMS, 9, indices, S3CMTF_U32, HUGE_COUNT, 0, data.stars, S3CMTF_F32));
    BAD(NEW(3, DIMS, UINT64_MAX, indices, S3CMTF_U32, UINT64_MAX, 0, data.stars, S3CMTF_F32));
    NOMEMORY(NEW(3, DIMS, (uint64_t)1 << 60, indices, S3CMTF_U32, 1, 0, data.stars, S3CMTF_F32));

    s3cmtf_coo *none = NULL; /* no entries need no arrays */
    OK(s3cmtf_coo_new(3, DIMS, 0, missing, S3CMTF_U32, 0, 0, NULL, S3CMTF_F64, &none, error));
    s3cmtf_coo_free(none);
    s3cmtf_coo_free(none = NULL); /* freed, set to NULL, freed again */
}
#undef NEW

#define VIEW(order, dims, count, indices, values, kind) \
    s3cmtf_coo_new_view(order, dims, count, indices, values, kind, &out.coo, error)
static void test_s3cmtf_coo_new_view(void)
{
    const uint32_t *indices[3] = {data.user, data.film, data.month}, *missing[3] = {data.user, NULL, data.month};
    const uint64_t zero[3] = {3, 0, 3};
    NUL(VIEW(3, NULL, 9, indices, data.stars, S3CMTF_F32));
    NUL(VIEW(3, DIMS, 9, NULL, data.stars, S3CMTF_F32));
    NUL(VIEW(3, DIMS, 9, missing, data.stars, S3CMTF_F32));
    NUL(VIEW(3, DIMS, 9, indices, NULL, S3CMTF_F32));
    NUL(s3cmtf_coo_new_view(3, DIMS, 9, indices, data.stars, S3CMTF_F32, NULL, error));
    BAD(VIEW(3, zero, 9, indices, data.stars, S3CMTF_F32));
    BAD(VIEW(0, DIMS, 9, indices, data.stars, S3CMTF_F32));
    BAD(VIEW(UINT64_MAX, DIMS, 9, indices, data.stars, S3CMTF_F32));
    BAD(VIEW(3, DIMS, HUGE_COUNT, indices, data.stars, S3CMTF_F32));
    BAD(VIEW(3, DIMS, 9, indices, (const char *)data.stars + 2, S3CMTF_F32));
    EACH_WRONG(kind) BAD(VIEW(3, DIMS, 9, indices, data.stars, kind));
}
#undef VIEW

static void test_s3cmtf_coo_get_order(void)
{
    NUL(s3cmtf_coo_get_order(NULL, out.u, error));
    NUL(s3cmtf_coo_get_order(coo, NULL, error));
}
static void test_s3cmtf_coo_get_count(void)
{
    NUL(s3cmtf_coo_get_count(NULL, out.u, error));
    NUL(s3cmtf_coo_get_count(coo, NULL, error));
}
static void test_s3cmtf_coo_get_dims(void)
{
    NUL(s3cmtf_coo_get_dims(NULL, out.u, 3, error));
    NUL(s3cmtf_coo_get_dims(coo, NULL, 3, error));
    FITS_NOT(s3cmtf_coo_get_dims(coo, out.u, 2, error));
    FITS_NOT(s3cmtf_coo_get_dims(coo, out.u, 0, error));
    BAD(s3cmtf_coo_get_dims(coo, out.u, HUGE_COUNT, error));
}
static void test_s3cmtf_coo_get_value_type(void)
{
    NUL(s3cmtf_coo_get_value_type(NULL, out.i, error));
    NUL(s3cmtf_coo_get_value_type(coo, NULL, error));
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
    const void *turned[3] = {data.film, data.film, data.month};
    s3cmtf_coo *other = NULL, *weighted = NULL;
    NUL(s3cmtf_coo_new_weighted_by(NULL, coo, &out.coo, error));
    NUL(s3cmtf_coo_new_weighted_by(coo, NULL, &out.coo, error));
    NUL(s3cmtf_coo_new_weighted_by(coo, coo, NULL, error));
    OK(s3cmtf_coo_new(3, NULL, ENTRIES, turned, S3CMTF_U32, 1, 0, data.stars, S3CMTF_F32, &other, error));
    ENTRY(s3cmtf_coo_new_weighted_by(coo, other, &out.coo, error));
    /* Its entries and weights are shared: what they came from may go. */
    const void *weights = NULL;
    OK(s3cmtf_coo_new_weighted_by(other, other, &weighted, error));
    s3cmtf_coo_free(other);
    OK(s3cmtf_coo_view_weights(weighted, &weights, error));
    CHECK(weights && !memcmp(weights, data.stars, ENTRIES * sizeof(float)));
    s3cmtf_coo_free(weighted);
}
static void test_s3cmtf_coo_get_weight_type(void)
{
    int32_t type = -1;
    NUL(s3cmtf_coo_get_weight_type(NULL, out.i, error));
    NUL(s3cmtf_coo_get_weight_type(coo, NULL, error));
    OK(s3cmtf_coo_get_weight_type(coo, &type, error));
    CHECK(type == 0);
}
static void test_s3cmtf_coo_view_weights(void)
{
    const void *weights = data.stars;
    NUL(s3cmtf_coo_view_weights(NULL, &out.values, error));
    NUL(s3cmtf_coo_view_weights(coo, NULL, error));
    OK(s3cmtf_coo_view_weights(coo, &weights, error));
    CHECK(!weights);
}
static void test_s3cmtf_coo_check(void)
{
    NUL(s3cmtf_coo_check(NULL, NULL, out.u, 5, error));
    NUL(s3cmtf_coo_check(coo, NULL, NULL, 5, error));
    NUL(s3cmtf_coo_check(coo, NULL, NULL, 1, error));
    BAD(s3cmtf_coo_check(coo, NULL, out.u, HUGE_COUNT, error));
    BAD(s3cmtf_coo_check(coo, NULL, (uint64_t *)(void *)((char *)out.u + 1), 5, error));
    /* As many as there is room for: a host knows those of its header. */
    uint64_t counts[2] = {9, 9};
    OK(s3cmtf_coo_check(coo, NULL, counts, 1, error));
    CHECK(counts[S3CMTF_CHECK_DAMAGED] == 0 && counts[1] == 9);
    OK(s3cmtf_coo_check(coo, NULL, NULL, 0, error));
}
static void test_s3cmtf_coo_summarize(void)
{
    NUL(s3cmtf_coo_summarize(NULL, NULL, out.d, NULL, NULL, NULL, NULL, 0, error));
    FITS_NOT(s3cmtf_coo_summarize(coo, NULL, out.d, NULL, NULL, NULL, out.u, 2, error));
    BAD(s3cmtf_coo_summarize(coo, NULL, out.d, NULL, NULL, NULL, out.u, HUGE_COUNT, error));
    OK(s3cmtf_coo_summarize(coo, NULL, NULL, NULL, NULL, NULL, NULL, 0, error));
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
    NUL(s3cmtf_coo_split(NULL, "x", 0.2, 0, 0, S3CMTF_NO_MODE, S3CMTF_NO_MODE, NULL, error));
    NUL(s3cmtf_coo_split(coo, NULL, 0.2, 0, 0, S3CMTF_NO_MODE, S3CMTF_NO_MODE, NULL, error));
    BAD(s3cmtf_coo_split(coo, "x", 0.2, 0, 0, S3CMTF_NO_MODE, S3CMTF_NO_MODE, NULL, error)); /* not a file */
}
static void test_s3cmtf_coo_free(void) { s3cmtf_coo_free(NULL); }

#include "misuse_more.h"
#include "misuse_tune.h"
#include "misuse_later.h"
#include "misuse_discover.h"

#define TABLE(X)                                                                                                       \
    X(s3cmtf_status_name) X(s3cmtf_error_new) X(s3cmtf_error_message) X(s3cmtf_error_status) X(s3cmtf_error_free)      \
    X(s3cmtf_version_number) X(s3cmtf_version) X(s3cmtf_build_info) X(s3cmtf_kernel_name) X(s3cmtf_kernel_available)   \
    X(s3cmtf_kernel_best) X(s3cmtf_cancel_new) X(s3cmtf_cancel_request) X(s3cmtf_cancel_reset)                         \
    X(s3cmtf_cancel_requested) X(s3cmtf_cancel_free) X(s3cmtf_text_new) X(s3cmtf_text_set) X(s3cmtf_text_free)         \
    X(s3cmtf_coo_open) X(s3cmtf_coo_new) X(s3cmtf_coo_new_view) X(s3cmtf_coo_get_order) X(s3cmtf_coo_get_count)        \
    X(s3cmtf_coo_get_dims) X(s3cmtf_coo_get_value_type) X(s3cmtf_coo_view_indices) X(s3cmtf_coo_view_values)           \
    X(s3cmtf_coo_new_weighted) X(s3cmtf_coo_new_weighted_by) X(s3cmtf_coo_get_weight_type)                             \
    X(s3cmtf_coo_view_weights) X(s3cmtf_coo_check) X(s3cmtf_coo_summarize) X(s3cmtf_coo_write) X(s3cmtf_coo_convert)   \
    X(s3cmtf_coo_fix) X(s3cmtf_coo_split) X(s3cmtf_coo_free) X(s3cmtf_options_new) X(s3cmtf_options_set)               \
    X(s3cmtf_options_set_whole) X(s3cmtf_options_set_real) X(s3cmtf_options_set_flag) X(s3cmtf_options_set_ranks)      \
    X(s3cmtf_options_get) X(s3cmtf_options_free) X(s3cmtf_option_count) X(s3cmtf_option_type) X(s3cmtf_option_text)    \
    X(s3cmtf_preset_name) X(s3cmtf_problem_new) X(s3cmtf_problem_add_matrix) X(s3cmtf_problem_free)                    \
    X(s3cmtf_fit_new) X(s3cmtf_fit_set_test) X(s3cmtf_problem_add_sampled_matrix) X(s3cmtf_fit_set_valid)              \
    X(s3cmtf_fit_set_init) X(s3cmtf_fit_set_checkpoint) X(s3cmtf_fit_set_resume) X(s3cmtf_fit_set_cancel)              \
    X(s3cmtf_fit_set_callback) X(s3cmtf_fit_run) X(s3cmtf_fit_start) X(s3cmtf_fit_get_progress) X(s3cmtf_fit_wait)     \
    X(s3cmtf_fit_cancel) X(s3cmtf_fit_take) X(s3cmtf_fit_free) X(s3cmtf_model_load) X(s3cmtf_model_save)               \
    X(s3cmtf_model_export) X(s3cmtf_model_free) X(s3cmtf_model_get_kind) X(s3cmtf_model_get_order)                     \
    X(s3cmtf_model_get_dims) X(s3cmtf_model_get_ranks) X(s3cmtf_model_get_range) X(s3cmtf_model_get_mean)              \
    X(s3cmtf_model_copy_biases) X(s3cmtf_model_view_biases) X(s3cmtf_model_copy_offsets)                               \
    X(s3cmtf_model_view_offsets) X(s3cmtf_model_get_rows) X(s3cmtf_model_get_matrices) X(s3cmtf_model_get_matrix)      \
    X(s3cmtf_model_get_options) X(s3cmtf_model_get_record) X(s3cmtf_model_get_epochs) X(s3cmtf_model_get_epoch)        \
    X(s3cmtf_model_copy_row_indices) X(s3cmtf_model_copy_factor) X(s3cmtf_model_copy_row)                              \
    X(s3cmtf_model_view_factor) X(s3cmtf_model_copy_core) X(s3cmtf_model_view_core)                                    \
    X(s3cmtf_model_copy_matrix_indices) X(s3cmtf_model_copy_matrix) X(s3cmtf_model_view_matrix)                        \
    X(s3cmtf_model_predict) X(s3cmtf_model_predict_coo) X(s3cmtf_model_evaluate) X(s3cmtf_model_get_samples)           \
    X(s3cmtf_model_predict_spread) X(s3cmtf_model_predict_spread_coo) X(s3cmtf_model_fold_in)                          \
    X(s3cmtf_model_recommend) X(s3cmtf_model_similar) X(s3cmtf_model_evaluate_ranking) X(s3cmtf_names_open)            \
    X(s3cmtf_names_open_beside) X(s3cmtf_names_get_count) X(s3cmtf_names_get) X(s3cmtf_names_find)                     \
    X(s3cmtf_names_free) X(s3cmtf_concepts_new) X(s3cmtf_concepts_get_count) X(s3cmtf_concepts_get)                    \
    X(s3cmtf_concepts_copy_rows) X(s3cmtf_concepts_copy_columns) X(s3cmtf_concepts_free) X(s3cmtf_clusters_new)        \
    X(s3cmtf_clusters_get_count) X(s3cmtf_clusters_get) X(s3cmtf_clusters_copy_members)                                \
    X(s3cmtf_clusters_copy_labels) X(s3cmtf_clusters_copy_rows) X(s3cmtf_clusters_copy_gaps)                           \
    X(s3cmtf_clusters_copy_information) X(s3cmtf_clusters_free) X(s3cmtf_concepts_get_turned)                          \
    X(s3cmtf_concepts_copy_profile) X(s3cmtf_clusters_copy_label_logs) X(s3cmtf_clusters_copy_centre)                  \
    X(s3cmtf_clusters_copy_curve) X(s3cmtf_tune_new) X(s3cmtf_tune_set_trials) X(s3cmtf_tune_set_rungs)                \
    X(s3cmtf_tune_set_fit_threads) X(s3cmtf_tune_set_fraction) X(s3cmtf_tune_set_valid) X(s3cmtf_tune_set_range)       \
    X(s3cmtf_tune_set_checkpoint) X(s3cmtf_tune_set_resume) X(s3cmtf_tune_set_cancel) X(s3cmtf_tune_set_callback)      \
    X(s3cmtf_tune_run) X(s3cmtf_tune_get_count) X(s3cmtf_tune_get_trial) X(s3cmtf_tune_get_options)                    \
    X(s3cmtf_tune_get_text) X(s3cmtf_tune_free)

static const struct {
    const char *name;
    void (*test)(void);
} table[] = {
#define ROW(name) {#name, test_##name},
    TABLE(ROW)
};

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
    s3cmtf_error *const told = error;
    OK(s3cmtf_cancel_new(&cancel, error));
    OK(s3cmtf_text_new(&text, error));
    coo = planted_tensor(&data, error);
    genres = planted_genres(&data, error);
    const void *const nothing[3] = {NULL, NULL, NULL};
    OK(s3cmtf_coo_new(3, DIMS, 0, nothing, S3CMTF_U32, 0, 0, NULL, S3CMTF_F64, &empty, error));
    problem = planted_problem(&data, error);
    options = small_options(2, 1, error);
    fit = small_fit(&data, 2, 1, error);
    ended = small_fit(&data, 2, 1, error);
    OK(s3cmtf_fit_run(ended, &model, error));
    OK(s3cmtf_names_open("/dev/null", &names, error));
    OK(s3cmtf_concepts_new(model, 1, 0, NULL, NULL, 3, 1, &concepts, error));
    OK(s3cmtf_clusters_new(model, 1, 2, 3, 1, 2, 0, 1, S3CMTF_SPACE_PREDICTIONS, 2, 2, 1, (const s3cmtf_coo *const *)&genres, 0, 1,
                           NULL, &clusters, error));
    OK(s3cmtf_tune_new(problem, options, &search, error));
    OK(s3cmtf_tune_new(problem, options, &searched, error));
    OK(s3cmtf_tune_set_trials(searched, 2, error));
    OK(s3cmtf_tune_run(searched, error));
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        table[i].test();
    /* And again without anybody to be told. */
    error = NULL;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        table[i].test();
    error = told;
    /* Nothing that was used wrongly is broken by it. */
    s3cmtf_model *again = NULL;
    OK(s3cmtf_fit_run(fit, &again, error));
    s3cmtf_model_free(again);
    /* Freed, set to NULL and freed again, as careful hosts do. */
    for (int twice = 0; twice < 2; twice++) {
        s3cmtf_model_free(model), model = NULL;
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
