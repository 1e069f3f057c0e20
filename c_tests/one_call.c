/* Fits in one call, from arrays and from a file, and options from text. The argument is a folder to write to. */
#include "check.h"

static s3cmtf_error *error;

static int option_is(const s3cmtf_options *options, const char *name, const char *expected)
{
    char value[64];
    OK(s3cmtf_options_get(options, name, value, sizeof value, NULL, error));
    return !strcmp(value, expected);
}

static void options_from_text(void)
{
    s3cmtf_options *options = NULL, *other = NULL;
    OK(s3cmtf_options_new(NULL, &options, error));
    OK(s3cmtf_options_parse(options, "rank=10 epochs=20 eta=0.01 nonneg=true", error));
    CHECK(option_is(options, "rank", "10") && option_is(options, "epochs", "20"));
    CHECK(option_is(options, "eta", "0.01") && option_is(options, "nonneg", "true"));
    /* Any white space separates. The last of two values counts, and dashes are underscores. */
    OK(s3cmtf_options_parse(options, "\n  rank=4,4,3\tepochs=7\r\n epochs=8 lambda-reg=0.5 ", error));
    CHECK(option_is(options, "rank", "4,4,3") && option_is(options, "epochs", "8"));
    CHECK(option_is(options, "lambda_reg", "0.5") && option_is(options, "eta", "0.01"));
    OK(s3cmtf_options_parse(options, " \n", error));
    CHECK(option_is(options, "epochs", "8"));
    /* A bad word anywhere leaves all options unchanged. */
    const char *const bad[] = {"epochs=9 rnak=3",          "epochs=9 rank",       "epochs=9 rank=0",
                               "epochs=9 preset=paper",    "preset=papr epochs=9", "preset=paper epochs=9 eta=-1",
                               "epochs=9 rank= 3",         "rank=0 epochs=9",      "epochs=9,eta=0.1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        FAILS(S3CMTF_BAD_ARGUMENT, s3cmtf_options_parse(options, bad[i], error));
        CHECK(option_is(options, "epochs", "8") && option_is(options, "rank", "4,4,3"));
        CHECK(option_is(options, "eta", "0.01") && option_is(options, "nonneg", "true"));
    }
    FAILS(S3CMTF_BAD_ARGUMENT, s3cmtf_options_parse(options, "epochs=9 rnak=3", error));
    CHECK(strstr(s3cmtf_error_message(error), "rnak") != NULL);
    /* A preset restarts from all of its options. */
    OK(s3cmtf_options_parse(options, "preset=paper epochs=9", error));
    OK(s3cmtf_options_new("paper", &other, error));
    for (uint64_t i = 0; i < s3cmtf_option_count(); i++) {
        s3cmtf_option_info info;
        char value[256];
        info.size = sizeof info;
        OK(s3cmtf_option_get_info(i, &info, error));
        OK(s3cmtf_options_get(other, info.name, value, sizeof value, NULL, error));
        CHECK(option_is(options, info.name, strcmp(info.name, "epochs") ? value : "9"));
    }
    s3cmtf_options_free(options);
    s3cmtf_options_free(other);
}

/* Returns whether two models predict the same, and frees them. */
static int same_and_free(s3cmtf_model *a, s3cmtf_model *b, const s3cmtf_coo *cells)
{
    static double x[ENTRIES], y[ENTRIES];
    const s3cmtf_predict_request request = unclipped(1);
    OK(s3cmtf_model_predict_coo(a, cells, x, ENTRIES, S3CMTF_F64, &request, error));
    OK(s3cmtf_model_predict_coo(b, cells, y, ENTRIES, S3CMTF_F64, &request, error));
    s3cmtf_model_free(a);
    s3cmtf_model_free(b);
    return !memcmp(x, y, sizeof x);
}

/* Fits with all objects made one by one. */
static s3cmtf_model *fit_step_by_step(const s3cmtf_coo *tensor, const char *text)
{
    s3cmtf_problem *problem = NULL;
    s3cmtf_options *options = NULL;
    s3cmtf_fit *fit = NULL;
    s3cmtf_model *model = NULL;
    OK(s3cmtf_problem_new(tensor, &problem, error));
    OK(s3cmtf_options_new(NULL, &options, error));
    OK(s3cmtf_options_parse(options, text, error));
    OK(s3cmtf_fit_new(problem, options, &fit, error));
    OK(s3cmtf_fit_run(fit, &model, error));
    s3cmtf_fit_free(fit);
    s3cmtf_options_free(options);
    s3cmtf_problem_free(problem);
    return model;
}

static void fits(const char *folder, const planted *data)
{
    static const char PAPER[] = "preset=paper rank=3 epochs=4 eta=0.005 threads=1", AUTO[] = "rank=3 epochs=4 threads=1",
                      ALS[] = "algorithm=als rank=3 epochs=4 threads=1",
                      NONNEG[] = "algorithm=als nonneg=true model=cp rank=3 epochs=4 threads=1";
    const void *const modes[3] = {data->user, data->film, data->month};
    s3cmtf_entries entries = entries_f32(3, DIMS, indices_u32(modes, ENTRIES), data->stars);
    s3cmtf_coo *tensor = planted_tensor(data, error);
    s3cmtf_model *model = NULL;
    const char *const texts[] = {PAPER, AUTO, ALS, NONNEG};
    char path[1024];
    snprintf(path, sizeof path, "%s/one_call.coo", folder);
    OK(s3cmtf_coo_write(tensor, path, 0, NULL, error));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        OK(s3cmtf_fit_entries(&entries, texts[i], &model, error));
        CHECK(model_info_of(model, error).epochs == 4 && mode_of(model, 1, error).rank == 3);
        CHECK(same_and_free(model, fit_step_by_step(tensor, texts[i]), tensor));
        OK(s3cmtf_fit_file(path, texts[i], &model, error));
        CHECK(same_and_free(model, fit_step_by_step(tensor, texts[i]), tensor));
    }

    /* A text file. */
    snprintf(path, sizeof path, "%s/one_call.tns", folder);
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    for (int i = 0; i < ENTRIES; i++)
        fprintf(file, "%u %u %u %.9g\n", data->user[i] + 1, data->film[i] + 1, data->month[i] + 1, (double)data->stars[i]);
    CHECK(fclose(file) == 0);
    s3cmtf_coo *opened = NULL;
    OK(s3cmtf_coo_open(path, S3CMTF_OPEN_MAPPED, NULL, NULL, &opened, error));
    OK(s3cmtf_fit_file(path, PAPER, &model, error));
    CHECK(same_and_free(model, fit_step_by_step(opened, PAPER), tensor));
    s3cmtf_coo_free(opened);

    /* Records of one-based 64-bit indices, and double values. */
    static uint64_t records[3 * ENTRIES];
    static double stars[ENTRIES], weights[ENTRIES];
    for (int i = 0; i < ENTRIES; i++) {
        for (int n = 0; n < 3; n++) records[3 * i + n] = ((const uint32_t *)modes[n])[i] + 1;
        stars[i] = (double)data->stars[i];
        weights[i] = i % 3;
    }
    const void *const packed[3] = {records, records + 1, records + 2};
    s3cmtf_entries wide = entries;
    wide.indices = (s3cmtf_indices){.modes = packed, .count = ENTRIES, .stride = 3, .type = S3CMTF_U64, .base = 1};
    wide.values = stars;
    wide.value_type = S3CMTF_F64;
    s3cmtf_model *other = NULL;
    OK(s3cmtf_fit_entries(&entries, PAPER, &model, error));
    OK(s3cmtf_fit_entries(&wide, PAPER, &other, error));
    CHECK(same_and_free(model, other, tensor));

    /* Weights in the description are those of s3cmtf_coo_new_weighted(), and affect the fit. */
    s3cmtf_coo *weighted = NULL;
    entries.weights = weights;
    entries.weight_type = S3CMTF_F64;
    OK(s3cmtf_coo_new_weighted(tensor, weights, S3CMTF_F64, &weighted, error));
    OK(s3cmtf_fit_entries(&entries, PAPER, &model, error));
    CHECK(same_and_free(model, fit_step_by_step(weighted, PAPER), tensor));
    OK(s3cmtf_fit_entries(&entries, PAPER, &model, error));
    CHECK(!same_and_free(model, fit_step_by_step(tensor, PAPER), tensor));
    weights[7] = -1;
    model = NULL;
    FAILS(S3CMTF_BAD_ENTRY, s3cmtf_fit_entries(&entries, PAPER, &model, error));
    CHECK(model == NULL);
    s3cmtf_coo_free(weighted);

    /* Without options the defaults apply; bad options fail. */
    entries.weights = NULL;
    entries.indices.count = 100;
    OK(s3cmtf_fit_entries(&entries, NULL, &model, error));
    CHECK(evaluation_of(model, tensor, 1, error).entries == ENTRIES);
    s3cmtf_model_free(model);
    model = NULL;
    const char *const bad[] = {"rnak=3", "rank", "rank=0", "epochs=1 preset=paper", "preset=papr"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        FAILS(S3CMTF_BAD_ARGUMENT, s3cmtf_fit_entries(&entries, bad[i], &model, error));
        FAILS(S3CMTF_BAD_ARGUMENT, s3cmtf_fit_file(path, bad[i], &model, error));
        CHECK(model == NULL);
    }
    s3cmtf_coo_free(tensor);
}

int main(int argc, char **argv)
{
    static planted data;
    CHECK(argc == 2);
    plant(&data);
    OK(s3cmtf_error_new(&error));
    options_from_text();
    fits(argv[1], &data);
    s3cmtf_error_free(error);
    puts("ok");
    return 0;
}
