/* JSON text of anyone's, value by value and at the speed of a disk: a document of a trace would take ten times the
 * file's size in memory, and a document of each event half a minute for a gigabyte.
 *
 *     struct el_scan scan = {.file = file, .name = name, .most = bytes};
 *     el_scan_look(&scan), el_scan_take(&scan)          the next character that is no blank
 *     el_scan_value(&scan)                              the next value's text, in scan.value
 *     struct el_scan_text rest = {scan.value, scan.n};
 *     while ((more = el_scan_member(&rest, &key, &value)) > 0)   of that text, where it is an object
 *     el_scan_free(&scan);
 *
 * Brackets, quotes and names are checked where they are walked through; what a value holds is not before somebody asks
 * for it. Threads: one at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/base/status.h"

enum { EL_SCAN_CHUNK_BYTES = 1 << 16, EL_SCAN_VALUE_BYTES_MAX = 8 << 20 };

struct el_scan {
    FILE *file;
    const char *name;
    uint64_t position, most; /* bytes that were taken, and that may be */
    bool failed;             /* reading did, and has left its message */
    char *value;             /* the last one's text, ended by 0 */
    size_t n, room;
    size_t at, filled;
    char chunk[EL_SCAN_CHUNK_BYTES];
};

/* A piece of a value: of a string what stands between the quotes, with its escapes. */
struct el_scan_text {
    const char *at;
    size_t n;
};

/* EL_ERR_INVALID, with the name and where. */
enum el_status el_scan_fail(const struct el_scan *scan, uint64_t position, const char *what);
/* 0: the end. */
char el_scan_look(struct el_scan *scan);
char el_scan_take(struct el_scan *scan);
/* Reads to the end of the file. false: it could not be read. */
bool el_scan_rest(struct el_scan *scan);
enum el_status el_scan_value(struct el_scan *scan);
void el_scan_free(struct el_scan *scan);

/* The next member of an object, from its { on; `rest` goes on behind it. 1: one; 0: none is left; -1: the text is no
 * object. */
int el_scan_member(struct el_scan_text *rest, struct el_scan_text *key, struct el_scan_text *value);
/* Whether a text, or a value that is a string, is this word; begins with it. */
bool el_scan_is(struct el_scan_text text, const char *word);
bool el_scan_begins(struct el_scan_text text, const char *word);
/* Of a value that is a string; of all others an empty one. */
struct el_scan_text el_scan_string(struct el_scan_text value);
/* false: the value is no whole number. */
bool el_scan_whole(struct el_scan_text value, int64_t *whole_p);
/* 1000 times the number, to the nearest: microseconds since 1970 need more digits than a double has. false: it is no
 * number, or more than 2.2e15. */
bool el_scan_thousandths(struct el_scan_text value, int64_t *thousandths_p);
