/* FAKE_CARDS_FAIL: which calls fail; FAKE_CARDS_SLOW: which take long; FAKE_CARDS_WRONG: which compute wrongly. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cublas_v2.h>
#include <cudnn.h>

#include "tests/cards/calls.h"
#include "tests/cards/machine.h"
#include "tests/cards/nccl.h"

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

void cards_dawdle(const char *what)
{
    const char *text = getenv("FAKE_CARDS_SLOW"), *at = text ? strstr(text, what) : NULL;
    if (at && at[strlen(what)] == '=') usleep((useconds_t)(1000 * atof(at + strlen(what) + 1)));
}

bool cards_is_wrong(const char *what)
{
    const char *list = getenv("FAKE_CARDS_WRONG");
    return list && strstr(list, what);
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

/* Where a rule has no code: a call that makes something has no memory for it, another fails without a reason. */
static int usual_code(const char *name)
{
    bool makes =
        strstr(name, "Create") || strstr(name, "Alloc") || strstr(name, "Malloc") || strstr(name, "Instantiate");
    if (strncmp(name, "cublas", 6) == 0) return makes ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_EXECUTION_FAILED;
    if (strncmp(name, "cudnn", 5) == 0)
        return makes ? CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED : CUDNN_STATUS_EXECUTION_FAILED;
    if (strncmp(name, "nccl", 4) == 0) return ncclSystemError;
    if (strncmp(name, "nvml", 4) == 0) return 999;
    return strcmp(name, "cudaGetDeviceCount") == 0 ? cudaErrorSystemNotReady
           : makes                                 ? cudaErrorMemoryAllocation
                                                   : cudaErrorUnknown;
}

/* The card that a call is for: where it says so, that one, else the thread's. */
static int card_of(const char *name, long first, long second)
{
    long card = strcmp(name, "cudaSetDevice") == 0             ? first
                : strcmp(name, "cudaGetDeviceProperties") == 0 ? second
                                                               : cards_thread_device();
    return card >= 0 && card < CARDS_MAX ? (int)card : 0;
}

bool cards_call_fails(const char *name, long first, long second, atomic_int *counts, long *code_p)
{
    int card = card_of(name, first, second), code = usual_code(name);
    atomic_fetch_add(&counts[card], 1);
    if (!cards_fails(name, card, &code)) return false;
    if (strncmp(name, "cuda", 4) == 0) cards_error(code);
    if (strncmp(name, "nccl", 4) == 0)
        nccl_group_fail(nccl_fail((ncclResult_t)code, "%s: socketProgress: connection closed by remote peer", name));
    if (strcmp(name, "cudaStreamEndCapture") == 0) cards_break_capture((cudaStream_t)(uintptr_t)first, code);
    *code_p = code;
    return true;
}
