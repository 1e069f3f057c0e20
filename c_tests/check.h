/* Shared by the programs: checks that report their line, descriptions of arrays, and a small planted tensor. C99 and C++17. */
#ifndef S3CMTF_CHECK_H
#define S3CMTF_CHECK_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <s3cmtf.h>

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);               \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

/* A call that must succeed; `error` is the error handle of the program. */
#define OK(call)                                                                          \
    do {                                                                                  \
        int32_t status_ = (call);                                                         \
        if (status_ != S3CMTF_OK) {                                                       \
            fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call,             \
                    s3cmtf_status_name(status_), s3cmtf_error_message(error));            \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

/* A call that must fail with this status. */
#define FAILS(expected, call)                                                             \
    do {                                                                                  \
        int32_t status_ = (call);                                                         \
        if (status_ != (expected)) {                                                      \
            fprintf(stderr, "%s:%d: %s: %s instead of %s\n", __FILE__, __LINE__, #call,   \
                    s3cmtf_status_name(status_), s3cmtf_status_name(expected));           \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

enum { USERS = 40, FILMS = 30, MONTHS = 6, ENTRIES = 3000, GENRES = 5 };

/* Ratings from a planted model of rank 1 with noise, and the genres of films. */
typedef struct planted {
    uint32_t user[ENTRIES], film[ENTRIES], month[ENTRIES];
    float stars[ENTRIES];
    uint32_t genre_film[FILMS], genre[FILMS];
    float one[FILMS];
} planted;

static const uint64_t DIMS[3] = {USERS, FILMS, MONTHS};
static const uint64_t GENRE_DIMS[2] = {FILMS, GENRES};

static inline uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static inline void plant(planted *p)
{
    uint64_t state = 7;
    for (int i = 0; i < ENTRIES; i++) {
        p->user[i] = next_random(&state) % USERS;
        p->film[i] = next_random(&state) % FILMS;
        p->month[i] = next_random(&state) % MONTHS;
        p->stars[i] = (float)((1.0 + p->user[i] % 5) * (1.0 + p->film[i] % 3) * (2.0 + p->month[i] % 2) / 6.0 +
                              0.1 * (next_random(&state) % 100) / 100.0);
    }
    for (int i = 0; i < FILMS; i++) {
        p->genre_film[i] = (uint32_t)i;
        p->genre[i] = (uint32_t)(i % GENRES);
        p->one[i] = 1.0f;
    }
}

/* Describes indices of `count` cells, a separate array of uint32_t per mode, zero-based. */
static inline s3cmtf_indices indices_u32(const void *const *modes, uint64_t count)
{
    const s3cmtf_indices indices = {modes, count, 0, S3CMTF_U32, 0};
    return indices;
}

/* The same with arrays of uint64_t. */
static inline s3cmtf_indices indices_u64(const void *const *modes, uint64_t count)
{
    const s3cmtf_indices indices = {modes, count, 0, S3CMTF_U64, 0};
    return indices;
}

/* Describes entries with float values and without weights; `dims` may be NULL. */
static inline s3cmtf_entries entries_f32(uint64_t order, const uint64_t *dims, s3cmtf_indices indices, const float *values)
{
    s3cmtf_entries entries;
    memset(&entries, 0, sizeof entries);
    entries.size = sizeof entries;
    entries.order = order;
    entries.dims = dims;
    entries.indices = indices;
    entries.values = values;
    entries.value_type = S3CMTF_F32;
    return entries;
}

/* Copies entries into a new tensor or matrix. */
static inline s3cmtf_coo *new_coo(s3cmtf_entries entries, s3cmtf_error *error)
{
    s3cmtf_coo *coo = NULL;
    OK(s3cmtf_coo_new(&entries, &coo, error));
    return coo;
}

static inline s3cmtf_coo *planted_tensor(const planted *p, s3cmtf_error *error)
{
    const void *const modes[3] = {p->user, p->film, p->month};
    return new_coo(entries_f32(3, DIMS, indices_u32(modes, ENTRIES), p->stars), error);
}

static inline s3cmtf_coo *planted_genres(const planted *p, s3cmtf_error *error)
{
    const void *const modes[2] = {p->genre_film, p->genre};
    return new_coo(entries_f32(2, GENRE_DIMS, indices_u32(modes, FILMS), p->one), error);
}

/* A matrix with a column for each group of films that have the same planted factor. */
static inline s3cmtf_coo *planted_groups(const planted *p, s3cmtf_error *error)
{
    const uint64_t dims[2] = {FILMS, 3};
    uint32_t group[FILMS];
    const void *const modes[2] = {p->genre_film, group};
    for (int i = 0; i < FILMS; i++) group[i] = (uint32_t)(i % 3);
    return new_coo(entries_f32(2, dims, indices_u32(modes, FILMS), p->one), error);
}

/* A tensor of the planted dims without entries, which needs no arrays. */
static inline s3cmtf_coo *empty_tensor(s3cmtf_error *error)
{
    const void *const modes[3] = {NULL, NULL, NULL};
    return new_coo(entries_f32(3, DIMS, indices_u32(modes, 0), NULL), error);
}

/* A coupling of a kind of matrix with a weight; 0 leaves the weight to the options. */
static inline s3cmtf_coupling coupling_of(int32_t kind, double weight)
{
    s3cmtf_coupling coupling;
    memset(&coupling, 0, sizeof coupling);
    coupling.size = sizeof coupling;
    coupling.kind = kind;
    coupling.weight = weight;
    return coupling;
}

static inline s3cmtf_problem *planted_problem(const planted *p, s3cmtf_error *error)
{
    s3cmtf_coo *tensor = planted_tensor(p, error), *genres = planted_genres(p, error);
    const s3cmtf_coupling coupling = coupling_of(S3CMTF_MATRIX_OBSERVED, 1.0);
    s3cmtf_problem *problem = NULL;
    OK(s3cmtf_problem_new(tensor, &problem, error));
    OK(s3cmtf_problem_add_matrix(problem, 1, genres, &coupling, error));
    /* The problem shares the entries. */
    s3cmtf_coo_free(tensor);
    s3cmtf_coo_free(genres);
    return problem;
}

static inline s3cmtf_options *small_options(uint64_t epochs, uint64_t threads, s3cmtf_error *error)
{
    s3cmtf_options *options = NULL;
    OK(s3cmtf_options_new("paper", &options, error));
    OK(s3cmtf_options_set(options, "rank", "3", error));
    OK(s3cmtf_options_set_real(options, "eta", 0.005, error));
    OK(s3cmtf_options_set_integer(options, "epochs", epochs, error));
    OK(s3cmtf_options_set_integer(options, "threads", threads, error));
    return options;
}

static inline s3cmtf_fit *small_fit(const planted *p, uint64_t epochs, uint64_t threads, s3cmtf_error *error)
{
    s3cmtf_problem *problem = planted_problem(p, error);
    s3cmtf_options *options = small_options(epochs, threads, error);
    s3cmtf_fit *fit = NULL;
    OK(s3cmtf_fit_new(problem, options, &fit, error));
    s3cmtf_problem_free(problem);
    s3cmtf_options_free(options);
    return fit;
}

static inline s3cmtf_model *small_model(const planted *p, uint64_t epochs, uint64_t threads, s3cmtf_error *error)
{
    s3cmtf_fit *fit = small_fit(p, epochs, threads, error);
    s3cmtf_model *model = NULL;
    OK(s3cmtf_fit_run(fit, &model, error));
    s3cmtf_fit_free(fit);
    return model;
}

static inline s3cmtf_progress progress_of(const s3cmtf_fit *fit, s3cmtf_error *error)
{
    s3cmtf_progress progress;
    progress.size = sizeof progress;
    OK(s3cmtf_fit_get_progress(fit, &progress, error));
    CHECK(progress.size == sizeof progress);
    return progress;
}

static inline s3cmtf_coo_info coo_info_of(const s3cmtf_coo *coo, s3cmtf_error *error)
{
    s3cmtf_coo_info info;
    info.size = sizeof info;
    OK(s3cmtf_coo_get_info(coo, &info, error));
    CHECK(info.size == sizeof info);
    return info;
}

static inline s3cmtf_model_info model_info_of(const s3cmtf_model *model, s3cmtf_error *error)
{
    s3cmtf_model_info info;
    info.size = sizeof info;
    OK(s3cmtf_model_get_info(model, &info, error));
    CHECK(info.size == sizeof info);
    return info;
}

static inline s3cmtf_model_mode mode_of(const s3cmtf_model *model, uint64_t mode, s3cmtf_error *error)
{
    s3cmtf_model_mode info;
    info.size = sizeof info;
    OK(s3cmtf_model_get_mode(model, mode, &info, error));
    CHECK(info.size == sizeof info);
    return info;
}

static inline s3cmtf_model_matrix matrix_of(const s3cmtf_model *model, uint64_t matrix, s3cmtf_error *error)
{
    s3cmtf_model_matrix info;
    info.size = sizeof info;
    OK(s3cmtf_model_get_matrix(model, matrix, &info, error));
    CHECK(info.size == sizeof info);
    return info;
}

static inline s3cmtf_evaluation evaluation_of(const s3cmtf_model *model, const s3cmtf_coo *coo, uint64_t threads,
                                              s3cmtf_error *error)
{
    s3cmtf_evaluation evaluation;
    evaluation.size = sizeof evaluation;
    OK(s3cmtf_model_evaluate(model, coo, threads, NULL, &evaluation, error));
    CHECK(evaluation.size == sizeof evaluation);
    return evaluation;
}

/* A request for predictions that are not clipped, on a number of threads. */
static inline s3cmtf_predict_request unclipped(uint64_t threads)
{
    s3cmtf_predict_request request;
    memset(&request, 0, sizeof request);
    request.size = sizeof request;
    request.clip = S3CMTF_CLIP_OFF;
    request.threads = threads;
    return request;
}

#endif
