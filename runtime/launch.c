// launch.c - a table of variables.
#include "runtime/launch.h"

#include <stddef.h>
#include <stdlib.h>

bool zb_was_launched(void) {
  static const char *const words[] = {
      "PMI_RANK",             // MPICH, Intel MPI, srun --mpi=pmi2
      "PMIX_RANK",            // Open MPI 5, srun --mpi=pmix
      "OMPI_COMM_WORLD_RANK", // Open MPI
      "MV2_COMM_WORLD_RANK",  // MVAPICH2
  };
  for (size_t k = 0; k < sizeof words / sizeof *words; k++)
    if (getenv(words[k])) return true;
  return false;
}
