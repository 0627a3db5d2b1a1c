/* Which of many peers is slow, and which pairs work at once: pure functions of arrays.
 *
 *     for (k = 0; k < el_fleet_rounds(n); k++) partner = el_fleet_partner(n, k, me);
 *     el_fleet_judge(units, n, &rule, &found);         units[i].bad
 *     el_fleet_judge_links(&links, &rule, faults, most);
 *
 * Units are hosts or devices of one kind; rates are positive, in any unit, more is better. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* ---- rounds of disjoint pairs: in el_fleet_rounds(n) rounds each of n members meets each other one once ---- */

int el_fleet_rounds(int n);
/* In a round from 0; -1: it rests. */
int el_fleet_partner(int n, int round, int member);
/* The k-th of at most `most` rounds, spread over all. */
int el_fleet_round_of(int n, int most, int k);

/* ---- units ----
 *
 * A unit is bad if it is slower than the others' mean by more than `floor`, if that is more than its own repeats'
 * scatter (Student's t, 99 %), and if it stands out of its peers:
 *
 * - Of EL_FLEET_PEERS_MIN units or more by the generalised extreme Studentized deviate test (Rosner, Technometrics 25,
 *   1983) on logarithms of medians, for at most a third of them, which bounds the rate of false alarms by `alpha` for
 *   all units together. Slow and fast units are left out alike.
 * - Fewer do not show how much good ones differ. Then it is bad if it is slower than the median of the others by
 *   EL_FLEET_FEW_FLOOR, and never of fewer than three. */
enum { EL_FLEET_PEERS_MIN = 6 };
#define EL_FLEET_FEW_FLOOR 0.15
#define EL_FLEET_ALPHA     0.01 /* of a whole run: each figure of EL_FLEET_FIGURES has its share */
enum { EL_FLEET_FIGURES = 7 };

struct el_fleet_rule {
    double alpha, floor; /* of one figure; 0.03: 3 % slower */
};

struct el_fleet_unit {
    const double *rates;
    size_t n;
    double median;    /* NAN: no rates, the unit is left out */
    double deviation; /* logarithm of its median over the centre; negative: slower */
    bool bad, fast;
};

struct el_fleet_peers {
    size_t n;
    double centre;  /* of those that do not stand out */
    double sd;      /* of logarithms, between units, as seen */
    double detects; /* the share of speed lost that is found in 95 of 100 cases; NAN: none is */
    bool few;
};
/* Errors: none; no memory leaves all units good and detects NAN. */
void el_fleet_judge(struct el_fleet_unit *units, size_t n, const struct el_fleet_rule *rule,
                    struct el_fleet_peers *peers_p);
/* 0.05: 5 % slower. */
double el_fleet_slower(double deviation);

/* ---- links between hosts ---- */

/* rates[a * n + b]: of what a sends to b, NAN: not measured; sds: of logarithms over repeats, may be NULL. group[i]: of
 * hosts at one switch; NULL: unknown. */
struct el_fleet_links {
    int n;
    const double *rates, *sds;
    const int *group;
};

enum el_fleet_fault {
    EL_FLEET_HOST,     /* all links of `a`, both ways */
    EL_FLEET_SENDS,    /* what `a` sends */
    EL_FLEET_RECEIVES, /* what `a` receives */
    EL_FLEET_PAIR,     /* `a` and `b`, both ways */
    EL_FLEET_ONE_WAY,  /* a to b */
    EL_FLEET_SWITCH    /* between the hosts with in_part and the others */
};
struct el_fleet_link_fault {
    enum el_fleet_fault kind;
    int a, b;
    double slower; /* share of speed lost: 0.5 is half as fast */
};
enum { EL_FLEET_FAULTS_MAX = 64 };
/* Returns how many faults it wrote, worst kinds first. part[n]: the side of each host, for EL_FLEET_SWITCH. `peers_p`:
 * of hosts.
 *
 * First parts: hosts that fast links connect (above 0.6 times the upper quartile); several parts of two or more hosts
 * are a switch's, and what is between them is judged apart. Then log rate = sends of a + receives of b + rest, by median
 * polish (Tukey 1977), and each of the three by el_fleet_judge's rule: 5 % for hosts, 15 % for pairs. Below
 * EL_FLEET_PEERS_MIN hosts a link is slow that has less than 0.85 times the upper quartile, and a host all of whose links
 * are. */
int el_fleet_judge_links(const struct el_fleet_links *links, double alpha,
                         struct el_fleet_link_fault faults[EL_FLEET_FAULTS_MAX], int *part,
                         struct el_fleet_peers *peers_p);
