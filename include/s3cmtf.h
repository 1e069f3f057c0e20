/*
 * s3cmtf: factorizes a sparse tensor together with coupled sparse matrices.
 *
 * This file is the manual of the C interface. It is made from the library's sources; do not edit it.
 *
 * EXAMPLE
 *
 *     #include <stdio.h>
 *     #include <s3cmtf.h>
 *
 *     static int32_t show(const s3cmtf_progress *p, void *user)
 *     {
 *         (void)user;
 *         if (p->event == S3CMTF_EVENT_EPOCH)
 *             printf("epoch %d: training RMSE %.4f\n", (int)p->epoch, p->train_rmse);
 *         return 0; // anything else ends the fit
 *     }
 *
 *     int main(void)
 *     {
 *         // Six ratings: user, film, month and stars.
 *         const uint32_t user[] = {0, 0, 1, 1, 2, 2}, film[] = {0, 1, 0, 2, 1, 2}, month[] = {0, 1, 1, 0, 0, 1};
 *         const float stars[] = {5, 3, 4, 1, 3, 2};
 *         const void *const indices[] = {user, film, month};
 *         const uint64_t dims[] = {3, 3, 2};
 *
 *         s3cmtf_error *error = NULL;
 *         s3cmtf_coo *ratings = NULL;
 *         s3cmtf_problem *problem = NULL;
 *         s3cmtf_options *options = NULL;
 *         s3cmtf_fit *fit = NULL;
 *         s3cmtf_model *model = NULL;
 *         double prediction = 0;
 *         int32_t status = s3cmtf_error_new(&error);
 *
 *         if (!status) status = s3cmtf_coo_new(3, dims, 6, indices, S3CMTF_U32, 1, 0, stars, S3CMTF_F32, &ratings, error);
 *         if (!status) status = s3cmtf_problem_new(ratings, &problem, error);
 *         if (!status) status = s3cmtf_options_new("paper", &options, error);
 *         if (!status) status = s3cmtf_options_set(options, "rank", "2", error);
 *         if (!status) status = s3cmtf_options_set_whole(options, "epochs", 10, error);
 *         if (!status) status = s3cmtf_options_set_real(options, "eta", 0.05, error);
 *         if (!status) status = s3cmtf_fit_new(problem, options, &fit, error);
 *         if (!status) status = s3cmtf_fit_set_callback(fit, show, NULL, error);
 *         if (!status) status = s3cmtf_fit_run(fit, &model, error);
 *
 *         // What would user 0 have given film 2 in month 1?
 *         const uint32_t cell[] = {0, 2, 1};
 *         const void *const where[] = {&cell[0], &cell[1], &cell[2]};
 *         if (!status)
 *             status = s3cmtf_model_predict(model, 1, where, S3CMTF_U32, 1, 0, 1, 0, NULL, &prediction, 1, S3CMTF_F64, error);
 *         if (!status) printf("prediction %.2f\n", prediction);
 *         if (status) fprintf(stderr, "%s: %s\n", s3cmtf_status_name(status), s3cmtf_error_message(error));
 *
 *         s3cmtf_model_free(model);
 *         s3cmtf_fit_free(fit);
 *         s3cmtf_options_free(options);
 *         s3cmtf_problem_free(problem);
 *         s3cmtf_coo_free(ratings);
 *         s3cmtf_error_free(error);
 *         return status != 0;
 *     }
 *
 * OBJECTS
 *
 *   s3cmtf_error     what went wrong, in words
 *   s3cmtf_cancel    ends work from another thread
 *   s3cmtf_text      how text files are read
 *   s3cmtf_coo       a sparse tensor or matrix: a file, a copy of arrays, or a view of them
 *   s3cmtf_options   the options of a fit
 *   s3cmtf_problem   a tensor with the matrices coupled to its modes
 *   s3cmtf_fit       one fit, run on the calling thread or in the background
 *   s3cmtf_tune      a search for better options than a fit chooses by itself
 *   s3cmtf_model     what a fit gives: predictions, factors, core, mean, biases, lists of rows
 *   s3cmtf_names     the names of the rows of a mode
 *
 * RULES
 *
 * - Functions return a status: S3CMTF_OK (0) or what went wrong (S3CMTF_...). Those that cannot fail
 *   return what they are asked for.
 * - The last argument of a function that can fail is an s3cmtf_error, or NULL. After a failure it has
 *   the message; after a success it is as it was.
 * - Results go to where a pointer says, and are written only on success: after a failure everything is
 *   as it was, buffers too.
 * - What an s3cmtf_..._new, _open, _load, _run, _take or _get_options gives is yours, and is freed with
 *   the _free function of its type, once. Freeing NULL does nothing. Objects may be freed in any order:
 *   what still needs another keeps it alive.
 * - Arrays and texts you pass are copied, or used only during the call, unless the name of the
 *   function ends in _view. Pointers you are given are part of the object that gave them and live as
 *   long as it, or are constant where the function says so.
 * - A function that takes an object as const may run concurrently with others that do, on any thread.
 *   One that takes it without const must be alone with it. Different objects never interfere.
 * - Pointers must not be NULL unless the function says so. That, numbers out of range, buffers too
 *   small and arrays not aligned are found and give a status. What cannot be found is a pointer that
 *   does not point to what it should.
 * - What a call writes to is aligned as its type must be, and overlaps neither anything else it writes
 *   to nor anything it reads: no pointer is passed twice for two results.
 * - Arrays that have no items, to be read or to be written, may be NULL. Sizes and counts are numbers of
 *   items, not bytes.
 * - Modes, rows and indices count from 0, entries in messages from 1.
 * - Texts are UTF-8 and end in NUL; names of files are what the system takes.
 *
 * PREDICTIONS
 *
 * A model predicts the cell (i, j, k) of a tensor of order 3, and likewise of any other, as
 *
 *   mean + b1[i] + b2[j] + b3[k] + sum over p, q, r of g[p,q,r] * u1[i,p] * u2[j,q] * u3[k,r]
 *
 * and the entry (i, c) of a matrix that is coupled to mode 1 as
 *
 *   offset[c] + sum over p of u1[i,p] * v[c,p]
 *
 * with s3cmtf_model_get_mean(), _copy_biases(), _copy_core(), _copy_factor() of each mode, and _copy_offsets()
 * and _copy_matrix() of the matrix. Of S3CMTF_MODEL_CP only g[p,p,p] exists. A model that was fitted without
 * mean, biases or offsets has zeros there. An index that did not occur in the data has bias 0 and the mean row
 * (s3cmtf_model_copy_row()). The library multiplies core and rows in single precision.
 * A model fitted with "algorithm" "gibbs" predicts the mean of its samples; its numbers are those of the last.
 * It also knows how sure it is: s3cmtf_model_predict_spread() gives deviations and quantiles.
 *
 * A model never changes. Rows that come after training make a new one (s3cmtf_model_fold_in()), from what is known
 * of them and all that the model knows, in the time it takes to read their entries.
 *
 * s3cmtf_model_recommend() ranks the rows of a mode for rows of others, s3cmtf_model_similar() for rows of the same, and
 * s3cmtf_model_evaluate_ranking() says how good such lists are. s3cmtf_concepts_new() says what the columns of a factor stand
 * for, s3cmtf_clusters_new() which rows of a mode belong together.
 *
 * PROMISES TO THE HOST
 *
 * - Nothing is printed, no signal handler is set, no locale or environment is changed.
 * - The environment is read on the calling thread only: S3CMTF_KERNEL by the first call of the process,
 *   RUST_MIN_STACK by the first that starts a thread, TMPDIR by every s3cmtf_coo_open() of text and
 *   s3cmtf_coo_convert() of text to text. A host that calls setenv() on other threads makes its first
 *   calls before.
 * - Threads exist while a call works, and while a fit runs in the background; there are none when all
 *   fits are freed. They are called "s3cmtf". Signals sent to the process are blocked in them, so that
 *   handlers run on threads of the host. A call that is told to use one thread to predict or evaluate
 *   starts none. A call works in the child of a fork, if no fit ran in the background when it was forked.
 * - The floating-point mode of the calling thread does not matter, and is what it was after the call,
 *   and in callbacks.
 * - A mistake inside the library is the status S3CMTF_INTERNAL, not the end of the process.
 * - If the system refuses memory for all entries, all rows or all factors, the call fails with
 *   S3CMTF_OUT_OF_MEMORY. If it refuses memory for less (texts, handles, what a thread works with, lists
 *   made while reading text), the process ends by abort(), with a line on standard error. So it does, by
 *   other means, where a system promises memory that it does not have, as Linux does.
 * - A thread that calls needs 64 KiB of stack.
 */

#ifndef S3CMTF_H
#define S3CMTF_H

#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define S3CMTF_CHECK_STATUS __attribute__((warn_unused_result))
#else
#define S3CMTF_CHECK_STATUS
#endif

/**
 * Done.
 */
#define S3CMTF_OK 0

/**
 * A cancel token ended the work before there was a result. Nothing is left behind.
 */
#define S3CMTF_CANCELLED 1

/**
 * A pointer that must not be NULL is NULL.
 */
#define S3CMTF_NULL_ARGUMENT 2

/**
 * An argument is out of range, is no number of its list, is not aligned or not UTF-8, or contradicts
 * another argument or the data.
 */
#define S3CMTF_BAD_ARGUMENT 3

/**
 * A buffer is too small for what would be written; the message says how large it must be.
 */
#define S3CMTF_BUFFER_TOO_SMALL 4

/**
 * The object is not in a state for this: a fit that runs, or has run already.
 */
#define S3CMTF_BAD_STATE 5

/**
 * A file is missing, damaged or not what was asked for; the message has the line or byte.
 */
#define S3CMTF_BAD_FILE 6

/**
 * An entry is out of range or not finite; the message has its number, counted from 1.
 */
#define S3CMTF_BAD_ENTRY 7

/**
 * The operating system refused: no permission, disk full, no thread.
 */
#define S3CMTF_SYSTEM 8

/**
 * There is no memory for this many entries or rows.
 */
#define S3CMTF_OUT_OF_MEMORY 9

/**
 * A mistake in this library. The objects of the call may still be freed, and should not be used
 * otherwise. Please report it.
 */
#define S3CMTF_INTERNAL 10

/**
 * Codes from here to 999 are reserved: later versions may return them for what is one of the above
 * now. Treat every code but 0 as a failure. Codes are never reused, and never negative.
 */
#define S3CMTF_RESERVED 11

/**
 * The version of this header. Versions with the same major number are compatible (while it is 0: the
 * same minor number); newer ones have more functions.
 */
#define S3CMTF_VERSION_MAJOR 0

/**
 * See S3CMTF_VERSION_MAJOR.
 */
#define S3CMTF_VERSION_MINOR 1

/**
 * See S3CMTF_VERSION_MAJOR.
 */
#define S3CMTF_VERSION_PATCH 0

/**
 * The version as one number: 10203 for 1.2.3.
 */
#define S3CMTF_VERSION_NUMBER (((S3CMTF_VERSION_MAJOR * 10000) + (S3CMTF_VERSION_MINOR * 100)) + S3CMTF_VERSION_PATCH)

/**
 * In s3cmtf_progress: the kernel is not known yet.
 */
#define S3CMTF_KERNEL_UNKNOWN -1

/**
 * The kernels, slowest first: one number at a time. Everywhere.
 */
#define S3CMTF_KERNEL_SCALAR 0

/**
 * Portable vectors: SSE2 or NEON. Everywhere.
 */
#define S3CMTF_KERNEL_WIDE 1

/**
 * AVX2 with fused multiply-add.
 */
#define S3CMTF_KERNEL_AVX2 2

/**
 * AVX-512.
 */
#define S3CMTF_KERNEL_AVX512 3

/**
 * Indices are uint32_t. (Types of indices and of values have different numbers, so that a mix-up is found.)
 */
#define S3CMTF_U32 1

/**
 * Indices are uint64_t.
 */
#define S3CMTF_U64 2

/**
 * Values are float.
 */
#define S3CMTF_F32 3

/**
 * Values are double.
 */
#define S3CMTF_F64 4

/**
 * A file is mapped: nothing is copied, pages are read when they are needed. The file must not be changed
 * while it is open; cutting it short under the map ends the process with SIGBUS. Replacing it by renaming
 * another over it, as this library does, is fine.
 */
#define S3CMTF_OPEN_MAPPED 0

/**
 * A file is read into memory: it costs its size, and what happens to the file later does not matter.
 */
#define S3CMTF_OPEN_PRIVATE 1

/**
 * Where s3cmtf_coo_check() counts sections of a file whose bytes do not match their checksum.
 */
#define S3CMTF_CHECK_DAMAGED 0

/**
 * Where it counts entries with an index that is not below its size.
 */
#define S3CMTF_CHECK_OUT_OF_RANGE 1

/**
 * Where it counts entries with a value or weight that is not finite, or a weight below 0.
 */
#define S3CMTF_CHECK_NOT_FINITE 2

/**
 * Where it counts cells that are listed more than once.
 */
#define S3CMTF_CHECK_DUPLICATES 3

/**
 * Where it counts entries that repeat a cell listed before them.
 */
#define S3CMTF_CHECK_SURPLUS 4

/**
 * How many numbers s3cmtf_coo_check() has; grows in later versions.
 */
#define S3CMTF_CHECK_COUNTS 5

/**
 * s3cmtf_coo_fix() keeps the mean of a cell listed more than once.
 */
#define S3CMTF_KEEP_MEAN 0

/**
 * It keeps the first entry of such a cell.
 */
#define S3CMTF_KEEP_FIRST 1

/**
 * It keeps the last.
 */
#define S3CMTF_KEEP_LAST 2

/**
 * For s3cmtf_coo_split(): no mode, so that entries are held out at random.
 */
#define S3CMTF_NO_MODE UINT64_MAX

/**
 * An option is true or false.
 */
#define S3CMTF_OPTION_TYPE_FLAG 1

/**
 * An option is a whole number.
 */
#define S3CMTF_OPTION_TYPE_WHOLE 2

/**
 * An option is a finite number, or "auto" if that is its default.
 */
#define S3CMTF_OPTION_TYPE_REAL 3

/**
 * An option is one of some words.
 */
#define S3CMTF_OPTION_TYPE_CHOICE 4

/**
 * An option is one whole number, or several separated by commas, or "auto" if that is its default.
 */
#define S3CMTF_OPTION_TYPE_RANKS 5

/**
 * An option is one finite number, or several separated by commas, or "auto" if that is its default.
 */
#define S3CMTF_OPTION_TYPE_REALS 6

/**
 * s3cmtf_option_text() gives the name of an option.
 */
#define S3CMTF_OPTION_NAME 1

/**
 * It gives the default, as s3cmtf_options_set() takes it.
 */
#define S3CMTF_OPTION_DEFAULT 2

/**
 * It gives what the option does.
 */
#define S3CMTF_OPTION_HELP 3

/**
 * It gives the smallest number the option takes; empty if it takes none.
 */
#define S3CMTF_OPTION_LOW 4

/**
 * It gives the largest number the option takes; empty if it takes none.
 */
#define S3CMTF_OPTION_HIGH 5

/**
 * It gives the words the option takes, separated by commas; empty if it takes others.
 */
#define S3CMTF_OPTION_WORDS 6

/**
 * A coupled matrix is factorized over its entries.
 */
#define S3CMTF_MATRIX_OBSERVED 0

/**
 * A coupled matrix holds similarities between the rows of its mode, and draws similar rows together.
 */
#define S3CMTF_MATRIX_GRAPH 1

/**
 * A coupled matrix is factorized over all its cells; those that are not listed are 0.
 */
#define S3CMTF_MATRIX_FULL 2

/**
 * A coupled matrix is factorized over its entries and zeros that were drawn for them: see
 * s3cmtf_problem_add_sampled_matrix().
 */
#define S3CMTF_MATRIX_SAMPLED 3

/**
 * As a weight this stands for the options "matrix_weights" and "lambda_m" of the fit, as a penalty for "lambda_reg".
 */
#define S3CMTF_FROM_OPTIONS -1.0

/**
 * The fit has not begun.
 */
#define S3CMTF_FIT_READY 0

/**
 * The fit runs.
 */
#define S3CMTF_FIT_RUNNING 1

/**
 * The fit has ended, well or not.
 */
#define S3CMTF_FIT_ENDED 2

/**
 * A callback is called because an epoch is done.
 */
#define S3CMTF_EVENT_EPOCH 1

/**
 * It is called because a rank was lowered to the rows its mode has.
 */
#define S3CMTF_EVENT_RANK_LOWERED 2

/**
 * It is called because the loss exploded, and the fit went back to an earlier epoch with half the step size.
 */
#define S3CMTF_EVENT_ROLLED_BACK 3

/**
 * It is called because a checkpoint was written.
 */
#define S3CMTF_EVENT_CHECKPOINT 4

/**
 * With "valid_fraction": the best epoch is known, and all entries are fitted to from here on.
 */
#define S3CMTF_EVENT_REFIT 5

/**
 * It is called because the data is not likely to be what was meant; the message says why. Later versions may
 * have further reasons to call.
 */
#define S3CMTF_EVENT_WARNING 6

/**
 * The fit has not ended.
 */
#define S3CMTF_STOP_NONE 0

/**
 * All epochs were run.
 */
#define S3CMTF_STOP_EPOCHS 1

/**
 * The training loss hardly changed any more.
 */
#define S3CMTF_STOP_TOLERANCE 2

/**
 * The validation error got no better.
 */
#define S3CMTF_STOP_PATIENCE 3

/**
 * The time was up. If that was before an epoch was finished, the model has its starting values.
 */
#define S3CMTF_STOP_TIME_LIMIT 4

/**
 * A callback or a token said so, after at least one epoch: there is a model.
 */
#define S3CMTF_STOP_CANCELLED 5

/**
 * The core is full.
 */
#define S3CMTF_MODEL_TUCKER 1

/**
 * The core is hyper-diagonal.
 */
#define S3CMTF_MODEL_CP 2

/**
 * The numbers of a row lie side by side, as in C.
 */
#define S3CMTF_ROW_MAJOR 0

/**
 * The numbers of a column lie side by side, as in R, Julia and Fortran.
 */
#define S3CMTF_COLUMN_MAJOR 1

/**
 * The largest of a list come first.
 */
#define S3CMTF_LARGEST 0

/**
 * The smallest of a list come first.
 */
#define S3CMTF_SMALLEST 1

/**
 * Distances are those of what rows predict, for the tensor and for the coupled matrices of their mode.
 */
#define S3CMTF_SPACE_PREDICTIONS 0

/**
 * Distances are those of the numbers of the factor, its columns brought to the same norm.
 */
#define S3CMTF_SPACE_COLUMNS 1

/**
 * Ends work from any thread, also from a signal handler: give it to a call, and request. All its
 * functions but s3cmtf_cancel_free() may run concurrently with each other and with the work. A token stays
 * requested until it is reset, and may be given to any number of calls.
 */
typedef struct s3cmtf_cancel s3cmtf_cancel;

/**
 * The rows of a mode in clusters. It never changes, so that every function that takes it as const may run concurrently,
 * and it does not need the model any more.
 */
typedef struct s3cmtf_clusters s3cmtf_clusters;

/**
 * The concepts of a mode: what the columns of its factor stand for. It never changes, so that every function that takes
 * it as const may run concurrently, and it does not need the model any more.
 */
typedef struct s3cmtf_concepts s3cmtf_concepts;

/**
 * A sparse tensor or matrix: for each entry one index per mode, a value and, if it has any, a weight. It
 * never changes after it was made, so that every function that takes it as const may run concurrently.
 * Problems and fits made from it share it: it may be freed before them.
 */
typedef struct s3cmtf_coo s3cmtf_coo;

/**
 * What the last call that failed with this handle had to say. Make one, pass it to any number of calls,
 * and read it after a failure; a call that succeeds leaves it as it was. One handle per thread: a call
 * that is given it writes to it.
 */
typedef struct s3cmtf_error s3cmtf_error;

/**
 * One fit: what it is to do, and once it has begun, how far it is. It runs once, in one of two ways.
 * s3cmtf_fit_run() runs it on the calling thread (which starts the threads the options ask for) and
 * returns the model. s3cmtf_fit_start() lets it run in the background: poll it with
 * s3cmtf_fit_get_progress() or wait with s3cmtf_fit_wait(), then take the model with s3cmtf_fit_take().
 */
typedef struct s3cmtf_fit s3cmtf_fit;

/**
 * A fitted model. It never changes, so that every function that takes it as const may run concurrently.
 * Modes, matrices and rows count from 0.
 *
 * Each mode has a row for each of its indices that occurred in the data: row r of its factor belongs to
 * the index that s3cmtf_model_copy_row_indices() gives for r, in ascending order. All other indices share one
 * more row, the mean of the rows by their entries, from which they are predicted.
 *
 * The prediction of a cell is the mean of the model, plus the bias of its row in each mode, plus the core
 * multiplied with its rows; that of an entry of a coupled matrix is the offset of its column plus the product
 * of the row of the mode and the column's row of V. What a model lacks is 0.
 */
typedef struct s3cmtf_model s3cmtf_model;

/**
 * The names of the rows of a mode. It never changes, so that every function that takes it as const may run
 * concurrently. Rows count from 0.
 */
typedef struct s3cmtf_names s3cmtf_names;

/**
 * All options of a fit. They start as a preset and are set by name; the table of names, types, ranges,
 * defaults and help texts is read with s3cmtf_option_count() and its kin. A fit copies them.
 *
 * Options whose default is "auto" are chosen by the fit, from the data; a number or a word put there is taken
 * as it is. s3cmtf_options_set() with "auto" gives the choice back. What was chosen is in the options of the
 * model: see s3cmtf_model_get_options().
 */
typedef struct s3cmtf_options s3cmtf_options;

/**
 * A tensor and the matrices and graphs coupled to its modes. Fits copy what they need when they begin, so
 * any number of fits may share one, one after the other or side by side.
 */
typedef struct s3cmtf_problem s3cmtf_problem;

/**
 * How text files are read: their format, sizes and columns. Without one (NULL) the format is found from
 * the name and the content, indices count from 1, and of CSV and TSV the last column is the value and all
 * others are indices.
 */
typedef struct s3cmtf_text s3cmtf_text;

/**
 * A search for better options than a fit chooses by itself: random search with successive halving. Trials
 * are drawn around what the fit would choose, which is the first of them; they are fitted side by side, each
 * on one thread, for some of their epochs, and compared on entries that are held out; the best third goes
 * on. The outcome does not depend on the number of threads. A search runs once.
 */
typedef struct s3cmtf_tune s3cmtf_tune;

/**
 * The figures of a fit. It grows at its end in later versions, which is what `size` is for: set it to
 * sizeof before handing the struct to a function, and a field beyond it is never touched; in a callback,
 * use only fields within it. Figures that were not measured are NaN.
 */
typedef struct s3cmtf_progress {
    /**
     * The bytes of this struct that mean something.
     */
    uint64_t size;
    /**
     * S3CMTF_FIT_READY, S3CMTF_FIT_RUNNING or S3CMTF_FIT_ENDED.
     */
    int32_t state;
    /**
     * In a callback, what it is called for: S3CMTF_EVENT_EPOCH and so on. Otherwise 0.
     */
    int32_t event;
    /**
     * Why the fit ended: S3CMTF_STOP_EPOCHS and so on. S3CMTF_STOP_NONE before, and if it failed.
     */
    int32_t stop_reason;
    /**
     * The kernel in use, S3CMTF_KERNEL_...; S3CMTF_KERNEL_UNKNOWN until the fit has ended well.
     */
    int32_t kernel;
    /**
     * The number of threads in use; 0 until the fit has ended well.
     */
    uint64_t threads;
    /**
     * Epochs done. When the fit has ended: the epoch of the model it returns.
     */
    uint64_t epoch;
    /**
     * The most epochs there will be.
     */
    uint64_t epochs;
    /**
     * How often the fit went back.
     */
    uint64_t rollbacks;
    /**
     * The step size of the last epoch.
     */
    double eta;
    /**
     * The training loss after the last epoch.
     */
    double loss;
    /**
     * The error on the training entries. When the fit has ended, this and the next two are those of the
     * model it returns.
     */
    double train_rmse;
    /**
     * The error on the test entries.
     */
    double test_rmse;
    /**
     * The error on the validation entries.
     */
    double valid_rmse;
    /**
     * Seconds the last epoch took; when the fit has ended, all of them.
     */
    double update_seconds;
    /**
     * Seconds spent measuring errors, in the same way.
     */
    double eval_seconds;
    /**
     * Tensor and matrix entries per second of the last epoch.
     */
    double entries_per_second;
    /**
     * In a callback, words for an event that is not an epoch; otherwise NULL. It lives until the callback
     * returns.
     */
    const char *message;
} s3cmtf_progress;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Called on the thread that called s3cmtf_fit_run(), after every epoch and when something else is worth
 * knowing. Returning anything but 0 ends the fit, with the model of the last epoch; before there is one, with
 * S3CMTF_CANCELLED. It must not throw, longjmp out, or use the fit it is called from; other calls of the
 * library are fine. `progress` lives until it returns, `user` is what it was set with.
 */
typedef int32_t (*s3cmtf_callback)(const s3cmtf_progress *progress, void *user);

/**
 * What a trial gave. It grows at its end in later versions, which is what `size` is for: set it to sizeof
 * before handing the struct to a function, and a field beyond it is never touched; in a callback, use only
 * fields within it.
 */
typedef struct s3cmtf_trial {
    /**
     * The bytes of this struct that mean something.
     */
    uint64_t size;
    /**
     * The number of the trial, from 0; that is the fit that is not tuned.
     */
    uint64_t number;
    /**
     * How many rungs it was measured at.
     */
    uint64_t rungs;
    /**
     * The epochs at the last of them ("gibbs": sweeps).
     */
    uint64_t epochs;
    /**
     * The error there, on the entries that trials are compared on; NaN if there is none.
     */
    double valid_rmse;
    /**
     * Seconds spent on it.
     */
    double seconds;
    /**
     * In a callback, the trials measured at this rung, and those to be measured; otherwise 0.
     */
    uint64_t done;
    /**
     * See `done`.
     */
    uint64_t total;
    /**
     * In a callback, the lowest error at this rung so far; otherwise NaN.
     */
    double best_rmse;
    /**
     * Why the trial failed; NULL if it did not. It lives until the callback returns, or as long as the
     * search.
     */
    const char *failed;
} s3cmtf_trial;

/**
 * Called on the thread that called s3cmtf_tune_run(), after every fit of a trial. Returning anything but 0
 * ends the search with what it has. It must not throw, longjmp out, or use the search it is called from;
 * other calls of the library are fine. `trial` lives until it returns, `user` is what it was set with.
 */
typedef int32_t (*s3cmtf_trial_callback)(const s3cmtf_trial *trial, void *user);

/**
 * The name of a status, such as "S3CMTF_OK"; "S3CMTF_RESERVED" for a number that is none. The text is
 * constant and never freed.
 */
const char *s3cmtf_status_name(int32_t status);

/**
 * Makes an error handle, to be freed with s3cmtf_error_free().
 */
S3CMTF_CHECK_STATUS int32_t s3cmtf_error_new(s3cmtf_error **error);

/**
 * The message of the last failure, in UTF-8: what was wrong, where, and what would be right. Empty if
 * there was none or `error` is NULL. It lives until the handle is given to another call or freed.
 */
const char *s3cmtf_error_message(const s3cmtf_error *error);

/**
 * The status of the last failure; S3CMTF_OK if there was none or `error` is NULL.
 */
int32_t s3cmtf_error_status(const s3cmtf_error *error);

/**
 * Frees an error handle. NULL is fine.
 */
void s3cmtf_error_free(s3cmtf_error *error);

/**
 * The version of the library that is linked, as S3CMTF_VERSION_NUMBER is that of the header that was
 * compiled with.
 */
uint32_t s3cmtf_version_number(void);

/**
 * The same as text, such as "1.2.3". Constant, never freed.
 */
const char *s3cmtf_version(void);

/**
 * How the library was built: version, machine, system, and whether with optimisations. Constant, never
 * freed.
 */
const char *s3cmtf_build_info(void);

/**
 * The name of a kernel (S3CMTF_KERNEL_...), as the option "kernel" takes it. Constant, never freed.
 */
S3CMTF_CHECK_STATUS int32_t s3cmtf_kernel_name(int32_t kernel, const char **name, s3cmtf_error *error);

/**
 * Whether this machine has a kernel: writes 1 or 0.
 */
S3CMTF_CHECK_STATUS int32_t s3cmtf_kernel_available(int32_t kernel, int32_t *available, s3cmtf_error *error);

/**
 * The fastest kernel of this machine, which is used where neither the option "kernel" nor the environment
 * variable S3CMTF_KERNEL says otherwise.
 */
int32_t s3cmtf_kernel_best(void);

/**
 * Makes a token, to be freed with s3cmtf_cancel_free().
 */
S3CMTF_CHECK_STATUS int32_t s3cmtf_cancel_new(s3cmtf_cancel **cancel, s3cmtf_error *error);

/**
 * Asks all work that has the token to end, now and later. Safe in a signal handler. NULL does nothing.
 */
void s3cmtf_cancel_request(const s3cmtf_cancel *cancel);

/**
 * Makes a requested token fresh again. NULL does nothing.
 */
void s3cmtf_cancel_reset(const s3cmtf_cancel *cancel);

/**
 * Whether the token was requested: 1 or 0. NULL gives 0.
 */
int32_t s3cmtf_cancel_requested(const s3cmtf_cancel *cancel);

/**
 * Frees a token. Fits that have it go on, and can no longer be cancelled by it. Any other call that was given
 * it must have returned. NULL is fine.
 */
void s3cmtf_cancel_free(s3cmtf_cancel *cancel);

/**
 * Makes options for reading text, to be freed with s3cmtf_text_free().
 */
S3CMTF_CHECK_STATUS int32_t s3cmtf_text_new(s3cmtf_text **text, s3cmtf_error *error);

/**
 * Sets an option by name, as on the command line:
 * "from" (tns, mtx, csv or tsv), "dims" (sizes of the modes, separated by commas),
 * "zero_based", "no_value" (every value is 1), "weighted" (true or false), "values" (f32 or f64: how they
 * are stored), and for CSV and TSV "columns" (the index columns, separated by commas), "value" and "weight"
 * (columns), "strings" (columns whose ids are words even if they look like numbers, or all), "names"
 * ("MODE:FILE" from an earlier conversion, the mode counted from 0, may be set more than once),
 * "delimiter", "no_header".
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_text_set(s3cmtf_text *text,
                        const char *name,
                        const char *value,
                        s3cmtf_error *error);

/**
 * Frees options for reading text. NULL is fine.
 */
void s3cmtf_text_free(s3cmtf_text *text);

/**
 * Opens a binary COO file, or text (.tns, .mtx, .csv, .tsv, each also gzipped) through a binary copy that
 * has no name and goes away with the object. `mode` is S3CMTF_OPEN_MAPPED or S3CMTF_OPEN_PRIVATE; `text`
 * says how text is read and may be NULL, as may `cancel`. Only the structure is checked:
 * s3cmtf_coo_check() looks at every entry, and so does a fit. Free with s3cmtf_coo_free().
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_coo_open(const char *path,
                        int32_t mode,
                        const s3cmtf_text *text,
                        const s3cmtf_cancel *cancel,
                        s3cmtf_coo **coo,
                        s3cmtf_error *error);

/**
 * Makes a tensor (or, with `order` 2, a matrix) of `count` entries by copying them.
 *
 * `indices` has one pointer per mode. `indices[n][i * stride]` is the index of entry i in mode n, of type
 * `index_type` (S3CMTF_U32 or S3CMTF_U64), counted from `base` (0 or 1). For separate arrays `stride` is 1;
 * for records of all modes of an entry it is `order`, and `indices[n]` points to the n-th number of the
 * first record. `values` are `count` numbers of `value_type` (S3CMTF_F32 or S3CMTF_F64).
 *
 * `dims` has the size of each mode; with NULL it is the largest index, and a problem may widen it to agree
 * with what it is coupled with. An index beyond its size is S3CMTF_BAD_ENTRY. Values are looked at by
 * s3cmtf_coo_check() and by fits, which refuse NaN and infinities. Free with s3cmtf_coo_free().
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_coo_new(uint64_t order,
                       const uint64_t *dims,
                       uint64_t count,
                       const void *const *indices,
                       int32_t index_type,
                       uint64_t stride,
                       int32_t base,
                       const void *values,
                       int32_t value_type,
                       s3cmtf_coo **coo,
                       s3cmtf_error *error);

/**
 * As s3cmtf_coo_new(), without a copy: separate arrays of uint32_t counted from 0, all sizes stated. The
 * arrays must stay where and as they are until the object and every problem and fit made from it are
 * freed; the sizes are copied. Entries are checked when they are used.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_coo_new_view(uint64_t order,
                            const uint64_t *dims,
                            uint64_t count,
                            const uint32_t *const *indices,
                            const void *values,
                            int32_t value_type,
                            s3cmtf_coo **coo,
                            s3cmtf_error *error);

/**
 * The number of modes.
 */
S3CMTF_CHECK_STATUS int32_t s3cmtf_coo_get_order(const s3cmtf_coo *coo, uint64_t *order, s3cmtf_error *error);

/**
 * The number of entries.
 */
S3CMTF_CHECK_STATUS int32_t s3cmtf_coo_get_count(const s3cmtf_coo *coo, uint64_t *count, s3cmtf_error *error);

/**
 * Copies the size of each mode into `dims`, which has room for `capacity` numbers.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_coo_get_dims(const s3cmtf_coo *coo,
                            uint64_t *dims,
                            uint64_t capacity,
                            s3cmtf_error *error);

/**
 * How the values are stored: S3CMTF_F32 or S3CMTF_F64.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_coo_get_value_type(const s3cmtf_coo *coo,
                                  int32_t *value_type,
                                  s3cmtf_error *error);

/**
 * The indices of a mode (counted from 0, as they are), without a copy: as many as there are entries. They
 * live as long as the object.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_coo_view_indices(const s3cmtf_coo *coo,
                                uint64_t mode,
                                const uint32_t **indices,
                                s3cmtf_error *error);

/**
 * The values, without a copy: as many as there are entries, of the type s3cmtf_coo_get_value_type() says.
 * They live as long as the object.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_coo_view_values(const s3cmtf_coo *coo,
                               const void **values,
                               s3cmtf_error *error);

/**
 * Frees a tensor or matrix. What was made from it lives on. NULL is fine.
 */
void s3cmtf_coo_free(s3cmtf_coo *coo);

/**
 * Looks at every entry, and at the checksums of a file. `counts` has room for `capacity` numbers, of which
 * as many are written as there are faults that are counted: S3CMTF_CHECK_COUNTS, or fewer if there is less
 * room. All of them 0 means that nothing is wrong. Later versions may count more faults, at the end; what
 * is compiled now keeps getting what it knows. `cancel` may be NULL.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_coo_check(const s3cmtf_coo *coo,
                         const s3cmtf_cancel *cancel,
                         uint64_t *counts,
                         uint64_t capacity,
                         s3cmtf_error *error);

/**
 * The smallest and largest value, their mean and standard deviation (all NaN without entries), and for
 * each mode the number of rows with an entry. Each output may be NULL; `rows_used` has room for `capacity`
 * numbers. `cancel` may be NULL. An entry that is out of range or not finite is S3CMTF_BAD_ENTRY.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_coo_summarize(const s3cmtf_coo *coo,
                             const s3cmtf_cancel *cancel,
                             double *smallest,
                             double *largest,
                             double *mean,
                             double *deviation,
                             uint64_t *rows_used,
                             uint64_t capacity,
                             s3cmtf_error *error);

/**
 * Writes a binary COO file, which appears complete or not at all. `value_type` is S3CMTF_F32 or
 * S3CMTF_F64, or 0 to store values as they are. `cancel` may be NULL.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_coo_write(const s3cmtf_coo *coo,
                         const char *path,
                         int32_t value_type,
                         const s3cmtf_cancel *cancel,
                         s3cmtf_error *error);

/**
 * Reads `input` (text or binary COO) and writes the binary COO file `output`, with a file of names beside
 * it for each mode whose ids are words; or, if `output` ends in .tns, text. Memory does not grow with the
 * file. `text` and `cancel` may be NULL.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_coo_convert(const char *input,
                           const char *output,
                           const s3cmtf_text *text,
                           const s3cmtf_cancel *cancel,
                           s3cmtf_error *error);

/**
 * Writes a copy that passes s3cmtf_coo_check(): entries that are not acceptable are left out (their number
 * goes to `dropped`) and every cell is listed once (`merged` entries are gone), as `keep`
 * (S3CMTF_KEEP_...) says. `dropped`, `merged` and `cancel` may be NULL. The object must be an opened file
 * whose checksums match.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_coo_fix(const s3cmtf_coo *coo,
                       const char *path,
                       int32_t keep,
                       const s3cmtf_cancel *cancel,
                       uint64_t *dropped,
                       uint64_t *merged,
                       s3cmtf_error *error);

/**
 * Writes PREFIX.train.coo and, for parts above 0, PREFIX.test.coo and PREFIX.valid.coo; all appear
 * together. `test` and `valid` are shares of the entries. With `row` and `by` S3CMTF_NO_MODE entries are
 * held out at random, as `seed` decides; with two modes, of each row of mode `row` those with the largest
 * index in mode `by`, such as the latest. `cancel` may be NULL. The object must be an opened file.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_coo_split(const s3cmtf_coo *coo,
                         const char *prefix,
                         double test,
                         double valid,
                         uint64_t seed,
                         uint64_t row,
                         uint64_t by,
                         const s3cmtf_cancel *cancel,
                         s3cmtf_error *error);

/**
 * The same entries with weights: the squared error of an entry counts times its weight, so that a weight
 * of 2 is like an entry listed twice, and one of 0 like an entry that is not there. `weights` are as many
 * numbers of `weight_type` (S3CMTF_F32 or S3CMTF_F64) as there are entries, and are copied; weights that the
 * entries had before do not count. Fits and s3cmtf_coo_check() refuse what is not finite or below 0. The
 * entries are shared, not copied. Free with s3cmtf_coo_free().
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_coo_new_weighted(const s3cmtf_coo *coo,
                                const void *weights,
                                int32_t weight_type,
                                s3cmtf_coo **weighted,
                                s3cmtf_error *error);

/**
 * As s3cmtf_coo_new_weighted(), with the values of `weights` as weights: a tensor or matrix that lists the
 * same entries in the same order. The first entry that differs is S3CMTF_BAD_ENTRY. Both are shared, not
 * copied.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_coo_new_weighted_by(const s3cmtf_coo *coo,
                                   const s3cmtf_coo *weights,
                                   s3cmtf_coo **weighted,
                                   s3cmtf_error *error);

/**
 * How the weights are stored: S3CMTF_F32 or S3CMTF_F64, or 0 if entries have none.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_coo_get_weight_type(const s3cmtf_coo *coo,
                                   int32_t *weight_type,
                                   s3cmtf_error *error);

/**
 * The weights, without a copy: as many as there are entries, of the type s3cmtf_coo_get_weight_type() says;
 * NULL if entries have none. They live as long as the object.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_coo_view_weights(const s3cmtf_coo *coo,
                                const void **weights,
                                s3cmtf_error *error);

/**
 * Makes options, to be freed with s3cmtf_options_free(). `preset` names settings to start from, such as
 * "paper" (s3cmtf_preset_name() lists them); NULL means "default".
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_options_new(const char *preset,
                           s3cmtf_options **options,
                           s3cmtf_error *error);

/**
 * Sets an option to what a text says: "true", "12", "0.001", "blocked", "10,10,4", "auto". Names have
 * underscores or dashes.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_options_set(s3cmtf_options *options,
                           const char *name,
                           const char *value,
                           s3cmtf_error *error);

/**
 * Sets an option of type S3CMTF_OPTION_TYPE_WHOLE; one of another type is S3CMTF_BAD_ARGUMENT, here and
 * below.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_options_set_whole(s3cmtf_options *options,
                                 const char *name,
                                 uint64_t value,
                                 s3cmtf_error *error);

/**
 * Sets an option of type S3CMTF_OPTION_TYPE_REAL to a number. NaN does not mean "auto": that is set as a text.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_options_set_real(s3cmtf_options *options,
                                const char *name,
                                double value,
                                s3cmtf_error *error);

/**
 * Sets an option of type S3CMTF_OPTION_TYPE_FLAG: `value` is 0 or 1.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_options_set_flag(s3cmtf_options *options,
                                const char *name,
                                int32_t value,
                                s3cmtf_error *error);

/**
 * Sets the option "rank": `count` is 1, or the number of modes.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_options_set_ranks(s3cmtf_options *options,
                                 const uint64_t *ranks,
                                 uint64_t count,
                                 s3cmtf_error *error);

/**
 * Writes the value of an option as text, as s3cmtf_options_set() takes it, into `value`, which has room for
 * `capacity` bytes, and into `needed` the number of its bytes; both with the NUL at the end. With `value`
 * NULL and `capacity` 0 only `needed` is written. `needed` may be NULL.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_options_get(const s3cmtf_options *options,
                           const char *name,
                           char *value,
                           uint64_t capacity,
                           uint64_t *needed,
                           s3cmtf_error *error);

/**
 * Frees options. NULL is fine.
 */
void s3cmtf_options_free(s3cmtf_options *options);

/**
 * The number of options in the table.
 */
uint64_t s3cmtf_option_count(void);

/**
 * The type of an option: S3CMTF_OPTION_TYPE_FLAG and so on. `index` counts from 0.
 */
S3CMTF_CHECK_STATUS int32_t s3cmtf_option_type(uint64_t index, int32_t *option_type, s3cmtf_error *error);

/**
 * A text about an option: `what` is S3CMTF_OPTION_NAME and so on. Constant, never freed.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_option_text(uint64_t index,
                           int32_t what,
                           const char **text,
                           s3cmtf_error *error);

/**
 * The name of a preset, for s3cmtf_options_new(). `index` counts from 0; beyond the last it is
 * S3CMTF_BAD_ARGUMENT. Constant, never freed.
 */
S3CMTF_CHECK_STATUS int32_t s3cmtf_preset_name(uint64_t index, const char **name, s3cmtf_error *error);

/**
 * Makes a problem of a tensor, to be freed with s3cmtf_problem_free(). The tensor is shared and may be
 * freed before.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_problem_new(const s3cmtf_coo *tensor,
                           s3cmtf_problem **problem,
                           s3cmtf_error *error);

/**
 * Couples a matrix to a mode of the tensor (counted from 0): its rows are the rows of that mode. `kind` is
 * S3CMTF_MATRIX_OBSERVED, S3CMTF_MATRIX_GRAPH or S3CMTF_MATRIX_FULL; the last has no cell twice and makes every
 * row of the mode one that occurs. `weight` is lambda_m of the paper and `penalty` the one on
 * the columns of the matrix; S3CMTF_FROM_OPTIONS leaves either to the options of the fit. Any number of
 * matrices may be coupled, several to one mode. If the sizes do not agree the problem stays as it was.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_problem_add_matrix(s3cmtf_problem *problem,
                                  uint64_t mode,
                                  const s3cmtf_coo *matrix,
                                  int32_t kind,
                                  double weight,
                                  double penalty,
                                  s3cmtf_error *error);

/**
 * As s3cmtf_problem_add_matrix(), for a matrix that lists what is not 0: for each such entry `zeros` cells of
 * its row that are not listed are drawn and count as entries of value 0, or all there are if they are fewer.
 * They are drawn when a fit begins, by its option "seed". `zeros` must be 1 or more.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_problem_add_sampled_matrix(s3cmtf_problem *problem,
                                          uint64_t mode,
                                          const s3cmtf_coo *matrix,
                                          uint32_t zeros,
                                          double weight,
                                          double penalty,
                                          s3cmtf_error *error);

/**
 * Frees a problem. NULL is fine.
 */
void s3cmtf_problem_free(s3cmtf_problem *problem);

/**
 * Prepares a fit of a problem, to be freed with s3cmtf_fit_free(). Problem and options are copied (the
 * entries shared) and may be freed or changed; `options` may be NULL for the defaults.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_fit_new(const s3cmtf_problem *problem,
                       const s3cmtf_options *options,
                       s3cmtf_fit **fit,
                       s3cmtf_error *error);

/**
 * Sets the entries whose error is measured as it goes; they decide nothing. NULL for none. The object is
 * shared and may be freed before the fit.
 */
S3CMTF_CHECK_STATUS int32_t s3cmtf_fit_set_test(s3cmtf_fit *fit, const s3cmtf_coo *test, s3cmtf_error *error);

/**
 * Sets the entries that decide, with the option "patience", when to stop and which model is best. NULL for
 * none. The object is shared and may be freed before the fit.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_fit_set_valid(s3cmtf_fit *fit,
                             const s3cmtf_coo *valid,
                             s3cmtf_error *error);

/**
 * Sets a model to start from; rows it lacks start anew. NULL for none. The model is shared and may be freed
 * before the fit.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_fit_set_init(s3cmtf_fit *fit,
                            const s3cmtf_model *model,
                            s3cmtf_error *error);

/**
 * Sets where checkpoints go, after as many epochs or seconds as the options "checkpoint_every" and
 * "checkpoint_seconds" say. The file is replaced as a whole each time. NULL for none.
 */
S3CMTF_CHECK_STATUS int32_t s3cmtf_fit_set_checkpoint(s3cmtf_fit *fit, const char *path, s3cmtf_error *error);

/**
 * Sets a checkpoint to go on from, with the same data and the same options; only "epochs", "threads",
 * "pin", "kernel", "time_limit" and the intervals of checkpoints may differ. The options of a checkpoint
 * are those of the model that s3cmtf_model_load() finds in it (s3cmtf_model_get_options()). NULL for none.
 */
S3CMTF_CHECK_STATUS int32_t s3cmtf_fit_set_resume(s3cmtf_fit *fit, const char *path, s3cmtf_error *error);

/**
 * Sets a token that ends the fit from any thread. Until the first epoch is finished the fit then fails with
 * S3CMTF_CANCELLED; later it ends well, with the model of the last epoch that was finished and the stop
 * reason S3CMTF_STOP_CANCELLED. A fit that goes on from a checkpoint has the epochs of the checkpoint behind
 * it as soon as its preparations are done. NULL for none. The token may be freed before the fit.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_fit_set_cancel(s3cmtf_fit *fit,
                              const s3cmtf_cancel *cancel,
                              s3cmtf_error *error);

/**
 * Sets what s3cmtf_fit_run() calls as it goes. NULL for nothing. `user` is handed to the callback as it is.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_fit_set_callback(s3cmtf_fit *fit,
                                s3cmtf_callback callback,
                                void *user,
                                s3cmtf_error *error);

/**
 * Runs the fit on the calling thread and writes the model it gives, to be freed with s3cmtf_model_free().
 * Until it returns, no other function may be given the fit: s3cmtf_fit_get_progress() and
 * s3cmtf_fit_cancel() are for fits in the background. A token (s3cmtf_fit_set_cancel()) ends it from another
 * thread.
 */
S3CMTF_CHECK_STATUS int32_t s3cmtf_fit_run(s3cmtf_fit *fit, s3cmtf_model **model, s3cmtf_error *error);

/**
 * Starts the fit in the background and returns at once. A fit with a callback is refused
 * (S3CMTF_BAD_STATE): nobody would be there to be called.
 */
S3CMTF_CHECK_STATUS int32_t s3cmtf_fit_start(s3cmtf_fit *fit, s3cmtf_error *error);

/**
 * Writes how far the fit is: set `progress->size` before. May run concurrently with a fit in the
 * background, not with s3cmtf_fit_run().
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_fit_get_progress(const s3cmtf_fit *fit,
                                s3cmtf_progress *progress,
                                s3cmtf_error *error);

/**
 * Waits up to `seconds` (below 0: for ever) for a fit in the background to end and writes whether it still
 * runs: 1 or 0. A fit that was not started does not run. May run concurrently, with itself too.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_fit_wait(const s3cmtf_fit *fit,
                        double seconds,
                        int32_t *running,
                        s3cmtf_error *error);

/**
 * Asks a fit in the background to end, as a token would. May run concurrently, but not with
 * s3cmtf_fit_run(). NULL does nothing.
 */
void s3cmtf_fit_cancel(const s3cmtf_fit *fit);

/**
 * Writes the model of a fit in the background that has ended, to be freed with s3cmtf_model_free(), or
 * returns the status it failed with. S3CMTF_BAD_STATE while it runs, and when the model was taken before.
 */
S3CMTF_CHECK_STATUS int32_t s3cmtf_fit_take(s3cmtf_fit *fit, s3cmtf_model **model, s3cmtf_error *error);

/**
 * Frees a fit. One that runs in the background is cancelled and waited for. NULL is fine.
 */
void s3cmtf_fit_free(s3cmtf_fit *fit);

/**
 * Prepares a search, to be freed with s3cmtf_tune_free(). Problem and options are copied (the entries
 * shared) and may be freed or changed. The options are where the search begins and what all trials have in
 * common: "threads" is the number for all, "time_limit" and "seed" are those of the search. NULL for the
 * defaults.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_tune_new(const s3cmtf_problem *problem,
                        const s3cmtf_options *options,
                        s3cmtf_tune **tune,
                        s3cmtf_error *error);

/**
 * Sets how many trials there are (200 if nothing is said), the fit that is not tuned among them.
 */
S3CMTF_CHECK_STATUS int32_t s3cmtf_tune_set_trials(s3cmtf_tune *tune, uint64_t trials, s3cmtf_error *error);

/**
 * Sets how often trials are compared (3 if nothing is said); the last time they have all their epochs.
 */
S3CMTF_CHECK_STATUS int32_t s3cmtf_tune_set_rungs(s3cmtf_tune *tune, uint64_t rungs, s3cmtf_error *error);

/**
 * Sets the threads of one fit (1 if nothing is said): as many fits run side by side as go into the option
 * "threads".
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_tune_set_fit_threads(s3cmtf_tune *tune,
                                    uint64_t threads,
                                    s3cmtf_error *error);

/**
 * Sets the part of the entries that is held out to compare trials on, above 0 and below 1 (0.1 if nothing is
 * said).
 */
S3CMTF_CHECK_STATUS int32_t s3cmtf_tune_set_fraction(s3cmtf_tune *tune, double fraction, s3cmtf_error *error);

/**
 * Sets entries to compare trials on; then none are held out. NULL for none. The object is shared and may be
 * freed before the search.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_tune_set_valid(s3cmtf_tune *tune,
                              const s3cmtf_coo *valid,
                              s3cmtf_error *error);

/**
 * Sets what an option is drawn from: values separated by commas ("8,16,32") or an interval ("0.005..0.1").
 * Rank, model, step, penalties, the step of the core and the weights of matrices without one of their own
 * are drawn in any case, around what the fit would choose.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_tune_set_range(s3cmtf_tune *tune,
                              const char *name,
                              const char *range,
                              s3cmtf_error *error);

/**
 * Sets where the state of the search is kept, replaced as a whole now and then. NULL for nowhere.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_tune_set_checkpoint(s3cmtf_tune *tune,
                                   const char *path,
                                   s3cmtf_error *error);

/**
 * Sets a state to go on from, with the same data and settings; only "threads" and "time_limit" may differ.
 * NULL for none.
 */
S3CMTF_CHECK_STATUS int32_t s3cmtf_tune_set_resume(s3cmtf_tune *tune, const char *path, s3cmtf_error *error);

/**
 * Sets a token that ends the search from any thread, with what it has; before a trial was measured, with
 * S3CMTF_CANCELLED. NULL for none. The token may be freed before the search.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_tune_set_cancel(s3cmtf_tune *tune,
                               const s3cmtf_cancel *cancel,
                               s3cmtf_error *error);

/**
 * Sets what s3cmtf_tune_run() calls as it goes. NULL for nothing. `user` is handed to the callback as it is.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_tune_set_callback(s3cmtf_tune *tune,
                                 s3cmtf_trial_callback callback,
                                 void *user,
                                 s3cmtf_error *error);

/**
 * Runs the search on the calling thread. A search that fails may be changed and run again.
 */
S3CMTF_CHECK_STATUS int32_t s3cmtf_tune_run(s3cmtf_tune *tune, s3cmtf_error *error);

/**
 * Writes the number of trials of a search that has run.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_tune_get_count(const s3cmtf_tune *tune,
                              uint64_t *count,
                              s3cmtf_error *error);

/**
 * Writes what a trial gave: set `trial->size` before. `place` 0 is the best.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_tune_get_trial(const s3cmtf_tune *tune,
                              uint64_t place,
                              s3cmtf_trial *trial,
                              s3cmtf_error *error);

/**
 * Makes options of a trial, all settled, to be freed with s3cmtf_options_free(). `place` 0 is the best.
 * "threads", "pin", "kernel" and "time_limit" are those the search was given.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_tune_get_options(const s3cmtf_tune *tune,
                                uint64_t place,
                                s3cmtf_options **options,
                                s3cmtf_error *error);

/**
 * Writes the options of a trial as lines name=value, as the program's `fit --config` takes them, with a NUL
 * at the end. `needed` gets the bytes of all that; with `text` NULL and `capacity` 0 nothing else is
 * written. `needed` may be NULL.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_tune_get_text(const s3cmtf_tune *tune,
                             uint64_t place,
                             char *text,
                             uint64_t capacity,
                             uint64_t *needed,
                             s3cmtf_error *error);

/**
 * Frees a search. NULL is fine.
 */
void s3cmtf_tune_free(s3cmtf_tune *tune);

/**
 * Opens a model file, or the model in a checkpoint; `mode` is S3CMTF_OPEN_MAPPED or S3CMTF_OPEN_PRIVATE.
 * Free with s3cmtf_model_free().
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_load(const char *path,
                          int32_t mode,
                          s3cmtf_model **model,
                          s3cmtf_error *error);

/**
 * Writes a model file, which appears complete or not at all.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_save(const s3cmtf_model *model,
                          const char *path,
                          s3cmtf_error *error);

/**
 * Writes factors, core, columns of matrices, mean, biases and offsets into a folder, as .npy files; all but the
 * last three also as text. `cancel` may be
 * NULL.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_export(const s3cmtf_model *model,
                            const char *folder,
                            const s3cmtf_cancel *cancel,
                            s3cmtf_error *error);

/**
 * Frees a model. Fits that start from it live on; views into it do not. NULL is fine.
 */
void s3cmtf_model_free(s3cmtf_model *model);

/**
 * Whether the model is S3CMTF_MODEL_TUCKER or S3CMTF_MODEL_CP.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_get_kind(const s3cmtf_model *model,
                              int32_t *kind,
                              s3cmtf_error *error);

/**
 * The number of modes.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_get_order(const s3cmtf_model *model,
                               uint64_t *order,
                               s3cmtf_error *error);

/**
 * Copies the size of each mode into `dims`, which has room for `capacity` numbers.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_get_dims(const s3cmtf_model *model,
                              uint64_t *dims,
                              uint64_t capacity,
                              s3cmtf_error *error);

/**
 * Copies the rank of each mode into `ranks`, which has room for `capacity` numbers.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_get_ranks(const s3cmtf_model *model,
                               uint64_t *ranks,
                               uint64_t capacity,
                               s3cmtf_error *error);

/**
 * The smallest and the largest training value: the range to which predictions are clipped.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_get_range(const s3cmtf_model *model,
                               double *low,
                               double *high,
                               s3cmtf_error *error);

/**
 * What is added to every prediction: the mean of the training values, or 0 (option "mean").
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_get_mean(const s3cmtf_model *model,
                              double *mean,
                              s3cmtf_error *error);

/**
 * The number of rows of a mode: of its indices that occurred.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_get_rows(const s3cmtf_model *model,
                              uint64_t mode,
                              uint64_t *rows,
                              s3cmtf_error *error);

/**
 * The number of coupled matrices, graphs among them.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_get_matrices(const s3cmtf_model *model,
                                  uint64_t *matrices,
                                  s3cmtf_error *error);

/**
 * What a coupled matrix is: its mode, its kind (S3CMTF_MATRIX_OBSERVED and so on), its weight,
 * the number of its columns and how many of them occurred (a graph has none of its own). Each output may be
 * NULL.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_get_matrix(const s3cmtf_model *model,
                                uint64_t matrix,
                                uint64_t *mode,
                                int32_t *kind,
                                double *weight,
                                uint64_t *columns,
                                uint64_t *rows,
                                s3cmtf_error *error);

/**
 * A copy of the options the model was fitted with, to be freed with s3cmtf_options_free(). Where
 * the fit had a choice ("auto") they say what it chose.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_get_options(const s3cmtf_model *model,
                                 s3cmtf_options **options,
                                 s3cmtf_error *error);

/**
 * Writes what happened in the fit and how it ended, and the NUL behind it, into `text`, which has room for `capacity`
 * bytes, and how many bytes that is into `needed` (which may be NULL). With `text` NULL and `capacity` 0 it only says how
 * many. Each line is NAME=VALUE: note=EPOCH WHAT TEXT for each event (WHAT is rolled-back, rank-lowered, refit or warning),
 * then reason, epochs, best_epoch, train_rmse, test_rmse, valid_rmse, clipped, threads, kernel, update_seconds, eval_seconds
 * and seconds. A checkpoint has no such ending, and a model of an earlier version has no line.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_get_record(const s3cmtf_model *model,
                                char *text,
                                uint64_t capacity,
                                uint64_t *needed,
                                s3cmtf_error *error);

/**
 * The number of epochs the model was fitted for.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_get_epochs(const s3cmtf_model *model,
                                uint64_t *epochs,
                                s3cmtf_error *error);

/**
 * The figures of an epoch, counted from 0: set `progress->size` before.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_get_epoch(const s3cmtf_model *model,
                               uint64_t epoch,
                               s3cmtf_progress *progress,
                               s3cmtf_error *error);

/**
 * Copies the index of each row of a mode, counted from 0 and ascending, into `indices`, which has room for
 * `capacity` numbers of `index_type` (S3CMTF_U32 or S3CMTF_U64).
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_copy_row_indices(const s3cmtf_model *model,
                                      uint64_t mode,
                                      void *indices,
                                      uint64_t capacity,
                                      int32_t index_type,
                                      s3cmtf_error *error);

/**
 * Copies the factor of a mode, rows x rank numbers, into `numbers`, which has room for `capacity` numbers
 * of `number_type` (S3CMTF_F32 or S3CMTF_F64). `layout` is S3CMTF_ROW_MAJOR or S3CMTF_COLUMN_MAJOR.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_copy_factor(const s3cmtf_model *model,
                                 uint64_t mode,
                                 void *numbers,
                                 uint64_t capacity,
                                 int32_t number_type,
                                 int32_t layout,
                                 s3cmtf_error *error);

/**
 * Copies the row that stands for an index of a mode, whether it occurred or not: rank numbers.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_copy_row(const s3cmtf_model *model,
                              uint64_t mode,
                              uint64_t index,
                              void *numbers,
                              uint64_t capacity,
                              int32_t number_type,
                              s3cmtf_error *error);

/**
 * The factor of a mode where it is: row r begins at `numbers + r * stride` and has `rank` numbers; what is
 * between is 0. It lives as long as the model. Outputs but `numbers` may be NULL.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_view_factor(const s3cmtf_model *model,
                                 uint64_t mode,
                                 const float **numbers,
                                 uint64_t *rows,
                                 uint64_t *rank,
                                 uint64_t *stride,
                                 s3cmtf_error *error);

/**
 * Copies the biases of a mode, one for each of its rows, into `numbers`, which has room for `capacity` numbers
 * of `number_type` (S3CMTF_F32 or S3CMTF_F64). A model without biases gives zeros. Indices that did not occur
 * have bias 0. A model of samples gives those of its last draw, as of its factors.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_copy_biases(const s3cmtf_model *model,
                                 uint64_t mode,
                                 void *numbers,
                                 uint64_t capacity,
                                 int32_t number_type,
                                 s3cmtf_error *error);

/**
 * The biases of a mode where they are: `count` numbers, one for each of its rows. A model without biases has
 * NULL and 0. They live as long as the model. `count` may be NULL.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_view_biases(const s3cmtf_model *model,
                                 uint64_t mode,
                                 const float **numbers,
                                 uint64_t *count,
                                 s3cmtf_error *error);

/**
 * Copies the core. For S3CMTF_MODEL_TUCKER it has as many numbers as the ranks multiplied, the last mode
 * fastest with S3CMTF_ROW_MAJOR and the first with S3CMTF_COLUMN_MAJOR; for S3CMTF_MODEL_CP only the
 * diagonal is there, rank numbers.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_copy_core(const s3cmtf_model *model,
                               void *numbers,
                               uint64_t capacity,
                               int32_t number_type,
                               int32_t layout,
                               s3cmtf_error *error);

/**
 * The core where it is, row-major with rows of the last mode `stride` apart (for S3CMTF_MODEL_CP the
 * diagonal alone). It lives as long as the model. `stride` may be NULL.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_view_core(const s3cmtf_model *model,
                               const float **numbers,
                               uint64_t *stride,
                               s3cmtf_error *error);

/**
 * Copies the index of each column of a coupled matrix that occurred, as s3cmtf_model_copy_row_indices() does for a
 * mode. A graph has none of its own, and is S3CMTF_BAD_ARGUMENT here and below.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_copy_matrix_indices(const s3cmtf_model *model,
                                         uint64_t matrix,
                                         void *indices,
                                         uint64_t capacity,
                                         int32_t index_type,
                                         s3cmtf_error *error);

/**
 * Copies V of a coupled matrix, a row for each of its columns that occurred, as s3cmtf_model_copy_factor()
 * does for a mode.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_copy_matrix(const s3cmtf_model *model,
                                 uint64_t matrix,
                                 void *numbers,
                                 uint64_t capacity,
                                 int32_t number_type,
                                 int32_t layout,
                                 s3cmtf_error *error);

/**
 * V of a coupled matrix where it is, as s3cmtf_model_view_factor() gives the factor of a mode.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_view_matrix(const s3cmtf_model *model,
                                 uint64_t matrix,
                                 const float **numbers,
                                 uint64_t *rows,
                                 uint64_t *rank,
                                 uint64_t *stride,
                                 s3cmtf_error *error);

/**
 * Copies the offsets of a coupled matrix, one for each of its columns that occurred, as
 * s3cmtf_model_copy_biases() does for a mode.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_copy_offsets(const s3cmtf_model *model,
                                  uint64_t matrix,
                                  void *numbers,
                                  uint64_t capacity,
                                  int32_t number_type,
                                  s3cmtf_error *error);

/**
 * The offsets of a coupled matrix where they are, as s3cmtf_model_view_biases() gives the biases of a mode.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_view_offsets(const s3cmtf_model *model,
                                  uint64_t matrix,
                                  const float **numbers,
                                  uint64_t *count,
                                  s3cmtf_error *error);

/**
 * Predicts `count` cells. Their indices are given as to s3cmtf_coo_new(): a pointer per mode, `index_type`,
 * `stride` and `base`. An index that did not occur in the data, also one beyond its size, predicts as the
 * mean row of its mode. `clip` (0 or 1) limits predictions to the range of the training values. They go
 * into `numbers`, which has room for `capacity` numbers of `number_type` (S3CMTF_F32 or S3CMTF_F64). They
 * are made on `threads` threads (0: all the process may use), and do not depend on how many. `cancel` may
 * be NULL.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_predict(const s3cmtf_model *model,
                             uint64_t count,
                             const void *const *indices,
                             int32_t index_type,
                             uint64_t stride,
                             int32_t base,
                             int32_t clip,
                             uint64_t threads,
                             const s3cmtf_cancel *cancel,
                             void *numbers,
                             uint64_t capacity,
                             int32_t number_type,
                             s3cmtf_error *error);

/**
 * Predicts the cell of every entry of `coo`, whose values do not matter; otherwise as
 * s3cmtf_model_predict().
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_predict_coo(const s3cmtf_model *model,
                                 const s3cmtf_coo *coo,
                                 int32_t clip,
                                 uint64_t threads,
                                 const s3cmtf_cancel *cancel,
                                 void *numbers,
                                 uint64_t capacity,
                                 int32_t number_type,
                                 s3cmtf_error *error);

/**
 * Predicts every entry of `coo` and writes the root of the mean squared error and the mean absolute error
 * (either may be NULL); without entries they are 0. `clip`, `threads` and `cancel` are as for
 * s3cmtf_model_predict().
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_evaluate(const s3cmtf_model *model,
                              const s3cmtf_coo *coo,
                              int32_t clip,
                              uint64_t threads,
                              const s3cmtf_cancel *cancel,
                              double *rmse,
                              double *mae,
                              s3cmtf_error *error);

/**
 * How many samples predictions of the model are means over: 0 unless it was fitted with algorithm "gibbs".
 * Only a model with samples knows how sure it is.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_get_samples(const s3cmtf_model *model,
                                 uint64_t *samples,
                                 s3cmtf_error *error);

/**
 * Predicts `count` cells as s3cmtf_model_predict() does, with how sure the model is: the standard deviation
 * of the value of each cell (the deviation of the samples and that of the noise together), and
 * `quantile_count` quantiles of a normal distribution with that mean and deviation, each above 0 and below 1, as
 * in {0.05, 0.95}. A model without samples does not know (S3CMTF_BAD_ARGUMENT).
 *
 * `predictions` and `deviations` have room for `capacity` numbers of `number_type` (S3CMTF_F32 or S3CMTF_F64)
 * each, `quantile_values` for `capacity` times `quantile_count`, those of a cell side by side. Any of the three
 * may be NULL if it is not wanted. `clip` limits predictions and quantiles to the range of the training values.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_predict_spread(const s3cmtf_model *model,
                                    uint64_t count,
                                    const void *const *indices,
                                    int32_t index_type,
                                    uint64_t stride,
                                    int32_t base,
                                    uint64_t quantile_count,
                                    const double *quantiles,
                                    int32_t clip,
                                    uint64_t threads,
                                    const s3cmtf_cancel *cancel,
                                    void *predictions,
                                    void *deviations,
                                    void *quantile_values,
                                    uint64_t capacity,
                                    int32_t number_type,
                                    s3cmtf_error *error);

/**
 * The same for the cell of every entry of `coo`, whose values do not matter.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_predict_spread_coo(const s3cmtf_model *model,
                                        const s3cmtf_coo *coo,
                                        uint64_t quantile_count,
                                        const double *quantiles,
                                        int32_t clip,
                                        uint64_t threads,
                                        const s3cmtf_cancel *cancel,
                                        void *predictions,
                                        void *deviations,
                                        void *quantile_values,
                                        uint64_t capacity,
                                        int32_t number_type,
                                        s3cmtf_error *error);

/**
 * Makes a model with rows of `mode` that came after training, to be freed with s3cmtf_model_free(). Each is found
 * in closed form, given everything else in the model, as the fit would have found it; of a model with samples it
 * is drawn once for each. What the model predicts for all other rows stays as it is. Everything that is known of
 * the new rows has to be given, since a model keeps no entries:
 *
 * `tensor` has their tensor entries and may be NULL if there are matrices. Rows of other modes that the model does
 * not know count as the mean row of their mode. `matrices` are `matrix_count` matrices with what is known of the
 * rows there; matrix k belongs to matrix `matrix_numbers[k]` of the model, which is coupled to `mode`, and
 * `weights[k]` is its weight, S3CMTF_FROM_OPTIONS that of the fit. `weights` may be NULL if all are. Columns that
 * the model does not know say nothing.
 *
 * A row that the model has from tensor entries is S3CMTF_BAD_ARGUMENT, unless `replace` is 1: it is then found anew,
 * from these entries alone. The size of the mode grows if need be. It runs on `threads` threads (0: all the process
 * may use); the result does not depend on how many. `cancel`, `added` and `replaced` (how many rows were) may be
 * NULL.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_fold_in(const s3cmtf_model *model,
                             uint64_t mode,
                             const s3cmtf_coo *tensor,
                             uint64_t matrix_count,
                             const s3cmtf_coo *const *matrices,
                             const uint64_t *matrix_numbers,
                             const double *weights,
                             int32_t replace,
                             uint64_t threads,
                             const s3cmtf_cancel *cancel,
                             s3cmtf_model **folded,
                             uint64_t *added,
                             uint64_t *replaced,
                             s3cmtf_error *error);

/**
 * For each of `count` queries, the `top` rows of `mode` that the model predicts the most for, the best first.
 *
 * The rows of the other modes that a query is about are given as to s3cmtf_coo_new(): a pointer per mode, `index_type`,
 * `stride` and `base`. A mode whose pointer is NULL is averaged over (its mean row stands for it); that of `mode`
 * does not matter. A row that the model does not know is S3CMTF_BAD_ARGUMENT, and only rows that it knows are ranked.
 * A score is the prediction of the cell as s3cmtf_model_predict() gives it without clipping. With `quantile` above 0 and
 * below 1 it is that quantile of the value instead, which only a model with samples knows; 0 ranks by predictions. Of
 * equal scores the smaller row comes first.
 *
 * `exclude` may be NULL. If not, rows are left out for whom they have an entry with: entries whose index of mode
 * `exclude_by` is that of the query, which must have one. If `only` is not NULL, only the `only_count` rows it has are ranked; the
 * `without_count` rows of `without` are not. Both count from `base`; rows that the model does not know are ignored.
 *
 * `rows` (which counts from `base`) and `scores` have room for `capacity` items each, `top` for each query; `found` has
 * `count` items: how many rows each has. What is behind them is left alone. Either of `rows` and `scores` may be NULL if
 * it is not wanted. It runs on `threads` threads (0: all the process may use); results do not depend on how many.
 * `cancel` may be NULL.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_recommend(const s3cmtf_model *model,
                               uint64_t mode,
                               uint64_t count,
                               const void *const *indices,
                               int32_t index_type,
                               uint64_t stride,
                               int32_t base,
                               uint64_t top,
                               double quantile,
                               const s3cmtf_coo *exclude,
                               uint64_t exclude_by,
                               uint64_t only_count,
                               const uint64_t *only,
                               uint64_t without_count,
                               const uint64_t *without,
                               uint64_t threads,
                               const s3cmtf_cancel *cancel,
                               uint64_t *rows,
                               double *scores,
                               uint64_t capacity,
                               uint64_t *found,
                               s3cmtf_error *error);

/**
 * For each of `count` rows of `mode`, the `top` rows of the same mode that are most like it: those whose predictions
 * over all cells, without biases, have the largest cosine with its own, the largest first. However the core or the
 * columns of factors are scaled, that is the same. A row that the model does not know is S3CMTF_BAD_ARGUMENT; rows
 * without tensor entries are not given.
 *
 * `queries` are the rows, counted from 0 as all rows here. Outputs, `threads` and `cancel` are as for
 * s3cmtf_model_recommend(), with cosines for scores.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_similar(const s3cmtf_model *model,
                             uint64_t mode,
                             uint64_t count,
                             const uint64_t *queries,
                             uint64_t top,
                             uint64_t threads,
                             const s3cmtf_cancel *cancel,
                             uint64_t *rows,
                             double *scores,
                             uint64_t capacity,
                             uint64_t *found,
                             s3cmtf_error *error);

/**
 * Measures rankings of `mode` on the test entries `coo`: for each row of mode `by` (a user), the first `at` rows that he
 * has no entry with in `train`, by their predictions or `quantile` as in
 * s3cmtf_model_recommend(), other modes averaged over. Relevant are rows of his test entries
 * with values of at least `relevant` (-INFINITY: all) that he has no entry with in `train`; users without any do not
 * count.
 *
 * `of_model` and `of_popularity` have room for three numbers each, means over users: the hit rate (1 if anything in the
 * list is relevant), the recall (the share of what is relevant that is in the list) and the NDCG (a relevant row in
 * place p, counted from 1, gains 1 / log2(p + 1), over the most that could be gained); the second for lists of the rows
 * with the most entries in `train`. `users` is how many counted. All three may be NULL. `threads` and `cancel` are as
 * for s3cmtf_model_recommend().
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_model_evaluate_ranking(const s3cmtf_model *model,
                                      const s3cmtf_coo *coo,
                                      const s3cmtf_coo *train,
                                      uint64_t mode,
                                      uint64_t by,
                                      uint64_t at,
                                      double quantile,
                                      double relevant,
                                      uint64_t threads,
                                      const s3cmtf_cancel *cancel,
                                      double *of_model,
                                      double *of_popularity,
                                      uint64_t *users,
                                      s3cmtf_error *error);

/**
 * Describes the concepts of `mode`, for the rows that are given or for nobody.
 *
 * A concept adds the product of a row's number in its column and of what the core makes of the rows of the other modes
 * to a prediction. Its strength is the root mean square of that, over all rows of the modes that are not given, by their
 * entries; with columns of norm 1 that have nothing to do with each other it is the norm of a row of R = G x_1 u, but for
 * a common factor. `given_modes` and `given_rows` have `given_count` modes and their rows, counted from 0, none of them
 * `mode`; both may be NULL for none. A row that the model does not know is S3CMTF_BAD_ARGUMENT.
 *
 * `top` rows are kept at either end of each column, of those with at least `least` tensor entries, and as many columns of
 * each coupled matrix of the mode. Free with s3cmtf_concepts_free().
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_concepts_new(const s3cmtf_model *model,
                            uint64_t mode,
                            uint64_t given_count,
                            const uint64_t *given_modes,
                            const uint64_t *given_rows,
                            uint64_t top,
                            uint64_t least,
                            s3cmtf_concepts **concepts,
                            s3cmtf_error *error);

/**
 * How many concepts there are: the rank of the mode.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_concepts_get_count(const s3cmtf_concepts *concepts,
                                  uint64_t *count,
                                  s3cmtf_error *error);

/**
 * One of the concepts, the strongest first: which column of the factor it is (counted from 0), its strength, and its
 * effect: what it adds to a prediction for a row of loading 1 if modes that are not given are at their mean rows. The
 * effect is never below 0: signs of columns mean nothing, and are turned so. Outputs may be NULL.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_concepts_get(const s3cmtf_concepts *concepts,
                            uint64_t index,
                            uint64_t *column,
                            double *strength,
                            double *effect,
                            s3cmtf_error *error);

/**
 * The rows with the largest (`end` is S3CMTF_LARGEST) or smallest (S3CMTF_SMALLEST) loadings of a concept, the utmost
 * first. A loading is a number of the column over the root mean square of them all, by entries. `rows` (counted from 0)
 * and `loadings` have room for `capacity` items each; `found` is how many there are. Either may be NULL if it is not
 * wanted; with both NULL it only says how many.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_concepts_copy_rows(const s3cmtf_concepts *concepts,
                                  uint64_t index,
                                  int32_t end,
                                  uint64_t *rows,
                                  double *loadings,
                                  uint64_t capacity,
                                  uint64_t *found,
                                  s3cmtf_error *error);

/**
 * The columns of the coupled matrices of the mode that go with a concept most (`end` is S3CMTF_LARGEST) or go against it
 * (S3CMTF_SMALLEST), the utmost first for each matrix. `matrices` has the number of the matrix, `columns` the column, both
 * counted from 0, `shares` what a row of loading 1 gets from the concept in the prediction of that column, over the root
 * mean square of those predictions. All have room for `capacity` items and may be NULL if they are not wanted; `found` is
 * how many there are.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_concepts_copy_columns(const s3cmtf_concepts *concepts,
                                     uint64_t index,
                                     int32_t end,
                                     uint64_t *matrices,
                                     uint64_t *columns,
                                     double *shares,
                                     uint64_t capacity,
                                     uint64_t *found,
                                     s3cmtf_error *error);

/**
 * Whether the sign of the column of a concept was turned so that its effect is not below 0: then `turned` is 1 and loadings
 * and shares have the other sign than the numbers of the factor and of the matrix; else it is 0.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_concepts_get_turned(const s3cmtf_concepts *concepts,
                                   uint64_t index,
                                   int32_t *turned,
                                   s3cmtf_error *error);

/**
 * R, the core contracted with the rows that are given, where one mode besides is left: `numbers` has a row for each
 * concept, in the order of the factor's columns, and `columns` numbers in each, those of `mode` (counted from 0); at columns
 * of root mean square 1. `numbers` has room for `capacity` items and may be NULL, as may `mode` and `columns`; `found` is
 * how many numbers there are: 0 if R is no matrix, and then `columns` is 0 and `mode` that of the concepts.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_concepts_copy_profile(const s3cmtf_concepts *concepts,
                                     double *numbers,
                                     uint64_t capacity,
                                     uint64_t *mode,
                                     uint64_t *columns,
                                     uint64_t *found,
                                     s3cmtf_error *error);

/**
 * Frees concepts. NULL is allowed.
 */
void s3cmtf_concepts_free(s3cmtf_concepts *concepts);

/**
 * Clusters the rows of `mode` that have at least `least` tensor entries by k-means.
 *
 * There are `k` clusters; if `k` is 0 the gap statistic chooses of up to `max_k` (0: 20). With both above 0 there are `k`
 * clusters and a gap curve besides. There are never more clusters than different rows. k-means starts `restarts` times
 * (0: 10); the gap is measured against `references` sets (0: 10), on no more than `curve_rows` rows (0: 20,000). `space`
 * is S3CMTF_SPACE_PREDICTIONS or S3CMTF_SPACE_COLUMNS. `members` of each cluster are kept, those nearest to its centre, and
 * `labels` columns of each of the `matrix_count` matrices that it has more of than all rows. A matrix has the rows of the
 * mode in its first mode, and a row has a column if it has an entry above 0 there.
 *
 * Results depend on `seed` and not on `threads` (0: all the process may use). `cancel` may be NULL. Free with
 * s3cmtf_clusters_free().
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_clusters_new(const s3cmtf_model *model,
                            uint64_t mode,
                            uint64_t k,
                            uint64_t max_k,
                            uint64_t restarts,
                            uint64_t references,
                            uint64_t curve_rows,
                            uint64_t least,
                            int32_t space,
                            uint64_t members,
                            uint64_t labels,
                            uint64_t matrix_count,
                            const s3cmtf_coo *const *matrices,
                            uint64_t seed,
                            uint64_t threads,
                            const s3cmtf_cancel *cancel,
                            s3cmtf_clusters **clusters,
                            s3cmtf_error *error);

/**
 * How many clusters there are, and how much of the variance of the rows is between them. `explained` may be NULL.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_clusters_get_count(const s3cmtf_clusters *clusters,
                                  uint64_t *count,
                                  double *explained,
                                  s3cmtf_error *error);

/**
 * The size of a cluster, and the root mean square distance of its rows to its centre, where 1 is that of all rows to
 * their mean. The largest cluster comes first. Outputs may be NULL.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_clusters_get(const s3cmtf_clusters *clusters,
                            uint64_t index,
                            uint64_t *size,
                            double *radius,
                            s3cmtf_error *error);

/**
 * The rows of a cluster nearest to its centre, the nearest first, and their distances. `rows` (counted from 0) and
 * `distances` have room for `capacity` items each; `found` is how many there are. Either may be NULL if it is not wanted;
 * with both NULL it only says how many.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_clusters_copy_members(const s3cmtf_clusters *clusters,
                                     uint64_t index,
                                     uint64_t *rows,
                                     double *distances,
                                     uint64_t capacity,
                                     uint64_t *found,
                                     s3cmtf_error *error);

/**
 * What a cluster has more of than all rows: the number of a matrix and one of its columns (both counted from 0), how many
 * rows of the cluster have it and how many of all, the share of the cluster over that of all (`lifts`), and how likely at
 * least so many are if rows are drawn (`p_values`, hypergeometric; the smallest come first for each matrix). All have room
 * for `capacity` items and may be NULL if they are not wanted; `found` is how many there are.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_clusters_copy_labels(const s3cmtf_clusters *clusters,
                                    uint64_t index,
                                    uint64_t *matrices,
                                    uint64_t *columns,
                                    uint64_t *counts,
                                    uint64_t *overall,
                                    double *lifts,
                                    double *p_values,
                                    uint64_t capacity,
                                    uint64_t *found,
                                    s3cmtf_error *error);

/**
 * More of what s3cmtf_clusters_copy_labels() gives, in the same order: the logarithm of the odds in the cluster over the odds
 * outside, half a row added to each of the four counts (`log_odds`), and the decimal logarithm of the p-value
 * (`log10_p_values`), which is right where the p-value itself is too small for a number and 0. Both have room for
 * `capacity` items and may be NULL if they are not wanted; `found` is how many there are.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_clusters_copy_label_logs(const s3cmtf_clusters *clusters,
                                        uint64_t index,
                                        double *log_odds,
                                        double *log10_p_values,
                                        uint64_t capacity,
                                        uint64_t *found,
                                        s3cmtf_error *error);

/**
 * The centre of a cluster: the mean of its rows in the factor. `numbers` has room for `capacity` items and may be NULL;
 * `found` is how many there are, the rank of the mode.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_clusters_copy_centre(const s3cmtf_clusters *clusters,
                                    uint64_t index,
                                    double *numbers,
                                    uint64_t capacity,
                                    uint64_t *found,
                                    s3cmtf_error *error);

/**
 * All rows that were clustered, counted from 0 and ascending, and the cluster of each (`which`). Both have room for
 * `capacity` items and may be NULL if they are not wanted; `found` is how many rows there are.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_clusters_copy_rows(const s3cmtf_clusters *clusters,
                                  uint64_t *rows,
                                  uint64_t *which,
                                  uint64_t capacity,
                                  uint64_t *found,
                                  s3cmtf_error *error);

/**
 * The gap curve: the gaps for 1, 2, 3 ... clusters and their standard errors; `chosen` is the smallest number of clusters
 * whose gap is at least that of one more less its standard error, or the last if there is none. If that is 1 although a
 * later gap is larger by more than its standard error, and no `k` was given, there are as many clusters as the same rule
 * says of those numbers whose gap less its standard error is above that of one cluster: s3cmtf_clusters_get_count() has how
 * many. Arrays have room for `capacity` items and may be NULL, as may `chosen`; `found` is how many there are: 0 if there is
 * no curve, and then `chosen` is 0.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_clusters_copy_gaps(const s3cmtf_clusters *clusters,
                                  double *gaps,
                                  double *errors,
                                  uint64_t capacity,
                                  uint64_t *chosen,
                                  uint64_t *found,
                                  s3cmtf_error *error);

/**
 * What the gaps are made of: for 1, 2, 3 ... clusters the logarithm of the sum of squared distances to the own centre
 * (`log_within`) and the mean of the same over the reference sets (`references`), whose difference is the gap. `settled` is 1 if
 * the rule chose, and 0 if no number did it and the last was taken: then more clusters than were looked at may be better
 * still. `rows` is how many rows the curve was measured on. All may be NULL; arrays have room for `capacity` items, and
 * `found` is how many there are: 0 if there is no curve, and then `settled` and `rows` are 0.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_clusters_copy_curve(const s3cmtf_clusters *clusters,
                                   double *log_within,
                                   double *references,
                                   uint64_t capacity,
                                   int32_t *settled,
                                   uint64_t *rows,
                                   uint64_t *found,
                                   s3cmtf_error *error);

/**
 * For each matrix that labels clusters, how much of what its columns say of a row the cluster of the row tells: their
 * mutual information over their entropy. `shares` has room for `capacity` items and may be NULL; `found` is how many
 * matrices there are.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_clusters_copy_information(const s3cmtf_clusters *clusters,
                                         double *shares,
                                         uint64_t capacity,
                                         uint64_t *found,
                                         s3cmtf_error *error);

/**
 * Frees clusters. NULL is allowed.
 */
void s3cmtf_clusters_free(s3cmtf_clusters *clusters);

/**
 * Reads a file of names: TSV or CSV with the number of a row, counted from 1, in the first column and its name in the
 * second. A first line without a number is a heading. Free with s3cmtf_names_free().
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_names_open(const char *path,
                          s3cmtf_names **names,
                          s3cmtf_error *error);

/**
 * Reads the names of a mode that were left beside a data file when text was converted, or beside a model of the same
 * name; NULL is written if there are none. Free with s3cmtf_names_free().
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_names_open_beside(const char *path,
                                 uint64_t mode,
                                 s3cmtf_names **names,
                                 s3cmtf_error *error);

/**
 * One more than the last row with a name.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_names_get_count(const s3cmtf_names *names,
                               uint64_t *count,
                               s3cmtf_error *error);

/**
 * Writes the name of a row and the NUL behind it into `name`, which has room for `capacity` bytes, and how many bytes
 * that is into `needed` (which may be NULL). With `name` NULL and `capacity` 0 it only says how many. A row without a
 * name has an empty one.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_names_get(const s3cmtf_names *names,
                         uint64_t row,
                         char *name,
                         uint64_t capacity,
                         uint64_t *needed,
                         s3cmtf_error *error);

/**
 * Finds the row with a name; the first if there are several. A name that no row has is S3CMTF_BAD_ARGUMENT, and the
 * message suggests the nearest.
 */
S3CMTF_CHECK_STATUS
int32_t s3cmtf_names_find(const s3cmtf_names *names,
                          const char *name,
                          uint64_t *row,
                          s3cmtf_error *error);

/**
 * Frees names. NULL is allowed.
 */
void s3cmtf_names_free(s3cmtf_names *names);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* S3CMTF_H */
