// frontier_svg.c - one plot, drawn from the back to the front: grid, gap, lines, points, words.
//
// Lines and words take currentColor, so that the chart follows the page it is on; the two curves have a
// colour for light and one for dark pages.
#include "solver/io/frontier_svg.h"

#include <stdbool.h>

#include "solver/io/units.h"

enum { WIDTH = 760, HEIGHT = 440, LEFT = 70, RIGHT = 740, TOP = 70, BOTTOM = 372 };
enum { TICKS = 8 };

// Plain colours that the dark scheme overrides: many viewers know no custom properties.
static const char style[] =
    "  <style>\n"
    "    .chart { color: #1f2328; font: 13px system-ui, sans-serif; }\n"
    "    text { fill: currentColor; }\n"
    "    .grid { stroke: currentColor; stroke-opacity: 0.15; }\n"
    "    .axis { stroke: currentColor; }\n"
    "    .none { fill: currentColor; fill-opacity: 0.07; }\n"
    "    .gap { fill: #b4470f; fill-opacity: 0.22; }\n"
    "    .schedule { stroke: #1f5fd0; stroke-width: 2; fill: none; }\n"
    "    .bound { stroke: #b4470f; stroke-width: 1.5; stroke-dasharray: 5 4; fill: none; }\n"
    "    .optimal { fill: #1f5fd0; stroke: #1f5fd0; }\n"
    "    .open { fill: none; stroke: #1f5fd0; stroke-width: 1.5; }\n"
    "    @media (prefers-color-scheme: dark) {\n"
    "      .chart { color: #e6edf3; }\n"
    "      .gap { fill: #f2a15f; }\n"
    "      .bound { stroke: #f2a15f; }\n"
    "      .schedule, .open { stroke: #79b0ff; }\n"
    "      .optimal { fill: #79b0ff; stroke: #79b0ff; }\n"
    "    }\n"
    "  </style>\n";

// From values to places: x in multiples of 1x, y in bubble rates.
struct plot {
  const struct zb_frontier *frontier;
  double x_first, x_last, x_step, y_last, y_step;
  struct zb_text *text;
};

static bool fits(const struct zb_frontier_point *point) {
  return point->status == ZB_OPTIMAL || point->status == ZB_FEASIBLE;
}

static double multiple(const struct zb_frontier_point *point) { return (double)point->multiple * 1e-6; }

static double place_x(const struct plot *plot, double x) {
  return LEFT + (x - plot->x_first) / (plot->x_last - plot->x_first) * (RIGHT - LEFT);
}

static double place_y(const struct plot *plot, double y) {
  return BOTTOM - y / plot->y_last * (BOTTOM - TOP);
}

// The least of 1, 2, 2.5 and 5 times a power of ten that divides the range into at most TICKS steps.
static double nice_step(double range) {
  static const double steps[] = {1, 2, 2.5, 5};
  for (double power = 1e-6; power < 1e9; power *= 10)
    for (int k = 0; k < 4; k++)
      if (range <= steps[k] * power * TICKS * (1 + 1e-9)) return steps[k] * power;
  return range;
}

// Steps that lie at or below `value`; a hair of rounding does not lose one.
static long steps_below(double value, double step) { return (long)(value / step + 1e-6); }

static struct plot scale(const struct zb_frontier *frontier, struct zb_text *text) {
  struct plot plot = {.frontier = frontier, .text = text};
  double most = 0;
  for (int k = 0; k < frontier->count; k++)
    if (fits(&frontier->points[k]) && frontier->points[k].bubble_rate > most)
      most = frontier->points[k].bubble_rate;
  if (most < 1e-4) most = 0.01;
  plot.y_step = nice_step(most);
  plot.y_last = plot.y_step * (double)(steps_below(most * (1 - 1e-6), plot.y_step) + 1);
  plot.x_first = multiple(&frontier->points[0]);
  plot.x_last = multiple(&frontier->points[frontier->count - 1]);
  if (plot.x_last <= plot.x_first) { // one point stands in the middle
    plot.x_first -= plot.x_first < 0.5 ? plot.x_first : 0.5;
    plot.x_last += 0.5;
  }
  plot.x_step = nice_step(plot.x_last - plot.x_first);
  return plot;
}

static void put_escaped(const char *string, struct zb_text *text) {
  for (const char *c = string; *c; c++) {
    if (*c == '<')
      zb_text_put(text, "&lt;");
    else if (*c == '>')
      zb_text_put(text, "&gt;");
    else if (*c == '&')
      zb_text_put(text, "&amp;");
    else if ((unsigned char)*c < 0x20)
      zb_text_put(text, " ");
    else
      zb_text_add(text, c, 1);
  }
}

static void put_title(const struct plot *plot) {
  const struct zb_frontier *f = plot->frontier;
  put_escaped(f->name ? f->name : "profile", plot->text);
  zb_text_print(plot->text, ": %d devices, %d microbatches, %s by %s", f->devices, f->microbatches,
                zb_objective_word(f->objective), f->method);
}

static void draw_axes(const struct plot *plot) {
  struct zb_text *text = plot->text;
  char unit[ZB_QUANTITY_TEXT];
  const long steps = steps_below(plot->y_last, plot->y_step);
  for (long k = 0; k <= steps; k++) {
    const double y = place_y(plot, (double)k * plot->y_step);
    zb_text_print(text, "  <line class=\"%s\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
                  k == 0 ? "axis" : "grid", LEFT, RIGHT, y, y);
    zb_text_print(text, "  <text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g%%</text>\n", LEFT - 8, y + 4.5,
                  (double)k * plot->y_step * 100);
  }
  long first = steps_below(plot->x_first, plot->x_step);
  if ((double)first * plot->x_step < plot->x_first - 1e-9) first++;
  for (long k = first; k <= steps_below(plot->x_last, plot->x_step); k++) {
    const double x = place_x(plot, (double)k * plot->x_step);
    zb_text_print(text, "  <line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>\n", x, x,
                  BOTTOM, BOTTOM + 5);
    zb_text_print(text, "  <text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.6gx</text>\n", x, BOTTOM + 21,
                  (double)k * plot->x_step);
  }
  zb_text_print(text,
                "  <text x=\"%d\" y=\"%d\" text-anchor=\"middle\">memory limit; 1x is %s, static memory "
                "excluded</text>\n",
                (LEFT + RIGHT) / 2, BOTTOM + 48, zb_bytes_text(plot->frontier->unit_bytes, unit));
  zb_text_print(text,
                "  <text transform=\"translate(20 %d) rotate(-90)\" text-anchor=\"middle\">bubble "
                "rate</text>\n",
                (TOP + BOTTOM) / 2);
}

// Up to the last limit under which nothing fits.
static void draw_infeasible(const struct plot *plot) {
  const struct zb_frontier *f = plot->frontier;
  int last = -1;
  for (int k = 0; k < f->count && f->points[k].status == ZB_INFEASIBLE; k++) last = k;
  if (last < 0) return;
  const double from = place_x(plot, plot->x_first), to = place_x(plot, multiple(&f->points[last]));
  zb_text_print(plot->text,
                "  <rect class=\"none\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\">"
                "<title>nothing fits: one microbatch needs more</title></rect>\n",
                from, TOP, to > from ? to - from : 2.0, BOTTOM - TOP);
}

// The places of all points that fit, there and back: along the schedules, back along the bounds.
static void put_places(const struct plot *plot, bool bound, bool back) {
  const struct zb_frontier *f = plot->frontier;
  for (int i = 0; i < f->count; i++) {
    const struct zb_frontier_point *point = &f->points[back ? f->count - 1 - i : i];
    if (!fits(point)) continue;
    zb_text_print(plot->text, " %.1f,%.1f", place_x(plot, multiple(point)),
                  place_y(plot, bound ? point->bubble_bound : point->bubble_rate));
  }
}

static void draw_lines(const struct plot *plot) {
  zb_text_put(plot->text, "  <polygon class=\"gap\" points=\"");
  put_places(plot, false, false);
  put_places(plot, true, true);
  zb_text_put(plot->text, "\"/>\n  <polyline class=\"schedule\" points=\"");
  put_places(plot, false, false);
  zb_text_put(plot->text, "\"/>\n  <polyline class=\"bound\" points=\"");
  put_places(plot, true, false);
  zb_text_put(plot->text, "\"/>\n");
}

static void draw_points(const struct plot *plot) {
  for (int k = 0; k < plot->frontier->count; k++) {
    const struct zb_frontier_point *point = &plot->frontier->points[k];
    if (!fits(point)) continue;
    const bool optimal = point->status == ZB_OPTIMAL;
    zb_text_print(plot->text,
                  "  <circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"><title>%.6gx: bubble %.2f%%, ",
                  optimal ? "optimal" : "open", place_x(plot, multiple(point)),
                  place_y(plot, point->bubble_rate), multiple(point), point->bubble_rate * 100);
    if (optimal)
      zb_text_put(plot->text, "optimal");
    else
      zb_text_print(plot->text, "gap %.2f%%", point->gap * 100);
    zb_text_put(plot->text, "</title></circle>\n");
  }
}

static void draw_legend(const struct plot *plot) {
  static const struct {
    int x;
    const char *shape, *words;
  } entries[] = {
      {LEFT, "<line class=\"schedule\" x2=\"24\"/><circle class=\"optimal\" cx=\"12\" r=\"3.5\"/>",
       "proven optimal"},
      {LEFT + 150, "<line class=\"schedule\" x2=\"24\"/><circle class=\"open\" cx=\"12\" r=\"3.5\"/>",
       "best found"},
      {LEFT + 270, "<line class=\"bound\" x2=\"24\"/>", "bound"},
      {LEFT + 360, "<rect class=\"gap\" y=\"-6\" width=\"24\" height=\"12\"/>", "open"},
  };
  for (size_t k = 0; k < sizeof entries / sizeof *entries; k++)
    zb_text_print(plot->text,
                  "  <g transform=\"translate(%d 50)\">%s<text x=\"31\" y=\"4.5\">%s</text></g>\n",
                  entries[k].x, entries[k].shape, entries[k].words);
}

void zb_frontier_print_svg(const struct zb_frontier *frontier, struct zb_text *text) {
  const struct plot plot = scale(frontier, text);
  zb_text_print(text,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\" "
                "viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">\n  <title>",
                WIDTH, HEIGHT, WIDTH, HEIGHT);
  put_title(&plot);
  zb_text_print(text, "</title>\n%s  <text x=\"%d\" y=\"26\" font-size=\"16\">", style, LEFT);
  put_title(&plot);
  zb_text_put(text, "</text>\n");
  draw_infeasible(&plot);
  draw_axes(&plot);
  draw_lines(&plot);
  draw_points(&plot);
  draw_legend(&plot);
  zb_text_put(text, "</svg>\n");
}
