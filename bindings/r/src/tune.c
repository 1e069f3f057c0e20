/* Hyperparameter search. */
#include <pthread.h>

#include "shim.h"
#include "routines.h"

typedef struct {
    s3cmtf_tune *tune;
    SEXP report; /* an R function or NULL */
    uint64_t reported;
    pthread_mutex_t mutex;
    /* Guarded by mutex: the last trial and the number of fits so far. */
    s3cmtf_trial trial;
    uint64_t fits;
} Search;

/* On the thread of the search, which must not call R. */
static int32_t record_trial(const s3cmtf_trial *trial, void *user)
{
    Search *search = user;
    pthread_mutex_lock(&search->mutex);
    search->trial.number = trial->number;
    search->trial.rungs = trial->rungs;
    search->trial.done = trial->done;
    search->trial.total = trial->total;
    search->trial.valid_rmse = trial->valid_rmse;
    search->trial.best_rmse = trial->best_rmse;
    search->fits++;
    pthread_mutex_unlock(&search->mutex);
    return 0;
}

static int32_t run_search(void *data, const s3cmtf_cancel *cancel, s3cmtf_error *error)
{
    Search *search = data;
    int32_t status = s3cmtf_tune_set_cancel(search->tune, cancel, error);
    if (status == S3CMTF_OK) status = s3cmtf_tune_set_callback(search->tune, record_trial, search, error);
    if (status == S3CMTF_OK) status = s3cmtf_tune_run(search->tune, error);
    return status;
}

static int report_trial(void *data)
{
    static const char *const names[] = {"trial", "rung", "done", "total", "valid_rmse", "best_rmse", NULL};
    Search *search = data;
    pthread_mutex_lock(&search->mutex);
    const s3cmtf_trial trial = search->trial;
    const uint64_t fits = search->fits;
    pthread_mutex_unlock(&search->mutex);
    if (fits == search->reported) return 0;
    search->reported = fits;
    const double numbers[] = {(double)trial.number, (double)trial.rungs, (double)trial.done,
                              (double)trial.total,  trial.valid_rmse,    trial.best_rmse};
    return report(search->report, names, numbers);
}

/* The ranking of the trials: vectors with one element per trial, and their options as lines NAME=VALUE. */
static SEXP ranking(const s3cmtf_tune *tune)
{
    static const char *const names[] = {"trial", "rungs", "epochs", "valid_rmse", "seconds", "error", "options", NULL};
    uint64_t count = 0;
    check(s3cmtf_tune_get_count(tune, &count, call_error));
    SEXP list = PROTECT(named_list(names));
    for (int column = 0; column < 7; column++)
        SET_VECTOR_ELT(list, column, Rf_allocVector(column < 5 ? REALSXP : STRSXP, (R_xlen_t)count));
    for (uint64_t place = 0; place < count; place++) {
        s3cmtf_trial trial = {.size = sizeof trial};
        uint64_t needed = 0;
        check(s3cmtf_tune_get_trial(tune, place, &trial, call_error));
        check(s3cmtf_tune_get_text(tune, place, NULL, 0, &needed, call_error));
        char *text = R_alloc((size_t)needed, 1);
        check(s3cmtf_tune_get_text(tune, place, text, needed, NULL, call_error));
        const double numbers[] = {(double)trial.number, (double)trial.rungs, (double)trial.epochs, trial.valid_rmse,
                                  trial.seconds};
        set_row(list, place, 5, numbers);
        SET_STRING_ELT(VECTOR_ELT(list, 5), (R_xlen_t)place,
                       trial.error == NULL ? NA_STRING : Rf_mkCharCE(trial.error, CE_UTF8));
        SET_STRING_ELT(VECTOR_ELT(list, 6), (R_xlen_t)place, Rf_mkCharCE(text, CE_UTF8));
    }
    UNPROTECT(1);
    return list;
}

/* size: trials, rungs, fit_threads, valid_fraction. */
SEXP r_tune(SEXP tensor, SEXP matrices, SEXP preset, SEXP names, SEXP values, SEXP size, SEXP valid, SEXP range_names,
            SEXP ranges, SEXP checkpoint, SEXP resume, SEXP report)
{
    SEXP problem = PROTECT(r_problem_new(tensor, matrices));
    SEXP options = PROTECT(options_new(preset, names, values));
    SEXP owner = PROTECT(handle_new(TUNE));
    const s3cmtf_tune_request request = {
        .size = sizeof request, .trials = uint64_from(VECTOR_ELT(size, 0)), .rungs = uint64_from(VECTOR_ELT(size, 1)),
        .fit_threads = uint64_from(VECTOR_ELT(size, 2)), .valid_fraction = real_from(VECTOR_ELT(size, 3)),
        .valid = handle_or_null(valid, COO),
    };
    s3cmtf_tune *tune = NULL;
    check(s3cmtf_tune_new(handle_get(problem, PROBLEM), handle_get(options, OPTIONS), &request, &tune, call_error));
    handle_set(owner, tune);
    for (R_xlen_t i = 0; i < XLENGTH(range_names); i++)
        check(s3cmtf_tune_set_range(tune, Rf_translateCharUTF8(STRING_ELT(range_names, i)),
                                    Rf_translateCharUTF8(STRING_ELT(ranges, i)), call_error));
    check(s3cmtf_tune_set_checkpoint(tune, path_from(checkpoint), call_error));
    check(s3cmtf_tune_set_resume(tune, path_from(resume), call_error));
    Search search = {.tune = tune, .report = report, .mutex = PTHREAD_MUTEX_INITIALIZER};
    run_interruptible(run_search, report == R_NilValue ? NULL : report_trial, NULL, &search);
    SEXP result = PROTECT(ranking(tune));
    UNPROTECT(4);
    return result;
}
