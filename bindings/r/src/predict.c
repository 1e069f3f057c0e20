/* Predictions and errors. */
#include "shim.h"
#include "routines.h"

/* Below this number of cells a prediction takes less time than the start of a thread. */
enum { FEW_CELLS = 10000 };

typedef struct {
    const s3cmtf_model *model;
    const s3cmtf_coo *coo; /* or cells */
    s3cmtf_indices cells;
    double *predictions;
    uint64_t count;
    s3cmtf_predict_request request;
} Prediction;

static int32_t predict(void *data, const s3cmtf_cancel *cancel, s3cmtf_error *error)
{
    Prediction *task = data;
    task->request.cancel = cancel;
    if (task->coo != NULL)
        return s3cmtf_model_predict_coo(task->model, task->coo, task->predictions, task->count, S3CMTF_F64, &task->request,
                                        error);
    return s3cmtf_model_predict(task->model, &task->cells, task->predictions, task->count, S3CMTF_F64, &task->request,
                                error);
}

/* cells: a handle of a tensor, or a list of index vectors. Returns fit, deviation or NULL, and a matrix with a row per
 * quantile or NULL. */
SEXP r_predict(SEXP handle, SEXP cells, SEXP clip, SEXP threads, SEXP deviation, SEXP quantiles)
{
    static const char *const names[] = {"fit", "deviation", "quantiles", NULL};
    Prediction task = {.model = handle_get(handle, MODEL)};
    if (TYPEOF(cells) == EXTPTRSXP) {
        task.coo = handle_get(cells, COO);
        task.count = coo_info_of(task.coo).count;
    } else {
        const uint64_t order = model_info_of(task.model).order;
        if ((uint64_t)XLENGTH(cells) != order)
            fail("BAD_ARGUMENT", "the cells have %d modes, the model has %d", (int)XLENGTH(cells), (int)order);
        check_indices(cells, 1, NULL);
        task.cells = indices_from(cells, 1);
        task.count = task.cells.count;
    }
    task.request = (s3cmtf_predict_request){
        .size = sizeof task.request, .clip = Rf_asInteger(clip), .threads = uint64_from(threads)};
    SEXP list = PROTECT(named_list(names));
    task.predictions = add_vector(list, 0, task.count);
    if (flag_from(deviation)) task.request.deviations = add_vector(list, 1, task.count);
    if (XLENGTH(quantiles) > 0) {
        task.request.quantiles = REAL(quantiles);
        task.request.quantile_count = (uint64_t)XLENGTH(quantiles);
        task.request.quantile_values = add_vector(list, 2, task.count * task.request.quantile_count);
    }
    if (task.count <= FEW_CELLS)
        check(predict(&task, NULL, call_error));
    else
        run_interruptible(predict, NULL, NULL, &task);
    UNPROTECT(1);
    return list;
}

typedef struct {
    const s3cmtf_model *model;
    const s3cmtf_coo *coo;
    uint64_t threads;
    s3cmtf_evaluation errors;
    s3cmtf_binary_scores binary;
    s3cmtf_distribution_scores distribution;
} Evaluation;

static int32_t evaluate(void *data, const s3cmtf_cancel *cancel, s3cmtf_error *error)
{
    Evaluation *task = data;
    return s3cmtf_model_evaluate(task->model, task->coo, task->threads, cancel, &task->errors, error);
}

static int32_t evaluate_binary(void *data, const s3cmtf_cancel *cancel, s3cmtf_error *error)
{
    Evaluation *task = data;
    return s3cmtf_model_evaluate_binary(task->model, task->coo, task->threads, cancel, &task->binary, error);
}

static int32_t evaluate_distributions(void *data, const s3cmtf_cancel *cancel, s3cmtf_error *error)
{
    Evaluation *task = data;
    return s3cmtf_model_evaluate_distributions(task->model, task->coo, task->threads, cancel, &task->distribution, error);
}

static Evaluation evaluation_of(SEXP model, SEXP coo, SEXP threads)
{
    return (Evaluation){
        .model = handle_get(model, MODEL), .coo = handle_get(coo, COO), .threads = uint64_from(threads),
        .errors.size = sizeof(s3cmtf_evaluation), .binary.size = sizeof(s3cmtf_binary_scores),
        .distribution.size = sizeof(s3cmtf_distribution_scores),
    };
}

SEXP r_evaluate(SEXP model, SEXP coo, SEXP threads)
{
    static const char *const names[] = {"entries", "rmse", "mae", "clipped_rmse", "clipped_mae", NULL};
    Evaluation task = evaluation_of(model, coo, threads);
    run_interruptible(evaluate, NULL, NULL, &task);
    const double numbers[] = {(double)task.errors.entries, task.errors.rmse, task.errors.mae, task.errors.clipped_rmse,
                              task.errors.clipped_mae};
    return number_list(names, numbers);
}

SEXP r_evaluate_binary(SEXP model, SEXP coo, SEXP threads)
{
    static const char *const names[] = {"entries", "low", "high", "high_fraction", "auc", "log_loss", NULL};
    Evaluation task = evaluation_of(model, coo, threads);
    run_interruptible(evaluate_binary, NULL, NULL, &task);
    const s3cmtf_binary_scores *scores = &task.binary;
    const double numbers[] = {(double)scores->entries, scores->low, scores->high,
                              scores->high_fraction,   scores->auc, scores->log_loss};
    return number_list(names, numbers);
}

SEXP r_evaluate_distributions(SEXP model, SEXP coo, SEXP threads)
{
    static const char *const names[] = {"entries",     "levels",      "log_score", "crps",
                                        "coverage_50", "coverage_90", "width_90",  NULL};
    Evaluation task = evaluation_of(model, coo, threads);
    run_interruptible(evaluate_distributions, NULL, NULL, &task);
    const s3cmtf_distribution_scores *scores = &task.distribution;
    const double numbers[] = {(double)scores->entries, (double)scores->levels, scores->log_score, scores->crps,
                              scores->coverage_50,     scores->coverage_90,    scores->width_90};
    return number_list(names, numbers);
}
