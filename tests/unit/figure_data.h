/* The data file that a figure is drawn from. */
#pragma once

#include <unistd.h>

#include "bench/plot/data_file.h"
#include "tests/unit/whole_files.h"

/* The file's text, or NULL where there is nothing to draw; to be freed. */
static inline char *data_of(const struct el_figure *figure, const json_t *run)
{
    char dir[] = "/tmp/el-figure-XXXXXX", path[64];
    bool drawn = false;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/%s.dat", dir, figure->name);
    put_file(dir, path, "", 0); /* of an earlier run: gone where there is nothing to draw */
    assert_int_equal(el_data_save(figure, run, dir, &drawn), EL_OK);
    char *text = access(path, F_OK) == 0 ? read_whole(path, NULL) : NULL;
    assert_int_equal(drawn, text != NULL);
    unlink(path);
    assert_int_equal(rmdir(dir), 0); /* nothing temporary is left */
    return text;
}

static inline void holds(const char *text, const char *wanted)
{
    if (!strstr(text, wanted)) fail_msg("'%s' is not in:\n%s", wanted, text);
}

/* Whether each of the texts is in the figure's data; one that begins with '!' is not, without that. */
static inline void check_drawn(const struct el_figure *figure, const json_t *run, const char *const *texts)
{
    char *data = data_of(figure, run);
    assert_non_null(data);
    for (; *texts; texts++)
        if (**texts != '!')
            holds(data, *texts);
        else if (strstr(data, *texts + 1))
            fail_msg("'%s' is in:\n%s", *texts + 1, data);
    free(data);
}
#define DRAWS(figure, run, ...) check_drawn(figure, run, (const char *const[]){__VA_ARGS__, NULL})
