// transport_mpi_stub.c - a build without MPI: says how to get it.
#include "runtime/transport.h"

const char *const zb_mpi_name = "none";

static enum zb_status start(void **shared, struct zb_error *error) {
  (void)shared;
  return zb_fail(error, ZB_BAD_INPUT,
                 "--transport mpi: this build has no MPI (apt-get install libmpich-dev mpich, then make)");
}

static void leave(void *shared, enum zb_status status) { (void)shared, (void)status; }

const struct zb_transport zb_transport_mpi = {
    .name = "mpi",
    .help = "a process a device, started by mpirun or srun",
    .apart = true,
    .host_memory = true,
    .start = start,
    .leave = leave,
};
