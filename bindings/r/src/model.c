/* Models: files, sizes, factors and the record of the fit. */
#include "shim.h"
#include "routines.h"

SEXP r_model_load(SEXP path, SEXP mapped)
{
    SEXP handle = PROTECT(handle_new(MODEL));
    s3cmtf_model *model = NULL;
    check(s3cmtf_model_load(path_from(path), flag_from(mapped) ? S3CMTF_OPEN_MAPPED : S3CMTF_OPEN_PRIVATE, &model,
                            call_error));
    handle_set(handle, model);
    UNPROTECT(1);
    return handle;
}

SEXP r_model_save(SEXP handle, SEXP path)
{
    check(s3cmtf_model_save(handle_get(handle, MODEL), path_from(path), call_error));
    return R_NilValue;
}

typedef struct {
    const s3cmtf_model *model;
    const char *folder;
} Export;

static int32_t export(void *data, const s3cmtf_cancel *cancel, s3cmtf_error *error)
{
    const Export *task = data;
    return s3cmtf_model_export(task->model, task->folder, cancel, error);
}

SEXP r_model_export(SEXP handle, SEXP folder)
{
    Export task = {.model = handle_get(handle, MODEL), .folder = path_from(folder)};
    run_interruptible(export, NULL, NULL, &task);
    return R_NilValue;
}

s3cmtf_model_info model_info_of(const s3cmtf_model *model)
{
    s3cmtf_model_info info = {.size = sizeof info};
    check(s3cmtf_model_get_info(model, &info, call_error));
    return info;
}

s3cmtf_model_mode mode_info_of(const s3cmtf_model *model, uint64_t mode)
{
    s3cmtf_model_mode info = {.size = sizeof info};
    check(s3cmtf_model_get_mode(model, mode, &info, call_error));
    return info;
}

static s3cmtf_model_matrix matrix_info_of(const s3cmtf_model *model, uint64_t matrix)
{
    s3cmtf_model_matrix info = {.size = sizeof info};
    check(s3cmtf_model_get_matrix(model, matrix, &info, call_error));
    return info;
}

static SEXP mode_sizes(const s3cmtf_model *model, uint64_t order)
{
    static const char *const names[] = {"dim", "rows", "rank", NULL};
    SEXP list = PROTECT(double_columns(names, order));
    for (uint64_t n = 0; n < order; n++) {
        const s3cmtf_model_mode mode = mode_info_of(model, n);
        set_row(list, n, 3, (const double[]){(double)mode.dim, (double)mode.rows, (double)mode.rank});
    }
    UNPROTECT(1);
    return list;
}

static SEXP matrix_sizes(const s3cmtf_model *model, uint64_t count)
{
    static const char *const names[] = {"mode", "kind", "weight", "columns", "rows", NULL};
    SEXP list = PROTECT(double_columns(names, count));
    for (uint64_t i = 0; i < count; i++) {
        const s3cmtf_model_matrix matrix = matrix_info_of(model, i);
        const double numbers[] = {(double)matrix.mode + 1, (double)matrix.kind, matrix.weight, (double)matrix.columns,
                                  (double)matrix.rows};
        set_row(list, i, 5, numbers);
    }
    UNPROTECT(1);
    return list;
}

SEXP r_model_info(SEXP handle)
{
    static const char *const names[] = {"model", "samples", "mean", "min", "max", "modes", "matrices", NULL};
    const s3cmtf_model *model = handle_get(handle, MODEL);
    const s3cmtf_model_info info = model_info_of(model);
    SEXP list = PROTECT(named_list(names));
    SET_VECTOR_ELT(list, 0, Rf_mkString(info.kind == S3CMTF_MODEL_CP ? "cp" : "tucker"));
    SET_VECTOR_ELT(list, 1, Rf_ScalarReal((double)info.samples));
    SET_VECTOR_ELT(list, 2, Rf_ScalarReal(info.mean));
    SET_VECTOR_ELT(list, 3, Rf_ScalarReal(info.min_value));
    SET_VECTOR_ELT(list, 4, Rf_ScalarReal(info.max_value));
    SET_VECTOR_ELT(list, 5, mode_sizes(model, info.order));
    SET_VECTOR_ELT(list, 6, matrix_sizes(model, info.matrices));
    UNPROTECT(1);
    return list;
}

/* Rows with indices from 1, factor and biases of a mode. */
SEXP r_model_mode(SEXP handle, SEXP mode)
{
    static const char *const names[] = {"rows", "factor", "biases", NULL};
    const s3cmtf_model *model = handle_get(handle, MODEL);
    const uint64_t number = *uint64s_from(mode, 1);
    const s3cmtf_model_mode info = mode_info_of(model, number);
    SEXP list = PROTECT(named_list(names));
    uint32_t *rows = allocate(info.rows, sizeof *rows);
    check(s3cmtf_model_copy_row_indices(model, number, rows, info.rows, S3CMTF_U32, call_error));
    SET_VECTOR_ELT(list, 0, indices_to_r(rows, (R_xlen_t)info.rows, info.dim));
    check(s3cmtf_model_copy_factor(model, number, add_matrix(list, 1, info.rows, info.rank), info.rows * info.rank,
                                   S3CMTF_F64, S3CMTF_COLUMN_MAJOR, call_error));
    check(s3cmtf_model_copy_biases(model, number, add_vector(list, 2, info.rows), info.rows, S3CMTF_F64, call_error));
    UNPROTECT(1);
    return list;
}

/* Columns with indices from 1, factor and offsets of a coupled matrix that is not a graph. */
SEXP r_model_matrix(SEXP handle, SEXP matrix)
{
    static const char *const names[] = {"columns", "factor", "offsets", NULL};
    const s3cmtf_model *model = handle_get(handle, MODEL);
    const uint64_t number = *uint64s_from(matrix, 1);
    const s3cmtf_model_matrix info = matrix_info_of(model, number);
    const uint64_t rank = mode_info_of(model, info.mode).rank;
    SEXP list = PROTECT(named_list(names));
    uint32_t *columns = allocate(info.rows, sizeof *columns);
    check(s3cmtf_model_copy_matrix_indices(model, number, columns, info.rows, S3CMTF_U32, call_error));
    SET_VECTOR_ELT(list, 0, indices_to_r(columns, (R_xlen_t)info.rows, info.columns));
    check(s3cmtf_model_copy_matrix(model, number, add_matrix(list, 1, info.rows, rank), info.rows * rank, S3CMTF_F64,
                                   S3CMTF_COLUMN_MAJOR, call_error));
    check(s3cmtf_model_copy_offsets(model, number, add_vector(list, 2, info.rows), info.rows, S3CMTF_F64, call_error));
    UNPROTECT(1);
    return list;
}

/* The core as a vector, first mode fastest; of a CP model its superdiagonal. */
SEXP r_model_core(SEXP handle)
{
    const s3cmtf_model *model = handle_get(handle, MODEL);
    const s3cmtf_model_info info = model_info_of(model);
    uint64_t count = 1;
    for (uint64_t n = 0; n < info.order; n++) {
        const uint64_t rank = mode_info_of(model, n).rank;
        count = info.kind == S3CMTF_MODEL_CP ? rank : count * rank;
    }
    SEXP core = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)count));
    check(s3cmtf_model_copy_core(model, REAL(core), count, S3CMTF_F64, S3CMTF_COLUMN_MAJOR, call_error));
    UNPROTECT(1);
    return core;
}

SEXP r_model_record(SEXP handle)
{
    const s3cmtf_model *model = handle_get(handle, MODEL);
    uint64_t needed = 0;
    check(s3cmtf_model_get_record(model, NULL, 0, &needed, call_error));
    char *text = R_alloc((size_t)needed, 1);
    check(s3cmtf_model_get_record(model, text, needed, NULL, call_error));
    return utf8_string(text);
}

SEXP r_model_plan(SEXP handle)
{
    const s3cmtf_model *model = handle_get(handle, MODEL);
    uint64_t needed = 0;
    check(s3cmtf_model_get_plan(model, NULL, 0, &needed, call_error));
    char *text = R_alloc((size_t)needed, 1);
    check(s3cmtf_model_get_plan(model, text, needed, NULL, call_error));
    return utf8_string(text);
}

SEXP r_model_epochs(SEXP handle)
{
    static const char *const names[] = {"epoch", "eta", "loss", "train_rmse", "test_rmse", "valid_rmse", "seconds", NULL};
    const s3cmtf_model *model = handle_get(handle, MODEL);
    const s3cmtf_model_info info = model_info_of(model);
    SEXP list = PROTECT(double_columns(names, info.epochs));
    for (uint64_t i = 0; i < info.epochs; i++) {
        s3cmtf_progress epoch = {.size = sizeof epoch};
        check(s3cmtf_model_get_epoch(model, i, &epoch, call_error));
        const double numbers[] = {(double)epoch.epoch, epoch.eta,        epoch.loss,          epoch.train_rmse,
                                  epoch.test_rmse,     epoch.valid_rmse, epoch.update_seconds};
        set_row(list, i, 7, numbers);
    }
    UNPROTECT(1);
    return list;
}
