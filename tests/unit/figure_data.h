/* The data file that a figure is drawn from. */
#ifndef EL_TESTS_FIGURE_DATA_H
#define EL_TESTS_FIGURE_DATA_H

#include <unistd.h>

#include "bench/plot/data_file.h"
#include "tests/unit/whole_files.h"

/* The file's text, or NULL where there is nothing to draw; to be freed. */
static inline char *data_of(const struct el_figure *figure, const json_t *run, bool *drawn_p)
{
    char dir[] = "/tmp/el-figure-XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    assert_int_equal(el_data_save(figure, run, dir, drawn_p), EL_OK);
    snprintf(path, sizeof path, "%s/%s.dat", dir, figure->name);
    char *text = access(path, F_OK) == 0 ? read_whole(path, NULL) : NULL;
    unlink(path);
    assert_int_equal(rmdir(dir), 0); /* nothing temporary is left */
    return text;
}

static inline void holds(const char *text, const char *wanted)
{
    if (!strstr(text, wanted)) fail_msg("'%s' is not in:\n%s", wanted, text);
}

#endif
