/* The reference for other languages: C, Python, R and Julia must print the same lines. The argument is the data folder. */
#include "check.h"

static int32_t show(const s3cmtf_progress *progress, void *user)
{
    const int32_t *stop_after = user;
    if (progress->event == S3CMTF_EVENT_EPOCH)
        printf("%d %.17g %.17g\n", (int)progress->epoch, progress->train_rmse, progress->test_rmse);
    return (int32_t)progress->epoch == *stop_after;
}

int main(int argc, char **argv)
{
    char path[1024];
    int32_t stop_after = 3;
    double predictions[3];
    const uint32_t user[3] = {0, 1, 2}, film[3] = {0, 10, 100}, month[3] = {0, 1, 2};
    const void *const modes[3] = {user, film, month};
    const s3cmtf_indices cells = indices_u32(modes, 3);
    s3cmtf_error *error = NULL;
    s3cmtf_coo *train = NULL, *test = NULL;
    s3cmtf_problem *problem = NULL;
    s3cmtf_options *options = NULL;
    s3cmtf_fit *fit = NULL;
    s3cmtf_model *model = NULL;
    CHECK(argc == 2 && s3cmtf_error_new(&error) == S3CMTF_OK);
    snprintf(path, sizeof path, "%s/tensor.train.tns", argv[1]);
    OK(s3cmtf_coo_open(path, S3CMTF_OPEN_MAPPED, NULL, NULL, &train, error));
    snprintf(path, sizeof path, "%s/tensor.test.tns", argv[1]);
    OK(s3cmtf_coo_open(path, S3CMTF_OPEN_MAPPED, NULL, NULL, &test, error));
    OK(s3cmtf_problem_new(train, &problem, error));
    OK(s3cmtf_options_new("paper", &options, error));
    OK(s3cmtf_options_parse(options, "rank=4 epochs=1000000", error));
    OK(s3cmtf_fit_new(problem, options, &fit, error));
    OK(s3cmtf_fit_set_test(fit, test, error));
    OK(s3cmtf_fit_set_callback(fit, show, &stop_after, error));
    OK(s3cmtf_fit_run(fit, &model, error));
    OK(s3cmtf_model_predict(model, &cells, predictions, 3, S3CMTF_F64, NULL, error));
    printf("%.17g %.17g %.17g\n", predictions[0], predictions[1], predictions[2]);
    s3cmtf_model_free(model);
    s3cmtf_fit_free(fit);
    s3cmtf_options_free(options);
    s3cmtf_problem_free(problem);
    s3cmtf_coo_free(test);
    s3cmtf_coo_free(train);
    s3cmtf_error_free(error);
    return 0;
}
