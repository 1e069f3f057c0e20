/* Loads, uses and unloads the library repeatedly; no thread remains. The argument is the shared library, which this program
 * is not linked with.
 *
 * A thread that called the library runs destructors of it when it ends, and the C library keeps the library loaded until
 * then. Each round uses a thread of its own, so that dlclose() unloads. */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#include "check.h"

/* The functions this program uses, looked up in each round. */
#define FUNCTIONS(X)                                                                                               \
    X(s3cmtf_error_new) X(s3cmtf_error_free) X(s3cmtf_error_message) X(s3cmtf_coo_new) X(s3cmtf_coo_free)           \
    X(s3cmtf_problem_new) X(s3cmtf_problem_free) X(s3cmtf_options_new) X(s3cmtf_options_set) X(s3cmtf_options_free) \
    X(s3cmtf_fit_new) X(s3cmtf_fit_start) X(s3cmtf_fit_wait) X(s3cmtf_fit_take) X(s3cmtf_fit_free)                  \
    X(s3cmtf_model_evaluate) X(s3cmtf_model_free) X(s3cmtf_status_name)

#define MEMBER(name) __typeof__(&name) name;
static struct {
    FUNCTIONS(MEMBER)
} lib;

static int threads_now(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL) return 1;
    while (readdir(tasks) != NULL) count++;
    closedir(tasks);
    return count - 2;
}

#undef OK
#define OK(call) CHECK((call) == S3CMTF_OK)

static double use(const planted *p)
{
    s3cmtf_error *error = NULL;
    s3cmtf_coo *coo = NULL;
    s3cmtf_problem *problem = NULL;
    s3cmtf_options *options = NULL;
    s3cmtf_fit *fit = NULL;
    s3cmtf_model *model = NULL;
    int32_t running = 1;
    const void *const modes[3] = {p->user, p->film, p->month};
    const s3cmtf_entries entries = entries_f32(3, DIMS, indices_u32(modes, ENTRIES), p->stars);
    s3cmtf_evaluation evaluation;
    evaluation.size = sizeof evaluation;
    OK(lib.s3cmtf_error_new(&error));
    OK(lib.s3cmtf_coo_new(&entries, &coo, error));
    OK(lib.s3cmtf_problem_new(coo, &problem, error));
    /* The preset estimates nothing before the first epoch, which takes most of the time under memcheck. */
    OK(lib.s3cmtf_options_new("paper", &options, error));
    OK(lib.s3cmtf_options_set(options, "rank", "3", error));
    OK(lib.s3cmtf_options_set(options, "epochs", "2", error));
    OK(lib.s3cmtf_options_set(options, "threads", "2", error));
    CHECK(lib.s3cmtf_options_set(options, "epochs", "many", error) == S3CMTF_BAD_ARGUMENT);
    CHECK(strstr(lib.s3cmtf_error_message(error), "epochs") != NULL);
    OK(lib.s3cmtf_fit_new(problem, options, &fit, error));
    OK(lib.s3cmtf_fit_start(fit, error));
    OK(lib.s3cmtf_fit_wait(fit, -1, &running, error));
    OK(lib.s3cmtf_fit_take(fit, &model, error));
    OK(lib.s3cmtf_model_evaluate(model, coo, 2, NULL, &evaluation, error));
    lib.s3cmtf_model_free(model);
    lib.s3cmtf_fit_free(fit);
    lib.s3cmtf_options_free(options);
    lib.s3cmtf_problem_free(problem);
    lib.s3cmtf_coo_free(coo);
    lib.s3cmtf_error_free(error);
    return evaluation.rmse;
}

static planted p;
static double rmse;

static void *use_in_thread(void *argument)
{
    rmse = use(&p);
    return argument;
}

int main(int argc, char **argv)
{
    const int before = threads_now();
    double first = 0;
    CHECK(argc == 2);
    plant(&p);
    for (int round = 0; round < 5; round++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        CHECK(library != NULL);
#define LOOK_UP(name)                                        \
    {                                                        \
        void *found = dlsym(library, #name);                 \
        CHECK(found != NULL);                                \
        memcpy(&lib.name, &found, sizeof found);             \
    }
        FUNCTIONS(LOOK_UP)
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, use_in_thread, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(round == 0 || rmse == first);
        first = rmse;
        CHECK(dlclose(library) == 0);
        CHECK(dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) == NULL);
        const struct timespec time = {0, 1000000};
        for (int i = 0; i < 10000 && threads_now() != before; i++) nanosleep(&time, NULL);
        CHECK(threads_now() == before);
    }
    puts("ok");
    return 0;
}
