/* The shim of proof.R: objects are external pointers, the callback runs on the thread of R. */
#define R_NO_REMAP
#include <R.h>
#include <Rinternals.h>
#include <s3cmtf.h>

static s3cmtf_error *error;

static void require(int32_t status)
{
    if (status != S3CMTF_OK) Rf_error("%s: %s", s3cmtf_status_name(status), s3cmtf_error_message(error));
}

/* Calls the R function with epoch and errors; it returns whether to stop. An R error must not longjmp out of the fit, so it
 * is caught. */
static int32_t call_r(const s3cmtf_progress *progress, void *user)
{
    if (progress->event != S3CMTF_EVENT_EPOCH) return 0;
    SEXP epoch = PROTECT(Rf_ScalarReal((double)progress->epoch));
    SEXP train = PROTECT(Rf_ScalarReal(progress->train_rmse));
    SEXP test = PROTECT(Rf_ScalarReal(progress->test_rmse));
    SEXP call = PROTECT(Rf_lang4((SEXP)user, epoch, train, test));
    int failed = 0;
    SEXP answer = R_tryEval(call, R_GlobalEnv, &failed);
    const int stop = failed || Rf_asLogical(answer);
    UNPROTECT(4);
    return stop;
}

static void free_model(SEXP pointer)
{
    s3cmtf_model_free(R_ExternalPtrAddr(pointer));
    R_ClearExternalPtr(pointer);
}

SEXP proof_fit(SEXP train_path, SEXP test_path, SEXP rank, SEXP epoch)
{
    s3cmtf_coo *train = NULL, *test = NULL;
    s3cmtf_problem *problem = NULL;
    s3cmtf_options *options = NULL;
    s3cmtf_fit *fit = NULL;
    s3cmtf_model *model = NULL;
    if (error == NULL) require(s3cmtf_error_new(&error));
    int32_t status = s3cmtf_coo_open(CHAR(STRING_ELT(train_path, 0)), S3CMTF_OPEN_MAPPED, NULL, NULL, &train, error);
    if (!status)
        status = s3cmtf_coo_open(CHAR(STRING_ELT(test_path, 0)), S3CMTF_OPEN_MAPPED, NULL, NULL, &test, error);
    if (!status) status = s3cmtf_problem_new(train, &problem, error);
    if (!status) status = s3cmtf_options_new("paper", &options, error);
    const uint64_t ranks[1] = {(uint64_t)Rf_asInteger(rank)};
    if (!status) status = s3cmtf_options_set_ranks(options, ranks, 1, error);
    if (!status) status = s3cmtf_options_set(options, "epochs", "1000000", error);
    if (!status) status = s3cmtf_fit_new(problem, options, &fit, error);
    if (!status) status = s3cmtf_fit_set_test(fit, test, error);
    if (!status) status = s3cmtf_fit_set_callback(fit, call_r, epoch, error);
    if (!status) status = s3cmtf_fit_run(fit, &model, error);
    s3cmtf_fit_free(fit);
    s3cmtf_options_free(options);
    s3cmtf_problem_free(problem);
    s3cmtf_coo_free(test);
    s3cmtf_coo_free(train);
    require(status);
    SEXP pointer = PROTECT(R_MakeExternalPtr(model, R_NilValue, R_NilValue));
    R_RegisterCFinalizerEx(pointer, free_model, TRUE);
    UNPROTECT(1);
    return pointer;
}

/* Predicts cells in an integer matrix of R: one row per cell, one-based, column-major. */
SEXP proof_predict(SEXP model, SEXP cells)
{
    const R_xlen_t count = Rf_nrows(cells);
    const uint32_t *first = (const uint32_t *)INTEGER(cells);
    const void *const modes[3] = {first, first + count, first + 2 * count};
    const s3cmtf_indices indices = {modes, (uint64_t)count, 1, S3CMTF_U32, 1};
    SEXP numbers = PROTECT(Rf_allocVector(REALSXP, count));
    require(s3cmtf_model_predict(R_ExternalPtrAddr(model), &indices, REAL(numbers), (uint64_t)count, S3CMTF_F64, NULL,
                                 error));
    UNPROTECT(1);
    return numbers;
}
