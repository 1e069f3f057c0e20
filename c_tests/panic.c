/* A panic inside the library is a status, is not printed, and leaves the library usable. Needs a library built with
 * --cfg s3cmtf_test. */
#include "check.h"

int32_t s3cmtf_testing_panic(int32_t place, s3cmtf_error *error);

int main(void)
{
    static planted data;
    s3cmtf_error *error = NULL;
    CHECK(s3cmtf_error_new(&error) == S3CMTF_OK);
    plant(&data);
    for (int32_t place = 0; place < 2; place++) {
        for (int again = 0; again < 3; again++) {
            FAILS(S3CMTF_INTERNAL, s3cmtf_testing_panic(place, error));
            CHECK(strstr(s3cmtf_error_message(error), "internal error, please report it") != NULL);
            CHECK(strstr(s3cmtf_error_message(error), "as was asked for") != NULL);
        }
    }
    FAILS(S3CMTF_INTERNAL, s3cmtf_testing_panic(0, NULL));
    s3cmtf_model_free(small_model(&data, 2, 2, error));
    s3cmtf_error_free(error);
    puts("ok");
    return 0;
}
