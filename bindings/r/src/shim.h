/* Shared by the routines of this package. The library is used through s3cmtf.h only.
 *
 * R reports errors and interrupts by longjmp, so every object of the library is owned by an external pointer with a finalizer
 * before anything can fail. */
#ifndef S3CMTF_R_SHIM_H
#define S3CMTF_R_SHIM_H

#define R_NO_REMAP
#include <R.h>
#include <Rinternals.h>
#include <s3cmtf.h>

/* error.c */

/* Receives the messages of calls on the thread of R. */
extern s3cmtf_error *call_error;
/* Raises an R condition unless the status is S3CMTF_OK. The message is that of call_error. */
void check(int32_t status);
/* Raises a condition of class s3cmtf_STATUS; status is a name without the prefix S3CMTF_. */
NORET void fail(const char *status, const char *format, ...);

/* handle.c */

typedef enum { COO, TEXT, OPTIONS, PROBLEM, FIT, TUNE, MODEL, CONCEPTS, CLUSTERS, NAMES, KINDS } Kind;
/* An external pointer that will own an object of this kind. */
SEXP handle_new(Kind kind);
void handle_set(SEXP handle, void *object);
/* The object of a handle. A handle of another kind, a closed one, or one restored from a file is an error. */
void *handle_get(SEXP handle, Kind kind);
/* The same, or NULL for the R value NULL. */
void *handle_or_null(SEXP handle, Kind kind);

/* wait.c */

/* Runs on another thread; must not call R. */
typedef int32_t (*Work)(void *data, const s3cmtf_cancel *cancel, s3cmtf_error *error);
/* Called on the thread of R about twenty times a second; may call R. Returns 1 to end the work early. */
typedef int (*Poll)(void *data);
/* Frees the result of work that was interrupted. The work may have succeeded before it noticed. */
typedef void (*Discard)(void *data);
/* Does work on another thread and waits for it, so that an interrupt by the user cancels it. poll and discard may be NULL.
 * Raises the error of the work. */
void run_interruptible(Work work, Poll poll, Discard discard, void *data);

/* convert.c */

/* Indices of cells from a list of integer or double vectors; elements that are NULL stay NULL. Integers are not copied and
 * not checked. Converted doubles are freed by R at the end of the .Call. */
s3cmtf_indices indices_from(SEXP list, int base);
/* Raises an error for the first index of a mode that is NA, fractional, below `base`, or beyond `dims`, which may be NULL. */
void check_indices(SEXP list, int base, const uint64_t *dims);
/* Room for at least one element, freed at the end of the .Call. */
void *allocate(uint64_t count, size_t size);
/* The tensors of a list of handles; freed at the end of the .Call. */
const s3cmtf_coo **coos_from(SEXP handles);
/* Numbers of an integer or double vector as uint64_t, less `offset`; freed at the end of the .Call. */
uint64_t *uint64s_from(SEXP numbers, uint64_t offset);
uint64_t uint64_from(SEXP number);
double real_from(SEXP number);
int flag_from(SEXP flag);
/* A string in UTF-8, or a path in the encoding of the system; NULL for the R value NULL. Freed at the end of the .Call. */
const char *string_from(SEXP string);
const char *path_from(SEXP string);
SEXP utf8_string(const char *text);
/* Numbers from 0 as R numbers from 1: integers where all fit, otherwise doubles. */
SEXP indices_to_r(const uint32_t *indices, R_xlen_t count, uint64_t dim);
SEXP uint64s_to_r(const uint64_t *numbers, uint64_t count, uint64_t offset);
/* Copies numbers, to which `offset` is added. */
void copy_uint64s(double *to, const uint64_t *numbers, uint64_t count, uint64_t offset);
/* A list with these names, which end with NULL. */
SEXP named_list(const char *const *names);
/* The same with one number for each name. */
SEXP number_list(const char *const *names, const double *numbers);
/* The same with a double vector of `count` elements for each name: the columns of a data frame. */
SEXP double_columns(const char *const *names, uint64_t count);
/* Sets a row of the first `count` of such columns. */
void set_row(SEXP columns, uint64_t row, int count, const double *numbers);
/* Makes an element of a list a double vector or matrix and returns its numbers. */
double *add_vector(SEXP list, R_xlen_t place, uint64_t count);
double *add_matrix(SEXP list, R_xlen_t place, uint64_t rows, uint64_t columns);

/* coo.c */

s3cmtf_coo_info coo_info_of(const s3cmtf_coo *coo);

/* fit.c */

/* Calls an R function with a list of numbers. Returns 1 if its value is FALSE. */
int report(SEXP function, const char *const *names, const double *numbers);

/* model.c */

s3cmtf_model_info model_info_of(const s3cmtf_model *model);
s3cmtf_model_mode mode_info_of(const s3cmtf_model *model, uint64_t mode);

/* options.c */

/* A handle of options: a preset or NULL, names and values. */
SEXP options_new(SEXP preset, SEXP names, SEXP values);

#endif
