# Statuses of the library as exceptions.

"""
    S3CMTFError(status, message)

A failure of the library. `status` is its code and `message` says what was wrong. `statusname(error)` is the name of the code, such
as `"S3CMTF_BAD_ENTRY"`.
"""
struct S3CMTFError <: Exception
    status::Int32
    message::String
end

S3CMTFError(message::AbstractString) = S3CMTFError(S3CMTF_BAD_STATE, message)

statusname(error::S3CMTFError) = unsafe_string(s3cmtf_status_name(error.status))

Base.showerror(io::IO, error::S3CMTFError) = print(io, "S3CMTFError: ", error.message)

"Creates an error handle of the library for one call."
function new_error()
    handle = Ref{Ptr{s3cmtf_error}}(C_NULL)
    s3cmtf_error_new(handle) == S3CMTF_OK || throw(OutOfMemoryError())
    return handle[]
end

throw_error(status::Int32, error::Ptr{s3cmtf_error}) = throw(S3CMTFError(status, unsafe_string(s3cmtf_error_message(error))))
