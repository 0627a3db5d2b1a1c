/* FAKE_CARDS_FAIL: which calls fail. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cards/machine.h"

enum { RULES_MAX = 16 };

struct rule {
    char what[64];
    int card; /* -1: each, counted together */
    int first, every, code;
    bool has_code;
    atomic_int calls;
};

static struct rule rules[RULES_MAX];
static int n_rules;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void refuse(const char *text)
{
    fprintf(stderr, "fakecards: FAKE_CARDS_FAIL: '%s' is not WHAT:CARD:CALL[/EVERY][=CODE]\n", text);
    abort();
}

/* "cudaMalloc:0:3/2=2" */
static void read_rule(const char *text, struct rule *rule)
{
    char card[8];
    int used = 0;
    const char *at = text;
    if (sscanf(at, "%63[^:]:%7[^:]:%d%n", rule->what, card, &rule->first, &used) != 3) refuse(text);
    at += used;
    rule->card = strcmp(card, "*") == 0 ? -1 : atoi(card);
    if (*at == '/' && sscanf(at, "/%d%n", &rule->every, &used) == 1) at += used;
    rule->has_code = *at == '=' && sscanf(at, "=%d%n", &rule->code, &used) == 1;
    if (rule->has_code) at += used;
    if (*at) refuse(text);
}

static void take_rules(const char *text)
{
    char copy[1024], *rest = copy;
    cards_acquire(rules); /* who read the last ones has done so */
    n_rules = 0;
    if (!text || !*text) return;
    memset(rules, 0, sizeof rules);
    snprintf(copy, sizeof copy, "%s", text);
    for (char *one; (one = strsep(&rest, ",")) && n_rules < RULES_MAX;) read_rule(one, &rules[n_rules++]);
}

static void read_rules(void)
{
    take_rules(getenv("FAKE_CARDS_FAIL"));
}

void cards_set_failures(const char *text)
{
    pthread_once(&once, read_rules);
    take_rules(text);
}

static bool hits(struct rule *rule)
{
    int call = atomic_fetch_add(&rule->calls, 1) + 1;
    return call == rule->first || (rule->every && call > rule->first && (call - rule->first) % rule->every == 0);
}

bool cards_fails(const char *what, int device, int *code_p)
{
    bool fails = false;
    pthread_once(&once, read_rules);
    for (int i = 0; i < n_rules; i++) {
        struct rule *rule = &rules[i];
        if (strcmp(rule->what, what) != 0 || (rule->card >= 0 && rule->card != device) || !hits(rule)) continue;
        if (rule->has_code) *code_p = rule->code;
        fails = true;
    }
    cards_release(rules);
    return fails;
}
