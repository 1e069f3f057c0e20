/* More of the table of misuse.c: many jobs side by side. */

static int32_t never_job(const s3cmtf_job *job, void *user)
{
    (void)job;
    (void)user;
    return 0;
}

static void test_s3cmtf_batch_new(void)
{
    NUL(s3cmtf_batch_new(NULL, &out.batch, error));
    NUL(s3cmtf_batch_new("x", NULL, error));
}
static void test_s3cmtf_batch_add(void)
{
    NUL(s3cmtf_batch_add(NULL, "{}", error));
    NUL(s3cmtf_batch_add(batch, NULL, error));
    BAD(s3cmtf_batch_add(batch, "\xff", error));
}
static void test_s3cmtf_batch_add_file(void)
{
    NUL(s3cmtf_batch_add_file(NULL, "x", error));
    NUL(s3cmtf_batch_add_file(batch, NULL, error));
    NOFILE(s3cmtf_batch_add_file(batch, "/no/such/file", error));
    NOFILE(s3cmtf_batch_add_file(batch, "/", error));
}
static void test_s3cmtf_batch_set_threads(void)
{
    NUL(s3cmtf_batch_set_threads(NULL, 1, error));
    BAD(s3cmtf_batch_set_threads(batch, 4097, error));
}
static void test_s3cmtf_batch_set_job_threads(void)
{
    NUL(s3cmtf_batch_set_job_threads(NULL, 1, error));
    BAD(s3cmtf_batch_set_job_threads(batch, UINT64_MAX, error));
}
static void test_s3cmtf_batch_set_memory(void) { NUL(s3cmtf_batch_set_memory(NULL, 1, error)); }
static void test_s3cmtf_batch_set_cancel(void)
{
    NUL(s3cmtf_batch_set_cancel(NULL, cancel, error));
    OK(s3cmtf_batch_set_cancel(batch, NULL, error));
}
static void test_s3cmtf_batch_set_callback(void)
{
    NUL(s3cmtf_batch_set_callback(NULL, never_job, NULL, error));
    OK(s3cmtf_batch_set_callback(batch, NULL, NULL, error));
}
static void test_s3cmtf_batch_run(void)
{
    NUL(s3cmtf_batch_run(NULL, out.u, error));
    s3cmtf_batch *nowhere = NULL;
    OK(s3cmtf_batch_new("/dev/null/x", &nowhere, error));
    expect(S3CMTF_SYSTEM, s3cmtf_batch_run(nowhere, out.u, error), __LINE__, "a folder that cannot be made");
    s3cmtf_batch_free(nowhere);
}
static void test_s3cmtf_batch_get_count(void)
{
    NUL(s3cmtf_batch_get_count(NULL, out.u, error));
    NUL(s3cmtf_batch_get_count(batch, NULL, error));
    STATE(s3cmtf_batch_get_count(batch, out.u, error));
}
static void test_s3cmtf_batch_get_job(void)
{
    s3cmtf_job job;
    job.size = sizeof job;
    NUL(s3cmtf_batch_get_job(NULL, 0, &job, error));
    STATE(s3cmtf_batch_get_job(batch, 0, &job, error));
}
static void test_s3cmtf_batch_free(void) { s3cmtf_batch_free(NULL); }
