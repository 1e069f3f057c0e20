/* The routines that R calls. */
#ifndef S3CMTF_R_ROUTINES_H
#define S3CMTF_R_ROUTINES_H

#include <Rinternals.h>

/* clusters.c */
SEXP r_clusters(SEXP handle, SEXP mode, SEXP numbers, SEXP matrices);

/* concepts.c */
SEXP r_concepts(SEXP handle, SEXP mode, SEXP top, SEXP min_entries, SEXP given_modes, SEXP given_rows);

/* coo.c */
SEXP r_coo_new(SEXP indices, SEXP base, SEXP values, SEXP dims, SEXP weights);
SEXP r_coo_weighted(SEXP handle, SEXP weights);
SEXP r_coo_info(SEXP handle);
SEXP r_coo_indices(SEXP handle, SEXP mode);
SEXP r_coo_values(SEXP handle);
SEXP r_coo_weights(SEXP handle);

/* coo_check.c */
SEXP r_coo_check(SEXP handle);
SEXP r_coo_summary(SEXP handle);

/* coo_files.c */
SEXP r_coo_open(SEXP path, SEXP mapped, SEXP verify, SEXP names, SEXP values);
SEXP r_coo_write(SEXP handle, SEXP path);
SEXP r_coo_convert(SEXP input, SEXP output, SEXP names, SEXP values);
SEXP r_coo_fix(SEXP handle, SEXP path, SEXP keep);
SEXP r_coo_split(SEXP handle, SEXP prefix, SEXP test, SEXP valid, SEXP seed, SEXP latest);
SEXP r_names_read(SEXP path, SEXP mode);

/* fit.c */
SEXP r_problem_new(SEXP tensor, SEXP matrices);
SEXP r_fit(SEXP tensor, SEXP matrices, SEXP preset, SEXP names, SEXP values, SEXP test, SEXP valid, SEXP init, SEXP
    checkpoint, SEXP resume, SEXP plan, SEXP report);
SEXP r_plan(SEXP tensor, SEXP matrices, SEXP preset, SEXP names, SEXP values, SEXP valid, SEXP init);

/* fold_in.c */
SEXP r_fold_in(SEXP handle, SEXP mode, SEXP tensor, SEXP matrices, SEXP numbers, SEXP replace, SEXP threads);

/* handle.c */
SEXP r_handle_close(SEXP handle);
SEXP r_handle_is_open(SEXP handle);

/* model.c */
SEXP r_model_load(SEXP path, SEXP mapped);
SEXP r_model_save(SEXP handle, SEXP path);
SEXP r_model_export(SEXP handle, SEXP folder);
SEXP r_model_info(SEXP handle);
SEXP r_model_mode(SEXP handle, SEXP mode);
SEXP r_model_matrix(SEXP handle, SEXP matrix);
SEXP r_model_core(SEXP handle);
SEXP r_model_record(SEXP handle);
SEXP r_model_plan(SEXP handle);
SEXP r_model_epochs(SEXP handle);

/* options.c */
SEXP r_option_table(void);
SEXP r_presets(void);
SEXP r_version(void);
SEXP r_model_options(SEXP handle);

/* predict.c */
SEXP r_predict(SEXP handle, SEXP cells, SEXP clip, SEXP threads, SEXP deviation, SEXP quantiles);
SEXP r_evaluate(SEXP model, SEXP coo, SEXP threads);
SEXP r_evaluate_binary(SEXP model, SEXP coo, SEXP threads);
SEXP r_evaluate_distributions(SEXP model, SEXP coo, SEXP threads);

/* rank.c */
SEXP r_recommend(SEXP handle, SEXP mode, SEXP queries, SEXP top, SEXP quantile, SEXP exclude, SEXP exclude_mode, SEXP
    candidates, SEXP omitted, SEXP threads);
SEXP r_similar(SEXP handle, SEXP mode, SEXP rows, SEXP top, SEXP threads);
SEXP r_evaluate_ranking(SEXP handle, SEXP test, SEXP train, SEXP mode, SEXP user_mode, SEXP length, SEXP relevant,
    SEXP quantile, SEXP threads);

/* sha256.c */
SEXP r_sha256(SEXP bytes);

/* tune.c */
SEXP r_tune(SEXP tensor, SEXP matrices, SEXP preset, SEXP names, SEXP values, SEXP size, SEXP valid, SEXP range_names,
    SEXP ranges, SEXP checkpoint, SEXP resume, SEXP report);

#endif
