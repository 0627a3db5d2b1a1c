/* Which processes belong to the tree, and their figures. */
#include "profiles/process_tree.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"

enum { PATH_BYTES = 512, RANGE_MAX = 2000 };
/* A new process is sampled at this age and at each doubling, so that short-lived ones are sampled near their peak, and
 * an early exec is noticed. */
static const int64_t YOUNG_NS = 10000000, GROWN_NS = 100000000;
static const int64_t PSS_AGE_NS = 300000000;    /* younger processes: no Pss */
static const int64_t PSS_AGAIN_NS = 2000000000; /* read again after this time: sharing may have changed */
static const double PSS_GROWTH_RATIO = 1.05;    /* read again after this growth */

/* "0.12 0.20 0.30 2/345 6789": the last number issued. 0: unknown. */
static pid_t last_number(const struct el_process_tree *tree)
{
    char text[128];
    int last = 0;
    ssize_t got = tree->loadavg < 0 ? -1 : pread(tree->loadavg, text, sizeof text - 1, 0);
    if (got <= 0) return 0;
    text[got] = '\0';
    return sscanf(text, "%*f %*f %*f %*d/%*d %d", &last) == 1 && last > 0 ? last : 0;
}

enum el_status el_process_tree_open(const char *root, pid_t ancestor, struct el_process_tree **tree_p)
{
    char path[PATH_BYTES];
    struct el_process_tree *tree = calloc(1, sizeof *tree);
    if (!tree) return el_fail(EL_ERR_HOST_MEMORY, "no memory for a tree of processes");
    snprintf(path, sizeof path, "%s/proc/loadavg", root);
    tree->root = root;
    tree->ancestor = ancestor;
    tree->loadavg = open(path, O_RDONLY | O_CLOEXEC);
    tree->last = last_number(tree); /* all processes of the tree are newer */
    *tree_p = tree;
    return EL_OK;
}

void el_process_tree_close(struct el_process_tree *tree)
{
    if (!tree) return;
    for (int i = 0; i < tree->n; i++) {
        el_process_close(&tree->list[i]->process);
        free(tree->list[i]);
    }
    if (tree->loadavg >= 0) close(tree->loadavg);
    free(tree);
}

int el_process_tree_find(const struct el_process_tree *tree, pid_t pid)
{
    for (int i = tree->n_alive - 1; i >= 0; i--)
        if (tree->list[tree->alive[i]]->process.pid == pid) return tree->alive[i];
    return -1;
}

/* Between fork and exec a process shows its parent's memory. */
static void forget_memory(struct el_tree_process *p)
{
    p->peak_bytes = p->pss_bytes = p->own_peak_bytes = -1;
    p->pss_resident_bytes = p->pss_ns = 0;
    p->resident_byte_s = p->looked_s = 0;
}

/* In the mean, memory counts for the time since the last sample. */
static void take(struct el_tree_process *p, const struct el_process_look *look, int64_t now_ns)
{
    double seconds = 1e-9 * (double)(now_ns - p->end_ns);
    /* Ending processes and other users' show no program. */
    bool other = p->looked && p->look.program && look->program && p->look.program != look->program;
    bool renamed = p->looked && look->resident_bytes > 0 && strcmp(look->name, p->look.name) != 0;
    if (other) forget_memory(p);
    if (other || renamed) el_process_identify(&p->process, &p->identity);
    p->looked = true;
    if (look->resident_bytes > 0) {
        p->resident_byte_s += seconds * (double)look->resident_bytes;
        p->looked_s += seconds;
    }
    if (look->resident_bytes > p->peak_bytes) p->peak_bytes = look->resident_bytes;
    if (look->own_bytes > p->own_peak_bytes) p->own_peak_bytes = look->own_bytes;
    if (look->peak_bytes > p->peak_bytes) p->peak_bytes = look->peak_bytes;
    if (look->n_threads > p->n_threads) p->n_threads = look->n_threads;
    uint64_t program = look->program != 0 ? look->program : p->look.program;
    p->look = *look;
    p->look.program = program;
    p->end_ns = now_ns;
}

static void end(struct el_tree_process *p)
{
    p->alive = false;
    el_process_close(&p->process);
}

static void look_at(struct el_tree_process *p, int64_t now_ns)
{
    struct el_process_look look;
    bool known = el_process_look(&p->process, &look);
    if (known) take(p, &look, now_ns);
    /* wait for all threads: the first may end before the others */
    if (!known || look.state == 'X' || (look.state == 'Z' && look.n_threads <= 1)) end(p);
}

static void forget_ended(struct el_process_tree *tree)
{
    int n = 0;
    for (int i = 0; i < tree->n_alive; i++)
        if (tree->list[tree->alive[i]]->alive) tree->alive[n++] = tree->alive[i];
    tree->n_alive = n;
}

void el_process_tree_look(struct el_process_tree *tree)
{
    for (int i = 0; i < tree->n_alive; i++) look_at(tree->list[tree->alive[i]], el_clock_ns());
    forget_ended(tree);
}

/* They are at the end of the list. */
bool el_process_tree_look_young(struct el_process_tree *tree)
{
    bool any = false;
    int64_t now_ns = el_clock_ns();
    for (int i = tree->n_alive - 1; i >= 0; i--) {
        struct el_tree_process *p = tree->list[tree->alive[i]];
        int64_t age_ns = now_ns - p->begin_ns;
        if (age_ns > 2 * GROWN_NS) break;
        if (now_ns < p->again_ns) continue;
        p->again_ns = age_ns < GROWN_NS ? p->begin_ns + 2 * age_ns : INT64_MAX;
        look_at(p, now_ns);
        any = true;
    }
    if (any) forget_ended(tree);
    return any;
}

void el_process_tree_look_at(struct el_process_tree *tree, pid_t pid)
{
    int i = el_process_tree_find(tree, pid);
    if (i < 0) return;
    look_at(tree->list[i], el_clock_ns());
    forget_ended(tree);
}

/* Readings are expensive for large processes, and mainly growth raises the highest Pss. */
static bool is_pss_due(const struct el_tree_process *p, int64_t now_ns)
{
    if (now_ns - p->begin_ns < PSS_AGE_NS || p->look.resident_bytes <= 0) return false;
    return p->pss_ns == 0 || now_ns - p->pss_ns >= PSS_AGAIN_NS ||
           (double)p->look.resident_bytes > PSS_GROWTH_RATIO * (double)p->pss_resident_bytes;
}

static int64_t grown_bytes(const struct el_tree_process *p)
{
    return p->pss_ns == 0 ? INT64_MAX : p->look.resident_bytes - p->pss_resident_bytes;
}

void el_process_tree_look_shared(struct el_process_tree *tree)
{
    int64_t now_ns = el_clock_ns();
    struct el_tree_process *most = NULL;
    for (int i = 0; i < tree->n_alive; i++) {
        struct el_tree_process *p = tree->list[tree->alive[i]];
        if (is_pss_due(p, now_ns) && (!most || grown_bytes(p) > grown_bytes(most))) most = p;
    }
    if (!most) return;
    look_at(most, now_ns); /* the resident memory of this reading */
    if (!most->alive) {
        forget_ended(tree);
        return;
    }
    int64_t resident_bytes = most->look.resident_bytes, pss_bytes = el_process_pss_bytes(&most->process);
    most->pss_ns = now_ns;
    if (pss_bytes > most->pss_bytes) most->pss_bytes = pss_bytes;
    if (resident_bytes > most->pss_resident_bytes) most->pss_resident_bytes = resident_bytes;
}

enum finding {
    MISSING, /* no process yet, or none for its parent */
    STRANGER,
    OURS, /* in the tree now */
    NO_MEMORY
};

static enum finding add(struct el_process_tree *tree, pid_t pid, pid_t parent)
{
    struct el_process process;
    if (!el_process_open(tree->root, pid, &process)) return STRANGER;
    bool full = tree->n >= EL_TREE_PROCESSES_MAX;
    struct el_tree_process *p = full ? NULL : calloc(1, sizeof *p);
    tree->n_not_followed += full;
    if (!p) {
        el_process_close(&process);
        return full ? STRANGER : NO_MEMORY;
    }
    *p = (struct el_tree_process){
        .process = process, .parent = parent, .alive = true, .peak_bytes = -1, .pss_bytes = -1, .own_peak_bytes = -1};
    p->above = el_process_tree_find(tree, parent);
    p->begin_ns = p->end_ns = el_clock_ns();
    el_process_identify(&p->process, &p->identity);
    tree->list[tree->n] = p;
    tree->alive[tree->n_alive++] = tree->n++;
    p->again_ns = p->begin_ns + YOUNG_NS;
    look_at(p, p->begin_ns);
    return OURS;
}

static bool is_missing(const struct el_process_tree *tree, pid_t pid)
{
    for (int i = 0; i < tree->n_missing; i++)
        if (tree->missing[i] == pid) return true;
    return false;
}

/* A child may appear before its parent. */
static enum finding consider(struct el_process_tree *tree, pid_t pid)
{
    if (pid == tree->ancestor || el_process_tree_find(tree, pid) >= 0) return STRANGER;
    pid_t parent = el_process_parent(tree->root, pid);
    if (parent > 0 && (parent == tree->ancestor || el_process_tree_find(tree, parent) >= 0))
        return add(tree, pid, parent);
    return parent < 0 || is_missing(tree, parent) ? MISSING : STRANGER;
}

static enum el_status no_memory(void)
{
    return el_fail(EL_ERR_HOST_MEMORY, "no memory for one more process of the tree");
}

/* Until a pass finds none: a child may precede its parent. */
static enum el_status consider_all(struct el_process_tree *tree)
{
    char path[PATH_BYTES];
    enum finding finding = STRANGER;
    snprintf(path, sizeof path, "%s/proc", tree->root);
    for (bool any = true; any && finding != NO_MEMORY;) {
        DIR *folder = opendir(path);
        any = false;
        for (struct dirent *entry; folder && finding != NO_MEMORY && (entry = readdir(folder));) {
            if (!isdigit((unsigned char)entry->d_name[0])) continue;
            finding = consider(tree, atoi(entry->d_name));
            any |= finding == OURS;
        }
        if (folder) closedir(folder);
    }
    forget_ended(tree);
    return finding == NO_MEMORY ? no_memory() : EL_OK;
}

void el_process_tree_expect(struct el_process_tree *tree, pid_t pid)
{
    pid_t last = last_number(tree);
    if (tree->loadavg < 0 || (last >= pid && last - pid <= RANGE_MAX)) return;
    close(tree->loadavg);
    tree->loadavg = -1;
}

enum el_status el_process_tree_discover(struct el_process_tree *tree)
{
    pid_t last = last_number(tree), from = tree->last, again[EL_TREE_MISSING_MAX];
    int n_again = tree->n_missing;
    tree->last = last;
    if (last == 0 || from == 0 || last < from || last - from > RANGE_MAX) return consider_all(tree);
    memcpy(again, tree->missing, sizeof again);
    tree->n_missing = 0;
    for (int i = 0; i < n_again; i++)
        if (consider(tree, again[i]) == NO_MEMORY) return no_memory();
    for (pid_t pid = from + 1; pid <= last; pid++) {
        enum finding finding = consider(tree, pid);
        if (finding == NO_MEMORY) return no_memory();
        /* A number is issued a moment before its process appears: try once more. */
        if (finding == MISSING && tree->n_missing < EL_TREE_MISSING_MAX) tree->missing[tree->n_missing++] = pid;
    }
    if (n_again > 0 || last != from) forget_ended(tree);
    return EL_OK;
}
