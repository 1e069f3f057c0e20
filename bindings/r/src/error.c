/* Failures of the library as R conditions. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shim.h"

s3cmtf_error *call_error;

/* The R function raise() of this package creates the condition. */
static NORET void raise(const char *status, const char *message)
{
    SEXP package = PROTECT(Rf_mkString("s3cmtf"));
    SEXP namespace = PROTECT(R_FindNamespace(package));
    SEXP name = PROTECT(Rf_mkString(status));
    SEXP text = PROTECT(utf8_string(message));
    SEXP call = PROTECT(Rf_lang3(Rf_install("raise"), name, text));
    Rf_eval(call, namespace);
    Rf_error("%s", message);
}

void check(int32_t status)
{
    if (status == S3CMTF_OK) return;
    const char *name = s3cmtf_status_name(status);
    if (strncmp(name, "S3CMTF_", 7) == 0) name += 7;
    const char *message = s3cmtf_error_message(call_error);
    /* Fields of a request have the names of arguments of R. */
    if (strncmp(message, "request->", 9) == 0) message += 9;
    raise(name, message);
}

void fail(const char *status, const char *format, ...)
{
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    raise(status, message);
}
