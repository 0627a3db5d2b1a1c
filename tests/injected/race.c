/* An injected data race: two threads add to one counter without a lock, and both count until the other has begun: the
 * sanitizer keeps no trace of a thread that ended before. Its job must fail on this, or that job proves nothing. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { ROUNDS = 10000 };
static long counter;
static atomic_int begun;

static void *count(void *unused)
{
    (void)unused;
    atomic_fetch_add_explicit(&begun, 1, memory_order_relaxed); /* relaxed: it orders nothing */
    for (int i = 0; i < ROUNDS || atomic_load_explicit(&begun, memory_order_relaxed) < 2; i++) counter++;
    return NULL;
}

int main(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, count, NULL)) return 1;
    count(NULL);
    pthread_join(thread, NULL);
    puts("1..1");
    printf("ok 1 - counted to %ld\n", counter);
    return 0;
}
