/* Many jobs side by side: some are done, some fail, a batch is cancelled and goes on. The argument is a folder. */
#include "check.h"

static s3cmtf_error *error;
static char folder[1000];

static const char *at(const char *name)
{
    static char paths[4][1100];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

struct seen {
    int ended, stop_after;
    int32_t last;
    char ids[200];
};

static int32_t watch(const s3cmtf_job *job, void *user)
{
    struct seen *seen = user;
    CHECK(job->size >= sizeof *job && job->line > 0 && job->reason[0] != 0);
    seen->ended++;
    seen->last = job->status;
    strcat(strcat(seen->ids, job->id), " ");
    /* Other calls of the library are fine. */
    CHECK(s3cmtf_version_number() == S3CMTF_VERSION_NUMBER);
    return seen->stop_after && seen->ended >= seen->stop_after;
}

static s3cmtf_batch *made(const char *name, struct seen *seen)
{
    s3cmtf_batch *batch = NULL;
    char lines[8000];
    const char *fit = "{\"id\":\"%s\",\"job\":\"fit\",\"preset\":\"paper\",\"tensor\":\"%s/t.coo\",\"test\":\"%s/t.coo\","
                      "\"output\":\"%s/%s-%s.s3m\",\"options\":{\"rank\":%d,\"epochs\":3}}\n";
    OK(s3cmtf_batch_new(at(name), &batch, error));
    OK(s3cmtf_batch_set_threads(batch, 2, error));
    OK(s3cmtf_batch_set_memory(batch, (uint64_t)1 << 30, error));
    OK(s3cmtf_batch_set_callback(batch, watch, seen, error));
    snprintf(lines, sizeof lines, fit, "a", folder, folder, folder, name, "a", 2);
    OK(s3cmtf_batch_add(batch, lines, error));
    snprintf(lines, sizeof lines, fit, "b", folder, folder, folder, name, "b", 3);
    OK(s3cmtf_batch_add(batch, lines, error));
    OK(s3cmtf_batch_add(batch, "# not this\n\nnor this", error));
    snprintf(lines, sizeof lines,
             "{\"id\":\"p\",\"job\":\"predict\",\"model\":\"%s/%s-a.s3m\",\"file\":\"%s/t.coo\",\"output\":\"%s/%s-p.coo\"}",
             folder, name, folder, folder, name);
    OK(s3cmtf_batch_add(batch, lines, error));
    return batch;
}

int main(int argc, char **argv)
{
    CHECK(argc > 1);
    snprintf(folder, sizeof folder, "%s", argv[1]);
    static planted data;
    plant(&data);
    OK(s3cmtf_error_new(&error));
    s3cmtf_coo *coo = planted_tensor(&data, error);
    OK(s3cmtf_coo_write(coo, at("t.coo"), 0, NULL, error));

    struct seen seen = {0, 0, 0, ""};
    s3cmtf_batch *batch = made("first", &seen);
    uint64_t undone = 99, count = 0;
    OK(s3cmtf_batch_run(batch, &undone, error));
    CHECK(undone == 1 && seen.ended == 4);
    OK(s3cmtf_batch_get_count(batch, &count, error));
    CHECK(count == 4);
    s3cmtf_job job;
    job.size = sizeof job;
    OK(s3cmtf_batch_get_job(batch, 1, &job, error));
    CHECK(!strcmp(job.id, "b") && job.status == S3CMTF_JOB_DONE && job.kind == S3CMTF_JOB_FIT && job.epochs == 3);
    CHECK(!strcmp(job.reason, "epochs") && job.test_rmse > 0 && isnan(job.valid_rmse) && job.threads == 1);
    OK(s3cmtf_batch_get_job(batch, 2, &job, error));
    CHECK(job.status == S3CMTF_JOB_FAILED && job.line == 5 && strstr(job.message, "line 5") && !strcmp(job.id, "job-5"));
    OK(s3cmtf_batch_get_job(batch, 3, &job, error));
    CHECK(job.kind == S3CMTF_JOB_PREDICT && job.predictions == ENTRIES && job.log[0] != 0);
    CHECK(s3cmtf_batch_get_job(batch, 4, &job, error) == S3CMTF_BAD_ARGUMENT);
    s3cmtf_coo *predicted = NULL;
    OK(s3cmtf_coo_open(job.output, 0, NULL, NULL, &predicted, error));
    s3cmtf_coo_free(predicted);

    /* Run again, there is nothing to do but what failed. */
    memset(&seen, 0, sizeof seen);
    OK(s3cmtf_batch_run(batch, NULL, error));
    OK(s3cmtf_batch_get_job(batch, 3, &job, error));
    CHECK(seen.ended == 4 && job.status == S3CMTF_JOB_SKIPPED);
    s3cmtf_batch_free(batch);

    /* A callback ends it, and it goes on. */
    struct seen first = {0, 1, 0, ""};
    batch = made("second", &first);
    OK(s3cmtf_batch_set_threads(batch, 1, error));
    OK(s3cmtf_batch_run(batch, &undone, error));
    OK(s3cmtf_batch_get_count(batch, &count, error));
    CHECK(undone >= 1 && undone <= count);
    first.stop_after = 0;
    OK(s3cmtf_batch_run(batch, &undone, error));
    OK(s3cmtf_batch_get_count(batch, &count, error));
    CHECK(undone == 1 && count == 4);
    s3cmtf_batch_free(batch);

    /* So does a token, before anything begins. */
    s3cmtf_cancel *cancel = NULL;
    OK(s3cmtf_cancel_new(&cancel, error));
    s3cmtf_cancel_request(cancel);
    struct seen none = {0, 0, 0, ""};
    batch = made("third", &none);
    OK(s3cmtf_batch_set_cancel(batch, cancel, error));
    OK(s3cmtf_batch_run(batch, &undone, error));
    s3cmtf_cancel_free(cancel);
    s3cmtf_batch_free(batch);

    s3cmtf_coo_free(coo);
    s3cmtf_error_free(error);
    puts("ok");
    return 0;
}
