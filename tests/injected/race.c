/* An injected data race: two threads add to one counter without a lock. The thread sanitizer's job must fail on it, or
 * that job proves nothing. */
#include <pthread.h>
#include <stdio.h>

enum { ROUNDS = 10000 };
static long counter;

static void *count(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) counter++;
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
