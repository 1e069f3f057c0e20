/* Programs compiled with an older or a newer header: structs that begin with their size may be shorter or longer than those
 * of the library. The argument is a folder to write to. */
#include <stddef.h>

#include "check.h"

enum { LATER = 16 }; /* bytes of fields that a newer header might add */

static s3cmtf_error *error;

/* Passes an input struct of every size. `call` uses the pointer `in` to a struct of type `type`, which begins as `valid`;
 * `undo` follows each call that succeeds. An older header ends before `last_field`, which `valid` does not use. */
#define INPUT(type, valid, last_field, call, undo)                                                                    \
    do {                                                                                                              \
        union {                                                                                                       \
            type known;                                                                                               \
            unsigned char bytes[sizeof(type) + LATER];                                                                \
        } memory;                                                                                                     \
        const type *in = &memory.known;                                                                               \
        memset(&memory, 0, sizeof memory);                                                                            \
        memory.known = (valid);                                                                                       \
        memory.known.size = 0; /* not set */                                                                          \
        FAILS(S3CMTF_BAD_ARGUMENT, call);                                                                             \
        CHECK(strstr(s3cmtf_error_message(error), "sizeof") != NULL);                                                 \
        memory.known.size = sizeof memory.known.size - 1;                                                             \
        FAILS(S3CMTF_BAD_ARGUMENT, call);                                                                             \
        memory.known.size = UINT64_MAX;                                                                               \
        FAILS(S3CMTF_BAD_ARGUMENT, call);                                                                             \
        memory.known.size = sizeof(type);                                                                             \
        OK(call);                                                                                                     \
        undo;                                                                                                         \
        /* Newer header, fields of which the library has none: accepted if they are 0. */                             \
        memory.known.size = sizeof(type) + LATER;                                                                     \
        OK(call);                                                                                                     \
        undo;                                                                                                         \
        memory.bytes[sizeof(type) + LATER - 1] = 1;                                                                   \
        FAILS(S3CMTF_BAD_ARGUMENT, call);                                                                             \
        CHECK(strstr(s3cmtf_error_message(error), "newer") != NULL);                                                  \
        /* The bytes beyond the size are not read. */                                                                 \
        memory.known.size = sizeof(type) + LATER - 1;                                                                 \
        OK(call);                                                                                                     \
        undo;                                                                                                         \
        /* Older header: a missing field counts as 0, whatever its bytes are. */                                      \
        memory.known.size = offsetof(type, last_field);                                                               \
        memset(memory.bytes + offsetof(type, last_field), 0x5a, sizeof memory - offsetof(type, last_field));          \
        OK(call);                                                                                                     \
        undo;                                                                                                         \
        in = (const type *)(const void *)(memory.bytes + 4); /* not aligned */                                        \
        FAILS(S3CMTF_BAD_ARGUMENT, call);                                                                             \
    } while (0)

/* Passes an output struct of every size. `call` uses the pointer `to`. An older header ends before `last_field`, which follows
 * `kept_field`. */
#define OUTPUT(type, kept_field, last_field, call)                                                                    \
    do {                                                                                                              \
        union {                                                                                                       \
            type known;                                                                                               \
            unsigned char bytes[sizeof(type) + LATER];                                                                \
        } memory;                                                                                                     \
        unsigned char untouched[sizeof(type) + LATER];                                                                \
        const uint64_t refused[] = {0, sizeof(uint64_t) - 1};                                                         \
        type *to = &memory.known, whole;                                                                              \
        memset(untouched, 0x5a, sizeof untouched);                                                                    \
        for (int i = 0; i < 2; i++) {                                                                                 \
            memset(&memory, 0x5a, sizeof memory);                                                                     \
            memory.known.size = refused[i];                                                                           \
            FAILS(S3CMTF_BAD_ARGUMENT, call);                                                                         \
            CHECK(strstr(s3cmtf_error_message(error), "sizeof") != NULL && memory.known.size == refused[i]);          \
            CHECK(!memcmp(memory.bytes + sizeof(uint64_t), untouched, sizeof(type) + LATER - sizeof(uint64_t)));      \
        }                                                                                                             \
        memory.known.size = sizeof(type);                                                                             \
        OK(call);                                                                                                     \
        CHECK(memory.known.size == sizeof(type) && !memcmp(memory.bytes + sizeof(type), untouched, LATER));           \
        whole = memory.known;                                                                                         \
        /* Newer header: later fields are not written, and the size says so. */                                       \
        memset(&memory, 0x5a, sizeof memory);                                                                         \
        memory.known.size = sizeof(type) + LATER;                                                                     \
        OK(call);                                                                                                     \
        CHECK(memory.known.size == sizeof(type) && !memcmp(memory.bytes + sizeof(type), untouched, LATER));           \
        /* Older header: nothing is written beyond the size. */                                                       \
        const size_t shorter = offsetof(type, last_field);                                                            \
        memset(&memory, 0x5a, sizeof memory);                                                                         \
        memory.known.size = shorter;                                                                                  \
        OK(call);                                                                                                     \
        CHECK(memory.known.size == shorter && !memcmp(memory.bytes + shorter, untouched, sizeof(type) - shorter));    \
        CHECK(!memcmp(&memory.known.kept_field, &whole.kept_field, sizeof whole.kept_field));                         \
        /* The size alone. */                                                                                         \
        memset(&memory, 0x5a, sizeof memory);                                                                         \
        memory.known.size = sizeof(uint64_t);                                                                         \
        OK(call);                                                                                                     \
        CHECK(memory.known.size == sizeof(uint64_t));                                                                 \
        CHECK(!memcmp(memory.bytes + sizeof(uint64_t), untouched, sizeof(type) + LATER - sizeof(uint64_t)));          \
        to = (type *)(void *)(memory.bytes + 4); /* not aligned */                                                    \
        FAILS(S3CMTF_BAD_ARGUMENT, call);                                                                             \
    } while (0)

static void input_structs(const char *folder, const planted *data, const s3cmtf_model *model, const s3cmtf_coo *tensor)
{
    const void *const modes[3] = {data->user, data->film, data->month};
    const s3cmtf_entries entries = entries_f32(3, DIMS, indices_u32(modes, ENTRIES), data->stars);
    s3cmtf_coo *coo = NULL, *genres = planted_genres(data, error);
    s3cmtf_problem *problem = planted_problem(data, error);
    s3cmtf_tune *tune = NULL;
    s3cmtf_model *made = NULL;
    s3cmtf_concepts *concepts = NULL;
    s3cmtf_clusters *clusters = NULL;
    char path[1024], prefix[1024];
    double numbers[100];
    uint64_t rows[100], counts[4];

    /* Without weights their type is not used. */
    INPUT(s3cmtf_entries, entries, weight_type, s3cmtf_coo_new(in, &coo, error), s3cmtf_coo_free(coo));
    INPUT(s3cmtf_entries, entries, weight_type, s3cmtf_coo_new_view(in, &coo, error), s3cmtf_coo_free(coo));
    INPUT(s3cmtf_entries, entries, weight_type, s3cmtf_fit_entries(in, "preset=paper rank=2 epochs=1 threads=1", &made, error),
          s3cmtf_model_free(made));

    snprintf(path, sizeof path, "%s/sizes.coo", folder);
    snprintf(prefix, sizeof prefix, "%s/sizes", folder);
    OK(s3cmtf_coo_write(tensor, path, 0, NULL, error));
    OK(s3cmtf_coo_open(path, S3CMTF_OPEN_PRIVATE, NULL, NULL, &coo, error));
    s3cmtf_split_request split = {.size = sizeof split, .test_fraction = 0.2};
    INPUT(s3cmtf_split_request, split, cancel, s3cmtf_coo_split(coo, prefix, in, error), (void)0);
    /* Values of a request that a split refuses. */
    const double fractions[] = {-0.1, 1.5, (double)NAN};
    for (int i = 0; i < 3; i++) {
        s3cmtf_split_request wrong = split;
        wrong.test_fraction = fractions[i];
        FAILS(S3CMTF_BAD_ARGUMENT, s3cmtf_coo_split(coo, prefix, &wrong, error));
        wrong = split;
        wrong.valid_fraction = fractions[i];
        FAILS(S3CMTF_BAD_ARGUMENT, s3cmtf_coo_split(coo, prefix, &wrong, error));
    }
    const uint64_t wrong_modes[][2] = {{3, 2}, {0, 3}, {1, 1}, {UINT64_MAX, 0}};
    for (int i = 0; i < 4; i++) {
        split.latest = 1;
        split.row_mode = wrong_modes[i][0];
        split.time_mode = wrong_modes[i][1];
        FAILS(S3CMTF_BAD_ARGUMENT, s3cmtf_coo_split(coo, prefix, &split, error));
    }
    split.latest = 2;
    FAILS(S3CMTF_BAD_ARGUMENT, s3cmtf_coo_split(coo, prefix, &split, error));
    s3cmtf_coo_free(coo);

    const s3cmtf_coupling coupling = coupling_of(S3CMTF_MATRIX_OBSERVED, 1);
    INPUT(s3cmtf_coupling, coupling, penalty, s3cmtf_problem_add_matrix(problem, 1, genres, in, error), (void)0);

    const s3cmtf_tune_request tuning = {.size = sizeof tuning, .trials = 2};
    INPUT(s3cmtf_tune_request, tuning, valid, s3cmtf_tune_new(problem, NULL, in, &tune, error), s3cmtf_tune_free(tune));

    const s3cmtf_indices cells = indices_u32(modes, 4);
    const s3cmtf_predict_request plain = unclipped(1);
    INPUT(s3cmtf_predict_request, plain, cancel,
          s3cmtf_model_predict(model, &cells, numbers, 4, S3CMTF_F64, in, error), (void)0);
    static double all[ENTRIES];
    INPUT(s3cmtf_predict_request, plain, cancel,
          s3cmtf_model_predict_coo(model, tensor, all, ENTRIES, S3CMTF_F64, in, error), (void)0);

    const s3cmtf_fold_in_request fold = {.size = sizeof fold, .tensor = tensor, .replace = 1, .threads = 1};
    INPUT(s3cmtf_fold_in_request, fold, cancel, s3cmtf_model_fold_in(model, 0, in, &made, NULL, NULL, error),
          s3cmtf_model_free(made));

    const void *const queries[3] = {data->user, NULL, data->month};
    const s3cmtf_recommend_request recommend = {
        .size = sizeof recommend, .mode = 1, .top = 3, .queries = indices_u32(queries, 4), .threads = 1};
    INPUT(s3cmtf_recommend_request, recommend, cancel,
          s3cmtf_model_recommend(model, in, rows, numbers, 100, counts, error), (void)0);

    const uint64_t films[2] = {0, 1};
    const s3cmtf_similar_request similar = {.size = sizeof similar, .mode = 1, .rows = films, .row_count = 2, .threads = 1};
    INPUT(s3cmtf_similar_request, similar, cancel,
          s3cmtf_model_similar(model, in, rows, numbers, 100, counts, error), (void)0);

    s3cmtf_coo *empty = empty_tensor(error);
    s3cmtf_ranking ranking;
    ranking.size = sizeof ranking;
    const s3cmtf_ranking_request rank = {.size = sizeof rank, .mode = 1, .threads = 1};
    INPUT(s3cmtf_ranking_request, rank, cancel,
          s3cmtf_model_evaluate_ranking(model, tensor, empty, in, &ranking, error), (void)0);
    s3cmtf_coo_free(empty);

    const s3cmtf_concepts_request describe = {.size = sizeof describe, .top = 2};
    INPUT(s3cmtf_concepts_request, describe, given_modes, s3cmtf_concepts_new(model, 1, in, &concepts, error),
          s3cmtf_concepts_free(concepts));

    const s3cmtf_clusters_request cluster = {.size = sizeof cluster, .k = 2, .restarts = 1, .threads = 1};
    INPUT(s3cmtf_clusters_request, cluster, cancel, s3cmtf_clusters_new(model, 1, in, &clusters, error),
          s3cmtf_clusters_free(clusters));

    s3cmtf_problem_free(problem);
    s3cmtf_coo_free(genres);
}

static void output_structs(const planted *data, const s3cmtf_model *model, const s3cmtf_coo *tensor)
{
    s3cmtf_coo *groups = planted_groups(data, error), *empty = empty_tensor(error);
    OUTPUT(s3cmtf_coo_info, order, count, s3cmtf_coo_get_info(tensor, to, error));
    OUTPUT(s3cmtf_coo_summary, max, mean, s3cmtf_coo_summarize(tensor, NULL, to, NULL, 0, error));
    OUTPUT(s3cmtf_coo_faults, out_of_range, not_finite, s3cmtf_coo_check(tensor, NULL, to, error));
    OUTPUT(s3cmtf_option_info, default_value, help, s3cmtf_option_get_info(0, to, error));
    OUTPUT(s3cmtf_model_info, order, matrices, s3cmtf_model_get_info(model, to, error));
    OUTPUT(s3cmtf_model_mode, dim, rows, s3cmtf_model_get_mode(model, 1, to, error));
    OUTPUT(s3cmtf_model_matrix, kind, weight, s3cmtf_model_get_matrix(model, 0, to, error));
    OUTPUT(s3cmtf_progress, epoch, epochs, s3cmtf_model_get_epoch(model, 0, to, error));
    OUTPUT(s3cmtf_evaluation, mae, clipped_rmse, s3cmtf_model_evaluate(model, tensor, 1, NULL, to, error));
    const s3cmtf_ranking_request rank = {.size = sizeof rank, .mode = 1, .threads = 1};
    OUTPUT(s3cmtf_ranking, hit_rate, recall, s3cmtf_model_evaluate_ranking(model, tensor, empty, &rank, to, error));

    s3cmtf_fit *fit = small_fit(data, 1, 1, error);
    OUTPUT(s3cmtf_progress, stop_reason, kernel, s3cmtf_fit_get_progress(fit, to, error));
    s3cmtf_fit_free(fit);

    s3cmtf_concepts *concepts = NULL;
    OK(s3cmtf_concepts_new(model, 1, NULL, &concepts, error));
    OUTPUT(s3cmtf_concept, sign_flipped, largest_rows, s3cmtf_concepts_get(concepts, 0, to, error));
    OUTPUT(s3cmtf_concept_column, column, share, s3cmtf_concepts_get_column(concepts, 0, S3CMTF_LARGEST, 0, to, error));
    s3cmtf_concepts_free(concepts);

    const s3cmtf_coo *const matrices[1] = {groups};
    const s3cmtf_clusters_request request = {
        .size = sizeof request, .k = 3, .max_k = 3, .references = 2, .matrices = matrices, .matrix_count = 1, .threads = 1};
    s3cmtf_clusters *clusters = NULL;
    int labelled = 0;
    OK(s3cmtf_clusters_new(model, 1, &request, &clusters, error));
    OUTPUT(s3cmtf_clusters_info, rows, explained_variance, s3cmtf_clusters_get_info(clusters, to, error));
    OUTPUT(s3cmtf_cluster, radius, members, s3cmtf_clusters_get(clusters, 0, to, error));
    OUTPUT(s3cmtf_gap, gap, standard_error, s3cmtf_clusters_get_gap(clusters, 0, to, error));
    for (uint64_t c = 0; c < 3 && !labelled; c++) {
        s3cmtf_cluster info;
        info.size = sizeof info;
        OK(s3cmtf_clusters_get(clusters, c, &info, error));
        if (info.labels == 0) continue;
        labelled = 1;
        OUTPUT(s3cmtf_cluster_label, rows_overall, lift, s3cmtf_clusters_get_label(clusters, c, 0, to, error));
    }
    CHECK(labelled);
    s3cmtf_clusters_free(clusters);

    s3cmtf_problem *problem = planted_problem(data, error);
    s3cmtf_options *options = small_options(1, 1, error);
    s3cmtf_tune *tune = NULL;
    const s3cmtf_tune_request two = {.size = sizeof two, .trials = 2, .rungs = 1};
    OK(s3cmtf_tune_new(problem, options, &two, &tune, error));
    OK(s3cmtf_tune_run(tune, error));
    OUTPUT(s3cmtf_trial, epochs, valid_rmse, s3cmtf_tune_get_trial(tune, 0, to, error));
    s3cmtf_tune_free(tune);
    s3cmtf_options_free(options);
    s3cmtf_problem_free(problem);
    s3cmtf_coo_free(groups);
    s3cmtf_coo_free(empty);
}

int main(int argc, char **argv)
{
    static planted data;
    CHECK(argc == 2);
    plant(&data);
    OK(s3cmtf_error_new(&error));
    s3cmtf_coo *tensor = planted_tensor(&data, error);
    s3cmtf_model *model = small_model(&data, 3, 1, error);
    input_structs(argv[1], &data, model, tensor);
    output_structs(&data, model, tensor);
    s3cmtf_model_free(model);
    s3cmtf_coo_free(tensor);
    s3cmtf_error_free(error);
    puts("ok");
    return 0;
}
