/* Modes' options: rows that the command line, the record and the modes read. */
#include "tests/test.h"

#include "runtime/modes/dp/fix.h"
#include "runtime/modes/mode_info.h"
#include "runtime/train/train.h"

static struct el_train_config config_of(const char *mode)
{
    struct el_train_config config = {.n_devices = 4, .global_batch = 8};
    el_mode_change(&config, mode);
    return config;
}

/* What every row's first value reads back as, and each choice of it. */
static void values_are_shown_as_they_were_given(void **state)
{
    for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++)
        for (const struct el_mode_option *const *row = mode->options; row && *row; row++) {
            struct el_train_config config = config_of(mode->name);
            char text[EL_MODE_TEXT_BYTES], shown[EL_MODE_TEXT_BYTES];
            if ((*row)->kind == EL_MODE_ELSEWHERE) continue;
            for (const char *at = (*row)->choices ? (*row)->choices : "7"; *at; at += strspn(at, "|")) {
                snprintf(text, sizeof text, "%.*s", (int)strcspn(at, "|"), at);
                at += strlen(text);
                if (strchr(text, ':')) snprintf(strchr(text, ':'), 3, ":7"); /* a number is in the letter's place */
                if (el_mode_option_set(&config, (*row)->name, text) != EL_OK) fail_msg("%s", el_error_message());
                el_mode_option_show(*row, &config, shown, sizeof shown);
                assert_string_equal(shown, text);
            }
            if ((*row)->initial) assert_int_equal(el_mode_option_set(&config, (*row)->name, (*row)->initial), EL_OK);
        }
}

static void lists_of_words_are_bits(void **state)
{
    struct el_train_config config = config_of("dp");
    const struct el_mode_option *row = el_mode_option_of("dp", "dp-fix");
    char shown[EL_MODE_TEXT_BYTES];
    static const struct {
        const char *text;
        unsigned fixes;
    } cases[] = {{"inputs,overlap", EL_DP_FIX_INPUTS | EL_DP_FIX_OVERLAP},
                 {"threads", EL_DP_FIX_THREADS},
                 {"all", EL_DP_FIX_ALL},
                 {"none", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(el_mode_option_set(&config, "dp-fix", cases[i].text), EL_OK);
        assert_int_equal(config.dp_fix, cases[i].fixes);
        el_mode_option_show(row, &config, shown, sizeof shown);
        assert_string_equal(shown, cases[i].text);
    }
    for (int i = 0; i < EL_DP_FIXES; i++) { /* the row's words are the fixes', in the order of their bits */
        assert_int_equal(el_mode_option_set(&config, "dp-fix", el_dp_fix_rows()[i].name), EL_OK);
        assert_int_equal(config.dp_fix, el_dp_fix_rows()[i].fix);
    }
}

static void what_is_no_value_is_refused(void **state)
{
    struct el_train_config dp = config_of("dp"), ddp = config_of("ddp");
    assert_int_equal(el_mode_option_set(&dp, "output-device", "two"), EL_ERR_INVALID);
    assert_string_equal(el_error_message(), "--output-device: 'two' is not a whole number");
    assert_int_equal(el_mode_option_set(&dp, "output-device", "-1"), EL_ERR_INVALID);
    assert_int_equal(el_mode_option_set(&dp, "dp-fix", "inputs,rain"), EL_ERR_INVALID);
    assert_int_equal(el_mode_option_set(&ddp, "static-graph", "maybe"), EL_ERR_INVALID);
    assert_string_equal(el_error_message(), "--static-graph: 'maybe' is not one of off|on");
    assert_int_equal(el_mode_option_set(&ddp, "output-device", "1"), EL_ERR_INVALID);
    assert_string_equal(el_error_message(), "mode ddp has no --output-device");
    assert_null(el_mode_option_of("ddp", "static"));
    assert_null(el_mode_option_of("no such", "static-graph"));
}

/* Two modes' settings lie in one place: another mode does not find them. */
static void settings_end_with_their_mode(void **state)
{
    struct el_train_config config = config_of("ddp");
    char text[EL_MODE_TEXT_BYTES];
    assert_int_equal(el_mode_option_set(&config, "static-graph", "on"), EL_OK);
    el_mode_option_show(el_mode_option_of("dp", "output-device"), &config, text, sizeof text);
    assert_string_equal(text, "0");
    el_mode_change(&config, "ddp");
    el_mode_option_show(el_mode_option_of("ddp", "static-graph"), &config, text, sizeof text);
    assert_string_equal(text, "on");
    el_mode_change(&config, "dp");
    el_mode_change(&config, "ddp");
    el_mode_option_show(el_mode_option_of("ddp", "static-graph"), &config, text, sizeof text);
    assert_string_equal(text, "off");
}

static void what_a_mode_has_not_is_as_without_it(void **state)
{
    struct el_train_config config = config_of("single");
    config.overlap = config.sync_params = config.find_unused = config.broadcast_buffers = true;
    config.n_micro = 5;
    config.n_accumulate = 3;
    el_mode_options_reset(&config);
    assert_true(config.overlap); /* its usual value */
    assert_false(config.sync_params || config.find_unused || config.broadcast_buffers);
    assert_int_equal(config.n_micro, 1);
    assert_int_equal(config.n_accumulate, 3); /* single has it */
    assert_string_equal(config.schedule, "1f1b");
}

RUN_TESTS(NULL, NULL, values_are_shown_as_they_were_given, lists_of_words_are_bits, what_is_no_value_is_refused,
          settings_end_with_their_mode, what_a_mode_has_not_is_as_without_it)
