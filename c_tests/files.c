/* Files of entries: conversion, both ways to open, checks, damage, weights, repair and splits.
 * Arguments: a folder to write to, and a folder with real data; without the second, planted data. */
#include "folder.h"

static s3cmtf_coo_faults faults_of(const s3cmtf_coo *coo)
{
    s3cmtf_coo_faults faults;
    faults.size = sizeof faults;
    OK(s3cmtf_coo_check(coo, NULL, &faults, error));
    CHECK(faults.size == sizeof faults);
    return faults;
}

/* A copy of a binary file with one changed bit is rejected, unless it is opened without verification. */
static void check_damaged_file(const char *path)
{
    char bytes[4096];
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    const size_t length = fread(bytes, 1, sizeof bytes, file);
    CHECK(length > 0 && length < sizeof bytes && fclose(file) == 0);
    bytes[length - 2] ^= 0x10;
    const char *damaged = in_folder("damaged.coo");
    file = fopen(damaged, "wb");
    CHECK(file != NULL && fwrite(bytes, 1, length, file) == length && fclose(file) == 0);
    for (int32_t mode = S3CMTF_OPEN_MAPPED; mode <= S3CMTF_OPEN_PRIVATE; mode++) {
        s3cmtf_coo *coo = NULL;
        FAILS(S3CMTF_BAD_FILE, s3cmtf_coo_open(damaged, mode, NULL, NULL, &coo, error));
        CHECK(coo == NULL && strstr(s3cmtf_error_message(error), "checksum") != NULL);
        coo = open_coo(damaged, mode | S3CMTF_OPEN_UNVERIFIED);
        CHECK(faults_of(coo).damaged_sections == 1);
        FAILS(S3CMTF_BAD_FILE, s3cmtf_coo_fix(coo, in_folder("fixed.coo"), S3CMTF_KEEP_LAST, NULL, NULL, NULL, error));
        s3cmtf_coo_free(coo);
    }
    s3cmtf_model *model = NULL;
    FAILS(S3CMTF_BAD_FILE, s3cmtf_fit_file(damaged, NULL, &model, error));
    CHECK(remove(damaged) == 0);
}

/* Of each user, no entry of last.test.coo is older than one of last.train.coo. */
static void latest_are_held_out(uint64_t users)
{
    s3cmtf_coo *parts[2] = {open_coo(in_folder("last.train.coo"), S3CMTF_OPEN_MAPPED),
                            open_coo(in_folder("last.test.coo"), S3CMTF_OPEN_MAPPED)};
    uint32_t *latest = calloc(users, sizeof *latest);
    for (int part = 0; part < 2; part++) {
        const uint64_t count = coo_info_of(parts[part], error).count;
        const uint32_t *user = NULL, *time = NULL;
        OK(s3cmtf_coo_view_indices(parts[part], 0, &user, error));
        OK(s3cmtf_coo_view_indices(parts[part], 2, &time, error));
        CHECK(count > 0);
        for (uint64_t i = 0; i < count; i++) {
            CHECK(part == 0 || time[i] >= latest[user[i]]);
            if (part == 0 && time[i] > latest[user[i]]) latest[user[i]] = time[i];
        }
        s3cmtf_coo_free(parts[part]);
    }
    free(latest);
}

int main(int argc, char **argv)
{
    char train_text[LONGEST];
    snprintf(train_text, LONGEST, "%s/tensor.train.tns", start(argc, argv));
    uint64_t dims[3], other[3], used[3], dropped = 9, merged = 9;
    s3cmtf_coo_summary summary;
    summary.size = sizeof summary;
    OK(s3cmtf_coo_convert(train_text, in_folder("train.coo"), NULL, NULL, error));
    s3cmtf_coo *mapped = open_coo(in_folder("train.coo"), S3CMTF_OPEN_MAPPED);
    s3cmtf_coo *copied = open_coo(in_folder("train.coo"), S3CMTF_OPEN_PRIVATE);
    OK(s3cmtf_coo_get_dims(mapped, dims, 3, error));
    OK(s3cmtf_coo_get_dims(copied, other, 3, error));
    CHECK(!memcmp(dims, other, sizeof dims));
    const s3cmtf_coo_info info = coo_info_of(mapped, error);
    const uint64_t count = info.count;
    CHECK(info.order == 3 && info.value_type == S3CMTF_F32 && info.weight_type == 0);
    OK(s3cmtf_coo_summarize(mapped, NULL, &summary, used, 3, error));
    CHECK(summary.min < summary.mean && summary.mean < summary.max && summary.standard_deviation > 0);
    CHECK(used[0] <= dims[0] && used[2] > 0);
    /* Either output alone. */
    uint64_t again_used[3];
    s3cmtf_coo_summary alone;
    alone.size = sizeof alone;
    OK(s3cmtf_coo_summarize(mapped, NULL, NULL, again_used, 3, error));
    OK(s3cmtf_coo_summarize(mapped, NULL, &alone, NULL, 0, error));
    CHECK(!memcmp(again_used, used, sizeof used) && !memcmp(&alone, &summary, sizeof alone));

    /* A view of arrays in memory is written and read back. */
    const uint32_t *columns[3];
    const void *values = NULL;
    for (uint64_t n = 0; n < 3; n++) OK(s3cmtf_coo_view_indices(mapped, n, &columns[n], error));
    OK(s3cmtf_coo_view_values(mapped, &values, error));
    const void *const modes[3] = {columns[0], columns[1], columns[2]};
    const s3cmtf_entries entries = entries_f32(3, dims, indices_u32(modes, count), values);
    s3cmtf_coo *view = NULL;
    OK(s3cmtf_coo_new_view(&entries, &view, error));
    OK(s3cmtf_coo_write(view, in_folder("view.coo"), S3CMTF_F64, NULL, error));
    /* So are weights. s3cmtf_coo_check() checks them too. */
    double *heavy = malloc(count * sizeof *heavy);
    for (uint64_t i = 0; i < count; i++) heavy[i] = (double)(i % 3);
    s3cmtf_coo *weighted = NULL, *again = NULL;
    const void *weights = NULL;
    OK(s3cmtf_coo_new_weighted(view, heavy, S3CMTF_F64, &weighted, error));
    OK(s3cmtf_coo_write(weighted, in_folder("weighted.coo"), 0, NULL, error));
    again = open_coo(in_folder("weighted.coo"), S3CMTF_OPEN_MAPPED);
    OK(s3cmtf_coo_view_weights(again, &weights, error));
    CHECK(coo_info_of(again, error).weight_type == S3CMTF_F64 && !memcmp(weights, heavy, count * sizeof *heavy));
    s3cmtf_coo_free(weighted);
    s3cmtf_coo_free(again);
    heavy[1] = -1;
    OK(s3cmtf_coo_new_weighted(view, heavy, S3CMTF_F64, &weighted, error));
    free(heavy);
    CHECK(faults_of(weighted).not_finite == 1);
    s3cmtf_coo_free(weighted);
    s3cmtf_coo *back = open_coo(in_folder("view.coo"), S3CMTF_OPEN_PRIVATE);
    const void *doubles = NULL;
    OK(s3cmtf_coo_view_values(back, &doubles, error));
    for (uint64_t i = 0; i < count; i++) CHECK(((const double *)doubles)[i] == (double)((const float *)values)[i]);

    /* A duplicate cell is reported and fixed. */
    const uint32_t twice[3] = {0, 1, 0};
    const double ones[3] = {1, 2, 3};
    const void *const both[2] = {twice, twice};
    s3cmtf_entries twofold = entries_f32(2, NULL, indices_u32(both, 3), NULL);
    twofold.values = ones;
    twofold.value_type = S3CMTF_F64;
    s3cmtf_coo *doubled = new_coo(twofold, error);
    s3cmtf_coo_faults faults = faults_of(doubled);
    CHECK(faults.duplicate_cells == 1 && faults.surplus_entries == 1);
    OK(s3cmtf_coo_write(doubled, in_folder("doubled.coo"), 0, NULL, error));
    s3cmtf_coo_free(doubled);
    doubled = open_coo(in_folder("doubled.coo"), S3CMTF_OPEN_MAPPED);
    OK(s3cmtf_coo_fix(doubled, in_folder("fixed.coo"), S3CMTF_KEEP_LAST, NULL, &dropped, &merged, error));
    CHECK(dropped == 0 && merged == 1);
    s3cmtf_coo *fixed = open_coo(in_folder("fixed.coo"), S3CMTF_OPEN_MAPPED);
    faults = faults_of(fixed);
    CHECK(faults.damaged_sections == 0 && faults.out_of_range == 0 && faults.not_finite == 0);
    CHECK(faults.duplicate_cells == 0 && faults.surplus_entries == 0);
    check_damaged_file(in_folder("fixed.coo"));

    s3cmtf_split_request split = {.size = sizeof split, .test_fraction = 0.1, .valid_fraction = 0.1, .seed = 7};
    OK(s3cmtf_coo_split(mapped, in_folder("parts"), &split, error));
    s3cmtf_coo *part = open_coo(in_folder("parts.valid.coo"), S3CMTF_OPEN_MAPPED);
    const uint64_t some = coo_info_of(part, error).count;
    CHECK(some > 0 && some <= count / 9);
    /* The latest entries of each user: no test entry is older than a training entry of the same user. */
    split.valid_fraction = 0;
    split.latest = 1;
    split.row_mode = 0;
    split.time_mode = 2;
    OK(s3cmtf_coo_split(mapped, in_folder("last"), &split, error));
    latest_are_held_out(dims[0]);
    /* Conversion back to text. */
    OK(s3cmtf_coo_convert(in_folder("parts.valid.coo"), in_folder("valid.tns"), NULL, NULL, error));

    s3cmtf_coo *const all[] = {mapped, copied, view, back, doubled, fixed, part};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) s3cmtf_coo_free(all[i]);
    s3cmtf_error_free(error);
    puts("ok");
    return 0;
}
