/* A command line in one text, taken apart at blanks. */
#pragma once

#include <string.h>

/* argv[0] is `command`; `text` is written into, argv points into it and ends with NULL. Returns argc. */
static inline int words_of(char *command, char *text, char *argv[], int room)
{
    int argc = 0;
    char *rest = NULL;
    argv[argc++] = command;
    for (char *word = strtok_r(text, " ", &rest); word && argc < room - 1; word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    argv[argc] = NULL;
    return argc;
}
