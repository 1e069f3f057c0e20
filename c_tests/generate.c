/* Planted data is made, found again by a fit, and the same for any number of threads. The argument is a folder to
 * write to. */
#include "check.h"

enum { LONGEST = 1024 };

static s3cmtf_error *error;

static s3cmtf_generator *generator_with(const char *threads)
{
    static const char *const settings[][2] = {
        {"dims", "60,50,8"}, {"entries", "6000"}, {"rank", "3"},          {"noise", "0.1"},
        {"test", "0.2"},     {"skew", "0.5"},     {"matrix", "1:6:full"}, {"matrix", "0:9:40:ones=0.5"},
        {"seed", "7"},
    };
    s3cmtf_generator *generator = NULL;
    OK(s3cmtf_generator_new(NULL, 1, &generator, error));
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        OK(s3cmtf_generator_set(generator, settings[i][0], settings[i][1], error));
    OK(s3cmtf_generator_set(generator, "threads", threads, error));
    return generator;
}

static const char *in(const char *folder, const char *name)
{
    static char paths[4][LONGEST];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, LONGEST, "%s/%s", folder, name);
    return path;
}

static s3cmtf_coo *open_coo(const char *path)
{
    s3cmtf_coo *coo = NULL;
    OK(s3cmtf_coo_open(path, S3CMTF_OPEN_MAPPED, NULL, NULL, &coo, error));
    return coo;
}

static uint64_t count_of(const s3cmtf_coo *coo)
{
    uint64_t count = 0;
    OK(s3cmtf_coo_get_count(coo, &count, error));
    return count;
}

static void same_file(const char *a, const char *b)
{
    FILE *x = fopen(a, "rb"), *y = fopen(b, "rb");
    int c;
    CHECK(x != NULL && y != NULL);
    do {
        c = getc(x);
        CHECK(c == getc(y));
    } while (c != EOF);
    fclose(x);
    fclose(y);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    char one[LONGEST], three[LONGEST], none[LONGEST];
    snprintf(one, LONGEST, "%s/one", argv[1]);
    snprintf(three, LONGEST, "%s/three", argv[1]);
    snprintf(none, LONGEST, "%s/none", argv[1]);
    CHECK(s3cmtf_error_new(&error) == S3CMTF_OK);

    double floor = 0;
    s3cmtf_generator *a = generator_with("1"), *b = generator_with("3");
    OK(s3cmtf_generator_write(a, one, NULL, &floor, error));
    OK(s3cmtf_generator_write(b, three, NULL, NULL, error));
    for (const char *const *name = (const char *const[]){"tensor.train.coo", "tensor.test.coo", "matrix1.coo",
                                                         "matrix2.coo", "truth/factor3.npy", NULL};
         *name != NULL; name++)
        same_file(in(one, *name), in(three, *name));

    /* A fit gets near the error that the planted model has. */
    s3cmtf_coo *train = open_coo(in(one, "tensor.train.coo")), *test = open_coo(in(one, "tensor.test.coo"));
    s3cmtf_coo *matrix = open_coo(in(one, "matrix1.coo"));
    CHECK(count_of(train) == 4800 && count_of(test) == 1200 && count_of(matrix) == 50 * 6);
    s3cmtf_problem *problem = NULL;
    s3cmtf_options *options = NULL;
    s3cmtf_fit *fit = NULL;
    s3cmtf_model *model = NULL;
    OK(s3cmtf_problem_new(train, &problem, error));
    OK(s3cmtf_problem_add_matrix(problem, 1, matrix, S3CMTF_MATRIX_OBSERVED, 0.5, S3CMTF_FROM_OPTIONS, error));
    OK(s3cmtf_options_new(NULL, &options, error));
    OK(s3cmtf_options_set(options, "rank", "3", error));
    OK(s3cmtf_options_set(options, "start", "normal", error));
    OK(s3cmtf_options_set_whole(options, "epochs", 120, error));
    OK(s3cmtf_options_set_real(options, "eta", 0.02, error));
    OK(s3cmtf_options_set_real(options, "lambda_reg", 0.01, error));
    OK(s3cmtf_fit_new(problem, options, &fit, error));
    OK(s3cmtf_fit_set_test(fit, test, error));
    OK(s3cmtf_fit_run(fit, &model, error));
    const s3cmtf_progress ended = progress_of(fit, error);
    CHECK(floor > 0.05 && ended.test_rmse < 4 * floor);
    CHECK(ended.entries_per_second > 0 && ended.update_seconds > 0);

    /* Data like the paper's, small. */
    const char *name = NULL;
    s3cmtf_generator *like = NULL;
    OK(s3cmtf_generator_preset(0, &name, error));
    OK(s3cmtf_generator_new(name, 0.0005, &like, error));
    OK(s3cmtf_generator_set(like, "matrix", "none", error));
    OK(s3cmtf_generator_set(like, "truth", "false", error));
    OK(s3cmtf_generator_write(like, in(argv[1], "like"), NULL, NULL, error));
    s3cmtf_coo *films = open_coo(in(argv[1], "like/tensor.train.coo"));
    CHECK(count_of(films) == 4000);

    /* Cancelled, there is nothing. */
    s3cmtf_cancel *cancel = NULL;
    s3cmtf_coo *missing = NULL;
    OK(s3cmtf_cancel_new(&cancel, error));
    s3cmtf_cancel_request(cancel);
    FAILS(S3CMTF_CANCELLED, s3cmtf_generator_write(a, none, cancel, &floor, error));
    FAILS(S3CMTF_BAD_FILE, s3cmtf_coo_open(in(none, "tensor.train.coo"), 0, NULL, NULL, &missing, error));

    s3cmtf_cancel_free(cancel);
    s3cmtf_coo_free(films);
    s3cmtf_generator_free(like);
    s3cmtf_generator_free(a);
    s3cmtf_generator_free(b);
    s3cmtf_model_free(model);
    s3cmtf_fit_free(fit);
    s3cmtf_options_free(options);
    s3cmtf_problem_free(problem);
    s3cmtf_coo_free(train);
    s3cmtf_coo_free(test);
    s3cmtf_coo_free(matrix);
    s3cmtf_error_free(error);
    puts("ok");
    return 0;
}
