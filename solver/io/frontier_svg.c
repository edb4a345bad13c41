// frontier_svg.c - one plot, drawn from the back to the front: grid, gap, lines, points, words.
//
// Lines and words take currentColor, so that the chart follows the page it is on; curves have a colour for
// light and one for dark pages. A single frontier is drawn in two colours, schedule and bound; of several
// each has its own, and its bound is dashed in it. Their names stand below the plot, which so stays where it
// is.
#include "solver/io/frontier_svg.h"

#include <stdbool.h>
#include <stdio.h>

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

// What is added where there are several: the colour of a curve, and the same words in one colour.
#define COLOURS(X)                                                                                           \
  X("c0", "#1f5fd0", "#79b0ff")                                                                              \
  X("c1", "#b4470f", "#f2a15f")                                                                              \
  X("c2", "#1a7f37", "#56d364")                                                                              \
  X("c3", "#8250df", "#d2a8ff")                                                                              \
  X("c4", "#bf3989", "#ff9bce")                                                                              \
  X("c5", "#0a7c86", "#5fd3dd")                                                                              \
  X("c6", "#9a6700", "#e3b341")                                                                              \
  X("c7", "#57606a", "#adb6c0")
enum { COLOUR_COUNT = 8 };

static const char curves_style[] = "  <style>\n"
#define X(name, light, dark) "    ." name " { stroke: " light "; fill: " light "; }\n"
    COLOURS(X)
#undef X
        "    @media (prefers-color-scheme: dark) {\n"
#define X(name, light, dark) "      ." name " { stroke: " dark "; fill: " dark "; }\n"
    COLOURS(X)
#undef X
        "    }\n"
        "    .words { stroke: currentColor; fill: currentColor; }\n"
        "    .curve { stroke-width: 2; fill: none; }\n"
        "    .again { stroke-dasharray: 1 3; }\n"
        "    .dashed { stroke-width: 1.3; stroke-dasharray: 5 4; fill: none; }\n"
        "    .hollow { stroke-width: 1.5; fill: none; }\n"
        "    .best { stroke: currentColor; stroke-width: 1.2; fill: none; }\n"
        "  </style>\n";

// From values to places: x in multiples of 1x, y in bubble rates.
struct plot {
  const struct zb_frontiers *all;
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

static double most_bubble(const struct zb_frontiers *all) {
  double most = 0;
  for (int a = 0; a < all->count; a++)
    for (int k = 0; k < all->curve[a].count; k++) {
      const struct zb_frontier_point *point = &all->curve[a].points[k];
      if (fits(point) && point->bubble_rate > most) most = point->bubble_rate;
    }
  return most < 1e-4 ? 0.01 : most;
}

static struct plot scale(const struct zb_frontiers *all, struct zb_text *text) {
  struct plot plot = {.all = all, .text = text};
  const struct zb_frontier *first = &all->curve[0];
  const double most = most_bubble(all);
  plot.y_step = nice_step(most);
  plot.y_last = plot.y_step * (double)(steps_below(most * (1 - 1e-6), plot.y_step) + 1);
  plot.x_first = multiple(&first->points[0]);
  plot.x_last = multiple(&first->points[first->count - 1]);
  if (plot.x_last <= plot.x_first) { // one point stands in the middle
    plot.x_first -= plot.x_first < 0.5 ? plot.x_first : 0.5;
    plot.x_last += 0.5;
  }
  plot.x_step = nice_step(plot.x_last - plot.x_first);
  return plot;
}

static void put_title(const struct plot *plot) {
  const struct zb_frontier *f = &plot->all->curve[0];
  zb_text_markup(plot->text, f->name ? f->name : "profile");
  zb_text_print(plot->text, ": %d devices, %d microbatches, %s", f->devices, f->microbatches,
                zb_objective_word(f->objective));
  if (plot->all->count == 1) zb_text_print(plot->text, " by %s", f->method);
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
                (LEFT + RIGHT) / 2, BOTTOM + 48, zb_bytes_text(plot->all->curve[0].unit_bytes, unit));
  zb_text_print(text,
                "  <text transform=\"translate(20 %d) rotate(-90)\" text-anchor=\"middle\">bubble "
                "rate</text>\n",
                (TOP + BOTTOM) / 2);
}

// Up to the last limit under which nothing fits.
static void draw_infeasible(const struct plot *plot) {
  const struct zb_frontier *f = &plot->all->curve[0];
  int last = f->count - 1;
  for (int a = 0; a < plot->all->count; a++) {
    int none = 0;
    while (none < f->count && plot->all->curve[a].points[none].status == ZB_INFEASIBLE) none++;
    if (none - 1 < last) last = none - 1;
  }
  if (last < 0) return;
  const double from = place_x(plot, plot->x_first), to = place_x(plot, multiple(&f->points[last]));
  zb_text_print(plot->text,
                "  <rect class=\"none\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\">"
                "<title>nothing fits: one microbatch needs more</title></rect>\n",
                from, TOP, to > from ? to - from : 2.0, BOTTOM - TOP);
}

// The places of all points that fit, there and back: along the schedules, back along the bounds.
static void put_places(const struct plot *plot, const struct zb_frontier *f, bool bound, bool back) {
  for (int i = 0; i < f->count; i++) {
    const struct zb_frontier_point *point = &f->points[back ? f->count - 1 - i : i];
    if (!fits(point)) continue;
    zb_text_print(plot->text, " %.1f,%.1f", place_x(plot, multiple(point)),
                  place_y(plot, bound ? point->bubble_bound : point->bubble_rate));
  }
}

static void draw_line(const struct plot *plot, const struct zb_frontier *f, const char *class, bool bound) {
  zb_text_print(plot->text, "  <polyline class=\"%s\" points=\"", class);
  put_places(plot, f, bound, false);
  zb_text_put(plot->text, "\"/>\n");
}

static void draw_point(const struct plot *plot, const struct zb_frontier_point *point, const char *class,
                       const char *name) {
  zb_text_print(plot->text,
                "  <circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"><title>%s%.6gx: bubble %.2f%%, ",
                class, place_x(plot, multiple(point)), place_y(plot, point->bubble_rate), name,
                multiple(point), point->bubble_rate * 100);
  if (point->status == ZB_OPTIMAL)
    zb_text_put(plot->text, "optimal");
  else
    zb_text_print(plot->text, "gap %.2f%%", point->gap * 100);
  zb_text_put(plot->text, "</title></circle>\n");
}

static void draw_single(const struct plot *plot) {
  const struct zb_frontier *f = &plot->all->curve[0];
  zb_text_put(plot->text, "  <polygon class=\"gap\" points=\"");
  put_places(plot, f, false, false);
  put_places(plot, f, true, true);
  zb_text_put(plot->text, "\"/>\n");
  draw_line(plot, f, "schedule", false);
  draw_line(plot, f, "bound", true);
  for (int k = 0; k < f->count; k++)
    if (fits(&f->points[k]))
      draw_point(plot, &f->points[k], f->points[k].status == ZB_OPTIMAL ? "optimal" : "open", "");
}

enum { CURVE_NAME = 64, CLASS_NAME = 32 };

static const char *name_curve(const struct zb_frontier *f, char *name) {
  char place[ZB_PLACE_TEXT];
  snprintf(name, CURVE_NAME, "%s on %s", f->method, zb_place_text(f->placement, f->chunks, place));
  return name;
}

static const char *class_of(int curve, const char *more, char *class) {
  snprintf(class, CLASS_NAME, "c%d %s", curve % COLOUR_COUNT, more);
  return class;
}

// Where the colours start again the line is dotted.
static const char *line_of(int curve) { return curve < COLOUR_COUNT ? "curve" : "curve again"; }

// Methods on one placement have one bound, drawn once, in the colour of the first.
static bool is_first_on_placement(const struct zb_frontiers *all, int curve) {
  for (int a = 0; a < curve; a++)
    if (all->curve[a].placement == all->curve[curve].placement &&
        all->curve[a].chunks == all->curve[curve].chunks)
      return false;
  return true;
}

static void draw_several(const struct plot *plot) {
  const struct zb_frontiers *all = plot->all;
  char class[CLASS_NAME], name[CURVE_NAME], label[CURVE_NAME + 8];
  for (int a = 0; a < all->count; a++)
    if (is_first_on_placement(all, a)) draw_line(plot, &all->curve[a], class_of(a, "dashed", class), true);
  for (int a = 0; a < all->count; a++) {
    const struct zb_frontier *f = &all->curve[a];
    snprintf(label, sizeof label, "%s, ", name_curve(f, name));
    draw_line(plot, f, class_of(a, line_of(a), class), false);
    for (int k = 0; k < f->count; k++)
      if (fits(&f->points[k]))
        draw_point(plot, &f->points[k],
                   class_of(a, f->points[k].status == ZB_OPTIMAL ? "proven" : "hollow", class), label);
  }
  for (int k = 0; k < all->curve[0].count; k++) {
    if (all->best[k] < 0) continue;
    const struct zb_frontier_point *point = &all->curve[all->best[k]].points[k];
    zb_text_print(plot->text, "  <circle class=\"best\" cx=\"%.1f\" cy=\"%.1f\" r=\"7\"/>\n",
                  place_x(plot, multiple(point)), place_y(plot, point->bubble_rate));
  }
}

// The curves' names, three a line.
enum { NAMES_A_LINE = 3, NAME_WIDTH = 225, LINE_HEIGHT = 24 };

static int legend_height(const struct zb_frontiers *all) {
  return all->count == 1 ? 0 : (all->count + NAMES_A_LINE - 1) / NAMES_A_LINE * LINE_HEIGHT;
}

static void draw_names(const struct plot *plot) {
  char class[CLASS_NAME], name[CURVE_NAME];
  for (int a = 0; a < plot->all->count; a++)
    zb_text_print(plot->text,
                  "  <g transform=\"translate(%d %d)\"><line class=\"%s\" x2=\"24\"/>"
                  "<text x=\"31\" y=\"4.5\">%s</text></g>\n",
                  LEFT + a % NAMES_A_LINE * NAME_WIDTH, HEIGHT + a / NAMES_A_LINE * LINE_HEIGHT,
                  class_of(a, line_of(a), class), name_curve(&plot->all->curve[a], name));
}

static void draw_legend(const struct plot *plot) {
  static const struct entry {
    int x;
    const char *shape, *words;
  } single[] = {
      {LEFT, "<line class=\"schedule\" x2=\"24\"/><circle class=\"optimal\" cx=\"12\" r=\"3.5\"/>",
       "proven optimal"},
      {LEFT + 150, "<line class=\"schedule\" x2=\"24\"/><circle class=\"open\" cx=\"12\" r=\"3.5\"/>",
       "best found"},
      {LEFT + 270, "<line class=\"bound\" x2=\"24\"/>", "bound"},
      {LEFT + 360, "<rect class=\"gap\" y=\"-6\" width=\"24\" height=\"12\"/>", "open"},
  };
  static const struct entry several[] = {
      {LEFT, "<circle class=\"words\" cx=\"12\" r=\"3.5\"/>", "proven optimal"},
      {LEFT + 150, "<circle class=\"words hollow\" cx=\"12\" r=\"3.5\"/>", "best found"},
      {LEFT + 270, "<line class=\"words dashed\" x2=\"24\"/>", "bound"},
      {LEFT + 360, "<circle class=\"best\" cx=\"12\" r=\"7\"/>", "best of all"},
  };
  const struct entry *entries = plot->all->count == 1 ? single : several;
  for (int k = 0; k < 4; k++)
    zb_text_print(plot->text,
                  "  <g transform=\"translate(%d 50)\">%s<text x=\"31\" y=\"4.5\">%s</text></g>\n",
                  entries[k].x, entries[k].shape, entries[k].words);
}

void zb_frontier_print_svg(const struct zb_frontiers *frontiers, struct zb_text *text) {
  const struct plot plot = scale(frontiers, text);
  const int height = HEIGHT + legend_height(frontiers);
  const bool several = frontiers->count > 1;
  zb_text_print(text,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\" "
                "viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">\n  <title>",
                WIDTH, height, WIDTH, height);
  put_title(&plot);
  zb_text_print(text, "</title>\n%s%s  <text x=\"%d\" y=\"26\" font-size=\"16\">", style,
                several ? curves_style : "", LEFT);
  put_title(&plot);
  zb_text_put(text, "</text>\n");
  draw_infeasible(&plot);
  draw_axes(&plot);
  (several ? draw_several : draw_single)(&plot);
  draw_legend(&plot);
  if (several) draw_names(&plot);
  zb_text_put(text, "</svg>\n");
}
