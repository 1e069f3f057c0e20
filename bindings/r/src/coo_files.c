/* Files of tensors and of names of rows. */
#include "shim.h"
#include "routines.h"

typedef struct {
    const char *path, *output;
    int32_t mode;
    const s3cmtf_text *text;
    s3cmtf_coo *coo; /* the tensor to write, or the one that was opened */
    s3cmtf_split_request split;
    uint64_t dropped, merged;
} Task;

/* A handle of options of reading text. */
static SEXP text_new(SEXP names, SEXP values)
{
    SEXP handle = PROTECT(handle_new(TEXT));
    s3cmtf_text *text = NULL;
    check(s3cmtf_text_new(&text, call_error));
    handle_set(handle, text);
    for (R_xlen_t i = 0; i < XLENGTH(names); i++)
        check(s3cmtf_text_set(text, Rf_translateCharUTF8(STRING_ELT(names, i)),
                              Rf_translateCharUTF8(STRING_ELT(values, i)), call_error));
    UNPROTECT(1);
    return handle;
}

static int32_t open_coo(void *data, const s3cmtf_cancel *cancel, s3cmtf_error *error)
{
    Task *task = data;
    return s3cmtf_coo_open(task->path, task->mode, task->text, cancel, &task->coo, error);
}

static void discard_coo(void *data) { s3cmtf_coo_free(((Task *)data)->coo); }

SEXP r_coo_open(SEXP path, SEXP mapped, SEXP verify, SEXP names, SEXP values)
{
    SEXP text = PROTECT(text_new(names, values));
    SEXP handle = PROTECT(handle_new(COO));
    Task task = {
        .path = path_from(path), .text = handle_get(text, TEXT),
        .mode = (flag_from(mapped) ? S3CMTF_OPEN_MAPPED : S3CMTF_OPEN_PRIVATE) |
                (flag_from(verify) ? 0 : S3CMTF_OPEN_UNVERIFIED),
    };
    run_interruptible(open_coo, NULL, discard_coo, &task);
    handle_set(handle, task.coo);
    UNPROTECT(2);
    return handle;
}

static int32_t write_coo(void *data, const s3cmtf_cancel *cancel, s3cmtf_error *error)
{
    Task *task = data;
    return s3cmtf_coo_write(task->coo, task->path, 0, cancel, error);
}

SEXP r_coo_write(SEXP handle, SEXP path)
{
    Task task = {.coo = handle_get(handle, COO), .path = path_from(path)};
    run_interruptible(write_coo, NULL, NULL, &task);
    return R_NilValue;
}

static int32_t convert(void *data, const s3cmtf_cancel *cancel, s3cmtf_error *error)
{
    Task *task = data;
    return s3cmtf_coo_convert(task->path, task->output, task->text, cancel, error);
}

SEXP r_coo_convert(SEXP input, SEXP output, SEXP names, SEXP values)
{
    SEXP text = PROTECT(text_new(names, values));
    Task task = {.path = path_from(input), .output = path_from(output), .text = handle_get(text, TEXT)};
    run_interruptible(convert, NULL, NULL, &task);
    UNPROTECT(1);
    return R_NilValue;
}

static int32_t fix(void *data, const s3cmtf_cancel *cancel, s3cmtf_error *error)
{
    Task *task = data;
    return s3cmtf_coo_fix(task->coo, task->path, task->mode, cancel, &task->dropped, &task->merged, error);
}

SEXP r_coo_fix(SEXP handle, SEXP path, SEXP keep)
{
    static const char *const names[] = {"dropped", "merged", NULL};
    Task task = {.coo = handle_get(handle, COO), .path = path_from(path), .mode = Rf_asInteger(keep)};
    run_interruptible(fix, NULL, NULL, &task);
    const double numbers[] = {(double)task.dropped, (double)task.merged};
    return number_list(names, numbers);
}

static int32_t split(void *data, const s3cmtf_cancel *cancel, s3cmtf_error *error)
{
    Task *task = data;
    task->split.cancel = cancel;
    return s3cmtf_coo_split(task->coo, task->path, &task->split, error);
}

/* latest: NULL, or the mode of the rows and the mode of the time. */
SEXP r_coo_split(SEXP handle, SEXP prefix, SEXP test, SEXP valid, SEXP seed, SEXP latest)
{
    Task task = {.coo = handle_get(handle, COO), .path = path_from(prefix)};
    task.split = (s3cmtf_split_request){
        .size = sizeof task.split, .test_fraction = real_from(test), .valid_fraction = real_from(valid),
        .seed = uint64_from(seed), .latest = latest != R_NilValue,
    };
    if (latest != R_NilValue) {
        const uint64_t *modes = uint64s_from(latest, 1);
        task.split.row_mode = modes[0];
        task.split.time_mode = modes[1];
    }
    run_interruptible(split, NULL, NULL, &task);
    return R_NilValue;
}

/* The row whose name is the empty string, as opposed to rows without a name; UINT64_MAX if there is none. */
static uint64_t empty_name(const s3cmtf_names *names)
{
    uint64_t row = 0;
    return s3cmtf_names_find(names, "", &row, call_error) == S3CMTF_OK ? row : UINT64_MAX;
}

/* The names of the rows of a mode from the names file beside a data file, or those of the file `path` if `mode` is NULL. NA for
 * rows without a name; NULL if there is no file. */
SEXP r_names_read(SEXP path, SEXP mode)
{
    SEXP handle = PROTECT(handle_new(NAMES));
    s3cmtf_names *names = NULL;
    uint64_t count = 0, needed = 0;
    if (mode == R_NilValue)
        check(s3cmtf_names_open(path_from(path), &names, call_error));
    else
        check(s3cmtf_names_open_beside(path_from(path), *uint64s_from(mode, 1), &names, call_error));
    if (names == NULL) {
        UNPROTECT(1);
        return R_NilValue;
    }
    handle_set(handle, names);
    check(s3cmtf_names_get_count(names, &count, call_error));
    const uint64_t empty = empty_name(names);
    SEXP result = PROTECT(Rf_allocVector(STRSXP, (R_xlen_t)count));
    for (uint64_t i = 0; i < count; i++) {
        const void *top = vmaxget();
        check(s3cmtf_names_get(names, i, NULL, 0, &needed, call_error));
        char *name = R_alloc((size_t)needed, 1);
        check(s3cmtf_names_get(names, i, name, needed, NULL, call_error));
        const int has_name = name[0] != '\0' || i == empty;
        SET_STRING_ELT(result, (R_xlen_t)i, has_name ? Rf_mkCharCE(name, CE_UTF8) : NA_STRING);
        vmaxset(top);
    }
    UNPROTECT(2);
    return result;
}
