/* A study's arithmetic: straight lines, what each candidate makes of them, and ours against the published. It knows no
 * model and runs nothing. */
#include <math.h>

#include "bench/study/study.h"

static const double mib_bytes = 1 << 20;

struct el_study_line el_study_line(const double *x, const double *y, int n)
{
    double x_mean = 0, y_mean = 0, xx = 0, xy = 0;
    struct el_study_line line = {0};
    for (int i = 0; i < n; i++) x_mean += x[i] / n, y_mean += y[i] / n;
    for (int i = 0; i < n; i++) {
        xx += (x[i] - x_mean) * (x[i] - x_mean);
        xy += (x[i] - x_mean) * (y[i] - y_mean);
    }
    line.slope = xy / xx;
    line.at_zero = y_mean - line.slope * x_mean;
    for (int i = 0; i < n; i++) line.residual = fmax(line.residual, fabs(y[i] - line.at_zero - line.slope * x[i]));
    return line;
}

void el_study_lines(const struct el_study_row *rows, int n, struct el_study_line lines[EL_STUDY_CARDS])
{
    double local[EL_STUDY_ROWS], mib[EL_STUDY_ROWS];
    for (int card = 0; card < EL_STUDY_CARDS; card++) {
        for (int i = 0; i < n && i < EL_STUDY_ROWS; i++) {
            local[i] = (double)rows[i].global_batch / EL_STUDY_CARDS;
            mib[i] = rows[i].card_mib[card];
        }
        lines[card] = el_study_line(local, mib, n);
    }
}

int el_study_copies(enum el_optimizer_kind optimizer, bool peer_copies, bool kept)
{
    int slots = optimizer == EL_OPT_ADAM ? 2 : optimizer == EL_OPT_MOMENTUM ? 1 : 0;
    return 3 + slots + peer_copies + kept;
}

/* main - second = (k - 2) P and second = C + 2 P + A b, both at b = 0: there activations, which no candidate differs
 * in, are out of the way. */
static void solve(const struct el_study_line lines[EL_STUDY_CARDS], double other_mib, double word_mib,
                  struct el_study_candidate *candidate)
{
    double difference_mib = lines[EL_STUDY_MAIN].at_zero - lines[EL_STUDY_SECOND].at_zero;
    candidate->copies = el_study_copies(candidate->optimizer, candidate->peer_copies, candidate->kept);
    candidate->params_mib = difference_mib / (candidate->copies - 2);
    candidate->context_mib = lines[EL_STUDY_SECOND].at_zero - 2 * candidate->params_mib;
    candidate->words = (candidate->params_mib - other_mib) / word_mib;
}

void el_study_candidates(const struct el_study_line lines[EL_STUDY_CARDS], double other_mib, double word_mib,
                         struct el_study_candidate candidates[EL_STUDY_CANDIDATES])
{
    static const enum el_optimizer_kind optimizers[] = {EL_OPT_SGD, EL_OPT_MOMENTUM, EL_OPT_ADAM};
    for (int i = 0; i < EL_STUDY_CANDIDATES; i++) {
        candidates[i] =
            (struct el_study_candidate){.optimizer = optimizers[i / 4], .peer_copies = i / 2 % 2, .kept = i % 2};
        solve(lines, other_mib, word_mib, &candidates[i]);
    }
}

bool el_study_possible(const struct el_study_candidate *candidate)
{
    return candidate->context_mib > 0;
}

const char *el_study_credible(const struct el_study_candidate *candidate)
{
    if (!el_study_possible(candidate)) return "impossible: C not above 0";
    if (candidate->context_mib < EL_STUDY_CONTEXT_LOW_MIB) return "possible, C below any reported";
    if (candidate->context_mib > EL_STUDY_CONTEXT_HIGH_MIB) return "possible, C above any reported";
    return "possible, C as reported";
}

struct el_study_band el_study_band(const struct el_study_row *rows, int copies, double other_mib, double word_mib)
{
    double most_mib = -INFINITY, least_mib = INFINITY;
    struct el_study_band band;
    for (int i = 0; i < EL_STUDY_ROWS; i++) {
        double difference_mib = rows[i].card_mib[EL_STUDY_MAIN] - rows[i].card_mib[EL_STUDY_SECOND];
        most_mib = fmax(most_mib, difference_mib);
        least_mib = fmin(least_mib, difference_mib);
    }
    band.difference_mib[0] = most_mib * (1 - EL_STUDY_DIFFERENCE_PCT / 100);
    band.difference_mib[1] = least_mib * (1 + EL_STUDY_DIFFERENCE_PCT / 100);
    for (int end = 0; end < 2; end++) {
        band.params_mib[end] = band.difference_mib[end] / (copies - 2);
        band.words[end] = (band.params_mib[end] - other_mib) / word_mib;
    }
    return band;
}

void el_study_compare(const struct el_study_row *rows, const struct el_study_line lines[EL_STUDY_CARDS],
                      struct el_study_account *account)
{
    struct el_study_row ours[EL_STUDY_ROWS];
    struct el_study_line our_lines[EL_STUDY_CARDS];
    account->holds = true;
    for (int i = 0; i < EL_STUDY_ROWS; i++) {
        ours[i].global_batch = rows[i].global_batch;
        for (int card = 0; card < EL_STUDY_CARDS; card++)
            ours[i].card_mib[card] = account->card_bytes[i][card] / mib_bytes;
        double published_mib = rows[i].card_mib[EL_STUDY_MAIN] - rows[i].card_mib[EL_STUDY_SECOND];
        double our_mib = ours[i].card_mib[EL_STUDY_MAIN] - ours[i].card_mib[EL_STUDY_SECOND];
        account->difference_error_pct[i] = 100 * (our_mib / published_mib - 1);
        account->difference_holds[i] = fabs(account->difference_error_pct[i]) <= EL_STUDY_DIFFERENCE_PCT;
        account->holds = account->holds && account->difference_holds[i];
    }
    el_study_lines(ours, EL_STUDY_ROWS, our_lines);
    for (int card = 0; card < EL_STUDY_CARDS; card++) {
        account->growth_mib[card] = our_lines[card].slope;
        account->growth_error_pct[card] = 100 * (our_lines[card].slope / lines[card].slope - 1);
    }
    account->growth_holds = fabs(account->growth_error_pct[EL_STUDY_SECOND]) <= EL_STUDY_GROWTH_PCT;
    account->holds = account->holds && account->growth_holds;
}
