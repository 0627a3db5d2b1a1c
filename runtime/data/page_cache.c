/* Whether a file system drops pages: memory file systems do not, nor do some of containers. */
#include <fcntl.h>
#include <fts.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/data/samples.h"

static enum el_status try_page(const char *path, int file, unsigned char *page)
{
    unsigned char there = 1;
    volatile unsigned char *first = page;
    (void)*first;
    munmap(page, 1);
    syncfs(file);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    page = mmap(NULL, 1, PROT_READ, MAP_SHARED, file, 0);
    bool known = page != MAP_FAILED && mincore(page, 1, &there) == 0;
    if (page != MAP_FAILED) munmap(page, 1);
    if (known && !(there & 1)) return EL_OK;
    return el_fail(EL_ERR_ABSENT, "%s stays in memory after posix_fadvise (a file system in memory?)",
                   el_path_tail(path));
}

static enum el_status try_file(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return el_fail_errno("data file %s", el_path_tail(path));
    unsigned char *page = mmap(NULL, 1, PROT_READ, MAP_SHARED, file, 0);
    enum el_status status =
        page == MAP_FAILED ? el_fail_errno("data file %s", el_path_tail(path)) : try_page(path, file, page);
    close(file);
    return status;
}

enum el_status el_page_cache_drops(const char *path)
{
    if (access(path, R_OK) != 0) return el_fail_errno("data %s", el_path_tail(path));
    char *paths[] = {(char *)(uintptr_t)path, NULL};
    FTS *tree = fts_open(paths, FTS_LOGICAL | FTS_NOCHDIR, NULL);
    if (!tree) return el_fail_errno("data %s", el_path_tail(path));
    enum el_status status = el_fail(EL_ERR_ABSENT, "%s: no file in it", el_path_tail(path));
    for (FTSENT *entry; (entry = fts_read(tree));) {
        if (entry->fts_info != FTS_F || entry->fts_statp->st_size == 0) continue;
        status = try_file(entry->fts_path);
        break;
    }
    fts_close(tree);
    return status;
}
