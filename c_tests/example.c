#include <stdio.h>
#include <s3cmtf.h>

int main(void)
{
    /* Six ratings. The prediction is for user 0, film 2 and month 1. */
    const uint32_t user[] = {0, 0, 1, 1, 2, 2}, film[] = {0, 1, 0, 2, 1, 2}, month[] = {0, 1, 1, 0, 0, 1};
    const float stars[] = {5, 3, 4, 1, 3, 2};
    const void *const modes[] = {user, film, month};
    const s3cmtf_entries ratings = {
        .size = sizeof ratings, .order = 3, .values = stars, .value_type = S3CMTF_F32,
        .indices = {.modes = modes, .count = 6, .type = S3CMTF_U32},
    };
    s3cmtf_error *error = NULL;
    s3cmtf_model *model = NULL;
    double prediction = 0;
    int32_t status = s3cmtf_error_new(&error);
    if (!status) status = s3cmtf_fit_entries(&ratings, "preset=paper rank=2 epochs=20 eta=0.05", &model, error);
    if (!status) status = s3cmtf_model_predict_cell(model, (const uint64_t[]){0, 2, 1}, &prediction, error);
    if (status) fprintf(stderr, "%s: %s\n", s3cmtf_status_name(status), s3cmtf_error_message(error));
    else printf("prediction %.2f\n", prediction);
    s3cmtf_model_free(model);
    s3cmtf_error_free(error);
    return status != 0;
}
