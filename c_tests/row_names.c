/* Rows of files are matched by their names. The argument is a folder to write to. */
#include "check.h"

enum { PEOPLE = 24, MOVIES = 16 };

static s3cmtf_error *error;
static char paths[4][4096];

/* Returns the path of a file in the folder; four paths are valid at a time. */
static const char *in_folder(const char *folder, const char *name)
{
    static int next = 0;
    char *path = paths[next++ % 4];
    CHECK(snprintf(path, sizeof paths[0], "%s/%s", folder, name) < (int)sizeof paths[0]);
    return path;
}

/* Writes the entries of a part, with users and films in ascending or descending order, as CSV and converts them. */
static void write_entries(const char *folder, const char *name, int part, int descending)
{
    char file[64];
    CHECK(snprintf(file, sizeof file, "%s.csv", name) > 0);
    const char *csv = in_folder(folder, file);
    FILE *out = fopen(csv, "w");
    CHECK(out != NULL);
    fprintf(out, "user,film,stars\n");
    for (int i = 0; i < PEOPLE * MOVIES; i++) {
        const int k = descending ? PEOPLE * MOVIES - 1 - i : i;
        const int user = k / MOVIES, film = k % MOVIES;
        if ((user * 5 + film * 3) % 4 / 3 == part)
            fprintf(out, "u%d,f%d,%d\n", user, film, 1 + (user * film + user % 3 + film % 5) % 5);
    }
    CHECK(fclose(out) == 0);
    CHECK(snprintf(file, sizeof file, "%s.coo", name) > 0);
    OK(s3cmtf_coo_convert(csv, in_folder(folder, file), NULL, NULL, error));
}

/* Writes genres of the films, and of one film that the tensor does not have. */
static void write_genres(const char *folder, const char *name, const char *prefix)
{
    char file[64];
    CHECK(snprintf(file, sizeof file, "%s.csv", name) > 0);
    const char *csv = in_folder(folder, file);
    FILE *out = fopen(csv, "w");
    CHECK(out != NULL);
    fprintf(out, "film,genre,value\n");
    for (int film = MOVIES; film >= 0; film--) fprintf(out, "%s%d,g%d,%d\n", prefix, film, film % 3, 1 + film % 2);
    CHECK(fclose(out) == 0);
    CHECK(snprintf(file, sizeof file, "%s.coo", name) > 0);
    OK(s3cmtf_coo_convert(csv, in_folder(folder, file), NULL, NULL, error));
}

static s3cmtf_coo *opened(const char *folder, const char *name)
{
    s3cmtf_coo *coo = NULL;
    OK(s3cmtf_coo_open(in_folder(folder, name), S3CMTF_OPEN_MAPPED, NULL, NULL, &coo, error));
    return coo;
}

/* Counts events about rows. */
static int32_t count_events(const s3cmtf_progress *progress, void *user)
{
    int *counts = (int *)user;
    if (progress->message != NULL && strstr(progress->message, "rows of mode 2") != NULL) counts[0]++;
    if (progress->event == S3CMTF_EVENT_WARNING) counts[1]++;
    return 0;
}

/* Fits the training set with test entries and returns the model and its error on them. */
static s3cmtf_model *fitted(const char *folder, const char *test_name, const char *matrix_name, double *rmse, int *counts)
{
    s3cmtf_coo *train = opened(folder, "train.coo"), *test = opened(folder, test_name);
    s3cmtf_coo *matrix = opened(folder, matrix_name);
    s3cmtf_problem *problem = NULL;
    s3cmtf_options *options = NULL;
    s3cmtf_fit *fit = NULL;
    s3cmtf_model *model = NULL;
    s3cmtf_progress progress = {.size = sizeof progress};
    s3cmtf_coupling coupling = {.size = sizeof coupling, .kind = S3CMTF_MATRIX_OBSERVED, .weight = 1};
    OK(s3cmtf_problem_new(train, &problem, error));
    OK(s3cmtf_problem_add_matrix(problem, 1, matrix, &coupling, error));
    OK(s3cmtf_options_new(NULL, &options, error));
    OK(s3cmtf_options_parse(options, "rank=3 epochs=8 threads=1 algorithm=als", error));
    OK(s3cmtf_fit_new(problem, options, &fit, error));
    OK(s3cmtf_fit_set_test(fit, test, error));
    OK(s3cmtf_fit_set_callback(fit, count_events, counts, error));
    OK(s3cmtf_fit_run(fit, &model, error));
    OK(s3cmtf_fit_get_progress(fit, &progress, error));
    *rmse = progress.test_rmse;
    s3cmtf_fit_free(fit);
    s3cmtf_options_free(options);
    s3cmtf_problem_free(problem);
    s3cmtf_coo_free(train);
    s3cmtf_coo_free(test);
    s3cmtf_coo_free(matrix);
    return model;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    const char *folder = argv[1];
    OK(s3cmtf_error_new(&error));
    write_entries(folder, "train", 0, 0);
    write_entries(folder, "test", 1, 0);
    write_entries(folder, "turned", 1, 1);
    write_genres(folder, "genres", "f");
    write_genres(folder, "other", "x");

    /* Test entries in another order have the same error. The film that only the matrix has is added. */
    double rmse = 0, turned = 0;
    int counts[2] = {0, 0};
    s3cmtf_model *model = fitted(folder, "test.coo", "genres.coo", &rmse, counts);
    CHECK(counts[0] == 1 && counts[1] == 0);
    s3cmtf_model_free(fitted(folder, "turned.coo", "genres.coo", &turned, counts));
    CHECK(fabs(turned - rmse) < 1e-9 * rmse);
    s3cmtf_model_mode mode = {.size = sizeof mode};
    OK(s3cmtf_model_get_mode(model, 1, &mode, error));
    CHECK(mode.dim == MOVIES + 1 && mode.rows == MOVIES + 1);

    /* A saved model has its names beside it, and finds them again. */
    OK(s3cmtf_model_save(model, in_folder(folder, "m.s3m"), error));
    s3cmtf_names *names = NULL;
    OK(s3cmtf_names_open_beside(in_folder(folder, "m.s3m"), 1, &names, error));
    uint64_t row = 0;
    OK(s3cmtf_names_find(names, "f16", &row, error));
    CHECK(row == MOVIES);
    s3cmtf_names_free(names);
    s3cmtf_model *loaded = NULL;
    OK(s3cmtf_model_load(in_folder(folder, "m.s3m"), S3CMTF_OPEN_MAPPED, &loaded, error));
    const s3cmtf_model *const models[2] = {model, loaded};
    const char *const files[2] = {"test.coo", "turned.coo"};
    for (int m = 0; m < 2; m++)
        for (int f = 0; f < 2; f++) {
            s3cmtf_coo *coo = opened(folder, files[f]);
            s3cmtf_evaluation evaluation = {.size = sizeof evaluation};
            OK(s3cmtf_model_evaluate(models[m], coo, 1, NULL, &evaluation, error));
            CHECK(fabs(evaluation.rmse - rmse) < 1e-6 || fabs(evaluation.clipped_rmse - rmse) < 1e-6);
            s3cmtf_coo_free(coo);
        }

    /* No name in common. */
    s3cmtf_coo *train = opened(folder, "train.coo"), *other = opened(folder, "other.coo");
    s3cmtf_problem *problem = NULL;
    OK(s3cmtf_problem_new(train, &problem, error));
    FAILS(S3CMTF_BAD_FILE, s3cmtf_problem_add_matrix(problem, 1, other, NULL, error));
    CHECK(strstr(s3cmtf_error_message(error), "no name of its rows") != NULL);

    s3cmtf_problem_free(problem);
    s3cmtf_coo_free(train);
    s3cmtf_coo_free(other);
    s3cmtf_model_free(loaded);
    s3cmtf_model_free(model);
    s3cmtf_error_free(error);
    puts("ok");
    return 0;
}
