/* Faults and statistics of tensors. */
#include "shim.h"
#include "routines.h"

typedef struct {
    const s3cmtf_coo *coo;
    s3cmtf_coo_faults faults;
    s3cmtf_coo_summary summary;
    uint64_t *rows_used;
    uint64_t order;
} Inspection;

static int32_t count_faults(void *data, const s3cmtf_cancel *cancel, s3cmtf_error *error)
{
    Inspection *task = data;
    return s3cmtf_coo_check(task->coo, cancel, &task->faults, error);
}

SEXP r_coo_check(SEXP handle)
{
    static const char *const names[] = {"damaged_sections", "out_of_range",    "not_finite",
                                        "duplicate_cells",  "surplus_entries", NULL};
    Inspection task = {.coo = handle_get(handle, COO), .faults.size = sizeof task.faults};
    run_interruptible(count_faults, NULL, NULL, &task);
    const s3cmtf_coo_faults *faults = &task.faults;
    const double numbers[] = {(double)faults->damaged_sections, (double)faults->out_of_range, (double)faults->not_finite,
                              (double)faults->duplicate_cells, (double)faults->surplus_entries};
    return number_list(names, numbers);
}

static int32_t summarize(void *data, const s3cmtf_cancel *cancel, s3cmtf_error *error)
{
    Inspection *task = data;
    return s3cmtf_coo_summarize(task->coo, cancel, &task->summary, task->rows_used, task->order, error);
}

SEXP r_coo_summary(SEXP handle)
{
    static const char *const names[] = {"min", "max", "mean", "standard_deviation", "rows_used", NULL};
    Inspection task = {.coo = handle_get(handle, COO), .summary.size = sizeof task.summary};
    task.order = coo_info_of(task.coo).order;
    task.rows_used = allocate(task.order, sizeof *task.rows_used);
    run_interruptible(summarize, NULL, NULL, &task);
    SEXP list = PROTECT(named_list(names));
    SET_VECTOR_ELT(list, 0, Rf_ScalarReal(task.summary.min));
    SET_VECTOR_ELT(list, 1, Rf_ScalarReal(task.summary.max));
    SET_VECTOR_ELT(list, 2, Rf_ScalarReal(task.summary.mean));
    SET_VECTOR_ELT(list, 3, Rf_ScalarReal(task.summary.standard_deviation));
    SET_VECTOR_ELT(list, 4, uint64s_to_r(task.rows_used, task.order, 0));
    UNPROTECT(1);
    return list;
}
