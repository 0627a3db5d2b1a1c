/* A pickle machine for plain values. */
#include "profiles/pickle.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/grow.h"

enum { STACK_MAX = 1 << 20 }; /* Python fills containers a thousand values at a time */
enum { NOTHING, FALSE_VALUE, TRUE_VALUE, EMPTY_TUPLE, N_CONSTANTS };

/* clang-format off */
enum action { REFUSE, SKIP, STOP, MARK, CONSTANT, SIGNED, UNSIGNED, LONG, REAL, TEXT, EMPTY, TUPLE, FILL, PUT, GET };

/* By opcode: bytes of its argument (TEXT and LONG: of the preceding length), action, and kind, constant, or number of
 * values (0: those above the mark). In pickletools' names: PROTO, FRAME, STOP, MARK; NONE, NEWTRUE, NEWFALSE,
 * EMPTY_TUPLE; BININT, BININT1, BININT2, LONG1, BINFLOAT; BINUNICODE, SHORT_BINUNICODE, BINUNICODE8; EMPTY_LIST,
 * EMPTY_DICT; TUPLE, TUPLE1, TUPLE2, TUPLE3; APPEND, APPENDS, SETITEM, SETITEMS; BINPUT, LONG_BINPUT, MEMOIZE, BINGET,
 * LONG_BINGET. */
static const struct operation {
    uint8_t bytes, action, what, n;
} operations[256] = {
    [0x80] = {1, SKIP}, [0x95] = {8, SKIP}, ['.'] = {0, STOP}, ['('] = {0, MARK},
    ['N'] = {0, CONSTANT, NOTHING}, [0x88] = {0, CONSTANT, TRUE_VALUE}, [0x89] = {0, CONSTANT, FALSE_VALUE},
    [')'] = {0, CONSTANT, EMPTY_TUPLE}, ['J'] = {4, SIGNED}, ['K'] = {1, UNSIGNED}, ['M'] = {2, UNSIGNED},
    [0x8a] = {1, LONG}, ['G'] = {8, REAL}, ['X'] = {4, TEXT}, [0x8c] = {1, TEXT}, [0x8d] = {8, TEXT},
    [']'] = {0, EMPTY, EL_PICKLE_LIST}, ['}'] = {0, EMPTY, EL_PICKLE_DICT},
    ['t'] = {0, TUPLE}, [0x85] = {0, TUPLE, .n = 1}, [0x86] = {0, TUPLE, .n = 2}, [0x87] = {0, TUPLE, .n = 3},
    ['a'] = {0, FILL, EL_PICKLE_LIST, 1}, ['e'] = {0, FILL, EL_PICKLE_LIST},
    ['s'] = {0, FILL, EL_PICKLE_DICT, 2}, ['u'] = {0, FILL, EL_PICKLE_DICT},
    ['q'] = {1, PUT}, ['r'] = {4, PUT}, [0x94] = {0, PUT}, ['h'] = {1, GET}, ['j'] = {4, GET},
};

/* Refused opcodes that would execute something. */
static const char *const executed[256] = {
    ['c'] = "GLOBAL", [0x93] = "STACK_GLOBAL", ['R'] = "REDUCE", ['b'] = "BUILD", ['i'] = "INST", ['o'] = "OBJ",
    [0x81] = "NEWOBJ", [0x92] = "NEWOBJ_EX", ['P'] = "PERSID", ['Q'] = "BINPERSID", [0x82] = "EXT1", [0x83] = "EXT2",
    [0x84] = "EXT4",
};
/* clang-format on */

struct machine {
    struct el_pickle *pickle;
    const uint8_t *data;
    size_t size, at, opcode_at;
    const char *name;
    uint32_t *stack, *memo;
    size_t n_stack, stack_room, n_memo, memo_room;
    size_t marks[EL_PICKLE_MARKS_MAX]; /* stack height below each */
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

static size_t above(const struct machine *m)
{
    return m->n_stack - (m->n_marks ? m->marks[m->n_marks - 1] : 0);
}

static enum el_status push(struct machine *m, uint32_t value)
{
    if (m->n_stack == STACK_MAX) return fail_at(m, "too many values are in no container");
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

static enum el_status fill(struct machine *m, uint32_t container, uint8_t kind, size_t n)
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

static uint64_t take(struct machine *m, size_t bytes)
{
    uint64_t number = 0;
    for (size_t i = 0; i < bytes; i++) number |= (uint64_t)m->data[m->at + i] << 8 * i;
    m->at += bytes;
    return number;
}

/* Two's complement of `n` bytes; a ninth is the sign of 64 unsigned bits. */
static enum el_status push_long(struct machine *m, uint64_t n)
{
    if (n > 9 || (n == 9 && m->data[m->at + 8] != 0)) return fail_at(m, "an integer has more than 64 bits");
    size_t low = n > 8 ? 8 : (size_t)n;
    uint64_t bits = take(m, low);
    m->at += (size_t)n - low;
    if (low > 0 && low < 8 && bits >> (8 * low - 1)) bits |= UINT64_MAX << 8 * low;
    return push_new(m, (struct el_pickle_value){.kind = EL_PICKLE_INT, .whole = (int64_t)bits});
}

static enum el_status do_value(struct machine *m, const struct operation *o, uint64_t argument)
{
    struct el_pickle_value value = {.kind = EL_PICKLE_INT, .whole = (int64_t)argument};
    if (o->action == CONSTANT) return push(m, o->what);
    if (o->action == EMPTY) return push_new(m, (struct el_pickle_value){.kind = o->what});
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

/* BINPUT and MEMOIZE count up, so the memo is never larger than the file. */
static enum el_status do_memo(struct machine *m, const struct operation *o, uint64_t argument)
{
    uint64_t place = o->bytes ? argument : m->n_memo;
    if (o->action == GET) return place < m->n_memo ? push(m, m->memo[place]) : fail_at(m, "it is not in the memo");
    if (above(m) == 0) return fail_at(m, "the stack is empty");
    if (place > m->n_memo) return fail_at(m, "the memo is filled out of its order");
    if (!EL_GROW(m->memo, m->memo_room, (size_t)place + 1)) return fail_memory(m);
    m->memo[place] = m->stack[m->n_stack - 1];
    m->n_memo += place == m->n_memo;
    return EL_OK;
}

static enum el_status do_fill(struct machine *m, const struct operation *o)
{
    size_t n = o->n ? o->n : above(m), below = o->action == FILL;
    if (!o->n && m->n_marks == 0) return fail_at(m, "there is no mark");
    if (!o->n) m->n_marks--;
    if (above(m) < n + below) return fail_at(m, "the stack is empty");
    if (below) return fill(m, m->stack[m->n_stack - n - 1], o->what, n);
    EL_TRY(push_new(m, (struct el_pickle_value){.kind = EL_PICKLE_LIST}));
    uint32_t tuple = m->stack[--m->n_stack];
    EL_TRY(fill(m, tuple, EL_PICKLE_LIST, n));
    return push(m, tuple);
}

static enum el_status do_operation(struct machine *m, uint8_t code, uint64_t argument)
{
    const struct operation *o = &operations[code];
    switch (o->action) {
    case REFUSE:
        if (executed[code])
            return el_fail(EL_ERR_INVALID,
                           "%s: byte %zu: opcode %s: it would make Python import or call something, which a snapshot "
                           "never does: nothing of it was executed",
                           m->name, m->opcode_at, executed[code]);
        return el_fail(EL_ERR_INVALID, "%s: byte %zu: opcode 0x%02x is none that plain values take in a pickle",
                       m->name, m->opcode_at, code);
    case SKIP:
        return o->bytes == 1 && argument > 5 ? fail_at(m, "a pickle of a later protocol than 5") : EL_OK;
    case MARK:
        if (m->n_marks == EL_PICKLE_MARKS_MAX) return fail_at(m, "it is nested too deep");
        m->marks[m->n_marks++] = m->n_stack;
        return EL_OK;
    case TUPLE:
    case FILL:
        return do_fill(m, o);
    case PUT:
    case GET:
        return do_memo(m, o, argument);
    default:
        return do_value(m, o, argument);
    }
}

static enum el_status run(struct machine *m)
{
    while (m->at < m->size) {
        m->opcode_at = m->at;
        uint8_t code = m->data[m->at++];
        if (operations[code].bytes > m->size - m->at) break;
        if (operations[code].action == STOP) {
            if (m->n_stack != 1 || m->n_marks) return fail_at(m, "it stops with other than one value");
            m->pickle->root = m->stack[0];
            return EL_OK;
        }
        EL_TRY(do_operation(m, code, take(m, operations[code].bytes)));
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
