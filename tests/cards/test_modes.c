/* Training on fake cards, in one process: the losses and the ledger of CPU devices; the most that a card gave is what
 * the device says it reserved; nothing is left when all is closed. And where streams run as far out of step as events
 * allow, losses, accuracy and running statistics are, bit for bit, those of streams that dawdle: nothing in training
 * reads a card's memory, or counts on what an event did not order. */
#include "runtime/modes/dp/fix.h"
#include "runtime/train/forecast.h"
#include "tests/cards/cards_cases.h"

enum { STEPS = 4, ALL = 0, NONE = -1, F64 = 0, F32 = 1, BF16, MIXED };

/* One way of training. What stands beside the name is left out where it is 0. */
struct way {
    const char *mode, *model;
    int n, only; /* devices; one policy alone, ALL, or NONE */
    bool nccl;
    enum el_optimizer_kind optimizer;
    double dropout;
    int64_t batch, n_accumulate, epochs;
    int data; /* ranks that each have a copy of the model */
    bool find_unused, loss_in_replica, sync_params;
    bool scheduled; /* a learning rate that rises, and gradients that are clipped */
    const char *option, *value;
    const char *schedule;
    unsigned fixes;
    int dtype;
    bool shared; /* all devices on one card */
    bool graph;  /* a policy's run has its steps as graphs, whose nodes it takes in the order of a seed */
    struct el_loading loading;
};

static const struct way ways[] = {
    {"single", "textcnn", 1, CARDS_LAZY, false, EL_OPT_ADAM, .dropout = 0.5, .batch = 22},
    {"dp", "textcnn", 3, ALL, false, EL_OPT_MOMENTUM, .dropout = 0.5, .batch = 24},
    {"dp", "toy", 2, CARDS_OTHERS_FIRST, true, EL_OPT_SGD, .batch = 24},
    {"ddp", "textcnn", 2, CARDS_RANDOM, false, EL_OPT_ADAM, .dropout = 0.5, .batch = 22},
    {"ddp", "mlp", 3, ALL, true, EL_OPT_SGD, .batch = 22},
    /* Labels and losses on other devices than usual, a map from the host, parameters that are summed. */
    {"dp", "mlp", 3, CARDS_LAZY, .batch = 22, .option = "output-device", .value = "1"},
    {"dp", "mlp", 3, CARDS_OTHERS_FIRST, .batch = 22, .loss_in_replica = true},
    {"ddp", "branch", 2, CARDS_RANDOM, .batch = 22, .find_unused = true, .n_accumulate = 2},
    {"manual", "mlp", 2, CARDS_LAZY, .batch = 22, .sync_params = true},
    /* Ranks that have several devices each. */
    {"spmg", "textcnn", 4, CARDS_OTHERS_FIRST, false, EL_OPT_ADAM, .dropout = 0.5, .batch = 22, .data = 2},
    {"spmg", "mlp", 4, CARDS_LAZY, .batch = 22, .data = 2, .option = "reduce", .value = "hierarchical"},
    {"pipeline", "mlp", 4, CARDS_RANDOM, true, .batch = 24, .data = 2},
    /* Messages between stages, from card to card or over NCCL's links. */
    {"mp", "textcnn", 2, CARDS_RANDOM, false, EL_OPT_SGD, .batch = 24},
    {"mp", "textcnn", 3, ALL, true, EL_OPT_SGD, .batch = 24},
    {"pipeline", "textcnn", 2, CARDS_LAZY, false, EL_OPT_SGD, .batch = 24},
    {"pipeline", "textcnn", 3, CARDS_OTHERS_FIRST, true, EL_OPT_SGD, .batch = 24},
    /* Several parts a device, messages of both ways between the same two, backwards in halves. */
    {"pipeline", "textcnn", 2, CARDS_RANDOM, true, EL_OPT_SGD, .batch = 24, .schedule = "interleaved"},
    {"pipeline", "textcnn", 2, CARDS_LAZY, false, EL_OPT_SGD, .batch = 24, .schedule = "zero-bubble"},
    {"pipeline", "textcnn", 2, CARDS_OTHERS_FIRST, true, EL_OPT_SGD, .batch = 24,
     .schedule = "tests/unit/data/schedules/ZBVZeroBubble-2x2-4.csv"},
    /* Running statistics that are sent with the model, before a step, or stage by stage, and those that nobody sends.
     */
    {"dp", "resnet18", 3, CARDS_LAZY, .batch = 12},
    {"ddp", "resnet18", 2, CARDS_OTHERS_FIRST, .batch = 12},
    {"spmg", "resnet18", 2, CARDS_RANDOM, .batch = 12},
    {"pipeline", "resnet18", 2, CARDS_LAZY, .batch = 12},
    {"manual", "resnet18", 2, CARDS_OTHERS_FIRST, .batch = 12},
    /* Parts of the state: gathered units beside those in use, parts that are reduced within a copy and across. */
    {"zero1", "mlp", 2, CARDS_LAZY, true, EL_OPT_ADAM, .batch = 22, .n_accumulate = 2},
    {"zero2", "textcnn", 3, CARDS_RANDOM, false, EL_OPT_ADAM, .dropout = 0.5, .batch = 24},
    {"zero3", "textcnn", 2, ALL, true, EL_OPT_ADAM, .dropout = 0.5, .batch = 22},
    {"zero3", "mlp", 4, CARDS_RANDOM, .batch = 24, .data = 2, .option = "gather-ahead", .value = "2"},
    {"zero3", "mlp", 3, CARDS_OTHERS_FIRST, .batch = 22, .scheduled = true, .option = "reshard", .value = "off"},
    {"zero3", "resnet18", 2, CARDS_LAZY, .batch = 12},
    {"zero3", "mlp", 2, CARDS_LAZY, false, EL_OPT_SGD, .batch = 442, .epochs = 1},
    /* Convolutions by cuDNN. */
    {"ddp", "resnet18", 2, NONE, .batch = 8, .dtype = F32},
    {"pipeline", "resnet18", 2, NONE, .batch = 8, .dtype = F32},
    {"ddp", "mlp", 2, NONE, .batch = 22, .dtype = F32, .shared = true},
    /* Casts, products of bf16, dropout's step in a graph, and buckets of bf16. */
    {"single", "textcnn", 1, CARDS_LAZY, false, EL_OPT_ADAM, .dropout = 0.5, .batch = 22, .dtype = BF16, .graph = true},
    {"dp", "mlp", 2, CARDS_RANDOM, .batch = 22, .dtype = BF16},
    {"ddp", "mlp", 2, CARDS_LAZY, .batch = 22, .dtype = BF16, .option = "comm-hook", .value = "bf16"},
    {"pipeline", "mlp", 2, CARDS_OTHERS_FIRST, .batch = 24, .dtype = BF16},
    {"ddp", "mlp", 2, CARDS_LAZY, .batch = 22, .dtype = F32, .option = "comm-hook", .value = "f16"},
    {"spmg", "mlp", 2, CARDS_RANDOM, true, .batch = 22, .dtype = F32, .option = "comm-hook", .value = "f16"},
    {"zero3", "mlp", 2, CARDS_LAZY, .batch = 22, .dtype = BF16},
    {"zero2", "mlp", 3, CARDS_RANDOM, .batch = 22, .n_accumulate = 2, .dtype = BF16, .option = "comm-hook",
     .value = "bf16"},
    /* Batches by way of pageable memory or pinned, waited for or not, or a step ahead. */
    {"single", "mlp", 1, ALL, .batch = 22, .loading = {.pageable = true}},
    {"dp", "mlp", 2, CARDS_LAZY, .batch = 22, .loading = {.pageable = true, .transfer = EL_TRANSFER_BLOCKING}},
    {"ddp", "mlp", 2, CARDS_RANDOM, .batch = 22, .loading = {.transfer = EL_TRANSFER_BLOCKING}},
    {"dp", "mlp", 2, ALL, .batch = 22, .loading = {.transfer = EL_TRANSFER_AHEAD}},
    {"pipeline", "mlp", 2, ALL, .batch = 22, .loading = {.transfer = EL_TRANSFER_AHEAD, .workers = 2}},
    {"single", "textcnn", 1, CARDS_LAZY, false, EL_OPT_ADAM, .dropout = 0.5, .batch = 22, .dtype = F32, .graph = true},
    {"single", "textcnn", 1, ALL, false, EL_OPT_ADAM, .dropout = 0.5, .batch = 22, .n_accumulate = 2, .graph = true},
    {"single", "mlp", 1, CARDS_RANDOM, .batch = 22, .graph = true},
    {"single", "mlp", 1, ALL, false, EL_OPT_SGD, .batch = 22, .scheduled = true, .graph = true},
    {"single", "toy", 1, CARDS_LAZY, .batch = 22, .dtype = F32, .scheduled = true, .graph = true},
    {"single", "mlp", 1, CARDS_RANDOM, false, EL_OPT_ADAMW, .batch = 22, .scheduled = true, .graph = true},
    {"dp", "mlp", 2, CARDS_LAZY, false, EL_OPT_ADAMW, .batch = 24, .scheduled = true},
    {"pipeline", "mlp", 4, CARDS_RANDOM, false, EL_OPT_ADAMW, .batch = 24, .data = 2, .scheduled = true},
    {"single", "resnet18", 1, CARDS_OTHERS_FIRST, .batch = 8, .dtype = F32, .graph = true},
    /* NCCL's collectives in graphs, one of each member. */
    {"ddp", "mlp", 2, ALL, true, .batch = 22, .graph = true},
    {"ddp", "textcnn", 3, CARDS_RANDOM, true, EL_OPT_ADAM, .dropout = 0.5, .batch = 24, .dtype = F32, .graph = true},
    {"ddp", "resnet18", 2, CARDS_LAZY, true, .batch = 12, .n_accumulate = 2, .graph = true},
    {"ddp", "mlp", 2, CARDS_OTHERS_FIRST, true, .batch = 22, .dtype = BF16, .graph = true, .option = "comm-hook",
     .value = "bf16"},
    {"zero1", "mlp", 2, CARDS_LAZY, .batch = 24, .dtype = MIXED, .scheduled = true},
    {"zero3", "mlp", 2, CARDS_RANDOM, .batch = 24, .dtype = MIXED, .scheduled = true},
    /* An epoch, its evaluation, and the best weights taken to the host and back. */
    {"dp", "mlp", 2, CARDS_LAZY, false, EL_OPT_SGD, .batch = 442, .epochs = 1},
};

/* A card's kernels want parameters in f32 at multiples of 16 bytes: the gaps between those that are sent together, of
 * which dp has two pieces at once and spmg one (docs/semantics.md). */
static size_t gaps_of(const struct el_train_config *config)
{
    struct el_graph *graph;
    size_t gaps = 0, pieces = strcmp(config->mode, "dp") == 0 ? 2 : strcmp(config->mode, "spmg") == 0;
    assert_int_equal(el_model_build(&config->model, &graph), EL_OK);
    for (int p = 0; p + 1 < graph->n_params; p++) gaps += -((size_t)el_param_count(graph, p) * sizeof(float)) % 16;
    el_graph_destroy(graph);
    return config->dtype == EL_F32 ? pieces * gaps : 0;
}

static void compare_memory(const char *text, const struct el_train_config *config, const struct trained *on_cards,
                           const struct trained *on_cpu)
{
    for (int d = 0; d < config->n_devices; d++) {
        struct cards_counts counts;
        cards_count(d, &counts);
        for (int t = 0; t < EL_TAG_COUNT; t++) {
            size_t here = on_cards->ledgers[d].peak_by_tag[t], there = on_cpu->ledgers[d].peak_by_tag[t];
            if (t == EL_TAG_PADDING) there += gaps_of(config);
            if (t != EL_TAG_WORKSPACE && t != EL_TAG_ALLOWANCE && here != there) /* kernels and copies of their own */
                fail_msg("%s: device %d holds %zu bytes of %s, not %zu", text, d, here, el_tag_name((enum el_tag)t),
                         there);
        }
        if ((int64_t)counts.most_bytes != on_cards->reserved_bytes[d])
            fail_msg("%s: card %d gave %zu bytes, and the device says %lld", text, d, counts.most_bytes,
                     (long long)on_cards->reserved_bytes[d]);
        assert_true(counts.most_bytes >= on_cards->ledgers[d].peak_bytes);
    }
}

/* f32 is another kernel's rounding, carried on for some steps. */
static void compare_losses(const char *text, const struct el_train_config *config, const struct el_train_result *a,
                           const struct el_train_result *b)
{
    double difference = el_case_difference(a, b), most = config->dtype == EL_F64 ? CASE_TOLERANCE : 1e-4;
    if (config->model.precision) most = 1e-2;
    assert_true(a->n_steps == b->n_steps && a->loss[0] != a->loss[a->n_steps - 1]);
    if (!(difference <= most)) fail_msg("%s: losses differ by %g from the CPU's", text, difference);
}

static void configure_way(const struct way *way, struct el_train_config *config)
{
    if (strcmp(way->model, "resnet18") == 0) {
        el_case_images_config(way->mode, way->n, way->batch, IMAGE_SIDE, config);
        config->steps = way->graph ? 3 : 2; /* it carries roundings far */
    } else {
        const struct el_case c = {way->model, way->optimizer ? way->optimizer : EL_OPT_MOMENTUM, way->dropout,
                                  way->batch};
        if (el_case_config(&c, way->data ? "single" : way->mode, way->data ? 1 : way->n, config) != EL_OK)
            fail_msg("%s", el_error_message());
        config->steps = STEPS;
    }
    snprintf(config->mode, sizeof config->mode, "%s", way->mode);
    config->dtype = way->dtype ? EL_F32 : EL_F64;
    if (way->dtype >= BF16) config->model.precision = way->dtype == BF16 ? EL_PRECISION_BF16 : EL_PRECISION_BF16_MIXED;
    config->n_devices = way->n;
    config->mesh[EL_AXIS_DATA] = way->data;
    config->n_accumulate = way->n_accumulate;
    config->epochs = way->epochs;
    config->find_unused = way->find_unused;
    config->loss_in_replica = way->loss_in_replica;
    config->sync_params = way->sync_params;
    config->dp_fix = way->fixes;
    config->foreach = EL_FOREACH_ON; /* as usual on cards */
    config->loading = way->loading;
    if (way->scheduled) {
        config->weight_decay = config->optimizer == EL_OPT_ADAMW ? 0.1 : 0;
        config->clip = 0.1;
    }
    if (way->schedule) {
        snprintf(config->schedule, sizeof config->schedule, "%s", way->schedule);
        config->n_micro = 0;
    }
    if (way->option) assert_int_equal(el_mode_option_set(config, way->option, way->value), EL_OK);
    if (el_train_check(config) != EL_OK) fail_msg("%s", el_error_message());
}

static void compare_bits(const char *text, const struct trained *trained, const struct trained *wanted,
                         const struct way *way)
{
    const struct el_train_result *a = &trained->result, *b = &wanted->result;
    if (el_case_difference(a, b) != 0) fail_msg("%s: other losses", text);
    assert_int_equal(a->n_buffers, b->n_buffers);
    if (a->n_buffers && memcmp(a->buffers, b->buffers, (size_t)a->n_buffers * sizeof(double)) != 0)
        fail_msg("%s: other running statistics", text);
    for (int e = 0; e < a->n_epochs; e++) {
        assert_true(a->epochs[e].held_out.accuracy >= 0);
        assert_true(a->epochs[e].held_out.accuracy == b->epochs[e].held_out.accuracy);
    }
    for (int d = 0; d < way->n && !way->graph; d++)
        assert_memory_equal(trained->ledgers[d].peak_by_tag, wanted->ledgers[d].peak_by_tag,
                            sizeof wanted->ledgers[d].peak_by_tag);
}

/* On CPU devices, on cards whose streams dawdle by a seed of its own, and with one policy or each; under a sanitizer,
 * which looks at what a step does and not at what comes out, with one of them by turns. */
static void check_way(const struct way *way)
{
    static int turn;
    struct el_train_config config;
    struct trained on_cpu, wanted, trained;
    int first = way->only > 0 ? way->only : CARDS_LAZY, end = way->only > 0 ? way->only + 1 : CARDS_POLICIES;
    char text[160];
    if (way->only == NONE) end = first;
    if (is_sanitized() && first < end) first += turn % (end - first), end = first + 1;
    turn++;
    snprintf(text, sizeof text, "%s %s on %d%s, %s, turn %d", way->mode, way->model, way->n,
             way->shared ? " on one card" : "",
             way->dtype >= BF16 ? "bf16"
             : way->dtype       ? "f32"
                                : "f64",
             turn);
    configure_way(way, &config);
    with_nccl = way->nccl;
    if (!way->nccl) cards_set_seed((uint64_t)turn); /* sums of NCCL's begin where the seed says */
    cards_forget_most();
    train_on("cuda", way->shared, &config, &wanted);
    cards_set_seed(0);
    if (wanted.status != EL_OK) fail_msg("%s: %s", text, el_error_message());
    if (!is_sanitized() || way->only == NONE) {
        train_on("cpu", false, &config, &on_cpu);
        assert_int_equal(on_cpu.status, EL_OK);
        compare_losses(text, &config, &wanted.result, &on_cpu.result);
        if (!way->shared && !way->nccl) compare_memory(text, &config, &wanted, &on_cpu);
        el_train_result_free(&on_cpu.result);
    }
    assert_nothing_left();
    for (int policy = first; policy < end; policy++) {
        config.device_graph = way->graph;
        cards_set_policy((enum cards_policy)policy, 5);
        if (way->graph) cards_set_seed((uint64_t)policy);
        train_on("cuda", way->shared, &config, &trained);
        cards_set_seed(0);
        cards_set_policy(CARDS_FREE, 0);
        if (trained.status != EL_OK) fail_msg("%s, policy %d: %s", text, policy, el_error_message());
        compare_bits(text, &trained, &wanted, way);
        const int rounds = strcmp(way->mode, "ddp") ? 1 : 2; /* the last one's steps are graphs, but for its first */
        assert_int_equal(trained.result.n_graph_steps, way->graph ? config.steps - rounds : 0);
        el_train_result_free(&trained.result);
        assert_nothing_left();
    }
    el_train_result_free(&wanted.result);
}

/* In each mode, on up to four cards. */
static void check_model(const char *model, int dtype)
{
    static const char *const modes[] = {"single", "dp", "ddp", "spmg", "manual", "mp", "pipeline", "zero1", "zero3"};
    for (int m = 0; m < (int)(sizeof modes / sizeof *modes); m++)
        for (int n = 1; n <= CARDS; n *= 2) {
            const struct way way = {modes[m], model, n, NONE, .batch = 22, .dtype = dtype};
            if ((m == 0) != (n == 1)) continue;
            if (is_sanitized() && (n == CARDS || (dtype == F32 && m % 3 != 0))) continue; /* single, spmg, pipeline */
            if (el_case_can_be_cut(&(struct el_case){.model = model, .batch = 22}, modes[m], n)) check_way(&way);
        }
}

static void every_mode(void **state)
{
    check_model("mlp", F64);
    check_model("textcnn", F32);
    if (!is_long()) {
        print_message("# long: mlp in f32, textcnn in f64 and resnet18 in both\n");
        return;
    }
    check_model("mlp", F32);
    check_model("textcnn", F64);
    check_model("resnet18", F32);
    check_model("resnet18", F64);
}

/* Two devices on one card, which one GPU can prove: all modes. */
static void every_mode_on_one_card(void **state)
{
    for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++) {
        const int n = strcmp(mode->name, "single") == 0 ? 1 : 2;
        if (el_mode_devices_for(mode->name, "mlp", n) < n) continue; /* ep: moe.bats */
        if (!is_sanitized()) check_way(&(struct way){mode->name, "mlp", n, NONE, .batch = 24, .shared = true});
    }
}

static void every_way(void **state)
{
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++)
        if (!is_sanitized() || (w % 3 == 1 && !ways[w].epochs)) check_way(&ways[w]);
}

/* dp without its causes: each set of fixes with one of the policies, by the host or NCCL. */
static void fixes_of_dp(void **state)
{
    for (unsigned fixes = 1; fixes <= EL_DP_FIX_ALL; fixes++) {
        bool nccl = fixes & EL_DP_FIX_INPUTS;
        const struct way way = {"dp", "mlp",       2 + nccl,      (int)(CARDS_LAZY + fixes % 3),
                                nccl, .batch = 23, .fixes = fixes};
        if (el_dp_fix_close(fixes) == fixes && (!is_sanitized() || fixes % 5 == 3)) check_way(&way);
    }
}

/* Tensors of one launch have the bits of as many launches. */
static void together_or_one_by_one(void **state)
{
    static const struct way these[] = {
        {"ddp", "textcnn", 2, NONE, true, EL_OPT_ADAM, .batch = 22, .dtype = F32, .scheduled = true},
        {"spmg", "mlp", 2, NONE, .batch = 22},
        {"dp", "toy", 2, NONE, .batch = 24, .dtype = BF16},
        {"zero3", "mlp", 2, NONE, true, EL_OPT_ADAMW, .batch = 22, .scheduled = true}};
    for (size_t w = 0; w < sizeof these / sizeof these[0]; w++) {
        struct trained trained[2];
        struct cards_counts counts[3];
        struct el_train_config config;
        configure_way(&these[w], &config);
        config.keep_grads = w % 2;
        with_nccl = these[w].nccl;
        for (int off = 0; off < 2; off++) {
            config.foreach = off ? EL_FOREACH_OFF : EL_FOREACH_ON;
            cards_count(0, &counts[off]);
            train_on("cuda", false, &config, &trained[off]);
            if (trained[off].status != EL_OK) fail_msg("%s: %s", these[w].mode, el_error_message());
        }
        cards_count(0, &counts[2]);
        assert_true(el_case_difference(&trained[0].result, &trained[1].result) == 0);
        assert_true(counts[1].kernels - counts[0].kernels < counts[2].kernels - counts[1].kernels);
        for (int off = 0; off < 2; off++) el_train_result_free(&trained[off].result);
    }
}

static void cards_may_not_reach_each_other(void **state)
{
    static const char *const modes[] = {"dp", "pipeline"};
    cards_set_peer(false);
    for (int m = 0; m < 2; m++) check_way(&(struct way){modes[m], "mlp", 2, NONE, .batch = 22});
    cards_set_peer(true);
}

/* Copies between cards bring no sums of halves: that is said, and nothing is trained without them. */
static void a_refused_collective_fails_the_step(void **state)
{
    const struct way way = {"spmg", "mlp", 2, NONE, .batch = 22, .dtype = F32, .option = "comm-hook", .value = "f16"};
    struct el_train_config config;
    struct trained trained;
    configure_way(&way, &config);
    with_nccl = false;
    train_on("cuda", false, &config, &trained);
    assert_int_not_equal(trained.status, EL_OK);
    if (!strstr(el_error_message(), "peer")) fail_msg("%s", el_error_message());
    assert_nothing_left();
}

/* Larger than what allocation is rounded to: the card's memory is the ledger's peak, and little more. */
static void memory_is_what_the_ledger_says(void **state)
{
    enum { GRANULES_BYTES = 3 << 21 };
    if (is_sanitized()) skip();
    struct el_train_config config;
    struct trained trained;
    struct cards_counts counts;
    configure("mlp", "dp", 2, EL_F32, &config);
    el_model_set(&config.model, "hidden", (int64_t[]){1500, 1000}, 2);
    config.steps = 2;
    cards_forget_most();
    train_on("cuda", false, &config, &trained);
    assert_int_equal(trained.status, EL_OK);
    for (int d = 0; d < 2; d++) {
        cards_count(d, &counts);
        assert_true(trained.ledgers[d].peak_bytes > 2 * GRANULES_BYTES);
        if (counts.most_bytes < trained.ledgers[d].peak_bytes ||
            counts.most_bytes > trained.ledgers[d].peak_bytes + GRANULES_BYTES)
            fail_msg("card %d gave %zu bytes, the ledger's peak is %zu", d, counts.most_bytes,
                     trained.ledgers[d].peak_bytes);
    }
    el_train_result_free(&trained.result);
    assert_nothing_left();
}

static void train_and_forecast(const char *model, enum el_dtype dtype, struct el_ledger *here, struct el_ledger *there)
{
    const struct el_kernel_table *kernels;
    struct el_train_config config;
    struct el_memory_forecast forecast;
    struct trained trained;
    configure(model, "single", 1, dtype, &config);
    config.steps = 2;
    train_on("cuda", false, &config, &trained);
    assert_int_equal(trained.status, EL_OK);
    *here = trained.ledgers[0];
    el_train_result_free(&trained.result);
    assert_int_equal(el_device_gpu_kernels(&kernels), EL_OK);
    assert_int_equal(el_train_forecast(&config, kernels, &forecast), EL_OK);
    *there = forecast.ledger;
}

/* A forecast cannot ask cuDNN, and has the room that it may ask for as allowance; a card holds what it asked for. Where
 * there is nothing to ask, both are the same. */
static void workspace_is_what_was_asked_for(void **state)
{
    struct el_ledger here, there;
    if (is_sanitized()) skip();
    train_and_forecast("resnet18", EL_F32, &here, &there);
    assert_true(there.peak_by_tag[EL_TAG_ALLOWANCE] > 1 << 20);
    assert_true(here.peak_by_tag[EL_TAG_ALLOWANCE] < 1 << 20 && here.peak_by_tag[EL_TAG_WORKSPACE] >= 4096);
    assert_true(here.peak_bytes + (1 << 19) < there.peak_bytes);
    train_and_forecast("textcnn", EL_F64, &here, &there);
    assert_memory_equal(here.peak_by_tag, there.peak_by_tag, sizeof here.peak_by_tag);
    assert_true(here.peak_by_tag[EL_TAG_WORKSPACE] > 0 && here.peak_by_tag[EL_TAG_ALLOWANCE] == 0);
    assert_nothing_left();
}

/* With samples to evaluate on. */
static int open_sets(void **state)
{
    struct el_dataset_spec spec = {.source = "dummy", .vocab = 60, .seq = 9, .classes = 4, .seed = 3, .held_out = 0.2};
    return el_dataset_open(&spec, &sentences) == EL_OK && el_case_images(&images) == EL_OK ? 0 : -1;
}

int main(void)
{
    set_up_cards();
    setenv("CUDA_MODULE_LOADING", "EAGER", 1); /* a first launch would wait for the card, and hide what does not */
    return RUN(open_sets, close_all, every_mode, every_mode_on_one_card, every_way, fixes_of_dp, together_or_one_by_one,
               cards_may_not_reach_each_other, a_refused_collective_fails_the_step, memory_is_what_the_ledger_says,
               workspace_is_what_was_asked_for);
}
