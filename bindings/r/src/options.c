/* The option table, the version of the library, and options of a fit. */
#include "shim.h"
#include "routines.h"

SEXP r_option_table(void)
{
    static const char *const names[] = {"name", "type", "default", "min", "max", "choices", "help", NULL};
    static const char *const types[] = {"", "logical", "integer", "real", "choice", "integers", "reals"};
    const uint64_t count = s3cmtf_option_count();
    SEXP table = PROTECT(named_list(names));
    for (int column = 0; names[column] != NULL; column++)
        SET_VECTOR_ELT(table, column, Rf_allocVector(STRSXP, (R_xlen_t)count));
    for (uint64_t i = 0; i < count; i++) {
        s3cmtf_option_info info = {.size = sizeof info};
        check(s3cmtf_option_get_info(i, &info, call_error));
        const char *type = info.type > 0 && info.type < 7 ? types[info.type] : "other";
        const char *texts[] = {info.name, type, info.default_value, info.min, info.max, info.choices, info.help};
        for (int column = 0; column < 7; column++)
            SET_STRING_ELT(VECTOR_ELT(table, column), (R_xlen_t)i, Rf_mkCharCE(texts[column], CE_UTF8));
    }
    UNPROTECT(1);
    return table;
}

SEXP r_presets(void)
{
    const char *name = NULL;
    R_xlen_t count = 0;
    while (s3cmtf_preset_name((uint64_t)count, &name, call_error) == S3CMTF_OK) count++;
    SEXP names = PROTECT(Rf_allocVector(STRSXP, count));
    for (R_xlen_t i = 0; i < count; i++) {
        check(s3cmtf_preset_name((uint64_t)i, &name, call_error));
        SET_STRING_ELT(names, i, Rf_mkChar(name));
    }
    UNPROTECT(1);
    return names;
}

SEXP r_version(void)
{
    static const char *const names[] = {"version", "build", "kernel", NULL};
    const char *kernel = NULL;
    check(s3cmtf_kernel_name(s3cmtf_kernel_best(), &kernel, call_error));
    SEXP list = PROTECT(named_list(names));
    SET_VECTOR_ELT(list, 0, Rf_mkString(s3cmtf_version()));
    SET_VECTOR_ELT(list, 1, Rf_mkString(s3cmtf_build_info()));
    SET_VECTOR_ELT(list, 2, Rf_mkString(kernel));
    UNPROTECT(1);
    return list;
}

SEXP options_new(SEXP preset, SEXP names, SEXP values)
{
    SEXP handle = PROTECT(handle_new(OPTIONS));
    s3cmtf_options *options = NULL;
    check(s3cmtf_options_new(string_from(preset), &options, call_error));
    handle_set(handle, options);
    for (R_xlen_t i = 0; i < XLENGTH(names); i++)
        check(s3cmtf_options_set(options, Rf_translateCharUTF8(STRING_ELT(names, i)),
                                 Rf_translateCharUTF8(STRING_ELT(values, i)), call_error));
    UNPROTECT(1);
    return handle;
}

/* The options of a model as a list with names and values. */
SEXP r_model_options(SEXP handle)
{
    static const char *const names[] = {"name", "value", NULL};
    const s3cmtf_model *model = handle_get(handle, MODEL);
    const uint64_t count = s3cmtf_option_count();
    SEXP list = PROTECT(named_list(names));
    SET_VECTOR_ELT(list, 0, Rf_allocVector(STRSXP, (R_xlen_t)count));
    SET_VECTOR_ELT(list, 1, Rf_allocVector(STRSXP, (R_xlen_t)count));
    SEXP owner = PROTECT(handle_new(OPTIONS));
    s3cmtf_options *options = NULL;
    check(s3cmtf_model_get_options(model, &options, call_error));
    handle_set(owner, options);
    for (uint64_t i = 0; i < count; i++) {
        s3cmtf_option_info info = {.size = sizeof info};
        uint64_t needed = 0;
        check(s3cmtf_option_get_info(i, &info, call_error));
        check(s3cmtf_options_get(options, info.name, NULL, 0, &needed, call_error));
        char *value = R_alloc((size_t)needed, 1);
        check(s3cmtf_options_get(options, info.name, value, needed, NULL, call_error));
        SET_STRING_ELT(VECTOR_ELT(list, 0), (R_xlen_t)i, Rf_mkChar(info.name));
        SET_STRING_ELT(VECTOR_ELT(list, 1), (R_xlen_t)i, Rf_mkChar(value));
    }
    UNPROTECT(2);
    return list;
}
