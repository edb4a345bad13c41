// glpk_stub.c - stands in for glpk_solve.c in a build without GLPK.
#include "ilp/glpk_solve.h"

#include <stdio.h>

void zb_mip_solve(const struct zb_ilp_program *program, const struct zb_mip_options *options,
                  struct zb_mip_result *result) {
  (void)program;
  (void)options;
  *result = (struct zb_mip_result){.end = ZB_MIP_ABSENT};
  snprintf(result->trouble, sizeof result->trouble, "%s", zb_mip_version());
}

bool zb_mip_available(void) { return false; }

const char *zb_mip_version(void) {
  return "this build has no GLPK: install it (Debian: apt-get install libglpk-dev) and build again";
}
