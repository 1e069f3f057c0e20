#include <stdio.h>
#include <s3cmtf.h>

static int32_t show(const s3cmtf_progress *p, void *user)
{
    (void)user;
    if (p->event == S3CMTF_EVENT_EPOCH)
        printf("epoch %d: training RMSE %.4f\n", (int)p->epoch, p->train_rmse);
    return 0; // anything else ends the fit
}

int main(void)
{
    // Six ratings: user, film, month and stars.
    const uint32_t user[] = {0, 0, 1, 1, 2, 2}, film[] = {0, 1, 0, 2, 1, 2}, month[] = {0, 1, 1, 0, 0, 1};
    const float stars[] = {5, 3, 4, 1, 3, 2};
    const void *const indices[] = {user, film, month};
    const uint64_t dims[] = {3, 3, 2};

    s3cmtf_error *error = NULL;
    s3cmtf_coo *ratings = NULL;
    s3cmtf_problem *problem = NULL;
    s3cmtf_options *options = NULL;
    s3cmtf_fit *fit = NULL;
    s3cmtf_model *model = NULL;
    double prediction = 0;
    int32_t status = s3cmtf_error_new(&error);

    if (!status) status = s3cmtf_coo_new(3, dims, 6, indices, S3CMTF_U32, 1, 0, stars, S3CMTF_F32, &ratings, error);
    if (!status) status = s3cmtf_problem_new(ratings, &problem, error);
    if (!status) status = s3cmtf_options_new("paper", &options, error);
    if (!status) status = s3cmtf_options_set(options, "rank", "2", error);
    if (!status) status = s3cmtf_options_set_whole(options, "epochs", 10, error);
    if (!status) status = s3cmtf_options_set_real(options, "eta", 0.05, error);
    if (!status) status = s3cmtf_fit_new(problem, options, &fit, error);
    if (!status) status = s3cmtf_fit_set_callback(fit, show, NULL, error);
    if (!status) status = s3cmtf_fit_run(fit, &model, error);

    // What would user 0 have given film 2 in month 1?
    const uint32_t cell[] = {0, 2, 1};
    const void *const where[] = {&cell[0], &cell[1], &cell[2]};
    if (!status)
        status = s3cmtf_model_predict(model, 1, where, S3CMTF_U32, 1, 0, 1, 0, NULL, &prediction, 1, S3CMTF_F64, error);
    if (!status) printf("prediction %.2f\n", prediction);
    if (status) fprintf(stderr, "%s: %s\n", s3cmtf_status_name(status), s3cmtf_error_message(error));

    s3cmtf_model_free(model);
    s3cmtf_fit_free(fit);
    s3cmtf_options_free(options);
    s3cmtf_problem_free(problem);
    s3cmtf_coo_free(ratings);
    s3cmtf_error_free(error);
    return status != 0;
}
