/* Registers the routines with R. */
#include <R_ext/Rdynload.h>
#include <R_ext/Visibility.h>

#include "shim.h"
#include "routines.h"

#define ROUTINE(name, arguments) {#name, (DL_FUNC)&name, arguments}

static const R_CallMethodDef routines[] = {
    ROUTINE(r_clusters, 4),
    ROUTINE(r_concepts, 6),
    ROUTINE(r_coo_new, 5),
    ROUTINE(r_coo_weighted, 2),
    ROUTINE(r_coo_info, 1),
    ROUTINE(r_coo_indices, 2),
    ROUTINE(r_coo_values, 1),
    ROUTINE(r_coo_weights, 1),
    ROUTINE(r_coo_check, 1),
    ROUTINE(r_coo_summary, 1),
    ROUTINE(r_coo_open, 5),
    ROUTINE(r_coo_write, 2),
    ROUTINE(r_coo_convert, 4),
    ROUTINE(r_coo_fix, 3),
    ROUTINE(r_coo_split, 6),
    ROUTINE(r_names_read, 2),
    ROUTINE(r_problem_new, 2),
    ROUTINE(r_fit, 12),
    ROUTINE(r_plan, 7),
    ROUTINE(r_fold_in, 7),
    ROUTINE(r_handle_close, 1),
    ROUTINE(r_handle_is_open, 1),
    ROUTINE(r_model_load, 2),
    ROUTINE(r_model_save, 2),
    ROUTINE(r_model_export, 2),
    ROUTINE(r_model_info, 1),
    ROUTINE(r_model_mode, 2),
    ROUTINE(r_model_matrix, 2),
    ROUTINE(r_model_core, 1),
    ROUTINE(r_model_record, 1),
    ROUTINE(r_model_plan, 1),
    ROUTINE(r_model_epochs, 1),
    ROUTINE(r_option_table, 0),
    ROUTINE(r_presets, 0),
    ROUTINE(r_version, 0),
    ROUTINE(r_model_options, 1),
    ROUTINE(r_predict, 6),
    ROUTINE(r_evaluate, 3),
    ROUTINE(r_evaluate_binary, 3),
    ROUTINE(r_evaluate_distributions, 3),
    ROUTINE(r_recommend, 10),
    ROUTINE(r_similar, 5),
    ROUTINE(r_evaluate_ranking, 9),
    ROUTINE(r_sha256, 1),
    ROUTINE(r_tune, 12),
    {NULL, NULL, 0},
};

void attribute_visible R_init_s3cmtf(DllInfo *library)
{
    R_registerRoutines(library, NULL, routines, NULL, NULL);
    R_useDynamicSymbols(library, FALSE);
    R_forceSymbols(library, TRUE);
    /* Before 1.0 versions with the same minor number are compatible, if the library is not older than the header. */
    const uint32_t version = s3cmtf_version_number();
    if (version / 100 != S3CMTF_VERSION_NUMBER / 100 || version < S3CMTF_VERSION_NUMBER)
        Rf_error("version %s of the s3cmtf library was loaded, but the package was compiled for %d.%d.%d; install the package "
                 "again", s3cmtf_version(), S3CMTF_VERSION_MAJOR, S3CMTF_VERSION_MINOR, S3CMTF_VERSION_PATCH);
    if (s3cmtf_error_new(&call_error) != S3CMTF_OK) Rf_error("cannot create an error handle");
}
