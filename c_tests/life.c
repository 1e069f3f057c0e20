/* The whole life of a problem: text to file, file to problem, fit, use, save, load, go on.
 * Arguments: a folder to write to, and a folder with real data; without the second, planted data. */
#include "check.h"

enum { MAX_CELLS = 200, LONGEST = 1024 };

static s3cmtf_error *error;
static const char *folder;

/* A file of the folder that is written to. */
static const char *in_folder(const char *name)
{
    static char paths[8][LONGEST];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, LONGEST, "%s/%s", folder, name);
    return path;
}

static void write_planted(const planted *p)
{
    FILE *train = fopen(in_folder("tensor.train.tns"), "w"), *test = fopen(in_folder("tensor.test.tns"), "w");
    FILE *genres = fopen(in_folder("movie_genre.tns"), "w");
    CHECK(train != NULL && test != NULL && genres != NULL);
    for (int i = 0; i < ENTRIES; i++)
        fprintf(i % 5 ? train : test, "%u %u %u %.9g\n", p->user[i] + 1, p->film[i] + 1, p->month[i] + 1,
                (double)p->stars[i]);
    for (int i = 0; i < FILMS; i++) fprintf(genres, "%u %u 1\n", p->genre_film[i] + 1, p->genre[i] + 1);
    CHECK(fclose(train) == 0 && fclose(test) == 0 && fclose(genres) == 0);
}

static s3cmtf_coo *open_coo(const char *path, int32_t mode)
{
    s3cmtf_coo *coo = NULL;
    OK(s3cmtf_coo_open(path, mode, NULL, NULL, &coo, error));
    return coo;
}

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
    uint64_t count = 0;
    OK(s3cmtf_coo_get_count(cells, &count, error));
    double *x = malloc(sizeof *x * count), *y = malloc(sizeof *y * count);
    OK(s3cmtf_model_predict_coo(a, cells, 0, 1, NULL, x, count, S3CMTF_F64, error));
    OK(s3cmtf_model_predict_coo(b, cells, 0, 2, NULL, y, count, S3CMTF_F64, error));
    const int same = !memcmp(x, y, sizeof *x * count);
    free(x);
    free(y);
    return same;
}

/* Files: converted, opened in both ways, checked, written, split and mended. */
static void files(const char *train_text)
{
    uint64_t counts[S3CMTF_CHECK_COUNTS], dims[3], other[3], used[3], count = 0, dropped = 9, merged = 9;
    double low = 0, high = 0, mean = 0, deviation = 0;
    OK(s3cmtf_coo_convert(train_text, in_folder("train.coo"), NULL, NULL, error));
    s3cmtf_coo *mapped = open_coo(in_folder("train.coo"), S3CMTF_OPEN_MAPPED);
    s3cmtf_coo *copied = open_coo(in_folder("train.coo"), S3CMTF_OPEN_PRIVATE);
    OK(s3cmtf_coo_get_dims(mapped, dims, 3, error));
    OK(s3cmtf_coo_get_dims(copied, other, 3, error));
    CHECK(!memcmp(dims, other, sizeof dims));
    OK(s3cmtf_coo_get_count(mapped, &count, error));
    OK(s3cmtf_coo_summarize(mapped, NULL, &low, &high, &mean, &deviation, used, 3, error));
    CHECK(low < mean && mean < high && deviation > 0 && used[0] <= dims[0] && used[2] > 0);

    /* What is in memory is written as what is in a file, and read back. */
    const uint32_t *columns[3];
    const void *values = NULL;
    int32_t type = 0;
    for (uint64_t n = 0; n < 3; n++) OK(s3cmtf_coo_view_indices(mapped, n, &columns[n], error));
    OK(s3cmtf_coo_view_values(mapped, &values, error));
    OK(s3cmtf_coo_get_value_type(mapped, &type, error));
    CHECK(type == S3CMTF_F32);
    s3cmtf_coo *view = NULL;
    OK(s3cmtf_coo_new_view(3, dims, count, columns, values, type, &view, error));
    OK(s3cmtf_coo_write(view, in_folder("view.coo"), S3CMTF_F64, NULL, error));
    /* With weights too, which a check looks at. */
    double *heavy = malloc(count * sizeof *heavy);
    for (uint64_t i = 0; i < count; i++) heavy[i] = (double)(i % 3);
    s3cmtf_coo *weighted = NULL, *again = NULL;
    const void *weights = NULL;
    OK(s3cmtf_coo_new_weighted(view, heavy, S3CMTF_F64, &weighted, error));
    OK(s3cmtf_coo_write(weighted, in_folder("weighted.coo"), 0, NULL, error));
    again = open_coo(in_folder("weighted.coo"), S3CMTF_OPEN_MAPPED);
    OK(s3cmtf_coo_get_weight_type(again, &type, error));
    OK(s3cmtf_coo_view_weights(again, &weights, error));
    CHECK(type == S3CMTF_F64 && !memcmp(weights, heavy, count * sizeof *heavy));
    s3cmtf_coo_free(weighted);
    s3cmtf_coo_free(again);
    heavy[1] = -1;
    OK(s3cmtf_coo_new_weighted(view, heavy, S3CMTF_F64, &weighted, error));
    free(heavy);
    OK(s3cmtf_coo_check(weighted, NULL, counts, S3CMTF_CHECK_COUNTS, error));
    CHECK(counts[S3CMTF_CHECK_NOT_FINITE] == 1);
    s3cmtf_coo_free(weighted);
    s3cmtf_coo *back = open_coo(in_folder("view.coo"), S3CMTF_OPEN_PRIVATE);
    const void *doubles = NULL;
    OK(s3cmtf_coo_view_values(back, &doubles, error));
    for (uint64_t i = 0; i < count; i++) CHECK(((const double *)doubles)[i] == (double)((const float *)values)[i]);

    /* A cell listed twice is found, and mended. */
    const uint32_t twice[3] = {0, 1, 0};
    const double ones[3] = {1, 2, 3};
    const void *const both[2] = {twice, twice};
    s3cmtf_coo *doubled = NULL;
    OK(s3cmtf_coo_new(2, NULL, 3, both, S3CMTF_U32, 1, 0, ones, S3CMTF_F64, &doubled, error));
    OK(s3cmtf_coo_check(doubled, NULL, counts, S3CMTF_CHECK_COUNTS, error));
    CHECK(counts[S3CMTF_CHECK_DUPLICATES] == 1 && counts[S3CMTF_CHECK_SURPLUS] == 1);
    OK(s3cmtf_coo_write(doubled, in_folder("doubled.coo"), 0, NULL, error));
    s3cmtf_coo_free(doubled);
    doubled = open_coo(in_folder("doubled.coo"), S3CMTF_OPEN_MAPPED);
    OK(s3cmtf_coo_fix(doubled, in_folder("fixed.coo"), S3CMTF_KEEP_LAST, NULL, &dropped, &merged, error));
    CHECK(dropped == 0 && merged == 1);
    s3cmtf_coo *fixed = open_coo(in_folder("fixed.coo"), S3CMTF_OPEN_MAPPED);
    OK(s3cmtf_coo_check(fixed, NULL, counts, S3CMTF_CHECK_COUNTS, error));
    for (uint64_t i = 0; i < S3CMTF_CHECK_COUNTS; i++) CHECK(counts[i] == 0);

    OK(s3cmtf_coo_split(mapped, in_folder("parts"), 0.1, 0.1, 7, S3CMTF_NO_MODE, S3CMTF_NO_MODE, NULL, error));
    OK(s3cmtf_coo_split(mapped, in_folder("last"), 0.1, 0, 7, 0, 2, NULL, error));
    s3cmtf_coo *part = open_coo(in_folder("parts.valid.coo"), S3CMTF_OPEN_MAPPED);
    uint64_t some = 0;
    OK(s3cmtf_coo_get_count(part, &some, error));
    CHECK(some > 0 && some <= count / 9);
    /* And back to text. */
    OK(s3cmtf_coo_convert(in_folder("parts.valid.coo"), in_folder("valid.tns"), NULL, NULL, error));

    s3cmtf_coo *const all[] = {mapped, copied, view, back, doubled, fixed, part};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) s3cmtf_coo_free(all[i]);
}

/* Factors copied and where they are are the same, and explain predictions. */
static void numbers(const s3cmtf_model *model, const s3cmtf_coo *test)
{
    uint64_t order = 0, ranks[3], rows[3], stride[3], rank = 0, matrices = 0;
    const float *at[3];
    double *wide[3];
    uint64_t *index[3];
    OK(s3cmtf_model_get_order(model, &order, error));
    CHECK(order == 3);
    OK(s3cmtf_model_get_ranks(model, ranks, 3, error));
    for (uint64_t n = 0; n < 3; n++) {
        OK(s3cmtf_model_view_factor(model, n, &at[n], &rows[n], &rank, &stride[n], error));
        CHECK(rank == ranks[n] && stride[n] >= rank && (uintptr_t)at[n] % 64 == 0);
        const uint64_t size = rows[n] * rank;
        wide[n] = malloc(sizeof *wide[n] * size);
        float *narrow = malloc(sizeof *narrow * size);
        index[n] = malloc(sizeof *index[n] * rows[n]);
        OK(s3cmtf_model_copy_factor(model, n, wide[n], size, S3CMTF_F64, S3CMTF_ROW_MAJOR, error));
        OK(s3cmtf_model_copy_factor(model, n, narrow, size, S3CMTF_F32, S3CMTF_COLUMN_MAJOR, error));
        OK(s3cmtf_model_copy_row_indices(model, n, index[n], rows[n], S3CMTF_U64, error));
        for (uint64_t i = 0; i < rows[n]; i++) {
            double row[64];
            OK(s3cmtf_model_copy_row(model, n, index[n][i], row, 64, S3CMTF_F64, error));
            for (uint64_t j = 0; j < rank; j++) {
                const double x = wide[n][i * rank + j];
                CHECK(x == (double)at[n][i * stride[n] + j] && x == (double)narrow[j * rows[n] + i] && x == row[j]);
            }
        }
        free(narrow);
    }
    const uint64_t size = ranks[0] * ranks[1] * ranks[2];
    double *core = malloc(sizeof *core * size), *columns = malloc(sizeof *columns * size);
    const float *core_at = NULL;
    uint64_t core_stride = 0;
    OK(s3cmtf_model_copy_core(model, core, size, S3CMTF_F64, S3CMTF_ROW_MAJOR, error));
    OK(s3cmtf_model_copy_core(model, columns, size, S3CMTF_F64, S3CMTF_COLUMN_MAJOR, error));
    OK(s3cmtf_model_view_core(model, &core_at, &core_stride, error));

    uint64_t count = 0;
    const uint32_t *cell[3];
    OK(s3cmtf_coo_get_count(test, &count, error));
    for (uint64_t n = 0; n < 3; n++) OK(s3cmtf_coo_view_indices(test, n, &cell[n], error));
    count = count < MAX_CELLS ? count : MAX_CELLS;
    /* The same cells as records of 64-bit indices counted from 1. */
    uint64_t records[3 * MAX_CELLS];
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t n = 0; n < 3; n++) records[3 * i + n] = (uint64_t)cell[n][i] + 1;
    const void *const separate[3] = {cell[0], cell[1], cell[2]};
    const void *const interleaved[3] = {records, records + 1, records + 2};
    double x[MAX_CELLS], y[MAX_CELLS];
    float z[MAX_CELLS];
    OK(s3cmtf_model_predict(model, count, separate, S3CMTF_U32, 1, 0, 0, 1, NULL, x, MAX_CELLS, S3CMTF_F64, error));
    OK(s3cmtf_model_predict(model, count, interleaved, S3CMTF_U64, 3, 1, 0, 2, NULL, y, MAX_CELLS, S3CMTF_F64, error));
    OK(s3cmtf_model_predict(model, count, separate, S3CMTF_U32, 1, 0, 0, 0, NULL, z, MAX_CELLS, S3CMTF_F32, error));
    for (uint64_t i = 0; i < count; i++) {
        double row[3][64], sum = 0;
        for (uint64_t n = 0; n < 3; n++)
            OK(s3cmtf_model_copy_row(model, n, cell[n][i], row[n], 64, S3CMTF_F64, error));
        for (uint64_t a = 0; a < ranks[0]; a++)
            for (uint64_t b = 0; b < ranks[1]; b++)
                for (uint64_t c = 0; c < ranks[2]; c++) {
                    const double g = core[(a * ranks[1] + b) * ranks[2] + c];
                    CHECK(g == columns[(c * ranks[1] + b) * ranks[0] + a]);
                    CHECK(g == (double)core_at[(a * ranks[1] + b) * core_stride + c]);
                    sum += g * row[0][a] * row[1][b] * row[2][c];
                }
        CHECK(fabs(sum - x[i]) < 1e-4 * (1 + fabs(sum)));
        CHECK(x[i] == y[i] && (float)x[i] == z[i]);
    }
    /* What never occurred predicts as the mean row. */
    const uint64_t beyond = 4000000000u;
    const void *const far[3] = {&beyond, &beyond, &beyond};
    OK(s3cmtf_model_predict(model, 1, far, S3CMTF_U64, 1, 0, 1, 1, NULL, x, 1, S3CMTF_F64, error));
    double low = 0, high = 0;
    OK(s3cmtf_model_get_range(model, &low, &high, error));
    CHECK(x[0] >= low && x[0] <= high);

    uint64_t mode = 9, matrix_columns = 0, matrix_rows = 0;
    int32_t kind = 9;
    double weight = 0;
    OK(s3cmtf_model_get_matrices(model, &matrices, error));
    CHECK(matrices == 1);
    OK(s3cmtf_model_get_matrix(model, 0, &mode, &kind, &weight, &matrix_columns, &matrix_rows, error));
    CHECK(mode == 1 && kind == S3CMTF_MATRIX_OBSERVED && weight == 10 && matrix_rows <= matrix_columns);
    double *v = malloc(sizeof *v * matrix_rows * ranks[1]);
    uint32_t *v_index = malloc(sizeof *v_index * matrix_rows);
    OK(s3cmtf_model_copy_matrix(model, 0, v, matrix_rows * ranks[1], S3CMTF_F64, S3CMTF_ROW_MAJOR, error));
    OK(s3cmtf_model_copy_matrix_indices(model, 0, v_index, matrix_rows, S3CMTF_U32, error));
    const float *v_at = NULL;
    OK(s3cmtf_model_view_matrix(model, 0, &v_at, NULL, NULL, &stride[0], error));
    for (uint64_t i = 0; i < matrix_rows; i++) {
        CHECK(v_index[i] < matrix_columns);
        CHECK(v[i * ranks[1]] == (double)v_at[i * stride[0]]);
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

/* The core multiplied with the rows of a cell, whatever kind of core it is. */
static double core_times_rows(const s3cmtf_model *model, const uint64_t *ranks, const double *core, double row[3][64])
{
    int32_t kind = 0;
    double sum = 0;
    OK(s3cmtf_model_get_kind(model, &kind, error));
    if (kind == S3CMTF_MODEL_CP) {
        for (uint64_t j = 0; j < ranks[0]; j++) sum += core[j] * row[0][j] * row[1][j] * row[2][j];
        return sum;
    }
    for (uint64_t a = 0; a < ranks[0]; a++)
        for (uint64_t b = 0; b < ranks[1]; b++)
            for (uint64_t c = 0; c < ranks[2]; c++)
                sum += core[(a * ranks[1] + b) * ranks[2] + c] * row[0][a] * row[1][b] * row[2][c];
    return sum;
}

/* What a model predicts is its mean, its biases, and the core multiplied with rows. */
static void explained(const s3cmtf_model *model, const s3cmtf_coo *test, int has_biases)
{
    enum { LARGEST_CORE = 1 << 12 };
    double mean = 9, x[MAX_CELLS], *bias[3], *core = malloc(sizeof *core * LARGEST_CORE);
    uint64_t ranks[3], rows[3], dims[3], count = 0;
    const uint32_t *cell[3];
    OK(s3cmtf_model_get_mean(model, &mean, error));
    CHECK(has_biases ? mean > 0 : mean == 0);
    OK(s3cmtf_model_get_ranks(model, ranks, 3, error));
    OK(s3cmtf_model_get_dims(model, dims, 3, error));
    OK(s3cmtf_model_copy_core(model, core, LARGEST_CORE, S3CMTF_F64, S3CMTF_ROW_MAJOR, error));
    for (uint64_t n = 0; n < 3; n++) {
        const float *at = NULL;
        uint64_t there = 9;
        OK(s3cmtf_model_get_rows(model, n, &rows[n], error));
        double *own = malloc(sizeof *own * rows[n]);
        float *narrow = malloc(sizeof *narrow * rows[n]);
        uint64_t *index = malloc(sizeof *index * rows[n]);
        bias[n] = calloc(dims[n], sizeof *bias[n]); /* by index; those that did not occur have 0 */
        OK(s3cmtf_model_copy_biases(model, n, own, rows[n], S3CMTF_F64, error));
        OK(s3cmtf_model_copy_biases(model, n, narrow, rows[n], S3CMTF_F32, error));
        OK(s3cmtf_model_copy_row_indices(model, n, index, rows[n], S3CMTF_U64, error));
        OK(s3cmtf_model_view_biases(model, n, &at, &there, error));
        CHECK(has_biases ? there == rows[n] : there == 0 && at == NULL);
        for (uint64_t i = 0; i < rows[n]; i++) {
            CHECK(own[i] == (has_biases ? (double)at[i] : 0) && own[i] == (double)narrow[i]);
            bias[n][index[i]] = own[i];
        }
        free(own);
        free(narrow);
        free(index);
    }
    OK(s3cmtf_coo_get_count(test, &count, error));
    count = count < MAX_CELLS ? count : MAX_CELLS;
    for (uint64_t n = 0; n < 3; n++) OK(s3cmtf_coo_view_indices(test, n, &cell[n], error));
    const void *const cells[3] = {cell[0], cell[1], cell[2]};
    OK(s3cmtf_model_predict(model, count, cells, S3CMTF_U32, 1, 0, 0, 1, NULL, x, MAX_CELLS, S3CMTF_F64, error));
    for (uint64_t i = 0; i < count; i++) {
        double row[3][64], sum = mean;
        for (uint64_t n = 0; n < 3; n++) {
            OK(s3cmtf_model_copy_row(model, n, cell[n][i], row[n], 64, S3CMTF_F64, error));
            sum += bias[n][cell[n][i]];
        }
        sum += core_times_rows(model, ranks, core, row);
        CHECK(fabs(sum - x[i]) < 1e-4 * (1 + fabs(sum)));
    }
    uint64_t columns = 0, offsets = 9;
    const float *offset_at = NULL;
    OK(s3cmtf_model_get_matrix(model, 0, NULL, NULL, NULL, NULL, &columns, error));
    double *offset = malloc(sizeof *offset * columns);
    OK(s3cmtf_model_copy_offsets(model, 0, offset, columns, S3CMTF_F64, error));
    OK(s3cmtf_model_view_offsets(model, 0, &offset_at, &offsets, error));
    CHECK(has_biases ? offsets == columns : offsets == 0 && offset_at == NULL);
    for (uint64_t i = 0; i < columns; i++) CHECK(offset[i] == (has_biases ? (double)offset_at[i] : 0));
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
    s3cmtf_coo *graph = NULL;
    s3cmtf_problem *problem = NULL;
    s3cmtf_options *options = NULL;
    int32_t kind = 0;
    float diagonal[3];
    OK(s3cmtf_coo_new(2, NULL, 3, edges, S3CMTF_U32, 1, 0, one, S3CMTF_F32, &graph, error));
    OK(s3cmtf_problem_new(train, &problem, error));
    OK(s3cmtf_problem_add_matrix(problem, 2, graph, S3CMTF_MATRIX_GRAPH, 0.5, S3CMTF_FROM_OPTIONS, error));
    OK(s3cmtf_options_new("default", &options, error));
    OK(s3cmtf_options_set(options, "model", "cp", error));
    OK(s3cmtf_options_set_ranks(options, (const uint64_t[]){3, 3, 3}, 3, error));
    OK(s3cmtf_options_set_flag(options, "nonneg", 1, error));
    OK(s3cmtf_options_set(options, "epochs", "2", error));
    s3cmtf_fit *fit = new_fit(problem, options);
    s3cmtf_model *model = run(fit);
    OK(s3cmtf_model_get_kind(model, &kind, error));
    CHECK(kind == S3CMTF_MODEL_CP);
    OK(s3cmtf_model_copy_core(model, diagonal, 3, S3CMTF_F32, S3CMTF_ROW_MAJOR, error));
    CHECK(diagonal[0] >= 0 && diagonal[1] >= 0 && diagonal[2] >= 0);
    OK(s3cmtf_model_get_matrix(model, 0, NULL, &kind, NULL, NULL, NULL, error));
    CHECK(kind == S3CMTF_MATRIX_GRAPH);
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
        CHECK(progress->message && strstr(progress->message, "teaches nothing"));
        ++*(int *)user;
    }
    return 0;
}

/* What a matrix of ones is whose zeros are not listed. */
static void kinds_of_matrices(void)
{
    static planted p;
    plant(&p);
    s3cmtf_coo *train = planted_tensor(&p, error), *genres = planted_genres(&p, error);
    const int32_t kinds[3] = {S3CMTF_MATRIX_OBSERVED, S3CMTF_MATRIX_FULL, S3CMTF_MATRIX_SAMPLED};
    for (int k = 0; k < 3; k++) {
        s3cmtf_problem *problem = NULL;
        s3cmtf_options *options = NULL;
        int32_t kind = -1;
        int warnings = 0;
        OK(s3cmtf_problem_new(train, &problem, error));
        if (kinds[k] == S3CMTF_MATRIX_SAMPLED)
            OK(s3cmtf_problem_add_sampled_matrix(problem, 1, genres, 1, 0.5, S3CMTF_FROM_OPTIONS, error));
        else
            OK(s3cmtf_problem_add_matrix(problem, 1, genres, kinds[k], 0.5, S3CMTF_FROM_OPTIONS, error));
        OK(s3cmtf_options_new("paper", &options, error));
        OK(s3cmtf_options_set(options, "rank", "3", error));
        OK(s3cmtf_options_set(options, "epochs", "2", error));
        s3cmtf_fit *fit = new_fit(problem, options);
        OK(s3cmtf_fit_set_callback(fit, warned, &warnings, error));
        s3cmtf_model *model = run(fit);
        CHECK(warnings == (kinds[k] == S3CMTF_MATRIX_OBSERVED));
        OK(s3cmtf_model_get_matrix(model, 0, NULL, &kind, NULL, NULL, NULL, error));
        CHECK(kind == kinds[k]);
        s3cmtf_model_free(model);
        s3cmtf_fit_free(fit);
        s3cmtf_options_free(options);
        s3cmtf_problem_free(problem);
    }
    s3cmtf_coo_free(train);
    s3cmtf_coo_free(genres);
}

/* A fit that is told nothing but how long. */
static void by_default(const s3cmtf_problem *problem, const s3cmtf_coo *test)
{
    s3cmtf_options *options = NULL, *used = NULL;
    char text[32];
    OK(s3cmtf_options_new(NULL, &options, error));
    OK(s3cmtf_options_get(options, "eta", text, sizeof text, NULL, error));
    CHECK(!strcmp(text, "auto"));
    /* A number takes the place of "auto", and goes again. */
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

    OK(s3cmtf_options_set_whole(options, "epochs", 5, error));
    s3cmtf_fit *fit = new_fit(problem, options);
    s3cmtf_model *model = run(fit);
    explained(model, test, 1);
    /* What was chosen is with the model. */
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

#include "life_later.h"

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
    CHECK(argc == 2 || argc == 3);
    folder = argv[1];
    CHECK(s3cmtf_error_new(&error) == S3CMTF_OK);
    const char *data = folder;
    if (argc == 3) {
        data = argv[2];
    } else {
        static planted p;
        plant(&p);
        write_planted(&p);
    }
    char train_text[LONGEST], test_text[LONGEST], genres_text[LONGEST];
    snprintf(train_text, LONGEST, "%s/tensor.train.tns", data);
    snprintf(test_text, LONGEST, "%s/tensor.test.tns", data);
    snprintf(genres_text, LONGEST, "%s/movie_genre.tns", data);
    files(train_text);

    /* Text is read directly too. */
    s3cmtf_coo *train = open_coo(in_folder("train.coo"), S3CMTF_OPEN_MAPPED);
    s3cmtf_coo *test = open_coo(test_text, S3CMTF_OPEN_PRIVATE), *genres = open_coo(genres_text, S3CMTF_OPEN_MAPPED);
    s3cmtf_problem *problem = NULL;
    s3cmtf_options *options = NULL;
    OK(s3cmtf_problem_new(train, &problem, error));
    OK(s3cmtf_problem_add_matrix(problem, 1, genres, S3CMTF_MATRIX_OBSERVED, S3CMTF_FROM_OPTIONS, S3CMTF_FROM_OPTIONS,
                                 error));
    OK(s3cmtf_options_new("paper", &options, error));
    OK(s3cmtf_options_set(options, "rank", "4,4,3", error));
    OK(s3cmtf_options_set_whole(options, "epochs", 4, error));
    OK(s3cmtf_options_set_whole(options, "threads", 2, error));

    /* Four epochs at once, and two and two with a checkpoint between: the same. */
    s3cmtf_fit *fit = new_fit(problem, options);
    OK(s3cmtf_fit_set_test(fit, test, error));
    s3cmtf_model *model = run(fit);
    s3cmtf_progress progress = progress_of(fit, error);
    CHECK(progress.epoch == 4 && progress.stop_reason == S3CMTF_STOP_EPOCHS && progress.test_rmse > 0);
    double rmse = 0, mae = 0;
    OK(s3cmtf_model_evaluate(model, test, 1, 0, NULL, &rmse, &mae, error));
    CHECK(fabs(rmse - progress.test_rmse) < 1e-6 && mae > 0 && mae <= rmse);
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

    /* A warm start begins where the model was. */
    OK(s3cmtf_options_set(options, "epochs", "1", error));
    fit = new_fit(problem, options);
    OK(s3cmtf_fit_set_init(fit, model, error));
    s3cmtf_model *warm = run(fit);
    uint64_t epochs = 0;
    s3cmtf_progress first, last;
    first.size = last.size = sizeof first;
    OK(s3cmtf_model_get_epochs(model, &epochs, error));
    CHECK(epochs == 4);
    OK(s3cmtf_model_get_epoch(model, 0, &first, error));
    OK(s3cmtf_model_get_epoch(warm, 0, &last, error));
    CHECK(first.epoch == 1 && last.train_rmse < first.train_rmse);
    s3cmtf_fit_free(fit);

    /* Validation decides. */
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
    by_default(problem, test);
    other_models(train);
    after_fits(problem, model, test);
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

    /* The table of options is complete enough to set every one of them to its default. */
    for (uint64_t i = 0; i < s3cmtf_option_count(); i++) {
        const char *name = NULL, *value = NULL, *help = NULL, *low = NULL, *words = NULL;
        int32_t type = 0;
        OK(s3cmtf_option_text(i, S3CMTF_OPTION_NAME, &name, error));
        OK(s3cmtf_option_text(i, S3CMTF_OPTION_DEFAULT, &value, error));
        OK(s3cmtf_option_text(i, S3CMTF_OPTION_HELP, &help, error));
        OK(s3cmtf_option_text(i, S3CMTF_OPTION_LOW, &low, error));
        OK(s3cmtf_option_text(i, S3CMTF_OPTION_WORDS, &words, error));
        OK(s3cmtf_option_type(i, &type, error));
        OK(s3cmtf_options_set(options, name, value, error));
        CHECK(strlen(help) > 10 && (strlen(words) > 0) == (type == S3CMTF_OPTION_TYPE_CHOICE));
        if (type == S3CMTF_OPTION_TYPE_WHOLE || type == S3CMTF_OPTION_TYPE_REAL)
            OK(s3cmtf_options_set(options, name, low, error));
    }
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
