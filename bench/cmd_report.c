/* `evenload report DIR`. */
#include <string.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/text.h"
#include "bench/commands.h"
#include "bench/page/page.h"
#include "bench/plot/plot.h"

/* Without gnuplot the page has only tables. */
static void draw_missing(const struct el_printed_kind *kind, const char *dir)
{
    char picture[EL_PATH_BYTES + 32];
    if (kind && strcmp(kind->file, "results.json") != 0) return;
    snprintf(picture, sizeof picture, "%s/plots/%s.svg", dir, kind ? kind->figures[0]->name : "memory");
    if (access(picture, R_OK) == 0) return;
    const enum el_status status = el_page_plot(dir, NULL, NULL);
    if (status != EL_ERR_INVALID) el_say_not_drawn(status, stdout); /* that is, but there is nothing to draw */
}

struct pages {
    const json_t *run;
    const char *dir;
};

static enum el_status write_html(const void *context, FILE *out)
{
    const struct pages *pages = context;
    return el_page_html(pages->run, pages->dir, out);
}

static enum el_status write_markdown(const void *context, FILE *out)
{
    const struct pages *pages = context;
    return el_page_markdown(pages->run, out);
}

static enum el_status write_pages(const struct pages *pages, const char *markdown)
{
    char path[EL_PATH_BYTES + 32];
    snprintf(path, sizeof path, "%s/report.html", pages->dir);
    draw_missing(el_printed_kind(pages->run), pages->dir);
    EL_TRY(el_write_file(path, write_html, pages));
    el_text_line(stdout, "%s    (one file: open it in a browser, send it, attach it)", path);
    if (!markdown[0]) return EL_OK;
    EL_TRY(el_write_file(markdown, write_markdown, pages));
    el_text_line(stdout, "%s", markdown);
    return EL_OK;
}

static enum el_status read_folder(const struct el_options *options, json_t **run_p)
{
    EL_TRY(el_options_check_records_alone("report", options));
    EL_TRY(el_printed_read(options->dir, run_p));
    return *run_p ? EL_OK : el_read_records("report", options, run_p);
}

enum el_status el_cmd_report(struct el_options *options, int *exit_status_p)
{
    json_t *run;
    (void)exit_status_p;
    if (!options->dir[0])
        return el_fail(EL_ERR_INVALID, "report: which run? give its folder: evenload report results/...");
    EL_TRY(read_folder(options, &run));
    enum el_status status = write_pages(&(struct pages){run, options->dir}, options->regress.markdown);
    json_decref(run);
    return status;
}
