/* Counts the calls that change files, and kills the process at one of them: before it, in the middle of
   a write, or after it. A sector is written whole or not at all. Preloaded into the process that is to die. It
   also keeps a diary of what was written and what was synced, and in a folder what a power cut would leave: for
   each file, by its inode, what it held when it was synced, and the names that a folder had when it was. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define SECTOR 512

static long points = 0;
static long deadly = -1;
static char pages[1 << 20];
static size_t used = 0;
static char safe[512] = "";

void keep(const char *folder) { snprintf(safe, sizeof safe, "%s", folder); }
void arm(long point) { points = 0; deadly = point; used = 0; pages[0] = 0; }
long passed(void) { return points; }
const char *diary(void) { return pages; }

static int is_deadly(void) { return deadly >= 0 && ++points == deadly; }
static void die(void) { kill(getpid(), SIGKILL); }
static void pass(void) { if (is_deadly()) die(); }

static void note(const char *act, int file) {
    char link[64], path[512] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    if (deadly >= 0 && used + strlen(name) + 16 < sizeof pages)
        used += sprintf(pages + used, "%s %s\n", act, name);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void keep_bytes(int file, int copy) {
    char block[1 << 16];
    ssize_t size;
    for (off_t place = 0; (size = pread(file, block, sizeof block, place)) > 0; place += size)
        REAL(write)(copy, block, size);
}

static void keep_names(int file, int copy) {
    DIR *folder = fdopendir(openat(file, ".", O_RDONLY));
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_type == DT_REG) dprintf(copy, "%lu %s\n", (unsigned long)entry->d_ino, entry->d_name);
    closedir(folder);
}

static int reopened(int file) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    return open(link, O_RDONLY);
}

static void survive(int file) {
    struct stat about;
    char path[600];
    if (!*safe || fstat(file, &about)) return;
    int is_folder = S_ISDIR(about.st_mode), is_hidden = (fcntl(file, F_GETFL) & O_ACCMODE) == O_WRONLY;
    snprintf(path, sizeof path, is_folder ? "%s/names" : "%s/%lu", safe, (unsigned long)about.st_ino);
    int handle = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    int readable = is_hidden ? reopened(file) : file;
    (is_folder ? keep_names : keep_bytes)(readable, handle);
    if (is_hidden) close(readable);
    close(handle);
}

#define WRITES(name, parameters, half, all) \
    ssize_t name parameters { \
        pass(); \
        if (size > SECTOR && is_deadly()) { REAL(name) half; die(); } \
        note("write", file); \
        ssize_t result = REAL(name) all; \
        pass(); \
        return result; \
    }

#define SYNCS(name) \
    int name(int file) { \
        pass(); \
        int result = REAL(name)(file); \
        note("sync", file); \
        survive(file); \
        pass(); \
        return result; \
    }

#define ACTS(name, parameters, all) \
    int name parameters { \
        pass(); \
        int result = REAL(name) all; \
        pass(); \
        return result; \
    }

WRITES(write, (int file, const void *data, size_t size), (file, data, size / 2), (file, data, size))
WRITES(pwrite, (int file, const void *data, size_t size, off_t place), (file, data, size / 2, place),
       (file, data, size, place))
WRITES(pwrite64, (int file, const void *data, size_t size, off64_t place), (file, data, size / 2, place),
       (file, data, size, place))
SYNCS(fsync)
SYNCS(fdatasync)
ACTS(ftruncate, (int file, off_t size), (file, size))
ACTS(ftruncate64, (int file, off64_t size), (file, size))
ACTS(unlink, (const char *path), (path))
ACTS(link, (const char *from, const char *to), (from, to))
ACTS(rename, (const char *from, const char *to), (from, to))
