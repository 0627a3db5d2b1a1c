#include "bench/base/escape.h"

#include <string.h>

const struct el_escape el_escape_xml = {"&<>\"\n", {"&amp;", "&lt;", "&gt;", "&quot;", " "}},
                       el_escape_markdown = {"|\n<>`*_", {"\\|", " ", "&lt;", "&gt;", "\\`", "\\*", "\\_"}},
                       el_escape_annotation = {"%\r\n", {"%25", "%0D", "%0A"}},
                       el_escape_title = {"%\r\n:,", {"%25", "%0D", "%0A", "%3A", "%2C"}};

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
