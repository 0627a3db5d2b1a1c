/* What the cards did: for tests, and at the process's end for FAKE_CARDS_REPORT. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/cards/machine.h"

void cards_count(int device, struct cards_counts *counts_p)
{
    struct cards_machine *machine = cards_machine();
    struct cards_card *card = &machine->cards[device];
    cards_lock(&machine->lock);
    *counts_p = (struct cards_counts){.most_bytes = card->most_bytes,
                                      .left_bytes = card->taken_bytes,
                                      .library_bytes = card->library_bytes,
                                      .pinned_bytes = machine->pinned_bytes,
                                      .streams = card->n_streams,
                                      .events = card->n_events,
                                      .kernels = card->n_kernels,
                                      .copies = card->n_copies,
                                      .waits = card->n_waits,
                                      .graphs = card->n_graphs,
                                      .synchronisations = card->n_synchronisations};
    cards_unlock(&machine->lock);
}

void cards_forget_most(void)
{
    struct cards_machine *machine = cards_machine();
    for (int i = 0; i < machine->n_cards; i++) machine->cards[i].most_bytes = machine->cards[i].taken_bytes;
}

/* "card 0: most 4194304 bytes, left 0 bytes, 0 of 3 streams, 0 of 40 events; 240 kernels, 30 copies, 60 waits, 4 stops"
 */
static void write_card(FILE *file, const struct cards_card *card)
{
    fprintf(file,
            "card %d: most %zu bytes, left %zu bytes, %zu of libraries, %d of %d streams, %d of %d events; "
            "%d kernels, %d copies, %d waits, %d stops, %d graphs, %d synchronisations\n",
            card->number, card->most_bytes, card->taken_bytes, card->library_bytes, card->n_streams,
            card->n_streams_made, card->n_events, card->n_events_made, card->n_kernels, card->n_copies, card->n_waits,
            card->n_blocked, card->n_graphs, card->n_synchronisations);
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("FAKE_CARDS_REPORT");
    struct cards_machine *machine = cards_machine();
    bool used = false;
    while (atomic_load(&machine->stuck)) cards_sleep(&machine->stuck, 1);
    atomic_store(&machine->ending, 1);
    for (int i = 0; i < machine->n_cards; i++) used = used || machine->cards[i].open;
    FILE *file = path && used ? fopen(path, "a") : NULL;
    if (!file) return;
    for (int i = 0; i < machine->n_cards; i++)
        if (machine->cards[i].open) write_card(file, &machine->cards[i]);
    fprintf(file, "host: %zu bytes pinned\n", machine->pinned_bytes);
    fclose(file);
}
