/* What the programs here share: checks that say where they failed, and a small planted tensor. */
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

/* A call that must succeed; `error` is the program's error handle. */
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

/* Ratings from a planted model of rank 1 with some noise, and the genres of films. */
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

static inline s3cmtf_coo *planted_tensor(const planted *p, s3cmtf_error *error)
{
    const void *const indices[3] = {p->user, p->film, p->month};
    s3cmtf_coo *coo = NULL;
    OK(s3cmtf_coo_new(3, DIMS, ENTRIES, indices, S3CMTF_U32, 1, 0, p->stars, S3CMTF_F32, &coo, error));
    return coo;
}

static inline s3cmtf_coo *planted_genres(const planted *p, s3cmtf_error *error)
{
    const void *const indices[2] = {p->genre_film, p->genre};
    s3cmtf_coo *coo = NULL;
    OK(s3cmtf_coo_new(2, GENRE_DIMS, FILMS, indices, S3CMTF_U32, 1, 0, p->one, S3CMTF_F32, &coo, error));
    return coo;
}

static inline s3cmtf_problem *planted_problem(const planted *p, s3cmtf_error *error)
{
    s3cmtf_coo *tensor = planted_tensor(p, error), *genres = planted_genres(p, error);
    s3cmtf_problem *problem = NULL;
    OK(s3cmtf_problem_new(tensor, &problem, error));
    OK(s3cmtf_problem_add_matrix(problem, 1, genres, S3CMTF_MATRIX_OBSERVED, 1.0, S3CMTF_FROM_OPTIONS, error));
    /* The problem keeps what it needs. */
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
    OK(s3cmtf_options_set_whole(options, "epochs", epochs, error));
    OK(s3cmtf_options_set_whole(options, "threads", threads, error));
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

#endif
