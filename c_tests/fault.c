/* A library for LD_PRELOAD that makes one system call or allocation of a program fail, or kills the program there (Linux, glibc).
 * Built and used by cli/tests/program/faults.rs.
 *
 * S3CMTF_FAULT is KIND:N:ACTION[:BYTES]. The N-th call of a kind, counted from 1, is hit:
 *   create   open() that creates a file            fsync   fsync() and fdatasync()
 *   write    every way to write to a regular file  rename  rename()
 *   map      mmap() of a file                      spawn   pthread_create()
 *   alloc    allocations of at least BYTES bytes
 * ACTION is `fail` (the call returns an error and does nothing), `kill` (SIGKILL before the call; half of a write is done) or
 * `count` (nothing is hit). The file S3CMTF_FAULT_FILE is created when a call is hit, and gets the number of calls at the end of
 * the program for `count`. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { NONE, CREATE, WRITE, FSYNC, RENAME, MAP, SPAWN, ALLOC };
enum action { FAIL, KILL, COUNT };

static const char *const KINDS[] = {"", "create", "write", "fsync", "rename", "map", "spawn", "alloc"};

/* NONE until the constructor has run, so that calls of the loader are not counted. */
static _Atomic enum kind selected = NONE;
static enum action action;
static unsigned long target, least_bytes;
static atomic_ulong calls;
static char report[4096];

typedef int create_thread(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
static create_thread *real_create;

static long report_file(void)
{
    return syscall(SYS_openat, AT_FDCWD, report, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
}

/* Whether this call is the one to fail. Does not return if the program is to be killed: `half` bytes go to `fd` first. */
static int hit(enum kind kind, int fd, const void *half, size_t half_length)
{
    if (atomic_load(&selected) != kind || atomic_fetch_add(&calls, 1) + 1 != target || action == COUNT) return 0;
    const long file = report_file();
    if (file >= 0) syscall(SYS_close, file);
    if (action == FAIL) return 1;
    if (half_length > 0) syscall(SYS_write, fd, half, half_length);
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;) pause();
}

static int fails(enum kind kind)
{
    return hit(kind, -1, NULL, 0);
}

static int is_regular(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

static int with_errno(int number)
{
    errno = number;
    return -1;
}

__attribute__((constructor)) static void start(void)
{
    const char *fault = getenv("S3CMTF_FAULT"), *file = getenv("S3CMTF_FAULT_FILE");
    char kind[16] = "", what[16] = "";
    /* ISO C has no conversion of this pointer to one of a function. */
    void *const found = dlsym(RTLD_NEXT, "pthread_create");
    memcpy(&real_create, &found, sizeof found);
    if (fault == NULL || file == NULL || strlen(file) >= sizeof report) return;
    if (sscanf(fault, "%15[^:]:%lu:%15[^:]:%lu", kind, &target, what, &least_bytes) < 3) abort();
    strcpy(report, file);
    action = !strcmp(what, "fail") ? FAIL : !strcmp(what, "kill") ? KILL : COUNT;
    for (int k = CREATE; k <= ALLOC; k++)
        if (!strcmp(kind, KINDS[k])) atomic_store(&selected, (enum kind)k);
    if (atomic_load(&selected) == NONE) abort();
}

__attribute__((destructor)) static void end(void)
{
    if (atomic_load(&selected) == NONE || action != COUNT) return;
    char text[32];
    const int length = snprintf(text, sizeof text, "%lu", atomic_load(&calls));
    const long file = report_file();
    if (file >= 0) syscall(SYS_write, file, text, (size_t)length);
}

ssize_t write(int fd, const void *bytes, size_t length)
{
    if (is_regular(fd) && hit(WRITE, fd, bytes, length / 2)) return with_errno(ENOSPC);
    return syscall(SYS_write, fd, bytes, length);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    if (is_regular(fd) && fails(WRITE)) return with_errno(ENOSPC);
    return syscall(SYS_writev, fd, parts, count);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at)
{
    if (is_regular(fd) && fails(WRITE)) return with_errno(ENOSPC);
    return syscall(SYS_pwrite64, fd, bytes, length, at);
}

ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t length, unsigned flags)
{
    if (is_regular(to) && fails(WRITE)) return with_errno(ENOSPC);
    return syscall(SYS_copy_file_range, from, from_at, to, to_at, length, flags);
}

ssize_t sendfile64(int to, int from, off64_t *at, size_t length)
{
    if (is_regular(to) && fails(WRITE)) return with_errno(ENOSPC);
    return syscall(SYS_sendfile, to, from, at, length);
}

int ftruncate64(int fd, off64_t length)
{
    if (fails(WRITE)) return with_errno(ENOSPC);
    return (int)syscall(SYS_ftruncate, fd, length);
}

int fsync(int fd)
{
    if (fails(FSYNC)) return with_errno(EIO);
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    if (fails(FSYNC)) return with_errno(EIO);
    return (int)syscall(SYS_fdatasync, fd);
}

int rename(const char *from, const char *to)
{
    if (fails(RENAME)) return with_errno(EIO);
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int open64(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const mode_t mode = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(more, mode_t) : 0;
    va_end(more);
    if (((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) && fails(CREATE)) return with_errno(EMFILE);
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

void *mmap64(void *at, size_t length, int protection, int flags, int fd, off64_t offset)
{
    if (fd >= 0 && fails(MAP)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, length, protection, flags, fd, offset);
}

void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset)
{
    return mmap64(at, length, protection, flags, fd, offset);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument)
{
    if (fails(SPAWN)) return EAGAIN;
    return real_create(thread, attributes, body, argument);
}

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static int alloc_fails(size_t bytes)
{
    if (atomic_load(&selected) != ALLOC || bytes < least_bytes || !fails(ALLOC)) return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t bytes)
{
    return alloc_fails(bytes) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t size)
{
    return alloc_fails(count * size) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t bytes)
{
    return alloc_fails(bytes) ? NULL : __libc_realloc(memory, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    if (alloc_fails(bytes)) return ENOMEM;
    *memory = __libc_memalign(alignment, bytes);
    return *memory == NULL ? ENOMEM : 0;
}
