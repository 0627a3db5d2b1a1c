#include "bench/base/escape.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/base/utf8.h"

const struct el_escape el_escape_xml = {"&<>\"\n", {"&amp;", "&lt;", "&gt;", "&quot;", " "}},
                       el_escape_annotation = {"%\r\n", {"%25", "%0D", "%0A"}},
                       el_escape_title = {"%\r\n:,", {"%25", "%0D", "%0A", "%3A", "%2C"}};

/* What makes a line an item of a list: "- x", "+ x", "1. x", or a rule: "---". Returns how much was put. */
static size_t put_begin(const char *text, FILE *out)
{
    size_t digits = strspn(text, "0123456789");
    char mark = text[digits], next = mark ? text[digits + 1] : '\0';
    bool item = next && strchr(digits ? "." : "-+", mark) && (next == ' ' || next == mark);
    if (item) fprintf(out, "%.*s\\%c", (int)digits, text, mark);
    return item ? digits + 1 : 0;
}

/* By a backslash where that is enough. <, > and & are entities too, since not every reader of Markdown knows \<. GitHub
 * and GitLab find @name and #1 in the finished text, where no backslash is left: U+2060, which has no width, stands
 * between; an address is found by "://" and "www.". */
void el_escape_markdown(const char *text, FILE *out)
{
    static const char joiner[] = "\xE2\x81\xA0";
    for (const char *at = text + put_begin(text, out); *at; at++) {
        bool address = !strncmp(at, "://", 3) || (*at == '.' && at - text >= 3 && !strncasecmp(at - 3, "www", 3));
        if (*at == '<' || *at == '>' || *at == '&')
            fputs(*at == '<' ? "&lt;" : *at == '>' ? "&gt;" : "&amp;", out);
        else if (strchr("\\`*_[]()!|~$@#", *at) || address)
            fprintf(out, "\\%c%s", *at, *at == '@' || *at == '#' ? joiner : "");
        else if (*at == '\n' || (unsigned char)*at >= ' ')
            fputc(*at == '\n' ? ' ' : *at, out);
    }
}

void el_escape_csv(const char *text, FILE *out)
{
    char *shown = strdup(text);
    if (shown == NULL) return;
    el_utf8_printable(shown);
    bool quoted = strpbrk(shown, ",\"") != NULL;
    if (quoted) fputc('"', out);
    if (*shown && strchr("=+-@", *shown)) fputc('\'', out);
    for (const char *at = shown; *at != '\0'; at++) {
        if (*at == '"') fputc('"', out);
        fputc(*at, out);
    }
    if (quoted) fputc('"', out);
    free(shown);
}

void el_escape_put(const struct el_escape *form, const char *text, FILE *out)
{
    for (; *text; text++) {
        const char *at = strchr(form->special, *text);
        if (at)
            fputs(form->words[at - form->special], out);
        else if ((unsigned char)*text >= ' ')
            fputc(*text, out);
    }
}
