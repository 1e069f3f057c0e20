/* External pointers that own objects of the library. */
#include "shim.h"
#include "routines.h"

typedef void (*Release)(void *object);

static void free_coo(void *object) { s3cmtf_coo_free(object); }
static void free_text(void *object) { s3cmtf_text_free(object); }
static void free_options(void *object) { s3cmtf_options_free(object); }
static void free_problem(void *object) { s3cmtf_problem_free(object); }
static void free_fit(void *object) { s3cmtf_fit_free(object); }
static void free_tune(void *object) { s3cmtf_tune_free(object); }
static void free_model(void *object) { s3cmtf_model_free(object); }
static void free_concepts(void *object) { s3cmtf_concepts_free(object); }
static void free_clusters(void *object) { s3cmtf_clusters_free(object); }
static void free_names(void *object) { s3cmtf_names_free(object); }

static const struct {
    const char *name;
    Release release;
} kinds[KINDS] = {
    [COO] = {"tensor", free_coo},
    [TEXT] = {"text", free_text},
    [OPTIONS] = {"options", free_options},
    [PROBLEM] = {"problem", free_problem},
    [FIT] = {"fit", free_fit},
    [TUNE] = {"search", free_tune},
    [MODEL] = {"model", free_model},
    [CONCEPTS] = {"concepts", free_concepts},
    [CLUSTERS] = {"clusters", free_clusters},
    [NAMES] = {"names", free_names},
};

static void finalize(SEXP handle)
{
    void *object = R_ExternalPtrAddr(handle);
    if (object == NULL) return;
    R_ClearExternalPtr(handle);
    for (int kind = 0; kind < KINDS; kind++)
        if (R_ExternalPtrTag(handle) == Rf_install(kinds[kind].name)) kinds[kind].release(object);
}

SEXP handle_new(Kind kind)
{
    SEXP handle = PROTECT(R_MakeExternalPtr(NULL, Rf_install(kinds[kind].name), R_NilValue));
    R_RegisterCFinalizerEx(handle, finalize, TRUE);
    UNPROTECT(1);
    return handle;
}

void handle_set(SEXP handle, void *object) { R_SetExternalPtrAddr(handle, object); }

void *handle_get(SEXP handle, Kind kind)
{
    const char *name = kinds[kind].name;
    if (TYPEOF(handle) != EXTPTRSXP || R_ExternalPtrTag(handle) != Rf_install(name))
        fail("BAD_ARGUMENT", "the object is not a %s of this package", name);
    void *object = R_ExternalPtrAddr(handle);
    if (object != NULL) return object;
    /* Only close() sets the protected value; it survives RDS files, unlike the address. */
    if (R_ExternalPtrProtected(handle) != R_NilValue) fail("BAD_STATE", "the %s was closed with close()", name);
    if (kind == MODEL)
        fail("BAD_STATE", "the model was restored from an RDS or RData file, or belongs to another process, and has no "
                          "data; use save_model() and load_model()");
    fail("BAD_STATE", "the %s was restored from an RDS or RData file, or belongs to another process, and has no data; use "
                      "write_coo() and open_coo()", name);
}

void *handle_or_null(SEXP handle, Kind kind) { return handle == R_NilValue ? NULL : handle_get(handle, kind); }

SEXP r_handle_close(SEXP handle)
{
    if (TYPEOF(handle) != EXTPTRSXP) fail("BAD_ARGUMENT", "the object is not a handle of this package");
    R_SetExternalPtrProtected(handle, Rf_ScalarLogical(TRUE));
    finalize(handle);
    return R_NilValue;
}

SEXP r_handle_is_open(SEXP handle)
{
    return Rf_ScalarLogical(TYPEOF(handle) == EXTPTRSXP && R_ExternalPtrAddr(handle) != NULL);
}
