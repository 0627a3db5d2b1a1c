/* Schedules from files: the compute table that torch.distributed.pipelining writes (_dump_csv, compute_only): a row a
 * rank, a cell an action, as "2F0": stage (our part) 2, forward, micro-batch 0; B a backward, I and W its halves for
 * inputs and for weights; an empty cell a time in which the rank waits; "(0F5;7B1)OVERLAP_F_B" two actions that PyTorch
 * lets overlap: here one after the other. Which rank has a stage is said by the row in which it stands. */
#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/files.h"
#include "runtime/layout/schedule.h"

enum { TABLE_BYTES_MAX = 16 << 20 }; /* the largest schedule has some thousand cells */

bool el_schedule_is_file(const char *name)
{
    size_t length = strlen(name);
    return length > 4 && strcmp(name + length - 4, ".csv") == 0;
}

/* Where the reader stands, both counted from 1. */
struct reader {
    struct el_schedule *schedule;
    const char *path;
    int row, cell;
};

static enum el_status fail_cell(const struct reader *reader, const char *text, const char *why)
{
    return el_fail(EL_ERR_INVALID, "--schedule %s: row %d, cell %d: '%.40s': %s", reader->path, reader->row,
                   reader->cell, text, why);
}

/* A number below `end` at *text_p, which goes behind it; -1: there is none. */
static int take_number(const char **text_p, int end)
{
    int number = -1;
    for (; isdigit((unsigned char)**text_p); (*text_p)++) {
        if (number >= end) continue; /* too large already */
        number = (number < 0 ? 0 : number * 10) + (**text_p - '0');
    }
    return number;
}

static enum el_status place(const struct reader *reader, const char *text, int part, int device)
{
    struct el_schedule *schedule = reader->schedule;
    for (; schedule->n_parts <= part; schedule->n_parts++) schedule->device[schedule->n_parts] = -1;
    if (schedule->device[part] < 0) schedule->device[part] = device;
    if (schedule->device[part] == device) return EL_OK;
    return fail_cell(reader, text, "this stage is in an earlier row too; each has one device");
}

/* "2F0" */
static enum el_status read_action(const struct reader *reader, const char *text)
{
    static const char letters[] = "FBIW";
    const char *at = text;
    struct el_action action = {.part = take_number(&at, EL_PARTS_MAX)};
    const char *letter = *at ? strchr(letters, *at) : NULL;
    if (action.part < 0 || !letter || !isdigit((unsigned char)at[1]))
        return fail_cell(
            reader, text,
            "no action that computes (F, B, I, W, OVERLAP_F_B): write the file with format=\"compute_only\"");
    action.kind = (enum el_action_kind)(letter - letters);
    at++;
    action.micro = take_number(&at, EL_MICRO_MAX);
    if (*at) return fail_cell(reader, text, "more than an action");
    if (action.part >= EL_PARTS_MAX) return fail_cell(reader, text, "stages go from 0 to 127");
    if (action.micro >= EL_MICRO_MAX) return fail_cell(reader, text, "micro-batches go from 0 to 511");
    if (action.micro >= reader->schedule->n_micro) reader->schedule->n_micro = action.micro + 1;
    EL_TRY(place(reader, text, action.part, reader->row - 1));
    return el_schedule_add(reader->schedule, reader->row - 1, action);
}

/* Without blanks around it, in place. */
static char *trim(char *text)
{
    while (isspace((unsigned char)*text)) text++;
    for (size_t n = strlen(text); n > 0 && isspace((unsigned char)text[n - 1]); n--) text[n - 1] = 0;
    return text;
}

static enum el_status read_cell(const struct reader *reader, char *cell)
{
    static const char overlap[] = ")OVERLAP_F_B";
    char *text = trim(cell), *end = text + strlen(text), *rest = NULL;
    size_t tail = sizeof overlap - 1;
    if (!*text) return EL_OK;
    if (*text != '(') return read_action(reader, text);
    if ((size_t)(end - text) < tail + 1 || strcmp(end - tail, overlap) != 0)
        return fail_cell(reader, text, "no action that computes (F, B, I, W, OVERLAP_F_B)");
    end[-(ptrdiff_t)tail] = 0;
    for (char *one = strtok_r(text + 1, ";", &rest); one; one = strtok_r(NULL, ";", &rest))
        EL_TRY(read_action(reader, trim(one)));
    return EL_OK;
}

static enum el_status read_row(struct reader *reader, char *line)
{
    reader->cell = 0;
    for (char *cell = line, *next; cell; cell = next) {
        next = strchr(cell, ',');
        if (next) *next++ = 0;
        reader->cell++;
        EL_TRY(read_cell(reader, cell));
    }
    return EL_OK;
}

static enum el_status read_rows(struct reader *reader, FILE *file)
{
    char *line = NULL;
    size_t room = 0;
    enum el_status status = EL_OK;
    while (status == EL_OK && getline(&line, &room, file) > 0) {
        if (reader->row++ < reader->schedule->n_devices) status = read_row(reader, line);
    }
    free(line);
    EL_TRY(status);
    if (ferror(file)) return el_fail(EL_ERR_IO, "--schedule %s: cannot be read", reader->path);
    if (reader->row == reader->schedule->n_devices) return EL_OK;
    return el_fail(EL_ERR_INVALID,
                   "--schedule %s: has a row for each of %d devices, and there are %d: change --devices", reader->path,
                   reader->row, reader->schedule->n_devices);
}

enum el_status el_schedule_read(const char *path, int n_devices, struct el_schedule *schedule)
{
    struct reader reader = {.schedule = schedule, .path = path};
    schedule->n_devices = n_devices;
    FILE *file;
    EL_TRY(el_file_stream("--schedule ", path, TABLE_BYTES_MAX, &file));
    enum el_status status = read_rows(&reader, file);
    fclose(file);
    EL_TRY(status);
    for (int k = 0; k < schedule->n_parts; k++)
        if (schedule->device[k] < 0)
            return el_fail(EL_ERR_INVALID, "--schedule %s: has stage %d, and no stage %d", path, schedule->n_parts - 1,
                           k);
    for (int d = 0; d < n_devices; d++)
        if (schedule->n_actions[d] == 0)
            return el_fail(EL_ERR_INVALID, "--schedule %s: row %d: no action in it", path, d + 1);
    return EL_OK;
}
