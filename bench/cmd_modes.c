/* `evenload modes`: each mode's row. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/commands.h"
#include "runtime/modes/mode_info.h"

/* Modes with pieces have one rank per copy of the model. */
static const char *loss_of(const struct el_mode_info *mode)
{
    if (mode->loss == EL_LOSS_OF_BATCH) return "single's";
    return el_mode_has_pieces(mode->name) ? "single's; of several copies (--mesh) the mean of their means"
                                          : "the mean of the ranks' means";
}

/* "(3 + S) P, others 2 P": the larger of the end of backward and the optimizer. */
static void describe_memory(const struct el_mode_info *mode, char *text, size_t bytes)
{
    const struct el_mode_memory *memory = &mode->memory;
    const char *p = el_mode_has_pieces(mode->name) || mode->axes & 1U << EL_AXIS_EXPERT ? "P'" : "P";
    snprintf(text, bytes, "(%g + S) %s", fmax(memory->backward, memory->optimizer), p);
    if (memory->words) snprintf(text, bytes, "%s", memory->words);
    if (memory->others > 0) el_text_append(text, bytes, ", others %g %s", memory->others, p);
}

static json_t *variants_of(const struct el_mode_info *mode)
{
    json_t *variants = json_array();
    for (const char *at = mode->variants; at && *at; at += strspn(at, "|")) {
        size_t length = strcspn(at, "|");
        json_array_append_new(variants, json_stringn(at, length));
        at += length;
    }
    return variants;
}

static json_t *options_of(const struct el_mode_info *mode)
{
    json_t *names = json_array();
    for (const struct el_mode_option *const *row = mode->options; row && *row; row++) {
        char called[64];
        el_option_called(el_option_of_command(EL_CMD_RUN, (*row)->name), EL_CMD_RUN, called, sizeof called);
        json_array_append_new(names, json_string(called));
    }
    return names;
}

static json_t *mode_json(const struct el_mode_info *mode)
{
    char memory[64];
    describe_memory(mode, memory, sizeof memory);
    return el_json_of(EL_KEY("mode", mode->name), EL_KEY("does", mode->summary), EL_KEY("loss", loss_of(mode)),
                      EL_KEY("statistics", mode->statistics), EL_KEY("memory", memory), EL_KEY("sends", mode->sends),
                      EL_KEY("options", options_of(mode)), EL_KEY("variants", variants_of(mode)));
}

static void print_mode(const json_t *row)
{
    static const char indent[] = "          ";
    char name[64], options[512] = "";
    snprintf(name, sizeof name, "%-10s", el_json_text(row, "mode", ""));
    el_text_wrap(el_json_text(row, "does", ""), name, indent, stdout);
    el_text_say(indent, indent, stdout, "its loss is %s; memory %s", el_json_text(row, "loss", ""),
                el_json_text(row, "memory", ""));
    el_text_say(indent, indent, stdout, "statistics of batch norm: %s", el_json_text(row, "statistics", ""));
    el_text_say(indent, indent, stdout, "sends %s", el_json_text(row, "sends", ""));
    EL_EACH(option, json_object_get(row, "options"))
        el_text_append(options, sizeof options, "%s%s", *options ? " " : "takes ", json_string_value(option));
    if (*options) el_text_wrap(options, indent, indent, stdout);
}

enum el_status el_cmd_modes(struct el_options *options, int *exit_status_p)
{
    (void)exit_status_p;
    enum el_status status = EL_OK;
    json_t *rows = json_array();
    for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++)
        json_array_append_new(rows, mode_json(mode));
    if (options->json) {
        status = el_print_json(rows, stdout);
    } else {
        EL_EACH(row, rows) print_mode(row);
        fputs("\nMemory of each device at its peak, beside activations. P: all parameters; P': those of its part;\n"
              "S: optimizer's state in copies of P (sgd 0, momentum 1, adam 2); others: devices with replicas only.\n"
              "With batch norm a loss is single's only where the statistics are those of the batch.\n",
              stdout);
    }
    json_decref(rows);
    return status;
}
