/* The last lines of a log, for the message of a failure. Reads the end of the file only: logs may be large. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/launch/launch.h"

/* Where the last `lines` lines of text[0..length) begin. */
static size_t find_lines(const char *text, size_t length, int lines)
{
    size_t end = length;
    while (end > 0 && text[end - 1] == '\n') end--;
    size_t at = end;
    for (int n = 0; at > 0; at--)
        if (text[at - 1] == '\n' && ++n == lines) break;
    return at;
}

void el_launch_log_tail(const char *log_dir, int rank, int lines, char *text, size_t bytes)
{
    char path[4096];
    if (bytes == 0) return;
    text[0] = 0;
    if (lines < 1) return;
    if (rank < 0)
        snprintf(path, sizeof path, "%s/launcher.log", log_dir);
    else
        snprintf(path, sizeof path, "%s/rank-%d.log", log_dir, rank);
    FILE *file = fopen(path, "r");
    if (!file) return;
    if (fseek(file, -(long)(bytes - 1), SEEK_END) != 0) rewind(file);
    size_t length = fread(text, 1, bytes - 1, file);
    fclose(file);
    text[length] = 0;
    for (size_t i = 0; i < length; i++)
        if (!text[i]) text[i] = '?';
    size_t begin = find_lines(text, length, lines);
    memmove(text, text + begin, length - begin + 1);
}
