#include "runtime/train/meeting.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct el_meeting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int n, n_here;
    unsigned number; /* of times that all had come */
    bool aborted;
};

enum el_status el_meeting_create(int n, struct el_meeting **meeting_p)
{
    struct el_meeting *meeting = calloc(1, sizeof *meeting);
    if (!meeting) return el_fail(EL_ERR_HOST_MEMORY, "no memory for %d threads to meet", n);
    pthread_mutex_init(&meeting->lock, NULL);
    pthread_cond_init(&meeting->changed, NULL);
    meeting->n = n;
    *meeting_p = meeting;
    return EL_OK;
}

void el_meeting_destroy(struct el_meeting *meeting)
{
    if (!meeting) return;
    pthread_cond_destroy(&meeting->changed);
    pthread_mutex_destroy(&meeting->lock);
    free(meeting);
}

enum el_status el_meeting_wait(struct el_meeting *meeting)
{
    if (!meeting) return EL_OK;
    pthread_mutex_lock(&meeting->lock);
    unsigned number = meeting->number;
    if (++meeting->n_here == meeting->n) {
        meeting->n_here = 0;
        meeting->number++;
        pthread_cond_broadcast(&meeting->changed);
    }
    while (meeting->number == number && !meeting->aborted) pthread_cond_wait(&meeting->changed, &meeting->lock);
    bool met = meeting->number != number;
    pthread_mutex_unlock(&meeting->lock);
    return met ? EL_OK : el_fail(EL_ERR_PEER, "another thread has failed before the step");
}

void el_meeting_abort(struct el_meeting *meeting)
{
    if (!meeting) return;
    pthread_mutex_lock(&meeting->lock);
    meeting->aborted = true;
    pthread_cond_broadcast(&meeting->changed);
    pthread_mutex_unlock(&meeting->lock);
}
