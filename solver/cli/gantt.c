// gantt.c - from start times to cells.
//
// A row is first cut into slices of equal time, each given to the op (or the idle time) that fills most of
// it, and then drawn. With colours and block characters a cell has two slices, left and right half; otherwise
// one. Neighbouring ops of one kind differ in shade by the parity of their microbatch, and a device's later
// stages are darker, or in lower case: so the order can be followed without reading.
#include "solver/cli/gantt.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/cli/quantity.h"
#include "solver/model/answer.h"
#include "solver/model/number.h"

enum { IDLE = -1, MIXED = -2, LEAST_CELLS = 20, TICK_COLUMNS = 10 };

static const struct {
  char letter;
  const char *what;
  int shade[2][2]; // [later stage of the device][odd microbatch], of the 256 colours
} looks[] = {
    [ZB_F] = {'F', "forward", {{111, 75}, {68, 61}}},
    [ZB_B] = {'B', "backward for the input", {{222, 215}, {173, 166}}},
    [ZB_W] = {'W', "backward for the weights", {{157, 114}, {71, 65}}},
    [ZB_BW] = {'X', "both backwards in one (BW)", {{218, 211}, {168, 132}}},
};
enum { KINDS = sizeof looks / sizeof *looks };

struct chart {
  const struct zb_gantt_style *style;
  const struct zb_profile *profile;
  const struct zb_schedule *schedule;
  const struct zb_timeline *timeline;
  int number_width, cells, slices_a_cell;
  bool limits_differ;
  int64_t *slice; // [cells * slices_a_cell] place of an op in the schedule, or IDLE
  int64_t *most;  // [cells * slices_a_cell] ns of the slice that it fills
  char *letters;  // [cells]
};

// Slices.

static int64_t slice_start(const struct chart *chart, int slices, int64_t k) {
  int64_t whole = chart->timeline->makespan_ns;
  return whole / slices * k + whole % slices * k / slices;
}

// Gives [start, end) to `what` in every slice of which it fills more than anything before it. Times only grow
// from call to call, so *at, the first slice that is not over yet, never goes back.
static void fill(struct chart *chart, int64_t start_ns, int64_t end_ns, int64_t what, int *at) {
  int slices = chart->cells * chart->slices_a_cell;
  while (*at < slices && slice_start(chart, slices, *at + 1) <= start_ns) (*at)++;
  for (int k = *at; k < slices && slice_start(chart, slices, k) < end_ns; k++) {
    int64_t from = zb_max(start_ns, slice_start(chart, slices, k));
    int64_t to = zb_min(end_ns, slice_start(chart, slices, k + 1));
    if (to - from <= chart->most[k]) continue;
    chart->most[k] = to - from;
    chart->slice[k] = what;
  }
}

static void fill_device(struct chart *chart, int device) {
  const struct zb_schedule *schedule = chart->schedule;
  int64_t now_ns = 0;
  int slices = chart->cells * chart->slices_a_cell, at = 0;
  for (int k = 0; k < slices; k++) {
    chart->slice[k] = IDLE;
    chart->most[k] = 0;
  }
  for (size_t i = schedule->first[device]; i < schedule->first[device + 1]; i++) {
    int64_t start_ns = chart->timeline->start_ns[i];
    int64_t end_ns = start_ns + zb_op_time(chart->profile, schedule->ops[i]);
    fill(chart, now_ns, start_ns, IDLE, &at);
    fill(chart, start_ns, end_ns, (int64_t)i, &at);
    now_ns = end_ns;
  }
  fill(chart, now_ns, chart->timeline->makespan_ns, IDLE, &at);
}

// What a cell holds: an op, IDLE, or MIXED where its halves differ.
static int64_t cell(const struct chart *chart, int k) {
  const int64_t *slice = &chart->slice[k * chart->slices_a_cell];
  return slice[0] == slice[chart->slices_a_cell - 1] ? slice[0] : MIXED;
}

static bool is_later_stage(const struct chart *chart, const struct zb_op *op) {
  return chart->profile->chunk_of[op->stage] > 0;
}

// An op's name over `length` cells: its letter, its microbatch if it fits, then filling.
static void letter_run(struct chart *chart, int64_t what, int first, int length) {
  char *letters = chart->letters + first;
  bool color = chart->style->color;
  memset(letters, what == IDLE ? (color ? ' ' : '.') : what == MIXED || color ? ' ' : '-', (size_t)length);
  if (what < 0) return;
  const struct zb_op *op = &chart->schedule->ops[what];
  char name[16];
  char letter = looks[op->kind].letter;
  if (is_later_stage(chart, op)) letter = (char)tolower((unsigned char)letter);
  int size = snprintf(name, sizeof name, "%c%d", letter, op->microbatch);
  if (size <= length)
    memcpy(letters, name, (size_t)size);
  else if (chart->slices_a_cell == 1)
    letters[0] = letter;
}

static void letter_cells(struct chart *chart) {
  for (int first = 0, next; first < chart->cells; first = next) {
    int64_t what = cell(chart, first);
    for (next = first + 1; next < chart->cells && cell(chart, next) == what; next++) continue;
    letter_run(chart, what, first, next - first);
  }
}

// Drawing.

static int shade(const struct chart *chart, int64_t what) {
  if (what < 0) return -1;
  const struct zb_op *op = &chart->schedule->ops[what];
  return looks[op->kind].shade[is_later_stage(chart, op)][op->microbatch & 1];
}

// `text` in the colours: -1 is the terminal's own.
static void print_colored(int ink, int paper, const char *text, struct zb_text *out) {
  if (ink < 0 && paper < 0) {
    zb_text_put(out, text);
    return;
  }
  zb_text_put(out, "\033[");
  if (ink >= 0) zb_text_print(out, "38;5;%d", ink);
  if (paper >= 0) zb_text_print(out, "%s48;5;%d", ink >= 0 ? ";" : "", paper);
  zb_text_print(out, "m%s\033[0m", text);
}

// Cells of one look are printed together: escape sequences are longer than what they colour.
static int print_cells(const struct chart *chart, int first, struct zb_text *out) {
  enum { BLACK = 16 };
  int64_t what = cell(chart, first);
  if (what == MIXED) {
    int left = shade(chart, chart->slice[2 * first]), right = shade(chart, chart->slice[2 * first + 1]);
    if (left < 0)
      print_colored(right, -1, "▐", out);
    else
      print_colored(left, right, "▌", out);
    return first + 1;
  }
  int next = first + 1;
  while (next < chart->cells && cell(chart, next) == what) next++;
  char text[1024];
  snprintf(text, sizeof text, "%.*s", next - first, chart->letters + first);
  int paper = shade(chart, what);
  print_colored(paper < 0 ? -1 : BLACK, paper, text, out);
  return next;
}

static void print_chart(const struct chart *chart, struct zb_text *out) {
  if (chart->style->color) {
    for (int k = 0; k < chart->cells;) k = print_cells(chart, k, out);
    return;
  }
  for (int k = 0; k < chart->cells; k++) {
    bool dot = chart->style->utf8 && chart->letters[k] == '.';
    zb_text_add(out, dot ? "·" : &chart->letters[k], dot ? strlen("·") : 1);
  }
}

// Idle time is a share of the device's own time, from its first op to its last.
static void print_numbers(const struct chart *chart, int device, struct zb_text *out) {
  const struct zb_timeline *timeline = chart->timeline;
  char text[ZB_QUANTITY_TEXT];
  int64_t whole = timeline->last_end_ns[device] - timeline->first_start_ns[device];
  int64_t peak = timeline->peak_bytes[device], limit = chart->profile->limit_bytes[device];
  zb_text_print(out, "  %6s", zb_percent_text(zb_ratio(whole, timeline->busy_ns[device]), text));
  if (chart->profile->has_memory)
    zb_text_print(out, " %10s%s", zb_bytes_text(peak, text), peak > limit ? "!" : "");
  if (chart->limits_differ)
    zb_text_print(out, "%s %10s", peak > limit ? "" : " ",
                  limit == ZB_NO_LIMIT ? "none" : zb_bytes_text(limit, text));
  zb_text_put(out, "\n");
}

// A step of 1, 2 or 5 times a power of ten that leaves room for its labels.
static int64_t tick_step(const struct chart *chart) {
  double least = (double)chart->timeline->makespan_ns * TICK_COLUMNS / chart->cells;
  int64_t power = 1;
  for (;; power *= 10) {
    if ((double)power >= least) return power;
    if (2 * (double)power >= least) return 2 * power;
    if (5 * (double)power >= least) return 5 * power;
  }
}

static int column_of(const struct chart *chart, int64_t ns) {
  return (int)((double)ns / (double)chart->timeline->makespan_ns * chart->cells + 0.5);
}

// Labels are whole numbers of the largest unit that the step is a multiple of, named after the last of them.
static void print_axis(const struct chart *chart, struct zb_text *out) {
  const struct zb_unit *unit = NULL;
  int64_t end_ns = chart->timeline->makespan_ns, step_ns = tick_step(chart);
  static const char *const words[] = {"s", "ms", "us", "ns"};
  for (int k = 0; k < 4 && (!unit || unit->scale > step_ns); k++)
    unit = zb_unit_find(zb_time_units, words[k]);
  char line[1024], label[64];
  memset(line, '-', sizeof line);
  for (int64_t ns = 0; end_ns > 0 && ns <= end_ns && column_of(chart, ns) < chart->cells; ns += step_ns)
    line[column_of(chart, ns)] = '|';
  zb_text_print(out, "%*s%.*s\n%*s", chart->number_width + 1, "", chart->cells, line, chart->number_width + 1,
                "");
  int at = 0;
  for (int64_t ns = 0; ns == 0 || (ns <= end_ns && column_of(chart, ns) < chart->cells); ns += step_ns) {
    int column = end_ns > 0 ? column_of(chart, ns) : 0;
    bool last = end_ns == 0 || ns + step_ns > end_ns || column_of(chart, ns + step_ns) >= chart->cells;
    int size = snprintf(label, sizeof label, "%lld%s%s", (long long)(ns / unit->scale), last ? " " : "",
                        last ? unit->word : "");
    zb_text_print(out, "%*s%s", column - at, "", label);
    at = column + size;
  }
  zb_text_put(out, "\n");
}

// Only what the chart shows.
static void print_legend(const struct chart *chart, struct zb_text *out) {
  bool seen[KINDS] = {false};
  const struct zb_schedule *schedule = chart->schedule;
  for (size_t i = 0; i < schedule->first[schedule->devices]; i++) seen[schedule->ops[i].kind] = true;
  zb_text_put(out, "\n");
  for (int k = 0; k < KINDS; k++) {
    if (!seen[k]) continue;
    char letter[4] = {looks[k].letter, 0};
    if (chart->style->color)
      print_colored(16, looks[k].shade[0][0], letter, out);
    else
      zb_text_put(out, letter);
    zb_text_print(out, " %s   ", looks[k].what);
  }
  zb_text_print(out, "%s idle\n", chart->style->color ? "blank" : chart->style->utf8 ? "·" : ".");
  if (chart->profile->chunks > 1)
    zb_text_print(out, "%s: the device's later stages\n",
                  chart->style->color ? "darker, lower case" : "lower case");
}

// What is left of the width between the device's number and its idle share, peak and limit.
static void measure(struct chart *chart) {
  const struct zb_profile *profile = chart->profile;
  chart->number_width = snprintf(NULL, 0, "%d", profile->devices - 1);
  for (int d = 1; d < profile->devices; d++)
    chart->limits_differ = chart->limits_differ || profile->limit_bytes[d] != profile->limit_bytes[0];
  int numbers = 8 + (profile->has_memory ? 12 : 0) + (chart->limits_differ ? 11 : 0);
  chart->cells = chart->style->width - chart->number_width - 1 - numbers;
  if (chart->cells < LEAST_CELLS) chart->cells = LEAST_CELLS;
  chart->slices_a_cell = chart->style->color && chart->style->utf8 ? 2 : 1;
}

enum zb_status zb_gantt_print(const struct zb_gantt_style *style, const struct zb_profile *profile,
                              const struct zb_schedule *schedule, const struct zb_timeline *timeline,
                              bool bare, struct zb_text *out, struct zb_error *error) {
  struct chart chart = {.style = style, .profile = profile, .schedule = schedule, .timeline = timeline};
  measure(&chart);
  size_t slices = (size_t)chart.cells * (size_t)chart.slices_a_cell;
  chart.slice = malloc(slices * sizeof *chart.slice);
  chart.most = malloc(slices * sizeof *chart.most);
  chart.letters = malloc((size_t)chart.cells);
  enum zb_status status = chart.slice && chart.most && chart.letters ? ZB_OK : zb_fail_memory(error);
  if (status == ZB_OK) {
    zb_text_print(out, "%*s  %6s%s%s\n", chart.number_width + 1 + chart.cells, "", "idle",
                  profile->has_memory ? "       peak" : "", chart.limits_differ ? "       limit" : "");
    for (int d = 0; d < profile->devices; d++) {
      fill_device(&chart, d);
      letter_cells(&chart);
      zb_text_print(out, "%*d ", chart.number_width, d);
      print_chart(&chart, out);
      print_numbers(&chart, d, out);
    }
    print_axis(&chart, out);
    if (!bare) print_legend(&chart, out);
  }
  free(chart.slice);
  free(chart.most);
  free(chart.letters);
  return status;
}
