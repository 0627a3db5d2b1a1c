/* The table of hooks; see hook.h. */
#include "runtime/gradients/hook.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct el_hook_row rows[EL_HOOK_COUNT] = {
    [EL_HOOK_NONE] = {.name = "none", .sends = "the gradients", .state = "nothing", .source = "DDP without a hook"},
    [EL_HOOK_F32] = {.name = "f32",
                     .sends = "the gradients of bf16-pure in f32",
                     .state = "nothing",
                     .source = "reduce_dtype of PyTorch's MixedPrecision"},
    [EL_HOOK_F16] = {.name = "f16",
                     .sends = "the gradients in f16",
                     .state = "nothing",
                     .source = "PyTorch's fp16_compress_hook"},
    [EL_HOOK_BF16] = {.name = "bf16",
                      .sends = "the gradients in bf16",
                      .state = "nothing",
                      .source = "PyTorch's bf16_compress_hook"},
    [EL_HOOK_POWERSGD] = {.name = "powersgd",
                          .amount = "R",
                          .least = 1,
                          .most = 1024,
                          .sends = "P [rows, R] and Q [columns, R] of each matrix; small ones as they are",
                          .state = "an error of each matrix, P and Q",
                          .source = "PyTorch's powerSGD_hook",
                          .ops = &el_hook_powersgd},
};

const struct el_hook_row *el_hook_row(enum el_hook_kind kind)
{
    return &rows[kind];
}

/* Whether the first `length` characters of `word` are one of "none|powersgd:R", but for what is behind a colon. */
static bool is_choice(const char *choices, const char *word, size_t length)
{
    for (const char *at = choices; *at; at += strcspn(at, "|"), at += *at == '|')
        if (strcspn(at, ":|") == length && !strncmp(at, word, length)) return true;
    return false;
}

static enum el_status read_amount(const struct el_hook_row *row, const char *text, double *amount_p)
{
    char *end;
    double amount = strtod(text, &end);
    bool good = *text && !*end && amount >= row->least && amount <= row->most;
    if (!good || amount != floor(amount))
        return el_fail(EL_ERR_INVALID, "--comm-hook %s%s%.20s: give a whole number from %g to %g, like %s:1", row->name,
                       *text ? ":" : "", text, row->least, row->most, row->name);
    *amount_p = amount;
    return EL_OK;
}

enum el_status el_hook_read(const char *choices, const char *text, struct el_hook *hook_p)
{
    const size_t length = strcspn(text, ":");
    int k = 0;
    struct el_hook hook = {EL_HOOK_NONE, 0};
    while (k < EL_HOOK_COUNT && (strlen(rows[k].name) != length || strncmp(rows[k].name, text, length) != 0)) k++;
    if (k == EL_HOOK_COUNT || !is_choice(choices, text, length) || (text[length] && !rows[k].amount))
        return el_fail(EL_ERR_INVALID, "--comm-hook: '%.32s' is not one of %s", text, choices);
    hook.kind = (enum el_hook_kind)k;
    if (rows[k].amount) EL_TRY(read_amount(&rows[k], text[length] ? text + length + 1 : "", &hook.amount));
    *hook_p = hook;
    return EL_OK;
}

void el_hook_show(const struct el_hook *hook, char *text, size_t bytes)
{
    const struct el_hook_row *row = &rows[hook->kind];
    if (row->amount)
        snprintf(text, bytes, "%s:%g", row->name, hook->amount);
    else
        snprintf(text, bytes, "%s", row->name);
}
