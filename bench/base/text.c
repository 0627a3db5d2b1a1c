/* Numbers and lines for people. */
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>

#include "bench/base/text.h"
#include "runtime/base/utf8.h"

static void set_thousands(const char *digits, char *text, size_t capacity)
{
    size_t n = strlen(digits), used = 0;
    for (size_t i = 0; i < n && used + 2 < capacity; i++) {
        if (i > 0 && (n - i) % 3 == 0 && digits[i - 1] != '-') text[used++] = ',';
        text[used++] = digits[i];
    }
    text[used] = '\0';
}

const char *el_text_figure(double value, char text[EL_FIGURE_BYTES])
{
    char digits[EL_FIGURE_BYTES];
    if (isnan(value)) {
        snprintf(text, EL_FIGURE_BYTES, "-");
        return text;
    }
    /* without rounding noise, as files have it: 0.000725 and 0.00072500000000000003 are one figure */
    snprintf(digits, sizeof digits, "%.12g", value);
    value = strtod(digits, NULL);
    double size = fabs(value);
    if (size >= 99.95 && size < 1e12) {
        snprintf(digits, sizeof digits, "%.0f", value);
        set_thousands(digits, text, EL_FIGURE_BYTES);
    } else if (size >= 1e12) {
        snprintf(text, EL_FIGURE_BYTES, "%.3g", value);
    } else if (size >= 9.995 || size == 0) {
        snprintf(text, EL_FIGURE_BYTES, size == 0 ? "%.0f" : "%.1f", value);
    } else {
        snprintf(text, EL_FIGURE_BYTES, size >= 0.0995 ? "%.2f" : "%.2g", value);
    }
    return text;
}

const char *el_text_mib(double bytes, char text[EL_FIGURE_BYTES])
{
    double mib = bytes / 1048576;
    if (isnan(mib)) return el_text_figure(NAN, text);
    if (fabs(mib) >= 999.95) return el_text_figure(mib, text);
    if (mib != 0 && fabs(mib) < 0.995) return el_text_figure(mib, text); /* two digits, so that parts add up */
    snprintf(text, EL_FIGURE_BYTES, mib == 0 ? "%.0f" : "%.1f", mib);
    return text;
}

const char *el_text_time(double s, char text[EL_FIGURE_BYTES])
{
    static const double units[] = {31557600, 604800, 86400, 3600, 60, 1, 1e-3};
    static const char *const names[] = {"year", "week", "day", "h", "min", "s", "ms"};
    int u = 0;
    while (u < 6 && s < units[u]) u++;
    snprintf(text, EL_FIGURE_BYTES, "%.3g %s", s / units[u], names[u]);
    if (u < 3 && strncmp(text, "1 ", 2) != 0) strcat(text, "s");
    return text;
}

void el_text_append(char *text, size_t bytes, const char *format, ...)
{
    size_t used = strlen(text);
    va_list list;
    va_start(list, format);
    vsnprintf(text + used, bytes - used, format, list);
    va_end(list);
}

void el_text_line(FILE *out, const char *format, ...)
{
    char *text = NULL;
    va_list list;
    va_start(list, format);
    int n = vasprintf(&text, format, list);
    va_end(list);
    if (n < 0) return;
    el_utf8_printable(text);
    fprintf(out, "%s\n", text);
    free(text);
}

/* A pipe or a file has no width. */
static int columns_of(FILE *out)
{
    enum { NARROWEST = 40 };
    struct winsize size;
    int file = fileno(out);
    if (file < 0 || ioctl(file, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_col >= EL_REPORT_COLUMNS)
        return EL_REPORT_COLUMNS;
    return size.ws_col > NARROWEST ? size.ws_col : NARROWEST;
}

static void wrap(const char *text, const char *first, const char *rest, FILE *out)
{
    const int columns = columns_of(out);
    int at = fprintf(out, "%s", first);
    int begin = at;
    while (*text != '\0') {
        int n = (int)strcspn(text, " ");
        if (at > begin && at + 1 + n > columns) {
            fputc('\n', out);
            at = begin = fprintf(out, "%s", rest);
        }
        at += fprintf(out, "%s%.*s", at > begin ? " " : "", n, text);
        text += n;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

void el_text_wrap(const char *text, const char *first, const char *rest, FILE *out)
{
    char *shown = strdup(text), *head = strdup(first);
    if (shown != NULL && head != NULL) {
        el_utf8_printable(shown);
        el_utf8_printable(head);
        wrap(shown, head, rest, out);
    }
    free(shown);
    free(head);
}

void el_text_say(const char *first, const char *rest, FILE *out, const char *format, ...)
{
    char *text = NULL;
    va_list list;
    va_start(list, format);
    int n = vasprintf(&text, format, list);
    va_end(list);
    if (n < 0) return;
    el_text_wrap(text, first, rest, out);
    free(text);
}

const struct el_escape el_escape_xml = {"&<>\"\n", {"&amp;", "&lt;", "&gt;", "&quot;", " "}},
                       el_escape_annotation = {"%\r\n", {"%25", "%0D", "%0A"}},
                       el_escape_title = {"%\r\n:,", {"%25", "%0D", "%0A", "%3A", "%2C"}};

/* "- x", "+ x", "1. x" and "---" would begin an item or a rule. Returns how much was put. */
static size_t put_begin(const char *text, FILE *out)
{
    size_t digits = strspn(text, "0123456789");
    char mark = text[digits], next = mark ? text[digits + 1] : '\0';
    bool item = next && strchr(digits ? "." : "-+", mark) && (next == ' ' || next == mark);
    if (item) fprintf(out, "%.*s\\%c", (int)digits, text, mark);
    return item ? digits + 1 : 0;
}

/* <, > and & become entities, because not every reader knows \<. GitHub and GitLab find @name and #1 in the finished
 * text, so the invisible U+2060 separates them; an address is found by "://" and "www.". */
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
