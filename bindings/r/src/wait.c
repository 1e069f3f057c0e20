/* Long work on another thread while the thread of R answers interrupts. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "shim.h"

enum { POLL_NANOSECONDS = 50 * 1000 * 1000 };

typedef struct {
    Work work;
    Poll poll;
    Discard discard;
    void *data;
    s3cmtf_cancel *cancel;
    s3cmtf_error *error;
    int32_t status;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t ended_changed;
    int ended; /* guarded by mutex */
} Job;

static void *run(void *argument)
{
    Job *job = argument;
    job->status = job->work(job->data, job->cancel, job->error);
    pthread_mutex_lock(&job->mutex);
    job->ended = 1;
    pthread_cond_signal(&job->ended_changed);
    pthread_mutex_unlock(&job->mutex);
    return NULL;
}

/* Starts the thread with all signals blocked, so that R handles them on its own thread. */
static int start(Job *job)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&job->thread, NULL, run, job);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

static int wait_until_ended(Job *job)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += POLL_NANOSECONDS;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    pthread_mutex_lock(&job->mutex);
    while (!job->ended && pthread_cond_timedwait(&job->ended_changed, &job->mutex, &until) != ETIMEDOUT) continue;
    const int ended = job->ended;
    pthread_mutex_unlock(&job->mutex);
    return ended;
}

/* May be left by longjmp: by an interrupt, or by an error of R code that the poll function calls. */
static SEXP wait_and_poll(void *argument)
{
    Job *job = argument;
    int ended;
    do {
        ended = wait_until_ended(job);
        if (job->poll != NULL && job->poll(job->data)) s3cmtf_cancel_request(job->cancel);
        if (!ended) R_CheckUserInterrupt();
    } while (!ended);
    return R_NilValue;
}

static void join(void *argument, Rboolean jumps)
{
    Job *job = argument;
    if (jumps) s3cmtf_cancel_request(job->cancel);
    pthread_join(job->thread, NULL);
    if (jumps && job->discard != NULL) job->discard(job->data);
    pthread_cond_destroy(&job->ended_changed);
    pthread_mutex_destroy(&job->mutex);
    s3cmtf_cancel_free(job->cancel);
    /* The message of the job becomes that of the call. */
    s3cmtf_error_free(call_error);
    call_error = job->error;
}

void run_interruptible(Work work, Poll poll, Discard discard, void *data)
{
    Job job = {.work = work, .poll = poll, .discard = discard, .data = data};
    check(s3cmtf_error_new(&job.error));
    int32_t status = s3cmtf_cancel_new(&job.cancel, call_error);
    if (status == S3CMTF_OK) {
        pthread_mutex_init(&job.mutex, NULL);
        pthread_cond_init(&job.ended_changed, NULL);
        if (start(&job) == 0) {
            R_UnwindProtect(wait_and_poll, &job, join, &job, NULL);
            check(job.status);
            return;
        }
        s3cmtf_cancel_free(job.cancel);
    }
    s3cmtf_error_free(job.error);
    check(status);
    fail("SYSTEM", "cannot start a thread");
}
