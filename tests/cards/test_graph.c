/* Steps as graphs, on fake cards: a program's results are those of its ops queued one by one, whatever its streams and
 * cards; what the host does in a step is counted. A graph runs its nodes in any order that its edges leave, by the
 * seed. That training has the same bits is said in test_modes.c. */
#include "tests/cards/cards_cases.h"

enum { N = 100, RUNS = 6 };

/* ---- programs ---- */

/* What a host call brings: another one in each step. */
static enum el_status bring(const struct el_call_args *args)
{
    float *to = args->context;
    for (int i = 0; i < N; i++) to[i] = (float)(args->step * 10) + (float)i;
    return EL_OK;
}

struct place {
    struct el_device *cards[2];
    struct el_program *program;
    struct el_buffer *out;
    float *loaded; /* pinned */
};

static int add_scale(const struct place *place, int card, int stream, struct el_view x, struct el_view y, double by)
{
    int id;
    struct el_kernel_op op = {.op = EL_OP_SCALE, .dtype = EL_F32, .views = {x, y}, .args = {.d = {N}, .s = {by}}};
    assert_int_equal(el_program_kernel(place->program, place->cards[card], stream, &op, &id), EL_OK);
    return id;
}

static int add_copy(const struct place *place, int card, int stream, struct el_view to, struct el_view from)
{
    int id;
    const struct el_op_head head = {.label = "copy"};
    assert_int_equal(
        el_program_copy(place->program, place->cards[card], stream, &head, to, from, N * sizeof(float), &id), EL_OK);
    return id;
}

static struct el_view allocate(const struct place *place, int card)
{
    struct el_buffer *buffer;
    assert_int_equal(
        el_program_alloc(place->program, place->cards[card], EL_TAG_ACTIVATION, N * sizeof(float), "x", &buffer),
        EL_OK);
    return el_view_of(buffer, 0);
}

/* out = 2 * (3 * x) on the first card, by way of another stream and of the second card. */
static void issue(struct place *place, bool pinned)
{
    struct el_call_op call = {
        .head = {.label = "load"}, .op_class = EL_CLASS_HOST, .run = bring, .context = place->loaded};
    assert_int_equal(el_program_create(&place->program), EL_OK);
    struct el_view x = allocate(place, 0), tripled = allocate(place, 0), there = allocate(place, 1),
                   doubled = allocate(place, 1);
    assert_int_equal(el_program_call(place->program, place->cards[0], EL_STREAM_COMPUTE, &call, NULL), EL_OK);
    int came = add_copy(place, 0, EL_STREAM_COMPUTE, x, el_view_host(place->loaded));
    if (pinned) el_program_copy_how(place->program, came, EL_COPY_PINNED);
    el_program_wait(place->program, place->cards[0], EL_STREAM_COMM, came);
    int scaled = add_scale(place, 0, EL_STREAM_COMM, x, tripled, 3);
    el_program_wait(place->program, place->cards[1], EL_STREAM_COMPUTE, scaled);
    add_copy(place, 1, EL_STREAM_COMPUTE, there, tripled);
    int done = add_scale(place, 1, EL_STREAM_COMPUTE, there, doubled, 2);
    el_program_wait(place->program, place->cards[0], EL_STREAM_COMPUTE, done);
    add_copy(place, 0, EL_STREAM_COMPUTE, el_view_of(place->out, 0), doubled);
    el_program_use_graph(place->program);
}

static void open_place(struct place *place)
{
    void *loaded;
    for (int i = 0; i < 2; i++) place->cards[i] = open_card(i);
    assert_int_equal(el_device_alloc(place->cards[0], EL_TAG_OUTPUT, N * sizeof(float), "out", &place->out), EL_OK);
    assert_int_equal(el_device_host_alloc(place->cards[0], true, N * sizeof(float), &loaded), EL_OK);
    place->loaded = loaded;
}

static void close_place(struct place *place)
{
    el_program_destroy(place->program);
    el_device_host_free(place->cards[0], true, place->loaded);
    for (int i = 0; i < 2; i++) el_device_close(place->cards[i]);
    assert_nothing_left();
}

/* How many runs did not give what they should. */
static int count_wrong(const char *failures, uint64_t seed)
{
    struct place place;
    float out[N];
    int wrong = 0;
    cards_set_seed(seed);
    cards_set_failures(failures);
    open_place(&place);
    issue(&place, true);
    if (el_program_end(place.program) != EL_OK) fail_msg("%s", el_error_message());
    for (int step = 0; step < RUNS; step++) {
        assert_int_equal(el_program_run(place.program, (uint64_t)step, NULL), EL_OK);
        assert_int_equal(el_program_graph_runs(place.program), step);
        assert_int_equal(el_device_read(el_view_of(place.out, 0), out, sizeof out), EL_OK);
        bool right = true;
        for (int i = 0; i < N; i++) right = right && out[i] == 6 * (float)(step * 10 + i);
        wrong += !right;
    }
    close_place(&place);
    cards_set_failures(NULL);
    cards_set_seed(0);
    return wrong;
}

static void a_program_over_streams_and_cards(void **state)
{
    for (uint64_t seed = 0; seed < 4; seed++) assert_int_equal(count_wrong(NULL, seed), 0);
}

/* The waits of the first card are, in the first run: of the second stream, of the first one; in the capture: the second
 * stream's for the fork and for the copy. The latter is left out. */
static void a_wait_that_is_missing_in_a_graph_is_found(void **state)
{
    int found = 0;
    for (uint64_t seed = 1; seed <= 3; seed++) found += count_wrong("wait:0:4", seed) > 0;
    assert_true(found > 0);
}

static void what_a_graph_cannot_have_is_named(void **state)
{
    struct place place;
    float host[N];
    open_place(&place);
    issue(&place, true);
    struct el_view out = el_view_of(place.out, 0);
    add_copy(&place, 0, EL_STREAM_COMPUTE, el_view_host(host), out);
    assert_int_equal(el_program_end(place.program), EL_ERR_INVALID);
    assert_string_equal(el_error_message(),
                        "cuda:0: 'copy' copies to the host, which a graph cannot: give --graph off");
    el_program_destroy(place.program);
    issue(&place, false);
    assert_int_equal(el_program_end(place.program), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "'copy' copies from memory that is not pinned"));
    el_program_destroy(place.program);
    issue(&place, true);
    struct el_call_op call = {
        .head = {.label = "sum"}, .op_class = EL_CLASS_COMM, .run = bring, .context = place.loaded, .views = {out}};
    assert_int_equal(el_program_call(place.program, place.cards[0], EL_STREAM_COMPUTE, &call, NULL), EL_OK);
    assert_int_equal(el_program_end(place.program), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "'sum'"));
    close_place(&place);
}

/* ---- training ---- */

static void configure_graph(const char *model, enum el_dtype dtype, int64_t steps, struct el_train_config *config)
{
    configure(model, "single", 1, dtype, config);
    if (strcmp(model, "textcnn") == 0) { /* both depend on the step */
        config->optimizer = EL_OPT_ADAM;
        config->model.dropout = 0.5;
    }
    config->steps = steps;
    config->foreach = EL_FOREACH_ON;
}

static void train(struct el_train_config *config, bool graph, struct trained *trained)
{
    config->device_graph = graph;
    train_on("cuda", false, config, trained);
    if (trained->status != EL_OK) fail_msg("%s: %s", config->model.name, el_error_message());
    assert_nothing_left();
}

/* What one step more makes. */
static struct cards_counts count_step(bool graph)
{
    struct cards_counts counts[3];
    cards_count(0, &counts[0]);
    for (int more = 0; more < 2; more++) {
        struct el_train_config config;
        struct trained trained;
        configure_graph("textcnn", EL_F32, 4 + more, &config);
        train(&config, graph, &trained);
        el_train_result_free(&trained.result);
        cards_count(0, &counts[1 + more]);
    }
#define MORE(field) ((counts[2].field - counts[1].field) - (counts[1].field - counts[0].field))
    return (struct cards_counts){.kernels = MORE(kernels),
                                 .copies = MORE(copies),
                                 .waits = MORE(waits),
                                 .graphs = MORE(graphs),
                                 .synchronisations = MORE(synchronisations)};
#undef MORE
}

/* The loss is read behind the step: a copy, and a wait for it. */
static void a_step_is_one_launch_and_one_wait(void **state)
{
    enum { OF_LOSS = 1 };
    struct cards_counts plain = count_step(false), graph = count_step(true);
    assert_int_equal(graph.graphs, 1);
    assert_int_equal(graph.kernels, 0);
    assert_int_equal(graph.waits, 0);
    assert_int_equal(graph.copies, OF_LOSS);
    assert_int_equal(graph.synchronisations, 1 + OF_LOSS);
    assert_int_equal(plain.graphs, 0);
    assert_true(plain.kernels > 20);
    assert_true(plain.copies >= 2 + OF_LOSS);
    print_message("# a step of textcnn: 1 launch instead of %d\n", plain.kernels + plain.copies - OF_LOSS);
}

/* One line with the first call that failed, and nothing is left. */
static void a_card_that_makes_no_graph_says_so(void **state)
{
    static const struct {
        const char *failures, *words;
    } cases[] = {{"cudaStreamBeginCapture:0:1=2", "cudaStreamBeginCapture: out of memory"},
                 {"cudaGraphInstantiateWithFlags:0:1=2", "cudaGraphInstantiate: out of memory"},
                 {"cublasGemm:0:3=1", "CUBLAS_STATUS_EXECUTION_FAILED"}, /* the first one in the capture */
                 {"cudaGraphLaunch:0:1=719", "cudaGraphLaunch: unspecified launch failure"}};
    for (int i = 0; i < 4; i++) {
        struct el_train_config config;
        struct trained trained;
        configure_graph("linear", EL_F64, 3, &config);
        config.device_graph = true;
        cards_set_failures(cases[i].failures);
        train_on("cuda", false, &config, &trained);
        cards_set_failures(NULL);
        assert_int_not_equal(trained.status, EL_OK);
        assert_non_null(strstr(el_error_message(), cases[i].words));
        assert_true(!strstr(el_error_message(), "--graph off") == (i == 3)); /* the last was one already */
        assert_nothing_left();
    }
}

/* An operation in a launched graph hangs, NCCL tells of it, and the abort waits for the graph's end: all of it ends. */
static void a_collective_that_fails_in_a_graph_ends_the_training(void **state)
{
    struct el_train_config config;
    struct trained trained;
    with_nccl = true;
    configure("mlp", "ddp", 2, EL_F64, &config);
    config.steps = 6;
    config.device_graph = true;
    train_on("cuda", false, &config, &trained);
    assert_int_equal(trained.status, EL_OK);
    assert_int_equal(trained.result.n_graph_steps, 4);
    el_train_result_free(&trained.result);
    cards_set_failures("ncclAsync:1:20=6");
    train_on("cuda", false, &config, &trained);
    cards_set_failures(NULL);
    assert_int_not_equal(trained.status, EL_OK);
    print_message("# %s\n", el_error_message());
    assert_non_null(strstr(el_error_message(), "nccl"));
    assert_nothing_left();
    with_nccl = false;
}

static void threads_make_none(void **state)
{
    struct el_train_config config;
    struct trained trained;
    configure_graph("mlp", EL_F64, 2, &config);
    config.device_graph = true;
    train_on("cpu", false, &config, &trained);
    assert_int_equal(trained.status, EL_ERR_ABSENT);
    assert_non_null(strstr(el_error_message(), "no graphs"));
}

int main(void)
{
    set_up_cards();
    return RUN(open_all, close_all, a_program_over_streams_and_cards, a_wait_that_is_missing_in_a_graph_is_found,
               what_a_graph_cannot_have_is_named, a_step_is_one_launch_and_one_wait, a_card_that_makes_no_graph_says_so,
               a_collective_that_fails_in_a_graph_ends_the_training, threads_make_none);
}
