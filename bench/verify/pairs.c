/* Every two values of every two options that change arithmetic meet in some legal cell. Greedy covering array: each
 * open pair begins a cell, and its free options take the values that meet the most open pairs. Deterministic. */
#include <stdlib.h>
#include <string.h>

#include "bench/base/text.h"
#include "bench/options/options.h"
#include "bench/verify/verify.h"

enum { FACTORS = 48, VALUES = 160, VALUES_OF_ONE = 12, VALUE_BYTES = 64, QUICK_CELLS = 16, NONE = -1 };
enum { MODE, MODEL, DEVICES, TYPE, FIXED };

struct factor {
    const char *name;
    int n, first; /* values, and the first one's number among all */
    char values[VALUES_OF_ONE][VALUE_BYTES];
    bool of_modes;
};

struct el_verify_pairs {
    const struct el_options *options;
    const char *backend;
    int n, n_values;
    struct factor factors[FACTORS];
    enum { OPEN, MET, REFUSED } pairs[VALUES][VALUES];
};

/* Options without a choice of words, and those of no mode. "": without the option. */
static const struct {
    const char *name, *values;
} given[] = {{"optimizer", "--optimizer sgd|--optimizer momentum|--optimizer adam --lr 0.002|"
                           "--optimizer adamw --lr 0.002"},
             {"mesh", "|--mesh dp=2|--mesh pp=2|--mesh tp=2"},
             {"schedule", "--schedule 1f1b|--schedule gpipe|--schedule interleaved|--schedule zero-bubble"},
             {"accumulate", "--accumulate 1|--accumulate 3"},
             {"micro", "|--schedule micro=6"},
             {"shares", "|--shares 3,1|--shares 3,1,2"},
             {"dp-fix", "|--dp-fix all"},
             {"output-device", "|--loss-in device=1"},
             {"bucket-mb", "|--bucket-mb 25"},
             {"clip", "|--clip 0.05"},
             {"max-norm", "|--model max-norm=0.1"},
             {"loss", "|--loss mse"},
             {"zero-grad", "--zero-grad free|--zero-grad keep"},
             {"foreach", "--optimizer foreach=off|--optimizer foreach=on"},
             {"dropout", "--model dropout=0|--model dropout=0.3"},
             {"recompute", "--recompute off|--recompute on"},
             {"length-by", "--lengths pad=model|--lengths pad=batch"}};

static struct factor *add_factor(struct el_verify_pairs *p, const char *name)
{
    struct factor *f = &p->factors[p->n++];
    *f = (struct factor){.name = name, .first = p->n_values, .of_modes = false};
    for (const struct el_mode_option *const *row = el_mode_options(); *row; row++)
        f->of_modes |= !strcmp((*row)->name, name);
    return f;
}

static void add_value(struct el_verify_pairs *p, struct factor *f, const char *before, const char *text, size_t length)
{
    if (f->n == VALUES_OF_ONE || p->n_values == VALUES) return;
    snprintf(f->values[f->n++], VALUE_BYTES, "%s%.*s", before, (int)length, text);
    p->n_values++;
}

/* "a|b|c", each after `before`. */
static void add_words(struct el_verify_pairs *p, const char *name, const char *before, const char *words)
{
    struct factor *f = add_factor(p, name);
    for (;; words++) {
        const size_t length = strcspn(words, "|");
        add_value(p, f, before, words, length);
        words += length;
        if (!*words) return;
    }
}

static void add_factors(struct el_verify_pairs *p)
{
    struct factor *f = add_factor(p, "mode");
    for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++)
        if (el_verify_asks_for(p->options, mode->name)) add_value(p, f, "", mode->name, strlen(mode->name));
    add_words(p, "model", "", "gpt|textcnn|mlp|resnet18");
    add_words(p, "devices", "", "4|2|3");
    add_words(p, "precision", "", "|--precision f32|--precision bf16|--precision bf16-mixed|--precision bf16-pure");
    for (const struct el_mode_option *const *row = el_mode_options(); *row; row++) {
        char before[VALUE_BYTES];
        const struct el_option_within *within = el_option_within((*row)->name);
        snprintf(before, sizeof before, within ? "--%s %s=" : "--%s ", within ? within->in : (*row)->name,
                 within ? within->key : "");
        if (((*row)->kind == EL_MODE_SWITCH || (*row)->kind == EL_MODE_CHOICE) && strcmp((*row)->name, "graph"))
            add_words(p, (*row)->name, before, (*row)->choices);
    }
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) add_words(p, given[i].name, "", given[i].values);
}

static bool applies(const struct el_verify_pairs *p, const int *row, int f)
{
    const char *mode = row[MODE] == NONE ? NULL : p->factors[MODE].values[row[MODE]];
    return !p->factors[f].of_modes || !mode || el_mode_option_of(mode, p->factors[f].name);
}

static void make_cell(const struct el_verify_pairs *p, const int *row, struct el_verify_cell *cell)
{
    const struct factor *fs = p->factors;
    *cell = (struct el_verify_cell){.kind = row[TYPE] > 0 ? EL_VERIFY_F32 : EL_VERIFY_F64,
                                    .mode = el_mode_find(fs[MODE].values[row[MODE]]),
                                    .model = el_model_find(fs[MODEL].values[row[MODEL]]),
                                    .n_devices = atoi(fs[DEVICES].values[row[DEVICES]])};
    for (int f = TYPE; f < p->n; f++)
        if (row[f] != NONE && *fs[f].values[row[f]])
            el_text_append(cell->variant, sizeof cell->variant, "%s%s", *cell->variant ? " " : "",
                           fs[f].values[row[f]]);
}

/* Models that amplify rounding compare gradients only in f64. */
static bool is_legal(const struct el_verify_pairs *p, const int *row)
{
    struct el_verify_cell cell;
    struct el_trial_set set;
    make_cell(p, row, &cell);
    if (el_mode_devices(cell.mode->name, cell.n_devices) < cell.n_devices && row[DEVICES] > 0) return false;
    if (cell.model->check.f64_gradients && row[TYPE] > 0) return false;
    if (el_verify_resolve(p->options, p->backend, &cell, 1, &set) != EL_OK) return false;
    el_trials_free(&set);
    return true;
}

static int status_of(const struct el_verify_pairs *p, int f, int v, int g, int w)
{
    return p->pairs[p->factors[f].first + v][p->factors[g].first + w];
}

static void mark(struct el_verify_pairs *p, const int *row, int status)
{
    for (int f = 0; f < p->n; f++)
        for (int g = 0; g < p->n; g++)
            if (f != g && row[f] != NONE && row[g] != NONE)
                p->pairs[p->factors[f].first + row[f]][p->factors[g].first + row[g]] = status;
}

static int gain(const struct el_verify_pairs *p, const int *row, int f, int v)
{
    int n = 0;
    for (int g = 0; g < p->n; g++) n += g != f && row[g] != NONE && status_of(p, f, v, g, row[g]) == OPEN;
    return n;
}

static void take_best(const struct el_verify_pairs *p, int *row, int f, int turn)
{
    bool tried[VALUES_OF_ONE] = {false};
    if (row[f] != NONE || !applies(p, row, f)) return;
    for (int t = 0; t < p->factors[f].n; t++) {
        int best = NONE;
        for (int i = 0; i < p->factors[f].n; i++) {
            const int v = (i + turn) % p->factors[f].n;
            if (!tried[v] && (best == NONE || gain(p, row, f, v) > gain(p, row, f, best))) best = v;
        }
        tried[best] = true;
        row[f] = best;
        if (is_legal(p, row)) return;
    }
    row[f] = NONE;
}

/* Completes mode, model, devices and type of a row so that it is legal; tries all combinations. */
static bool find_base(const struct el_verify_pairs *p, int *row, int turn)
{
    int fixed[FIXED], n = 1;
    for (int f = 0; f < FIXED; f++) {
        fixed[f] = row[f];
        n *= row[f] == NONE ? f == TYPE ? 2 : p->factors[f].n : 1;
    }
    for (int i = 0; i < n; i++) {
        int rest = i;
        bool can = true;
        for (int f = FIXED - 1; f >= 0; f--) {
            const int of = f == TYPE ? 2 : p->factors[f].n;
            row[f] = fixed[f] == NONE ? (rest + (f == MODE ? turn : 0)) % of : fixed[f];
            if (fixed[f] == NONE) rest /= of;
        }
        for (int f = FIXED; f < p->n; f++) can &= row[f] == NONE || applies(p, row, f);
        if (can && is_legal(p, row)) return true;
    }
    return false;
}

static bool build(struct el_verify_pairs *p, int f, int v, int g, int w, int turn, int *row)
{
    int pair[FACTORS];
    for (int i = 0; i < p->n; i++) row[i] = NONE;
    row[f] = v, row[g] = w;
    memcpy(pair, row, sizeof pair);
    bool found = find_base(p, row, turn);
    for (int i = FIXED; i < p->n && !found; i++) { /* some need several micro-steps */
        if (strcmp(p->factors[i].name, "accumulate") || pair[i] != NONE) continue;
        memcpy(row, pair, sizeof pair);
        row[i] = p->factors[i].n - 1;
        found = find_base(p, row, turn);
    }
    if (!found) {
        mark(p, pair, REFUSED);
        return false;
    }
    for (int i = 0; i < p->n; i++) take_best(p, row, (i + turn) % p->n, turn);
    mark(p, row, MET);
    return true;
}

struct el_verify_pairs *el_verify_pairs_open(const struct el_options *options, const char *backend)
{
    struct el_verify_pairs *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->options = options;
    p->backend = backend;
    add_factors(p);
    return p;
}

/* Precision first: its pairs are least like users' runs. */
enum el_status el_verify_pairs_each(struct el_verify_pairs *p, el_verify_visit *visit, void *context)
{
    int row[FACTORS], n = 0;
    for (int i = 0; i < p->n; i++)
        for (int f = i == 0 ? TYPE : i <= TYPE ? i - 1 : i, v = p->factors[f].n - 1; v >= 0; v--)
            for (int g = p->n - 1; g >= 0; g--)
                for (int w = p->factors[g].n - 1; g != f && w >= 0; w--) {
                    struct el_verify_cell cell;
                    if (status_of(p, f, v, g, w) != OPEN || !build(p, f, v, g, w, n, row)) continue;
                    make_cell(p, row, &cell);
                    EL_TRY(visit(context, &cell));
                    if (++n == QUICK_CELLS && p->options->quick) return EL_OK;
                }
    return EL_OK;
}

json_t *el_verify_pairs_close(struct el_verify_pairs *p)
{
    int counts[REFUSED + 1] = {0}, n = 0;
    for (int f = 0; p && f < p->n; f++)
        for (int g = 0; g < f; g++)
            for (int v = 0; v < p->factors[f].n; v++)
                for (int w = 0; w < p->factors[g].n; w++, n++) counts[status_of(p, f, v, g, w)]++;
    json_t *figures =
        p ? json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i}", "status", "pairs", "options", p->n, "values", p->n_values,
                      "pairs", n, "met", counts[MET], "refused", counts[REFUSED], "open", counts[OPEN])
          : NULL;
    free(p);
    return figures;
}
