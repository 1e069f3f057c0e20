/* Cycles of creating, fitting, reading and freeing leave nothing behind: no memory, thread, mapping or descriptor. Neither do
 * 32 concurrent fits, and those whose algorithm is reproducible give the models that they give alone.
 * Arguments: a folder to write to, and the number of cycles. With "leak" as third argument the program does not free one
 * small object in 64 cycles, which must be found. */
#define _GNU_SOURCE
#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "folder.h"

enum { CONCURRENT = 32, ALGORITHMS = 5, OUTCOMES = 8, PERIOD = ALGORITHMS * 2 * 2 * OUTCOMES };

/* Largest permitted growth of resident memory, in bytes. The allocator keeps freed pages, so that resident memory grows a little
 * without a leak. A leak of 64 bytes per cycle exceeds the bound after 10,000 cycles. Allocations are counted exactly, and their
 * number and size may not grow at all. */
enum { RESIDENT_BOUND = 512 * 1024 };

static const char *const ALGORITHM[ALGORITHMS] = {"blocked", "opt", "naive", "als", "gibbs"};

static planted data;
static int leaks;

/* The number and size of the allocations that the process has not freed. These functions replace those of the C library for the
 * whole process, so they count every allocation of the program and of the library. */
static int64_t live_count, live_bytes; /* atomic */

#ifdef __GLIBC__

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *allocation);

static void *counted(void *allocation, int64_t sign)
{
    if (allocation != NULL) {
        __atomic_add_fetch(&live_count, sign, __ATOMIC_RELAXED);
        __atomic_add_fetch(&live_bytes, sign * (int64_t)malloc_usable_size(allocation), __ATOMIC_RELAXED);
    }
    return allocation;
}

void *malloc(size_t size)
{
    return counted(__libc_malloc(size), 1);
}

void *calloc(size_t count, size_t size)
{
    return counted(__libc_calloc(count, size), 1);
}

void *realloc(void *old, size_t size)
{
    counted(old, -1);
    void *grown = __libc_realloc(old, size);
    counted(grown == NULL && size > 0 ? old : grown, 1);
    return grown;
}

void *memalign(size_t alignment, size_t size)
{
    return counted(__libc_memalign(alignment, size), 1);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **allocation, size_t alignment, size_t size)
{
    *allocation = memalign(alignment, size);
    return *allocation == NULL ? 12 /* ENOMEM */ : 0;
}

void free(void *allocation)
{
    __libc_free(counted(allocation, -1));
}
#endif

/* What the process holds. */
typedef struct holdings {
    int64_t allocations, bytes;
    long resident; /* bytes */
    int threads, descriptors, mappings;
} holdings;

/* Returns the number of entries of a folder below /proc, or -1. */
static int entries_of(const char *path)
{
    int count = 0;
    DIR *files = opendir(path);
    if (files == NULL) return -1;
    for (const struct dirent *file; (file = readdir(files)) != NULL;) count += file->d_name[0] != '.';
    closedir(files);
    return count;
}

static void wait_for_threads(int count)
{
    /* A joined thread may be listed a little longer. */
    const struct timespec time = {0, 1000000};
    for (int i = 0; i < 10000 && entries_of("/proc/self/task") > count; i++) nanosleep(&time, NULL);
}

static holdings measure(void)
{
    holdings now = {0, 0, 0, 0, 0, 0};
    wait_for_threads(1);
    malloc_trim(0);
    now.threads = entries_of("/proc/self/task");
    now.descriptors = entries_of("/proc/self/fd");
    FILE *file = fopen("/proc/self/maps", "r");
    CHECK(file != NULL);
    for (int c; (c = getc(file)) != EOF;) now.mappings += c == '\n';
    CHECK(fclose(file) == 0);
    file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%*d %ld", &now.resident) == 1 && fclose(file) == 0);
    now.resident *= sysconf(_SC_PAGESIZE);
    now.allocations = live_count;
    now.bytes = live_bytes;
    return now;
}

/* Fails if the process holds more than before. */
static void require_no_growth(const char *after, holdings before, int print)
{
    const holdings now = measure();
    const long resident = now.resident - before.resident;
    const int has_grown = now.threads != before.threads || now.descriptors != before.descriptors ||
                          now.allocations > before.allocations || now.bytes > before.bytes || resident > RESIDENT_BOUND;
    if (has_grown || print)
        fprintf(has_grown ? stderr : stdout,
                "after %s: %+ld allocations, %+ld bytes in them, %+ld bytes resident, %+d threads, %+d descriptors, "
                "%+d mappings\n",
                after, (long)(now.allocations - before.allocations), (long)(now.bytes - before.bytes), resident,
                now.threads - before.threads, now.descriptors - before.descriptors, now.mappings - before.mappings);
    CHECK(!has_grown);
}

static s3cmtf_error *new_error(void)
{
    s3cmtf_error *fresh = NULL;
    CHECK(s3cmtf_error_new(&fresh) == S3CMTF_OK);
    return fresh;
}

static s3cmtf_options *options_of(int algorithm, uint64_t epochs, uint64_t seed, s3cmtf_error *error)
{
    s3cmtf_options *options = small_options(epochs, 2, error);
    OK(s3cmtf_options_set(options, "algorithm", ALGORITHM[algorithm], error));
    OK(s3cmtf_options_set_integer(options, "seed", seed, error));
    if (!strcmp(ALGORITHM[algorithm], "gibbs")) {
        OK(s3cmtf_options_set_integer(options, "burn_in", 1, error));
        OK(s3cmtf_options_set_integer(options, "samples", epochs, error));
    }
    return options;
}

static s3cmtf_problem *problem_of(const planted *p, int is_coupled, s3cmtf_error *error)
{
    if (is_coupled) return planted_problem(p, error);
    s3cmtf_coo *tensor = planted_tensor(p, error);
    s3cmtf_problem *problem = NULL;
    OK(s3cmtf_problem_new(tensor, &problem, error));
    s3cmtf_coo_free(tensor);
    return problem;
}

static s3cmtf_fit *fit_of(int algorithm, int is_coupled, uint64_t epochs, uint64_t seed, s3cmtf_error *error)
{
    s3cmtf_problem *problem = problem_of(&data, is_coupled, error);
    s3cmtf_options *options = options_of(algorithm, epochs, seed, error);
    s3cmtf_fit *fit = NULL;
    OK(s3cmtf_fit_new(problem, options, &fit, error));
    s3cmtf_problem_free(problem);
    s3cmtf_options_free(options);
    return fit;
}

/* Runs a fit on this thread or in the background; `model` is written on success. */
static int32_t run_fit(s3cmtf_fit *fit, int in_background, s3cmtf_model **model, s3cmtf_error *error)
{
    int32_t running = 1;
    if (!in_background) return s3cmtf_fit_run(fit, model, error);
    OK(s3cmtf_fit_start(fit, error));
    OK(s3cmtf_fit_wait(fit, -1, &running, error));
    CHECK(running == 0);
    return s3cmtf_fit_take(fit, model, error);
}

static void predict_all(const s3cmtf_model *model, double *to, s3cmtf_error *error)
{
    const void *const modes[3] = {data.user, data.film, data.month};
    const s3cmtf_indices cells = indices_u32(modes, ENTRIES);
    const s3cmtf_predict_request request = unclipped(2);
    OK(s3cmtf_model_predict(model, &cells, to, ENTRIES, S3CMTF_F64, &request, error));
}

/* Reads a model with the functions that allocate, and one that fails. */
static void read_model(const s3cmtf_model *model)
{
    static double predictions[ENTRIES], row[3];
    s3cmtf_options *options = NULL;
    s3cmtf_coo *tensor = planted_tensor(&data, error);
    predict_all(model, predictions, error);
    CHECK(evaluation_of(model, tensor, 2, error).rmse < 10);
    OK(s3cmtf_model_copy_row(model, 0, 7, row, 3, S3CMTF_F64, error));
    OK(s3cmtf_model_get_options(model, &options, error));
    FAILS(S3CMTF_BAD_ARGUMENT, s3cmtf_model_copy_row(model, 9, 0, row, 3, S3CMTF_F64, error));
    s3cmtf_options_free(options);
    s3cmtf_coo_free(tensor);
}

/* Uses a model through files. */
static void save_and_load(const s3cmtf_model *model)
{
    s3cmtf_model *loaded = NULL;
    s3cmtf_coo *tensor = planted_tensor(&data, error);
    OK(s3cmtf_model_save(model, in_folder("model.s3m"), error));
    OK(s3cmtf_coo_write(tensor, in_folder("tensor.coo"), 0, NULL, error));
    s3cmtf_coo_free(tensor);
    for (int32_t mode = S3CMTF_OPEN_MAPPED; mode <= S3CMTF_OPEN_PRIVATE; mode++) {
        tensor = open_coo(in_folder("tensor.coo"), mode);
        OK(s3cmtf_model_load(in_folder("model.s3m"), mode, &loaded, error));
        CHECK(evaluation_of(loaded, tensor, 1, error).rmse < 10);
        s3cmtf_model_free(loaded);
        s3cmtf_coo_free(tensor);
    }
    /* Text is converted to an unnamed file. Not a model: */
    s3cmtf_coo_free(open_coo(in_folder("movie_genre.tns"), S3CMTF_OPEN_MAPPED));
    FAILS(S3CMTF_BAD_FILE, s3cmtf_model_load(in_folder("tensor.coo"), S3CMTF_OPEN_MAPPED, &loaded, error));
}

/* New rows, rankings, concepts and clusters. */
static void discover(const s3cmtf_model *model)
{
    const uint64_t rows[2] = {1, 2};
    uint64_t best[20], counts[2];
    const void *const users[3] = {rows, NULL, NULL};
    s3cmtf_recommend_request recommend;
    s3cmtf_similar_request similar;
    s3cmtf_fold_in_request fold_in;
    s3cmtf_clusters_request cluster;
    s3cmtf_concepts *concepts = NULL;
    s3cmtf_clusters *clusters = NULL;
    s3cmtf_model *folded = NULL;
    s3cmtf_coo *tensor = planted_tensor(&data, error);
    memset(&recommend, 0, sizeof recommend);
    memset(&similar, 0, sizeof similar);
    memset(&fold_in, 0, sizeof fold_in);
    memset(&cluster, 0, sizeof cluster);
    recommend.size = sizeof recommend;
    recommend.mode = 1;
    recommend.queries = indices_u64(users, 2);
    recommend.threads = 2;
    OK(s3cmtf_model_recommend(model, &recommend, best, NULL, 20, counts, error));
    similar.size = sizeof similar;
    similar.rows = rows;
    similar.row_count = 2;
    OK(s3cmtf_model_similar(model, &similar, best, NULL, 20, counts, error));
    fold_in.size = sizeof fold_in;
    fold_in.tensor = tensor;
    fold_in.threads = 2;
    FAILS(S3CMTF_BAD_ARGUMENT, s3cmtf_model_fold_in(model, 0, &fold_in, &folded, NULL, NULL, error));
    fold_in.replace = 1;
    OK(s3cmtf_model_fold_in(model, 0, &fold_in, &folded, NULL, NULL, error));
    OK(s3cmtf_concepts_new(model, 1, NULL, &concepts, error));
    cluster.size = sizeof cluster;
    cluster.k = 3;
    cluster.threads = 2;
    OK(s3cmtf_clusters_new(model, 1, &cluster, &clusters, error));
    s3cmtf_concepts_free(concepts);
    s3cmtf_clusters_free(clusters);
    s3cmtf_model_free(folded);
    s3cmtf_coo_free(tensor);
}

static int32_t stop_after_first_epoch(const s3cmtf_progress *progress, void *user)
{
    (void)user;
    return progress->event == S3CMTF_EVENT_EPOCH;
}

/* One cycle. All combinations of algorithm, thread, coupling and outcome are among PERIOD consecutive ones. */
static void cycle(uint64_t number)
{
    const int algorithm = (int)(number % ALGORITHMS), in_background = (int)(number / ALGORITHMS % 2);
    const int is_coupled = (int)(number / ALGORITHMS / 2 % 2), outcome = (int)(number / ALGORITHMS / 4 % OUTCOMES);
    s3cmtf_cancel *cancel = NULL;
    s3cmtf_fit *fit = fit_of(algorithm, is_coupled, outcome == 4 ? 100000 : 2, number % 7, error);
    s3cmtf_model *model = NULL;
    switch (outcome) {
    case 0: /* success */
        OK(run_fit(fit, in_background, &model, error));
        read_model(model);
        break;
    case 1: /* files */
        OK(run_fit(fit, in_background, &model, error));
        save_and_load(model);
        break;
    case 2: /* resumed from a checkpoint */
        OK(s3cmtf_fit_set_checkpoint(fit, in_folder("fit.ckpt"), error));
        OK(run_fit(fit, in_background, &model, error));
        s3cmtf_model_free(model);
        s3cmtf_fit_free(fit);
        fit = fit_of(algorithm, is_coupled, 3, number % 7, error);
        OK(s3cmtf_fit_set_resume(fit, in_folder("fit.ckpt"), error));
        OK(run_fit(fit, in_background, &model, error));
        break;
    case 3: /* cancelled before it begins */
        OK(s3cmtf_cancel_new(&cancel, error));
        s3cmtf_cancel_request(cancel);
        OK(s3cmtf_fit_set_cancel(fit, cancel, error));
        FAILS(S3CMTF_CANCELLED, run_fit(fit, in_background, &model, error));
        break;
    case 4: /* cancelled while it runs: by a callback, or freed in the background */
        if (in_background) {
            OK(s3cmtf_fit_start(fit, error));
        } else {
            OK(s3cmtf_fit_set_callback(fit, stop_after_first_epoch, NULL, error));
            OK(s3cmtf_fit_run(fit, &model, error));
            CHECK(progress_of(fit, error).stop_reason == S3CMTF_STOP_CANCELLED);
        }
        break;
    case 5: { /* fails: a value is not a number */
        static planted damaged;
        s3cmtf_options *options = options_of(algorithm, 2, 0, error);
        damaged = data;
        damaged.stars[ENTRIES / 2] = (float)NAN;
        s3cmtf_problem *problem = problem_of(&damaged, is_coupled, error);
        s3cmtf_fit_free(fit);
        OK(s3cmtf_fit_new(problem, options, &fit, error));
        s3cmtf_problem_free(problem);
        FAILS(S3CMTF_BAD_ENTRY, run_fit(fit, in_background, &model, error));
        FAILS(S3CMTF_BAD_ARGUMENT, s3cmtf_options_set(options, "rank", "many", error));
        s3cmtf_options_free(options);
        break;
    }
    case 6: /* fails: the checkpoint cannot be written */
        OK(s3cmtf_fit_set_checkpoint(fit, in_folder("no such folder/fit.ckpt"), error));
        FAILS(S3CMTF_BAD_FILE, run_fit(fit, in_background, &model, error));
        break;
    default:
        OK(run_fit(fit, in_background, &model, error));
        discover(model);
    }
    s3cmtf_model_free(model);
    s3cmtf_cancel_free(cancel);
    s3cmtf_fit_free(fit);
    if (leaks && number % 64 == 0) OK(s3cmtf_cancel_new(&cancel, error));
}

/* A fit of its own host thread. */
typedef struct concurrent_fit {
    int number;
    double predictions[ENTRIES];
} concurrent_fit;

static void *fit_alone(void *argument)
{
    concurrent_fit *of = argument;
    s3cmtf_error *error = new_error();
    s3cmtf_model *model = NULL;
    s3cmtf_fit *fit = fit_of(of->number % ALGORITHMS, of->number / 10 % 2, 4, (uint64_t)of->number, error);
    OK(run_fit(fit, of->number / ALGORITHMS % 2, &model, error));
    predict_all(model, of->predictions, error);
    s3cmtf_model_free(model);
    s3cmtf_fit_free(fit);
    s3cmtf_error_free(error);
    return NULL;
}

static concurrent_fit alone[CONCURRENT], together[CONCURRENT];

static void fit_concurrently(void)
{
    pthread_t threads[CONCURRENT];
    for (int i = 0; i < CONCURRENT; i++) {
        together[i].number = i;
        CHECK(pthread_create(&threads[i], NULL, fit_alone, &together[i]) == 0);
    }
    for (int i = 0; i < CONCURRENT; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < CONCURRENT; i++) {
        const char *algorithm = ALGORITHM[i % ALGORITHMS];
        const int is_reproducible = strcmp(algorithm, "opt") && strcmp(algorithm, "naive");
        CHECK(!is_reproducible || !memcmp(alone[i].predictions, together[i].predictions, sizeof alone[i].predictions));
    }
}

int main(int argc, char **argv)
{
    CHECK(argc >= 3);
    const uint64_t cycles = (uint64_t)atol(argv[2]);
    const int is_long = cycles >= 10000;
    leaks = argc == 4 && !strcmp(argv[3], "leak");
#ifndef __GLIBC__
    puts("skipped: allocations are counted with glibc only");
    return 0;
#endif
    if (entries_of("/proc/self/task") < 1) {
        puts("skipped: this system has no /proc");
        return 0;
    }
    /* Free memory that the allocator keeps for other threads would depend on their number at one time, and this buffer would
     * count as an allocation. */
    static char output[BUFSIZ];
    CHECK(mallopt(M_ARENA_MAX, 1) == 1 && setvbuf(stdout, output, _IOLBF, sizeof output) == 0);
    start(2, argv);
    plant(&data);
    for (int i = 0; i < CONCURRENT; i++) {
        alone[i].number = i;
        fit_alone(&alone[i]);
    }
    /* Allocations that the process keeps (thread-local storage, buffers of the C library) are made here. */
    fit_concurrently();
    for (uint64_t i = 0; i < PERIOD; i++) cycle(i);
    const holdings before = measure();
    for (uint64_t i = 0; i < cycles; i++) cycle(i);
    require_no_growth("the cycles", before, is_long);
    for (int i = 0; i < (is_long ? 10 : 1); i++) fit_concurrently();
    require_no_growth("the concurrent fits", before, is_long);
    s3cmtf_error_free(error);
    puts("ok");
    return 0;
}
