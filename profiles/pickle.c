/* The pickle machine for plain values alone: a stack of numbers of values, marks in it, and a memo. */
#include "profiles/pickle.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/grow.h"

enum { NOTHING, FALSE_VALUE, TRUE_VALUE, EMPTY_TUPLE, N_CONSTANTS };

enum action {
    REFUSE,
    SKIP,
    STOP,
    MARK,
    POP,
    POP_MARK,
    DUP,
    CONSTANT,
    SIGNED,
    UNSIGNED,
    LONG,
    REAL,
    TEXT,
    EMPTY,
    COLLECT,
    TUPLE,
    APPEND,
    APPENDS,
    PUT,
    MEMOIZE,
    GET
};

/* By its code: Python's name, bytes of its argument (of TEXT and LONG: of the length before it), what is done, and with
 * which kind, constant or number of values. Those with a name and no action are known for what they would do. */
static const struct operation {
    const char *name;
    uint8_t bytes;
    enum action action;
    int what;
} operations[256] = {
    [0x80] = {"PROTO", 1, SKIP, 0},
    [0x95] = {"FRAME", 8, SKIP, 0},
    ['.'] = {"STOP", 0, STOP, 0},
    ['('] = {"MARK", 0, MARK, 0},
    ['0'] = {"POP", 0, POP, 0},
    ['1'] = {"POP_MARK", 0, POP_MARK, 0},
    ['2'] = {"DUP", 0, DUP, 0},
    ['N'] = {"NONE", 0, CONSTANT, NOTHING},
    [0x88] = {"NEWTRUE", 0, CONSTANT, TRUE_VALUE},
    [0x89] = {"NEWFALSE", 0, CONSTANT, FALSE_VALUE},
    [')'] = {"EMPTY_TUPLE", 0, CONSTANT, EMPTY_TUPLE},
    ['J'] = {"BININT", 4, SIGNED, 0},
    ['K'] = {"BININT1", 1, UNSIGNED, 0},
    ['M'] = {"BININT2", 2, UNSIGNED, 0},
    [0x8a] = {"LONG1", 1, LONG, 0},
    [0x8b] = {"LONG4", 4, LONG, 0},
    ['G'] = {"BINFLOAT", 8, REAL, 0},
    ['X'] = {"BINUNICODE", 4, TEXT, 0},
    [0x8c] = {"SHORT_BINUNICODE", 1, TEXT, 0},
    [0x8d] = {"BINUNICODE8", 8, TEXT, 0},
    [']'] = {"EMPTY_LIST", 0, EMPTY, EL_PICKLE_LIST},
    ['}'] = {"EMPTY_DICT", 0, EMPTY, EL_PICKLE_DICT},
    ['l'] = {"LIST", 0, COLLECT, EL_PICKLE_LIST},
    ['d'] = {"DICT", 0, COLLECT, EL_PICKLE_DICT},
    ['t'] = {"TUPLE", 0, COLLECT, EL_PICKLE_LIST},
    [0x85] = {"TUPLE1", 0, TUPLE, 1},
    [0x86] = {"TUPLE2", 0, TUPLE, 2},
    [0x87] = {"TUPLE3", 0, TUPLE, 3},
    ['a'] = {"APPEND", 0, APPEND, EL_PICKLE_LIST},
    ['s'] = {"SETITEM", 0, APPEND, EL_PICKLE_DICT},
    ['e'] = {"APPENDS", 0, APPENDS, EL_PICKLE_LIST},
    ['u'] = {"SETITEMS", 0, APPENDS, EL_PICKLE_DICT},
    ['q'] = {"BINPUT", 1, PUT, 0},
    ['r'] = {"LONG_BINPUT", 4, PUT, 0},
    [0x94] = {"MEMOIZE", 0, MEMOIZE, 0},
    ['h'] = {"BINGET", 1, GET, 0},
    ['j'] = {"LONG_BINGET", 4, GET, 0},
    ['c'] = {.name = "GLOBAL"},
    [0x93] = {.name = "STACK_GLOBAL"},
    ['R'] = {.name = "REDUCE"},
    ['b'] = {.name = "BUILD"},
    ['i'] = {.name = "INST"},
    ['o'] = {.name = "OBJ"},
    [0x81] = {.name = "NEWOBJ"},
    [0x92] = {.name = "NEWOBJ_EX"},
    ['P'] = {.name = "PERSID"},
    ['Q'] = {.name = "BINPERSID"},
    [0x82] = {.name = "EXT1"},
    [0x83] = {.name = "EXT2"},
    [0x84] = {.name = "EXT4"},
};

struct machine {
    struct el_pickle *pickle;
    const uint8_t *data;
    size_t size, at, opcode_at;
    const char *name;
    uint32_t *stack, *memo;
    size_t n_stack, stack_room, n_memo, memo_room;
    size_t marks[EL_PICKLE_MARKS_MAX]; /* how much of the stack lay below each */
    size_t n_marks;
};

static enum el_status fail_at(const struct machine *m, const char *why)
{
    return el_fail(EL_ERR_INVALID, "%s: byte %zu: %s", m->name, m->opcode_at, why);
}

static enum el_status fail_memory(const struct machine *m)
{
    return el_fail(EL_ERR_HOST_MEMORY, "%s: no memory for its values", m->name);
}

/* What the stack has above the last mark. */
static size_t above(const struct machine *m)
{
    return m->n_stack - (m->n_marks ? m->marks[m->n_marks - 1] : 0);
}

static enum el_status push(struct machine *m, uint32_t value)
{
    if (!EL_GROW(m->stack, m->stack_room, m->n_stack + 1)) return fail_memory(m);
    m->stack[m->n_stack++] = value;
    return EL_OK;
}

static enum el_status push_new(struct machine *m, struct el_pickle_value value)
{
    struct el_pickle *p = m->pickle;
    if (!EL_GROW(p->values, p->values_room, p->n_values + 1)) return fail_memory(m);
    p->values[p->n_values] = value;
    return push(m, (uint32_t)p->n_values++);
}

/* Moves the topmost `n` values behind those of the container. */
static enum el_status fill(struct machine *m, uint32_t container, enum el_pickle_kind kind, size_t n)
{
    struct el_pickle *p = m->pickle;
    struct el_pickle_value *into = &p->values[container];
    if (into->kind != kind || container < N_CONSTANTS)
        return fail_at(m, "values are put into what is no such container");
    if (kind == EL_PICKLE_DICT && n % 2) return fail_at(m, "a key has no value");
    if (n == 0) return EL_OK;
    if (!EL_GROW(p->cells, p->cells_room, p->n_cells + n + 2)) return fail_memory(m);
    uint32_t chunk = (uint32_t)p->n_cells;
    p->cells[chunk] = 0;
    p->cells[chunk + 1] = (uint32_t)n;
    memcpy(p->cells + chunk + 2, m->stack + m->n_stack - n, n * sizeof *p->cells);
    p->n_cells += n + 2;
    if (into->last) p->cells[into->last] = chunk;
    if (!into->first) into->first = chunk;
    into->last = chunk;
    m->n_stack -= n;
    return EL_OK;
}

/* A new container of the topmost `n` values, in their place. */
static enum el_status collect(struct machine *m, enum el_pickle_kind kind, size_t n)
{
    EL_TRY(push_new(m, (struct el_pickle_value){.kind = (uint8_t)kind}));
    uint32_t container = m->stack[--m->n_stack];
    EL_TRY(fill(m, container, kind, n));
    return push(m, container);
}

/* `bytes` little-endian ones at the place of reading. */
static uint64_t take(struct machine *m, size_t bytes)
{
    uint64_t number = 0;
    for (size_t i = 0; i < bytes; i++) number |= (uint64_t)m->data[m->at + i] << 8 * i;
    m->at += bytes;
    return number;
}

/* Two's complement of `n` bytes; a ninth is the sign of what needs all 64 bits. */
static enum el_status push_long(struct machine *m, uint64_t n)
{
    if (n > 9 || (n == 9 && m->data[m->at + 8] != 0)) return fail_at(m, "an integer has more than 64 bits");
    size_t low = n > 8 ? 8 : (size_t)n;
    uint64_t bits = take(m, low);
    m->at += (size_t)n - low;
    if (low > 0 && low < 8 && bits >> (8 * low - 1)) bits |= UINT64_MAX << 8 * low;
    return push_new(m, (struct el_pickle_value){.kind = EL_PICKLE_INT, .whole = (int64_t)bits});
}

/* A number, or what has its length before it. */
static enum el_status do_value(struct machine *m, const struct operation *o, uint64_t argument)
{
    struct el_pickle_value value = {.kind = EL_PICKLE_INT, .whole = (int64_t)argument};
    if (o->action == CONSTANT) return push(m, (uint32_t)o->what);
    if (o->action == EMPTY) return push_new(m, (struct el_pickle_value){.kind = (uint8_t)o->what});
    if (o->action == SIGNED) value.whole = (int32_t)(uint32_t)argument;
    if (o->action == REAL) {
        argument = __builtin_bswap64(argument);
        value.kind = EL_PICKLE_REAL;
        memcpy(&value.real, &argument, sizeof value.real);
    }
    if (o->action != TEXT && o->action != LONG) return push_new(m, value);
    if (argument > m->size - m->at || argument > UINT32_MAX) return fail_at(m, "it ends within a value");
    if (o->action == LONG) return push_long(m, argument);
    value = (struct el_pickle_value){
        .kind = EL_PICKLE_TEXT, .n = (uint32_t)argument, .text = (const char *)m->data + m->at};
    m->at += (size_t)argument;
    return push_new(m, value);
}

static enum el_status do_memo(struct machine *m, const struct operation *o, uint64_t argument)
{
    uint64_t place = o->action == MEMOIZE ? m->n_memo : argument;
    if (o->action == GET) return place < m->n_memo ? push(m, m->memo[place]) : fail_at(m, "it is not in the memo");
    if (above(m) == 0) return fail_at(m, "the stack is empty");
    if (place > m->n_memo) return fail_at(m, "the memo is filled out of its order");
    if (!EL_GROW(m->memo, m->memo_room, (size_t)place + 1)) return fail_memory(m);
    m->memo[place] = m->stack[m->n_stack - 1];
    if (place == m->n_memo) m->n_memo++;
    return EL_OK;
}

/* What takes values off the stack. */
static enum el_status do_stack(struct machine *m, const struct operation *o)
{
    size_t n = o->action == TUPLE    ? (size_t)o->what
               : o->action == APPEND ? (o->what == EL_PICKLE_DICT ? 2 : 1)
                                     : above(m);
    bool to_mark = o->action == POP_MARK || o->action == COLLECT || o->action == APPENDS;
    bool into = o->action == APPEND || o->action == APPENDS;
    if (to_mark && m->n_marks == 0) return fail_at(m, "there is no mark");
    if (to_mark) m->n_marks--;
    if (!to_mark && above(m) < n + into) return fail_at(m, "the stack is empty");
    if (into && to_mark && above(m) < n + 1) return fail_at(m, "the stack is empty");
    if (o->action == POP_MARK) m->n_stack -= n;
    if (into) return fill(m, m->stack[m->n_stack - n - 1], (enum el_pickle_kind)o->what, n);
    return o->action == POP_MARK ? EL_OK
                                 : collect(m, o->action == TUPLE ? EL_PICKLE_LIST : (enum el_pickle_kind)o->what, n);
}

static enum el_status refuse(const struct machine *m, const struct operation *o, uint8_t code)
{
    if (o->name)
        return el_fail(EL_ERR_INVALID,
                       "%s: byte %zu: opcode %s: it would make Python import or call something, which a snapshot never "
                       "does: nothing of it was executed",
                       m->name, m->opcode_at, o->name);
    return el_fail(EL_ERR_INVALID, "%s: byte %zu: opcode 0x%02x is none that plain values take in a pickle", m->name,
                   m->opcode_at, code);
}

static enum el_status do_operation(struct machine *m, const struct operation *o, uint64_t argument)
{
    switch (o->action) {
    case SKIP:
        return o->bytes == 1 && argument > 5 ? fail_at(m, "a pickle of a later protocol than 5") : EL_OK;
    case MARK:
        if (m->n_marks == EL_PICKLE_MARKS_MAX) return fail_at(m, "it is nested too deep");
        m->marks[m->n_marks++] = m->n_stack;
        return EL_OK;
    case POP:
    case DUP:
        if (above(m) == 0) return fail_at(m, "the stack is empty");
        if (o->action == DUP) return push(m, m->stack[m->n_stack - 1]);
        m->n_stack--;
        return EL_OK;
    case POP_MARK:
    case COLLECT:
    case TUPLE:
    case APPEND:
    case APPENDS:
        return do_stack(m, o);
    case PUT:
    case MEMOIZE:
    case GET:
        return do_memo(m, o, argument);
    default:
        return do_value(m, o, argument);
    }
}

static enum el_status run(struct machine *m)
{
    struct el_pickle *p = m->pickle;
    while (m->at < m->size) {
        m->opcode_at = m->at;
        uint8_t code = m->data[m->at++];
        const struct operation *o = &operations[code];
        if (o->action == REFUSE) return refuse(m, o, code);
        if (o->bytes > m->size - m->at) break;
        if (o->action == STOP) {
            if (m->n_stack != 1 || m->n_marks) return fail_at(m, "it stops with other than one value");
            p->root = m->stack[0];
            return EL_OK;
        }
        EL_TRY(do_operation(m, o, take(m, o->bytes)));
    }
    return el_fail(EL_ERR_INVALID, "%s: byte %zu: it ends within a value", m->name, m->at);
}

enum el_status el_pickle_read(const uint8_t *data, size_t size, const char *name, struct el_pickle *pickle_p)
{
    static const struct el_pickle_value constants[N_CONSTANTS] = {
        [NOTHING] = {.kind = EL_PICKLE_NONE},
        [FALSE_VALUE] = {.kind = EL_PICKLE_INT, .whole = 0},
        [TRUE_VALUE] = {.kind = EL_PICKLE_INT, .whole = 1},
        [EMPTY_TUPLE] = {.kind = EL_PICKLE_LIST},
    };
    struct el_pickle pickle = {.n_cells = 1, .steps_left = EL_PICKLE_STEPS * (uint64_t)size + 1000};
    struct machine m = {.pickle = &pickle, .data = data, .size = size, .name = name};
    if (size < 2 || data[0] != 0x80) return el_fail(EL_ERR_INVALID, "%s: no pickle of protocols 2 to 5", name);
    enum el_status status = EL_OK;
    if (size > UINT32_MAX / 4 || !EL_GROW(pickle.values, pickle.values_room, N_CONSTANTS) ||
        !EL_GROW(pickle.cells, pickle.cells_room, 1))
        status = fail_memory(&m);
    if (status == EL_OK) memcpy(pickle.values, constants, sizeof constants);
    pickle.n_values = N_CONSTANTS;
    if (status == EL_OK) status = run(&m);
    free(m.stack);
    free(m.memo);
    if (status != EL_OK)
        el_pickle_free(&pickle);
    else
        *pickle_p = pickle;
    return status;
}

void el_pickle_free(struct el_pickle *pickle)
{
    free(pickle->values);
    free(pickle->cells);
    *pickle = (struct el_pickle){.values = NULL};
}

struct el_pickle_walk el_pickle_walk(const struct el_pickle *pickle, uint32_t value)
{
    const struct el_pickle_value *of = &pickle->values[value];
    bool has = of->kind == EL_PICKLE_LIST || of->kind == EL_PICKLE_DICT;
    return (struct el_pickle_walk){.chunk = has ? of->first : 0};
}

bool el_pickle_next(struct el_pickle *pickle, struct el_pickle_walk *walk, uint32_t *value_p)
{
    if (walk->chunk && walk->i == pickle->cells[walk->chunk + 1])
        *walk = (struct el_pickle_walk){.chunk = pickle->cells[walk->chunk]};
    if (!walk->chunk) return false;
    pickle->exhausted = pickle->exhausted || pickle->steps_left == 0;
    if (pickle->exhausted) return false;
    pickle->steps_left--;
    *value_p = pickle->cells[walk->chunk + 2 + walk->i++];
    return true;
}

static bool is_text(const struct el_pickle_value *value, const char *text, size_t n)
{
    return value->kind == EL_PICKLE_TEXT && value->n == n && !memcmp(value->text, text, n);
}

uint32_t el_pickle_at(struct el_pickle *pickle, uint32_t dict, const char *key)
{
    struct el_pickle_walk walk = el_pickle_walk(pickle, dict);
    uint32_t name, value, found = NOTHING;
    size_t n = strlen(key);
    if (pickle->values[dict].kind != EL_PICKLE_DICT) return NOTHING;
    while (!found && el_pickle_next(pickle, &walk, &name) && el_pickle_next(pickle, &walk, &value))
        if (is_text(&pickle->values[name], key, n)) found = value;
    return found;
}

int64_t el_pickle_whole(struct el_pickle *pickle, uint32_t dict, const char *key, int64_t otherwise)
{
    const struct el_pickle_value *value = &pickle->values[el_pickle_at(pickle, dict, key)];
    return value->kind == EL_PICKLE_INT ? value->whole : otherwise;
}

void el_pickle_text(struct el_pickle *pickle, uint32_t dict, const char *key, char *text, size_t bytes)
{
    const struct el_pickle_value *value = &pickle->values[el_pickle_at(pickle, dict, key)];
    int n = value->kind != EL_PICKLE_TEXT ? 0 : value->n < bytes ? (int)value->n : (int)bytes - 1;
    snprintf(text, bytes, "%.*s", n, n ? value->text : "");
}
