/* gpt in small: its parameters are Hugging Face's, its gradients those of finite differences, and parted backward gives
 * the same bits. */
#include "tests/test.h"

#include "runtime/models/models.h"
#include "tests/unit/graph_steps.h"

static struct el_graph *small(double dropout)
{
    struct el_graph *graph;
    struct el_model_config config = {.name = "gpt", .dropout = dropout};
    static const char *const names[] = {"layers", "embed", "heads", "seq", "vocab"};
    static const int64_t values[] = {2, 8, 2, 5, 11};
    for (int i = 0; i < 5; i++) el_model_set(&config, names[i], &values[i], 1);
    assert_int_equal(el_model_resolve(&config), EL_OK);
    assert_int_equal(el_model_build(&config, &graph), EL_OK);
    return graph;
}

static void parameters_are_those_of_gpt2(void **state)
{
    static const char *const names[] = {"transformer.wte.weight",
                                        "transformer.wpe.weight",
                                        "transformer.h.0.ln_1.weight",
                                        "transformer.h.0.ln_1.bias",
                                        "transformer.h.0.attn.c_attn.weight",
                                        "transformer.h.0.attn.c_attn.bias",
                                        "transformer.h.0.attn.c_proj.weight",
                                        "transformer.h.0.attn.c_proj.bias",
                                        "transformer.h.0.ln_2.weight",
                                        "transformer.h.0.ln_2.bias",
                                        "transformer.h.0.mlp.c_fc.weight",
                                        "transformer.h.0.mlp.c_fc.bias",
                                        "transformer.h.0.mlp.c_proj.weight",
                                        "transformer.h.0.mlp.c_proj.bias"};
    struct el_graph *graph = small(0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) assert_string_equal(graph->params[i].name, names[i]);
    assert_int_equal(graph->n_params, 2 + 2 * 12 + 2);
    assert_string_equal(graph->params[graph->n_params - 1].name, "transformer.ln_f.bias");
    /* vocab e + seq e + layers (12 e^2 + 13 e) + 2 e: the head is the embedding. */
    assert_int_equal(el_graph_param_count(graph), 11 * 8 + 5 * 8 + 2 * (12 * 64 + 13 * 8) + 2 * 8);
    assert_int_equal(graph->labels, 5);
    assert_int_equal(graph->classes, 11);
    el_graph_destroy(graph);
}

static void gradients_are_those_of_differences(void **state)
{
    for (int dropped = 0; dropped < 2; dropped++) {
        struct setting s;
        prepare(&s, small(dropped ? 0.3 : 0));
        loss_of(&s, true);
        assert_int_equal(n_hooks, s.graph->n_params);
        check_gradients(&s, 1e-6);
        el_graph_destroy(s.graph);
    }
}

static void parted_backward_gives_the_same_bits(void **state)
{
    struct setting s;
    struct part parts[STEP_PARTS_MAX];
    static double wanted[4096], got[4096];
    prepare(&s, small(0.3));
    assert_true(el_graph_param_count(s.graph) <= 4096);
    double loss = loss_of(&s, true);
    read_grads(&s, wanted);
    assert_int_equal(cut(s.graph, 0, parts), 1);
    for (int parted = 0; parted < 2; parted++) {
        zero_grads(&s);
        assert_true(loss_by_parts(&s, parts, 1, parted) == loss);
        read_grads(&s, got);
        assert_memory_equal(got, wanted, (size_t)el_graph_param_count(s.graph) * 8);
    }
    el_graph_destroy(parts[0].graph);
    el_graph_destroy(s.graph);
}

RUN_TESTS(open_device, close_device, parameters_are_those_of_gpt2, gradients_are_those_of_differences,
          parted_backward_gives_the_same_bits)
