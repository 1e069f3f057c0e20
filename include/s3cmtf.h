/*
 * s3cmtf: factorization of a sparse tensor together with coupled sparse matrices.
 *
 * This file is generated from the sources of the library and is the manual of its C interface.
 *
 * EXAMPLE
 *
 *     #include <stdio.h>
 *     #include <s3cmtf.h>
 *
 *     int main(void)
 *     {
 *         // Six ratings. The prediction is for user 0, film 2 and month 1.
 *         const uint32_t user[] = {0, 0, 1, 1, 2, 2}, film[] = {0, 1, 0, 2, 1, 2}, month[] = {0, 1, 1, 0, 0, 1};
 *         const float stars[] = {5, 3, 4, 1, 3, 2};
 *         const void *const modes[] = {user, film, month};
 *         const s3cmtf_entries ratings = {
 *             .size = sizeof ratings, .order = 3, .values = stars, .value_type = S3CMTF_F32,
 *             .indices = {.modes = modes, .count = 6, .type = S3CMTF_U32},
 *         };
 *         s3cmtf_error *error = NULL;
 *         s3cmtf_model *model = NULL;
 *         double prediction = 0;
 *         int32_t status = s3cmtf_error_new(&error);
 *         if (!status) status = s3cmtf_fit_entries(&ratings, "preset=paper rank=2 epochs=20 eta=0.05", &model, error);
 *         if (!status) status = s3cmtf_model_predict_cell(model, (const uint64_t[]){0, 2, 1}, &prediction, error);
 *         if (status) fprintf(stderr, "%s: %s\n", s3cmtf_status_name(status), s3cmtf_error_message(error));
 *         else printf("prediction %.2f\n", prediction);
 *         s3cmtf_model_free(model);
 *         s3cmtf_error_free(error);
 *         return status != 0;
 *     }
 *
 * CONTENTS
 *
 *   Status codes and errors
 *   Version and instruction sets
 *   Cancellation
 *   Arrays
 *   Text files
 *   Tensors and matrices
 *   Options
 *   Problems
 *   Fits
 *   Hyperparameter search
 *   Models
 *   Predictions
 *   New rows
 *   Rankings
 *   Concepts
 *   Clusters
 *   Names of rows
 *
 * CONVENTIONS
 *
 * - Functions that can fail return a status: S3CMTF_OK (0) or another S3CMTF_... code. Their last parameter is an
 *   s3cmtf_error, which receives a message, or NULL.
 * - Outputs are written only on success. After a failure all objects and buffers are unchanged.
 * - Objects returned by functions (..._new, _open, _load, _run, _take, _get_options, _fold_in, s3cmtf_fit_...) belong to the
 *   caller, who frees each once with the _free function of its type and does not use it afterwards. Objects may be freed in any
 *   order; an object that needs another keeps it alive. Pointers to data inside an object are valid as long as the object.
 * - Arrays and strings that are passed in are copied or used only during the call, except by s3cmtf_coo_new_view().
 * - Structs that begin with `size` may grow in later versions. Set `size` to sizeof the struct and all fields that are not
 *   needed to 0, as an initializer does; 0 always means a sensible default. Of output structs at most `size` bytes are
 *   written.
 * - Pointers must not be NULL unless the description allows it. NULL, numbers out of range, buffers that are too small and
 *   misaligned arrays are detected. Arrays without elements may be NULL. Outputs must not overlap anything else.
 * - Modes, rows, matrices and indices are zero-based unless `base` says otherwise. Sizes and capacities count elements, not
 *   bytes.
 * - Strings are UTF-8 and NUL-terminated; paths are in the encoding of the system.
 * - Thread safety: functions with a const object may run concurrently on any threads; a function with a non-const object must
 *   have it for itself. Different objects are independent. Data, models, names, concepts and clusters never change after their
 *   creation.
 *
 * MODEL
 *
 * The prediction for the cell (i, j, k) of a tensor of order 3, and likewise of other orders, is
 *
 *   mean + b1[i] + b2[j] + b3[k] + sum over p, q, r of g[p,q,r] * u1[i,p] * u2[j,q] * u3[k,r]
 *
 * with biases b, core g and factors u (S3CMTF_MODEL_CP: only g[p,p,p] is not 0), and for the cell (i, c) of a matrix that is
 * coupled to the first mode
 *
 *   offset[c] + sum over p of u1[i,p] * v[c,p].
 *
 * Terms that were not fitted are 0. Factors have a row for each index that occurred in the data. All other indices of a mode
 * are predicted from its mean row and its mean bias. A model fitted with the option algorithm=gibbs predicts the mean of its
 * posterior samples; its factors, core and biases are those of the last sample. If it was fitted to two values with the
 * option likelihood=probit, or by automatic choice, the sum is a latent value, and the prediction lies between the two values
 * as the probability of the larger one lies between 0 and 1.
 *
 * GUARANTEES TO THE HOST PROCESS
 *
 * - Nothing is printed; signal handlers, locale, environment and the floating-point mode of the caller are not changed.
 * - Threads exist only during a call, or while a fit runs in the background. They are named "s3cmtf" and block all signals.
 *   After fork() the child may use the library, if no fit was running in the background.
 * - The environment is read on the calling thread only: S3CMTF_KERNEL by the first call, RUST_MIN_STACK by the first call that
 *   starts a thread, TMPDIR when text is read. Call setenv() in other threads only after that.
 * - An internal error is the status S3CMTF_INTERNAL and does not end the process.
 * - If memory for entries, rows or factors cannot be allocated, the status is S3CMTF_OUT_OF_MEMORY. Failed allocations of
 *   small objects abort the process. Numbers in arguments and structs are compared with their ranges before anything is allocated
 *   or computed; only the lengths of arrays are trusted.
 * - Calling threads need 64 KiB of stack.
 *
 * VERSIONS
 *
 * Before 1.0 versions with the same minor number are binary compatible, later those with the same major number: functions,
 * constants and fields are added, never changed or removed. Programs that were compiled with an older header work with a newer
 * library.
 */

#ifndef S3CMTF_H
#define S3CMTF_H

#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define S3CMTF_CHECK_STATUS __attribute__((warn_unused_result))
#else
#define S3CMTF_CHECK_STATUS
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Status and message of the last failure. */
typedef struct s3cmtf_error s3cmtf_error;
/** A cancellation token. */
typedef struct s3cmtf_cancel s3cmtf_cancel;
/** Options of reading text files. */
typedef struct s3cmtf_text s3cmtf_text;
/** A sparse tensor or matrix: per entry one index per mode, a value and optionally a weight. */
typedef struct s3cmtf_coo s3cmtf_coo;
/** All options of a fit. */
typedef struct s3cmtf_options s3cmtf_options;
/** A tensor and the matrices coupled to its modes. */
typedef struct s3cmtf_problem s3cmtf_problem;
/** One fit. */
typedef struct s3cmtf_fit s3cmtf_fit;
/** A hyperparameter search. */
typedef struct s3cmtf_tune s3cmtf_tune;
/** A fitted model. */
typedef struct s3cmtf_model s3cmtf_model;
/** The concepts of a mode: descriptions of the columns of its factor. */
typedef struct s3cmtf_concepts s3cmtf_concepts;
/** Clusters of the rows of a mode. */
typedef struct s3cmtf_clusters s3cmtf_clusters;
/** Names of the rows of a mode. */
typedef struct s3cmtf_names s3cmtf_names;


/*
 * Status codes and errors
 * -----------------------
 *
 * An s3cmtf_error holds the message of the last failed call that it was passed to. A successful call leaves it unchanged. Use
 * one per thread.
 */

/** Success. */
#define S3CMTF_OK 0
/** The call was cancelled before it had a result. */
#define S3CMTF_CANCELLED 1
/** A pointer is NULL that must not be. */
#define S3CMTF_NULL_ARGUMENT 2
/** An argument is out of range, not aligned, not UTF-8, or inconsistent with another argument or the data. */
#define S3CMTF_BAD_ARGUMENT 3
/** A buffer is too small; the message has the required capacity. */
#define S3CMTF_BUFFER_TOO_SMALL 4
/** The object is in the wrong state for the call, such as a fit that is running or has ended. */
#define S3CMTF_BAD_STATE 5
/** A file is missing, damaged or of the wrong kind; the message has the line or byte. */
#define S3CMTF_BAD_FILE 6
/** An entry is out of range or not finite; the message has its number, from 1. */
#define S3CMTF_BAD_ENTRY 7
/** The operating system reported an error, such as missing permission or a full disk. */
#define S3CMTF_SYSTEM 8
/** There is not enough memory for the entries or rows. */
#define S3CMTF_OUT_OF_MEMORY 9
/** A bug in the library; please report it. Free the objects passed to the call, and do not use them otherwise. */
#define S3CMTF_INTERNAL 10
/** First of the codes reserved for later versions, up to 999. Treat every code except 0 as a failure. */
#define S3CMTF_RESERVED 11

/** Returns the name of a status, such as "S3CMTF_OK"; "S3CMTF_RESERVED" for other numbers. A constant string. */
const char *s3cmtf_status_name(int32_t status);

/** Creates an error handle; free it with s3cmtf_error_free(). */
S3CMTF_CHECK_STATUS int32_t s3cmtf_error_new(s3cmtf_error **error);

/** Returns the message of the last failure, in UTF-8; "" if there was none or `error` is NULL. Valid until the handle is
  *  passed to another call or freed. */
const char *s3cmtf_error_message(const s3cmtf_error *error);

/** Returns the status of the last failure; S3CMTF_OK if there was none or `error` is NULL. */
int32_t s3cmtf_error_status(const s3cmtf_error *error);

/** Frees an error handle. NULL is allowed. */
void s3cmtf_error_free(s3cmtf_error *error);

/*
 * Version and instruction sets
 * ----------------------------
 *
 * The library chooses the fastest instruction set of the machine at run time. The option "kernel" and the environment variable
 * S3CMTF_KERNEL choose another. All functions may run concurrently.
 */

/** Version of this header. A newer library is compatible if its major number is the same; while that is 0, if its minor
  *  number is. */
#define S3CMTF_VERSION_MAJOR 0
/** See S3CMTF_VERSION_MAJOR. */
#define S3CMTF_VERSION_MINOR 2
/** See S3CMTF_VERSION_MAJOR. */
#define S3CMTF_VERSION_PATCH 0
/** Version as one number: 10203 for 1.2.3. */
#define S3CMTF_VERSION_NUMBER (((S3CMTF_VERSION_MAJOR * 10000) + (S3CMTF_VERSION_MINOR * 100)) + S3CMTF_VERSION_PATCH)
/** In s3cmtf_progress: no kernel has been chosen yet. */
#define S3CMTF_KERNEL_UNKNOWN -1
/** Scalar code; available everywhere. Kernels are numbered from the slowest to the fastest. */
#define S3CMTF_KERNEL_SCALAR 0
/** Portable SIMD, such as SSE2 or NEON; available everywhere. */
#define S3CMTF_KERNEL_WIDE 1
/** AVX2 with fused multiply-add. */
#define S3CMTF_KERNEL_AVX2 2
/** AVX-512. */
#define S3CMTF_KERNEL_AVX512 3

/** Returns the version of the loaded library as one number; compare it with S3CMTF_VERSION_NUMBER of the header. */
uint32_t s3cmtf_version_number(void);

/** Returns the version of the loaded library, such as "1.2.3". A constant string. */
const char *s3cmtf_version(void);

/** Returns the version, target architecture, operating system and build profile. A constant string. */
const char *s3cmtf_build_info(void);

/** Gets the name of a kernel (S3CMTF_KERNEL_...), a value of the option "kernel". A constant string. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_kernel_name(int32_t kernel, const char **name, s3cmtf_error *error);

/** Stores 1 if this machine supports a kernel, otherwise 0. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_kernel_available(int32_t kernel, int32_t *available, s3cmtf_error *error);

/** Returns the fastest kernel of this machine. It is the default of the option "kernel" unless the environment variable
  *  S3CMTF_KERNEL names another. */
int32_t s3cmtf_kernel_best(void);

/*
 * Cancellation
 * ------------
 *
 * A token ends work from another thread or from a signal handler. It may be passed to any number of calls and stays requested
 * until it is reset. All its functions but s3cmtf_cancel_free() may run concurrently.
 */

/** Creates a token; free it with s3cmtf_cancel_free(). */
S3CMTF_CHECK_STATUS int32_t s3cmtf_cancel_new(s3cmtf_cancel **cancel, s3cmtf_error *error);

/** Cancels all current and future calls that have the token. May be called on any thread and in a signal handler. NULL
  *  is allowed. */
void s3cmtf_cancel_request(const s3cmtf_cancel *cancel);

/** Withdraws the request. NULL is allowed. */
void s3cmtf_cancel_reset(const s3cmtf_cancel *cancel);

/** Returns 1 if cancellation is requested, otherwise 0. NULL is allowed and returns 0. */
int32_t s3cmtf_cancel_requested(const s3cmtf_cancel *cancel);

/** Frees a token. Fits that have it continue, and cannot be cancelled by it any more. All other calls that have it must
  *  have returned. NULL is allowed. */
void s3cmtf_cancel_free(s3cmtf_cancel *cancel);

/*
 * Arrays
 * ------
 *
 * Descriptions of arrays of the caller. The library reads them only during the call, except s3cmtf_coo_new_view().
 */

/** Indices are uint32_t. (Index and value types have different numbers, so that a mix-up is an error.) */
#define S3CMTF_U32 1
/** Indices are uint64_t. */
#define S3CMTF_U64 2
/** Values are float. */
#define S3CMTF_F32 3
/** Values are double. */
#define S3CMTF_F64 4

/** Indices of cells, one array per mode. This struct will not change in later versions. */
typedef struct s3cmtf_indices {
    /** One pointer per mode: modes[n][i * stride] is the index of cell i in mode n. */
    const void *const *modes;
    /** The number of cells. */
    uint64_t count;
    /** The distance between the indices of consecutive cells, in numbers; 0 means 1. It is 1 for a separate array per
      *  mode, and the number of modes for an array of records. */
    uint64_t stride;
    /** S3CMTF_U32 or S3CMTF_U64. */
    int32_t type;
    /** The first index: 0 or 1. */
    int32_t base;
} s3cmtf_indices;

/** The entries of a sparse tensor or matrix. */
typedef struct s3cmtf_entries {
    /** sizeof(s3cmtf_entries). */
    uint64_t size;
    /** The number of modes; 2 for a matrix. */
    uint64_t order;
    /** The size of each mode, or NULL for the largest index of each. */
    const uint64_t *dims;
    /** The indices of the entries. */
    s3cmtf_indices indices;
    /** One value per entry. */
    const void *values;
    /** One weight per entry, or NULL if all are 1. The squared error of an entry is multiplied by its weight. */
    const void *weights;
    /** The type of the values: S3CMTF_F32 or S3CMTF_F64. */
    int32_t value_type;
    /** The type of the weights, if there are any: S3CMTF_F32 or S3CMTF_F64. */
    int32_t weight_type;
} s3cmtf_entries;

/*
 * Text files
 * ----------
 *
 * Options for parsing text files. Without them the format follows from the name and the content of a file, indices are
 * one-based, and the value column of CSV and TSV files is found by its name or its numbers. Any number of calls may use
 * the options, also concurrently.
 */

/** Creates default options of reading text; free them with s3cmtf_text_free(). */
S3CMTF_CHECK_STATUS int32_t s3cmtf_text_new(s3cmtf_text **text, s3cmtf_error *error);

/** Sets an option. S3CMTF_BAD_ARGUMENT for an unknown name or a bad value. Flags are "true" or "false", lists are
  *  separated by commas. All files:
  *  - "from": the format: tns, mtx, csv or tsv
  *  - "dims": list of the sizes of the modes; by default the largest indices
  *  - "zero_based": flag: indices count from 0
  *  - "no_value": flag: there is no value column; every value is 1
  *  - "weighted": flag: a weight follows each value in .tns
  *  - "values": stored type of values: f32 or f64
  *
  *  CSV and TSV; a COLUMN is a name in the header or a number from 1, a MODE counts from 0:
  *  - "columns": list of the index columns, one per mode; by default all but value and weight
  *  - "value": the value column; by default the only one that "columns" leaves, else the one called rating, value, stars,
  *    score or count, else the only one with numbers; without a header the last
  *  - "weight": the weight column
  *  - "strings": list of columns whose ids are strings even if they look like numbers; or "all"
  *  - "names": MODE:FILE, a names file of an earlier conversion, so that ids keep their rows; adds one
  *  - "delimiter": the separator of columns, one ASCII character
  *  - "no_header": flag: the first line is data; otherwise it must have names
  *
  *  CSV and TSV, only for s3cmtf_coo_convert():
  *  - "time": `COLUMN:UNIT[:FORMAT]`, groups times by year, quarter, month, week, day, hour, weekday or hour-of-week; the
  *    format is s, ms or iso, by default detected; adds one
  *  - "bin": COLUMN:quantiles=N, COLUMN:width=W or COLUMN:log=B, groups numbers; adds one
  *  - "split": COLUMN:SEPARATOR, a column with several ids per field, each of which gives an entry; adds one
  *  - "rows_of": MODE:FILE, reads an attribute table into a matrix: the first index column has ids of rows of this mode of
  *    the binary file FILE, the others give the columns of the matrix
  *  - "numeric": with rows_of, list of columns whose numbers are values of the matrix
  *  - "missing": the text of a missing field, such as NA; lines with it are skipped
  *  - "skip_bad_lines": flag: invalid lines are skipped instead of S3CMTF_BAD_FILE */
S3CMTF_CHECK_STATUS int32_t s3cmtf_text_set(s3cmtf_text *text, const char *name, const char *value,
    s3cmtf_error *error);

/** Frees options of reading text. NULL is allowed. */
void s3cmtf_text_free(s3cmtf_text *text);

/*
 * Tensors and matrices
 * --------------------
 *
 * Sparse tensors, and matrices as tensors of order 2, in coordinate (COO) format: opened from a file, copied from arrays, or
 * referring to arrays of the caller. Problems and fits share the entries, so a tensor may be freed before them.
 */

/** Map the file into memory; pages are read when they are needed. The file must not be modified while it is open (replacing
  *  it by rename is safe); truncating it ends the process with SIGBUS. */
#define S3CMTF_OPEN_MAPPED 0
/** Read the file into memory. */
#define S3CMTF_OPEN_PRIVATE 1
/** Added to a mode of s3cmtf_coo_open(): do not verify the checksums of a binary COO file. A mapped file then opens in
  *  constant time; damaged data may be fitted without an error. */
#define S3CMTF_OPEN_UNVERIFIED 2
/** s3cmtf_coo_fix() keeps the mean of the entries of a cell. */
#define S3CMTF_KEEP_MEAN 0
/** It keeps the first entry of a cell. */
#define S3CMTF_KEEP_FIRST 1
/** It keeps the last entry of a cell. */
#define S3CMTF_KEEP_LAST 2

/** The size and the types of a tensor or matrix. */
typedef struct s3cmtf_coo_info {
    /** sizeof(s3cmtf_coo_info). */
    uint64_t size;
    /** The number of modes. */
    uint64_t order;
    /** The number of entries. */
    uint64_t count;
    /** The type of the values: S3CMTF_F32 or S3CMTF_F64. */
    int32_t value_type;
    /** The type of the weights: S3CMTF_F32 or S3CMTF_F64, or 0 if the entries have no weights. */
    int32_t weight_type;
} s3cmtf_coo_info;

/** Faults that s3cmtf_coo_check() counts. All are 0 in acceptable data. */
typedef struct s3cmtf_coo_faults {
    /** sizeof(s3cmtf_coo_faults). */
    uint64_t size;
    /** Sections of the file whose checksum does not match. */
    uint64_t damaged_sections;
    /** Entries with an index that is not below the size of its mode. */
    uint64_t out_of_range;
    /** Entries with a value or weight that is not finite, or a negative weight. */
    uint64_t not_finite;
    /** Cells that are listed more than once. */
    uint64_t duplicate_cells;
    /** Entries that repeat a cell listed before. */
    uint64_t surplus_entries;
} s3cmtf_coo_faults;

/** Statistics of the values; NaN if there are no entries. */
typedef struct s3cmtf_coo_summary {
    /** sizeof(s3cmtf_coo_summary). */
    uint64_t size;
    /** The smallest value. */
    double min;
    /** The largest value. */
    double max;
    /** The mean of the values. */
    double mean;
    /** The standard deviation of the values. */
    double standard_deviation;
} s3cmtf_coo_summary;

/** What s3cmtf_coo_split() holds out. */
typedef struct s3cmtf_split_request {
    /** sizeof(s3cmtf_split_request). */
    uint64_t size;
    /** The fraction of the entries for the test file; 0: no such file. */
    double test_fraction;
    /** The fraction of the entries for the validation file; 0: no such file. */
    double valid_fraction;
    /** The seed of random splits. */
    uint64_t seed;
    /** 0: hold out random entries. 1: hold out, for each row of `row_mode`, the entries with the largest indices in
      *  `time_mode`. */
    int32_t latest;
    /** See `latest`. */
    uint64_t row_mode;
    /** See `latest`. */
    uint64_t time_mode;
    /** May be NULL. */
    const s3cmtf_cancel *cancel;
} s3cmtf_split_request;

/** Opens a binary COO file or a text file (.tns, .mtx, .csv, .tsv, optionally gzipped); text is converted to an unnamed
  *  temporary file. `mode` is S3CMTF_OPEN_MAPPED or S3CMTF_OPEN_PRIVATE. `text` (how text is parsed) and `cancel` may be
  *  NULL. The header of the file and the checksums of its sections are verified here, which reads the file once; a mismatch
  *  is S3CMTF_BAD_FILE. `mode` | S3CMTF_OPEN_UNVERIFIED leaves the checksums out. Rows have the names in the files beside
  *  it that s3cmtf_coo_convert() wrote (PATH.mode1.tsv); ids of a text must be in a table of names (option "names").
  *  Rows of a tensor or model and of other entries with names are matched by name. Entries are validated by
  *  s3cmtf_coo_check() and by every fit. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_coo_open(const char *path, int32_t mode, const s3cmtf_text *text,
    const s3cmtf_cancel *cancel, s3cmtf_coo **coo, s3cmtf_error *error);

/** Creates a tensor or matrix by copying `entries`. An index out of range is S3CMTF_BAD_ENTRY. Values that are not finite
  *  are found by s3cmtf_coo_check() and rejected by fits. If the dims are NULL, a problem may enlarge them to match its
  *  matrices. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_coo_new(const s3cmtf_entries *entries, s3cmtf_coo **coo, s3cmtf_error *error);

/** Creates a tensor or matrix that refers to the arrays of `entries` without copying them: dims given, indices of type
  *  S3CMTF_U32, stride 1 and base 0. The arrays of indices, values and weights must stay in place and unchanged until the
  *  object and every problem and fit created from it are freed. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_coo_new_view(const s3cmtf_entries *entries, s3cmtf_coo **coo, s3cmtf_error *error);

/** Writes the number of modes and entries and the types of values and weights. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_coo_get_info(const s3cmtf_coo *coo, s3cmtf_coo_info *info, s3cmtf_error *error);

/** Copies the size of each mode to `dims`, which has room for `capacity` numbers. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_coo_get_dims(const s3cmtf_coo *coo, uint64_t *dims, uint64_t capacity,
    s3cmtf_error *error);

/** Returns the zero-based indices of a mode, one per entry, without a copy. They are valid as long as the object. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_coo_view_indices(const s3cmtf_coo *coo, uint64_t mode, const uint32_t **indices,
    s3cmtf_error *error);

/** Returns the values, one per entry and of the type that s3cmtf_coo_get_info() reports, without a copy. They are valid as
  *  long as the object. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_coo_view_values(const s3cmtf_coo *coo, const void **values, s3cmtf_error *error);

/** Frees a tensor or matrix. Objects created from it stay valid. NULL is ignored. */
void s3cmtf_coo_free(s3cmtf_coo *coo);

/** Creates a tensor or matrix with the same entries, which are shared, and these weights, which are copied: one number of
  *  type `weight_type` (S3CMTF_F32 or S3CMTF_F64) per entry, finite and not negative. The squared error of an entry is
  *  multiplied by its weight, so a weight of 2 equals an entry listed twice. Weights that `coo` had before are replaced. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_coo_new_weighted(const s3cmtf_coo *coo, const void *weights, int32_t weight_type,
    s3cmtf_coo **weighted, s3cmtf_error *error);

/** Does the same with the values of `weights`, which lists the same entries in the same order; the first entry that differs
  *  is S3CMTF_BAD_ENTRY. Rows of files with names are compared by name. Both are shared, not copied. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_coo_new_weighted_by(const s3cmtf_coo *coo, const s3cmtf_coo *weights,
    s3cmtf_coo **weighted, s3cmtf_error *error);

/** Returns the weights, one per entry and of the type that s3cmtf_coo_get_info() reports, without a copy; NULL if the entries
  *  have no weights. They are valid as long as the object. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_coo_view_weights(const s3cmtf_coo *coo, const void **weights, s3cmtf_error *error);

/** Checks every entry, and the checksums of a file. s3cmtf_coo_open() rejects a file with damaged sections unless it is
  *  opened with S3CMTF_OPEN_UNVERIFIED. `cancel` may be NULL. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_coo_check(const s3cmtf_coo *coo, const s3cmtf_cancel *cancel,
    s3cmtf_coo_faults *faults, s3cmtf_error *error);

/** Writes statistics of the values to `summary` and the number of rows with an entry of each mode to `rows_used`, which has
  *  room for `capacity` numbers. `summary`, `rows_used` and `cancel` may be NULL. An entry that is out of range or not finite
  *  is S3CMTF_BAD_ENTRY. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_coo_summarize(const s3cmtf_coo *coo, const s3cmtf_cancel *cancel,
    s3cmtf_coo_summary *summary, uint64_t *rows_used, uint64_t capacity, s3cmtf_error *error);

/** Writes a binary COO file, which appears complete or not at all. `value_type` is S3CMTF_F32, S3CMTF_F64, or 0 for the type
  *  that the values have. `cancel` may be NULL. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_coo_write(const s3cmtf_coo *coo, const char *path, int32_t value_type,
    const s3cmtf_cancel *cancel, s3cmtf_error *error);

/** Converts the file `input` (text or binary COO) to the binary COO file `output`, with a file of names beside it for each
  *  mode whose identifiers are strings; or to text if `output` ends in .tns. Memory use does not grow with the file. `text`
  *  and `cancel` may be NULL. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_coo_convert(const char *input, const char *output, const s3cmtf_text *text,
    const s3cmtf_cancel *cancel, s3cmtf_error *error);

/** Writes a copy of an opened file that passes s3cmtf_coo_check(): entries out of range or not finite are removed, and
  *  duplicate entries of a cell are merged according to `keep` (S3CMTF_KEEP_...). The numbers of both go to `dropped` and
  *  `merged`, which may be NULL, as may `cancel`. A file with damaged sections is S3CMTF_BAD_FILE. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_coo_fix(const s3cmtf_coo *coo, const char *path, int32_t keep,
    const s3cmtf_cancel *cancel, uint64_t *dropped, uint64_t *merged, s3cmtf_error *error);

/** Splits an opened file into PREFIX.train.coo and, for fractions above 0, PREFIX.test.coo and PREFIX.valid.coo. All appear
  *  together or not at all. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_coo_split(const s3cmtf_coo *coo, const char *prefix,
    const s3cmtf_split_request *request, s3cmtf_error *error);

/*
 * Options
 * -------
 *
 * Options of a fit are set by name. An option whose default is "auto" is chosen by the fit from the data, unless it is set;
 * the options of the model have the chosen value. Fits and searches copy their options.
 */

/** An option that is true or false. */
#define S3CMTF_OPTION_BOOL 1
/** An integer that is not negative. */
#define S3CMTF_OPTION_INTEGER 2
/** A finite number, or "auto" if that is the default. */
#define S3CMTF_OPTION_REAL 3
/** One of several words. */
#define S3CMTF_OPTION_CHOICE 4
/** One integer or several, separated by commas, or "auto" if that is the default. */
#define S3CMTF_OPTION_INTEGER_LIST 5
/** One finite number or several, separated by commas, or "auto" if that is the default. */
#define S3CMTF_OPTION_REAL_LIST 6

/** The description of an option. The texts are constants of the library. */
typedef struct s3cmtf_option_info {
    /** sizeof(s3cmtf_option_info). */
    uint64_t size;
    /** S3CMTF_OPTION_... */
    int32_t type;
    /** The name. */
    const char *name;
    /** The default, as s3cmtf_options_set() accepts it. */
    const char *default_value;
    /** What the option does. */
    const char *help;
    /** The smallest number; "" if the option is not a number. */
    const char *min;
    /** The largest number; "" if the option is not a number. */
    const char *max;
    /** The words of S3CMTF_OPTION_CHOICE, separated by commas; otherwise "". */
    const char *choices;
} s3cmtf_option_info;

/** Creates options from a preset, such as "paper" (s3cmtf_preset_name() enumerates them); NULL means "default". */
S3CMTF_CHECK_STATUS int32_t s3cmtf_options_new(const char *preset, s3cmtf_options **options, s3cmtf_error *error);

/** Sets several options from NAME=VALUE pairs separated by white space, such as "rank=10 epochs=20 eta=0.01". A first pair
  *  preset=NAME resets all options to that preset. After an error the options are unchanged. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_options_parse(s3cmtf_options *options, const char *text, s3cmtf_error *error);

/** Sets an option from text: "true", "12", "0.001", "blocked", "10,10,4" or "auto". Words in names are separated by '_' or
  *  '-'. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_options_set(s3cmtf_options *options, const char *name, const char *value,
    s3cmtf_error *error);

/** Sets an option of type S3CMTF_OPTION_INTEGER. An option of another type is S3CMTF_BAD_ARGUMENT. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_options_set_integer(s3cmtf_options *options, const char *name, uint64_t value,
    s3cmtf_error *error);

/** Sets an option of type S3CMTF_OPTION_REAL. ("auto" is set as text.) */
S3CMTF_CHECK_STATUS int32_t s3cmtf_options_set_real(s3cmtf_options *options, const char *name, double value,
    s3cmtf_error *error);

/** Sets an option of type S3CMTF_OPTION_BOOL to 0 or 1. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_options_set_bool(s3cmtf_options *options, const char *name, int32_t value,
    s3cmtf_error *error);

/** Sets the option "rank" to one rank for all modes (`count` 1) or one for each mode. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_options_set_ranks(s3cmtf_options *options, const uint64_t *ranks, uint64_t count,
    s3cmtf_error *error);

/** Writes the value of an option as NUL-terminated text to `value`, which has room for `capacity` bytes, and the number of
  *  bytes including the NUL to `needed`, which may be NULL. With `value` NULL and `capacity` 0 only `needed` is written. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_options_get(const s3cmtf_options *options, const char *name, char *value,
    uint64_t capacity, uint64_t *needed, s3cmtf_error *error);

/** Frees options. NULL is ignored. */
void s3cmtf_options_free(s3cmtf_options *options);

/** Returns the number of options there are. */
uint64_t s3cmtf_option_count(void);

/** Writes the description of an option. `index` is below s3cmtf_option_count(). */
S3CMTF_CHECK_STATUS int32_t s3cmtf_option_get_info(uint64_t index, s3cmtf_option_info *info, s3cmtf_error *error);

/** Returns the name of preset `index`, a constant; S3CMTF_BAD_ARGUMENT beyond the last. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_preset_name(uint64_t index, const char **name, s3cmtf_error *error);

/*
 * Problems
 * --------
 *
 * A tensor and the matrices coupled to its modes. Any number of fits may use a problem, also concurrently.
 */

/** The listed entries are factorized; all other cells are unknown. */
#define S3CMTF_MATRIX_OBSERVED 0
/** The entries are similarities between rows of the mode: a graph Laplacian penalty on the differences of similar rows. */
#define S3CMTF_MATRIX_GRAPH 1
/** All cells are factorized; those that are not listed are 0. No cell is listed twice. */
#define S3CMTF_MATRIX_FULL 2
/** The listed entries and randomly sampled zeros are factorized. */
#define S3CMTF_MATRIX_SAMPLED 3
/** As S3CMTF_MATRIX_OBSERVED, or as S3CMTF_MATRIX_FULL if all entries have the same value and a fit predicts held-out entries
  *  better with zeros in the other cells. */
#define S3CMTF_MATRIX_AUTO 4

/** How a matrix is coupled to a mode. */
typedef struct s3cmtf_coupling {
    /** sizeof(s3cmtf_coupling). */
    uint64_t size;
    /** S3CMTF_MATRIX_... */
    int32_t kind;
    /** S3CMTF_MATRIX_SAMPLED: how many cells that are not listed are sampled as zeros, in the row of each listed entry; at
      *  least 1. They depend on the option "seed". Otherwise 0. */
    uint32_t zeros;
    /** The weight of the matrix in the loss (lambda_m of the paper); 0 means the option "lambda_m". */
    double weight;
    /** The penalty on the factor of the columns if `has_penalty` is 1; otherwise the option "lambda_reg" applies. */
    double penalty;
    /** See `penalty`. */
    int32_t has_penalty;
} s3cmtf_coupling;

/** Creates a problem from a tensor, which is shared and may be freed. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_problem_new(const s3cmtf_coo *tensor, s3cmtf_problem **problem, s3cmtf_error *error);

/** Couples a matrix to a mode of the tensor: its rows are the rows of that mode. If both were opened from files with names of these
  *  rows, rows are matched by name, and rows that only the matrix has are added to the mode; otherwise by number. `coupling` may be NULL. Any number of
  *  matrices may be coupled, several to one mode. The matrix is shared and may be freed. After an error the problem is
  *  unchanged. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_problem_add_matrix(s3cmtf_problem *problem, uint64_t mode, const s3cmtf_coo *matrix,
    const s3cmtf_coupling *coupling, s3cmtf_error *error);

/** Frees a problem. NULL is ignored. */
void s3cmtf_problem_free(s3cmtf_problem *problem);

/*
 * Fits
 * ----
 *
 * s3cmtf_fit_entries() and s3cmtf_fit_file() fit a model in one call. An s3cmtf_fit adds coupled matrices, validation,
 * checkpoints and progress. It runs once: either on the calling thread (s3cmtf_fit_run()), or in the background
 * (s3cmtf_fit_start(), then s3cmtf_fit_wait() or s3cmtf_fit_get_progress(), then s3cmtf_fit_take()). Objects that its set
 * functions receive may be freed before the fit.
 */

/** The fit has not started. */
#define S3CMTF_FIT_READY 0
/** The fit is running. */
#define S3CMTF_FIT_RUNNING 1
/** The fit has ended, successfully or not. */
#define S3CMTF_FIT_ENDED 2
/** An epoch ended. */
#define S3CMTF_EVENT_EPOCH 1
/** A rank was lowered to the number of rows of its mode. */
#define S3CMTF_EVENT_RANK_LOWERED 2
/** The loss diverged; the fit continues from an earlier epoch with half the learning rate. */
#define S3CMTF_EVENT_ROLLED_BACK 3
/** A checkpoint was written. */
#define S3CMTF_EVENT_CHECKPOINT 4
/** A warning about data, options or a checkpoint. Later versions may have further events. */
#define S3CMTF_EVENT_WARNING 5
/** The fit selected something that the options left open, by evidence that the message states. */
#define S3CMTF_EVENT_SELECTED 6
/** The fit has not ended. */
#define S3CMTF_STOP_NONE 0
/** All epochs ended. */
#define S3CMTF_STOP_EPOCHS 1
/** The training loss converged (option "tolerance"), or the algorithm cannot lower it any further. */
#define S3CMTF_STOP_TOLERANCE 2
/** The validation error stopped improving (option "patience"). */
#define S3CMTF_STOP_PATIENCE 3
/** The option "time_limit" was reached. Before the end of the first epoch the model has its initial values, or predicts the mean if
  *  these were not complete half a second after the limit. */
#define S3CMTF_STOP_TIME_LIMIT 4
/** A callback or a cancel token ended the fit after at least one epoch. */
#define S3CMTF_STOP_CANCELLED 5

/** The state of a fit. Quantities that were not measured are NaN. */
typedef struct s3cmtf_progress {
    /** sizeof(s3cmtf_progress). In a callback: the size of the struct of the library. */
    uint64_t size;
    /** S3CMTF_FIT_READY, S3CMTF_FIT_RUNNING or S3CMTF_FIT_ENDED. */
    int32_t state;
    /** In a callback S3CMTF_EVENT_..., otherwise 0. */
    int32_t event;
    /** S3CMTF_STOP_...; S3CMTF_STOP_NONE before the end, and if the fit failed. */
    int32_t stop_reason;
    /** S3CMTF_KERNEL_...; S3CMTF_KERNEL_UNKNOWN before the successful end. */
    int32_t kernel;
    /** The number of threads; 0 before the successful end. */
    uint64_t threads;
    /** The number of epochs completed; after the end, the epoch of the returned model. */
    uint64_t epoch;
    /** The maximum number of epochs. */
    uint64_t epochs;
    /** The number of rollbacks after divergence. */
    uint64_t rollbacks;
    /** The learning rate of the last epoch; NaN if the algorithm has none. */
    double eta;
    /** The training loss after the last epoch. */
    double loss;
    /** RMSE on the training entries. After the end this and the next two are those of the returned model. */
    double train_rmse;
    /** RMSE on the test entries. */
    double test_rmse;
    /** RMSE on the validation entries. */
    double valid_rmse;
    /** Seconds of updates in the last epoch; after the end, in all epochs. */
    double update_seconds;
    /** Seconds of evaluation, likewise. */
    double eval_seconds;
    /** Tensor and matrix entries per second of the last epoch. */
    double entries_per_second;
    /** In a callback for another event than an epoch, its description, valid until the callback returns; otherwise NULL. */
    const char *message;
} s3cmtf_progress;

/** Called by s3cmtf_fit_run() on the calling thread, after every epoch and at other events. A result other than 0 ends the
  *  fit with the model of the last epoch, or with S3CMTF_CANCELLED if there is none. The callback must not throw or longjmp. It
  *  may call the library, also with the error handle of s3cmtf_fit_run(); of its own fit it may call s3cmtf_fit_get_progress(),
  *  s3cmtf_fit_cancel() and s3cmtf_fit_free(), and other functions return S3CMTF_BAD_STATE. `progress` is valid until it returns. */
typedef int32_t (*s3cmtf_progress_callback)(const s3cmtf_progress *progress, void *user);

/** Fits a model to the tensor `entries` in one call. `options` are NAME=VALUE pairs as in s3cmtf_options_parse(), such as
  *  "rank=10 epochs=20", or NULL for the defaults. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_fit_entries(const s3cmtf_entries *entries, const char *options, s3cmtf_model **model,
    s3cmtf_error *error);

/** Fits a model to the tensor in a binary COO or text file in one call. `options` as for s3cmtf_fit_entries(). */
S3CMTF_CHECK_STATUS int32_t s3cmtf_fit_file(const char *path, const char *options, s3cmtf_model **model,
    s3cmtf_error *error);

/** Creates a fit. Problem and options are copied (entries are shared) and may be freed or changed. `options` may be NULL
  *  for the defaults. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_fit_new(const s3cmtf_problem *problem, const s3cmtf_options *options,
    s3cmtf_fit **fit, s3cmtf_error *error);

/** Sets the entries on which the test RMSE is measured after every epoch; they do not influence the fit. NULL removes them. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_fit_set_test(s3cmtf_fit *fit, const s3cmtf_coo *test, s3cmtf_error *error);

/** Sets the validation entries, which select the best epoch and, with the option "patience", stop the fit. NULL
  *  removes them. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_fit_set_valid(s3cmtf_fit *fit, const s3cmtf_coo *valid, s3cmtf_error *error);

/** Sets a model to start from; rows that it does not contain are initialized. NULL removes it. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_fit_set_init(s3cmtf_fit *fit, const s3cmtf_model *model, s3cmtf_error *error);

/** Sets the checkpoint file, which is written every "checkpoint_every" epochs (an option) and replaced atomically. A checkpoint
  *  that cannot be written does not end the fit: the first is a warning (S3CMTF_EVENT_WARNING, and in the record of the model). NULL
  *  removes it. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_fit_set_checkpoint(s3cmtf_fit *fit, const char *path, s3cmtf_error *error);

/** Sets a checkpoint to resume from. Data and options must be those of the interrupted fit; only "epochs", "samples",
  *  "threads", "pin", "kernel", "time_limit" and "checkpoint_every" may differ. A checkpoint is a model file:
  *  s3cmtf_model_load() and s3cmtf_model_get_options() tell its options. The file is only read, unless it is also set as the checkpoint to
  *  write. NULL removes it. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_fit_set_resume(s3cmtf_fit *fit, const char *path, s3cmtf_error *error);

/** Sets the plan that the fit follows: the JSON of s3cmtf_fit_plan() or s3cmtf_model_get_plan(). The fit chooses nothing,
  *  and its model has the same parameters, bit by bit, as that of the fit whose plan it is. Data and options must be those of
  *  the plan; options that have their defaults are taken from it. NULL removes it. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_fit_set_plan(s3cmtf_fit *fit, const char *json, s3cmtf_error *error);

/** Writes what the fit would do, and why, as JSON, without fitting anything: every option resolved, the matrices, and for
  *  each choice its evidence (docs/reference/json.md). The first call takes as long as the preparations of the fit; the fit
  *  then follows this plan, as after s3cmtf_fit_set_plan(), and later calls write it at once. S3CMTF_BAD_STATE once the fit has
  *  started. `text`, `capacity` and `needed` as in s3cmtf_options_get(). */
S3CMTF_CHECK_STATUS int32_t s3cmtf_fit_plan(s3cmtf_fit *fit, char *text, uint64_t capacity, uint64_t *needed,
    s3cmtf_error *error);

/** Sets a token that ends the fit from any thread. Before the end of the first epoch the fit then fails with
  *  S3CMTF_CANCELLED; later it succeeds with the model of the last completed epoch and S3CMTF_STOP_CANCELLED. NULL
  *  removes it. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_fit_set_cancel(s3cmtf_fit *fit, const s3cmtf_cancel *cancel, s3cmtf_error *error);

/** Sets the callback of s3cmtf_fit_run(), to which `user` is passed. NULL removes it. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_fit_set_callback(s3cmtf_fit *fit, s3cmtf_progress_callback callback, void *user,
    s3cmtf_error *error);

/** Runs the fit and returns the model. Until then no other function may be called with this fit, except in its callback; a
  *  token (s3cmtf_fit_set_cancel()) ends it from another thread. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_fit_run(s3cmtf_fit *fit, s3cmtf_model **model, s3cmtf_error *error);

/** Starts the fit on a background thread and returns immediately. A fit with a callback is S3CMTF_BAD_STATE. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_fit_start(s3cmtf_fit *fit, s3cmtf_error *error);

/** Writes the state of the fit. May be called while the fit runs in the background. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_fit_get_progress(const s3cmtf_fit *fit, s3cmtf_progress *progress,
    s3cmtf_error *error);

/** Waits until a fit in the background ends, for at most `seconds` (negative: without limit). Writes 1 to `running` if it is
  *  still running and 0 if it has ended. Several threads may wait at the same time. A fit that s3cmtf_fit_run() runs is
  *  S3CMTF_BAD_STATE. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_fit_wait(const s3cmtf_fit *fit, double seconds, int32_t *running,
    s3cmtf_error *error);

/** Requests the end of a fit in the background, as a cancel token does. May be called concurrently. NULL is ignored. */
void s3cmtf_fit_cancel(const s3cmtf_fit *fit);

/** Returns the model of a fit that ended in the background, or the status with which it failed. S3CMTF_BAD_STATE while it
  *  runs and after the model was taken. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_fit_take(s3cmtf_fit *fit, s3cmtf_model **model, s3cmtf_error *error);

/** Frees a fit. One that is running in the background is cancelled first, and threads that wait for it in s3cmtf_fit_wait()
  *  return. Called in the callback of the fit, it ends the fit as a result other than 0 does, the callback is not called again,
  *  and s3cmtf_fit_run() frees the fit before it returns. NULL is ignored. */
void s3cmtf_fit_free(s3cmtf_fit *fit);

/*
 * Hyperparameter search
 * ---------------------
 *
 * Random search with successive halving. Trials are sampled around the options that a fit would choose, run concurrently, and
 * are compared on validation entries; the best third continues with more epochs at the next rung. The result does not depend
 * on the number of threads. A search runs once.
 */

/** The size of a search and the entries on which trials are compared. */
typedef struct s3cmtf_tune_request {
    /** sizeof(s3cmtf_tune_request). */
    uint64_t size;
    /** The number of trials, including the fit with the given options, at most 10,000; 0 means 200. */
    uint64_t trials;
    /** The number of rungs of successive halving, at most 20; 0 means 3. At the last rung trials have all their epochs. */
    uint64_t rungs;
    /** The number of threads of each fit; 0 means 1. The option "threads" is the number of all threads together. */
    uint64_t fit_threads;
    /** The fraction of the entries that is held out for validation; 0 means 0.1. */
    double valid_fraction;
    /** Validation entries, or NULL to hold out `valid_fraction` of the tensor. Shared; may be freed. */
    const s3cmtf_coo *valid;
} s3cmtf_tune_request;

/** The result of a trial. */
typedef struct s3cmtf_trial {
    /** sizeof(s3cmtf_trial). In a callback: the size of the struct of the library. */
    uint64_t size;
    /** The number of the trial; 0 is the fit with the given options. */
    uint64_t number;
    /** The number of rungs at which it was evaluated. */
    uint64_t rungs;
    /** The number of epochs (or Gibbs sweeps) at the last of them, or at the one with the lowest RMSE if the first epochs of a
      *  fit are a shorter fit: then the options of the trial have that number. */
    uint64_t epochs;
    /** RMSE on the validation entries there; NaN if it failed. */
    double valid_rmse;
    /** Seconds of computation. */
    double seconds;
    /** In a callback, the number of trials evaluated at this rung so far; otherwise 0. */
    uint64_t done;
    /** In a callback, the number of trials of this rung; otherwise 0. */
    uint64_t total;
    /** In a callback, the lowest RMSE at this rung so far; otherwise NaN. */
    double best_rmse;
    /** Why the trial failed, or NULL. Valid until the callback returns or, outside a callback, as long as the search. */
    const char *error;
} s3cmtf_trial;

/** Called by s3cmtf_tune_run() on the calling thread, after every fit of a trial. A result other than 0 ends the search
  *  with the trials evaluated so far. The callback must not throw or longjmp. It may call the library, also with the error handle of
  *  s3cmtf_tune_run(); of its own search it may call s3cmtf_tune_free(), and other functions return S3CMTF_BAD_STATE. */
typedef int32_t (*s3cmtf_trial_callback)(const s3cmtf_trial *trial, void *user);

/** Creates a search. Problem and options are copied (entries are shared) and may be freed or changed. All trials have
  *  `options` in common, but for the options that are sampled; "time_limit" and "seed" are those of the search. `options`
  *  and `request` may be NULL. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_tune_new(const s3cmtf_problem *problem, const s3cmtf_options *options,
    const s3cmtf_tune_request *request, s3cmtf_tune **tune, s3cmtf_error *error);

/** Sets the values from which an option is sampled: a list ("8,16,32") or an interval ("0.005..0.1"). Rank, model, learning
  *  rates, penalties and weights of matrices are always sampled, by default around what a fit would choose. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_tune_set_range(s3cmtf_tune *tune, const char *name, const char *range,
    s3cmtf_error *error);

/** Sets the file in which the state of the search is saved and replaced atomically. A state that cannot be saved does not end the
  *  search: its result does not depend on the file. NULL removes it. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_tune_set_checkpoint(s3cmtf_tune *tune, const char *path, s3cmtf_error *error);

/** Sets a saved state to resume from. Data and settings must be the same; only "threads" and "time_limit" may differ. Without
  *  s3cmtf_tune_set_checkpoint() the file is also saved again. NULL removes it. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_tune_set_resume(s3cmtf_tune *tune, const char *path, s3cmtf_error *error);

/** Sets a token that ends the search from any thread with the trials evaluated so far, or with S3CMTF_CANCELLED if there are
  *  none. NULL removes it. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_tune_set_cancel(s3cmtf_tune *tune, const s3cmtf_cancel *cancel, s3cmtf_error *error);

/** Sets the callback of s3cmtf_tune_run(), to which `user` is passed. NULL removes it. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_tune_set_callback(s3cmtf_tune *tune, s3cmtf_trial_callback callback, void *user,
    s3cmtf_error *error);

/** Runs the search. After a failure it may be changed and run again. Until its end no other function may be called with this
  *  search, except in its callback. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_tune_run(s3cmtf_tune *tune, s3cmtf_error *error);

/** Writes the number of trials of a search that has ended. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_tune_get_count(const s3cmtf_tune *tune, uint64_t *count, s3cmtf_error *error);

/** Writes the result of the trial at position `place` of the ranking; 0 is the best. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_tune_get_trial(const s3cmtf_tune *tune, uint64_t place, s3cmtf_trial *trial,
    s3cmtf_error *error);

/** Returns the options of the trial at position `place` of the ranking, without "auto". "threads", "pin", "kernel" and
  *  "time_limit" are those of the search. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_tune_get_options(const s3cmtf_tune *tune, uint64_t place, s3cmtf_options **options,
    s3cmtf_error *error);

/** Writes the options of the trial at position `place` of the ranking as lines NAME=VALUE, the format of `fit --config` of
  *  the command-line program. `text`, `capacity` and `needed` as in s3cmtf_options_get(). */
S3CMTF_CHECK_STATUS int32_t s3cmtf_tune_get_text(const s3cmtf_tune *tune, uint64_t place, char *text, uint64_t capacity,
    uint64_t *needed, s3cmtf_error *error);

/** Frees a search. Called in its own callback, it ends the search as a result other than 0 does, the callback is not called
  *  again, and s3cmtf_tune_run() frees the search before it returns. NULL is ignored. */
void s3cmtf_tune_free(s3cmtf_tune *tune);

/*
 * Models
 * ------
 *
 * A model is created by a fit, a file or s3cmtf_model_fold_in(), and freed with s3cmtf_model_free(). It never changes, so all
 * threads may use it. Row r of a factor belongs to the index that s3cmtf_model_copy_row_indices() returns for r.
 */

/** A Tucker model: the core is a full tensor. */
#define S3CMTF_MODEL_TUCKER 1
/** A CP model: the core is superdiagonal. */
#define S3CMTF_MODEL_CP 2
/** Rows are contiguous, as in C. */
#define S3CMTF_ROW_MAJOR 0
/** Columns are contiguous, as in R, Julia and Fortran. */
#define S3CMTF_COLUMN_MAJOR 1

/** The size of a model. */
typedef struct s3cmtf_model_info {
    /** sizeof(s3cmtf_model_info). */
    uint64_t size;
    /** S3CMTF_MODEL_TUCKER or S3CMTF_MODEL_CP. */
    int32_t kind;
    /** The number of modes. */
    uint64_t order;
    /** The number of coupled matrices, including graphs. */
    uint64_t matrices;
    /** The number of epochs of the fit, for s3cmtf_model_get_epoch(). */
    uint64_t epochs;
    /** The number of posterior samples; 0 unless the option "algorithm" was "gibbs". Only a model with samples predicts
      *  standard deviations and quantiles. */
    uint64_t samples;
    /** The mean of the training values, or 0 if the option "mean" was false. It is a term of every prediction. */
    double mean;
    /** The smallest training value. Predictions may be clipped to the training values, see S3CMTF_CLIP_DEFAULT. */
    double min_value;
    /** The largest training value. */
    double max_value;
} s3cmtf_model_info;

/** The size of a mode of a model. */
typedef struct s3cmtf_model_mode {
    /** sizeof(s3cmtf_model_mode). */
    uint64_t size;
    /** The size of the mode; indices are below it. */
    uint64_t dim;
    /** The number of rows of its factor: of indices that occurred in the data. */
    uint64_t rows;
    /** Its rank: the number of columns of its factor. */
    uint64_t rank;
} s3cmtf_model_mode;

/** A coupled matrix of a model. */
typedef struct s3cmtf_model_matrix {
    /** sizeof(s3cmtf_model_matrix). */
    uint64_t size;
    /** The mode it is coupled to. */
    uint64_t mode;
    /** S3CMTF_MATRIX_... */
    int32_t kind;
    /** Its weight in the loss. */
    double weight;
    /** The number of its columns. */
    uint64_t columns;
    /** The number of rows of its factor: of columns that occurred in the data. A graph has none. */
    uint64_t rows;
} s3cmtf_model_matrix;

/** A matrix in memory of the library: element (r, c) is numbers[r * stride + c]. It is valid as long as the model. This
  *  struct will not change in later versions. */
typedef struct s3cmtf_view {
    /** The first element; NULL if there are no rows. */
    const float *numbers;
    /** The number of rows. */
    uint64_t rows;
    /** The number of columns. */
    uint64_t columns;
    /** The distance between rows, in numbers. */
    uint64_t stride;
} s3cmtf_view;

/** Opens a model file, or the model in a checkpoint. `mode` is S3CMTF_OPEN_MAPPED or S3CMTF_OPEN_PRIVATE. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_load(const char *path, int32_t mode, s3cmtf_model **model,
    s3cmtf_error *error);

/** Writes a model file, which appears complete or not at all. If its rows have names, because its tensor was opened from a file with
  *  names, these are written beside it (PATH.mode1.tsv), as are those of columns of matrices (PATH.matrix1.tsv). */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_save(const s3cmtf_model *model, const char *path, s3cmtf_error *error);

/** Writes factors, core, mean, biases, and factors and offsets of the matrices to a folder as .npy files, factors and core
  *  also as text. Text tables have a line for each row up to the size of its mode; a model whose tables would exceed 16 GiB
  *  is an error. `cancel` may be NULL. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_export(const s3cmtf_model *model, const char *folder,
    const s3cmtf_cancel *cancel, s3cmtf_error *error);

/** Frees a model. Views of its factors become invalid; fits that start from it do not. NULL is ignored. */
void s3cmtf_model_free(s3cmtf_model *model);

/** Writes the kind and the size of a model, and its mean and range of values. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_get_info(const s3cmtf_model *model, s3cmtf_model_info *info,
    s3cmtf_error *error);

/** Writes the size of a mode and of its factor. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_get_mode(const s3cmtf_model *model, uint64_t mode, s3cmtf_model_mode *info,
    s3cmtf_error *error);

/** Writes the mode, the kind and the size of a coupled matrix. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_get_matrix(const s3cmtf_model *model, uint64_t matrix,
    s3cmtf_model_matrix *info, s3cmtf_error *error);

/** Returns the options of the fit, with the values that the fit chose in place of "auto". */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_get_options(const s3cmtf_model *model, s3cmtf_options **options,
    s3cmtf_error *error);

/** Writes the plan of the fit as JSON: what it did, and why (docs/reference/json.md); an empty text for a model that was not
  *  fitted. s3cmtf_fit_set_plan() repeats it. `text`, `capacity` and `needed` as in s3cmtf_options_get(). */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_get_plan(const s3cmtf_model *model, char *text, uint64_t capacity,
    uint64_t *needed, s3cmtf_error *error);

/** Writes the record of the fit as lines NAME=VALUE: note=EPOCH EVENT TEXT for each event (rolled-back, rank-lowered or
  *  warning), then reason, epochs, best_epoch, train_rmse, test_rmse, valid_rmse, clipped, threads, kernel, update_seconds,
  *  eval_seconds, seconds, read_seconds and init_seconds, and thread_share=ACTIVITY FRACTION for each activity of the threads
  *  of a traced fit. A checkpoint has only events. `text`, `capacity` and `needed` as in s3cmtf_options_get(). */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_get_record(const s3cmtf_model *model, char *text, uint64_t capacity,
    uint64_t *needed, s3cmtf_error *error);

/** Writes the errors, the loss and the times of an epoch, below s3cmtf_model_info.epochs. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_get_epoch(const s3cmtf_model *model, uint64_t epoch, s3cmtf_progress *progress,
    s3cmtf_error *error);

/** Copies the zero-based index of each row of a factor, ascending, to `indices`, which has room for `capacity` numbers of
  *  type `index_type` (S3CMTF_U32 or S3CMTF_U64). */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_copy_row_indices(const s3cmtf_model *model, uint64_t mode, void *indices,
    uint64_t capacity, int32_t index_type, s3cmtf_error *error);

/** Copies the factor of a mode, rows x rank, to `numbers`, which has room for `capacity` numbers of type `number_type`
  *  (S3CMTF_F32 or S3CMTF_F64). `layout` is S3CMTF_ROW_MAJOR or S3CMTF_COLUMN_MAJOR. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_copy_factor(const s3cmtf_model *model, uint64_t mode, void *numbers,
    uint64_t capacity, int32_t number_type, int32_t layout, s3cmtf_error *error);

/** Copies the row of an index of a mode: its row of the factor, or the mean row if the index did not occur in the data. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_copy_row(const s3cmtf_model *model, uint64_t mode, uint64_t index,
    void *numbers, uint64_t capacity, int32_t number_type, s3cmtf_error *error);

/** Returns a view of the factor of a mode, valid as long as the model. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_view_factor(const s3cmtf_model *model, uint64_t mode, s3cmtf_view *view,
    s3cmtf_error *error);

/** Copies the biases of a mode, one per row of its factor; zeros if the model has no biases. Indices that did not occur in
  *  the data are predicted with the mean bias of the mode. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_copy_biases(const s3cmtf_model *model, uint64_t mode, void *numbers,
    uint64_t capacity, int32_t number_type, s3cmtf_error *error);

/** Returns a view of the biases of a mode, one column; no rows if the model has no biases. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_view_biases(const s3cmtf_model *model, uint64_t mode, s3cmtf_view *view,
    s3cmtf_error *error);

/** Copies the core. S3CMTF_MODEL_TUCKER: the product of the ranks, last mode fastest with S3CMTF_ROW_MAJOR, first mode
  *  fastest with S3CMTF_COLUMN_MAJOR. S3CMTF_MODEL_CP: its superdiagonal. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_copy_core(const s3cmtf_model *model, void *numbers, uint64_t capacity,
    int32_t number_type, int32_t layout, s3cmtf_error *error);

/** Returns a view of the core, in row-major order: one row for each combination of columns of all modes but the last, one
  *  column for each column of the last. S3CMTF_MODEL_CP: one row, the superdiagonal. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_view_core(const s3cmtf_model *model, s3cmtf_view *view, s3cmtf_error *error);

/** Copies the column index of each row of the factor of a coupled matrix, as s3cmtf_model_copy_row_indices() does for a mode.
  *  A graph has no factor: S3CMTF_BAD_ARGUMENT, here and below. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_copy_matrix_indices(const s3cmtf_model *model, uint64_t matrix, void *indices,
    uint64_t capacity, int32_t index_type, s3cmtf_error *error);

/** Copies the factor matrix V of a coupled matrix. Arguments are those of s3cmtf_model_copy_factor(). */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_copy_matrix(const s3cmtf_model *model, uint64_t matrix, void *numbers,
    uint64_t capacity, int32_t number_type, int32_t layout, s3cmtf_error *error);

/** Returns a view of the factor V of a coupled matrix. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_view_matrix(const s3cmtf_model *model, uint64_t matrix, s3cmtf_view *view,
    s3cmtf_error *error);

/** Copies the column offsets of a coupled matrix, one per row of its factor; zeros if the model has none. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_copy_offsets(const s3cmtf_model *model, uint64_t matrix, void *numbers,
    uint64_t capacity, int32_t number_type, s3cmtf_error *error);

/** Returns a view of the column offsets of a coupled matrix, one column; no rows if the model has none. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_view_offsets(const s3cmtf_model *model, uint64_t matrix, s3cmtf_view *view,
    s3cmtf_error *error);

/*
 * Predictions
 * -----------
 *
 * Predictions for cells of the tensor, their standard deviations and quantiles, and the errors of a model on given entries.
 * Results go to arrays of the caller. One model may serve any number of threads.
 */

/** Clip if the option "clip" of the model's fit was true, or auto and the values have a bounded scale, such as ratings. */
#define S3CMTF_CLIP_DEFAULT 0
/** Do not clip. */
#define S3CMTF_CLIP_OFF 1
/** Clip predictions and quantiles to the range of the training values. */
#define S3CMTF_CLIP_ON 2

/** What to predict, and how. The numbers in the outputs have the type of the predictions. */
typedef struct s3cmtf_predict_request {
    /** sizeof(s3cmtf_predict_request). */
    uint64_t size;
    /** S3CMTF_CLIP_... */
    int32_t clip;
    /** The number of threads; 0 means all CPUs that the process may use. Results do not depend on it. */
    uint64_t threads;
    /** May be NULL. */
    const s3cmtf_cancel *cancel;
    /** Output: the predictive standard deviation of each cell, from posterior and noise; room for `capacity` numbers, or
      *  NULL. */
    void *deviations;
    /** Probabilities above 0 and below 1 of the quantiles to predict, such as 0.05 and 0.95. */
    const double *quantiles;
    /** The number of quantiles. */
    uint64_t quantile_count;
    /** Output: the quantiles of the value of each cell, those of a cell contiguous; room for `capacity` x `quantile_count`
      *  numbers, or NULL. */
    void *quantile_values;
} s3cmtf_predict_request;

/** The errors of a model on a set of entries. */
typedef struct s3cmtf_evaluation {
    /** sizeof(s3cmtf_evaluation). */
    uint64_t size;
    /** The number of entries. Without entries all errors are 0. */
    uint64_t entries;
    /** The root-mean-square error of predictions that are not clipped. */
    double rmse;
    /** The mean absolute error of predictions that are not clipped. */
    double mae;
    /** The root-mean-square error of predictions that are clipped to the range of the training values. */
    double clipped_rmse;
    /** The mean absolute error of predictions that are clipped to the range of the training values. */
    double clipped_mae;
} s3cmtf_evaluation;

/** Scores of a model on entries with exactly two values, low and high. Entries count by weight. */
typedef struct s3cmtf_binary_scores {
    /** sizeof(s3cmtf_binary_scores). */
    uint64_t size;
    /** The number of entries. */
    uint64_t entries;
    /** The smaller value. */
    double low;
    /** The larger value. */
    double high;
    /** The fraction of the entries with the high value. */
    double high_fraction;
    /** The area under the ROC curve: the probability that an entry of the high value has a larger prediction than one of the
      *  low value, where equal predictions count one half. Predictions are not clipped. */
    double auc;
    /** The mean of -ln p, with p the predicted probability of the value. That of the high value is
      *  (prediction - low) / (high - low), limited to 0.000001 and 0.999999. */
    double log_loss;
} s3cmtf_binary_scores;

/** Scores of the predictive distributions of a model on a set of entries; lower is better. Values are treated as discrete, like
  *  ratings or counts, if there are 2 to 32 distinct values, or up to 4,096 that occur 20 times on average. The probability of a
  *  discrete value is that of the range between the midpoints to its neighbours. If only part of that range lies inside an
  *  interval, the value counts as covered by the corresponding fraction of its probability. */
typedef struct s3cmtf_distribution_scores {
    /** sizeof(s3cmtf_distribution_scores). */
    uint64_t size;
    /** The number of entries. Without entries all scores are 0. */
    uint64_t entries;
    /** The number of levels of the values; 0 if the values are continuous. */
    uint64_t levels;
    /** The mean of -ln p, with p the predictive density of the value or the probability of its level. */
    double log_score;
    /** The mean continuous ranked probability score, in the unit of the values. */
    double crps;
    /** The fraction of the values inside their central 50% interval. */
    double coverage_50;
    /** The fraction of the values inside their central 90% interval. */
    double coverage_90;
    /** The mean width of the central 90% intervals. */
    double width_90;
} s3cmtf_distribution_scores;

/** Predicts one cell on the calling thread, clipped as S3CMTF_CLIP_DEFAULT. `cell` has one zero-based index per mode. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_predict_cell(const s3cmtf_model *model, const uint64_t *cell,
    double *prediction, s3cmtf_error *error);

/** Predicts cells. An index that did not occur in the data, also one beyond the size of its mode, is predicted from the
  *  mean row of its mode. `predictions` has room for `capacity` numbers of type `number_type` (S3CMTF_F32 or S3CMTF_F64); it
  *  may be NULL if `request` has other outputs. `request` may be NULL. Standard deviations and quantiles need a model with
  *  posterior samples; otherwise they are S3CMTF_BAD_ARGUMENT. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_predict(const s3cmtf_model *model, const s3cmtf_indices *cells,
    void *predictions, uint64_t capacity, int32_t number_type, const s3cmtf_predict_request *request,
    s3cmtf_error *error);

/** Predicts the cell of every entry of `coo`, whose values are ignored; otherwise as s3cmtf_model_predict(). */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_predict_coo(const s3cmtf_model *model, const s3cmtf_coo *coo,
    void *predictions, uint64_t capacity, int32_t number_type, const s3cmtf_predict_request *request,
    s3cmtf_error *error);

/** Predicts every entry of `coo` and writes the errors. `threads` 0 means all CPUs that the process may use; `cancel` may
  *  be NULL. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_evaluate(const s3cmtf_model *model, const s3cmtf_coo *coo, uint64_t threads,
    const s3cmtf_cancel *cancel, s3cmtf_evaluation *evaluation, s3cmtf_error *error);

/** Predicts every entry of `coo` and writes the scores of the predictions. Entries of positive weight that do not have exactly two
  *  values are S3CMTF_BAD_ARGUMENT. `threads` 0 means all CPUs that the process may use; `cancel` may be NULL. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_evaluate_binary(const s3cmtf_model *model, const s3cmtf_coo *coo,
    uint64_t threads, const s3cmtf_cancel *cancel, s3cmtf_binary_scores *scores, s3cmtf_error *error);

/** Predicts the distribution of every entry of `coo` and writes the scores. A model without posterior samples is
  *  S3CMTF_BAD_ARGUMENT. `threads` 0 means all CPUs that the process may use; `cancel` may be NULL. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_evaluate_distributions(const s3cmtf_model *model, const s3cmtf_coo *coo,
    uint64_t threads, const s3cmtf_cancel *cancel, s3cmtf_distribution_scores *scores, s3cmtf_error *error);

/*
 * New rows
 * --------
 *
 * Adds rows to a model without a new fit, such as users who arrive later. The given model does not change and may be in use on
 * other threads; the result is a new model, which the caller frees.
 */

/** Input of s3cmtf_model_fold_in(): all entries of the new rows. */
typedef struct s3cmtf_fold_in_request {
    /** sizeof(s3cmtf_fold_in_request). */
    uint64_t size;
    /** Tensor entries of the rows. May be NULL if there are matrices. */
    const s3cmtf_coo *tensor;
    /** Number of matrices. */
    uint64_t matrix_count;
    /** Matrix entries of the rows. Columns that the model does not have are ignored. */
    const s3cmtf_coo *const *matrices;
    /** For each matrix, its number in the model; each is coupled to the mode. */
    const uint64_t *matrix_numbers;
    /** For each matrix, its weight; 0: that of the fit. NULL: all those of the fit. */
    const double *weights;
    /** 1: replace rows of the model that have tensor entries; 0: S3CMTF_BAD_ARGUMENT for such rows. */
    int32_t replace;
    /** Number of threads; 0: all available to the process. The result does not depend on it. */
    uint64_t threads;
    /** NULL, or a token that cancels the call. */
    const s3cmtf_cancel *cancel;
} s3cmtf_fold_in_request;

/** Creates a model that also has the rows of `mode` with entries in `request`; free it with s3cmtf_model_free().
  *  Rows are solved by least squares with the rest of the model fixed, or sampled once per posterior sample. Other
  *  predictions do not change; the mode grows if necessary. Rows of other modes that the model does not have count as
  *  the mean row of their mode. `added` and `replaced` (numbers of rows) may be NULL. A model with an L1 penalty and
  *  entries of a graph are S3CMTF_BAD_ARGUMENT. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_fold_in(const s3cmtf_model *model, uint64_t mode,
    const s3cmtf_fold_in_request *request, s3cmtf_model **folded, uint64_t *added, uint64_t *replaced,
    s3cmtf_error *error);

/*
 * Rankings
 * --------
 *
 * Recommendations, similar rows, and metrics of rankings on test entries. Results go to arrays of the caller. One model may
 * serve any number of threads.
 */

/** Input of s3cmtf_model_recommend(). `candidates` and `exclude_rows` count from queries.base; rows in them that
  *  the model does not have are ignored. */
typedef struct s3cmtf_recommend_request {
    /** sizeof(s3cmtf_recommend_request). */
    uint64_t size;
    /** Mode whose rows are ranked. */
    uint64_t mode;
    /** Length of each list; 0: 10. */
    uint64_t top;
    /** Rows of the other modes, one per query. A mode with a NULL pointer is averaged over; the pointer of `mode`
      *  is ignored. */
    s3cmtf_indices queries;
    /** 0: rank by the prediction. Above 0 and below 1: by this quantile, which needs a model with posterior samples. */
    double quantile;
    /** NULL, or entries: rows that have one with the query's row of mode exclude_mode are left out. */
    const s3cmtf_coo *exclude;
    /** Mode of the query that `exclude` applies to. Ignored without `exclude`. */
    uint64_t exclude_mode;
    /** The only rows to rank; NULL: all rows of the model. */
    const uint64_t *candidates;
    /** Number of candidates. */
    uint64_t candidate_count;
    /** Rows to leave out; may be NULL. */
    const uint64_t *exclude_rows;
    /** Number of rows to leave out. */
    uint64_t exclude_row_count;
    /** Number of threads; 0: all available to the process. Results do not depend on it. */
    uint64_t threads;
    /** NULL, or a token that cancels the call. */
    const s3cmtf_cancel *cancel;
} s3cmtf_recommend_request;

/** Input of s3cmtf_model_similar(). */
typedef struct s3cmtf_similar_request {
    /** sizeof(s3cmtf_similar_request). */
    uint64_t size;
    /** Mode of the rows. */
    uint64_t mode;
    /** Length of each list; 0: 10. */
    uint64_t top;
    /** Rows whose neighbours are wanted. */
    const uint64_t *rows;
    /** Number of these rows. */
    uint64_t row_count;
    /** Number of threads; 0: all available to the process. Results do not depend on it. */
    uint64_t threads;
    /** NULL, or a token that cancels the call. */
    const s3cmtf_cancel *cancel;
} s3cmtf_similar_request;

/** Input of s3cmtf_model_evaluate_ranking(). */
typedef struct s3cmtf_ranking_request {
    /** sizeof(s3cmtf_ranking_request). */
    uint64_t size;
    /** Mode whose rows are ranked. */
    uint64_t mode;
    /** Mode of the users: each of its rows gets a list. The remaining modes are averaged over. */
    uint64_t user_mode;
    /** Length of each list, the k of "recall at k"; 0: 10. */
    uint64_t length;
    /** As in s3cmtf_recommend_request. */
    double quantile;
    /** Smallest value of a relevant test entry, if has_min_relevant_value is 1. */
    double min_relevant_value;
    /** 0: every test entry is relevant. */
    int32_t has_min_relevant_value;
    /** Number of threads; 0: all available to the process. Results do not depend on it. */
    uint64_t threads;
    /** NULL, or a token that cancels the call. */
    const s3cmtf_cancel *cancel;
} s3cmtf_ranking_request;

/** Output of s3cmtf_model_evaluate_ranking(). Metrics are means over users; those of `popularity` are for lists
  *  ordered by the number of training entries of a row. */
typedef struct s3cmtf_ranking {
    /** Bytes written; set it to sizeof(s3cmtf_ranking) before the call. */
    uint64_t size;
    /** Number of users with a relevant row. */
    uint64_t users;
    /** Fraction of users whose list has a relevant row. */
    double hit_rate;
    /** Fraction of the relevant rows of a user that are in the list. */
    double recall;
    /** Normalized discounted cumulative gain: a relevant row at rank p, from 1, gains 1 / log2(p + 1). */
    double ndcg;
    /** As hit_rate. */
    double popularity_hit_rate;
    /** As recall. */
    double popularity_recall;
    /** As ndcg. */
    double popularity_ndcg;
} s3cmtf_ranking;

/** Lists, for each query, the `top` rows of a mode with the largest predictions (not clipped), the best first. Of
  *  equal scores the smaller row comes first. List q begins at `rows[q * top]` and `scores[q * top]` and has `counts[q]`
  *  rows, which count from queries.base; the rest of its room is not written. `rows` and `scores` have room for
  *  `capacity` items, at least top x queries.count, and may be NULL; `counts` has room for queries.count. Only rows of
  *  the model are ranked. A query with a row that the model does not have is S3CMTF_BAD_ARGUMENT. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_recommend(const s3cmtf_model *model, const s3cmtf_recommend_request *request,
    uint64_t *rows, double *scores, uint64_t capacity, uint64_t *counts, s3cmtf_error *error);

/** Lists, for each row of the request, the `top` other rows of its mode with the most similar predictions: the
  *  largest cosine over all cells, without mean and biases. Outputs are as for s3cmtf_model_recommend(), with cosines
  *  as scores and row_count lists; rows count from 0. Rows without tensor entries are not listed. A row that the model
  *  does not have is S3CMTF_BAD_ARGUMENT. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_similar(const s3cmtf_model *model, const s3cmtf_similar_request *request,
    uint64_t *rows, double *scores, uint64_t capacity, uint64_t *counts, s3cmtf_error *error);

/** Computes ranking metrics on test entries. The list of a user has the best rows of `mode` that the user has no
  *  entry with in `train`. Relevant are the rows of the user's test entries, unless the user has an entry with them in
  *  `train`; users without relevant rows are left out. Entries of weight 0 are ignored. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_model_evaluate_ranking(const s3cmtf_model *model, const s3cmtf_coo *test,
    const s3cmtf_coo *train, const s3cmtf_ranking_request *request, s3cmtf_ranking *ranking, s3cmtf_error *error);

/*
 * Concepts
 * --------
 *
 * What the columns of a factor represent: their strength, and the rows and matrix columns with the largest and smallest
 * loadings. The result is independent of the model and may be read on any threads.
 */

/** The end of a concept with the largest loadings. */
#define S3CMTF_LARGEST 0
/** The end of a concept with the smallest loadings. */
#define S3CMTF_SMALLEST 1

/** Input of s3cmtf_concepts_new(). */
typedef struct s3cmtf_concepts_request {
    /** sizeof(s3cmtf_concepts_request). */
    uint64_t size;
    /** Largest number of rows, and of columns per coupled matrix, at each end of a concept; 0: 10. */
    uint64_t top;
    /** Smallest number of tensor entries of a listed row; 0: 1. */
    uint64_t min_entries;
    /** Modes with a given row, none of them the described mode; may be NULL if there are none. */
    const uint64_t *given_modes;
    /** The given row of each. */
    const uint64_t *given_rows;
    /** Number of given rows. The remaining modes are averaged over. */
    uint64_t given_count;
    /** NULL, or a token that cancels the call. */
    const s3cmtf_cancel *cancel;
} s3cmtf_concepts_request;

/** Output of s3cmtf_concepts_get(). */
typedef struct s3cmtf_concept {
    /** Bytes written; set it to sizeof(s3cmtf_concept) before the call. */
    uint64_t size;
    /** Column of the factor. */
    uint64_t column;
    /** Root mean square of the concept's contribution to predictions, weighted by tensor entries. */
    double strength;
    /** Contribution to the prediction for a row of loading 1, with modes that are not given at their mean rows; 0 or
      *  more. */
    double effect;
    /** 1 if the sign of the column was flipped to make the effect 0 or more: loadings and shares have the opposite sign
      *  of the model's numbers. Otherwise 0. */
    int32_t sign_flipped;
    /** Number of rows at S3CMTF_LARGEST. */
    uint64_t largest_rows;
    /** Number of rows at S3CMTF_SMALLEST. */
    uint64_t smallest_rows;
    /** Number of matrix columns at S3CMTF_LARGEST. */
    uint64_t largest_columns;
    /** Number of matrix columns at S3CMTF_SMALLEST. */
    uint64_t smallest_columns;
} s3cmtf_concept;

/** Output of s3cmtf_concepts_get_column(): a column of a coupled matrix that is associated with a concept. */
typedef struct s3cmtf_concept_column {
    /** Bytes written; set it to sizeof(s3cmtf_concept_column) before the call. */
    uint64_t size;
    /** Matrix of the model. */
    uint64_t matrix;
    /** Column of the matrix. */
    uint64_t column;
    /** Contribution of the concept to the column's prediction for a row of loading 1, divided by the root mean square of
      *  the column's predictions. */
    double share;
} s3cmtf_concept_column;

/** Describes the concepts of `mode`; free the result with s3cmtf_concepts_free(). A concept contributes to a
  *  prediction the product of a row's number in its column and of the core contracted with the rows of the other modes.
  *  `request` may be NULL. A given row that the model does not have is S3CMTF_BAD_ARGUMENT. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_concepts_new(const s3cmtf_model *model, uint64_t mode,
    const s3cmtf_concepts_request *request, s3cmtf_concepts **concepts, s3cmtf_error *error);

/** Gets the number of concepts: the rank of the mode. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_concepts_get_count(const s3cmtf_concepts *concepts, uint64_t *count,
    s3cmtf_error *error);

/** Gets concept `index`; the strongest is 0. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_concepts_get(const s3cmtf_concepts *concepts, uint64_t index, s3cmtf_concept *info,
    s3cmtf_error *error);

/** Copies the rows at an end of a concept (S3CMTF_LARGEST or S3CMTF_SMALLEST), the most extreme first. A loading is
  *  the number of the row in the column divided by the column's root mean square, weighted by tensor entries. `rows` and
  *  `loadings` have room for `capacity` items, at least largest_rows or smallest_rows of s3cmtf_concept; either may be
  *  NULL. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_concepts_copy_rows(const s3cmtf_concepts *concepts, uint64_t index, int32_t end,
    uint64_t *rows, double *loadings, uint64_t capacity, s3cmtf_error *error);

/** Gets a matrix column at an end of a concept: S3CMTF_LARGEST has the largest shares, S3CMTF_SMALLEST the smallest.
  *  `place` is below largest_columns or smallest_columns of s3cmtf_concept. Columns are ordered by matrix, then the most
  *  extreme first. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_concepts_get_column(const s3cmtf_concepts *concepts, uint64_t index, int32_t end,
    uint64_t place, s3cmtf_concept_column *column, s3cmtf_error *error);

/** Copies the core contracted with the given rows, which is a matrix if exactly one other mode has no given row. It
  *  has one row per concept, in the order of the factor's columns, and `columns` numbers per row, those of `mode`; it is
  *  scaled to factor columns of root mean square 1. `numbers` has room for `capacity` items and may be NULL; `found` is
  *  their number, 0 if there is no matrix (`columns` is then 0 and `mode` the described mode). `mode` and `columns` may
  *  be NULL. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_concepts_copy_profile(const s3cmtf_concepts *concepts, double *numbers,
    uint64_t capacity, uint64_t *mode, uint64_t *columns, uint64_t *found, s3cmtf_error *error);

/** Frees concepts. NULL is allowed. */
void s3cmtf_concepts_free(s3cmtf_concepts *concepts);

/*
 * Clusters
 * --------
 *
 * K-means clusters of the rows of a mode, labelled by columns of matrices. The result is independent of the model and may be
 * read on any threads.
 */

/** Distances between rows are those of their predictions, for the tensor and for the coupled matrices of the mode. */
#define S3CMTF_SPACE_PREDICTIONS 0
/** Distances between rows are those of their factor rows, with columns scaled to the same norm. */
#define S3CMTF_SPACE_COLUMNS 1

/** Input of s3cmtf_clusters_new(). */
typedef struct s3cmtf_clusters_request {
    /** sizeof(s3cmtf_clusters_request). */
    uint64_t size;
    /** Number of clusters, at most 10,000; 0: chosen by the gap statistic. */
    uint64_t k;
    /** Largest number of clusters of the gap curve, at most 1,000; 0: 20, or no curve if `k` is above 0. */
    uint64_t max_k;
    /** Number of k-means runs, of which the best is kept, at most 1,000; 0: 10. */
    uint64_t restarts;
    /** Number of reference sets of the gap statistic, at most 1,000; 0: 10. */
    uint64_t references;
    /** Largest number of rows for the gap curve, at most 1,000,000; more are subsampled. 0: 20,000. */
    uint64_t curve_rows;
    /** Smallest number of tensor entries of a clustered row; 0: 1. */
    uint64_t min_entries;
    /** S3CMTF_SPACE_PREDICTIONS or S3CMTF_SPACE_COLUMNS. */
    int32_t space;
    /** Largest number of members listed per cluster; 0: 10. */
    uint64_t members;
    /** Largest number of labels listed per cluster and matrix; 0: 10. */
    uint64_t labels;
    /** Matrices whose columns label clusters. Their rows are the rows of the mode; a row has a label if its entry in that
      *  column is above 0. May be NULL if there are none. */
    const s3cmtf_coo *const *matrices;
    /** Number of matrices. */
    uint64_t matrix_count;
    /** Seed of all random choices. */
    uint64_t seed;
    /** Number of threads; 0: all available to the process. The result does not depend on it. */
    uint64_t threads;
    /** NULL, or a token that cancels the call. */
    const s3cmtf_cancel *cancel;
} s3cmtf_clusters_request;

/** Output of s3cmtf_clusters_get_info(). Without a gap curve its four fields are 0. */
typedef struct s3cmtf_clusters_info {
    /** Bytes written; set it to sizeof(s3cmtf_clusters_info) before the call. */
    uint64_t size;
    /** Number of clusters; below `k` if there are fewer distinct rows. */
    uint64_t clusters;
    /** Number of clustered rows. */
    uint64_t rows;
    /** Between-cluster fraction of the total variance of the rows. */
    double explained_variance;
    /** Number of label matrices. */
    uint64_t matrices;
    /** Number of points of the gap curve. */
    uint64_t curve_length;
    /** Smallest k with gap(k) >= gap(k + 1) - standard error(k + 1); the last k if there is none. If it is 1 and the
      *  curve rises again, the same rule among k with a gap clearly above gap(1) chooses the number of clusters. */
    uint64_t curve_choice;
    /** Number of rows the curve was computed on. */
    uint64_t curve_rows;
    /** 1 if a k satisfies the rule; 0 if none does, and a larger max_k may give a larger gap. */
    int32_t curve_settled;
} s3cmtf_clusters_info;

/** Output of s3cmtf_clusters_get(). */
typedef struct s3cmtf_cluster {
    /** Bytes written; set it to sizeof(s3cmtf_cluster) before the call. */
    uint64_t size;
    /** Number of rows. */
    uint64_t rows;
    /** Root mean square distance of the rows to the centre. The unit of distances is that of all rows to their mean. */
    double radius;
    /** Number of listed members. */
    uint64_t members;
    /** Number of listed labels. */
    uint64_t labels;
} s3cmtf_cluster;

/** Output of s3cmtf_clusters_get_label(): a matrix column that is over-represented in a cluster. */
typedef struct s3cmtf_cluster_label {
    /** Bytes written; set it to sizeof(s3cmtf_cluster_label) before the call. */
    uint64_t size;
    /** Matrix of the request. */
    uint64_t matrix;
    /** Column of the matrix. */
    uint64_t column;
    /** Number of rows of the cluster with the label. */
    uint64_t rows_in_cluster;
    /** Number of clustered rows with the label. */
    uint64_t rows_overall;
    /** Fraction of the cluster's rows with the label, divided by that of all rows. */
    double lift;
    /** Hypergeometric probability of at least so many rows with the label in a random cluster of this size. */
    double p_value;
    /** Decimal logarithm of the p-value; finite where the p-value underflows to 0. */
    double log10_p_value;
    /** Natural logarithm of the odds ratio inside and outside the cluster, with 1/2 added to each of the four counts. */
    double log_odds;
} s3cmtf_cluster_label;

/** Output of s3cmtf_clusters_get_gap(): a point of the gap curve. */
typedef struct s3cmtf_gap {
    /** Bytes written; set it to sizeof(s3cmtf_gap) before the call. */
    uint64_t size;
    /** Number of clusters. */
    uint64_t clusters;
    /** Gap: log_reference - log_within. */
    double gap;
    /** Standard error of the gap. */
    double standard_error;
    /** Natural logarithm of the within-cluster sum of squares. */
    double log_within;
    /** Mean of the same over the reference sets. */
    double log_reference;
} s3cmtf_gap;

/** Clusters the rows of `mode` by k-means; free the result with s3cmtf_clusters_free(). `request` may be NULL. With
  *  both `k` and max_k above 0 there are `k` clusters, and a gap curve as well. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_clusters_new(const s3cmtf_model *model, uint64_t mode,
    const s3cmtf_clusters_request *request, s3cmtf_clusters **clusters, s3cmtf_error *error);

/** Gets the number of clusters and other figures of the whole result. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_clusters_get_info(const s3cmtf_clusters *clusters, s3cmtf_clusters_info *info,
    s3cmtf_error *error);

/** Gets cluster `index`; the largest is 0. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_clusters_get(const s3cmtf_clusters *clusters, uint64_t index, s3cmtf_cluster *info,
    s3cmtf_error *error);

/** Copies the listed members of a cluster, the nearest to its centre first, and their distances to it. `rows` and
  *  `distances` have room for `capacity` items, at least the field `members` of s3cmtf_cluster. Either may be NULL. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_clusters_copy_members(const s3cmtf_clusters *clusters, uint64_t index,
    uint64_t *rows, double *distances, uint64_t capacity, s3cmtf_error *error);

/** Gets a label of a cluster. `place` is below `labels` of s3cmtf_cluster; labels are ordered by matrix, then by
  *  ascending p-value. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_clusters_get_label(const s3cmtf_clusters *clusters, uint64_t index, uint64_t place,
    s3cmtf_cluster_label *label, s3cmtf_error *error);

/** Copies the centre of a cluster: the mean of its factor rows, as many numbers as the rank of the mode. `numbers` has
  *  room for `capacity` items. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_clusters_copy_centre(const s3cmtf_clusters *clusters, uint64_t index,
    double *numbers, uint64_t capacity, s3cmtf_error *error);

/** Copies all clustered rows, ascending, and the cluster of each into `which`. Both have room for `capacity` items, at
  *  least `rows` of s3cmtf_clusters_info; either may be NULL. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_clusters_copy_rows(const s3cmtf_clusters *clusters, uint64_t *rows, uint64_t *which,
    uint64_t capacity, s3cmtf_error *error);

/** Gets a point of the gap curve. `place` is below curve_length of s3cmtf_clusters_info; place 0 is one cluster. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_clusters_get_gap(const s3cmtf_clusters *clusters, uint64_t place, s3cmtf_gap *gap,
    s3cmtf_error *error);

/** Copies, for each label matrix, the uncertainty coefficient of its labels given the clusters (Theil's U): their mutual
  *  information divided by the entropy of the labels, 0 to 1. `shares` has room for `capacity` items, at least `matrices`
  *  of s3cmtf_clusters_info. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_clusters_copy_information(const s3cmtf_clusters *clusters, double *shares,
    uint64_t capacity, s3cmtf_error *error);

/** Frees clusters. NULL is allowed. */
void s3cmtf_clusters_free(s3cmtf_clusters *clusters);

/*
 * Names of rows
 * -------------
 *
 * Conversion of text leaves files with the names of rows beside the data (OUT.mode1.tsv, ...). Names are read into memory;
 * they never change and may be read on any threads.
 */

/** Reads a names file: TSV or CSV with the number of a row, from 1, in the first column and its name in the second. A
  *  first line that does not begin with a number is a header. Free the result with s3cmtf_names_free(). */
S3CMTF_CHECK_STATUS int32_t s3cmtf_names_open(const char *path, s3cmtf_names **names, s3cmtf_error *error);

/** Reads the names file of a mode that s3cmtf_coo_convert() wrote beside a data file, such as ratings.mode1.tsv beside
  *  ratings.coo. `path` is the data file, or another file with the same beginning, such as ratings.train.coo or
  *  ratings.s3m. Stores NULL if there is no names file. Free the result with s3cmtf_names_free(). */
S3CMTF_CHECK_STATUS int32_t s3cmtf_names_open_beside(const char *path, uint64_t mode, s3cmtf_names **names,
    s3cmtf_error *error);

/** Gets the last row with a name, plus 1; 0 if there are no names. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_names_get_count(const s3cmtf_names *names, uint64_t *count, s3cmtf_error *error);

/** Copies the name of a row, with its terminating NUL, into `name`, which has room for `capacity` bytes. `needed` is its
  *  size in bytes with the NUL and may be NULL. With `name` NULL and `capacity` 0 only `needed` is written. The name is
  *  empty if the row has none. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_names_get(const s3cmtf_names *names, uint64_t row, char *name, uint64_t capacity,
    uint64_t *needed, s3cmtf_error *error);

/** Finds the first row with a name. S3CMTF_BAD_ARGUMENT if no row has it; the message suggests similar names. */
S3CMTF_CHECK_STATUS int32_t s3cmtf_names_find(const s3cmtf_names *names, const char *name, uint64_t *row,
    s3cmtf_error *error);

/** Frees names. NULL is allowed. */
void s3cmtf_names_free(s3cmtf_names *names);

#ifdef __cplusplus
}
#endif

#endif /* S3CMTF_H */
