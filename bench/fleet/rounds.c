/* Which pairs work at once. */
#include "bench/fleet/fleet.h"

int el_fleet_rounds(int n)
{
    return n < 2 ? 0 : n - 1 + n % 2;
}

/* The circle method (Kirkman 1847): member 0 stays and the others move on by one place a round; an odd number has an
 * empty place, whose partner rests. */
int el_fleet_partner(int n, int round, int member)
{
    int places = n + n % 2, turning = places - 1;
    if (n < 2) return -1;
    int at = member == 0 ? -1 : (member - 1 + round) % turning; /* its place on the circle */
    int across = member == 0 ? turning - 1 : turning - 2 - at;
    if (at == turning - 1) return 0;
    int partner = 1 + ((across - round) % turning + turning) % turning;
    return partner < n ? partner : -1;
}

int el_fleet_round_of(int n, int most, int k)
{
    int all = el_fleet_rounds(n);
    return most >= all ? k : (int)((long)k * all / most);
}
