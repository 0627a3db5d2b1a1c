/* Named schedules, their check, and schedules from files (schedule.h). */
#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/files.h"
#include "runtime/layout/config.h"
#include "runtime/layout/schedule.h"

/* The check: every part goes forward and back once with every micro-batch, and no device waits forever for its needs or
 * for room in a mailbox.
 * It simulates the devices: each does its actions in order and waits for needs and for room. A device's messages are
 * received in sending order, earlier ones with the needed one. The outcome does not depend on durations. */

char el_action_letter(enum el_action_kind kind)
{
    return "FBIW"[kind];
}

const char *el_action_text(struct el_action action, char text[16])
{
    snprintf(text, 16, "%d%c%d", action.part, el_action_letter(action.kind), action.micro);
    return text;
}

struct counts {
    unsigned char of[EL_PARTS_MAX][EL_MICRO_MAX][EL_ACTION_KINDS];
};

static enum el_status check_cell(const struct el_schedule *schedule, const char *name, const struct counts *counts,
                                 int part, int micro)
{
    static const char *const what[] = {"forward", "backward", "backward for inputs", "backward for weights"};
    const unsigned char *n = counts->of[part][micro];
    for (int kind = 0; kind < EL_ACTION_KINDS; kind++)
        if (n[kind] > 1)
            return el_fail(EL_ERR_INVALID, "--schedule %s: stage %d has more than one %s of micro-batch %d", name, part,
                           what[kind], micro);
    const char *missing = !n[EL_ACTION_FORWARD]                                             ? what[0]
                          : n[EL_ACTION_BACKWARD]                                           ? NULL
                          : !n[EL_ACTION_BACKWARD_INPUTS] && !n[EL_ACTION_BACKWARD_WEIGHTS] ? what[1]
                          : !n[EL_ACTION_BACKWARD_INPUTS]                                   ? what[2]
                          : !n[EL_ACTION_BACKWARD_WEIGHTS]                                  ? what[3]
                                                                                            : NULL;
    if (missing)
        return el_fail(EL_ERR_INVALID, "--schedule %s: stage %d has no %s of micro-batch %d (of %d)", name, part,
                       missing, micro, schedule->n_micro);
    if (n[EL_ACTION_BACKWARD] && (n[EL_ACTION_BACKWARD_INPUTS] || n[EL_ACTION_BACKWARD_WEIGHTS]))
        return el_fail(EL_ERR_INVALID, "--schedule %s: stage %d has a whole backward of micro-batch %d, and a half",
                       name, part, micro);
    return EL_OK;
}

static enum el_status check_counts(const struct el_schedule *schedule, const char *name)
{
    struct counts *counts = calloc(1, sizeof *counts);
    if (!counts) return el_fail_errno("checking a schedule");
    for (int d = 0; d < schedule->n_devices; d++)
        for (int i = 0; i < schedule->n_actions[d]; i++) {
            const struct el_action *action = &schedule->actions[d][i];
            unsigned char *n = &counts->of[action->part][action->micro][action->kind];
            *n = *n < 2 ? *n + 1 : 2;
        }
    enum el_status status = EL_OK;
    for (int k = 0; k < schedule->n_parts && status == EL_OK; k++)
        for (int m = 0; m < schedule->n_micro && status == EL_OK; m++)
            status = check_cell(schedule, name, counts, k, m);
    free(counts);
    return status;
}

enum { ROOM_MAX = 63, FORWARD = 0, INPUTS = 1, WAYS = 2 };

struct link {
    int n_put, n_taken;
};

struct run {
    const struct el_schedule *schedule;
    int room; /* 0: no limit */
    int next[EL_PARTS_MAX];
    bool computed[EL_PARTS_MAX]; /* the next action still has to send its message */
    bool done[EL_PARTS_MAX][EL_MICRO_MAX][WAYS], sent[EL_PARTS_MAX][EL_MICRO_MAX][WAYS];
    int number[EL_PARTS_MAX][EL_MICRO_MAX][WAYS]; /* of the message in its link */
    struct link links[EL_PARTS_MAX][EL_PARTS_MAX];
};

static bool action_goes_back(enum el_action_kind kind);

static int part_before(const struct run *run, struct el_action action)
{
    if (action.kind == EL_ACTION_FORWARD) return action.part - 1;
    return action_goes_back(action.kind) && action.part + 1 < run->schedule->n_parts ? action.part + 1 : -1;
}

/* A part's backward of a micro-batch, whole or for inputs, whichever exists. */
static struct el_action way_back(const struct el_schedule *schedule, int part, int micro)
{
    const struct el_action *action = schedule->actions[schedule->device[part]];
    while (!action_goes_back(action->kind) || action->part != part || action->micro != micro) action++;
    return *action;
}

static bool lacks(const struct run *run, struct el_action action, struct el_action *missing_p)
{
    int way = action_goes_back(action.kind) ? INPUTS : FORWARD, before = part_before(run, action);
    if (action.kind != EL_ACTION_FORWARD && !run->done[action.part][action.micro][FORWARD]) {
        *missing_p = (struct el_action){EL_ACTION_FORWARD, action.part, action.micro};
        return true;
    }
    if (action.kind == EL_ACTION_BACKWARD_WEIGHTS && !run->done[action.part][action.micro][INPUTS]) {
        *missing_p = way_back(run->schedule, action.part, action.micro);
        return true;
    }
    if (before < 0) return false;
    bool here = run->schedule->device[before] == run->schedule->device[action.part];
    if ((here ? run->done : run->sent)[before][action.micro][way]) return false;
    *missing_p = (struct el_action){EL_ACTION_FORWARD, before, action.micro};
    if (way == INPUTS) *missing_p = way_back(run->schedule, before, action.micro);
    return true;
}

static struct link *link_of(struct run *run, int from_part, int to_part)
{
    int from = run->schedule->device[from_part], to = run->schedule->device[to_part];
    return from == to ? NULL : &run->links[from][to];
}

static void take_message(struct run *run, struct el_action action)
{
    int before = part_before(run, action), way = action_goes_back(action.kind);
    struct link *link = before < 0 ? NULL : link_of(run, before, action.part);
    int number = link ? run->number[before][action.micro][way] : 0;
    if (link && link->n_taken <= number) link->n_taken = number + 1;
}

static bool put_message(struct run *run, struct el_action action)
{
    int behind = el_schedule_receiver(run->schedule, action), way = action_goes_back(action.kind);
    struct link *link = behind < 0 ? NULL : link_of(run, action.part, behind);
    if (!link) return true;
    if (run->room > 0 && link->n_put - link->n_taken == run->room) return false;
    run->number[action.part][action.micro][way] = link->n_put++;
    run->sent[action.part][action.micro][way] = true;
    return true;
}

static bool advance(struct run *run, int device)
{
    const struct el_schedule *schedule = run->schedule;
    struct el_action missing;
    bool moved = false;
    for (; run->next[device] < schedule->n_actions[device]; run->next[device]++, moved = true) {
        struct el_action action = schedule->actions[device][run->next[device]];
        if (!run->computed[device]) {
            if (lacks(run, action, &missing)) return moved;
            take_message(run, action);
            if (action.kind != EL_ACTION_BACKWARD_WEIGHTS)
                run->done[action.part][action.micro][action_goes_back(action.kind)] = true;
            run->computed[device] = moved = true;
        }
        if (!put_message(run, action)) return moved;
        run->computed[device] = false;
    }
    return moved;
}

static int find_stuck(struct run *run, int room)
{
    const struct el_schedule *schedule = run->schedule;
    memset(run, 0, sizeof *run); /* too large for the stack */
    run->schedule = schedule;
    run->room = room;
    for (bool moved = true; moved;) {
        moved = false;
        for (int d = 0; d < run->schedule->n_devices; d++) moved = advance(run, d) || moved;
    }
    for (int d = 0; d < run->schedule->n_devices; d++)
        if (run->next[d] < run->schedule->n_actions[d]) return d;
    return -1;
}

static enum el_status find_room(struct el_schedule *schedule, struct run *run, const char *name)
{
    char texts[2][16];
    int device = find_stuck(run, 0);
    if (device >= 0) {
        struct el_action action = schedule->actions[device][run->next[device]], missing;
        lacks(run, action, &missing);
        return el_fail(EL_ERR_INVALID,
                       "--schedule %s: deadlock: device %d would wait for ever before %s for %s, which cannot come "
                       "before it",
                       name, device, el_action_text(action, texts[0]), el_action_text(missing, texts[1]));
    }
    for (schedule->room = 2; schedule->room <= ROOM_MAX; schedule->room++)
        if (find_stuck(run, schedule->room) < 0) return EL_OK;
    return el_fail(EL_ERR_INVALID, "--schedule %s: more than %d messages would have to lie in one mailbox", name,
                   ROOM_MAX);
}

/* Checks a table and sets `room`. `name`: for messages, with PyTorch's names of actions ("3B0": part 3, backward,
 * micro-batch 0). */
static enum el_status el_schedule_check(struct el_schedule *schedule, const char *name)
{
    EL_TRY(check_counts(schedule, name));
    struct run *run = calloc(1, sizeof *run);
    if (!run) return el_fail_errno("checking a schedule");
    run->schedule = schedule;
    enum el_status status = find_room(schedule, run, name);
    free(run);
    return status;
}

/* Schedules from files: torch.distributed.pipelining's compute table (_dump_csv, compute_only), with a row per rank and
 * a cell per action: "2F0" is stage (our part) 2, forward, micro-batch 0; B is backward, I and W its halves for inputs
 * and weights; an empty cell waits; "(0F5;7B1)OVERLAP_F_B" is two actions, here in order. */

enum { TABLE_BYTES_MAX = 16 << 20 }; /* the largest schedule has some thousand cells */

bool el_schedule_is_file(const char *name)
{
    size_t length = strlen(name);
    return length > 4 && strcmp(name + length - 4, ".csv") == 0;
}

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

/* A number below `end` at *text_p, which is moved after it; -1: none. */
static int take_number(const char **text_p, int end)
{
    int number = -1;
    for (; isdigit((unsigned char)**text_p); (*text_p)++) {
        if (number >= end) continue;
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

static enum el_status schedule_add(struct el_schedule *schedule, int device, struct el_action action);

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
    return schedule_add(reader->schedule, reader->row - 1, action);
}

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

static enum el_status schedule_read(const char *path, int n_devices, struct el_schedule *schedule)
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

static const struct el_schedule_kind kinds[] = {
    {"1f1b", "one forward and one backward alternately: fewer activations at a time", .parts = 1, .one = true,
     .lead = 1},
    {"gpipe", "all micro-batches forward, then all backward", .parts = 1, .one = true, .lead = 0},
    {"interleaved", "1f1b with several parts per device: less waiting, more messages", .parts = 2, .lead = 2},
    {"zero-bubble", "1f1b whose gradients of weights come later, when a device would wait", .parts = 1, .lead = 1,
     .halves = true},
    {.name = NULL},
};

const struct el_schedule_kind *el_schedule_list(void)
{
    return kinds;
}

static enum el_status schedule_add(struct el_schedule *schedule, int device, struct el_action action)
{
    int n = schedule->n_actions[device];
    if ((n & (n - 1)) == 0) {
        struct el_action *more = realloc(schedule->actions[device], (n ? 2 * (size_t)n : 1) * sizeof *more);
        if (!more) return el_fail_errno("a schedule of %d actions", n);
        schedule->actions[device] = more;
    }
    schedule->actions[device][schedule->n_actions[device]++] = action;
    return EL_OK;
}

/* Rows by formula, as in torch.distributed.pipelining's _get_1f1b_rank_ops. */

/* Micro-batches go in rounds: a device does a round with one of its parts, then with the next. */
struct rounds {
    int device, n_local;
    int n_in_round, n_all;
};

/* The `step`-th forward, or backward, in which parts come from last to first. */
static struct el_action nth(const struct el_schedule *schedule, const struct rounds *rounds, enum el_action_kind kind,
                            int step)
{
    int local = step / rounds->n_in_round % rounds->n_local;
    int of_round = step / (rounds->n_in_round * rounds->n_local);
    if (kind != EL_ACTION_FORWARD) local = rounds->n_local - 1 - local;
    return (struct el_action){.kind = kind,
                              .part = local * schedule->n_devices + rounds->device,
                              .micro = of_round * rounds->n_in_round + step % rounds->n_in_round};
}

static int count_ahead(const struct el_schedule *schedule, const struct el_schedule_kind *kind,
                       const struct rounds *rounds)
{
    int ahead = (rounds->n_local - 1) * rounds->n_in_round + kind->lead * (schedule->n_devices - 1 - rounds->device);
    return kind->lead == 0 || ahead > rounds->n_all ? rounds->n_all : ahead;
}

/* The first device does weights right after inputs, each later one so many backwards later: while its gradients travel
 * to the first device and back, when it would wait. */
static enum el_status fill_row(struct el_schedule *schedule, const struct el_schedule_kind *kind,
                               const struct rounds *rounds)
{
    int ahead = count_ahead(schedule, kind, rounds), weights = 0;
    enum el_action_kind backward = kind->halves ? EL_ACTION_BACKWARD_INPUTS : EL_ACTION_BACKWARD;
    for (int step = 0; step < rounds->n_all + ahead; step++) {
        int back = step - ahead;
        if (step < rounds->n_all)
            EL_TRY(schedule_add(schedule, rounds->device, nth(schedule, rounds, EL_ACTION_FORWARD, step)));
        if (back >= 0) EL_TRY(schedule_add(schedule, rounds->device, nth(schedule, rounds, backward, back)));
        if (kind->halves && back >= rounds->device)
            EL_TRY(
                schedule_add(schedule, rounds->device, nth(schedule, rounds, EL_ACTION_BACKWARD_WEIGHTS, weights++)));
    }
    while (kind->halves && weights < rounds->n_all)
        EL_TRY(schedule_add(schedule, rounds->device, nth(schedule, rounds, EL_ACTION_BACKWARD_WEIGHTS, weights++)));
    return EL_OK;
}

static enum el_status fill(struct el_schedule *schedule, const struct el_schedule_kind *kind, int n_local)
{
    int n_rounds = schedule->n_micro / schedule->n_devices > 1 ? schedule->n_micro / schedule->n_devices : 1;
    if (schedule->n_devices * n_local > EL_PARTS_MAX)
        return el_fail(EL_ERR_INVALID, "--schedule parts=%d: on %d devices that makes more than %d parts", n_local,
                       schedule->n_devices, EL_PARTS_MAX);
    if (n_local > 1 && schedule->n_micro % n_rounds != 0)
        return el_fail(EL_ERR_INVALID,
                       "--schedule micro=%d: --schedule %s on %d devices makes %d rounds, which must have equally many "
                       "micro-batches: give --schedule micro=%d",
                       schedule->n_micro, kind->name, schedule->n_devices, n_rounds, n_rounds * schedule->n_devices);
    schedule->n_parts = schedule->n_devices * n_local;
    for (int k = 0; k < schedule->n_parts; k++) schedule->device[k] = k % schedule->n_devices;
    for (int d = 0; d < schedule->n_devices; d++) {
        struct rounds rounds = {.device = d,
                                .n_local = n_local,
                                .n_in_round = schedule->n_micro / n_rounds,
                                .n_all = n_local * schedule->n_micro};
        EL_TRY(fill_row(schedule, kind, &rounds));
    }
    return EL_OK;
}

static const struct el_schedule_kind *find(const char *name)
{
    const struct el_schedule_kind *kind = kinds;
    while (*name && kind->name && strcmp(kind->name, name) != 0) kind++;
    return kind->name ? kind : NULL;
}

static enum el_status check_numbers(const struct el_train_config *config)
{
    if (config->n_micro < 0 || config->n_micro > EL_MICRO_MAX)
        return el_fail(EL_ERR_INVALID, "--schedule micro=%lld: must be between 1 and %d", (long long)config->n_micro,
                       EL_MICRO_MAX);
    return EL_OK;
}

static enum el_status open_file(const struct el_train_config *config, int n_devices, struct el_schedule *schedule)
{
    if (config->parts)
        return el_fail(EL_ERR_INVALID, "--schedule parts: --schedule %s says how many there are: leave it out",
                       config->schedule);
    EL_TRY(schedule_read(config->schedule, n_devices, schedule));
    if (config->n_micro && config->n_micro != schedule->n_micro)
        return el_fail(EL_ERR_INVALID,
                       "--schedule micro=%lld: --schedule %s has %d micro-batches: leave --schedule micro out",
                       (long long)config->n_micro, config->schedule, schedule->n_micro);
    return EL_OK;
}

static enum el_status open_kind(const struct el_train_config *config, int n_devices, struct el_schedule *schedule)
{
    const struct el_schedule_kind *kind = find(config->schedule);
    if (!kind)
        return el_fail(EL_ERR_INVALID,
                       "--schedule %s: no such schedule: give 1f1b, gpipe, interleaved, zero-bubble or a FILE.csv",
                       config->schedule);
    if (kind->one && config->parts > 1)
        return el_fail(EL_ERR_INVALID,
                       "--schedule parts=%d: --schedule %s has one part per device: leave it out, or give --schedule "
                       "interleaved",
                       config->parts, kind->name);
    schedule->n_micro = config->n_micro ? (int)config->n_micro : n_devices;
    return fill(schedule, kind, config->parts ? config->parts : kind->parts);
}

enum el_status el_schedule_open(const struct el_train_config *config, int n_devices, struct el_schedule *schedule)
{
    *schedule = (struct el_schedule){0};
    if (n_devices > EL_PARTS_MAX)
        return el_fail(EL_ERR_INVALID, "--devices: %d of them in a row would make more than %d parts: give --mesh dp=N",
                       n_devices, EL_PARTS_MAX);
    schedule->n_devices = n_devices;
    EL_TRY(check_numbers(config));
    EL_TRY((el_schedule_is_file(config->schedule) ? open_file : open_kind)(config, n_devices, schedule));
    return el_schedule_check(schedule, config->schedule);
}

void el_schedule_close(struct el_schedule *schedule)
{
    for (int d = 0; d < schedule->n_devices; d++) free(schedule->actions[d]);
    *schedule = (struct el_schedule){0};
}

static bool action_goes_back(enum el_action_kind kind)
{
    return kind == EL_ACTION_BACKWARD || kind == EL_ACTION_BACKWARD_INPUTS;
}

int el_schedule_receiver(const struct el_schedule *schedule, struct el_action action)
{
    if (action_goes_back(action.kind)) return action.part - 1;
    return action.kind == EL_ACTION_FORWARD && action.part + 1 < schedule->n_parts ? action.part + 1 : -1;
}

int el_schedule_in_flight(const struct el_schedule *schedule, int device)
{
    int now = 0, most = 0;
    for (int i = 0; i < schedule->n_actions[device]; i++) {
        enum el_action_kind kind = schedule->actions[device][i].kind;
        if (kind == EL_ACTION_FORWARD) now++;
        if (kind == EL_ACTION_BACKWARD || kind == EL_ACTION_BACKWARD_WEIGHTS) now--;
        if (now > most) most = now;
    }
    return most;
}
