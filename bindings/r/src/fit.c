/* Problems and fits. */
#include "shim.h"
#include "routines.h"

/* A handle of a problem. Each matrix is a list: mode, tensor, kind, zeros, weight (0: option lambda_m), penalty (NA: option
 * lambda_reg). */
SEXP r_problem_new(SEXP tensor, SEXP matrices)
{
    SEXP handle = PROTECT(handle_new(PROBLEM));
    s3cmtf_problem *problem = NULL;
    check(s3cmtf_problem_new(handle_get(tensor, COO), &problem, call_error));
    handle_set(handle, problem);
    for (R_xlen_t i = 0; i < XLENGTH(matrices); i++) {
        SEXP matrix = VECTOR_ELT(matrices, i);
        const double penalty = real_from(VECTOR_ELT(matrix, 5));
        const uint64_t zeros = uint64_from(VECTOR_ELT(matrix, 3));
        if (zeros > UINT32_MAX) fail("BAD_ARGUMENT", "zeros is too large");
        const s3cmtf_coupling coupling = {
            .size = sizeof coupling, .kind = Rf_asInteger(VECTOR_ELT(matrix, 2)), .zeros = (uint32_t)zeros,
            .weight = real_from(VECTOR_ELT(matrix, 4)), .penalty = ISNAN(penalty) ? 0 : penalty,
            .has_penalty = !ISNAN(penalty),
        };
        check(s3cmtf_problem_add_matrix(problem, *uint64s_from(VECTOR_ELT(matrix, 0), 1),
                                        handle_get(VECTOR_ELT(matrix, 1), COO), &coupling, call_error));
    }
    UNPROTECT(1);
    return handle;
}

typedef struct {
    s3cmtf_fit *fit;
    SEXP report; /* an R function or NULL */
    uint64_t epoch;
} Run;

static int32_t wait_for_fit(void *data, const s3cmtf_cancel *cancel, s3cmtf_error *error)
{
    Run *run = data;
    int32_t running = 0;
    int32_t status = s3cmtf_fit_set_cancel(run->fit, cancel, error);
    if (status == S3CMTF_OK) status = s3cmtf_fit_start(run->fit, error);
    if (status == S3CMTF_OK) status = s3cmtf_fit_wait(run->fit, -1, &running, error);
    return status;
}

int report(SEXP function, const char *const *names, const double *numbers)
{
    SEXP list = PROTECT(number_list(names, numbers));
    SEXP call = PROTECT(Rf_lang2(function, list));
    SEXP answer = PROTECT(Rf_eval(call, R_GlobalEnv));
    const int is_false = TYPEOF(answer) == LGLSXP && XLENGTH(answer) == 1 && LOGICAL(answer)[0] == FALSE;
    UNPROTECT(3);
    return is_false;
}

/* Calls the R function after an epoch. It ends the fit by the value FALSE. */
static int report_epoch(void *data)
{
    static const char *const names[] = {"epoch", "epochs", "eta", "loss", "train_rmse", "test_rmse", "valid_rmse", NULL};
    Run *run = data;
    s3cmtf_progress progress = {.size = sizeof progress};
    check(s3cmtf_fit_get_progress(run->fit, &progress, call_error));
    if (progress.state != S3CMTF_FIT_RUNNING || progress.epoch == run->epoch) return 0;
    run->epoch = progress.epoch;
    const double numbers[] = {(double)progress.epoch, (double)progress.epochs, progress.eta,       progress.loss,
                              progress.train_rmse,    progress.test_rmse,      progress.valid_rmse};
    return report(run->report, names, numbers);
}

/* Creates the fit of a handle. */
static s3cmtf_fit *set_fit(SEXP owner, SEXP tensor, SEXP matrices, SEXP preset, SEXP names, SEXP values, SEXP valid, SEXP init)
{
    SEXP problem = PROTECT(r_problem_new(tensor, matrices));
    SEXP options = PROTECT(options_new(preset, names, values));
    s3cmtf_fit *fit = NULL;
    check(s3cmtf_fit_new(handle_get(problem, PROBLEM), handle_get(options, OPTIONS), &fit, call_error));
    handle_set(owner, fit);
    check(s3cmtf_fit_set_valid(fit, handle_or_null(valid, COO), call_error));
    check(s3cmtf_fit_set_init(fit, handle_or_null(init, MODEL), call_error));
    UNPROTECT(2);
    return fit;
}

SEXP r_fit(SEXP tensor, SEXP matrices, SEXP preset, SEXP names, SEXP values, SEXP test, SEXP valid, SEXP init,
           SEXP checkpoint, SEXP resume, SEXP plan, SEXP report)
{
    SEXP owner = PROTECT(handle_new(FIT));
    SEXP result = PROTECT(handle_new(MODEL));
    s3cmtf_fit *fit = set_fit(owner, tensor, matrices, preset, names, values, valid, init);
    s3cmtf_model *model = NULL;
    check(s3cmtf_fit_set_test(fit, handle_or_null(test, COO), call_error));
    check(s3cmtf_fit_set_checkpoint(fit, path_from(checkpoint), call_error));
    check(s3cmtf_fit_set_resume(fit, path_from(resume), call_error));
    check(s3cmtf_fit_set_plan(fit, string_from(plan), call_error));
    Run run = {.fit = fit, .report = report};
    run_interruptible(wait_for_fit, report == R_NilValue ? NULL : report_epoch, NULL, &run);
    check(s3cmtf_fit_take(fit, &model, call_error));
    handle_set(result, model);
    UNPROTECT(2);
    return result;
}

typedef struct {
    s3cmtf_fit *fit;
    uint64_t needed; /* bytes of the text */
} Planning;

static int32_t make_plan(void *data, const s3cmtf_cancel *cancel, s3cmtf_error *error)
{
    Planning *planning = data;
    int32_t status = s3cmtf_fit_set_cancel(planning->fit, cancel, error);
    if (status == S3CMTF_OK) status = s3cmtf_fit_plan(planning->fit, NULL, 0, &planning->needed, error);
    return status;
}

SEXP r_plan(SEXP tensor, SEXP matrices, SEXP preset, SEXP names, SEXP values, SEXP valid, SEXP init)
{
    SEXP owner = PROTECT(handle_new(FIT));
    Planning planning = {.fit = set_fit(owner, tensor, matrices, preset, names, values, valid, init)};
    run_interruptible(make_plan, NULL, NULL, &planning);
    char *text = R_alloc((size_t)planning.needed, 1);
    check(s3cmtf_fit_plan(planning.fit, text, planning.needed, NULL, call_error));
    SEXP result = utf8_string(text);
    UNPROTECT(1);
    return result;
}
