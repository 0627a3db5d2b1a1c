/* Reading records of older schemas. */
#ifndef EL_BENCH_RECORD_SCHEMA_H
#define EL_BENCH_RECORD_SCHEMA_H

#include <jansson.h>

/* A run's document in place: what schema 1 called otherwise gets its name of today. Leaves newer ones as they are. */
void el_record_upgrade(json_t *run);

#endif
