/* The program. Nothing here but the way in, so that tests can link all the rest. */
#include "bench/commands.h"

int main(int argc, char **argv)
{
    return el_main(argc, argv);
}
