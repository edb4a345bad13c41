// launch.h - was this process started by mpirun, srun or their like?
#ifndef ZB_LAUNCH_H
#define ZB_LAUNCH_H

#include <stdbool.h>

// By the words that launchers of MPI leave in the environment.
bool zb_was_launched(void);

#endif
