/* An application that fits in one process and predicts in another. `fit RATINGS.csv MODEL` reads user,film,month,stars and
 * writes a model; `predict MODEL USER FILM MONTH` prints a prediction. Indices are one-based. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <s3cmtf.h>

static s3cmtf_error *error;

static void require(int32_t status)
{
    if (status == S3CMTF_OK) return;
    fprintf(stderr, "%s\n", s3cmtf_error_message(error));
    exit(1);
}

static int32_t show(const s3cmtf_progress *progress, void *user)
{
    FILE *log = user;
    if (progress->event == S3CMTF_EVENT_EPOCH)
        fprintf(log, "epoch %u: %.4f\n", (unsigned)progress->epoch, progress->train_rmse);
    return 0;
}

static void fit_file(const char *csv, const char *path)
{
    size_t count = 0, room = 1024;
    uint64_t *cells = malloc(3 * room * sizeof *cells);
    double *stars = malloc(room * sizeof *stars);
    FILE *file = fopen(csv, "r");
    char line[256];
    if (file == NULL || cells == NULL || stars == NULL || fgets(line, sizeof line, file) == NULL) {
        fprintf(stderr, "cannot read %s\n", csv);
        exit(1);
    }
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned long user, film, month;
        if (count == room) {
            room *= 2;
            cells = realloc(cells, 3 * room * sizeof *cells);
            stars = realloc(stars, room * sizeof *stars);
            if (cells == NULL || stars == NULL) exit(1);
        }
        if (sscanf(line, "%lu,%lu,%lu,%lf", &user, &film, &month, &stars[count]) != 4) {
            fprintf(stderr, "%s: line %u cannot be read\n", csv, (unsigned)count + 2);
            exit(1);
        }
        cells[3 * count] = user;
        cells[3 * count + 1] = film;
        cells[3 * count + 2] = month;
        count++;
    }
    fclose(file);

    const void *const modes[3] = {cells, cells + 1, cells + 2};
    const s3cmtf_entries entries = {
        .size = sizeof entries,
        .order = 3,
        .indices = {.modes = modes, .count = count, .stride = 3, .type = S3CMTF_U64, .base = 1},
        .values = stars,
        .value_type = S3CMTF_F64,
    };
    s3cmtf_coo *ratings = NULL;
    s3cmtf_problem *problem = NULL;
    s3cmtf_options *options = NULL;
    s3cmtf_fit *fit = NULL;
    s3cmtf_model *model = NULL;
    require(s3cmtf_coo_new(&entries, &ratings, error));
    free(cells);
    free(stars);
    require(s3cmtf_problem_new(ratings, &problem, error));
    require(s3cmtf_options_new(NULL, &options, error));
    require(s3cmtf_options_set(options, "rank", "3", error));
    require(s3cmtf_options_set_integer(options, "epochs", 10, error));
    require(s3cmtf_options_set_real(options, "eta", 0.005, error));
    require(s3cmtf_fit_new(problem, options, &fit, error));
    require(s3cmtf_fit_set_callback(fit, show, stdout, error));
    require(s3cmtf_fit_run(fit, &model, error));
    require(s3cmtf_model_save(model, path, error));
    s3cmtf_model_free(model);
    s3cmtf_fit_free(fit);
    s3cmtf_options_free(options);
    s3cmtf_problem_free(problem);
    s3cmtf_coo_free(ratings);
}

static void predict(const char *path, char **words)
{
    uint64_t cell[3];
    double stars = 0;
    s3cmtf_model *model = NULL;
    for (int n = 0; n < 3; n++) cell[n] = strtoul(words[n], NULL, 10) - 1;
    require(s3cmtf_model_load(path, S3CMTF_OPEN_MAPPED, &model, error));
    require(s3cmtf_model_predict_cell(model, cell, &stars, error));
    printf("%.4f\n", stars);
    s3cmtf_model_free(model);
}

int main(int argc, char **argv)
{
    if (s3cmtf_version_number() / 100 != S3CMTF_VERSION_NUMBER / 100 || s3cmtf_error_new(&error) != S3CMTF_OK) {
        fprintf(stderr, "compiled for another version of s3cmtf than %s\n", s3cmtf_version());
        return 1;
    }
    if (argc == 4 && strcmp(argv[1], "fit") == 0)
        fit_file(argv[2], argv[3]);
    else if (argc == 6 && strcmp(argv[1], "predict") == 0)
        predict(argv[2], argv + 3);
    else
        return 2;
    s3cmtf_error_free(error);
    return 0;
}
