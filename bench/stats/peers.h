/* Which of many peers is slow, and which links between them: pure functions of arrays.
 *
 *     el_peers_judge(units, n, &rule, &found);         units[i].bad
 *     n = el_peer_links_judge(&links, alpha, faults, part, &found);
 *
 * Units are hosts or devices of one kind; rates are positive, in any unit, more is better. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* ---- units ----
 *
 * A unit is bad if it is slower than the others' mean by more than `floor`, if that is more than its own repeats'
 * scatter (Student's t, 99 %), and if it stands out of its peers:
 *
 * - Of EL_PEERS_MIN units or more by the generalised extreme Studentized deviate test (Rosner, Technometrics 25,
 *   1983) on logarithms of medians, for at most a third of them, which bounds the rate of false alarms by `alpha` for
 *   all units together. Slow and fast units are left out alike.
 * - Fewer do not show how much good ones differ. Then it is bad if it is slower than the median of the others by
 *   EL_PEERS_FEW_FLOOR, and never of fewer than three. */
enum { EL_PEERS_MIN = 6 };
#define EL_PEERS_FEW_FLOOR 0.15
#define EL_PEERS_ALPHA     0.006 /* the rate of false alarms of a run, by simulation below 0.01 */

struct el_peers_rule {
    double alpha, floor; /* of one figure; 0.03: 3 % slower */
};

struct el_peer {
    const double *rates;
    size_t n;
    double median;    /* NAN: no rates, the unit is left out */
    double deviation; /* logarithm of its median over the centre; negative: slower */
    bool bad, fast;
};

struct el_peers {
    size_t n;
    double centre;  /* of those that do not stand out */
    double sd;      /* of logarithms, between units, as seen */
    double detects; /* the share of speed lost that is found in 95 of 100 cases; NAN: none is */
    bool few;
};
/* Errors: none; no memory leaves all units good and detects NAN. */
void el_peers_judge(struct el_peer *units, size_t n, const struct el_peers_rule *rule, struct el_peers *peers_p);
/* 0.05: 5 % slower. */
double el_peers_slower(double deviation);

/* ---- links between hosts ---- */

/* rates[a * n + b]: of what a sends to b, NAN: not measured; sds: of logarithms over repeats, may be NULL. group[i]: of
 * hosts at one switch; NULL: unknown. */
struct el_peer_links {
    int n;
    const double *rates, *sds;
    const int *group;
};

enum el_peer_fault_kind {
    EL_PEER_HOST,     /* all links of `a`, both ways */
    EL_PEER_SENDS,    /* what `a` sends */
    EL_PEER_RECEIVES, /* what `a` receives */
    EL_PEER_PAIR,     /* `a` and `b`, both ways */
    EL_PEER_ONE_WAY,  /* a to b */
    EL_PEER_SWITCH    /* between the hosts with in_part and the others */
};
struct el_peer_fault {
    enum el_peer_fault_kind kind;
    int a, b;
    double slower; /* share of speed lost: 0.5 is half as fast */
};
enum { EL_PEER_FAULTS_MAX = 64 };
/* Returns how many faults it wrote, worst kinds first. part[n]: the side of each host, for EL_PEER_SWITCH. `peers_p`:
 * of hosts.
 *
 * First parts: hosts that fast links connect (above 0.6 times the upper quartile); several parts of two or more hosts
 * are a switch's, and what is between them is judged apart. Then log rate = sends of a + receives of b + rest, by
 * median polish (Tukey 1977), and each of the three by el_peers_judge's rule: 5 % for hosts, 15 % for pairs. Below
 * EL_PEERS_MIN hosts a link is slow that has less than 0.85 times the upper quartile, and a host all of whose links
 * are. */
int el_peer_links_judge(const struct el_peer_links *links, double alpha,
                        struct el_peer_fault faults[EL_PEER_FAULTS_MAX], int *part, struct el_peers *peers_p);
