/* Rounds of pairs, and verdicts on made-up fleets whose answer is known; by simulation how often good ones are accused
 * and slow ones found. With -v and EVENLOAD_LONG=1 it prints docs/fleet.md's tables. */
#include "tests/test.h"

#include <math.h>
#include <stdlib.h>

#include "bench/fleet/fleet.h"
#include "tests/unit/near.h"
#include "tests/unit/test_random_common.h"

enum { REPEATS = 5, HOSTS_MAX = 64 };

/* ---- rounds ---- */

static void each_meets_each_other_once(void **state)
{
    for (int n = 2; n <= 33; n++) {
        bool met[33][33] = {{false}};
        int rounds = el_fleet_rounds(n), pairs = 0;
        assert_int_equal(rounds, n % 2 ? n : n - 1);
        for (int k = 0; k < rounds; k++)
            for (int i = 0; i < n; i++) {
                int other = el_fleet_partner(n, k, i);
                if (other < 0) continue;
                assert_true(other < n && other != i && el_fleet_partner(n, k, other) == i && !met[i][other]);
                met[i][other] = true;
                pairs++;
            }
        assert_int_equal(pairs, n * (n - 1));
    }
    assert_int_equal(el_fleet_rounds(1), 0);
    assert_int_equal(el_fleet_partner(1, 0, 0), -1);
    assert_int_equal(el_fleet_round_of(64, 100, 62), 62);
    assert_int_equal(el_fleet_round_of(65, 13, 12), 60);
}

/* ---- devices ---- */

/* Each repeat 1 % about a median of 100, of host `slow` of `rate`. */
static struct el_peers judge(int n, int slow, double rate, bool bad[HOSTS_MAX])
{
    static const double scatter[REPEATS] = {0.995, 1.005, 1, 0.99, 1.01};
    static const double among[4] = {1, 1.004, 0.997, 1.001};
    double rates[HOSTS_MAX][REPEATS];
    struct el_peer units[HOSTS_MAX];
    const struct el_peers_rule rule = {EL_PEERS_ALPHA / EL_FLEET_FIGURES, 0.03};
    struct el_peers peers;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < REPEATS; k++) rates[i][k] = (i == slow ? rate : 100) * among[i % 4] * scatter[k];
        units[i] = (struct el_peer){.rates = rates[i], .n = REPEATS};
    }
    el_peers_judge(units, (size_t)n, &rule, &peers);
    for (int i = 0; i < n; i++) bad[i] = units[i].bad;
    return peers;
}

static int accused(const bool *bad, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) sum += bad[i];
    return sum;
}

static void a_slow_device_stands_out(void **state)
{
    bool bad[HOSTS_MAX];
    struct el_peers peers = judge(16, 5, 90, bad);
    assert_true(bad[5] && accused(bad, 16) == 1 && !peers.few);
    near(peers.centre, 100 * (4 * (1 + 1.004 + 0.997 + 1.001) - 1.004) / 15, 0.01);
    assert_true(peers.detects > 0.03 && peers.detects < 0.05);
    judge(16, 5, 98, bad); /* beyond their scatter, and within the floor */
    assert_int_equal(accused(bad, 16), 0);
    judge(16, 5, 120, bad); /* a fast one is no fault */
    assert_int_equal(accused(bad, 16), 0);
    judge(16, -1, 0, bad);
    assert_int_equal(accused(bad, 16), 0);
}

/* Three of twelve: an outlier's neighbours do not hide it. */
static void several_slow_ones_do_not_hide_each_other(void **state)
{
    double rates[12][REPEATS];
    struct el_peer units[12];
    const struct el_peers_rule rule = {EL_PEERS_ALPHA / EL_FLEET_FIGURES, 0.03};
    struct el_peers peers;
    for (int i = 0; i < 12; i++) {
        for (int k = 0; k < REPEATS; k++) rates[i][k] = (i < 3 ? 80 : 100) * (1 + 0.001 * ((i * 5 + k) % 7));
        units[i] = (struct el_peer){.rates = rates[i], .n = REPEATS};
    }
    el_peers_judge(units, 12, &rule, &peers);
    for (int i = 0; i < 12; i++) assert_int_equal(units[i].bad, i < 3);
}

static void few_are_judged_by_a_wide_floor(void **state)
{
    bool bad[HOSTS_MAX];
    struct el_peers peers = judge(4, 1, 80, bad);
    assert_true(peers.few && bad[1] && accused(bad, 4) == 1);
    judge(4, 1, 90, bad);
    assert_int_equal(accused(bad, 4), 0);
    judge(3, 1, 140, bad); /* a fast one makes the others no slower */
    assert_int_equal(accused(bad, 3), 0);
    peers = judge(3, 1, 50, bad);
    assert_true(bad[1] && accused(bad, 3) == 1 && peers.detects == EL_PEERS_FEW_FLOOR);
    peers = judge(2, 1, 10, bad); /* either may be the slow one */
    assert_true(accused(bad, 2) == 0 && isnan(peers.detects));
    peers = judge(1, -1, 0, bad);
    assert_true(accused(bad, 1) == 0 && isnan(peers.detects));
}

/* Repeats that differ widely prove nothing of the unit that they are of. */
static void own_scatter_counts(void **state)
{
    double rates[8][REPEATS] = {{100, 20, 90, 21, 99}};
    struct el_peer units[8];
    const struct el_peers_rule rule = {EL_PEERS_ALPHA / EL_FLEET_FIGURES, 0.03};
    struct el_peers peers;
    for (int i = 0; i < 8; i++) {
        for (int k = 0; k < REPEATS && i; k++) rates[i][k] = 100 + 0.1 * ((i * 3 + k) % 5);
        units[i] = (struct el_peer){.rates = rates[i], .n = REPEATS};
    }
    el_peers_judge(units, 8, &rule, &peers);
    assert_false(units[0].bad);
    units[3].n = 0; /* one that was not measured */
    el_peers_judge(units, 8, &rule, &peers);
    assert_true(isnan(units[3].median) && !units[3].bad && peers.n == 7);
}

/* ---- links ---- */

struct planted {
    int from, to; /* -1: any */
    double ratio;
};

static int judge_links(int n, const struct planted *planted, int n_planted, const int *group,
                       struct el_peer_fault *faults, int *part)
{
    double rates[HOSTS_MAX * HOSTS_MAX];
    struct el_peers peers;
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++) {
            double *rate = &rates[a * n + b];
            *rate = a == b ? NAN : 10 * (1 + 0.004 * ((a * 7 + b * 3) % 5));
            for (int p = 0; p < n_planted; p++)
                if ((planted[p].from < 0 || planted[p].from == a) && (planted[p].to < 0 || planted[p].to == b))
                    *rate *= planted[p].ratio;
        }
    const struct el_peer_links links = {.n = n, .rates = rates, .group = group};
    return el_peer_links_judge(&links, EL_PEERS_ALPHA / EL_FLEET_FIGURES, faults, part, &peers);
}

static void links_are_told_from_hosts(void **state)
{
    static const struct {
        int n, n_planted;
        struct planted planted[3];
        enum el_peer_fault_kind kind;
        int a, b;
    } cases[] = {{8, 1, {{2, 5, 0.5}}, EL_PEER_ONE_WAY, 2, 5},
                 {8, 2, {{2, 5, 0.5}, {5, 2, 0.5}}, EL_PEER_PAIR, 2, 5},
                 {8, 1, {{3, -1, 0.5}}, EL_PEER_SENDS, 3, 3},
                 {8, 1, {{-1, 3, 0.5}}, EL_PEER_RECEIVES, 3, 3},
                 {8, 2, {{3, -1, 0.8}, {-1, 3, 0.8}}, EL_PEER_HOST, 3, 3},
                 {8, 2, {{3, -1, 0.2}, {-1, 3, 0.2}}, EL_PEER_HOST, 3, 3}, /* as slow as another part of the network */
                 {4, 2, {{1, -1, 0.5}, {-1, 1, 0.5}}, EL_PEER_HOST, 1, 1},
                 {3, 1, {{1, -1, 0.5}}, EL_PEER_SENDS, 1, 1},
                 {5, 1, {{0, 4, 0.5}}, EL_PEER_ONE_WAY, 0, 4},
                 {16, 1, {{7, -1, 0.9}}, EL_PEER_SENDS, 7, 7}};
    struct el_peer_fault faults[EL_PEER_FAULTS_MAX];
    int part[HOSTS_MAX];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int n = judge_links(cases[i].n, cases[i].planted, cases[i].n_planted, NULL, faults, part);
        assert_int_equal(n, 1);
        assert_true(faults[0].kind == cases[i].kind && faults[0].a == cases[i].a && faults[0].b == cases[i].b);
        near(faults[0].slower, 1 - cases[i].planted[0].ratio, 0.02);
    }
    for (int hosts = 2; hosts <= 16; hosts++) assert_int_equal(judge_links(hosts, NULL, 0, NULL, faults, part), 0);
}

/* Two halves: no host stands out, what is between them does; found with and without knowing who is at which switch. */
static void a_switch_is_told_from_its_hosts(void **state)
{
    static const int group[8] = {0, 0, 0, 0, 4, 4, 4, 4};
    struct planted planted[32];
    struct el_peer_fault faults[EL_PEER_FAULTS_MAX];
    int part[HOSTS_MAX], n = 0;
    for (int a = 0; a < 4; a++)
        for (int b = 4; b < 8; b++) {
            planted[n++] = (struct planted){a, b, 0.4};
            planted[n++] = (struct planted){b, a, 0.4};
        }
    for (int known = 0; known < 2; known++) {
        assert_int_equal(judge_links(8, planted, n, known ? group : NULL, faults, part), 1);
        assert_true(faults[0].kind == EL_PEER_SWITCH && part[0] == part[3] && part[4] == part[7] && part[0] != part[4]);
        near(faults[0].slower, 0.6, 0.02);
    }
    for (int i = 0; i < n; i++) planted[i].ratio = 0.8; /* too little to be seen without the groups */
    assert_int_equal(judge_links(8, planted, n, group, faults, part), 1);
    assert_true(faults[0].kind == EL_PEER_SWITCH);
    assert_int_equal(judge_links(8, NULL, 0, group, faults, part), 0);
}

/* Three racks of three: the uplink of the last one is slow. Two of two: few hosts. */
static void a_slow_rack_is_the_one_that_is_said(void **state)
{
    static const int racks[9] = {0, 0, 0, 3, 3, 3, 6, 6, 6}, two[4] = {0, 0, 2, 2};
    struct planted planted[40];
    struct el_peer_fault faults[EL_PEER_FAULTS_MAX];
    int part[HOSTS_MAX], n = 0;
    for (int a = 0; a < 6; a++)
        for (int b = 6; b < 9; b++) {
            planted[n++] = (struct planted){a, b, 0.4};
            planted[n++] = (struct planted){b, a, 0.4};
        }
    assert_int_equal(judge_links(9, planted, n, racks, faults, part), 1);
    assert_true(faults[0].kind == EL_PEER_SWITCH && part[faults[0].a] == part[8]);
    n = 0;
    for (int a = 0; a < 2; a++)
        for (int b = 2; b < 4; b++) {
            planted[n++] = (struct planted){a, b, 0.4};
            planted[n++] = (struct planted){b, a, 0.4};
        }
    for (int known = 0; known < 2; known++) {
        assert_int_equal(judge_links(4, planted, n, known ? two : NULL, faults, part), 1);
        assert_true(faults[0].kind == EL_PEER_SWITCH);
    }
}

/* One of five has not come: the others are judged as four. */
static void a_host_without_links_is_left_out(void **state)
{
    double rates[25];
    struct el_peers peers;
    struct el_peer_fault faults[EL_PEER_FAULTS_MAX];
    int part[5];
    for (int a = 0; a < 5; a++)
        for (int b = 0; b < 5; b++) rates[a * 5 + b] = a == b || a == 4 || b == 4 ? NAN : a == 1 || b == 1 ? 5 : 10;
    const struct el_peer_links links = {.n = 5, .rates = rates};
    assert_int_equal(el_peer_links_judge(&links, EL_PEERS_ALPHA, faults, part, &peers), 1);
    assert_true(faults[0].kind == EL_PEER_HOST && faults[0].a == 1 && peers.n == 4 && peers.few);
}

/* ---- by simulation ---- */

struct noise {
    double repeats, hosts;
    bool heavy; /* repeats: Student's t of 4 degrees of freedom */
};

static double t4(struct random *random)
{
    double squares = 0, z = random_normal(random);
    for (int i = 0; i < 4; i++) squares += pow(random_normal(random), 2);
    return z / sqrt(squares / 4) / sqrt(2);
}

static double drawn(struct random *random, bool heavy)
{
    return heavy ? t4(random) : random_normal(random);
}

/* Of `times` fleets: in how many a good one was accused, or host 1, that is `slower`, was found. */
static double share(struct random *random, int n, struct noise noise, double slower, int times, double *detects_p)
{
    const struct el_peers_rule rule = {EL_PEERS_ALPHA / EL_FLEET_FIGURES, 0.03};
    static double rates[HOSTS_MAX][REPEATS];
    struct el_peer units[HOSTS_MAX];
    int hits = 0;
    *detects_p = 0;
    for (int t = 0; t < times; t++) {
        struct el_peers peers;
        bool bad[HOSTS_MAX];
        for (int i = 0; i < n; i++) {
            double own = random_normal(random) * noise.hosts + (i == 1 ? log(1 - slower) : 0);
            for (int k = 0; k < REPEATS; k++) rates[i][k] = exp(own + drawn(random, noise.heavy) * noise.repeats);
            units[i] = (struct el_peer){.rates = rates[i], .n = REPEATS};
        }
        el_peers_judge(units, (size_t)n, &rule, &peers);
        for (int i = 0; i < n; i++) bad[i] = units[i].bad;
        hits += slower > 0 ? bad[1] : accused(bad, n) > 0;
        *detects_p += peers.detects / times;
    }
    return (double)hits / times;
}

static void false_alarms_are_rare_and_slow_hosts_are_found(void **state)
{
    struct random random = random_seeded(51);
    double detects;
    assert_true(share(&random, 8, (struct noise){0.005, 0.003, false}, 0.05, 400, &detects) > 0.95);
    assert_true(share(&random, 8, (struct noise){0.02, 0.01, false}, 0, 2000, &detects) <= 0.005);
    assert_true(share(&random, 32, (struct noise){0.02, 0.01, false}, 0, 600, &detects) <= 0.01);
    assert_true(share(&random, 16, (struct noise){0.02, 0.01, false}, 0.2, 300, &detects) > 0.95);
    share(&random, 16, (struct noise){0.02, 0.01, false}, 0, 300, &detects);
    near(share(&random, 16, (struct noise){0.02, 0.01, false}, detects, 600, &detects), 0.95, 0.04);
}

/* All seven figures of a run, any of which may accuse. */
static void print_tables(void **state)
{
    static const int hosts[] = {6, 8, 16, 64};
    static const struct noise noises[] = {{0.005, 0.003, false}, {0.01, 0.005, false}, {0.02, 0.01, false},
                                          {0.005, 0.003, true},  {0.01, 0.005, true},  {0.02, 0.01, true}};
    static const double slower[] = {0.03, 0.05, 0.1, 0.2};
    struct random random = random_seeded(7);
    const char *asked = getenv("EVENLOAD_LONG");
    if (!asked || *asked != '1') skip();
    for (size_t h = 0; h < sizeof hosts / sizeof hosts[0]; h++)
        for (size_t i = 0; i < sizeof noises / sizeof noises[0]; i++) {
            double detects, one = share(&random, hosts[h], noises[i], 0, 20000, &detects);
            print_message("%2d hosts, repeats %.1f %%, hosts %.1f %%, %s: a run accuses %.2f %%; found", hosts[h],
                          100 * noises[i].repeats, 100 * noises[i].hosts, noises[i].heavy ? "t, 4 df" : "normal",
                          100 * (1 - pow(1 - one, EL_FLEET_FIGURES)));
            assert_true(noises[i].heavy || 1 - pow(1 - one, EL_FLEET_FIGURES) <= 0.011);
            for (int s = 0; s < 4; s++) {
                double ignored;
                print_message(" %.0f %%: %.0f", 100 * slower[s],
                              100 * share(&random, hosts[h], noises[i], slower[s], 2000, &ignored));
            }
            print_message("; detects %.1f %%\n", 100 * detects);
        }
}

RUN_TESTS(NULL, NULL, each_meets_each_other_once, a_slow_device_stands_out, several_slow_ones_do_not_hide_each_other,
          few_are_judged_by_a_wide_floor, own_scatter_counts, links_are_told_from_hosts,
          a_switch_is_told_from_its_hosts, a_slow_rack_is_the_one_that_is_said, a_host_without_links_is_left_out,
          false_alarms_are_rare_and_slow_hosts_are_found, print_tables)
