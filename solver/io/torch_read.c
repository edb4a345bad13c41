// torch_read.c - what torch's files say about the order of ops.
#include "solver/io/torch_read.h"

static const enum zb_kind kind_of[] = {
    [ZB_TORCH_F] = ZB_F, [ZB_TORCH_I] = ZB_B, [ZB_TORCH_W] = ZB_W, [ZB_TORCH_B] = ZB_BW};

enum zb_status zb_torch_orders(const struct zb_torch_csv *csv, struct zb_file_orders *orders,
                               struct zb_text *notes, struct zb_error *error) {
  enum zb_status status = zb_file_orders_create(csv->ranks, csv->first[csv->ranks], orders, error);
  if (status != ZB_OK) return status;
  orders->places = ZB_PLACES_ROWS;
  orders->torch = true;
  size_t ops = 0;
  for (int r = 0; r < csv->ranks; r++) {
    for (size_t i = csv->first[r]; i < csv->first[r + 1]; i++) {
      const struct zb_torch_action *action = &csv->actions[i];
      if (!zb_torch_word_computes(action->word)) continue;
      orders->place[ops] = action->cell;
      orders->schedule->ops[ops++] = (struct zb_op){action->stage, action->microbatch, kind_of[action->word]};
    }
    orders->schedule->first[r + 1] = ops;
  }
  int64_t split = 0;
  for (size_t i = 0; i < ops; i++)
    split += orders->schedule->ops[i].stage == 0 && orders->schedule->ops[i].kind == ZB_B;
  if (split > 0)
    zb_text_print(
        notes,
        "split backwards of stage 0: %lld; each takes b and w here, in torch nothing in I and all in W\n",
        (long long)split);
  if (csv->overlapped > 0)
    zb_text_print(notes,
                  "%lld overlapped pairs are one op after the other here: a device runs one op at a time\n",
                  (long long)csv->overlapped);
  return ZB_OK;
}

enum zb_status zb_torch_read_compute(const char *text, size_t size, struct zb_file_orders *orders,
                                     struct zb_text *notes, struct zb_error *error) {
  struct zb_torch_csv csv = {0};
  enum zb_status status = zb_torch_csv_parse(text, size, false, &csv, error);
  if (status == ZB_OK) status = zb_torch_orders(&csv, orders, notes, error);
  zb_torch_csv_free(&csv);
  return status;
}
