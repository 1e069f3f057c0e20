/* Recommendations, likeness, rankings, concepts, clusters and names from C. The argument is a folder to write to. */
#include "check.h"

static s3cmtf_error *error;

/* Whether a user has an entry with a film in the first half. */
static int saw(const planted *data, uint64_t user, uint64_t film)
{
    for (int i = 0; i < ENTRIES / 2; i++)
        if (data->user[i] == user && data->film[i] == film) return 1;
    return 0;
}

/* Lists are the best of all films, one after the other, as predicted. */
static void recommendations(const planted *data, const s3cmtf_model *model, const s3cmtf_coo *coo)
{
    enum { QUERIES = 20, TOP = 4 };
    uint64_t users[QUERIES], months[QUERIES], rows[QUERIES * TOP], again[QUERIES * TOP], found[QUERIES];
    double scores[QUERIES * TOP];
    for (uint64_t q = 0; q < QUERIES; q++) users[q] = q, months[q] = q % MONTHS;
    const void *const cells[3] = {users, NULL, months};
    OK(s3cmtf_model_recommend(model, 1, QUERIES, cells, S3CMTF_U64, 1, 0, TOP, 0, coo, 0, 0, NULL, 0, NULL, 1, NULL, rows,
                              scores, QUERIES * TOP, found, error));
    for (uint64_t q = 0; q < QUERIES; q++) {
        uint64_t left = 0;
        for (uint64_t film = 0; film < FILMS; film++) {
            const void *const cell[3] = {&users[q], &film, &months[q]};
            double x = 0;
            if (saw(data, q, film)) continue;
            left++;
            OK(s3cmtf_model_predict(model, 1, cell, S3CMTF_U64, 1, 0, 0, 1, NULL, &x, 1, S3CMTF_F64, error));
            int listed = 0;
            for (uint64_t k = 0; k < found[q]; k++)
                if (rows[q * TOP + k] == film) {
                    listed = 1;
                    CHECK(scores[q * TOP + k] == x);
                }
            CHECK(listed || x <= scores[q * TOP + found[q] - 1] + 1e-5);
        }
        CHECK(found[q] == (left < TOP ? left : TOP));
        for (uint64_t k = 1; k < found[q]; k++) CHECK(scores[q * TOP + k] <= scores[q * TOP + k - 1]);
    }
    /* Any number of threads, and only what is wanted. */
    for (uint64_t threads = 2; threads < 4; threads++) {
        memset(again, 0, sizeof again);
        OK(s3cmtf_model_recommend(model, 1, QUERIES, cells, S3CMTF_U64, 1, 0, TOP, 0, coo, 0, 0, NULL, 0, NULL, threads, NULL,
                                  again, NULL, QUERIES * TOP, found, error));
        for (uint64_t q = 0; q < QUERIES; q++)
            CHECK(!memcmp(again + q * TOP, rows + q * TOP, sizeof *rows * found[q]));
    }
    /* Counted from 1, over all months, of three films without one of them. */
    const uint64_t user[1] = {3}, only[3] = {1, 2, 3}, without[2] = {2, 900};
    const void *const one[3] = {user, NULL, NULL};
    OK(s3cmtf_model_recommend(model, 1, 1, one, S3CMTF_U64, 1, 1, TOP, 0, NULL, 0, 3, only, 2, without, 1, NULL, rows, scores,
                              TOP, found, error));
    CHECK(found[0] == 2 && rows[0] + rows[1] == 4);
    OK(s3cmtf_model_recommend(model, 1, 1, one, S3CMTF_U64, 1, 1, TOP, 0, NULL, 0, 0, only, 0, NULL, 1, NULL, rows, scores, TOP,
                              found, error));
    CHECK(found[0] == 0);
    OK(s3cmtf_model_recommend(model, 1, 0, one, S3CMTF_U64, 1, 1, TOP, 0, NULL, 0, 0, NULL, 0, NULL, 1, NULL, NULL, NULL, 0,
                              NULL, error));
}

static void likeness(const s3cmtf_model *model)
{
    const uint64_t films[2] = {0, 7};
    uint64_t rows[2 * FILMS], found[2];
    double cosines[2 * FILMS];
    OK(s3cmtf_model_similar(model, 1, 2, films, FILMS, 2, NULL, rows, cosines, 2 * FILMS, found, error));
    for (uint64_t q = 0; q < 2; q++) {
        CHECK(found[q] == FILMS - 1);
        for (uint64_t k = 0; k < found[q]; k++) {
            CHECK(rows[q * FILMS + k] != films[q] && fabs(cosines[q * FILMS + k]) <= 1);
            CHECK(k == 0 || cosines[q * FILMS + k] <= cosines[q * FILMS + k - 1]);
        }
    }
    /* All films were planted alike, but for their scale, which does not matter. */
    CHECK(cosines[0] > 0.9);
}

static void rankings(const s3cmtf_model *model, const s3cmtf_coo *test, const s3cmtf_coo *train)
{
    const void *const nothing[3] = {NULL, NULL, NULL};
    s3cmtf_coo *empty = NULL;
    OK(s3cmtf_coo_new(3, DIMS, 0, nothing, S3CMTF_U32, 1, 0, NULL, S3CMTF_F32, &empty, error));
    double own[3], common[3];
    uint64_t users = 0;
    OK(s3cmtf_model_evaluate_ranking(model, test, train, 1, 0, 3, 0, -INFINITY, 1, NULL, own, common, &users, error));
    CHECK(users > 0 && users <= USERS);
    for (int k = 0; k < 3; k++) CHECK(own[k] >= 0 && own[k] <= 1 && common[k] >= 0 && common[k] <= 1);
    /* With all films in the list everything is found, if nothing was trained on. */
    uint64_t all = 0;
    OK(s3cmtf_model_evaluate_ranking(model, test, empty, 1, 0, FILMS, 0, -INFINITY, 2, NULL, own, NULL, &all, error));
    CHECK(all == USERS && own[0] == 1 && own[1] == 1 && own[2] <= 1);
    s3cmtf_coo_free(empty);
    OK(s3cmtf_model_evaluate_ranking(model, test, train, 1, 0, 3, 0, 1e9, 1, NULL, NULL, NULL, &users, error));
    CHECK(users == 0);
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

/* What concepts add is what the model predicts. */
static void concepts_of_films(const s3cmtf_model *model)
{
    const uint64_t modes[2] = {0, 2}, rows[2] = {3, 1};
    s3cmtf_concepts *concepts = NULL;
    uint64_t count = 0, column = 0, found = 0, films[FILMS];
    double strength = 0, effect = 0, last = 1e300, loadings[FILMS], sums[FILMS] = {0};
    OK(s3cmtf_concepts_new(model, 1, 2, modes, rows, FILMS, 0, &concepts, error));
    OK(s3cmtf_concepts_get_count(concepts, &count, error));
    CHECK(count == 3);
    for (uint64_t c = 0; c < count; c++) {
        OK(s3cmtf_concepts_get(concepts, c, &column, &strength, &effect, error));
        CHECK(column < count && strength <= last && fabs(strength - effect) < 1e-4 * (1 + strength));
        last = strength;
        OK(s3cmtf_concepts_copy_rows(concepts, c, S3CMTF_LARGEST, films, loadings, FILMS, &found, error));
        for (uint64_t k = 0; k < found; k++) sums[films[k]] += loadings[k] * effect;
        for (uint64_t k = 1; k < found; k++) CHECK(loadings[k] <= loadings[k - 1]);
        OK(s3cmtf_concepts_copy_columns(concepts, c, S3CMTF_SMALLEST, NULL, NULL, NULL, 0, &found, error));
    }
    /* What is left of predictions are mean and biases, of which only that of the film changes. */
    double biases[FILMS], first = 0;
    OK(s3cmtf_model_copy_biases(model, 1, biases, FILMS, S3CMTF_F64, error));
    OK(s3cmtf_concepts_copy_rows(concepts, 0, S3CMTF_LARGEST, films, NULL, FILMS, &found, error));
    for (uint64_t k = 0; k < found; k++) {
        double x = 0;
        const void *const cell[3] = {&rows[0], &films[k], &rows[1]};
        OK(s3cmtf_model_predict(model, 1, cell, S3CMTF_U64, 1, 0, 0, 1, NULL, &x, 1, S3CMTF_F64, error));
        const double left = x - sums[films[k]] - biases[films[k]];
        if (k == 0) first = left;
        CHECK(fabs(left - first) < 1e-3);
    }
    s3cmtf_concepts_free(concepts);
}

/* The root mean square of each column of a mode, by entries. */
static void sizes_of(const s3cmtf_model *model, uint64_t mode, const uint32_t *index, double *sizes)
{
    double row[3];
    for (int j = 0; j < 3; j++) sizes[j] = 0;
    for (int i = 0; i < ENTRIES; i++) {
        OK(s3cmtf_model_copy_row(model, mode, index[i], row, 3, S3CMTF_F64, error));
        for (int j = 0; j < 3; j++) sizes[j] += row[j] * row[j] / ENTRIES;
    }
    for (int j = 0; j < 3; j++) sizes[j] = sqrt(sizes[j]);
}

/* R = G x_1 u and the signs of columns, from the numbers of the model. */
static void profile_of_a_user(const planted *data, const s3cmtf_model *model)
{
    const uint64_t mode[1] = {0}, who[1] = {3};
    s3cmtf_concepts *concepts = NULL;
    uint64_t of = 0, columns = 0, found = 0, film[1];
    double numbers[9], core[27], user[3], row[3], films[3], months[3], strength = 0, loading[1];
    int32_t turned = 2;
    OK(s3cmtf_concepts_new(model, 1, 1, mode, who, 1, 0, &concepts, error));
    OK(s3cmtf_concepts_copy_profile(concepts, numbers, 9, &of, &columns, &found, error));
    CHECK(of == 2 && columns == 3 && found == 9);
    OK(s3cmtf_model_copy_core(model, core, 27, S3CMTF_F64, S3CMTF_ROW_MAJOR, error));
    OK(s3cmtf_model_copy_row(model, 0, who[0], user, 3, S3CMTF_F64, error));
    sizes_of(model, 1, data->film, films);
    sizes_of(model, 2, data->month, months);
    OK(s3cmtf_concepts_get(concepts, 0, NULL, &strength, NULL, error));
    for (int j = 0; j < 3; j++)
        for (int k = 0; k < 3; k++) {
            double sum = 0;
            for (int i = 0; i < 3; i++) sum += user[i] * core[(i * 3 + j) * 3 + k];
            CHECK(fabs(numbers[j * 3 + k] - sum * films[j] * months[k]) < 1e-4 * strength);
        }
    for (uint64_t c = 0; c < 3; c++) {
        uint64_t column = 0;
        OK(s3cmtf_concepts_get(concepts, c, &column, NULL, NULL, error));
        OK(s3cmtf_concepts_get_turned(concepts, c, &turned, error));
        OK(s3cmtf_concepts_copy_rows(concepts, c, S3CMTF_LARGEST, film, loading, 1, &found, error));
        OK(s3cmtf_model_copy_row(model, 1, film[0], row, 3, S3CMTF_F64, error));
        CHECK(turned == 0 || turned == 1);
        CHECK(fabs(loading[0] - (turned ? -1 : 1) * row[column] / films[column]) < 1e-4);
    }
    s3cmtf_concepts_free(concepts);
    /* For nobody it is no matrix. */
    OK(s3cmtf_concepts_new(model, 1, 0, NULL, NULL, 1, 0, &concepts, error));
    OK(s3cmtf_concepts_copy_profile(concepts, NULL, 0, &of, &columns, &found, error));
    CHECK(of == 1 && columns == 0 && found == 0);
    s3cmtf_concepts_free(concepts);
}

/* Centres, logarithms of labels and the rule of the curve, computed again from the rest. */
static void logs_and_centres(const s3cmtf_model *model, const s3cmtf_clusters *clusters, uint64_t c)
{
    uint64_t rows[FILMS], which[FILMS], counts[2], overall[2], all = 0, found = 0, labels = 0, size = 0;
    double centre[3], mean[3] = {0}, row[3], odds[2], logs[2], p_values[2];
    OK(s3cmtf_clusters_get(clusters, c, &size, NULL, error));
    OK(s3cmtf_clusters_copy_rows(clusters, rows, which, FILMS, &all, error));
    for (uint64_t i = 0; i < all; i++) {
        if (which[i] != c) continue;
        OK(s3cmtf_model_copy_row(model, 1, rows[i], row, 3, S3CMTF_F64, error));
        for (int j = 0; j < 3; j++) mean[j] += row[j] / (double)size;
    }
    OK(s3cmtf_clusters_copy_centre(clusters, c, centre, 3, &found, error));
    CHECK(found == 3);
    for (int j = 0; j < 3; j++) CHECK(fabs(centre[j] - mean[j]) < 1e-9);
    OK(s3cmtf_clusters_copy_labels(clusters, c, NULL, NULL, counts, overall, NULL, p_values, 2, &labels, error));
    OK(s3cmtf_clusters_copy_label_logs(clusters, c, odds, logs, 2, &found, error));
    CHECK(found == labels);
    for (uint64_t k = 0; k < labels; k++) {
        const double in = (double)counts[k], out = (double)(overall[k] - counts[k]);
        const double lack = (double)size - in, lack_out = (double)(all - size) - out;
        CHECK(fabs(odds[k] - log((in + 0.5) * (lack_out + 0.5) / ((lack + 0.5) * (out + 0.5)))) < 1e-9);
        CHECK(fabs(pow(10, logs[k]) / p_values[k] - 1) < 1e-9);
    }
}

static void curve_of_gaps(const s3cmtf_clusters *clusters)
{
    double gaps[6], errors[6], within[6], references[6];
    uint64_t chosen = 0, found = 0, rows = 0, first = 6;
    int32_t settled = 2;
    OK(s3cmtf_clusters_copy_gaps(clusters, gaps, errors, 6, &chosen, &found, error));
    OK(s3cmtf_clusters_copy_curve(clusters, within, references, 6, &settled, &rows, &found, error));
    CHECK(found == 6 && rows > 6 && rows <= FILMS);
    for (int k = 0; k < 6; k++) CHECK(fabs(references[k] - within[k] - gaps[k]) < 1e-12);
    for (uint64_t k = 5; k > 0; k--)
        if (gaps[k - 1] >= gaps[k] - errors[k]) first = k;
    CHECK(chosen == first && settled == (first < 6));
}

static void clusters_of_films(const planted *data, const s3cmtf_model *model)
{
    s3cmtf_coo *genres = planted_genres(data, error);
    const s3cmtf_coo *const matrices[1] = {genres};
    s3cmtf_clusters *clusters = NULL, *again = NULL;
    uint64_t count = 0, size = 0, all = 0, found = 0, chosen = 0, rows[FILMS], which[FILMS], other[FILMS];
    double explained = 0, radius = 0, distances[FILMS], gaps[6], errors[6], share = 0;
    OK(s3cmtf_clusters_new(model, 1, 3, 6, 3, 4, 0, 1, S3CMTF_SPACE_PREDICTIONS, FILMS, 2, 1, matrices, 7, 1, NULL, &clusters,
                           error));
    OK(s3cmtf_clusters_get_count(clusters, &count, &explained, error));
    CHECK(count == 3 && explained > 0 && explained < 1);
    OK(s3cmtf_clusters_copy_rows(clusters, rows, which, FILMS, &found, error));
    for (uint64_t c = 0; c < count; c++) {
        uint64_t members = 0, films[FILMS];
        OK(s3cmtf_clusters_get(clusters, c, &size, &radius, error));
        OK(s3cmtf_clusters_copy_members(clusters, c, films, distances, FILMS, &members, error));
        CHECK(members == size);
        double sum = 0;
        for (uint64_t k = 0; k < members; k++) {
            sum += distances[k] * distances[k];
            for (uint64_t i = 0; i < found; i++) CHECK(rows[i] != films[k] || which[i] == c);
        }
        CHECK(fabs(sqrt(sum / (double)size) - radius) < 1e-9);
        all += size;
        uint64_t labels = 0, of[2], columns[2], counts[2], overall[2];
        double lifts[2], p_values[2];
        OK(s3cmtf_clusters_copy_labels(clusters, c, of, columns, counts, overall, lifts, p_values, 2, &labels, error));
        for (uint64_t k = 0; k < labels; k++) CHECK(of[k] == 0 && counts[k] <= overall[k] && lifts[k] > 1 && p_values[k] <= 1);
        logs_and_centres(model, clusters, c);
    }
    curve_of_gaps(clusters);
    CHECK(all == found);
    OK(s3cmtf_clusters_copy_gaps(clusters, gaps, errors, 6, &chosen, &found, error));
    CHECK(found == 6 && chosen >= 1 && chosen <= 6 && errors[0] > 0);
    OK(s3cmtf_clusters_copy_information(clusters, &share, 1, &found, error));
    CHECK(found == 1 && share >= 0 && share <= 1);
    OK(s3cmtf_clusters_new(model, 1, 3, 0, 3, 0, 0, 1, S3CMTF_SPACE_PREDICTIONS, 0, 0, 0, NULL, 7, 3, NULL, &again, error));
    OK(s3cmtf_clusters_copy_rows(again, NULL, other, FILMS, &found, error));
    CHECK(!memcmp(which, other, sizeof *which * found));
    OK(s3cmtf_clusters_copy_gaps(again, NULL, NULL, 0, &chosen, &found, error));
    CHECK(found == 0 && chosen == 0);
    int32_t settled = 1;
    OK(s3cmtf_clusters_copy_curve(again, NULL, NULL, 0, &settled, &size, &found, error));
    CHECK(found == 0 && settled == 0 && size == 0);
    s3cmtf_clusters_free(clusters);
    s3cmtf_clusters_free(again);
    s3cmtf_coo_free(genres);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    static planted data;
    plant(&data);
    OK(s3cmtf_error_new(&error));
    s3cmtf_coo *coo = planted_tensor(&data, error);
    s3cmtf_model *model = small_model(&data, 30, 2, error);
    /* As if only the first half had been trained on. */
    const void *const first[3] = {data.user, data.film, data.month};
    s3cmtf_coo *half = NULL;
    OK(s3cmtf_coo_new(3, DIMS, ENTRIES / 2, first, S3CMTF_U32, 1, 0, data.stars, S3CMTF_F32, &half, error));
    recommendations(&data, model, half);
    likeness(model);
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
