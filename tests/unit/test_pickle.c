/* Pickles that were made by hand, with values known beforehand; all that would execute something is refused by name. */
#include "tests/test.h"

#include "profiles/pickle.h"
#include "profiles/snapshot.h"

#define READ(bytes, pickle) el_pickle_read((const uint8_t *)(bytes), sizeof(bytes) - 1, "p", pickle)

static void refuses(const char *bytes, size_t size, const char *words)
{
    struct el_pickle pickle;
    enum el_status status = el_pickle_read((const uint8_t *)bytes, size, "p", &pickle);
    if (status == EL_OK) fail_msg("read, not refused: %s", words);
    if (!strstr(el_error_message(), words)) fail_msg("'%s' has no '%s'", el_error_message(), words);
    assert_null(strchr(el_error_message(), '\n'));
}
#define REFUSES(bytes, words) refuses(bytes, sizeof(bytes) - 1, words)

/* {"a": [1, -2, 300, 70000, 2 ** 40, -1, True, None, 0.5], "b": ("x", "x", ())}, by all ways to say so. */
static void values_are_read(void **state)
{
    static const char bytes[] =
        "\x80\x02}q\x00(X\x01\x00\x00\x00"
        "a]q\x01(K\x01J\xfe\xff\xff\xffM\x2c\x01J\x70\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01"
        "\x8a\x01\xff\x88NG\x3f\xe0\x00\x00\x00\x00\x00\x00"
        "e\x8c\x01"
        "b\x8c\x01x\x94h\x02)\x87r\x03\x00\x00\x00u.";
    static const int64_t known[] = {1, -2, 300, 70000, (int64_t)1 << 40, -1, 1};
    struct el_pickle p;
    uint32_t value = 0, i = 0;
    char text[8];
    if (READ(bytes, &p) != EL_OK) fail_msg("%s", el_error_message());
    struct el_pickle_walk walk = el_pickle_walk(&p, el_pickle_at(&p, p.root, "a"));
    for (; i < 7 && el_pickle_next(&p, &walk, &value); i++) assert_int_equal(p.values[value].whole, known[i]);
    assert_int_equal(i, 7);
    assert_true(el_pickle_next(&p, &walk, &value) && p.values[value].kind == EL_PICKLE_NONE);
    assert_true(el_pickle_next(&p, &walk, &value) && p.values[value].real == 0.5);
    assert_false(el_pickle_next(&p, &walk, &value));
    walk = el_pickle_walk(&p, el_pickle_at(&p, p.root, "b"));
    assert_true(el_pickle_next(&p, &walk, &value));
    assert_true(el_pickle_next(&p, &walk, &i));
    assert_int_equal(i, value); /* out of the memo */
    assert_int_equal(el_pickle_whole(&p, p.root, "b", 9), 9);
    el_pickle_text(&p, p.root, "b", text, sizeof text);
    assert_string_equal(text, "");
    el_pickle_free(&p);
}

/* What imports, calls or builds: os.system("true") as pickle writes it, and each opcode alone. */
static void nothing_is_executed(void **state)
{
    REFUSES("\x80\x02"
            "cposix\nsystem\nq\x00X\x04\x00\x00\x00trueq\x01\x85q\x02Rq\x03.",
            "byte 2: opcode GLOBAL");
    REFUSES("\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.", "byte 19: opcode STACK_GLOBAL");
    static const struct {
        char code;
        const char *name;
    } others[] = {{'R', "REDUCE"},       {'b', "BUILD"},  {'i', "INST"},      {'o', "OBJ"},     {'\x81', "NEWOBJ"},
                  {'\x92', "NEWOBJ_EX"}, {'P', "PERSID"}, {'Q', "BINPERSID"}, {'\x82', "EXT1"}, {'\x84', "EXT4"}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const char bytes[] = {'\x80', 2, ']', others[i].code, '.'};
        refuses(bytes, sizeof bytes, others[i].name);
    }
    REFUSES("\x80\x05\x97.", "opcode 0x97 is none"); /* NEXT_BUFFER */
}

static void damaged_ones_are_refused(void **state)
{
    REFUSES("{}", "no pickle");
    REFUSES("\x80\x06N.", "later protocol");
    REFUSES("\x80\x02", "ends within");
    REFUSES("\x80\x02X\xff\xff\xff\x00x", "ends within");
    REFUSES("\x80\x02(.", "other than one value");
    REFUSES("\x80\x02NN.", "other than one value");
    REFUSES("\x80\x02u.", "no mark");
    REFUSES("\x80\x02(u.", "the stack is empty");
    REFUSES("\x80\x02}(Nu.", "a key has no value");
    REFUSES("\x80\x02N(Ne.", "no such container");
    REFUSES("\x80\x02)Na.", "no such container");
    REFUSES("\x80\x02h\x07.", "not in the memo");
    REFUSES("\x80\x02]r\x00\x00\x00\x40.", "out of its order");
    REFUSES("\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01.", "more than 64 bits");
    REFUSES("\x80\x02\x87.", "the stack is empty");
    REFUSES("\x80\x02(]0.", "opcode 0x30 is none");
    REFUSES("\x80\x02((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((.", "nested too deep");
    static char lists[(1 << 20) + 3] = "\x80\x02";
    memset(lists + 2, ']', sizeof lists - 2);
    struct el_pickle p;
    assert_int_equal(el_pickle_read((const uint8_t *)lists, sizeof lists, "a", &p), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "too many values are in no container"));
}

/* A list in itself, 40 lists of the list before twice each: 2^40 values, and few bytes. Walks end. */
static void walks_are_counted(void **state)
{
    struct el_pickle p;
    uint32_t value, n = 0;
    assert_int_equal(READ("\x80\x02]q\x00h\x00"
                          "a.",
                          &p),
                     EL_OK);
    struct el_pickle_walk walk = el_pickle_walk(&p, p.root);
    while (el_pickle_next(&p, &walk, &value)) walk = el_pickle_walk(&p, value), n++;
    assert_true(p.exhausted && n > 1000 && n < 2000);
    el_pickle_free(&p);
}

static struct el_snapshot read_dp(void)
{
    struct el_snapshot snapshot;
    if (el_snapshot_read_file("tests/foreign/dp.pickle", &snapshot) != EL_OK) fail_msg("%s", el_error_message());
    return snapshot;
}

enum { MIB = 1 << 20 };

/* tests/foreign/snapshot.py says what is in it. */
static void peaks_have_causes(void **state)
{
    struct el_snapshot snapshot = read_dp();
    assert_int_equal(snapshot.n, 2);
    const struct el_snapshot_device *first = &snapshot.devices[0], *second = &snapshot.devices[1];
    assert_int_equal(first->peak_bytes, 102 * MIB);
    assert_int_equal(first->now_bytes, 72 * MIB);
    assert_int_equal(first->reserved_bytes, 76 * MIB);
    assert_int_equal(first->n_events, 6);
    assert_int_equal(first->at_peak[EL_SNAPSHOT_OPTIMIZER], 40 * MIB);
    assert_int_equal(first->at_peak[EL_SNAPSHOT_GATHER], 12 * MIB);
    assert_int_equal(first->at_peak[EL_SNAPSHOT_MODEL], 20 * MIB);
    assert_int_equal(first->at_peak[EL_SNAPSHOT_FORWARD], 30 * MIB);
    assert_int_equal(first->at_peak[EL_SNAPSHOT_NO_FRAMES] + first->at_peak[EL_SNAPSHOT_BEFORE], 0);
    assert_string_equal(first->places[0].where, "train.py:42 step");
    assert_int_equal(second->peak_bytes, 50 * MIB);
    assert_int_equal(second->number, 1);
    el_snapshot_free(&snapshot);
}

/* The same with a trace that begins late: what it saw freed only was there, and nobody knows why. */
static void what_was_before_the_trace_is_counted(void **state)
{
    static const char bytes[] = "\x80\x04}(\x8c\x08segments]\x8c\x0d"
                                "device_traces]](}(\x8c\x06"
                                "action\x8c\x0e"
                                "free_completed\x8c\x04"
                                "addrK\x10\x8c\x04sizeM\xe8\x03u}(\x8c\x06"
                                "action\x8c\x05"
                                "alloc"
                                "\x8c\x04"
                                "addrK\x20\x8c\x04sizeK\x64"
                                "ueau.";
    struct el_snapshot snapshot;
    if (el_snapshot_read((const uint8_t *)bytes, sizeof bytes - 1, "p", &snapshot) != EL_OK)
        fail_msg("%s", el_error_message());
    assert_int_equal(snapshot.devices[0].peak_bytes, 900); /* held now: 0; 100 less before it, 1000 more before that */
    assert_int_equal(snapshot.devices[0].at_peak[EL_SNAPSHOT_BEFORE], 900);
    el_snapshot_free(&snapshot);
}

RUN_TESTS(NULL, NULL, values_are_read, nothing_is_executed, damaged_ones_are_refused, walks_are_counted,
          peaks_have_causes, what_was_before_the_trace_is_counted)
