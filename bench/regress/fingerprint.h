/* What a machine and a build are, in one word: figures of two runs are compared only where it is the same.
 *
 *     el_fingerprint_of(run, &print);                 from the record alone; nothing is read from this machine
 *     print.key;                                      "3f0c5a1f9e21d0aa": the stored baseline's folder
 *     el_fingerprint_differences(a.fields, b.fields, text, sizeof text);
 *     el_fingerprint_free(&print);
 *
 * The key is FNV-1a, 64 bits, over canonical "field=value\n" lines in the order of the rows in fingerprint.c. "none":
 * this machine has none, or does not say; "unknown": the record is older than the field. Both differ from a value and
 * from each other. Host's name and load are not in it.
 */
#ifndef EL_BENCH_FINGERPRINT_H
#define EL_BENCH_FINGERPRINT_H

#include <jansson.h>

#include "runtime/base/status.h"

enum { EL_FINGERPRINT_BYTES = 17 };

struct el_fingerprint {
    char key[EL_FINGERPRINT_BYTES]; /* 16 hex digits */
    json_t *fields;                 /* {field: text}, owned */
};

/* Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_fingerprint_of(const json_t *run, struct el_fingerprint *print_p);
void el_fingerprint_free(struct el_fingerprint *print);

/* How many fields differ; the first few as "cpu_microcode 0x1, then 0x2; ... and 3 more" in `text`. */
int el_fingerprint_differences(const json_t *base, const json_t *head, char *text, size_t bytes);
/* "Intel(R) Xeon(R) Processor, 2 cores, Linux 6.18, gcc 12.2.0": what a person knows a machine by. */
void el_fingerprint_words(const json_t *fields, char *text, size_t bytes);

#endif
