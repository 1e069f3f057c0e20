/* Recommendations, similar rows, ranking measures, concepts, clusters and names. The argument is a folder to write to. */
#include "check.h"

static s3cmtf_error *error;

/* Returns whether a user has an entry with a film among the first half of the entries. */
static int saw(const planted *data, uint64_t user, uint64_t film)
{
    for (int i = 0; i < ENTRIES / 2; i++)
        if (data->user[i] == user && data->film[i] == film) return 1;
    return 0;
}

/* Predicts one cell without clipping. */
static double predict_unclipped(const s3cmtf_model *model, const uint64_t *cell)
{
    const void *const modes[3] = {&cell[0], &cell[1], &cell[2]};
    const s3cmtf_indices indices = indices_u64(modes, 1);
    const s3cmtf_predict_request request = unclipped(1);
    double x = 0;
    OK(s3cmtf_model_predict(model, &indices, &x, 1, S3CMTF_F64, &request, error));
    return x;
}

/* Each list has the films with the largest predictions, in descending order. */
static void recommendations(const planted *data, const s3cmtf_model *model, const s3cmtf_coo *coo)
{
    enum { QUERIES = 20, TOP = 4 };
    uint64_t users[QUERIES], months[QUERIES], rows[QUERIES * TOP], again[QUERIES * TOP], counts[QUERIES];
    double scores[QUERIES * TOP];
    for (uint64_t q = 0; q < QUERIES; q++) users[q] = q, months[q] = q % MONTHS;
    const void *const modes[3] = {users, NULL, months};
    s3cmtf_recommend_request request = {.size = sizeof request,
                                        .mode = 1,
                                        .top = TOP,
                                        .queries = indices_u64(modes, QUERIES),
                                        .exclude = coo,
                                        .exclude_mode = 0,
                                        .threads = 1};
    OK(s3cmtf_model_recommend(model, &request, rows, scores, QUERIES * TOP, counts, error));
    for (uint64_t q = 0; q < QUERIES; q++) {
        uint64_t left = 0;
        for (uint64_t film = 0; film < FILMS; film++) {
            const uint64_t cell[3] = {users[q], film, months[q]};
            if (saw(data, q, film)) continue;
            left++;
            const double x = predict_unclipped(model, cell);
            int listed = 0;
            for (uint64_t k = 0; k < counts[q]; k++)
                if (rows[q * TOP + k] == film) {
                    listed = 1;
                    CHECK(scores[q * TOP + k] == x);
                }
            CHECK(listed || x <= scores[q * TOP + counts[q] - 1] + 1e-5);
        }
        CHECK(counts[q] == (left < TOP ? left : TOP));
        for (uint64_t k = 1; k < counts[q]; k++) CHECK(scores[q * TOP + k] <= scores[q * TOP + k - 1]);
    }
    /* The result is independent of the thread count and of the stride. Scores may be left out. */
    for (uint64_t threads = 2; threads < 4; threads++) {
        memset(again, 0, sizeof again);
        request.threads = threads;
        request.queries.stride = 1;
        OK(s3cmtf_model_recommend(model, &request, again, NULL, QUERIES * TOP, counts, error));
        for (uint64_t q = 0; q < QUERIES; q++)
            CHECK(!memcmp(again + q * TOP, rows + q * TOP, sizeof *rows * counts[q]));
    }
    /* A length of 0 is 10. */
    uint64_t many[10];
    request.exclude = NULL;
    request.queries.count = 1;
    request.top = 0;
    OK(s3cmtf_model_recommend(model, &request, many, NULL, 10, counts, error));
    CHECK(counts[0] == 10);
    FAILS(S3CMTF_BUFFER_TOO_SMALL, s3cmtf_model_recommend(model, &request, many, NULL, 9, counts, error));
    /* One-based, averaged over months, with three candidates of which one is excluded. */
    const uint64_t user[1] = {3}, candidates[3] = {1, 2, 3}, without[2] = {2, 900};
    const void *const one[3] = {user, NULL, NULL};
    request.top = TOP;
    request.queries = indices_u64(one, 1);
    request.queries.base = 1;
    request.candidates = candidates;
    request.candidate_count = 3;
    request.exclude_rows = without;
    request.exclude_row_count = 2;
    OK(s3cmtf_model_recommend(model, &request, rows, scores, TOP, counts, error));
    CHECK(counts[0] == 2 && rows[0] + rows[1] == 4);
    /* An empty list of candidates, and no queries. */
    request.candidate_count = request.exclude_row_count = 0;
    OK(s3cmtf_model_recommend(model, &request, rows, scores, TOP, counts, error));
    CHECK(counts[0] == 0);
    request.candidates = NULL;
    request.queries.count = 0;
    OK(s3cmtf_model_recommend(model, &request, NULL, NULL, 0, NULL, error));
}

static void similar(const s3cmtf_model *model)
{
    const uint64_t films[2] = {0, 7};
    uint64_t rows[2 * FILMS], counts[2];
    double cosines[2 * FILMS];
    s3cmtf_similar_request request = {
        .size = sizeof request, .mode = 1, .top = FILMS, .rows = films, .row_count = 2, .threads = 2};
    OK(s3cmtf_model_similar(model, &request, rows, cosines, 2 * FILMS, counts, error));
    for (uint64_t q = 0; q < 2; q++) {
        CHECK(counts[q] == FILMS - 1);
        for (uint64_t k = 0; k < counts[q]; k++) {
            CHECK(rows[q * FILMS + k] != films[q] && fabs(cosines[q * FILMS + k]) <= 1);
            CHECK(k == 0 || cosines[q * FILMS + k] <= cosines[q * FILMS + k - 1]);
        }
    }
    /* The planted films differ only in scale, which does not affect the cosine. */
    CHECK(cosines[0] > 0.9);
    request.top = 0; /* means 10 */
    uint64_t ten[20];
    OK(s3cmtf_model_similar(model, &request, ten, NULL, 20, counts, error));
    CHECK(counts[0] == 10 && counts[1] == 10 && !memcmp(ten + 10, rows + FILMS, sizeof *ten * 10));
}

static s3cmtf_ranking ranking_of(const s3cmtf_model *model, const s3cmtf_coo *test, const s3cmtf_coo *train,
                                 const s3cmtf_ranking_request *request)
{
    s3cmtf_ranking ranking;
    ranking.size = sizeof ranking;
    OK(s3cmtf_model_evaluate_ranking(model, test, train, request, &ranking, error));
    CHECK(ranking.size == sizeof ranking);
    return ranking;
}

static void rankings(const s3cmtf_model *model, const s3cmtf_coo *test, const s3cmtf_coo *train)
{
    s3cmtf_coo *empty = empty_tensor(error);
    s3cmtf_ranking_request request = {.size = sizeof request, .mode = 1, .user_mode = 0, .length = 3, .threads = 1};
    s3cmtf_ranking found = ranking_of(model, test, train, &request);
    CHECK(found.users > 0 && found.users <= USERS);
    const double shares[6] = {found.hit_rate, found.recall, found.ndcg, found.popularity_hit_rate,
                              found.popularity_recall, found.popularity_ndcg};
    for (int k = 0; k < 6; k++) CHECK(shares[k] >= 0 && shares[k] <= 1);
    /* The default length is 10. */
    request.length = 10;
    found = ranking_of(model, test, train, &request);
    request.length = 0;
    s3cmtf_ranking by_default = ranking_of(model, test, train, &request);
    CHECK(!memcmp(&found, &by_default, sizeof found));
    /* A list of all films contains all relevant ones if no training entry excludes any. */
    request.length = FILMS;
    request.threads = 2;
    found = ranking_of(model, test, empty, &request);
    CHECK(found.users == USERS && found.hit_rate == 1 && found.recall == 1 && found.ndcg <= 1);
    s3cmtf_coo_free(empty);
    /* The smallest relevant value counts only with has_min_relevant_value. */
    request.length = 3;
    request.min_relevant_value = 1e9;
    CHECK(ranking_of(model, test, train, &request).users > 0);
    request.has_min_relevant_value = 1;
    CHECK(ranking_of(model, test, train, &request).users == 0);
}

static void names_of_rows(const char *folder)
{
    char path[600], name[64];
    snprintf(path, sizeof path, "%s/films.mode2.tsv", folder);
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    fputs("index\tname\n1\tToy Story\n3\tHeat\n", file);
    fclose(file);
    s3cmtf_names *names = NULL, *none = NULL;
    OK(s3cmtf_names_open(path, &names, error));
    uint64_t count = 0, row = 9, needed = 0;
    OK(s3cmtf_names_get_count(names, &count, error));
    CHECK(count == 3);
    OK(s3cmtf_names_get(names, 2, NULL, 0, &needed, error));
    OK(s3cmtf_names_get(names, 2, name, sizeof name, NULL, error));
    CHECK(needed == 5 && !strcmp(name, "Heat"));
    OK(s3cmtf_names_get(names, 1, name, sizeof name, &needed, error));
    CHECK(needed == 1 && !*name);
    OK(s3cmtf_names_find(names, "Toy Story", &row, error));
    CHECK(row == 0);
    CHECK(s3cmtf_names_find(names, "Toy Stroy", &row, error) == S3CMTF_BAD_ARGUMENT);
    CHECK(strstr(s3cmtf_error_message(error), "did you mean \"Toy Story\"") != NULL);
    s3cmtf_names_free(names);
    snprintf(path, sizeof path, "%s/films.train.coo", folder);
    OK(s3cmtf_names_open_beside(path, 1, &names, error));
    OK(s3cmtf_names_open_beside(path, 0, &none, error));
    CHECK(names != NULL && none == NULL);
    s3cmtf_names_free(names);
}

static s3cmtf_concept concept_of(const s3cmtf_concepts *concepts, uint64_t index)
{
    s3cmtf_concept info;
    info.size = sizeof info;
    OK(s3cmtf_concepts_get(concepts, index, &info, error));
    CHECK(info.size == sizeof info);
    return info;
}

/* The contributions of the concepts, the mean and the biases add up to predictions. */
static void concepts_of_films(const s3cmtf_model *model)
{
    const uint64_t modes[2] = {0, 2}, rows[2] = {3, 1};
    const s3cmtf_concepts_request request = {
        .size = sizeof request, .top = FILMS, .given_modes = modes, .given_rows = rows, .given_count = 2};
    s3cmtf_concepts *concepts = NULL;
    uint64_t count = 0, films[FILMS];
    double last = 1e300, loadings[FILMS], sums[FILMS] = {0};
    OK(s3cmtf_concepts_new(model, 1, &request, &concepts, error));
    OK(s3cmtf_concepts_get_count(concepts, &count, error));
    CHECK(count == 3);
    for (uint64_t c = 0; c < count; c++) {
        const s3cmtf_concept concept = concept_of(concepts, c);
        CHECK(concept.column < count && concept.strength <= last);
        CHECK(fabs(concept.strength - concept.effect) < 1e-4 * (1 + concept.strength));
        CHECK(concept.largest_rows == FILMS && concept.smallest_rows == FILMS);
        last = concept.strength;
        OK(s3cmtf_concepts_copy_rows(concepts, c, S3CMTF_LARGEST, films, loadings, FILMS, error));
        for (uint64_t k = 0; k < concept.largest_rows; k++) sums[films[k]] += loadings[k] * concept.effect;
        for (uint64_t k = 1; k < concept.largest_rows; k++) CHECK(loadings[k] <= loadings[k - 1]);
        /* All columns of the one matrix, the largest shares first and the smallest first. */
        CHECK(concept.largest_columns == GENRES && concept.smallest_columns == GENRES);
        s3cmtf_concept_column column;
        double before = 1e300, largest = 0;
        column.size = sizeof column;
        for (uint64_t k = 0; k < concept.largest_columns; k++) {
            OK(s3cmtf_concepts_get_column(concepts, c, S3CMTF_LARGEST, k, &column, error));
            CHECK(column.matrix == 0 && column.column < GENRES && column.share <= before);
            before = column.share;
            if (k == 0) largest = column.share;
        }
        OK(s3cmtf_concepts_get_column(concepts, c, S3CMTF_SMALLEST, GENRES - 1, &column, error));
        CHECK(column.share == largest);
    }
    /* What is left of predictions are mean and biases, of which only that of the film changes. */
    double biases[FILMS], first = 0;
    OK(s3cmtf_model_copy_biases(model, 1, biases, FILMS, S3CMTF_F64, error));
    OK(s3cmtf_concepts_copy_rows(concepts, 0, S3CMTF_LARGEST, films, NULL, FILMS, error));
    for (uint64_t k = 0; k < FILMS; k++) {
        const uint64_t cell[3] = {rows[0], films[k], rows[1]};
        const double left = predict_unclipped(model, cell) - sums[films[k]] - biases[films[k]];
        if (k == 0) first = left;
        CHECK(fabs(left - first) < 1e-3);
    }
    s3cmtf_concepts_free(concepts);
    /* Without a request: no given rows, 10 rows at either end. */
    OK(s3cmtf_concepts_new(model, 1, NULL, &concepts, error));
    CHECK(concept_of(concepts, 0).largest_rows == 10 && concept_of(concepts, 0).smallest_rows == 10);
    s3cmtf_concepts_free(concepts);
}

/* Computes the root mean square of each column of a factor over the entries. */
static void root_mean_squares(const s3cmtf_model *model, uint64_t mode, const uint32_t *index, double *sizes)
{
    double row[3];
    for (int j = 0; j < 3; j++) sizes[j] = 0;
    for (int i = 0; i < ENTRIES; i++) {
        OK(s3cmtf_model_copy_row(model, mode, index[i], row, 3, S3CMTF_F64, error));
        for (int j = 0; j < 3; j++) sizes[j] += row[j] * row[j] / ENTRIES;
    }
    for (int j = 0; j < 3; j++) sizes[j] = sqrt(sizes[j]);
}

/* R = G x_1 u and the signs of columns, computed again from the factors. */
static void profile_of_a_user(const planted *data, const s3cmtf_model *model)
{
    const uint64_t mode[1] = {0}, who[1] = {3};
    s3cmtf_concepts_request request = {
        .size = sizeof request, .top = 1, .given_modes = mode, .given_rows = who, .given_count = 1};
    s3cmtf_concepts *concepts = NULL;
    uint64_t of = 0, columns = 0, found = 0, film[1];
    double numbers[9], core[27], user[3], row[3], films[3], months[3], loading[1];
    OK(s3cmtf_concepts_new(model, 1, &request, &concepts, error));
    OK(s3cmtf_concepts_copy_profile(concepts, numbers, 9, &of, &columns, &found, error));
    CHECK(of == 2 && columns == 3 && found == 9);
    OK(s3cmtf_model_copy_core(model, core, 27, S3CMTF_F64, S3CMTF_ROW_MAJOR, error));
    OK(s3cmtf_model_copy_row(model, 0, who[0], user, 3, S3CMTF_F64, error));
    root_mean_squares(model, 1, data->film, films);
    root_mean_squares(model, 2, data->month, months);
    const double strength = concept_of(concepts, 0).strength;
    for (int j = 0; j < 3; j++)
        for (int k = 0; k < 3; k++) {
            double sum = 0;
            for (int i = 0; i < 3; i++) sum += user[i] * core[(i * 3 + j) * 3 + k];
            CHECK(fabs(numbers[j * 3 + k] - sum * films[j] * months[k]) < 1e-4 * strength);
        }
    for (uint64_t c = 0; c < 3; c++) {
        const s3cmtf_concept concept = concept_of(concepts, c);
        OK(s3cmtf_concepts_copy_rows(concepts, c, S3CMTF_LARGEST, film, loading, 1, error));
        OK(s3cmtf_model_copy_row(model, 1, film[0], row, 3, S3CMTF_F64, error));
        CHECK(concept.sign_flipped == 0 || concept.sign_flipped == 1);
        CHECK(fabs(loading[0] - (concept.sign_flipped ? -1 : 1) * row[concept.column] / films[concept.column]) < 1e-4);
    }
    s3cmtf_concepts_free(concepts);
    /* Without given rows R is no matrix. */
    request.given_count = 0;
    OK(s3cmtf_concepts_new(model, 1, &request, &concepts, error));
    OK(s3cmtf_concepts_copy_profile(concepts, NULL, 0, &of, &columns, &found, error));
    CHECK(of == 1 && columns == 0 && found == 0);
    s3cmtf_concepts_free(concepts);
}

static s3cmtf_clusters_info info_of(const s3cmtf_clusters *clusters)
{
    s3cmtf_clusters_info info;
    info.size = sizeof info;
    OK(s3cmtf_clusters_get_info(clusters, &info, error));
    CHECK(info.size == sizeof info);
    return info;
}

static s3cmtf_cluster cluster_of(const s3cmtf_clusters *clusters, uint64_t index)
{
    s3cmtf_cluster info;
    info.size = sizeof info;
    OK(s3cmtf_clusters_get(clusters, index, &info, error));
    CHECK(info.size == sizeof info);
    return info;
}

/* Computes the centre and the labels of a cluster again from rows and counts. Returns the number of labels. */
static uint64_t centre_and_labels(const s3cmtf_model *model, const s3cmtf_clusters *clusters, uint64_t c)
{
    const uint64_t all = info_of(clusters).rows;
    const s3cmtf_cluster cluster = cluster_of(clusters, c);
    uint64_t rows[FILMS], which[FILMS];
    double centre[3], mean[3] = {0}, row[3], before = 0;
    OK(s3cmtf_clusters_copy_rows(clusters, rows, which, FILMS, error));
    for (uint64_t i = 0; i < all; i++) {
        if (which[i] != c) continue;
        OK(s3cmtf_model_copy_row(model, 1, rows[i], row, 3, S3CMTF_F64, error));
        for (int j = 0; j < 3; j++) mean[j] += row[j] / (double)cluster.rows;
    }
    OK(s3cmtf_clusters_copy_centre(clusters, c, centre, 3, error));
    for (int j = 0; j < 3; j++) CHECK(fabs(centre[j] - mean[j]) < 1e-9);
    uint64_t matrix = 0;
    CHECK(cluster.labels <= 4); /* two of either matrix */
    for (uint64_t k = 0; k < cluster.labels; k++) {
        s3cmtf_cluster_label label;
        label.size = sizeof label;
        OK(s3cmtf_clusters_get_label(clusters, c, k, &label, error));
        CHECK(label.matrix >= matrix && label.matrix < 2 && label.column < GENRES);
        CHECK(label.rows_in_cluster <= label.rows_overall && label.lift > 1 && label.p_value <= 1);
        CHECK(label.matrix > matrix || label.p_value >= before);
        matrix = label.matrix;
        before = label.p_value;
        const double in = (double)label.rows_in_cluster, out = (double)(label.rows_overall - label.rows_in_cluster);
        const double lack = (double)cluster.rows - in, lack_out = (double)(all - cluster.rows) - out;
        const double share = in / (double)cluster.rows, overall = (in + out) / (double)all;
        CHECK(fabs(label.lift - share / overall) < 1e-9);
        CHECK(fabs(label.log_odds - log((in + 0.5) * (lack_out + 0.5) / ((lack + 0.5) * (out + 0.5)))) < 1e-9);
        CHECK(fabs(pow(10, label.log10_p_value) / label.p_value - 1) < 1e-9);
    }
    return cluster.labels;
}

/* The gap statistic chooses the smallest k with gap(k) >= gap(k + 1) - s(k + 1). */
static void gap_curve(const s3cmtf_clusters *clusters)
{
    const s3cmtf_clusters_info info = info_of(clusters);
    s3cmtf_gap gaps[6];
    uint64_t first = 6;
    CHECK(info.curve_length == 6 && info.curve_rows > 6 && info.curve_rows <= FILMS);
    for (uint64_t k = 0; k < 6; k++) {
        gaps[k].size = sizeof gaps[k];
        OK(s3cmtf_clusters_get_gap(clusters, k, &gaps[k], error));
        CHECK(gaps[k].clusters == k + 1 && gaps[k].standard_error > 0);
        CHECK(fabs(gaps[k].log_reference - gaps[k].log_within - gaps[k].gap) < 1e-12);
    }
    for (uint64_t k = 5; k > 0; k--)
        if (gaps[k - 1].gap >= gaps[k].gap - gaps[k].standard_error) first = k;
    CHECK(info.curve_choice == first && info.curve_settled == (first < 6));
}

static void clusters_of_films(const planted *data, const s3cmtf_model *model)
{
    s3cmtf_coo *genres = planted_genres(data, error), *groups = planted_groups(data, error);
    const s3cmtf_coo *const matrices[2] = {genres, groups};
    s3cmtf_clusters *clusters = NULL, *again = NULL;
    uint64_t all = 0, labels = 0, rows[FILMS], which[FILMS], other[FILMS];
    double distances[FILMS], shares[2] = {9, 9};
    s3cmtf_clusters_request request = {.size = sizeof request,
                                       .k = 3,
                                       .max_k = 6,
                                       .restarts = 3,
                                       .references = 4,
                                       .min_entries = 1,
                                       .space = S3CMTF_SPACE_PREDICTIONS,
                                       .members = FILMS,
                                       .labels = 2,
                                       .matrices = matrices,
                                       .matrix_count = 2,
                                       .seed = 7,
                                       .threads = 1};
    OK(s3cmtf_clusters_new(model, 1, &request, &clusters, error));
    const s3cmtf_clusters_info info = info_of(clusters);
    CHECK(info.clusters == 3 && info.explained_variance > 0 && info.explained_variance < 1);
    CHECK(info.matrices == 2 && info.rows <= FILMS);
    OK(s3cmtf_clusters_copy_rows(clusters, rows, which, FILMS, error));
    for (uint64_t c = 0; c < info.clusters; c++) {
        const s3cmtf_cluster cluster = cluster_of(clusters, c);
        uint64_t films[FILMS];
        OK(s3cmtf_clusters_copy_members(clusters, c, films, distances, FILMS, error));
        CHECK(cluster.members == cluster.rows);
        double sum = 0;
        for (uint64_t k = 0; k < cluster.members; k++) {
            sum += distances[k] * distances[k];
            for (uint64_t i = 0; i < info.rows; i++) CHECK(rows[i] != films[k] || which[i] == c);
        }
        CHECK(fabs(sqrt(sum / (double)cluster.rows) - cluster.radius) < 1e-9);
        all += cluster.rows;
        labels += centre_and_labels(model, clusters, c);
    }
    CHECK(all == info.rows && labels > 0);
    gap_curve(clusters);
    OK(s3cmtf_clusters_copy_information(clusters, shares, 2, error));
    for (int m = 0; m < 2; m++) CHECK(shares[m] >= 0 && shares[m] <= 1);
    /* The same clusters on three threads without a curve and without matrices. */
    request.max_k = request.references = 0;
    request.matrix_count = 0;
    request.matrices = NULL;
    request.members = request.labels = 0;
    request.threads = 3;
    OK(s3cmtf_clusters_new(model, 1, &request, &again, error));
    OK(s3cmtf_clusters_copy_rows(again, NULL, other, FILMS, error));
    CHECK(!memcmp(which, other, sizeof *which * info.rows));
    const s3cmtf_clusters_info without = info_of(again);
    CHECK(without.curve_length == 0 && without.curve_choice == 0 && without.curve_settled == 0 && without.curve_rows == 0);
    CHECK(without.matrices == 0);
    for (uint64_t c = 0; c < 3; c++) {
        const s3cmtf_cluster cluster = cluster_of(again, c);
        CHECK(cluster.members == (cluster.rows < 10 ? cluster.rows : 10) && cluster.labels == 0);
    }
    s3cmtf_gap gap;
    gap.size = sizeof gap;
    FAILS(S3CMTF_BAD_ARGUMENT, s3cmtf_clusters_get_gap(again, 0, &gap, error));
    OK(s3cmtf_clusters_copy_information(again, NULL, 0, error));
    s3cmtf_clusters_free(clusters);
    s3cmtf_clusters_free(again);
    s3cmtf_coo_free(genres);
    s3cmtf_coo_free(groups);
    /* Without a request the gap statistic chooses the number of clusters. */
    OK(s3cmtf_clusters_new(model, 1, NULL, &clusters, error));
    CHECK(info_of(clusters).curve_length > 1 && info_of(clusters).clusters >= 1);
    s3cmtf_clusters_free(clusters);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    static planted data;
    plant(&data);
    OK(s3cmtf_error_new(&error));
    s3cmtf_coo *coo = planted_tensor(&data, error);
    s3cmtf_model *model = small_model(&data, 30, 2, error);
    /* The first half serves as training entries. */
    const void *const modes[3] = {data.user, data.film, data.month};
    s3cmtf_coo *half = new_coo(entries_f32(3, DIMS, indices_u32(modes, ENTRIES / 2), data.stars), error);
    recommendations(&data, model, half);
    similar(model);
    rankings(model, coo, half);
    concepts_of_films(model);
    profile_of_a_user(&data, model);
    clusters_of_films(&data, model);
    names_of_rows(argv[1]);
    s3cmtf_coo_free(half);
    s3cmtf_coo_free(coo);
    s3cmtf_model_free(model);
    s3cmtf_error_free(error);
    puts("ok");
    return 0;
}
