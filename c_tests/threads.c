/* Many threads, and a host that does as it likes: cancelling, forking, small stacks, signals. */
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

/* A thread that was joined may be listed a little longer. */
static void only_threads(int count)
{
    for (int i = 0; i < 10000 && threads_now() != count; i++) nap();
    CHECK(threads_now() == count);
}

static void predict_all(const s3cmtf_model *model, uint64_t threads, double *to, s3cmtf_error *error)
{
    const void *const indices[3] = {data.user, data.film, data.month};
    OK(s3cmtf_model_predict(model, ENTRIES, indices, S3CMTF_U32, 1, 0, 0, threads, NULL, to, ENTRIES, S3CMTF_F64,
                            error));
}

/* Callbacks come on the calling thread, and stop the fit after the epoch they say. */
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
    uint64_t epochs = 0;
    OK(s3cmtf_fit_set_callback(fit, watch, &watcher, error));
    OK(s3cmtf_fit_run(fit, &model, error));
    s3cmtf_progress progress = progress_of(fit, error);
    CHECK(progress.stop_reason == S3CMTF_STOP_CANCELLED && progress.state == S3CMTF_FIT_ENDED);
    CHECK(progress.epoch == 3 && watcher.seen == 3 && progress.threads == 2);
    CHECK(progress.kernel == s3cmtf_kernel_best());
    OK(s3cmtf_model_get_epochs(model, &epochs, error));
    CHECK(epochs == 3);
    s3cmtf_model_free(model);
    s3cmtf_fit_free(fit);
    s3cmtf_error_free(error);
}

/* A token from another thread, once the fit is seen to run. */
struct canceller {
    s3cmtf_cancel *cancel;
    int running; /* atomic */
};

static int32_t note(const s3cmtf_progress *progress, void *user)
{
    /* A warning may come before the first epoch. */
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
    OK(s3cmtf_fit_set_callback(fit, note, &canceller, error));
    OK(s3cmtf_fit_set_cancel(fit, canceller.cancel, error));
    CHECK(pthread_create(&thread, NULL, cancel_when_running, &canceller) == 0);
    OK(s3cmtf_fit_run(fit, &model, error));
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(progress_of(fit, error).stop_reason == S3CMTF_STOP_CANCELLED);
    s3cmtf_model_free(model);
    s3cmtf_fit_free(fit);

    /* Before it begins, there is nothing to return. */
    fit = small_fit(&data, 5, 1, error);
    model = NULL;
    OK(s3cmtf_fit_set_cancel(fit, canceller.cancel, error));
    FAILS(S3CMTF_CANCELLED, s3cmtf_fit_run(fit, &model, error));
    CHECK(model == NULL);
    s3cmtf_fit_free(fit);
    s3cmtf_cancel_free(canceller.cancel);
    s3cmtf_error_free(error);
}

/* Until an epoch is finished there is no model either. */
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
    /* More than there are months: the callback is told before the first epoch, which takes its time. */
    OK(s3cmtf_options_set(options, "rank", "20", error));
    OK(s3cmtf_fit_new(problem, options, &fit, error));
    OK(s3cmtf_fit_set_callback(fit, stop_at_once, &epoch, error));
    const int32_t status = s3cmtf_fit_run(fit, &model, error);
    const s3cmtf_progress progress = progress_of(fit, error);
    CHECK(progress.state == S3CMTF_FIT_ENDED);
    if (status == S3CMTF_OK) { /* a very quick machine */
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

    /* One that ends by itself is the same as in the foreground. */
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

    /* Freeing one that runs ends it. */
    fit = small_fit(&data, ENDLESS, 2, error);
    OK(s3cmtf_fit_start(fit, error));
    s3cmtf_fit_free(fit);
    only_threads(before);
    s3cmtf_error_free(error);
}

/* Two fits at once, with different numbers of threads: the same numbers. */
struct side {
    uint64_t threads;
    double numbers[ENTRIES];
};

static void *fit_beside(void *argument)
{
    struct side *side = argument;
    s3cmtf_error *error = new_error();
    s3cmtf_model *model = small_model(&data, 6, side->threads, error);
    predict_all(model, side->threads, side->numbers, error);
    s3cmtf_model_free(model);
    s3cmtf_error_free(error);
    return NULL;
}

static void fits_run_side_by_side(void)
{
    static struct side sides[3] = {{1, {0}}, {2, {0}}, {3, {0}}};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, fit_beside, &sides[i]) == 0);
    for (int i = 0; i < 3; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(!memcmp(sides[0].numbers, sides[1].numbers, sizeof sides[0].numbers));
    CHECK(!memcmp(sides[0].numbers, sides[2].numbers, sizeof sides[0].numbers));
}

/* One model, read by eight threads. */
static const s3cmtf_model *shared_model;
static double expected[ENTRIES];

static void *read_model(void *argument)
{
    s3cmtf_error *error = new_error();
    double *numbers = malloc(sizeof *numbers * ENTRIES), row[3];
    (void)argument;
    for (int i = 0; i < 5; i++) {
        uint64_t dims[3];
        predict_all(shared_model, 1, numbers, error);
        CHECK(!memcmp(numbers, expected, sizeof expected));
        OK(s3cmtf_model_get_dims(shared_model, dims, 3, error));
        OK(s3cmtf_model_copy_row(shared_model, 0, (uint64_t)i % USERS, row, 3, S3CMTF_F64, error));
        FAILS(S3CMTF_BAD_ARGUMENT, s3cmtf_model_copy_row(shared_model, 9, 0, row, 3, S3CMTF_F64, error));
    }
    free(numbers);
    s3cmtf_error_free(error);
    return NULL;
}

static void eight_threads_read(void)
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

static void a_child_fits(void)
{
    s3cmtf_error *error = new_error();
    s3cmtf_model *model = small_model(&data, 2, 2, error); /* the parent has used everything */
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

/* The environment belongs to the host, whose other threads may change it at any time. */
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

static void the_environment_changes(void)
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

/* A signal during a fit goes to the host's handler, which may request a token. */
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

static void signals_are_the_hosts(void)
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

    /* While this thread is not to be disturbed no thread of the library takes its place. */
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
    fits_run_side_by_side();
    eight_threads_read();
    the_environment_changes();
    a_child_fits();
    /* A sanitizer makes frames several times as large. */
    a_small_stack_is_enough(argc > 1 ? (size_t)atol(argv[1]) : 64 * 1024);
    signals_are_the_hosts();
    only_threads(before);
    puts("ok");
    return 0;
}
