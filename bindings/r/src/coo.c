/* Sparse tensors and matrices: from vectors of R, and their content. */
#include <limits.h>

#include "shim.h"
#include "routines.h"

static int has_doubles(SEXP indices)
{
    for (R_xlen_t n = 0; n < XLENGTH(indices); n++)
        if (TYPEOF(VECTOR_ELT(indices, n)) == REALSXP) return 1;
    return 0;
}

s3cmtf_coo_info coo_info_of(const s3cmtf_coo *coo)
{
    s3cmtf_coo_info info = {.size = sizeof info};
    check(s3cmtf_coo_get_info(coo, &info, call_error));
    return info;
}

static uint64_t *dims_of(const s3cmtf_coo *coo)
{
    const uint64_t order = coo_info_of(coo).order;
    uint64_t *dims = allocate(order, sizeof *dims);
    check(s3cmtf_coo_get_dims(coo, dims, order, call_error));
    return dims;
}

/* Whether a mode is so large that an index may be a negative integer. */
static int has_negative(const s3cmtf_coo *coo)
{
    if (coo == NULL) return 0;
    const uint64_t order = coo_info_of(coo).order;
    const uint64_t *dims = dims_of(coo);
    for (uint64_t n = 0; n < order; n++)
        if (dims[n] > INT_MAX) return 1;
    return 0;
}

SEXP r_coo_new(SEXP indices, SEXP base, SEXP values, SEXP dims, SEXP weights)
{
    const int first = Rf_asInteger(base);
    const uint64_t *sizes = NULL;
    if (dims != R_NilValue) {
        if (XLENGTH(dims) != XLENGTH(indices))
            fail("BAD_ARGUMENT", "dims has %d numbers, but there are %d modes", (int)XLENGTH(dims), (int)XLENGTH(indices));
        sizes = uint64s_from(dims, 0);
    }
    s3cmtf_entries entries = {
        .size = sizeof entries, .order = (uint64_t)XLENGTH(indices), .dims = sizes,
        .indices = indices_from(indices, first), .values = REAL(values), .value_type = S3CMTF_F64,
    };
    if ((uint64_t)XLENGTH(values) != entries.indices.count)
        fail("BAD_ARGUMENT", "there are %.0f values for %.0f entries", (double)XLENGTH(values),
             (double)entries.indices.count);
    if (weights != R_NilValue) {
        if (XLENGTH(weights) != XLENGTH(values))
            fail("BAD_ARGUMENT", "there are %.0f weights for %.0f entries", (double)XLENGTH(weights),
                 (double)XLENGTH(values));
        entries.weights = REAL(weights);
        entries.weight_type = S3CMTF_F64;
    }
    SEXP handle = PROTECT(handle_new(COO));
    s3cmtf_coo *coo = NULL;
    if (has_doubles(indices)) check_indices(indices, first, sizes);
    const int32_t status = s3cmtf_coo_new(&entries, &coo, call_error);
    handle_set(handle, coo);
    /* The library checks integers as it copies them. Its error counts from 0, and NA is a large unsigned number. */
    if (status == S3CMTF_BAD_ENTRY || has_negative(coo)) check_indices(indices, first, sizes);
    check(status);
    UNPROTECT(1);
    return handle;
}

SEXP r_coo_weighted(SEXP handle, SEXP weights)
{
    const s3cmtf_coo *coo = handle_get(handle, COO);
    const uint64_t count = coo_info_of(coo).count;
    if ((uint64_t)XLENGTH(weights) != count)
        fail("BAD_ARGUMENT", "there are %.0f weights for %.0f entries", (double)XLENGTH(weights), (double)count);
    SEXP result = PROTECT(handle_new(COO));
    s3cmtf_coo *weighted = NULL;
    check(s3cmtf_coo_new_weighted(coo, REAL(weights), S3CMTF_F64, &weighted, call_error));
    handle_set(result, weighted);
    UNPROTECT(1);
    return result;
}

SEXP r_coo_info(SEXP handle)
{
    static const char *const names[] = {"dims", "count", "weighted", NULL};
    const s3cmtf_coo *coo = handle_get(handle, COO);
    const s3cmtf_coo_info info = coo_info_of(coo);
    SEXP list = PROTECT(named_list(names));
    SET_VECTOR_ELT(list, 0, uint64s_to_r(dims_of(coo), info.order, 0));
    SET_VECTOR_ELT(list, 1, Rf_ScalarReal((double)info.count));
    SET_VECTOR_ELT(list, 2, Rf_ScalarLogical(info.weight_type != 0));
    UNPROTECT(1);
    return list;
}

SEXP r_coo_indices(SEXP handle, SEXP mode)
{
    const s3cmtf_coo *coo = handle_get(handle, COO);
    const uint64_t number = *uint64s_from(mode, 1);
    const uint32_t *indices = NULL;
    check(s3cmtf_coo_view_indices(coo, number, &indices, call_error));
    return indices_to_r(indices, (R_xlen_t)coo_info_of(coo).count, dims_of(coo)[number]);
}

static SEXP doubles(const void *numbers, int32_t type, R_xlen_t count)
{
    SEXP result = PROTECT(Rf_allocVector(REALSXP, count));
    for (R_xlen_t i = 0; i < count; i++)
        REAL(result)[i] = type == S3CMTF_F32 ? (double)((const float *)numbers)[i] : ((const double *)numbers)[i];
    UNPROTECT(1);
    return result;
}

SEXP r_coo_values(SEXP handle)
{
    const s3cmtf_coo *coo = handle_get(handle, COO);
    const s3cmtf_coo_info info = coo_info_of(coo);
    const void *values = NULL;
    check(s3cmtf_coo_view_values(coo, &values, call_error));
    return doubles(values, info.value_type, (R_xlen_t)info.count);
}

SEXP r_coo_weights(SEXP handle)
{
    const s3cmtf_coo *coo = handle_get(handle, COO);
    const s3cmtf_coo_info info = coo_info_of(coo);
    const void *weights = NULL;
    check(s3cmtf_coo_view_weights(coo, &weights, call_error));
    if (weights == NULL) return R_NilValue;
    return doubles(weights, info.weight_type, (R_xlen_t)info.count);
}
