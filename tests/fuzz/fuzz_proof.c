// fuzz_proof.c - libFuzzer target: any bytes as a proof tree of one small profile, read and walked.
//
// The optimum of the profile is known: no bytes prove a bound above it.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "solver/exact/proof_check.h"
#include "solver/io/proof_json.h"

enum { ITEMS_MOST = 64 }; // more only cost time

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Two devices, two microbatches, unit times: 2 * 3 and one step each way.
static struct zb_profile *make_profile(void) {
  struct zb_profile *p = NULL;
  if (zb_profile_create(2, 1, 2, ZB_CHAIN, &p, NULL) != ZB_OK) abort();
  for (int s = 0; s < 2; s++) p->f_ns[s] = p->b_ns[s] = p->w_ns[s] = 1;
  if (zb_profile_finish(p, NULL) != ZB_OK) abort();
  return p;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  enum { ENOUGH = 1000 };
  static struct zb_profile *profile;
  if (!profile) profile = make_profile();
  struct zb_proof_list list = {NULL, 0};
  struct zb_error error = {0};
  char *text = malloc(size + 1);
  if (!text) abort();
  if (size > 0) memcpy(text, data, size);
  text[size] = '\0';
  const enum zb_objective objective = size % 2 ? ZB_SPAN : ZB_PERIOD;
  enum zb_status status = zb_proof_parse(text, size, profile, objective, &list, &error);
  if (status == ZB_OK && list.count <= ITEMS_MOST) {
    status = zb_proof_check(profile, objective, ENOUGH, &list, NULL, NULL, &error);
    if (status != ZB_WRONG) abort();
  } else if (status != ZB_OK && status != ZB_BAD_INPUT && status != ZB_WRONG) {
    abort();
  }
  if (status != ZB_OK && (error.text[0] == '\0' || strchr(error.text, '\n'))) abort();
  zb_proof_list_free(&list);
  free(text);
  return 0;
}
