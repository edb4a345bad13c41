// gantt_svg.c - panels over one time axis, each drawn as finely as its scale allows.
//
// Where the names of ops fit, the whole is one panel with names. Otherwise it shows for every device and
// slice of time which share of it went into which kind of op (phases stay visible where single ops would
// smear), and the strips below are cut so that names fit. An op that crosses the end of a strip is drawn in
// both.
#include "solver/io/gantt_svg.h"

#include <stdlib.h>
#include <string.h>

#include "solver/io/palette.h"
#include "solver/io/units.h"
#include "solver/model/links.h"
#include "solver/model/number.h"

enum { LEFT = 64, RIGHT_COLUMN = 170, TOP = 112, GAP = 46 };
enum { ONE_PANEL_MOST = 2300, INNER = 1500, INNER_LEAST = 1100, STRIPS_MOST = 60 };
enum { BAR_LEAST = 2, SHARE_WIDTH = 8 }; // narrower ops are drawn as shares, of this width
static const double digit_width = 5.6, name_margin = 5;

enum { SHARES, BARS, NAMES };
struct panel {
  double y, lane, gap; // top of the first lane, height of a lane, of which `gap` stays free
  int64_t from_ns, to_ns;
  int detail; // SHARES, BARS or NAMES
};

struct drawing {
  const struct zb_answer *answer;
  const struct zb_profile *profile;
  const struct zb_schedule *schedule;
  const struct zb_timeline *timeline;
  struct zb_links links;
  struct zb_text *text;
  double inner;   // width of the lanes
  int64_t end_ns; // of the time axis
  int digits;     // of the largest microbatch
};

static const char style[] =
    "    .sheet { color: #1f2328; }\n"
    "    .paper { fill: #ffffff; }\n"
    "    text { fill: currentColor; font: 11px system-ui, sans-serif; }\n"
    "    .title { font-size: 17px; font-weight: 600; }\n"
    "    .soft { fill-opacity: 0.68; }\n"
    "    .end { text-anchor: end; }\n"
    "    .mid { text-anchor: middle; }\n"
    "    .name text { font-size: 9.5px; text-anchor: middle; pointer-events: none; }\n"
    "    .lane { fill: currentColor; fill-opacity: 0.055; }\n"
    "    .grid { stroke: currentColor; stroke-opacity: 0.2; }\n"
    "    .bound { stroke: #c2185b; stroke-width: 1.6; fill: none; }\n"
    "    .bound-text { fill: #c2185b; }\n"
    "    .kept { fill: #7a6fd0; fill-opacity: 0.55; }\n"
    "    .limit { stroke: currentColor; stroke-opacity: 0.5; stroke-dasharray: 4 3; }\n"
    "    @media (prefers-color-scheme: dark) {\n"
    "      .sheet { color: #e6edf3; }\n"
    "      .paper { fill: #0d1117; }\n"
    "      .bound { stroke: #ff79b0; }\n"
    "      .bound-text { fill: #ff79b0; }\n"
    "      .kept { fill: #a79dff; }\n"
    "    }\n";

// Places.

static double place(const struct drawing *d, const struct panel *panel, int64_t ns) {
  const double whole = (double)(panel->to_ns - panel->from_ns);
  return LEFT + (double)(ns - panel->from_ns) / whole * d->inner;
}

static double lane_top(const struct panel *panel, int device) { return panel->y + device * panel->lane; }

static double panel_bottom(const struct drawing *d, const struct panel *panel) {
  return lane_top(panel, d->profile->devices);
}

static int64_t end_of(const struct drawing *d, size_t op) {
  return d->timeline->start_ns[op] + zb_op_time(d->profile, d->schedule->ops[op]);
}

static const struct zb_paint *paint_of(const struct drawing *d, struct zb_op op) {
  return &zb_palette[op.kind][d->profile->chunk_of[op.stage] > 0];
}

// Where the bound lies in a device's lane.
static int64_t bound_at(const struct drawing *d, int device) {
  const int64_t begin_ns = d->answer->objective == ZB_MAKESPAN ? 0 : d->timeline->first_start_ns[device];
  return begin_ns + d->answer->bound_ns;
}

static int compare_times(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

// A length that nine of ten ops reach: what names are fitted to.
static enum zb_status usual_time(const struct drawing *d, int64_t *usual_ns, struct zb_error *error) {
  const size_t ops = d->schedule->first[d->schedule->devices];
  int64_t *times = malloc((ops + 1) * sizeof *times);
  if (!times) return zb_fail_memory(error);
  for (size_t i = 0; i < ops; i++) times[i] = zb_op_time(d->profile, d->schedule->ops[i]);
  qsort(times, ops, sizeof *times, compare_times);
  *usual_ns = ops ? zb_max(times[ops / 10], 1) : 1;
  free(times);
  return ZB_OK;
}

// Drawing.

static void put_title(const struct drawing *d, size_t op) {
  char a[ZB_QUANTITY_TEXT], b[ZB_QUANTITY_TEXT], name[ZB_OP_TEXT];
  zb_op_print(d->schedule->ops[op], name);
  zb_text_print(d->text, "<title>%s: %s to %s", name, zb_time_text(d->timeline->start_ns[op], a),
                zb_time_text(end_of(d, op), b));
  if (d->links.waited_for[op] != ZB_NO_OP) {
    zb_op_print(d->schedule->ops[d->links.waited_for[op]], name);
    zb_text_print(d->text, ", after %s", name);
  }
  zb_text_put(d->text, "</title>");
}

static void draw_ops(const struct drawing *d, const struct panel *panel, int device) {
  const double y = lane_top(panel, device), height = panel->lane - panel->gap;
  for (size_t i = d->schedule->first[device]; i < d->schedule->first[device + 1]; i++) {
    const int64_t start_ns = zb_max(d->timeline->start_ns[i], panel->from_ns);
    const int64_t end_ns = zb_min(end_of(d, i), panel->to_ns);
    if (end_ns <= start_ns) continue;
    const struct zb_op op = d->schedule->ops[i];
    const double x = place(d, panel, start_ns), width = place(d, panel, end_ns) - x;
    const double shown = width > 3 ? width - 0.6 : width;
    zb_text_print(d->text, "<rect class=\"%s\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\"",
                  paint_of(d, op)->name, x, y, shown, height);
    if (panel->detail == BARS) {
      zb_text_put(d->text, "/>\n");
      continue;
    }
    zb_text_put(d->text, ">");
    put_title(d, i);
    zb_text_put(d->text, "</rect>\n");
    int digits = 1;
    for (int left = op.microbatch; left >= 10; left /= 10) digits++;
    if (digits * digit_width + 1 > shown) continue;
    zb_text_print(d->text, "<text class=\"i%s\" x=\"%.1f\" y=\"%.1f\">%d</text>\n", paint_of(d, op)->name,
                  x + width / 2, y + height / 2 + 3.4, op.microbatch);
  }
}

// How much of each slice of time goes into ops of a kind, stacked from the bottom of the lane.
static enum zb_status draw_shares(const struct drawing *d, const struct panel *panel, int device,
                                  struct zb_error *error) {
  const int slices = (int)(d->inner / SHARE_WIDTH);
  const double slice_ns = (double)(panel->to_ns - panel->from_ns) / slices, width = d->inner / slices;
  double *shares = calloc((size_t)slices * 8, sizeof *shares);
  if (!shares) return zb_fail_memory(error);
  for (size_t i = d->schedule->first[device]; i < d->schedule->first[device + 1]; i++) {
    const struct zb_op op = d->schedule->ops[i];
    const double from = (double)(d->timeline->start_ns[i] - panel->from_ns) / slice_ns;
    const double to = (double)(end_of(d, i) - panel->from_ns) / slice_ns;
    if (from >= slices) break;
    for (int k = from > 0 ? (int)from : 0; k < slices && k < to; k++) {
      const double inside = (to < k + 1 ? to : k + 1) - (from > k ? from : k);
      shares[k * 8 + 2 * (int)op.kind + (d->profile->chunk_of[op.stage] > 0)] += inside;
    }
  }
  const double bottom = lane_top(panel, device) + panel->lane - panel->gap, height = panel->lane - panel->gap;
  for (int part = 0; part < 8; part++) {
    bool begun = false;
    for (int k = 0; k < slices; k++) {
      const double share = shares[k * 8 + part];
      if (share * height < 0.05) continue;
      double below = 0;
      for (int under = 0; under < part; under++) below += shares[k * 8 + under];
      if (!begun) zb_text_print(d->text, "<path class=\"%s\" d=\"", zb_palette[part / 2][part % 2].name);
      begun = true;
      zb_text_print(d->text, "M%.1f %.2fh%.2fv%.2fh-%.2fz", LEFT + k * width, bottom - below * height,
                    width + 0.05, -share * height, width + 0.05);
    }
    if (begun) zb_text_put(d->text, "\"/>\n");
  }
  free(shares);
  return ZB_OK;
}

// 1, 2 or 5 times a power of ten, so that ticks are at least 70 apart.
static int64_t tick_step(const struct drawing *d, const struct panel *panel) {
  const double least = (double)(panel->to_ns - panel->from_ns) / d->inner * 70;
  for (int64_t power = 1;; power *= 10)
    for (int64_t factor = 1; factor <= 5; factor += factor == 1 ? 1 : 3)
      if ((double)(factor * power) >= least) return factor * power;
}

static const struct zb_unit *tick_unit(int64_t step_ns) {
  static const char *const words[] = {"s", "ms", "us", "ns"};
  for (int k = 0; k < 3; k++) {
    const struct zb_unit *unit = zb_unit_find(zb_time_units, words[k]);
    if (step_ns % unit->scale == 0) return unit;
  }
  return zb_unit_find(zb_time_units, "ns");
}

static void draw_axis(const struct drawing *d, const struct panel *panel, double bottom) {
  const int64_t step_ns = tick_step(d, panel);
  const struct zb_unit *unit = tick_unit(step_ns);
  for (int64_t ns = (panel->from_ns + step_ns - 1) / step_ns * step_ns; ns <= panel->to_ns; ns += step_ns) {
    const double x = place(d, panel, ns);
    zb_text_print(d->text, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", x, x,
                  panel->y, bottom + 4);
    zb_text_print(d->text, "<text class=\"mid soft\" x=\"%.1f\" y=\"%.1f\">%lld %s</text>\n", x, bottom + 16,
                  (long long)(ns / unit->scale), unit->word);
  }
}

static void draw_lanes(const struct drawing *d, const struct panel *panel) {
  for (int k = 0; k < d->profile->devices; k++) {
    zb_text_print(d->text, "<rect class=\"lane\" x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
                  LEFT, lane_top(panel, k), d->inner, panel->lane - panel->gap);
    zb_text_print(d->text, "<text class=\"end soft\" x=\"%d\" y=\"%.1f\">%d</text>\n", LEFT - 8,
                  lane_top(panel, k) + (panel->lane - panel->gap) / 2 + 4, k);
  }
}

// One line through all lanes, a step between any two that begin at different times.
static void draw_bound(const struct drawing *d, const struct panel *panel) {
  bool within = false;
  if (d->answer->bound_ns <= 0) return;
  for (int k = 0; k < d->profile->devices; k++) {
    const int64_t at_ns = bound_at(d, k);
    if (at_ns < panel->from_ns || at_ns > panel->to_ns) {
      within = false;
      continue;
    }
    const double x = place(d, panel, at_ns), y = lane_top(panel, k);
    zb_text_print(d->text, within ? "L%.1f %.1f" : "<path class=\"bound\" d=\"M%.1f %.1f", x, y);
    zb_text_print(d->text, "L%.1f %.1f", x, y + panel->lane - panel->gap);
    within = k + 1 < d->profile->devices && bound_at(d, k + 1) >= panel->from_ns &&
             bound_at(d, k + 1) <= panel->to_ns;
    if (!within) zb_text_put(d->text, "\"/>\n");
  }
}

static enum zb_status draw_panel(const struct drawing *d, const struct panel *panel, struct zb_error *error) {
  enum zb_status status = ZB_OK;
  draw_lanes(d, panel);
  draw_axis(d, panel, panel_bottom(d, panel) - panel->gap);
  zb_text_put(d->text, "<g class=\"name\">\n");
  for (int k = 0; k < d->profile->devices && status == ZB_OK; k++) {
    if (panel->detail == SHARES)
      status = draw_shares(d, panel, k, error);
    else
      draw_ops(d, panel, k);
  }
  zb_text_put(d->text, "</g>\n");
  draw_bound(d, panel);
  return status;
}

// Idle share of each device's own time, right of its lane.
static void draw_idle(const struct drawing *d, const struct panel *panel) {
  const double x = LEFT + d->inner + 70;
  zb_text_print(d->text, "<text class=\"end soft\" x=\"%.1f\" y=\"%.1f\">idle</text>\n", x, panel->y - 7);
  for (int k = 0; k < d->profile->devices; k++) {
    const int64_t whole = d->timeline->last_end_ns[k] - d->timeline->first_start_ns[k];
    zb_text_print(d->text, "<text class=\"end\" x=\"%.1f\" y=\"%.1f\">%.2f%%</text>\n", x,
                  lane_top(panel, k) + (panel->lane - panel->gap) / 2 + 4,
                  zb_ratio(whole, d->timeline->busy_ns[k]) * 100);
  }
}

// Memory: one small curve a device, all to the same scale.

struct curve {
  double bottom, scale; // pixels a byte
  double x, most;       // the column of half a pixel being gathered, and its largest value
  double last;          // value last drawn
};

static void flush_column(const struct drawing *d, struct curve *curve) {
  if (curve->most >= 0 && curve->most != curve->last) {
    zb_text_print(d->text, "H%.1fV%.1f", curve->x, curve->bottom - curve->most * curve->scale);
    curve->last = curve->most;
  }
  curve->most = -1;
}

// From x on the memory is `bytes`. Within half a pixel only the largest value is kept, so that no peak is
// lost.
static void add_point(const struct drawing *d, struct curve *curve, double x, double bytes) {
  const double column = (double)(int64_t)(x * 2) / 2;
  if (column > curve->x) {
    flush_column(d, curve);
    curve->x = column;
  }
  if (bytes > curve->most) curve->most = bytes;
}

static void draw_curve(const struct drawing *d, const struct panel *panel, int device, double scale) {
  const double bottom = lane_top(panel, device) + panel->lane - panel->gap;
  double kept = (double)d->profile->static_bytes[device];
  struct curve curve = {bottom, scale, LEFT, kept, -1};
  zb_text_print(d->text, "<path class=\"kept\" d=\"M%d %.1f", LEFT, bottom);
  for (size_t i = d->schedule->first[device]; i < d->schedule->first[device + 1]; i++) {
    const int64_t change = zb_op_memory(d->profile, d->schedule->ops[i]);
    kept += (double)change;
    add_point(d, &curve, place(d, panel, change > 0 ? d->timeline->start_ns[i] : end_of(d, i)), kept);
  }
  flush_column(d, &curve);
  zb_text_print(d->text, "H%.1fV%.1fz\"/>\n", LEFT + d->inner, bottom);
  const int64_t limit = d->profile->limit_bytes[device];
  if (limit == ZB_NO_LIMIT) return;
  zb_text_print(d->text, "<line class=\"limit\" x1=\"%d\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", LEFT,
                LEFT + d->inner, bottom - (double)limit * scale, bottom - (double)limit * scale);
}

static void draw_memory(const struct drawing *d, const struct panel *panel) {
  const double peak_x = LEFT + d->inner + 78, limit_x = LEFT + d->inner + 158;
  char text[ZB_QUANTITY_TEXT];
  int64_t most = 1;
  for (int k = 0; k < d->profile->devices; k++) {
    most = zb_max(most, d->timeline->peak_bytes[k]);
    if (d->profile->limit_bytes[k] != ZB_NO_LIMIT) most = zb_max(most, d->profile->limit_bytes[k]);
  }
  zb_text_print(d->text, "<text x=\"%d\" y=\"%.1f\">memory</text>\n", LEFT, panel->y - 7);
  zb_text_print(d->text, "<text class=\"end soft\" x=\"%.1f\" y=\"%.1f\">peak</text>\n", peak_x,
                panel->y - 7);
  zb_text_print(d->text, "<text class=\"end soft\" x=\"%.1f\" y=\"%.1f\">limit</text>\n", limit_x,
                panel->y - 7);
  draw_lanes(d, panel);
  draw_axis(d, panel, panel_bottom(d, panel) - panel->gap);
  for (int k = 0; k < d->profile->devices; k++) {
    const double y = lane_top(panel, k) + (panel->lane - panel->gap) / 2 + 4;
    const int64_t limit = d->profile->limit_bytes[k];
    draw_curve(d, panel, k, (panel->lane - panel->gap - 1) / (double)most);
    zb_text_print(d->text, "<text class=\"end\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", peak_x, y,
                  zb_bytes_text(d->timeline->peak_bytes[k], text));
    zb_text_print(d->text, "<text class=\"end soft\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", limit_x, y,
                  limit == ZB_NO_LIMIT ? "none" : zb_bytes_text(limit, text));
  }
}

// Head.

static void draw_legend(const struct drawing *d) {
  bool seen[4][2] = {{false}};
  for (size_t i = 0; i < d->schedule->first[d->schedule->devices]; i++)
    seen[d->schedule->ops[i].kind][d->profile->chunk_of[d->schedule->ops[i].stage] > 0] = true;
  double x = LEFT;
  for (int kind = 0; kind < 4; kind++) {
    if (!seen[kind][0] && !seen[kind][1]) continue;
    for (int later = 0; later < 2; later++) {
      if (!seen[kind][later]) continue;
      zb_text_print(d->text, "<rect class=\"%s\" x=\"%.1f\" y=\"72\" width=\"16\" height=\"12\"/>\n",
                    zb_palette[kind][later].name, x);
      x += 18;
    }
    zb_text_print(d->text, "<text x=\"%.1f\" y=\"82\">%s %s</text>\n", x + 4, zb_kind_word[kind],
                  zb_kind_help[kind]);
    x += 34 + 6.2 * (double)strlen(zb_kind_help[kind]);
  }
  if (d->answer->bound_ns > 0) {
    zb_text_print(d->text, "<line class=\"bound\" x1=\"%.1f\" x2=\"%.1f\" y1=\"71\" y2=\"85\"/>\n", x + 4,
                  x + 4);
    zb_text_print(d->text, "<text x=\"%.1f\" y=\"82\" class=\"bound-text\">bound on the %s</text>\n", x + 12,
                  zb_objective_word(d->answer->objective));
    x += 140;
  }
  if (d->profile->chunks > 1)
    zb_text_print(d->text, "<text x=\"%.1f\" y=\"82\" class=\"soft\">deep: a device's later stages</text>\n",
                  x + 4);
}

static void draw_head(const struct drawing *d) {
  const struct zb_answer *answer = d->answer;
  const struct zb_profile *profile = d->profile;
  char cost[ZB_QUANTITY_TEXT], bound[ZB_QUANTITY_TEXT];
  const int64_t cost_ns = zb_timeline_cost(d->timeline, answer->objective);
  zb_text_print(d->text, "<text class=\"title\" x=\"%d\" y=\"30\">", LEFT);
  zb_text_markup(d->text, profile->name ? profile->name : "schedule");
  zb_text_print(d->text, "</text>\n<text class=\"soft\" x=\"%d\" y=\"50\">%d devices, %d microbatches, ",
                LEFT, profile->devices, profile->microbatches);
  if (profile->chunks > 1)
    zb_text_print(d->text, "%s of %d stages a device, ", zb_placement_word(profile->placement),
                  profile->chunks);
  zb_text_markup(d->text, answer->method);
  zb_text_print(d->text, ": %s; %s %s, bound %s, gap %.2f%%, bubble %.2f%%</text>\n",
                zb_status_word(answer->status), zb_objective_word(answer->objective),
                zb_time_text(cost_ns, cost), zb_time_text(answer->bound_ns, bound),
                zb_ratio(cost_ns, answer->bound_ns) * 100, zb_ratio(cost_ns, d->timeline->work_ns) * 100);
  draw_legend(d);
}

static void open_sheet(const struct drawing *d, double height) {
  const double width = LEFT + d->inner + RIGHT_COLUMN;
  zb_text_print(
      d->text,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"sheet\" role=\"img\" viewBox=\"0 0 %.0f %.0f\" "
      "width=\"%.0f\" height=\"%.0f\">\n  <title>",
      width, height, width, height);
  zb_text_markup(d->text, d->profile->name ? d->profile->name : "schedule");
  zb_text_print(d->text, "</title>\n  <style>\n%s", style);
  for (int kind = 0; kind < 4; kind++)
    for (int later = 0; later < 2; later++) {
      const struct zb_paint *paint = &zb_palette[kind][later];
      zb_text_print(d->text, "    .%s { fill: %s; }\n    .i%s { fill: %s; }\n", paint->name, paint->fill,
                    paint->name, paint->ink);
    }
  zb_text_print(d->text, "  </style>\n<rect class=\"paper\" width=\"%.0f\" height=\"%.0f\"/>\n", width,
                height);
}

static double lane_height(int devices) { return devices <= 8 ? 26 : devices <= 16 ? 21 : 15; }

// As much as an op of the usual time has room for.
static int detail_of(const struct drawing *d, int64_t usual_ns, int64_t shown_ns) {
  const double width = (double)usual_ns / (double)shown_ns * d->inner;
  const double name_width = d->digits * digit_width + name_margin;
  return width >= 0.999 * name_width ? NAMES : width >= BAR_LEAST ? BARS : SHARES;
}

static enum zb_status draw(struct drawing *d, struct zb_error *error) {
  int64_t usual_ns = 1;
  enum zb_status status = usual_time(d, &usual_ns, error);
  if (status != ZB_OK) return status;
  const double needed = (double)d->end_ns / (double)usual_ns * (d->digits * digit_width + name_margin);
  const bool one = needed <= ONE_PANEL_MOST;
  d->inner = one ? (needed > INNER_LEAST ? needed : INNER_LEAST) : INNER;
  const double lane = lane_height(d->profile->devices);
  int strips = one ? 0 : (int)(needed / INNER) + 1;
  if (strips > STRIPS_MOST) strips = STRIPS_MOST;
  const struct panel whole = {TOP, lane, 2, 0, d->end_ns, detail_of(d, usual_ns, d->end_ns)};
  const struct panel memory = {
      panel_bottom(d, &whole) + GAP, lane > 20 ? 20 : lane + 1, 2, 0, d->end_ns, SHARES};
  const double below = d->profile->has_memory ? panel_bottom(d, &memory) + GAP : memory.y;
  const double strip_height = d->profile->devices * lane + GAP;
  open_sheet(d, below + strips * strip_height - 12);
  draw_head(d);
  draw_idle(d, &whole);
  status = draw_panel(d, &whole, error);
  if (d->profile->has_memory) draw_memory(d, &memory);
  for (int k = 0; k < strips && status == ZB_OK; k++) {
    const int64_t from_ns = d->end_ns / strips * k;
    const int64_t to_ns = k + 1 < strips ? from_ns + d->end_ns / strips : d->end_ns;
    const int detail = detail_of(d, usual_ns, d->end_ns / strips);
    const struct panel strip = {below + k * strip_height, lane, 2, from_ns, to_ns, detail};
    zb_text_print(d->text, "<text class=\"soft\" x=\"%d\" y=\"%.1f\">strip %d of %d</text>\n", LEFT,
                  strip.y - 7, k + 1, strips);
    status = draw_panel(d, &strip, error);
  }
  zb_text_put(d->text, "</svg>\n");
  return status;
}

enum zb_status zb_export_svg(const struct zb_export_input *input, struct zb_export_output *output,
                             struct zb_error *error) {
  const struct zb_answer *answer = input->answer;
  struct drawing d = {.answer = answer, .profile = answer->profile, .schedule = answer->schedule};
  d.timeline = input->timeline;
  d.text = &output->text;
  d.end_ns = zb_max(d.timeline->makespan_ns, 1);
  for (int k = 0; k < d.profile->devices; k++) d.end_ns = zb_max(d.end_ns, bound_at(&d, k));
  for (int left = d.profile->microbatches - 1; left > 0 || d.digits == 0; left /= 10) d.digits++;
  enum zb_status status = zb_links_create(d.profile, d.schedule, d.timeline, &d.links, error);
  if (status == ZB_OK) status = draw(&d, error);
  if (status == ZB_OK) status = zb_text_status(d.text, error);
  zb_links_free(&d.links);
  return status;
}
