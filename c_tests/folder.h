/* Shared by programs that write files: the output folder, paths in it, and the planted data as text. */
#ifndef S3CMTF_FOLDER_H
#define S3CMTF_FOLDER_H

#include "check.h"

enum { LONGEST = 1024 };

static s3cmtf_error *error;
static const char *folder;

/* Returns the path of a file in the output folder. */
static inline const char *in_folder(const char *name)
{
    static char paths[8][LONGEST];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, LONGEST, "%s/%s", folder, name);
    return path;
}

/* Writes training and test entries and the genres as text. */
static inline void write_planted(const planted *p)
{
    FILE *train = fopen(in_folder("tensor.train.tns"), "w"), *test = fopen(in_folder("tensor.test.tns"), "w");
    FILE *genres = fopen(in_folder("movie_genre.tns"), "w");
    CHECK(train != NULL && test != NULL && genres != NULL);
    for (int i = 0; i < ENTRIES; i++)
        fprintf(i % 5 ? train : test, "%u %u %u %.9g\n", p->user[i] + 1, p->film[i] + 1, p->month[i] + 1,
                (double)p->stars[i]);
    for (int i = 0; i < FILMS; i++) fprintf(genres, "%u %u 1\n", p->genre_film[i] + 1, p->genre[i] + 1);
    CHECK(fclose(train) == 0 && fclose(test) == 0 && fclose(genres) == 0);
}

static inline s3cmtf_coo *open_coo(const char *path, int32_t mode)
{
    s3cmtf_coo *coo = NULL;
    OK(s3cmtf_coo_open(path, mode, NULL, NULL, &coo, error));
    return coo;
}

/* Reads the arguments of a program: a folder to write to, and a folder with real data; without the second, plants data in the
 * first. Returns the folder of the data. */
static inline const char *start(int argc, char **argv)
{
    CHECK(argc == 2 || argc == 3);
    folder = argv[1];
    CHECK(s3cmtf_error_new(&error) == S3CMTF_OK);
    if (argc == 3) return argv[2];
    static planted p;
    plant(&p);
    write_planted(&p);
    return folder;
}

#endif
