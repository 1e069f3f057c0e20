/* Threads of the host and of the library: cancellation, background fits, fork, small stacks, signals, the environment. */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { ENDLESS = 1000000 };

static planted data;
static pthread_t main_thread;

static s3cmtf_error *new_error(void)
{
    s3cmtf_error *error = NULL;
    CHECK(s3cmtf_error_new(&error) == S3CMTF_OK);
    return error;
}

static void nap(void)
{
    const struct timespec time = {0, 1000000};
    nanosleep(&time, NULL);
}

static int threads_now(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL) return 1;
    while (readdir(tasks) != NULL) count++;
    closedir(tasks);
    return count - 2;
}

/* Waits until the process has `count` threads: a joined thread may be listed a little longer. */
static void require_threads(int count)
{
    for (int i = 0; i < 10000 && threads_now() != count; i++) nap();
    CHECK(threads_now() == count);
}

static void predict_all(const s3cmtf_model *model, uint64_t threads, double *to, s3cmtf_error *error)
{
    const void *const modes[3] = {data.user, data.film, data.month};
    const s3cmtf_indices cells = indices_u32(modes, ENTRIES);
    const s3cmtf_predict_request request = unclipped(threads);
    OK(s3cmtf_model_predict(model, &cells, to, ENTRIES, S3CMTF_F64, &request, error));
}

/* Callbacks run on the calling thread and can stop the fit. */
struct watcher {
    uint64_t stop_after, seen;
};

static int32_t watch(const s3cmtf_progress *progress, void *user)
{
    struct watcher *watcher = user;
    CHECK(pthread_equal(pthread_self(), main_thread));
    CHECK(progress->size == sizeof *progress);
    if (progress->event != S3CMTF_EVENT_EPOCH) return 0;
    CHECK(progress->message == NULL && progress->state == S3CMTF_FIT_RUNNING);
    CHECK(progress->epoch == ++watcher->seen && progress->train_rmse > 0);
    return progress->epoch == watcher->stop_after;
}

static void a_callback_cancels(void)
{
    s3cmtf_error *error = new_error();
    struct watcher watcher = {3, 0};
    s3cmtf_fit *fit = small_fit(&data, ENDLESS, 2, error);
    s3cmtf_model *model = NULL;
    OK(s3cmtf_fit_set_callback(fit, watch, &watcher, error));
    OK(s3cmtf_fit_run(fit, &model, error));
    s3cmtf_progress progress = progress_of(fit, error);
    CHECK(progress.stop_reason == S3CMTF_STOP_CANCELLED && progress.state == S3CMTF_FIT_ENDED);
    CHECK(progress.epoch == 3 && watcher.seen == 3 && progress.threads == 2);
    CHECK(progress.kernel == s3cmtf_kernel_best());
    CHECK(model_info_of(model, error).epochs == 3);
    s3cmtf_model_free(model);
    s3cmtf_fit_free(fit);
    s3cmtf_error_free(error);
}

/* Another thread requests a token after the first epoch. */
struct canceller {
    s3cmtf_cancel *cancel;
    int running; /* atomic */
};

static int32_t report_running(const s3cmtf_progress *progress, void *user)
{
    /* A warning may precede the first epoch. */
    if (progress->event == S3CMTF_EVENT_EPOCH)
        __atomic_store_n(&((struct canceller *)user)->running, 1, __ATOMIC_RELEASE);
    return 0;
}

static void *cancel_when_running(void *argument)
{
    struct canceller *canceller = argument;
    while (!__atomic_load_n(&canceller->running, __ATOMIC_ACQUIRE)) nap();
    s3cmtf_cancel_request(canceller->cancel);
    return NULL;
}

static void another_thread_cancels(void)
{
    s3cmtf_error *error = new_error();
    struct canceller canceller = {NULL, 0};
    pthread_t thread;
    s3cmtf_model *model = NULL;
    OK(s3cmtf_cancel_new(&canceller.cancel, error));
    s3cmtf_fit *fit = small_fit(&data, ENDLESS, 1, error);
    OK(s3cmtf_fit_set_callback(fit, report_running, &canceller, error));
    OK(s3cmtf_fit_set_cancel(fit, canceller.cancel, error));
    CHECK(pthread_create(&thread, NULL, cancel_when_running, &canceller) == 0);
    OK(s3cmtf_fit_run(fit, &model, error));
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(progress_of(fit, error).stop_reason == S3CMTF_STOP_CANCELLED);
    s3cmtf_model_free(model);
    s3cmtf_fit_free(fit);

    /* Cancelled before the fit begins: no model. */
    fit = small_fit(&data, 5, 1, error);
    model = NULL;
    OK(s3cmtf_fit_set_cancel(fit, canceller.cancel, error));
    FAILS(S3CMTF_CANCELLED, s3cmtf_fit_run(fit, &model, error));
    CHECK(model == NULL);
    s3cmtf_fit_free(fit);
    s3cmtf_cancel_free(canceller.cancel);
    s3cmtf_error_free(error);
}

/* Cancelled before the first epoch is finished: no model either. */
static int32_t stop_at_once(const s3cmtf_progress *progress, void *user)
{
    *(uint64_t *)user = progress->epoch;
    return 1;
}

static void the_first_epoch_is_cancelled(void)
{
    s3cmtf_error *error = new_error();
    s3cmtf_problem *problem = planted_problem(&data, error);
    s3cmtf_options *options = small_options(ENDLESS, 1, error);
    s3cmtf_fit *fit = NULL;
    s3cmtf_model *model = NULL;
    uint64_t epoch = 9;
    /* The rank exceeds the number of months: the callback reports that before the first epoch, which takes long. */
    OK(s3cmtf_options_set(options, "rank", "20", error));
    OK(s3cmtf_fit_new(problem, options, &fit, error));
    OK(s3cmtf_fit_set_callback(fit, stop_at_once, &epoch, error));
    const int32_t status = s3cmtf_fit_run(fit, &model, error);
    const s3cmtf_progress progress = progress_of(fit, error);
    CHECK(progress.state == S3CMTF_FIT_ENDED);
    if (status == S3CMTF_OK) { /* The first epoch was finished before the request was seen. */
        CHECK(epoch >= 1 && progress.epoch >= 1 && progress.stop_reason == S3CMTF_STOP_CANCELLED);
    } else {
        CHECK(status == S3CMTF_CANCELLED && model == NULL && epoch == 0);
        CHECK(progress.stop_reason == S3CMTF_STOP_NONE && progress.kernel == S3CMTF_KERNEL_UNKNOWN);
    }
    s3cmtf_model_free(model);
    s3cmtf_fit_free(fit);
    s3cmtf_options_free(options);
    s3cmtf_problem_free(problem);
    s3cmtf_error_free(error);
}

static void the_background_is_polled(void)
{
    s3cmtf_error *error = new_error();
    const int before = threads_now();
    int32_t running = -1;
    s3cmtf_model *model = NULL;
    s3cmtf_fit *fit = small_fit(&data, ENDLESS, 1, error);
    CHECK(progress_of(fit, error).kernel == S3CMTF_KERNEL_UNKNOWN);
    OK(s3cmtf_fit_start(fit, error));
    FAILS(S3CMTF_BAD_STATE, s3cmtf_fit_take(fit, &model, error));
    FAILS(S3CMTF_BAD_STATE, s3cmtf_fit_run(fit, &model, error));
    while (progress_of(fit, error).epoch < 2) nap();
    OK(s3cmtf_fit_wait(fit, 0.001, &running, error));
    CHECK(running == 1);
    s3cmtf_fit_cancel(fit);
    OK(s3cmtf_fit_wait(fit, -1, &running, error));
    CHECK(running == 0);
    OK(s3cmtf_fit_take(fit, &model, error));
    CHECK(progress_of(fit, error).stop_reason == S3CMTF_STOP_CANCELLED);
    s3cmtf_model_free(model);
    s3cmtf_fit_free(fit);

    /* A background fit gives the same model as a foreground fit. */
    double *here = malloc(sizeof *here * ENTRIES), *there = malloc(sizeof *there * ENTRIES);
    model = small_model(&data, 5, 2, error);
    predict_all(model, 1, here, error);
    s3cmtf_model_free(model);
    fit = small_fit(&data, 5, 1, error);
    OK(s3cmtf_fit_start(fit, error));
    OK(s3cmtf_fit_wait(fit, -1, &running, error));
    OK(s3cmtf_fit_take(fit, &model, error));
    predict_all(model, 2, there, error);
    CHECK(!memcmp(here, there, sizeof *here * ENTRIES));
    s3cmtf_model_free(model);
    s3cmtf_fit_free(fit);
    free(here);
    free(there);

    /* Freeing a running fit ends it. */
    fit = small_fit(&data, ENDLESS, 2, error);
    OK(s3cmtf_fit_start(fit, error));
    s3cmtf_fit_free(fit);
    require_threads(before);
    s3cmtf_error_free(error);
}

/* Concurrent fits with different numbers of threads give the same predictions. */
struct concurrent_fit {
    uint64_t threads;
    double numbers[ENTRIES];
};

static void *fit_concurrently(void *argument)
{
    struct concurrent_fit *fit = argument;
    s3cmtf_error *error = new_error();
    s3cmtf_model *model = small_model(&data, 6, fit->threads, error);
    predict_all(model, fit->threads, fit->numbers, error);
    s3cmtf_model_free(model);
    s3cmtf_error_free(error);
    return NULL;
}

static void fits_run_concurrently(void)
{
    static struct concurrent_fit fits[3] = {{1, {0}}, {2, {0}}, {3, {0}}};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, fit_concurrently, &fits[i]) == 0);
    for (int i = 0; i < 3; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(!memcmp(fits[0].numbers, fits[1].numbers, sizeof fits[0].numbers));
    CHECK(!memcmp(fits[0].numbers, fits[2].numbers, sizeof fits[0].numbers));
}

/* Eight threads read one model. */
static const s3cmtf_model *shared_model;
static double expected[ENTRIES];

static void *read_model(void *argument)
{
    s3cmtf_error *error = new_error();
    double *numbers = malloc(sizeof *numbers * ENTRIES), row[3];
    (void)argument;
    for (int i = 0; i < 5; i++) {
        predict_all(shared_model, 1, numbers, error);
        CHECK(!memcmp(numbers, expected, sizeof expected));
        CHECK(mode_of(shared_model, 0, error).dim == USERS);
        OK(s3cmtf_model_copy_row(shared_model, 0, (uint64_t)i % USERS, row, 3, S3CMTF_F64, error));
        FAILS(S3CMTF_BAD_ARGUMENT, s3cmtf_model_copy_row(shared_model, 9, 0, row, 3, S3CMTF_F64, error));
    }
    free(numbers);
    s3cmtf_error_free(error);
    return NULL;
}

static void eight_threads_read_one_model(void)
{
    s3cmtf_error *error = new_error();
    s3cmtf_model *model = small_model(&data, 3, 1, error);
    pthread_t threads[8];
    predict_all(model, 1, expected, error);
    shared_model = model;
    for (int i = 0; i < 8; i++) CHECK(pthread_create(&threads[i], NULL, read_model, NULL) == 0);
    for (int i = 0; i < 8; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    s3cmtf_model_free(model);
    s3cmtf_error_free(error);
}

static void a_forked_child_fits(void)
{
    s3cmtf_error *error = new_error();
    s3cmtf_model *model = small_model(&data, 2, 2, error); /* the parent has used the library */
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        s3cmtf_model *own = small_model(&data, 3, 2, error);
        double *numbers = malloc(sizeof *numbers * ENTRIES);
        predict_all(own, 2, numbers, error);
        predict_all(model, 2, numbers, error);
        free(numbers);
        s3cmtf_model_free(own);
        s3cmtf_model_free(model);
        s3cmtf_error_free(error);
        _exit(0);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    s3cmtf_model_free(model);
    s3cmtf_error_free(error);
}

/* Other threads of the host change the environment during calls. */
static int changed_enough; /* atomic */

static void *change_environment(void *argument)
{
    char name[32];
    for (int i = 0; !__atomic_load_n(&changed_enough, __ATOMIC_ACQUIRE); i++) {
        snprintf(name, sizeof name, "OF_THE_HOST_%d", i % 2000);
        CHECK(setenv(name, "some value", 1) == 0);
        if (i % 2000 == 1999) nap();
    }
    return argument;
}

static void the_environment_changes_during_calls(void)
{
    s3cmtf_error *error = new_error();
    double *numbers = malloc(sizeof *numbers * ENTRIES);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, change_environment, NULL) == 0);
    for (int i = 0; i < 5; i++) {
        s3cmtf_model *model = small_model(&data, 2, 2, error);
        predict_all(model, 2, numbers, error);
        s3cmtf_model_free(model);
    }
    __atomic_store_n(&changed_enough, 1, __ATOMIC_RELEASE);
    CHECK(pthread_join(thread, NULL) == 0);
    free(numbers);
    s3cmtf_error_free(error);
}

static void *small_stack_work(void *argument)
{
    (void)argument;
    s3cmtf_error *error = new_error();
    s3cmtf_model *model = small_model(&data, 2, 2, error);
    double *numbers = malloc(sizeof *numbers * ENTRIES);
    predict_all(model, 2, numbers, error);
    free(numbers);
    s3cmtf_model_free(model);
    s3cmtf_error_free(error);
    return NULL;
}

static void a_small_stack_is_enough(size_t bytes)
{
    pthread_attr_t attributes;
    pthread_t thread;
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstacksize(&attributes, bytes) == 0);
    CHECK(pthread_create(&thread, &attributes, small_stack_work, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    pthread_attr_destroy(&attributes);
}

/* A signal during a fit runs the handler of the host, which may request a token. */
static s3cmtf_cancel *on_signal;
static volatile sig_atomic_t signals;

static void handler(int number)
{
    (void)number;
    if (pthread_equal(pthread_self(), main_thread)) signals++;
    s3cmtf_cancel_request(on_signal);
}

static int32_t raise_once(const s3cmtf_progress *progress, void *user)
{
    (void)user;
    if (progress->epoch == 2) raise(SIGINT);
    return 0;
}

static void signals_reach_the_host(void)
{
    s3cmtf_error *error = new_error();
    struct sigaction mine, now;
    memset(&mine, 0, sizeof mine);
    mine.sa_handler = handler;
    CHECK(sigaction(SIGINT, &mine, NULL) == 0);
    OK(s3cmtf_cancel_new(&on_signal, error));
    s3cmtf_fit *fit = small_fit(&data, ENDLESS, 2, error);
    s3cmtf_model *model = NULL;
    OK(s3cmtf_fit_set_cancel(fit, on_signal, error));
    OK(s3cmtf_fit_set_callback(fit, raise_once, NULL, error));
    OK(s3cmtf_fit_run(fit, &model, error));
    CHECK(signals == 1 && progress_of(fit, error).stop_reason == S3CMTF_STOP_CANCELLED);
    s3cmtf_model_free(model);
    s3cmtf_fit_free(fit);
    s3cmtf_cancel_free(on_signal);
    CHECK(sigaction(SIGINT, NULL, &now) == 0 && now.sa_handler == handler);
    on_signal = NULL;

    /* While this thread blocks a signal, no thread of the library handles it. */
    sigset_t interrupt, was;
    CHECK(sigemptyset(&interrupt) == 0 && sigaddset(&interrupt, SIGINT) == 0);
    fit = small_fit(&data, ENDLESS, 2, error);
    OK(s3cmtf_fit_start(fit, error));
    CHECK(pthread_sigmask(SIG_BLOCK, &interrupt, &was) == 0 && !sigismember(&was, SIGINT));
    CHECK(kill(getpid(), SIGINT) == 0);
    for (const uint64_t epoch = progress_of(fit, error).epoch; progress_of(fit, error).epoch < epoch + 3;) nap();
    CHECK(sigpending(&was) == 0 && sigismember(&was, SIGINT) && signals == 1);
    CHECK(pthread_sigmask(SIG_UNBLOCK, &interrupt, NULL) == 0);
    CHECK(signals == 2);
    s3cmtf_fit_free(fit);
    const int others[] = {SIGSEGV, SIGBUS, SIGPIPE, SIGTERM, SIGABRT};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        CHECK(sigaction(others[i], NULL, &now) == 0);
        CHECK(now.sa_handler == SIG_DFL || getenv("S3CMTF_SANITIZER") != NULL);
    }
    s3cmtf_error_free(error);
}

int main(int argc, char **argv)
{
    main_thread = pthread_self();
    plant(&data);
    const int before = threads_now();
    a_callback_cancels();
    another_thread_cancels();
    the_first_epoch_is_cancelled();
    the_background_is_polled();
    fits_run_concurrently();
    eight_threads_read_one_model();
    the_environment_changes_during_calls();
    a_forked_child_fits();
    /* A sanitizer enlarges stack frames. */
    a_small_stack_is_enough(argc > 1 ? (size_t)atol(argv[1]) : 64 * 1024);
    signals_reach_the_host();
    require_threads(before);
    puts("ok");
    return 0;
}
