/* A refused allocation is a status, and the same call succeeds when there is memory again. */
#define _POSIX_C_SOURCE 200809L
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"

enum { SPARE = 24 << 20 };

static s3cmtf_error *error;

/* Limits the address space to SPARE bytes more than in use, or removes the limit. */
static void limit(int on)
{
    struct rlimit now;
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%lu", &pages) == 1 && fclose(file) == 0);
    CHECK(getrlimit(RLIMIT_AS, &now) == 0);
    now.rlim_cur = on ? (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + SPARE : now.rlim_max;
    CHECK(setrlimit(RLIMIT_AS, &now) == 0);
}

int main(void)
{
    /* Two entries at the ends of modes so long that the table of rows of each has 32 MB. */
    const uint32_t ends[2] = {0, 3999999999u};
    const float ones[2] = {1, 1};
    const void *const modes[3] = {ends, ends, ends};
    const uint64_t dims[3] = {4000000000u, 4000000000u, 4000000000u};
    const s3cmtf_entries entries = entries_f32(3, dims, indices_u32(modes, 2), ones);
    s3cmtf_coo_faults faults;
    s3cmtf_coo_summary summary;
    s3cmtf_coo *coo = NULL;
    s3cmtf_problem *problem = NULL;
    s3cmtf_fit *fit = NULL;
    s3cmtf_model *model = NULL;
    CHECK(s3cmtf_error_new(&error) == S3CMTF_OK);
    faults.size = sizeof faults;
    summary.size = sizeof summary;
    summary.mean = -1;
    OK(s3cmtf_coo_new_view(&entries, &coo, error));
    OK(s3cmtf_problem_new(coo, &problem, error));
    OK(s3cmtf_fit_new(problem, NULL, &fit, error));
    limit(1);
    const int32_t summarized = s3cmtf_coo_summarize(coo, NULL, &summary, NULL, 0, error);
    const int32_t checked = s3cmtf_coo_check(coo, NULL, &faults, error);
    const int32_t fitted = s3cmtf_fit_run(fit, &model, error);
    limit(0);
    CHECK(summarized == S3CMTF_OUT_OF_MEMORY && summary.mean == -1);
    CHECK(checked == S3CMTF_OUT_OF_MEMORY);
    CHECK(fitted == S3CMTF_OUT_OF_MEMORY && model == NULL);
    CHECK(strstr(s3cmtf_error_message(error), "no memory for") != NULL);
    OK(s3cmtf_coo_summarize(coo, NULL, &summary, NULL, 0, error));
    CHECK(summary.mean == 1);
    s3cmtf_fit_free(fit);
    s3cmtf_problem_free(problem);
    s3cmtf_coo_free(coo);
    s3cmtf_error_free(error);
    puts("ok");
    return 0;
}
