/* Options that were given and would change nothing: refused, since whoever gave them meant something. */
#include <string.h>

#include "bench/options/options.h"

/* How it is shown, not what is measured. */
static bool is_of_showing(const struct el_option_row *row)
{
    return !strcmp(row->name, "json") || !strcmp(row->name, "quiet");
}

enum el_status el_options_check_together(const struct el_options *options)
{
    static const char *const unused[] = {"steps", "min-time"};
    for (size_t i = 0; i < sizeof unused / sizeof unused[0] && options->train.epochs; i++)
        if (el_option_given(options, unused[i]))
            return el_fail(EL_ERR_INVALID, "--%s: --epochs %lld trains whole epochs: leave one of them out", unused[i],
                           (long long)options->train.epochs);
    bool has_buckets = options->bucket_view == EL_VIEW_OFF;
    for (int m = 0; m < options->n_modes; m++)
        has_buckets = has_buckets || el_mode_takes(options->modes[m], "bucket-view");
    if (!has_buckets)
        return el_fail(EL_ERR_INVALID, "--bucket-view: buckets are %s's: leave it out, or train in that mode",
                       el_mode_with("bucket-view")->name);
    if (el_option_given(options, "momentum") && options->train.optimizer != EL_OPT_MOMENTUM)
        return el_fail(EL_ERR_INVALID, "--momentum: --optimizer %s has none: leave one of them out",
                       options->train.optimizer == EL_OPT_ADAM ? "adam" : "sgd");
    return EL_OK;
}

/* Commands that measure, but for a folder, whose records they only show: there no other option has a meaning. */
enum el_status el_options_check_records_alone(const char *word, const struct el_options *options)
{
    for (const struct el_option_row *row = el_option_rows(); row->name; row++)
        if (el_option_given(options, row->name) && !is_of_showing(row))
            return el_fail(EL_ERR_INVALID,
                           "%s %s reads records and measures nothing: leave out --%s, or leave out the folder", word,
                           options->dir, row->name);
    return EL_OK;
}
