/* Clusters of the rows of a mode. */
#include "shim.h"
#include "routines.h"

typedef struct {
    const s3cmtf_model *model;
    uint64_t mode;
    s3cmtf_clusters_request request;
    s3cmtf_clusters *clusters;
} Task;

static int32_t find_clusters(void *data, const s3cmtf_cancel *cancel, s3cmtf_error *error)
{
    Task *task = data;
    task->request.cancel = cancel;
    return s3cmtf_clusters_new(task->model, task->mode, &task->request, &task->clusters, error);
}

static void discard_clusters(void *data) { s3cmtf_clusters_free(((Task *)data)->clusters); }

static s3cmtf_cluster cluster_at(const s3cmtf_clusters *clusters, uint64_t index)
{
    s3cmtf_cluster cluster = {.size = sizeof cluster};
    check(s3cmtf_clusters_get(clusters, index, &cluster, call_error));
    return cluster;
}

static SEXP sizes_of(const s3cmtf_clusters *clusters, uint64_t count)
{
    static const char *const names[] = {"rows", "radius", NULL};
    SEXP list = PROTECT(double_columns(names, count));
    for (uint64_t i = 0; i < count; i++) {
        const s3cmtf_cluster cluster = cluster_at(clusters, i);
        set_row(list, i, 2, (const double[]){(double)cluster.rows, cluster.radius});
    }
    UNPROTECT(1);
    return list;
}

static SEXP members_of(const s3cmtf_clusters *clusters, uint64_t count)
{
    static const char *const names[] = {"cluster", "row", "distance", NULL};
    uint64_t total = 0, place = 0;
    for (uint64_t i = 0; i < count; i++) total += cluster_at(clusters, i).members;
    uint64_t *rows = allocate(total, sizeof *rows);
    SEXP list = PROTECT(double_columns(names, total));
    double *distances = REAL(VECTOR_ELT(list, 2));
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t members = cluster_at(clusters, i).members;
        check(s3cmtf_clusters_copy_members(clusters, i, rows + place, distances + place, members, call_error));
        for (uint64_t k = 0; k < members; k++, place++)
            set_row(list, place, 2, (const double[]){(double)i + 1, (double)rows[place] + 1});
    }
    UNPROTECT(1);
    return list;
}

static SEXP labels_of(const s3cmtf_clusters *clusters, uint64_t count)
{
    static const char *const names[] = {"cluster",      "matrix", "column",  "rows_in_cluster",
                                        "rows_overall", "lift",   "p_value", "log10_p_value",
                                        "log_odds",     NULL};
    uint64_t total = 0, place = 0;
    for (uint64_t i = 0; i < count; i++) total += cluster_at(clusters, i).labels;
    SEXP list = PROTECT(double_columns(names, total));
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t labels = cluster_at(clusters, i).labels;
        for (uint64_t k = 0; k < labels; k++, place++) {
            s3cmtf_cluster_label label = {.size = sizeof label};
            check(s3cmtf_clusters_get_label(clusters, i, k, &label, call_error));
            const double numbers[] = {(double)i + 1,        (double)label.matrix + 1,     (double)label.column + 1,
                                      (double)label.rows_in_cluster, (double)label.rows_overall, label.lift,
                                      label.p_value,        label.log10_p_value,          label.log_odds};
            set_row(list, place, 9, numbers);
        }
    }
    UNPROTECT(1);
    return list;
}

static void copy_centres(const s3cmtf_clusters *clusters, uint64_t count, uint64_t rank, double *centres)
{
    double *centre = allocate(rank, sizeof *centre);
    for (uint64_t i = 0; i < count; i++) {
        check(s3cmtf_clusters_copy_centre(clusters, i, centre, rank, call_error));
        for (uint64_t j = 0; j < rank; j++) centres[j * count + i] = centre[j];
    }
}

static SEXP assignment_of(const s3cmtf_clusters *clusters, uint64_t count)
{
    static const char *const names[] = {"row", "cluster", NULL};
    uint64_t *rows = allocate(count, sizeof *rows);
    uint64_t *which = allocate(count, sizeof *which);
    check(s3cmtf_clusters_copy_rows(clusters, rows, which, count, call_error));
    SEXP list = PROTECT(named_list(names));
    SET_VECTOR_ELT(list, 0, uint64s_to_r(rows, count, 1));
    SET_VECTOR_ELT(list, 1, uint64s_to_r(which, count, 1));
    UNPROTECT(1);
    return list;
}

static SEXP gaps_of(const s3cmtf_clusters *clusters, uint64_t count)
{
    static const char *const names[] = {"k", "gap", "standard_error", "log_within", "log_reference", NULL};
    SEXP list = PROTECT(double_columns(names, count));
    for (uint64_t i = 0; i < count; i++) {
        s3cmtf_gap gap = {.size = sizeof gap};
        check(s3cmtf_clusters_get_gap(clusters, i, &gap, call_error));
        const double numbers[] = {(double)gap.clusters, gap.gap, gap.standard_error, gap.log_within, gap.log_reference};
        set_row(list, i, 5, numbers);
    }
    UNPROTECT(1);
    return list;
}

static SEXP result_of(const s3cmtf_clusters *clusters, uint64_t rank)
{
    static const char *const names[] = {"explained_variance", "sizes",  "members",     "labels",      "centres",
                                        "assignment",         "gap",    "information", "gap_choice",  "gap_settled",
                                        NULL};
    s3cmtf_clusters_info info = {.size = sizeof info};
    check(s3cmtf_clusters_get_info(clusters, &info, call_error));
    SEXP list = PROTECT(named_list(names));
    SET_VECTOR_ELT(list, 0, Rf_ScalarReal(info.explained_variance));
    SET_VECTOR_ELT(list, 1, sizes_of(clusters, info.clusters));
    SET_VECTOR_ELT(list, 2, members_of(clusters, info.clusters));
    SET_VECTOR_ELT(list, 3, labels_of(clusters, info.clusters));
    copy_centres(clusters, info.clusters, rank, add_matrix(list, 4, info.clusters, rank));
    SET_VECTOR_ELT(list, 5, assignment_of(clusters, info.rows));
    SET_VECTOR_ELT(list, 6, gaps_of(clusters, info.curve_length));
    check(s3cmtf_clusters_copy_information(clusters, add_vector(list, 7, info.matrices), info.matrices, call_error));
    SET_VECTOR_ELT(list, 8, Rf_ScalarReal((double)info.curve_choice));
    SET_VECTOR_ELT(list, 9, Rf_ScalarLogical(info.curve_settled));
    UNPROTECT(1);
    return list;
}

/* numbers: k, max_k, restarts, references, curve_rows, min_entries, space, members, labels, seed, threads. */
SEXP r_clusters(SEXP handle, SEXP mode, SEXP numbers, SEXP matrices)
{
    const uint64_t *n = uint64s_from(numbers, 0);
    Task task = {.model = handle_get(handle, MODEL), .mode = *uint64s_from(mode, 1)};
    task.request = (s3cmtf_clusters_request){
        .size = sizeof task.request, .k = n[0], .max_k = n[1], .restarts = n[2], .references = n[3], .curve_rows = n[4],
        .min_entries = n[5], .space = (int32_t)n[6], .members = n[7], .labels = n[8], .seed = n[9], .threads = n[10],
        .matrices = coos_from(matrices), .matrix_count = (uint64_t)XLENGTH(matrices),
    };
    const uint64_t rank = mode_info_of(task.model, task.mode).rank;
    SEXP owner = PROTECT(handle_new(CLUSTERS));
    run_interruptible(find_clusters, NULL, discard_clusters, &task);
    handle_set(owner, task.clusters);
    SEXP result = result_of(task.clusters, rank);
    UNPROTECT(1);
    return result;
}
