/* New rows. */
#include "shim.h"
#include "routines.h"

typedef struct {
    const s3cmtf_model *model;
    uint64_t mode;
    s3cmtf_fold_in_request request;
    s3cmtf_model *folded;
    uint64_t added, replaced;
} Task;

static int32_t fold_in(void *data, const s3cmtf_cancel *cancel, s3cmtf_error *error)
{
    Task *task = data;
    task->request.cancel = cancel;
    return s3cmtf_model_fold_in(task->model, task->mode, &task->request, &task->folded, &task->added, &task->replaced,
                                error);
}

static void discard_model(void *data) { s3cmtf_model_free(((Task *)data)->folded); }

/* matrices: handles; numbers: the number of each in the model, from 1. Returns model, added and replaced. */
SEXP r_fold_in(SEXP handle, SEXP mode, SEXP tensor, SEXP matrices, SEXP numbers, SEXP replace, SEXP threads)
{
    static const char *const names[] = {"handle", "added", "replaced", NULL};
    Task task = {.model = handle_get(handle, MODEL), .mode = *uint64s_from(mode, 1)};
    task.request = (s3cmtf_fold_in_request){
        .size = sizeof task.request, .tensor = handle_or_null(tensor, COO), .matrix_count = (uint64_t)XLENGTH(matrices),
        .matrices = coos_from(matrices), .matrix_numbers = uint64s_from(numbers, 1), .replace = flag_from(replace),
        .threads = uint64_from(threads),
    };
    SEXP result = PROTECT(named_list(names));
    SEXP owner = handle_new(MODEL);
    SET_VECTOR_ELT(result, 0, owner);
    run_interruptible(fold_in, NULL, discard_model, &task);
    handle_set(owner, task.folded);
    SET_VECTOR_ELT(result, 1, Rf_ScalarReal((double)task.added));
    SET_VECTOR_ELT(result, 2, Rf_ScalarReal((double)task.replaced));
    UNPROTECT(1);
    return result;
}
