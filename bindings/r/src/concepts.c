/* Concepts: descriptions of the columns of a factor. */
#include "shim.h"
#include "routines.h"

typedef struct {
    const s3cmtf_model *model;
    uint64_t mode;
    s3cmtf_concepts_request request;
    s3cmtf_concepts *concepts;
} Task;

static int32_t describe(void *data, const s3cmtf_cancel *cancel, s3cmtf_error *error)
{
    Task *task = data;
    task->request.cancel = cancel;
    return s3cmtf_concepts_new(task->model, task->mode, &task->request, &task->concepts, error);
}

static void discard_concepts(void *data) { s3cmtf_concepts_free(((Task *)data)->concepts); }

static s3cmtf_concept concept_at(const s3cmtf_concepts *concepts, uint64_t index)
{
    s3cmtf_concept concept = {.size = sizeof concept};
    check(s3cmtf_concepts_get(concepts, index, &concept, call_error));
    return concept;
}

static SEXP table(const s3cmtf_concepts *concepts, uint64_t count)
{
    static const char *const names[] = {"concept", "strength", "effect", "sign_flipped", NULL};
    SEXP list = PROTECT(double_columns(names, count));
    for (uint64_t i = 0; i < count; i++) {
        const s3cmtf_concept concept = concept_at(concepts, i);
        const double numbers[] = {(double)concept.column + 1, concept.strength, concept.effect,
                                  (double)concept.sign_flipped};
        set_row(list, i, 4, numbers);
    }
    UNPROTECT(1);
    return list;
}

/* Rows at both ends of all concepts; end is 1 for the largest loadings and -1 for the smallest. */
static SEXP rows_of(const s3cmtf_concepts *concepts, uint64_t count)
{
    static const char *const names[] = {"concept", "end", "row", "loading", NULL};
    uint64_t total = 0, place = 0;
    for (uint64_t i = 0; i < count; i++) {
        const s3cmtf_concept concept = concept_at(concepts, i);
        total += concept.largest_rows + concept.smallest_rows;
    }
    uint64_t *rows = allocate(total, sizeof *rows);
    SEXP list = PROTECT(double_columns(names, total));
    double *loadings = REAL(VECTOR_ELT(list, 3));
    for (uint64_t i = 0; i < count; i++) {
        const s3cmtf_concept concept = concept_at(concepts, i);
        for (int32_t end = S3CMTF_LARGEST; end <= S3CMTF_SMALLEST; end++) {
            const uint64_t found = end == S3CMTF_LARGEST ? concept.largest_rows : concept.smallest_rows;
            check(s3cmtf_concepts_copy_rows(concepts, i, end, rows + place, loadings + place, found, call_error));
            for (uint64_t k = 0; k < found; k++, place++) {
                const double numbers[] = {(double)concept.column + 1, end == S3CMTF_LARGEST ? 1 : -1,
                                          (double)rows[place] + 1};
                set_row(list, place, 3, numbers);
            }
        }
    }
    UNPROTECT(1);
    return list;
}

static SEXP columns_of(const s3cmtf_concepts *concepts, uint64_t count)
{
    static const char *const names[] = {"concept", "end", "matrix", "column", "share", NULL};
    uint64_t total = 0, place = 0;
    for (uint64_t i = 0; i < count; i++) {
        const s3cmtf_concept concept = concept_at(concepts, i);
        total += concept.largest_columns + concept.smallest_columns;
    }
    SEXP list = PROTECT(double_columns(names, total));
    for (uint64_t i = 0; i < count; i++) {
        const s3cmtf_concept concept = concept_at(concepts, i);
        for (int32_t end = S3CMTF_LARGEST; end <= S3CMTF_SMALLEST; end++) {
            const uint64_t found = end == S3CMTF_LARGEST ? concept.largest_columns : concept.smallest_columns;
            for (uint64_t k = 0; k < found; k++, place++) {
                s3cmtf_concept_column column = {.size = sizeof column};
                check(s3cmtf_concepts_get_column(concepts, i, end, k, &column, call_error));
                const double numbers[] = {(double)concept.column + 1, end == S3CMTF_LARGEST ? 1 : -1,
                                          (double)column.matrix + 1, (double)column.column + 1, column.share};
                set_row(list, place, 5, numbers);
            }
        }
    }
    UNPROTECT(1);
    return list;
}

/* NULL, or the mode of the columns and a vector in row-major order. */
static SEXP profile_of(const s3cmtf_concepts *concepts)
{
    static const char *const names[] = {"mode", "columns", "numbers", NULL};
    uint64_t mode = 0, columns = 0, found = 0;
    check(s3cmtf_concepts_copy_profile(concepts, NULL, 0, &mode, &columns, &found, call_error));
    if (found == 0) return R_NilValue;
    SEXP list = PROTECT(named_list(names));
    SET_VECTOR_ELT(list, 0, Rf_ScalarReal((double)mode + 1));
    SET_VECTOR_ELT(list, 1, Rf_ScalarReal((double)columns));
    double *numbers = add_vector(list, 2, found);
    check(s3cmtf_concepts_copy_profile(concepts, numbers, found, &mode, &columns, &found, call_error));
    UNPROTECT(1);
    return list;
}

SEXP r_concepts(SEXP handle, SEXP mode, SEXP top, SEXP min_entries, SEXP given_modes, SEXP given_rows)
{
    static const char *const names[] = {"concepts", "rows", "columns", "profile", NULL};
    Task task = {.model = handle_get(handle, MODEL), .mode = *uint64s_from(mode, 1)};
    task.request = (s3cmtf_concepts_request){
        .size = sizeof task.request, .top = uint64_from(top), .min_entries = uint64_from(min_entries),
        .given_modes = uint64s_from(given_modes, 1), .given_rows = uint64s_from(given_rows, 1),
        .given_count = (uint64_t)XLENGTH(given_modes),
    };
    SEXP owner = PROTECT(handle_new(CONCEPTS));
    run_interruptible(describe, NULL, discard_concepts, &task);
    handle_set(owner, task.concepts);
    uint64_t count = 0;
    check(s3cmtf_concepts_get_count(task.concepts, &count, call_error));
    SEXP list = PROTECT(named_list(names));
    SET_VECTOR_ELT(list, 0, table(task.concepts, count));
    SET_VECTOR_ELT(list, 1, rows_of(task.concepts, count));
    SET_VECTOR_ELT(list, 2, columns_of(task.concepts, count));
    SET_VECTOR_ELT(list, 3, profile_of(task.concepts));
    UNPROTECT(2);
    return list;
}
