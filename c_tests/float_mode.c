/* The floating-point mode of the host neither affects results nor is changed. */
#include <fenv.h>

#include "check.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
static unsigned get_mode(void) { return _mm_getcsr(); }
static void set_mode(unsigned mode) { _mm_setcsr(mode); }
/* All exceptions masked; then rounding up, toward zero and down; subnormal numbers as 0; a trap for division by 0. */
static const unsigned MODES[] = {0x1f80, 0x5f80, 0x7f80, 0x3f80, 0x9fc0, 0x1d80};
#else
static unsigned get_mode(void) { return (unsigned)fegetround(); }
static void set_mode(unsigned mode) { fesetround((int)mode); }
static const unsigned MODES[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD};
#endif

static planted data;
static unsigned mode_now;

static int32_t in_callback(const s3cmtf_progress *progress, void *user)
{
    (void)user;
    (void)progress;
    CHECK(get_mode() == mode_now); /* callbacks run in the mode of the host */
    return 0;
}

int main(void)
{
    s3cmtf_error *error = NULL;
    static double first[ENTRIES], numbers[ENTRIES];
    double first_rmse = 0;
    const void *const modes[3] = {data.user, data.film, data.month};
    const s3cmtf_indices cells = indices_u32(modes, ENTRIES);
    const s3cmtf_predict_request request = unclipped(2);
    CHECK(s3cmtf_error_new(&error) == S3CMTF_OK);
    plant(&data);
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++) {
        const unsigned before = get_mode();
        s3cmtf_fit *fit = small_fit(&data, 5, 2, error);
        s3cmtf_coo *coo = planted_tensor(&data, error);
        s3cmtf_model *model = NULL;
        s3cmtf_evaluation evaluation;
        evaluation.size = sizeof evaluation;
        OK(s3cmtf_fit_set_callback(fit, in_callback, NULL, error));
        set_mode(mode_now = MODES[i]);
        const int32_t fitted = s3cmtf_fit_run(fit, &model, error);
        const unsigned after_fit = get_mode();
        const int32_t predicted = s3cmtf_model_predict(model, &cells, numbers, ENTRIES, S3CMTF_F64, &request, error);
        const int32_t evaluated = s3cmtf_model_evaluate(model, coo, 1, NULL, &evaluation, error);
        const unsigned after = get_mode();
        set_mode(before);
        CHECK(fitted == S3CMTF_OK && predicted == S3CMTF_OK && evaluated == S3CMTF_OK);
        CHECK(after_fit == MODES[i] && after == MODES[i]);
        if (i == 0) {
            memcpy(first, numbers, sizeof first);
            first_rmse = evaluation.rmse;
        }
        CHECK(!memcmp(first, numbers, sizeof first) && evaluation.rmse == first_rmse);
        s3cmtf_model_free(model);
        s3cmtf_fit_free(fit);
        s3cmtf_coo_free(coo);
    }
    s3cmtf_error_free(error);
    puts("ok");
    return 0;
}
