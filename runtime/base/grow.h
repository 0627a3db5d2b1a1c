/* Growing arrays.
 *
 *     struct el_span *spans = NULL;  size_t n = 0, room = 0;
 *     if (!EL_GROW(spans, room, n + 1)) return el_fail_errno("spans");      unchanged, and ENOMEM
 *     spans[n++] = span;                                                    to be freed
 */
#pragma once

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* At least doubles. false: no memory. */
#define EL_GROW(array, room, wanted) el_grow(&(array), &(room), (wanted), sizeof *(array))

/* `array_p` points to a pointer of any type: hence the copies. */
static inline bool el_grow(void *array_p, size_t *room_p, size_t wanted, size_t element_bytes)
{
    void *array;
    if (wanted <= *room_p) return true;
    size_t room = *room_p * 2 > wanted ? *room_p * 2 : wanted + 63;
    memcpy(&array, array_p, sizeof array);
    array = realloc(array, room * element_bytes);
    if (!array) return false;
    memcpy(array_p, &array, sizeof array);
    *room_p = room;
    return true;
}
