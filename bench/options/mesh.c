/* The text of --mesh. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/options/options.h"

enum { WORDS_BYTES = 64, TEXT_BYTES = 1024 };

/* The words of the mode's axes, each with `with` behind it, and `between` them. */
static const char *words(const struct el_mode_info *mode, const char *with, const char *between, char text[WORDS_BYTES])
{
    size_t used = 0;
    *text = 0;
    for (enum el_axis axis = 0; axis < EL_AXIS_COUNT; axis++)
        if (mode->axes & 1U << axis)
            used += (size_t)snprintf(text + used, WORDS_BYTES - used, "%s%s%s", used ? between : "",
                                     el_axis_row(axis)->word, with);
    return text;
}

static enum el_status refuse(const char *text, const struct el_mode_info *mode)
{
    char like[WORDS_BYTES];
    return el_fail(EL_ERR_INVALID, "--mesh %.60s: must be like %s, each number at least 1", text,
                   words(mode, "=2", ",", like));
}

/* "dp=2". */
static bool read_item(const char *item, const struct el_mode_info *mode, int mesh[EL_AXIS_COUNT])
{
    for (enum el_axis axis = 0; axis < EL_AXIS_COUNT; axis++) {
        size_t n = strlen(el_axis_row(axis)->word);
        if (strncmp(item, el_axis_row(axis)->word, n) != 0 || item[n] != '=') continue;
        char *end;
        long number = strtol(item + n + 1, &end, 10);
        if (mesh[axis] || end == item + n + 1 || *end || number < 1 || number > EL_SIMULATED_MAX) return false;
        mesh[axis] = (int)number;
        return number == 1 || (mode->axes & 1U << axis);
    }
    return false;
}

enum el_status el_mesh_read(const char *text, const struct el_mode_info *mode, int n_devices, int mesh[EL_AXIS_COUNT])
{
    char copy[TEXT_BYTES], names[WORDS_BYTES], *rest;
    int others = 1;
    bool given = false;
    memset(mesh, 0, EL_AXIS_COUNT * sizeof *mesh);
    if (!*text) return EL_OK;
    snprintf(copy, sizeof copy, "%s", text);
    if (*text == ',' || text[strlen(text) - 1] == ',' || strstr(text, ",,")) return refuse(text, mode);
    for (char *item = strtok_r(copy, ",", &rest); item; item = strtok_r(NULL, ",", &rest))
        if (!read_item(item, mode, mesh)) return refuse(text, mode);
    for (enum el_axis axis = EL_AXIS_DATA + 1; axis < EL_AXIS_COUNT; axis++) {
        if (!mesh[axis]) continue;
        others *= mesh[axis];
        given |= (mode->axes & 1U << axis) != 0;
    }
    if (!given && !mesh[EL_AXIS_DATA]) return refuse(text, mode);
    if (!mesh[EL_AXIS_DATA] && n_devices % others == 0) mesh[EL_AXIS_DATA] = n_devices / others;
    if (n_devices == 0 || !given || mesh[EL_AXIS_DATA] * others == n_devices) return EL_OK;
    return el_fail(EL_ERR_INVALID, "--mesh %s: %s must be the number of devices (%d)", text,
                   words(mode, "", " times ", names), n_devices);
}
