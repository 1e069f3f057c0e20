/* Values of R as arguments of the library, and back. */
#include <limits.h>
#include <string.h>

#include "shim.h"

static const char *mode_name(SEXP list, R_xlen_t mode)
{
    SEXP names = Rf_getAttrib(list, R_NamesSymbol);
    return names == R_NilValue ? "?" : Rf_translateCharUTF8(STRING_ELT(names, mode));
}

void *allocate(uint64_t count, size_t size) { return R_alloc(count > 0 ? (size_t)count : 1, (int)size); }

const s3cmtf_coo **coos_from(SEXP handles)
{
    const s3cmtf_coo **coos = allocate((uint64_t)XLENGTH(handles), sizeof *coos);
    for (R_xlen_t i = 0; i < XLENGTH(handles); i++) coos[i] = handle_get(VECTOR_ELT(handles, i), COO);
    return coos;
}

/* Out of range numbers become 0, which check_indices() finds before the library is called. */
static const uint32_t *from_doubles(const double *numbers, R_xlen_t count)
{
    uint32_t *indices = allocate((uint64_t)count, sizeof *indices);
    for (R_xlen_t i = 0; i < count; i++)
        indices[i] = numbers[i] >= 0 && numbers[i] <= UINT32_MAX ? (uint32_t)numbers[i] : 0;
    return indices;
}

s3cmtf_indices indices_from(SEXP list, int base)
{
    const R_xlen_t order = XLENGTH(list);
    const void **modes = allocate((uint64_t)order, sizeof *modes);
    R_xlen_t count = -1;
    for (R_xlen_t n = 0; n < order; n++) {
        SEXP vector = VECTOR_ELT(list, n);
        modes[n] = NULL;
        if (vector == R_NilValue) continue;
        if (count >= 0 && XLENGTH(vector) != count)
            fail("BAD_ARGUMENT", "mode %s has %.0f indices, but the modes before it have %.0f", mode_name(list, n),
                 (double)XLENGTH(vector), (double)count);
        count = XLENGTH(vector);
        switch (TYPEOF(vector)) {
        case INTSXP: modes[n] = INTEGER(vector); break;
        case REALSXP: modes[n] = from_doubles(REAL(vector), count); break;
        default: fail("BAD_ARGUMENT", "the indices of mode %s are not numbers", mode_name(list, n));
        }
    }
    return (s3cmtf_indices){
        .modes = modes, .count = count < 0 ? 1 : (uint64_t)count, .stride = 1, .type = S3CMTF_U32, .base = base};
}

/* Blocks of a constant length become vector instructions at the optimization level of packages. */
static int integers_are_within(const int *numbers, R_xlen_t count, double first, double last)
{
    enum { BLOCK = 64 };
    if (last < first) return count == 0;
    const unsigned base = (unsigned)first;
    const unsigned span = (unsigned)((last < INT_MAX ? last : INT_MAX) - first);
    unsigned outside = 0;
    R_xlen_t i = 0;
    for (; i + BLOCK <= count; i += BLOCK)
        for (int j = 0; j < BLOCK; j++) outside |= (unsigned)numbers[i + j] - base > span;
    for (; i < count; i++) outside |= (unsigned)numbers[i] - base > span;
    return !outside;
}

void check_indices(SEXP list, int base, const uint64_t *dims)
{
    for (R_xlen_t n = 0; n < XLENGTH(list); n++) {
        SEXP vector = VECTOR_ELT(list, n);
        if (TYPEOF(vector) != INTSXP && TYPEOF(vector) != REALSXP) continue;
        const double size = dims == NULL ? UINT32_MAX : (double)dims[n] + base - 1;
        const double last = size < UINT32_MAX ? size : UINT32_MAX;
        const int *integers = TYPEOF(vector) == INTSXP ? INTEGER(vector) : NULL;
        if (integers != NULL && integers_are_within(integers, XLENGTH(vector), base, last)) continue;
        for (R_xlen_t i = 0; i < XLENGTH(vector); i++) {
            const double number = integers == NULL ? REAL(vector)[i] : integers[i] == NA_INTEGER ? NA_REAL : integers[i];
            if (number >= base && number <= last && number == (double)(uint32_t)number) continue;
            if (ISNAN(number))
                fail("BAD_ENTRY", "entry %.0f: the index of mode %s is NA", (double)i + 1, mode_name(list, n));
            fail("BAD_ENTRY", "entry %.0f: the index of mode %s is %.15g; it must be an integer from %d to %.0f",
                 (double)i + 1, mode_name(list, n), number, base, last);
        }
    }
}

static uint64_t uint64_of(double number)
{
    /* 2^53: larger doubles are not exact integers. */
    if (!(number >= 0 && number <= 9007199254740992.0 && number == (double)(uint64_t)number))
        fail("BAD_ARGUMENT", "%g is not an integer from 0 to 2^53", number);
    return (uint64_t)number;
}

uint64_t *uint64s_from(SEXP numbers, uint64_t offset)
{
    numbers = PROTECT(Rf_coerceVector(numbers, REALSXP));
    const R_xlen_t count = XLENGTH(numbers);
    uint64_t *converted = allocate((uint64_t)count, sizeof *converted);
    for (R_xlen_t i = 0; i < count; i++) {
        const uint64_t number = uint64_of(REAL(numbers)[i]);
        if (number < offset) fail("BAD_ARGUMENT", "%.0f is not a number from %.0f", (double)number, (double)offset);
        converted[i] = number - offset;
    }
    UNPROTECT(1);
    return converted;
}

uint64_t uint64_from(SEXP number) { return uint64_of(Rf_asReal(number)); }

double real_from(SEXP number) { return Rf_asReal(number); }

int flag_from(SEXP flag) { return Rf_asLogical(flag) == TRUE; }

const char *string_from(SEXP string)
{
    return string == R_NilValue ? NULL : Rf_translateCharUTF8(STRING_ELT(string, 0));
}

const char *path_from(SEXP string)
{
    if (string == R_NilValue) return NULL;
    /* R_ExpandFileName() returns a buffer that its next call overwrites. */
    const char *path = R_ExpandFileName(Rf_translateChar(STRING_ELT(string, 0)));
    return strcpy(R_alloc(strlen(path) + 1, 1), path);
}

SEXP utf8_string(const char *text)
{
    SEXP character = PROTECT(Rf_mkCharCE(text, CE_UTF8));
    SEXP string = Rf_ScalarString(character);
    UNPROTECT(1);
    return string;
}

SEXP indices_to_r(const uint32_t *indices, R_xlen_t count, uint64_t dim)
{
    if (dim > INT_MAX) {
        SEXP result = PROTECT(Rf_allocVector(REALSXP, count));
        for (R_xlen_t i = 0; i < count; i++) REAL(result)[i] = (double)indices[i] + 1;
        UNPROTECT(1);
        return result;
    }
    SEXP result = PROTECT(Rf_allocVector(INTSXP, count));
    int *numbers = INTEGER(result);
    for (R_xlen_t i = 0; i < count; i++) numbers[i] = (int)(indices[i] + 1);
    UNPROTECT(1);
    return result;
}

void copy_uint64s(double *to, const uint64_t *numbers, uint64_t count, uint64_t offset)
{
    for (uint64_t i = 0; i < count; i++) to[i] = (double)(numbers[i] + offset);
}

SEXP uint64s_to_r(const uint64_t *numbers, uint64_t count, uint64_t offset)
{
    SEXP result = Rf_allocVector(REALSXP, (R_xlen_t)count);
    copy_uint64s(REAL(result), numbers, count, offset);
    return result;
}

SEXP named_list(const char *const *names)
{
    R_xlen_t count = 0;
    while (names[count] != NULL) count++;
    SEXP list = PROTECT(Rf_allocVector(VECSXP, count));
    SEXP labels = PROTECT(Rf_allocVector(STRSXP, count));
    for (R_xlen_t i = 0; i < count; i++) SET_STRING_ELT(labels, i, Rf_mkChar(names[i]));
    Rf_setAttrib(list, R_NamesSymbol, labels);
    UNPROTECT(2);
    return list;
}

SEXP number_list(const char *const *names, const double *numbers)
{
    SEXP list = PROTECT(named_list(names));
    for (R_xlen_t i = 0; i < XLENGTH(list); i++) SET_VECTOR_ELT(list, i, Rf_ScalarReal(numbers[i]));
    UNPROTECT(1);
    return list;
}

SEXP double_columns(const char *const *names, uint64_t count)
{
    SEXP list = PROTECT(named_list(names));
    for (R_xlen_t i = 0; i < XLENGTH(list); i++) add_vector(list, i, count);
    UNPROTECT(1);
    return list;
}

void set_row(SEXP columns, uint64_t row, int count, const double *numbers)
{
    for (int i = 0; i < count; i++) REAL(VECTOR_ELT(columns, i))[row] = numbers[i];
}

double *add_vector(SEXP list, R_xlen_t place, uint64_t count)
{
    SEXP vector = Rf_allocVector(REALSXP, (R_xlen_t)count);
    SET_VECTOR_ELT(list, place, vector);
    return REAL(vector);
}

double *add_matrix(SEXP list, R_xlen_t place, uint64_t rows, uint64_t columns)
{
    if (rows > INT_MAX || columns > INT_MAX)
        fail("BAD_ARGUMENT", "a matrix of R has at most %d rows, but there are %.0f", INT_MAX, (double)rows);
    SEXP matrix = Rf_allocMatrix(REALSXP, (int)rows, (int)columns);
    SET_VECTOR_ELT(list, place, matrix);
    return REAL(matrix);
}
