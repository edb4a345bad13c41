// verdict.c - the comparison in words: who wins, by how much over what everybody runs, and what holds it
// back.
#include <string.h>

#include "solver/cli/cause.h"
#include "solver/cli/compare.h"
#include "solver/cli/quantity.h"
#include "solver/io/text.h"
#include "solver/model/number.h"

static const char *const usual[] = {"1f1b", "1f1b-interleaved"};
enum { USUAL = sizeof usual / sizeof *usual };

static bool fits(const struct zb_compare_row *row) {
  return row->status == ZB_OPTIMAL || row->status == ZB_FEASIBLE;
}

static const struct zb_compare_row *find(const struct zb_compare *compare, const char *method) {
  for (int k = 0; k < compare->count; k++)
    if (strcmp(compare->rows[k].method, method) == 0) return &compare->rows[k];
  return NULL;
}

static void say_winner(const struct zb_compare *compare, struct zb_text *text) {
  const struct zb_compare_row *best = &compare->rows[compare->best];
  char cost[ZB_QUANTITY_TEXT], bubble[ZB_QUANTITY_TEXT], gap[ZB_QUANTITY_TEXT];
  zb_text_print(text, "%s wins: %s %s, bubble %s, ", best->method, zb_objective_word(compare->objective),
                zb_time_text(best->cost_ns, cost), zb_percent_text(best->bubble_rate, bubble));
  if (best->status == ZB_OPTIMAL)
    zb_text_put(text, "proven optimal for its placement.\n");
  else
    zb_text_print(text, "within %s of the bound for its placement.\n", zb_percent_text(best->gap, gap));
}

static bool same_place(const struct zb_compare_row *a, const struct zb_compare_row *b) {
  return a->placement == b->placement && a->chunks == b->chunks;
}

// The question of which family: the best row of every placement, where there are several.
static void say_places(const struct zb_compare *compare, struct zb_text *text) {
  char place[ZB_PLACE_TEXT], cost[ZB_QUANTITY_TEXT];
  int said = 0;
  for (int k = 0; k < compare->count; k++) {
    const struct zb_compare_row *row = &compare->rows[k];
    bool first = fits(row);
    for (int before = 0; before < k; before++)
      if (same_place(&compare->rows[before], row)) first = false;
    if (!first || k == compare->best) continue;
    if (said++ == 0) zb_text_print(text, "The best on the other placements:");
    zb_text_print(text, "%s %s on %s (%s)", said > 1 ? "," : "", row->method,
                  zb_place_text(row->placement, row->chunks, place), zb_time_text(row->cost_ns, cost));
  }
  if (said) zb_text_put(text, ".\n");
}

// Messages are as large on every placement: their number is the volume, next to a chain's one each way and
// boundary.
static void say_volume(const struct zb_compare *compare, struct zb_text *text) {
  const struct zb_compare_row *best = &compare->rows[compare->best];
  const int chain = 2 * (compare->devices - 1);
  const int64_t each = best->comm_count / compare->microbatches;
  if (best->placement == ZB_CHAIN || chain == 0) return;
  zb_text_print(text,
                "It sends %lld messages a microbatch, %.3g times the volume of a chain; a device sends "
                "up to %d and receives as many.\n",
                (long long)each, (double)each / chain, best->most_sends);
}

static void say_shift(const struct zb_compare *compare, struct zb_text *text) {
  const struct zb_compare_shift *shift = &compare->shift;
  char bytes[ZB_QUANTITY_TEXT], needs[ZB_QUANTITY_TEXT];
  if (shift->bytes == 0) return;
  const char *end = shift->limit_bytes == ZB_NO_LIMIT          ? ""
                    : shift->needs_bytes <= shift->limit_bytes ? ", which fits"
                                                               : ", which does not fit";
  zb_text_print(
      text,
      "On a v the last stage lies on device %d: if the %s more static memory of device %d go with it, "
      "device %d needs %s%s.\n",
      shift->to, zb_bytes_text(shift->bytes, bytes), shift->from, shift->to,
      zb_bytes_text(shift->needs_bytes, needs), end);
}

static void say_rival(const struct zb_compare *compare, struct zb_text *text) {
  const struct zb_compare_rival *rival = &compare->rival;
  char less[ZB_QUANTITY_TEXT], cost[ZB_QUANTITY_TEXT], place[ZB_PLACE_TEXT];
  if (!rival->method) return;
  zb_place_text(rival->placement, rival->chunks, place);
  if (rival->auto_ns < rival->method_ns)
    zb_text_print(text, "On %s%s, auto takes %s less than %s (%s).\n", place,
                  rival->has_memory ? " and in the memory that it keeps on each device" : "",
                  zb_percent_text(zb_ratio(rival->method_ns, rival->auto_ns), less), rival->method,
                  zb_time_text(rival->auto_ns, cost));
  else if (rival->method_ns == rival->bound_ns)
    zb_text_print(text, "%s is optimal on %s.\n", rival->method, place);
}

// Whether constructing would have done: the best heuristic of the searches' placement against what the best
// of these found, and what is proven.
static void say_search(const struct zb_compare *compare, struct zb_text *text) {
  const struct zb_compare_row *search = NULL, *heuristic = NULL;
  char above[ZB_QUANTITY_TEXT], gap[ZB_QUANTITY_TEXT];
  for (int k = compare->count - 1; k >= 0; k--)
    if (fits(&compare->rows[k]) && !compare->rows[k].heuristic) search = &compare->rows[k];
  for (int k = compare->count - 1; k >= 0 && search; k--) {
    const struct zb_compare_row *row = &compare->rows[k];
    if (fits(row) && row->heuristic && row->placement == search->placement && row->chunks == search->chunks)
      heuristic = row;
  }
  if (!heuristic) return;
  zb_percent_text((double)(heuristic->cost_ns - search->cost_ns) / (double)zb_max(1, search->cost_ns), above);
  zb_percent_text(heuristic->gap, gap);
  if (heuristic->status == ZB_OPTIMAL)
    zb_text_print(text, "%s is optimal: searching its placement finds nothing faster.\n", heuristic->method);
  else if (search->status == ZB_OPTIMAL)
    zb_text_print(text, "%s is %s above the optimum that %s found and proved.\n", heuristic->method, above,
                  search->method);
  else if (heuristic->cost_ns > search->cost_ns)
    zb_text_print(text, "%s is %s above what %s found, and at most %s from the optimum.\n", heuristic->method,
                  above, search->method, gap);
  else
    zb_text_print(text, "%s is at most %s from the optimum; %s found nothing faster in its time.\n",
                  heuristic->method, gap, search->method);
}

// Against what most people run today. Equal cost is no gain, and said so, even where the winner has a newer
// name.
static void say_gain(const struct zb_compare *compare, struct zb_text *text) {
  const struct zb_compare_row *best = &compare->rows[compare->best];
  char amount[ZB_QUANTITY_TEXT], cost[ZB_QUANTITY_TEXT];
  bool gains = false;
  for (int k = 0; k < USUAL; k++) {
    const struct zb_compare_row *row = find(compare, usual[k]);
    if (!row || !fits(row) || row->cost_ns <= best->cost_ns) continue;
    zb_text_print(text, "%s %s less than %s (%s)", gains ? " and" : "That is",
                  zb_percent_text(zb_ratio(row->cost_ns, best->cost_ns), amount), row->method,
                  zb_time_text(row->cost_ns, cost));
    gains = true;
  }
  if (gains) zb_text_put(text, ".\n");
  if (compare->binds.base_cost_ns > 0 && compare->binds.base_cost_ns < best->cost_ns)
    zb_text_print(text, "auto takes %s less on the same placement (%s).\n",
                  zb_percent_text(zb_ratio(best->cost_ns, compare->binds.base_cost_ns), amount),
                  zb_time_text(compare->binds.base_cost_ns, cost));
  for (int k = 0; k < USUAL; k++) {
    const struct zb_compare_row *row = find(compare, usual[k]);
    if (!row) continue;
    if (row->status == ZB_OVER_LIMIT)
      zb_text_print(text, "%s does not fit: it needs %s.\n", row->method,
                    zb_bytes_text(row->most_bytes, amount));
    else if (row == best && compare->count > 1)
      zb_text_print(text, "No gain: no other method here is faster than %s.\n", row->method);
    else if (row != best && fits(row) && row->cost_ns == best->cost_ns)
      zb_text_print(text, "No gain over %s: it takes the same time.\n", row->method);
  }
}

static void say_cause(const struct zb_cause *cause, struct zb_text *text) {
  char saving[ZB_QUANTITY_TEXT];
  zb_percent_text(cause->saving, saving);
  switch (cause->kind) {
  case ZB_CAUSE_STAGE:
    zb_text_print(text, "uneven stages (%s less if all devices had equal work)", saving);
    break;
  case ZB_CAUSE_MEMORY:
    zb_text_print(text, "memory (%s less without a limit)", saving);
    break;
  case ZB_CAUSE_COMMUNICATION:
    zb_text_print(text, "communication (%s less if messages took no time)", saving);
    break;
  case ZB_CAUSE_MICROBATCHES:
    zb_text_print(text, "too few microbatches (%s less a microbatch with twice as many)", saving);
    break;
  case ZB_CAUSE_COUNT:
    break;
  }
}

static void say_causes(const struct zb_compare *compare, struct zb_text *text) {
  const struct zb_compare_row *best = &compare->rows[compare->best];
  char share[ZB_QUANTITY_TEXT];
  int known = 0, notable = 0;
  for (int k = 0; k < ZB_CAUSE_COUNT; k++) {
    known += compare->binds.causes[k].known;
    notable += compare->binds.causes[k].saving >= ZB_NOTABLE_SAVING;
  }
  zb_text_put(text, "What binds it: ");
  if (known == 0) zb_text_put(text, "not tried, the time was up");
  if (known > 0 && notable == 0) zb_text_put(text, "nothing that was tried saves 0.5%");
  for (int k = 0; k < notable; k++) {
    zb_text_put(text, k == 0 ? "" : k == 1 ? "; then " : ", ");
    say_cause(&compare->binds.causes[k], text);
  }
  double busy = 1.0 - zb_ratio(best->cost_ns, compare->binds.work_ns);
  zb_text_print(text, ".\nThe busiest device works %s of the time%s.\n", zb_percent_text(busy, share),
                busy >= 0.99 ? ": only less work on it would help" : "");
}

enum zb_status zb_compare_judge(struct zb_compare *compare, struct zb_error *error) {
  struct zb_text text = {0};
  char least[ZB_QUANTITY_TEXT], limit[ZB_QUANTITY_TEXT];
  if (compare->best >= 0) {
    say_winner(compare, &text);
    say_volume(compare, &text);
    say_shift(compare, &text);
    say_places(compare, &text);
    say_search(compare, &text);
    say_gain(compare, &text);
    say_rival(compare, &text);
    say_causes(compare, &text);
  } else if (compare->reason.least_peak_bytes > 0) {
    zb_text_print(&text, "No schedule exists: any order keeps at least %s on device %d, the limit is %s.\n",
                  zb_bytes_text(compare->reason.least_peak_bytes, least), compare->reason.device,
                  zb_bytes_text(compare->reason.limit_bytes, limit));
  } else if (compare->rows[compare->count - 1].status == ZB_UNKNOWN) {
    zb_text_put(&text, "The time was up before a method found a schedule that fits.\n");
  } else {
    zb_text_put(&text, "None of these methods fits: greedy and auto adapt to the limit.\n");
  }
  enum zb_status status = zb_text_status(&text, error);
  if (status == ZB_OK)
    compare->verdict = text.data;
  else
    zb_text_free(&text);
  return status;
}
