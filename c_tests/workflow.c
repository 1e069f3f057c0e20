/* A whole workflow: convert text, fit, checkpoint, resume, predict, inspect, save and load.
 * Arguments: a folder to write to, and a folder with real data; without the second, planted data. */
#include "folder.h"

enum { MAX_CELLS = 200 };

static s3cmtf_model *run(s3cmtf_fit *fit)
{
    s3cmtf_model *model = NULL;
    OK(s3cmtf_fit_run(fit, &model, error));
    return model;
}

static s3cmtf_fit *new_fit(const s3cmtf_problem *problem, const s3cmtf_options *options)
{
    s3cmtf_fit *fit = NULL;
    OK(s3cmtf_fit_new(problem, options, &fit, error));
    return fit;
}

static int same_predictions(const s3cmtf_model *a, const s3cmtf_model *b, const s3cmtf_coo *cells)
{
    const s3cmtf_predict_request one = unclipped(1), two = unclipped(2);
    const uint64_t count = coo_info_of(cells, error).count;
    double *x = malloc(sizeof *x * count), *y = malloc(sizeof *y * count);
    OK(s3cmtf_model_predict_coo(a, cells, x, count, S3CMTF_F64, &one, error));
    OK(s3cmtf_model_predict_coo(b, cells, y, count, S3CMTF_F64, &two, error));
    const int same = !memcmp(x, y, sizeof *x * count);
    free(x);
    free(y);
    return same;
}

static int same_numbers(s3cmtf_view a, s3cmtf_view b)
{
    int same = a.rows == b.rows && a.columns == b.columns;
    for (uint64_t row = 0; same && row < a.rows; row++)
        same = !memcmp(a.numbers + row * a.stride, b.numbers + row * b.stride, sizeof *a.numbers * a.columns);
    return same;
}

/* A fit that follows the plan of another has the same factors and core, bit by bit. */
static void repeated_plan(const s3cmtf_problem *problem, const char *settings)
{
    s3cmtf_options *options = NULL;
    s3cmtf_view a, b;
    uint64_t needed = 0, length = 0;
    OK(s3cmtf_options_new(NULL, &options, error));
    OK(s3cmtf_options_parse(options, settings, error));
    s3cmtf_fit *fit = new_fit(problem, options);
    OK(s3cmtf_fit_plan(fit, NULL, 0, &needed, error));
    char *plan = malloc(needed), *followed = malloc(needed);
    OK(s3cmtf_fit_plan(fit, plan, needed, &length, error));
    CHECK(length == needed && strlen(plan) == needed - 1 && strchr(plan, '\n') == NULL);
    s3cmtf_model *planned = run(fit);
    s3cmtf_fit_free(fit);

    /* What the plan says need not be set again. */
    fit = new_fit(problem, NULL);
    OK(s3cmtf_fit_set_plan(fit, plan, error));
    s3cmtf_model *repeated = run(fit);
    CHECK(progress_of(fit, error).epochs == 3);
    s3cmtf_fit_free(fit);
    /* Without a call that makes the plan, the model is the same. */
    fit = new_fit(problem, options);
    s3cmtf_model *fitted = run(fit);
    s3cmtf_fit_free(fit);
    s3cmtf_model *const others[2] = {repeated, fitted};
    for (int k = 0; k < 2; k++) {
        for (uint64_t n = 0; n < 3; n++) {
            OK(s3cmtf_model_view_factor(planned, n, &a, error));
            OK(s3cmtf_model_view_factor(others[k], n, &b, error));
            CHECK(same_numbers(a, b));
        }
        OK(s3cmtf_model_view_core(planned, &a, error));
        OK(s3cmtf_model_view_core(others[k], &b, error));
        CHECK(same_numbers(a, b));
        OK(s3cmtf_model_get_plan(others[k], followed, needed, &length, error));
        CHECK(length == needed && !strcmp(followed, plan));
        s3cmtf_model_free(others[k]);
    }
    free(plan);
    free(followed);
    s3cmtf_model_free(planned);
    s3cmtf_options_free(options);
}

/* Copies and views of factors agree and reproduce predictions. */
static void numbers(const s3cmtf_model *model, const s3cmtf_coo *test)
{
    uint64_t ranks[3];
    s3cmtf_view factor[3], view;
    double *wide[3];
    uint64_t *index[3];
    const s3cmtf_model_info info = model_info_of(model, error);
    CHECK(info.kind == S3CMTF_MODEL_TUCKER && info.order == 3 && info.matrices == 1 && info.samples == 0);
    for (uint64_t n = 0; n < 3; n++) {
        const s3cmtf_model_mode mode = mode_of(model, n, error);
        const uint64_t rank = ranks[n] = mode.rank;
        OK(s3cmtf_model_view_factor(model, n, &factor[n], error));
        CHECK(factor[n].columns == rank && factor[n].stride >= rank && (uintptr_t)factor[n].numbers % 64 == 0);
        CHECK(factor[n].rows == mode.rows && mode.rows <= mode.dim);
        const uint64_t size = mode.rows * rank;
        wide[n] = malloc(sizeof *wide[n] * size);
        float *narrow = malloc(sizeof *narrow * size);
        index[n] = malloc(sizeof *index[n] * mode.rows);
        OK(s3cmtf_model_copy_factor(model, n, wide[n], size, S3CMTF_F64, S3CMTF_ROW_MAJOR, error));
        OK(s3cmtf_model_copy_factor(model, n, narrow, size, S3CMTF_F32, S3CMTF_COLUMN_MAJOR, error));
        OK(s3cmtf_model_copy_row_indices(model, n, index[n], mode.rows, S3CMTF_U64, error));
        for (uint64_t i = 0; i < mode.rows; i++) {
            double row[64];
            OK(s3cmtf_model_copy_row(model, n, index[n][i], row, 64, S3CMTF_F64, error));
            for (uint64_t j = 0; j < rank; j++) {
                const double x = wide[n][i * rank + j];
                CHECK(x == (double)factor[n].numbers[i * factor[n].stride + j]);
                CHECK(x == (double)narrow[j * mode.rows + i] && x == row[j]);
            }
        }
        free(narrow);
    }
    const uint64_t size = ranks[0] * ranks[1] * ranks[2];
    double *core = malloc(sizeof *core * size), *columns = malloc(sizeof *columns * size);
    OK(s3cmtf_model_copy_core(model, core, size, S3CMTF_F64, S3CMTF_ROW_MAJOR, error));
    OK(s3cmtf_model_copy_core(model, columns, size, S3CMTF_F64, S3CMTF_COLUMN_MAJOR, error));
    OK(s3cmtf_model_view_core(model, &view, error));
    CHECK(view.rows == ranks[0] * ranks[1] && view.columns == ranks[2] && view.stride >= view.columns);

    uint64_t count = coo_info_of(test, error).count;
    const uint32_t *cell[3];
    for (uint64_t n = 0; n < 3; n++) OK(s3cmtf_coo_view_indices(test, n, &cell[n], error));
    count = count < MAX_CELLS ? count : MAX_CELLS;
    /* The same cells as records of one-based 64-bit indices. */
    uint64_t records[3 * MAX_CELLS];
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t n = 0; n < 3; n++) records[3 * i + n] = (uint64_t)cell[n][i] + 1;
    const void *const separate[3] = {cell[0], cell[1], cell[2]};
    const void *const interleaved[3] = {records, records + 1, records + 2};
    const s3cmtf_indices arrays = {separate, count, 1, S3CMTF_U32, 0}, packed = {interleaved, count, 3, S3CMTF_U64, 1};
    const s3cmtf_indices default_stride = indices_u32(separate, count);
    s3cmtf_predict_request request = unclipped(1);
    double x[MAX_CELLS], y[MAX_CELLS], clipped[MAX_CELLS], by_default[MAX_CELLS];
    float z[MAX_CELLS];
    OK(s3cmtf_model_predict(model, &arrays, x, MAX_CELLS, S3CMTF_F64, &request, error));
    request.threads = 2;
    OK(s3cmtf_model_predict(model, &packed, y, MAX_CELLS, S3CMTF_F64, &request, error));
    request.threads = 0;
    OK(s3cmtf_model_predict(model, &default_stride, z, MAX_CELLS, S3CMTF_F32, &request, error));
    request.clip = S3CMTF_CLIP_ON;
    OK(s3cmtf_model_predict(model, &arrays, clipped, MAX_CELLS, S3CMTF_F64, &request, error));
    /* Without a request predictions are clipped or not as the model decides, and so are those of a single cell. */
    OK(s3cmtf_model_predict(model, &arrays, by_default, MAX_CELLS, S3CMTF_F64, NULL, error));
    CHECK(!memcmp(by_default, clipped, count * sizeof *x) || !memcmp(by_default, x, count * sizeof *x));
    for (uint64_t i = 0; i < count; i++) {
        double row[3][64], sum = 0, one = 0;
        const uint64_t single[3] = {cell[0][i], cell[1][i], cell[2][i]};
        CHECK(clipped[i] == fmin(fmax(x[i], info.min_value), info.max_value));
        OK(s3cmtf_model_predict_cell(model, single, &one, error));
        CHECK(one == by_default[i]);
        for (uint64_t n = 0; n < 3; n++)
            OK(s3cmtf_model_copy_row(model, n, cell[n][i], row[n], 64, S3CMTF_F64, error));
        for (uint64_t a = 0; a < ranks[0]; a++)
            for (uint64_t b = 0; b < ranks[1]; b++)
                for (uint64_t c = 0; c < ranks[2]; c++) {
                    const double g = core[(a * ranks[1] + b) * ranks[2] + c];
                    CHECK(g == columns[(c * ranks[1] + b) * ranks[0] + a]);
                    CHECK(g == (double)view.numbers[(a * ranks[1] + b) * view.stride + c]);
                    sum += g * row[0][a] * row[1][b] * row[2][c];
                }
        CHECK(fabs(sum - x[i]) < 1e-4 * (1 + fabs(sum)));
        CHECK(x[i] == y[i] && (float)x[i] == z[i]);
    }
    /* Unknown indices predict as the mean row. */
    const uint64_t beyond[3] = {4000000000u, 4000000000u, 4000000000u};
    const void *const far[3] = {&beyond[0], &beyond[1], &beyond[2]};
    const s3cmtf_indices unknown = indices_u64(far, 1);
    OK(s3cmtf_model_predict(model, &unknown, x, 1, S3CMTF_F64, NULL, error));
    OK(s3cmtf_model_predict_cell(model, beyond, y, error));
    CHECK(x[0] >= info.min_value && x[0] <= info.max_value && x[0] == y[0]);

    const s3cmtf_model_matrix matrix = matrix_of(model, 0, error);
    CHECK(matrix.mode == 1 && matrix.kind == S3CMTF_MATRIX_OBSERVED && matrix.weight == 10);
    CHECK(matrix.rows <= matrix.columns);
    double *v = malloc(sizeof *v * matrix.rows * ranks[1]);
    uint32_t *v_index = malloc(sizeof *v_index * matrix.rows);
    OK(s3cmtf_model_copy_matrix(model, 0, v, matrix.rows * ranks[1], S3CMTF_F64, S3CMTF_ROW_MAJOR, error));
    OK(s3cmtf_model_copy_matrix_indices(model, 0, v_index, matrix.rows, S3CMTF_U32, error));
    OK(s3cmtf_model_view_matrix(model, 0, &view, error));
    CHECK(view.rows == matrix.rows && view.columns == ranks[1]);
    for (uint64_t i = 0; i < matrix.rows; i++) {
        CHECK(v_index[i] < matrix.columns);
        for (uint64_t j = 0; j < ranks[1]; j++) CHECK(v[i * ranks[1] + j] == (double)view.numbers[i * view.stride + j]);
    }
    for (int n = 0; n < 3; n++) {
        free(wide[n]);
        free(index[n]);
    }
    free(core);
    free(columns);
    free(v);
    free(v_index);
}

/* Multiplies the core, Tucker or CP, with the rows of a cell. */
static double core_times_rows(const s3cmtf_model *model, const uint64_t *ranks, const double *core, double row[3][64])
{
    double sum = 0;
    if (model_info_of(model, error).kind == S3CMTF_MODEL_CP) {
        for (uint64_t j = 0; j < ranks[0]; j++) sum += core[j] * row[0][j] * row[1][j] * row[2][j];
        return sum;
    }
    for (uint64_t a = 0; a < ranks[0]; a++)
        for (uint64_t b = 0; b < ranks[1]; b++)
            for (uint64_t c = 0; c < ranks[2]; c++)
                sum += core[(a * ranks[1] + b) * ranks[2] + c] * row[0][a] * row[1][b] * row[2][c];
    return sum;
}

/* A prediction is the mean, plus biases, plus the core multiplied with rows. */
static void explained(const s3cmtf_model *model, const s3cmtf_coo *test, int has_biases)
{
    enum { LARGEST_CORE = 1 << 12 };
    double x[MAX_CELLS], *bias[3], *core = malloc(sizeof *core * LARGEST_CORE);
    uint64_t ranks[3];
    s3cmtf_view view;
    const uint32_t *cell[3];
    const double mean = model_info_of(model, error).mean;
    CHECK(has_biases ? mean > 0 : mean == 0);
    OK(s3cmtf_model_copy_core(model, core, LARGEST_CORE, S3CMTF_F64, S3CMTF_ROW_MAJOR, error));
    for (uint64_t n = 0; n < 3; n++) {
        const s3cmtf_model_mode mode = mode_of(model, n, error);
        ranks[n] = mode.rank;
        double *own = malloc(sizeof *own * mode.rows);
        float *narrow = malloc(sizeof *narrow * mode.rows);
        uint64_t *index = malloc(sizeof *index * mode.rows);
        bias[n] = calloc(mode.dim, sizeof *bias[n]); /* by index; 0 for indices that did not occur */
        OK(s3cmtf_model_copy_biases(model, n, own, mode.rows, S3CMTF_F64, error));
        OK(s3cmtf_model_copy_biases(model, n, narrow, mode.rows, S3CMTF_F32, error));
        OK(s3cmtf_model_copy_row_indices(model, n, index, mode.rows, S3CMTF_U64, error));
        OK(s3cmtf_model_view_biases(model, n, &view, error));
        CHECK(view.columns == 1);
        CHECK(has_biases ? view.rows == mode.rows && view.stride >= 1 : view.rows == 0 && view.numbers == NULL);
        for (uint64_t i = 0; i < mode.rows; i++) {
            CHECK(own[i] == (has_biases ? (double)view.numbers[i * view.stride] : 0) && own[i] == (double)narrow[i]);
            bias[n][index[i]] = own[i];
        }
        free(own);
        free(narrow);
        free(index);
    }
    uint64_t count = coo_info_of(test, error).count;
    count = count < MAX_CELLS ? count : MAX_CELLS;
    for (uint64_t n = 0; n < 3; n++) OK(s3cmtf_coo_view_indices(test, n, &cell[n], error));
    const void *const modes[3] = {cell[0], cell[1], cell[2]};
    const s3cmtf_indices cells = indices_u32(modes, count);
    const s3cmtf_predict_request request = unclipped(1);
    OK(s3cmtf_model_predict(model, &cells, x, MAX_CELLS, S3CMTF_F64, &request, error));
    for (uint64_t i = 0; i < count; i++) {
        double row[3][64], sum = mean;
        for (uint64_t n = 0; n < 3; n++) {
            OK(s3cmtf_model_copy_row(model, n, cell[n][i], row[n], 64, S3CMTF_F64, error));
            sum += bias[n][cell[n][i]];
        }
        sum += core_times_rows(model, ranks, core, row);
        CHECK(fabs(sum - x[i]) < 1e-4 * (1 + fabs(sum)));
    }
    const uint64_t columns = matrix_of(model, 0, error).rows;
    double *offset = malloc(sizeof *offset * columns);
    OK(s3cmtf_model_copy_offsets(model, 0, offset, columns, S3CMTF_F64, error));
    OK(s3cmtf_model_view_offsets(model, 0, &view, error));
    CHECK(view.columns == 1);
    CHECK(has_biases ? view.rows == columns && view.stride >= 1 : view.rows == 0 && view.numbers == NULL);
    for (uint64_t i = 0; i < columns; i++)
        CHECK(offset[i] == (has_biases ? (double)view.numbers[i * view.stride] : 0));
    for (int n = 0; n < 3; n++) free(bias[n]);
    free(offset);
    free(core);
}

/* CP, graphs, non-negativity. */
static void other_models(const s3cmtf_coo *train)
{
    const uint32_t from[3] = {0, 1, 2}, to[3] = {1, 2, 0};
    const float one[3] = {1, 1, 1};
    const void *const edges[2] = {from, to};
    s3cmtf_coo *graph = new_coo(entries_f32(2, NULL, indices_u32(edges, 3), one), error);
    const s3cmtf_coupling coupling = coupling_of(S3CMTF_MATRIX_GRAPH, 0.5);
    s3cmtf_problem *problem = NULL;
    s3cmtf_options *options = NULL;
    s3cmtf_view core;
    float diagonal[3];
    OK(s3cmtf_problem_new(train, &problem, error));
    OK(s3cmtf_problem_add_matrix(problem, 2, graph, &coupling, error));
    OK(s3cmtf_options_new("default", &options, error));
    OK(s3cmtf_options_set(options, "model", "cp", error));
    OK(s3cmtf_options_set_ranks(options, (const uint64_t[]){3, 3, 3}, 3, error));
    OK(s3cmtf_options_set_bool(options, "nonneg", 1, error));
    OK(s3cmtf_options_set(options, "epochs", "2", error));
    s3cmtf_fit *fit = new_fit(problem, options);
    s3cmtf_model *model = run(fit);
    CHECK(model_info_of(model, error).kind == S3CMTF_MODEL_CP);
    OK(s3cmtf_model_copy_core(model, diagonal, 3, S3CMTF_F32, S3CMTF_ROW_MAJOR, error));
    OK(s3cmtf_model_view_core(model, &core, error));
    CHECK(core.rows == 1 && core.columns == 3);
    for (int j = 0; j < 3; j++) CHECK(diagonal[j] >= 0 && diagonal[j] == core.numbers[j]);
    CHECK(matrix_of(model, 0, error).kind == S3CMTF_MATRIX_GRAPH && matrix_of(model, 0, error).weight == 0.5);
    FAILS(S3CMTF_BAD_ARGUMENT, s3cmtf_model_copy_matrix(model, 0, diagonal, 3, S3CMTF_F32, 0, error));
    s3cmtf_model_free(model);
    s3cmtf_fit_free(fit);
    s3cmtf_options_free(options);
    s3cmtf_problem_free(problem);
    s3cmtf_coo_free(graph);
}

static int32_t warned(const s3cmtf_progress *progress, void *user)
{
    if (progress->event == S3CMTF_EVENT_WARNING) {
        CHECK(progress->message && strstr(progress->message, "carries no information"));
        ++*(int *)user;
    }
    return 0;
}

/* A matrix of ones whose zeros are not listed, coupled as each kind. */
static void kinds_of_matrices(void)
{
    static planted p;
    plant(&p);
    s3cmtf_coo *train = planted_tensor(&p, error), *genres = planted_genres(&p, error);
    const int32_t kinds[3] = {S3CMTF_MATRIX_OBSERVED, S3CMTF_MATRIX_FULL, S3CMTF_MATRIX_SAMPLED};
    for (int k = 0; k < 3; k++) {
        s3cmtf_problem *problem = NULL;
        s3cmtf_options *options = NULL;
        s3cmtf_coupling coupling = coupling_of(kinds[k], 0.5);
        int warnings = 0;
        OK(s3cmtf_problem_new(train, &problem, error));
        coupling.zeros = kinds[k] == S3CMTF_MATRIX_SAMPLED;
        /* A penalty of 0 is one, unlike a weight of 0. */
        coupling.has_penalty = k == 1;
        OK(s3cmtf_problem_add_matrix(problem, 1, genres, &coupling, error));
        OK(s3cmtf_options_new("paper", &options, error));
        OK(s3cmtf_options_set(options, "rank", "3", error));
        OK(s3cmtf_options_set(options, "epochs", "2", error));
        s3cmtf_fit *fit = new_fit(problem, options);
        OK(s3cmtf_fit_set_callback(fit, warned, &warnings, error));
        s3cmtf_model *model = run(fit);
        CHECK(warnings == (kinds[k] == S3CMTF_MATRIX_OBSERVED));
        CHECK(matrix_of(model, 0, error).kind == kinds[k] && matrix_of(model, 0, error).weight == 0.5);
        s3cmtf_model_free(model);
        s3cmtf_fit_free(fit);
        s3cmtf_options_free(options);
        s3cmtf_problem_free(problem);
    }
    s3cmtf_coo_free(train);
    s3cmtf_coo_free(genres);
}

/* A fit with default options but for the number of epochs. */
static void default_options(const s3cmtf_problem *problem, const s3cmtf_coo *test)
{
    s3cmtf_options *options = NULL, *used = NULL;
    char text[32];
    OK(s3cmtf_options_new(NULL, &options, error));
    OK(s3cmtf_options_get(options, "eta", text, sizeof text, NULL, error));
    CHECK(!strcmp(text, "auto"));
    /* A number replaces "auto" until "auto" is set again. */
    OK(s3cmtf_options_set_real(options, "eta", 0.01, error));
    OK(s3cmtf_options_get(options, "eta", text, sizeof text, NULL, error));
    CHECK(!strcmp(text, "0.01"));
    OK(s3cmtf_options_set(options, "eta", "auto", error));
    OK(s3cmtf_options_set_ranks(options, (const uint64_t[]){2}, 1, error));
    OK(s3cmtf_options_set(options, "rank", "auto", error));
    OK(s3cmtf_options_get(options, "rank", text, sizeof text, NULL, error));
    CHECK(!strcmp(text, "auto"));
    FAILS(S3CMTF_BAD_ARGUMENT, s3cmtf_options_set_real(options, "eta", (double)NAN, error));
    FAILS(S3CMTF_BAD_ARGUMENT, s3cmtf_options_set(options, "decay", "auto", error));

    OK(s3cmtf_options_set_integer(options, "epochs", 5, error));
    s3cmtf_fit *fit = new_fit(problem, options);
    s3cmtf_model *model = run(fit);
    explained(model, test, 1);
    /* The options of the model have the chosen values. */
    OK(s3cmtf_model_get_options(model, &used, error));
    const char *const left[] = {"eta", "lambda_reg", "core_step", "rank", "model", "start"};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        OK(s3cmtf_options_get(options, left[i], text, sizeof text, NULL, error));
        CHECK(!strcmp(text, "auto"));
        OK(s3cmtf_options_get(used, left[i], text, sizeof text, NULL, error));
        CHECK(strcmp(text, "auto") != 0);
    }
    s3cmtf_model_free(model);
    s3cmtf_fit_free(fit);
    s3cmtf_options_free(used);
    s3cmtf_options_free(options);
}

#include "workflow_after_fit.h"

/* Every option can be set to its default and to the limits of the table. */
static void table_of_options(s3cmtf_options *options)
{
    for (uint64_t i = 0; i < s3cmtf_option_count(); i++) {
        s3cmtf_option_info info;
        info.size = sizeof info;
        OK(s3cmtf_option_get_info(i, &info, error));
        OK(s3cmtf_options_set(options, info.name, info.default_value, error));
        CHECK(strlen(info.help) > 10);
        CHECK((strlen(info.choices) > 0) == (info.type == S3CMTF_OPTION_CHOICE));
        const int is_number = info.type != S3CMTF_OPTION_CHOICE && info.type != S3CMTF_OPTION_BOOL;
        CHECK((strlen(info.min) > 0) == is_number && (strlen(info.max) > 0) == is_number);
        if (info.type == S3CMTF_OPTION_INTEGER || info.type == S3CMTF_OPTION_REAL) {
            OK(s3cmtf_options_set(options, info.name, info.min, error));
            OK(s3cmtf_options_set(options, info.name, info.max, error));
        }
    }
}

static int32_t count_checkpoints(const s3cmtf_progress *progress, void *user)
{
    if (progress->event == S3CMTF_EVENT_CHECKPOINT) {
        CHECK(strstr(progress->message, "checkpoint") != NULL);
        ++*(int *)user;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *data = start(argc, argv);
    char train_text[LONGEST], test_text[LONGEST], genres_text[LONGEST];
    snprintf(train_text, LONGEST, "%s/tensor.train.tns", data);
    snprintf(test_text, LONGEST, "%s/tensor.test.tns", data);
    snprintf(genres_text, LONGEST, "%s/movie_genre.tns", data);
    OK(s3cmtf_coo_convert(train_text, in_folder("train.coo"), NULL, NULL, error));

    /* Text is also read without conversion. */
    s3cmtf_coo *train = open_coo(in_folder("train.coo"), S3CMTF_OPEN_MAPPED);
    s3cmtf_coo *test = open_coo(test_text, S3CMTF_OPEN_PRIVATE), *genres = open_coo(genres_text, S3CMTF_OPEN_MAPPED);
    s3cmtf_problem *problem = NULL;
    s3cmtf_options *options = NULL;
    OK(s3cmtf_problem_new(train, &problem, error));
    OK(s3cmtf_problem_add_matrix(problem, 1, genres, NULL, error)); /* observed, weight and penalty of the options */
    OK(s3cmtf_options_new("paper", &options, error));
    OK(s3cmtf_options_set(options, "rank", "4,4,3", error));
    OK(s3cmtf_options_set_integer(options, "epochs", 4, error));
    OK(s3cmtf_options_set_integer(options, "threads", 2, error));
    OK(s3cmtf_options_set_bool(options, "clip", 1, error));

    /* Four epochs, and two and two with a checkpoint between, give the same model. */
    s3cmtf_fit *fit = new_fit(problem, options);
    OK(s3cmtf_fit_set_test(fit, test, error));
    s3cmtf_model *model = run(fit);
    s3cmtf_progress progress = progress_of(fit, error);
    CHECK(progress.epoch == 4 && progress.stop_reason == S3CMTF_STOP_EPOCHS && progress.test_rmse > 0);
    const s3cmtf_evaluation found = evaluation_of(model, test, 0, error);
    CHECK(found.entries == coo_info_of(test, error).count);
    CHECK(fabs(found.clipped_rmse - progress.test_rmse) < 1e-6);
    CHECK(found.clipped_mae > 0 && found.clipped_mae <= found.clipped_rmse && found.mae <= found.rmse);
    s3cmtf_fit_free(fit);

    int checkpoints = 0;
    OK(s3cmtf_options_set(options, "epochs", "2", error));
    fit = new_fit(problem, options);
    OK(s3cmtf_fit_set_checkpoint(fit, in_folder("run.checkpoint"), error));
    OK(s3cmtf_fit_set_callback(fit, count_checkpoints, &checkpoints, error));
    s3cmtf_model_free(run(fit));
    CHECK(checkpoints == 2);
    s3cmtf_fit_free(fit);
    s3cmtf_model *saved = NULL;
    s3cmtf_options *saved_options = NULL;
    char text[32];
    OK(s3cmtf_model_load(in_folder("run.checkpoint"), S3CMTF_OPEN_PRIVATE, &saved, error));
    OK(s3cmtf_model_get_options(saved, &saved_options, error));
    OK(s3cmtf_options_get(saved_options, "rank", text, sizeof text, NULL, error));
    CHECK(!strcmp(text, "4,4,3"));
    OK(s3cmtf_options_set(saved_options, "epochs", "4", error));
    fit = new_fit(problem, saved_options);
    OK(s3cmtf_fit_set_resume(fit, in_folder("run.checkpoint"), error));
    s3cmtf_model *resumed = run(fit);
    s3cmtf_fit_free(fit);
    CHECK(same_predictions(model, resumed, test));

    /* A warm start begins with the model. */
    OK(s3cmtf_options_set(options, "epochs", "1", error));
    fit = new_fit(problem, options);
    OK(s3cmtf_fit_set_init(fit, model, error));
    s3cmtf_model *warm = run(fit);
    s3cmtf_progress first, last;
    first.size = last.size = sizeof first;
    CHECK(model_info_of(model, error).epochs == 4);
    OK(s3cmtf_model_get_epoch(model, 0, &first, error));
    OK(s3cmtf_model_get_epoch(warm, 0, &last, error));
    CHECK(first.epoch == 1 && last.train_rmse < first.train_rmse);
    s3cmtf_fit_free(fit);

    /* Early stopping by validation entries. */
    OK(s3cmtf_options_set(options, "epochs", "50", error));
    OK(s3cmtf_options_set(options, "patience", "1", error));
    OK(s3cmtf_options_set(options, "eta", "0.02", error));
    fit = new_fit(problem, options);
    OK(s3cmtf_fit_set_valid(fit, test, error));
    s3cmtf_model_free(run(fit));
    progress = progress_of(fit, error);
    CHECK(progress.valid_rmse > 0 && progress.stop_reason != S3CMTF_STOP_NONE);
    s3cmtf_fit_free(fit);

    numbers(model, test);
    explained(model, test, 0);
    default_options(problem, test);
    repeated_plan(problem, "rank=4 epochs=3");
    repeated_plan(problem, "algorithm=gibbs rank=3 epochs=3 samples=3");
    other_models(train);
    after_fit(problem, model, test);
    kinds_of_matrices();
    OK(s3cmtf_model_save(model, in_folder("model.s3m"), error));
    OK(s3cmtf_model_export(model, in_folder("exported"), NULL, error));
    for (int32_t mode = S3CMTF_OPEN_MAPPED; mode <= S3CMTF_OPEN_PRIVATE; mode++) {
        s3cmtf_model *loaded = NULL;
        OK(s3cmtf_model_load(in_folder("model.s3m"), mode, &loaded, error));
        CHECK(same_predictions(model, loaded, test));
        s3cmtf_model_free(loaded);
    }
    s3cmtf_coo *nothing = NULL;
    FAILS(S3CMTF_BAD_FILE, s3cmtf_coo_open(in_folder("model.s3m"), 0, NULL, NULL, &nothing, error));
    FAILS(S3CMTF_BAD_FILE, s3cmtf_model_load(in_folder("train.coo"), 0, &saved, error));

    table_of_options(options);
    const char *preset = NULL;
    for (uint64_t i = 0; s3cmtf_preset_name(i, &preset, NULL) == S3CMTF_OK; i++) {
        s3cmtf_options *settings = NULL;
        OK(s3cmtf_options_new(preset, &settings, error));
        s3cmtf_options_free(settings);
    }

    s3cmtf_model_free(warm);
    s3cmtf_model_free(resumed);
    s3cmtf_model_free(saved);
    s3cmtf_model_free(model);
    s3cmtf_options_free(saved_options);
    s3cmtf_options_free(options);
    s3cmtf_problem_free(problem);
    s3cmtf_coo_free(genres);
    s3cmtf_coo_free(test);
    s3cmtf_coo_free(train);
    s3cmtf_error_free(error);
    puts("ok");
    return 0;
}
