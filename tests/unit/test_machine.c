/* The machine of simulated devices: ops by its rates, links within hosts and the network between them, and its file. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/trial/machine.h"
#include "tests/test.h"

/* Two devices a host. */
static const struct el_machine machine = {.name = "m",
                                          .source = "a test",
                                          .f32_flops_per_s = 1e12,
                                          .f64_flops_per_s = 5e11,
                                          .memory_bytes_per_s = 1e11,
                                          .bf16_flops_per_s = 4e12,
                                          .copy_bytes_per_s = 5e10,
                                          .host_link_bytes_per_s = 1e10,
                                          .link_bytes_per_s = 2e10,
                                          .network_bytes_per_s = 1e9,
                                          .link_latency_ns = 1000,
                                          .network_latency_ns = 7000,
                                          .kernel_launch_ns = 100,
                                          .copy_launch_ns = 200,
                                          .collective_launch_ns = 300,
                                          .host_call_ns = 400,
                                          .devices_per_host = 2};

static void is_near(double ns, double wanted)
{
    if (!(fabs(ns - wanted) < 1e-6)) fail_msg("%g ns, not %g", ns, wanted);
}

static void ops_go_by_rates(void **state)
{
    struct el_op_info kernel = {.op_class = EL_CLASS_COMPUTE, .flops = 1e6, .bytes = 1e5, .kernel = {.dtype = "f32"}};
    is_near(el_machine_op_ns(&machine, &kernel, 0, 1), 100 + 1000 + 1000);
    kernel.kernel.dtype = "f64";
    is_near(el_machine_op_ns(&machine, &kernel, 0, 1), 100 + 2000 + 1000);
    kernel.kernel.dtype = "bf16";
    is_near(el_machine_op_ns(&machine, &kernel, 0, 1), 100 + 250 + 1000);
    struct el_op_info copy = {.op_class = EL_CLASS_COPY, .bytes = 2e5, .peer = -1};
    is_near(el_machine_op_ns(&machine, &copy, 0, 1), 200 + 2000); /* within a device */
    copy.received_bytes = 100000;
    is_near(el_machine_op_ns(&machine, &copy, 0, 1), 200 + 10000); /* from the host */
    copy.peer = 1;
    is_near(el_machine_op_ns(&machine, &copy, 0, 1), 200 + 1000 + 5000);
    is_near(el_machine_op_ns(&machine, &copy, 2, 1), 200 + 7000 + 100000); /* from another host */
    struct el_op_info load = {.op_class = EL_CLASS_HOST};
    is_near(el_machine_op_ns(&machine, &load, 0, 1), 400);
}

static struct el_op_info product(const char *name, const char *dtype, double m, double n, double k)
{
    double bytes = (m * n + n * k + k * m) * (strcmp(dtype, "bf16") == 0 ? 2 : 4);
    return (struct el_op_info){
        .op_class = EL_CLASS_COMPUTE, .flops = 2 * m * n * k, .bytes = bytes, .kernel = {.name = name, .dtype = dtype}};
}

static void products_go_at_the_rates_of_their_size(void **state)
{
    struct el_machine listed = machine;
    const double small[] = {64, 64, 64}, large[] = {1024, 1024, 1024}, narrow[] = {16, 1024, 1024};
    el_machine_add_rate(&listed, EL_RATE_PRODUCT, "f32", small, 2e11);
    el_machine_add_rate(&listed, EL_RATE_PRODUCT, "f32", large, 8e11);
    /* at the listed ones; half and a quarter of the way between their logarithms; cut to their range */
    static const struct {
        double side, flops_per_ns;
    } cubes[] = {{64, 200}, {1024, 800}, {256, 500}, {128, 17000 / 82.0}, {8, 200}, {8192, 800}};
    for (size_t i = 0; i < sizeof cubes / sizeof cubes[0]; i++) {
        const double side = cubes[i].side, ns = 2 * side * side * side / cubes[i].flops_per_ns;
        struct el_op_info op = product(i % 2 ? "conv2d_forward" : "linear_forward", "f32", side, side, side);
        const double found = el_machine_op_ns(&listed, &op, 0, 1) - 100;
        if (fabs(found / ns - 1) > 1e-4) fail_msg("side %g: %g ns, not %g", side, found, ns);
    }
    /* As many FLOPs as a cube of 256, of which 500 a ns: at its own rate, and then no cube goes faster for it. */
    struct el_op_info op = product("linear_backward_data", "f32", 16, 1024, 1024);
    el_machine_add_rate(&listed, EL_RATE_PRODUCT, "f32", narrow, 1e11);
    is_near(el_machine_op_ns(&listed, &op, 0, 1), 100 + 2 * 16 * 1024 * 1024 / 100.0);
    /* What the list does not have stays as it was. */
    op = product("linear_forward", "bf16", 256, 256, 256);
    is_near(el_machine_op_ns(&listed, &op, 0, 1), el_machine_op_ns(&machine, &op, 0, 1));
    op = product("gelu_forward", "f32", 256, 256, 256);
    is_near(el_machine_op_ns(&listed, &op, 0, 1), el_machine_op_ns(&machine, &op, 0, 1));
    op = product("attention_forward", "f32", 256, 256, 256);
    op.kernel.d[1] = 2048, op.kernel.d[3] = 64;
    is_near(el_machine_op_ns(&listed, &op, 0, 1), el_machine_op_ns(&machine, &op, 0, 1));
    el_machine_add_rate(&listed, EL_RATE_ATTENTION, "f32", (double[3]){1024, 64}, 5e11);
    is_near(el_machine_op_ns(&listed, &op, 0, 1), 100 + op.flops / 500);
    assert_true(el_machine_knows_products(&listed, "f32") && !el_machine_knows_products(&listed, "bf16"));
    /* Half the type's rate is half of each. */
    assert_string_equal(el_machine_worsen(&listed, 0), "f32_tflop_per_s");
    is_near(el_machine_op_ns(&listed, &op, 0, 1), 100 + op.flops / 250);
}

/* Members of a group are neighbours, but for data ranks of models in stages. */
static void groups_of_several_hosts_use_the_network(void **state)
{
    static const struct {
        const char *name;
        int position, rank, size, stride;
        int ways; /* to the network, that its members in a host have; 0: none is taken */
    } groups[] = {{"world", 1, 1, 2, 1, 0},    {"world", 1, 1, 4, 1, 2}, {"pipeline", 2, 0, 2, 2, 0},
                  {"pipeline", 2, 1, 2, 2, 1}, {"data", 0, 0, 2, 2, 1},  {"data", 3, 1, 2, 2, 1},
                  {"data", 1, 1, 2, 1, 0}};
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        struct el_op_info op = {
            .op_class = EL_CLASS_COMM,
            .sent_bytes = 20000,
            .received_bytes = 20000,
            .peer = -1,
            .communicator = groups[i].name,
            .messages = {
                .verb = "all_reduce", .rounds = 2, .rank = groups[i].rank, .size = groups[i].size, .partner = -1}};
        double ns = el_machine_op_ns(&machine, &op, groups[i].position, groups[i].stride);
        double wanted = groups[i].ways ? 300 + 2 * 7000 + 20000.0 / groups[i].ways : 300 + 2 * 1000 + 1000;
        if (fabs(ns - wanted) > 1e-6) fail_msg("case %zu: %g ns, not %g", i, ns, wanted);
    }
    struct el_op_info send = {.op_class = EL_CLASS_COMM,
                              .sent_bytes = 40000,
                              .link = EL_LINK_SEND,
                              .messages = {.verb = "send", .rounds = 1, .rank = 1, .size = 4, .partner = 2}};
    is_near(el_machine_op_ns(&machine, &send, 1, 1), 300 + 7000 + 20000);
    send.messages.partner = 0;
    is_near(el_machine_op_ns(&machine, &send, 1, 1), 300 + 1000 + 1000);
    struct el_machine one = machine;
    one.devices_per_host = 0;
    send.messages.partner = 2;
    is_near(el_machine_op_ns(&one, &send, 1, 1), 300 + 1000 + 1000);
}

/* Of collectives alone, and of as many multiprocessors as they hold within a host or across hosts. */
static void collectives_hold_a_share(void **state)
{
    struct el_machine card = machine;
    struct el_op_info op = {
        .op_class = EL_CLASS_COMM, .communicator = "world", .messages = {.verb = "all_gather", .rank = 1, .size = 2}};
    assert_true(el_machine_held_share(&card, &op, 1, 1) == 0); /* the file does not say */
    card.multiprocessors = 100, card.collective_multiprocessors = 25, card.network_collective_multiprocessors = 10;
    assert_true(el_machine_held_share(&card, &op, 1, 1) == 0.25);
    op.messages.size = 4;
    assert_true(el_machine_held_share(&card, &op, 1, 1) == 0.1);
    op.link = EL_LINK_SEND;
    assert_true(el_machine_held_share(&card, &op, 1, 1) == 0);
    op = (struct el_op_info){.op_class = EL_CLASS_COMPUTE};
    assert_true(el_machine_held_share(&card, &op, 1, 1) == 0);
}

/* As it was before machines could be named: figures that rest on it stay. */
static void the_default_is_as_ever(void **state)
{
    struct el_machine machine_of_none;
    assert_int_equal(el_machine_read("", &machine_of_none), EL_OK);
    struct el_op_info kernel = {.op_class = EL_CLASS_COMPUTE, .flops = 3e6, .bytes = 5e5};
    struct el_op_info copy = {.op_class = EL_CLASS_COPY, .bytes = 4e4, .peer = 63};
    struct el_op_info sum = {.op_class = EL_CLASS_COMM, .sent_bytes = 4000, .received_bytes = 4000};
    sum.messages = (struct el_op_messages){.verb = "all_reduce", .rounds = 126, .size = 64};
    assert_true(el_machine_op_ns(&machine_of_none, &kernel, 0, 1) == 5000 + 3000 + 1000);
    assert_true(el_machine_op_ns(&machine_of_none, &copy, 0, 1) == 8000 + 1000);
    assert_true(el_machine_op_ns(&machine_of_none, &sum, 0, 1) == 20000 + 200);
}

static void files_are_read_as_they_are_written(void **state)
{
    static const char *const names[] = {"h100-sxm", "a100-sxm", "v100-sxm2", "v100-pcie"};
    for (int i = 0; i < 4; i++) {
        struct el_machine read;
        char text[EL_MACHINE_TEXT_BYTES];
        if (el_machine_read(names[i], &read) != EL_OK) fail_msg("%s", el_error_message());
        json_t *object = el_machine_json(&read);
        assert_non_null(strstr(read.source, "data sheet"));
        assert_non_null(strstr(el_machine_text(object, text), read.name));
        assert_true(el_json_number(object, "f32_tflop_per_s") * 1e12 == read.f32_flops_per_s);
        assert_true((json_object_get(object, "network_gb_per_s") != NULL) == (read.devices_per_host > 0));
        assert_int_equal(json_array_size(json_object_get(object, "products")), i < 2 ? 24 : 0);
        assert_true(el_json_number(object, "multiprocessors") == read.multiprocessors || i > 1);
        assert_true(read.collective_multiprocessors == (i < 2 ? 24 : 0));
        assert_true(i > 1 || fabs(el_json_number(object, "products.0.tflop_per_s") - (i ? 76.7 : 130.1)) < 1e-9);
        assert_true(el_machine_knows_products(&read, "bf16") == (i < 2) && !el_machine_knows_products(&read, "f32"));
        json_decref(object);
    }
}

RUN_TESTS(NULL, NULL, ops_go_by_rates, products_go_at_the_rates_of_their_size, groups_of_several_hosts_use_the_network,
          collectives_hold_a_share, the_default_is_as_ever, files_are_read_as_they_are_written)
