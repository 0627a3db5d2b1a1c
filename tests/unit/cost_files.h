/* Records of costs, written with ' for ", and the model that they were measured with. */
#pragma once

#include <stdio.h>
#include <string.h>

#include "runtime/train/train.h"

/* The text with " for ', and `is` in place of the first `was` ("": as it is). */
static inline void write_text(const char *name, const char *text, const char *was, const char *is)
{
    FILE *file = fopen(name, "w");
    const char *at = *was ? strstr(text, was) : NULL;
    assert_non_null(file);
    for (; *text; text++) {
        if (text == at) {
            fputs(is, file);
            text += strlen(was) - 1;
        } else
            fputc(*text == '\'' ? '"' : *text, file);
    }
    fclose(file);
}

static inline struct el_train_config linear(void)
{
    struct el_train_config config = {.mode = "ddp", .model = {.name = "linear"}, .dtype = EL_F32};
    assert_int_equal(el_model_resolve(&config.model), EL_OK);
    return config;
}
