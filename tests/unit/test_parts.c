/* Where a model is cut: balances with known answers, names, and every way in which a cut is refused. */
#include "tests/test.h"

#include <stdio.h>

#include "runtime/layout/parts.h"

/* mlp: nodes hidden1, hidden2, hidden3, out. */
static struct el_train_config config_of(const char *cut, const int64_t hidden[3])
{
    struct el_train_config config = {.dtype = EL_F32, .model = {.name = "mlp", .dropout = -1, .classes = 2}};
    el_model_set(&config.model, "features", (int64_t[]){8}, 1);
    el_model_set(&config.model, "hidden", hidden, 3);
    assert_int_equal(el_model_resolve(&config.model), EL_OK);
    snprintf(config.cut, sizeof config.cut, "%s", cut);
    return config;
}

/* The first node of each part, as one text. */
static const char *cuts_of(const char *cut, const int64_t hidden[3], int n)
{
    static char text[128];
    struct el_train_config config = config_of(cut, hidden);
    struct el_parts parts;
    int at = 0, nodes = 0;
    const struct el_layout layout = {.n = {[EL_AXIS_STAGE] = n}, .cuts = true};
    if (el_parts_open(&config, &layout, true, &parts) != EL_OK) fail_msg("%s", el_error_message());
    assert_int_equal(parts.n, n);
    for (int k = 0; k < n; k++) {
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%s", k ? " " : "", parts.stage[k]->nodes[0].name);
        nodes += parts.stage[k]->n_nodes;
    }
    assert_int_equal(nodes, parts.model->n_nodes);
    el_parts_close(&parts);
    return text;
}

static void the_heaviest_part_is_as_light_as_can_be(void **state)
{
    /* Weights: 8x8, 8x8, 8x64, 64x2, with biases. */
    static const int64_t late[] = {8, 8, 64}, even[] = {8, 8, 8};
    assert_string_equal(cuts_of("nodes", even, 2), "hidden1 hidden3");
    assert_string_equal(cuts_of("nodes", even, 3), "hidden1 hidden3 out");
    assert_string_equal(cuts_of("nodes", even, 4), "hidden1 hidden2 hidden3 out");
    assert_string_equal(cuts_of("memory", late, 2), "hidden1 hidden3");
    assert_string_equal(cuts_of("memory", late, 3), "hidden1 hidden3 out");
    /* FLOPs: 256 (the first needs no gradient of its input), 384, 384, 96; and 256, 384, 3072, 768. */
    assert_string_equal(cuts_of("time", even, 2), "hidden1 hidden3");
    assert_string_equal(cuts_of("time", late, 2), "hidden1 out");
    assert_string_equal(cuts_of("nodes", even, 1), "hidden1");
}

static void names_say_where_to_cut(void **state)
{
    static const int64_t even[] = {8, 8, 8};
    assert_string_equal(cuts_of("out", even, 2), "hidden1 out");
    assert_string_equal(cuts_of("hidden2,out", even, 3), "hidden1 hidden2 out");
}

static void what_cannot_be_cut_is_said(void **state)
{
    static const int64_t even[] = {8, 8, 8};
    static const struct {
        const char *cut, *why;
        int n, pp;
    } rows[] = {
        {"conv9", "--cut conv9: mlp has no node 'conv9'", 2, 0},
        {"out", "--cut out: gives 2 parts, and there must be 3", 3, 0},
        {"hidden2,out", "--cut hidden2,out: gives 3 parts, and there must be 2", 2, 0},
        {"hidden1", "--cut hidden1: 'hidden1' is not after the previous cut", 2, 0},
        {"out,hidden2", "--cut out,hidden2: 'hidden2' is not after the previous cut", 3, 0},
        {"time", "mlp has 4 nodes: it cannot be cut into 5 parts: give fewer --devices", 5, 0},
        {"time", "mlp has 4 nodes: it cannot be cut into 5 parts: give a smaller pp", 5, 5},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct el_train_config config = config_of(rows[i].cut, even);
        config.mesh[EL_AXIS_STAGE] = rows[i].pp;
        const struct el_layout layout = {.n = {[EL_AXIS_STAGE] = rows[i].n}, .cuts = true};
        struct el_parts parts;
        assert_int_equal(el_parts_open(&config, &layout, true, &parts), EL_ERR_INVALID);
        assert_string_equal(el_error_message(), rows[i].why);
        el_parts_close(&parts);
    }
}

RUN_TESTS(NULL, NULL, the_heaviest_part_is_as_light_as_can_be, names_say_where_to_cut, what_cannot_be_cut_is_said)
