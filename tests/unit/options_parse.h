/* A command line in one text, read into options. */
#pragma once

#include "bench/options/options.h"
#include "tests/unit/words.h"

static struct el_options options;

/* Parses words after a command with its defaults. */
static enum el_status parse(unsigned command, const char *words)
{
    static char text[1024];
    static char *argv[64];
    snprintf(text, sizeof text, "%s", words);
    int argc = words_of("command", text, argv, sizeof argv / sizeof argv[0]);
    el_options_defaults(command, &options);
    return el_options_parse(command, argc, argv, &options);
}
