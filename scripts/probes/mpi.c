/* Probe: is an MPI there, and which? Prints the first words the library says of itself (it may be asked before
 * MPI_Init); the Makefile compiles, links and runs it. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    char words[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    if (MPI_Get_library_version(words, &length) != MPI_SUCCESS) return 1;
    words[strcspn(words, ",\n")] = 0;
    return puts(words) < 0;
}
