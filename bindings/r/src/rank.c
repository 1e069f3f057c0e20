/* Recommendations, similar rows and metrics of rankings. */
#include <string.h>

#include "shim.h"
#include "routines.h"

typedef struct {
    const s3cmtf_model *model;
    s3cmtf_recommend_request recommend;
    s3cmtf_similar_request similar;
    uint64_t *rows, *counts, capacity;
    double *scores;
} Lists;

/* Room for lists, which R frees at the end of the .Call. */
static void reserve(Lists *lists, uint64_t top, uint64_t queries)
{
    if (top > 0 && queries > SIZE_MAX / sizeof(uint64_t) / top) fail("BAD_ARGUMENT", "the lists are too long");
    lists->capacity = top * queries;
    lists->rows = allocate(lists->capacity, sizeof *lists->rows);
    lists->scores = allocate(lists->capacity, sizeof *lists->scores);
    lists->counts = allocate(queries, sizeof *lists->counts);
}

/* All lists one after the other: rows with the given offset, scores, and the length of each list. */
static SEXP collect(const Lists *lists, uint64_t top, uint64_t queries, uint64_t offset)
{
    static const char *const names[] = {"rows", "scores", "counts", NULL};
    uint64_t total = 0, place = 0;
    for (uint64_t q = 0; q < queries; q++) total += lists->counts[q];
    SEXP list = PROTECT(named_list(names));
    double *rows = add_vector(list, 0, total), *scores = add_vector(list, 1, total);
    for (uint64_t q = 0; q < queries; q++) {
        copy_uint64s(rows + place, lists->rows + q * top, lists->counts[q], offset);
        memcpy(scores + place, lists->scores + q * top, (size_t)lists->counts[q] * sizeof *scores);
        place += lists->counts[q];
    }
    SET_VECTOR_ELT(list, 2, uint64s_to_r(lists->counts, queries, 0));
    UNPROTECT(1);
    return list;
}

static int32_t recommend(void *data, const s3cmtf_cancel *cancel, s3cmtf_error *error)
{
    Lists *lists = data;
    lists->recommend.cancel = cancel;
    return s3cmtf_model_recommend(lists->model, &lists->recommend, lists->rows, lists->scores, lists->capacity,
                                  lists->counts, error);
}

/* queries: a list with an index vector or NULL per mode. candidates and omitted: rows from 1, or NULL. */
SEXP r_recommend(SEXP handle, SEXP mode, SEXP queries, SEXP top, SEXP quantile, SEXP exclude, SEXP exclude_mode,
                 SEXP candidates, SEXP omitted, SEXP threads)
{
    Lists lists = {.model = handle_get(handle, MODEL)};
    check_indices(queries, 1, NULL);
    lists.recommend = (s3cmtf_recommend_request){
        .size = sizeof lists.recommend, .mode = *uint64s_from(mode, 1), .top = uint64_from(top),
        .queries = indices_from(queries, 1), .quantile = real_from(quantile), .exclude = handle_or_null(exclude, COO),
        .exclude_mode = *uint64s_from(exclude_mode, 1), .threads = uint64_from(threads),
    };
    if (candidates != R_NilValue) {
        lists.recommend.candidates = uint64s_from(candidates, 0);
        lists.recommend.candidate_count = (uint64_t)XLENGTH(candidates);
    }
    if (omitted != R_NilValue) {
        lists.recommend.exclude_rows = uint64s_from(omitted, 0);
        lists.recommend.exclude_row_count = (uint64_t)XLENGTH(omitted);
    }
    reserve(&lists, lists.recommend.top, lists.recommend.queries.count);
    run_interruptible(recommend, NULL, NULL, &lists);
    return collect(&lists, lists.recommend.top, lists.recommend.queries.count, 0);
}

static int32_t similar(void *data, const s3cmtf_cancel *cancel, s3cmtf_error *error)
{
    Lists *lists = data;
    lists->similar.cancel = cancel;
    return s3cmtf_model_similar(lists->model, &lists->similar, lists->rows, lists->scores, lists->capacity, lists->counts,
                                error);
}

SEXP r_similar(SEXP handle, SEXP mode, SEXP rows, SEXP top, SEXP threads)
{
    Lists lists = {.model = handle_get(handle, MODEL)};
    lists.similar = (s3cmtf_similar_request){
        .size = sizeof lists.similar, .mode = *uint64s_from(mode, 1), .top = uint64_from(top),
        .rows = uint64s_from(rows, 1), .row_count = (uint64_t)XLENGTH(rows), .threads = uint64_from(threads),
    };
    reserve(&lists, lists.similar.top, lists.similar.row_count);
    run_interruptible(similar, NULL, NULL, &lists);
    return collect(&lists, lists.similar.top, lists.similar.row_count, 1);
}

typedef struct {
    const s3cmtf_model *model;
    const s3cmtf_coo *test, *train;
    s3cmtf_ranking_request request;
    s3cmtf_ranking ranking;
} Metrics;

static int32_t evaluate_ranking(void *data, const s3cmtf_cancel *cancel, s3cmtf_error *error)
{
    Metrics *task = data;
    task->request.cancel = cancel;
    return s3cmtf_model_evaluate_ranking(task->model, task->test, task->train, &task->request, &task->ranking, error);
}

/* relevant: NA if every test entry is relevant. Returns users and the metrics of the model and of popularity. */
SEXP r_evaluate_ranking(SEXP handle, SEXP test, SEXP train, SEXP mode, SEXP user_mode, SEXP length, SEXP relevant,
                        SEXP quantile, SEXP threads)
{
    static const char *const names[] = {"users", "model", "popularity", NULL};
    const double smallest = real_from(relevant);
    Metrics task = {.model = handle_get(handle, MODEL), .test = handle_get(test, COO), .train = handle_get(train, COO)};
    task.request = (s3cmtf_ranking_request){
        .size = sizeof task.request, .mode = *uint64s_from(mode, 1), .user_mode = *uint64s_from(user_mode, 1),
        .length = uint64_from(length), .quantile = real_from(quantile),
        .min_relevant_value = ISNAN(smallest) ? 0 : smallest, .has_min_relevant_value = !ISNAN(smallest),
        .threads = uint64_from(threads),
    };
    task.ranking.size = sizeof task.ranking;
    run_interruptible(evaluate_ranking, NULL, NULL, &task);
    const s3cmtf_ranking *r = &task.ranking;
    const double metrics[] = {r->hit_rate, r->recall, r->ndcg, r->popularity_hit_rate, r->popularity_recall,
                              r->popularity_ndcg};
    SEXP list = PROTECT(named_list(names));
    SET_VECTOR_ELT(list, 0, Rf_ScalarReal((double)r->users));
    for (int part = 0; part < 2; part++) memcpy(add_vector(list, part + 1, 3), metrics + 3 * part, 3 * sizeof *metrics);
    UNPROTECT(1);
    return list;
}
