// proof_list.c - freeing.
#include "solver/model/proof_list.h"

#include <stdlib.h>

void zb_proof_list_free(struct zb_proof_list *list) {
  free(list->item);
  *list = (struct zb_proof_list){0};
}
