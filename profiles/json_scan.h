/* A streaming JSON scanner for untrusted text: a tree of a trace would take ten times the file's size in memory, a tree
 * per event half a minute per gigabyte.
 *
 *     struct el_scan scan = {.file = file, .name = name, .most = bytes};
 *     el_scan_look(&scan), el_scan_take(&scan)          the next character that is no blank
 *     el_scan_value(&scan)                              the next value's text, in scan.value
 *     struct el_scan_text rest = {scan.value, scan.n};
 *     while ((more = el_scan_member(&rest, &key, &value)) > 0)   the members of an object
 *     el_scan_free(&scan);
 *
 * Checks brackets, quotes and names as it passes them; values only when asked for. Threads: one at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/base/status.h"

enum { EL_SCAN_CHUNK_BYTES = 1 << 16, EL_SCAN_VALUE_BYTES_MAX = 8 << 20 };

struct el_scan {
    FILE *file;
    const char *name;
    uint64_t position, most; /* bytes taken, and their limit */
    bool failed;             /* reading failed, and has left its message */
    char *value;             /* the last value's text, zero-terminated */
    size_t n, room;
    size_t at, filled;
    char chunk[EL_SCAN_CHUNK_BYTES];
};

/* A piece of a value; of a string between the quotes, with escapes. */
struct el_scan_text {
    const char *at;
    size_t n;
};

/* EL_ERR_INVALID with name and position. */
enum el_status el_scan_fail(const struct el_scan *scan, uint64_t position, const char *what);
/* 0: the end. */
char el_scan_look(struct el_scan *scan);
char el_scan_take(struct el_scan *scan);
/* Reads to the end of the file. false: read error. */
bool el_scan_rest(struct el_scan *scan);
enum el_status el_scan_value(struct el_scan *scan);
void el_scan_free(struct el_scan *scan);

/* The next member of an object, from its {; `rest` moves behind it. 1: one; 0: none left; -1: no object. */
int el_scan_member(struct el_scan_text *rest, struct el_scan_text *key, struct el_scan_text *value);
/* For a text, or a string value. */
bool el_scan_is(struct el_scan_text text, const char *word);
bool el_scan_begins(struct el_scan_text text, const char *word);
/* A string value's text; else empty. */
struct el_scan_text el_scan_string(struct el_scan_text value);
/* false: no whole number. */
/* A number as a string: without its quotes. */
struct el_scan_text el_scan_unquoted(struct el_scan_text value);
bool el_scan_whole(struct el_scan_text value, int64_t *whole_p);
/* 1000 times the number, rounded: microseconds since 1970 exceed a double's digits. false: no number, or above
 * 2.2e15. */
bool el_scan_thousandths(struct el_scan_text value, int64_t *thousandths_p);
