// report_html.c - fills the page of report.html: every {{slot}} in it has a function here.
//
// Tables are written here, so that they can be read and copied without a script; the chart's numbers go in as
// JSON and are drawn by report.js. The three files are part of the program (report_files.h).
#include "solver/io/report_html.h"

#include <stdio.h>
#include <string.h>

#include "solver/io/frontier_svg.h"
#include "solver/io/palette.h"
#include "solver/io/report_files.h"
#include "solver/io/units.h"
#include "solver/model/links.h"
#include "solver/model/number.h"

struct page {
  const struct zb_export_input *input;
  const struct zb_profile *profile;
  const struct zb_answer *answer;
  const struct zb_timeline *timeline;
  struct zb_links links;
  struct zb_text *text;
};

static int64_t cost_of(const struct page *page) {
  return zb_timeline_cost(page->timeline, page->answer->objective);
}

// Head.

static void put_title(const struct page *page) {
  zb_text_markup(page->text, page->profile->name ? page->profile->name : "schedule");
}

static void put_subtitle(const struct page *page) {
  const struct zb_profile *profile = page->profile;
  zb_text_print(page->text, "%d devices, %d microbatches, ", profile->devices, profile->microbatches);
  if (profile->chunks > 1)
    zb_text_print(page->text, "%s of %d stages a device", zb_placement_word(profile->placement),
                  profile->chunks);
  else
    zb_text_print(page->text, "placement %s", zb_placement_word(profile->placement));
  zb_text_put(page->text, ", method ");
  zb_text_markup(page->text, page->answer->method);
}

static void put_paints(const struct page *page) {
  zb_text_put(page->text, ":root {");
  for (int kind = 0; kind < 4; kind++)
    for (int later = 0; later < 2; later++) {
      const struct zb_paint *paint = &zb_palette[kind][later];
      zb_text_print(page->text, " --%s: %s; --%s-ink: %s;", paint->name, paint->fill, paint->name,
                    paint->ink);
    }
  zb_text_put(page->text, " }\n");
}

static void put_tile(const struct page *page, const char *title, const char *value, bool proven) {
  zb_text_print(page->text, "<div%s><dt>%s</dt><dd>%s</dd></div>\n", proven ? " class=\"proven\"" : "", title,
                value);
}

static void put_tiles(const struct page *page) {
  const struct zb_answer *answer = page->answer;
  const struct zb_timeline *timeline = page->timeline;
  const int64_t times[ZB_OBJECTIVE_COUNT] = {timeline->span_ns, timeline->makespan_ns, timeline->period_ns};
  char text[ZB_QUANTITY_TEXT];
  put_tile(page, "status", zb_status_word(answer->status), answer->status == ZB_OPTIMAL);
  put_tile(page, zb_objective_word(answer->objective), zb_time_text(cost_of(page), text), false);
  put_tile(page, "bound", zb_time_text(answer->bound_ns, text), false);
  snprintf(text, sizeof text, "%.2f%%", zb_ratio(cost_of(page), answer->bound_ns) * 100);
  put_tile(page, "gap", text, false);
  snprintf(text, sizeof text, "%.2f%%", zb_ratio(cost_of(page), timeline->work_ns) * 100);
  put_tile(page, "bubble", text, false);
  for (int k = 0; k < ZB_OBJECTIVE_COUNT; k++)
    if (k != (int)answer->objective)
      put_tile(page, zb_objective_word((enum zb_objective)k), zb_time_text(times[k], text), false);
  int64_t most = 0;
  for (int d = 0; d < timeline->devices; d++) most = zb_max(most, timeline->peak_bytes[d]);
  if (page->profile->has_memory) put_tile(page, "largest peak", zb_bytes_text(most, text), false);
}

static void put_legend(const struct page *page) {
  bool seen[4][2] = {{false}};
  const struct zb_schedule *schedule = page->answer->schedule;
  for (size_t i = 0; i < schedule->first[schedule->devices]; i++)
    seen[schedule->ops[i].kind][page->profile->chunk_of[schedule->ops[i].stage] > 0] = true;
  for (int kind = 0; kind < 4; kind++) {
    if (!seen[kind][0] && !seen[kind][1]) continue;
    zb_text_put(page->text, "<li>");
    for (int later = 0; later < 2; later++)
      if (seen[kind][later])
        zb_text_print(page->text, "<i style=\"background: var(--%s)\"></i>", zb_palette[kind][later].name);
    zb_text_print(page->text, "<span>%s %s</span></li>\n", zb_kind_word[kind], zb_kind_help[kind]);
  }
  zb_text_print(page->text, "<li><i class=\"line\"></i><span>bound on the %s</span></li>\n",
                zb_objective_word(page->answer->objective));
  if (page->profile->chunks > 1)
    zb_text_put(page->text, "<li class=\"soft\">deep: a device's later stages</li>\n");
}

// Tables.

static void put_cell(const struct page *page, const char *value) {
  zb_text_print(page->text, "<td class=\"number\">%s</td>", value);
}

// A number with a bar behind it that fills `part` of the cell.
static void put_part(const struct page *page, const char *value, double part, bool over) {
  const double shown = part < 0 ? 0 : part > 1 ? 1 : part;
  zb_text_print(page->text, "<td class=\"number part%s\" style=\"--part: %.1f%%\">%s</td>",
                over ? " over" : "", shown * 100, value);
}

static void put_device(const struct page *page, int d) {
  const struct zb_timeline *timeline = page->timeline;
  const struct zb_profile *profile = page->profile;
  const int64_t whole_ns = timeline->last_end_ns[d] - timeline->first_start_ns[d];
  const int64_t limit = profile->limit_bytes[d], peak = timeline->peak_bytes[d];
  char text[ZB_QUANTITY_TEXT];
  zb_text_print(page->text, "<tr><td>%d</td><td>", d);
  for (int chunk = 0; chunk < profile->chunks; chunk++)
    zb_text_print(page->text, "%s%d", chunk ? ", " : "", profile->stage_at[d * profile->chunks + chunk]);
  zb_text_put(page->text, "</td>");
  put_cell(page, zb_time_text(timeline->first_start_ns[d], text));
  put_cell(page, zb_time_text(timeline->last_end_ns[d], text));
  put_cell(page, zb_time_text(timeline->busy_ns[d], text));
  put_cell(page, zb_time_text(zb_answer_idle_ns(timeline, d), text));
  const double idle = zb_ratio(whole_ns, timeline->busy_ns[d]);
  snprintf(text, sizeof text, "%.2f%%", idle * 100);
  put_part(page, text, idle, false);
  if (profile->has_memory) {
    const double part = limit == ZB_NO_LIMIT || limit <= 0 ? 0 : (double)peak / (double)limit;
    put_part(page, zb_bytes_text(peak, text), part, peak > limit);
    put_cell(page, limit == ZB_NO_LIMIT ? "none" : zb_bytes_text(limit, text));
  }
  zb_text_put(page->text, "</tr>\n");
}

static void put_devices(const struct page *page) {
  zb_text_put(page->text,
              "<table>\n<thead><tr><th>device</th><th>stages</th><th class=\"number\">first start</th>"
              "<th class=\"number\">last end</th><th class=\"number\">busy</th>"
              "<th class=\"number\">idle between them</th><th class=\"number\">idle share</th>");
  if (page->profile->has_memory)
    zb_text_put(page->text, "<th class=\"number\">peak memory</th><th class=\"number\">limit</th>");
  zb_text_put(page->text, "</tr></thead>\n<tbody>\n");
  for (int d = 0; d < page->profile->devices; d++) put_device(page, d);
  zb_text_put(page->text, "</tbody>\n</table>\n");
}

static int64_t largest_cost(const struct page *page) {
  const struct zb_compare *compare = page->input->compare;
  int64_t largest = zb_max(cost_of(page), 1);
  for (int k = 0; k < compare->count; k++)
    if (compare->rows[k].peak_bytes) largest = zb_max(largest, compare->rows[k].cost_ns);
  return largest;
}

// This schedule and the methods are rows of one kind.
static void put_row(const struct page *page, const struct zb_compare_row *row, bool own, int64_t largest_ns) {
  char text[ZB_QUANTITY_TEXT];
  const bool drawn = row->cost_ns > 0, fits = row->status == ZB_OPTIMAL || row->status == ZB_FEASIBLE;
  zb_text_put(page->text, own ? "<tr class=\"own\"><td>this schedule (" : "<tr><td>");
  zb_text_markup(page->text, row->method);
  zb_text_print(page->text, "%s</td><td>%s", own ? ")" : "", zb_placement_word(row->placement));
  if (row->chunks > 1) zb_text_print(page->text, " %d", row->chunks);
  zb_text_print(page->text, "</td><td%s>%s</td>", row->status == ZB_OPTIMAL ? " class=\"proven\"" : "",
                zb_status_word(row->status));
  if (drawn)
    put_part(page, zb_time_text(row->cost_ns, text), (double)row->cost_ns / (double)largest_ns, false);
  else
    put_cell(page, "-");
  put_cell(page, fits && row->bound_ns > 0 ? zb_time_text(row->bound_ns, text) : "-");
  snprintf(text, sizeof text, fits ? "%.2f%%" : "-", row->gap * 100);
  put_cell(page, text);
  snprintf(text, sizeof text, drawn ? "%.2f%%" : "-", row->bubble_rate * 100);
  put_cell(page, text);
  put_cell(page, drawn ? zb_time_text(row->makespan_ns, text) : "-");
  put_cell(page, drawn ? zb_time_text(row->period_ns, text) : "-");
  if (page->profile->has_memory) put_cell(page, drawn ? zb_bytes_text(row->most_bytes, text) : "-");
  zb_text_put(page->text, "</tr>\n");
}

static struct zb_compare_row own_row(const struct page *page) {
  const struct zb_timeline *timeline = page->timeline;
  struct zb_compare_row row = {.method = page->answer->method, .status = page->answer->status};
  row.placement = page->profile->placement;
  row.chunks = page->profile->chunks;
  row.cost_ns = cost_of(page);
  row.bound_ns = page->answer->bound_ns;
  row.gap = zb_ratio(row.cost_ns, row.bound_ns);
  row.bubble_rate = zb_ratio(row.cost_ns, timeline->work_ns);
  row.makespan_ns = timeline->makespan_ns;
  row.period_ns = timeline->period_ns;
  for (int d = 0; d < timeline->devices; d++)
    row.most_bytes = zb_max(row.most_bytes, timeline->peak_bytes[d]);
  return row;
}

static void put_comparison(const struct page *page) {
  const struct zb_compare *compare = page->input->compare;
  if (!compare) return;
  const int64_t largest_ns = largest_cost(page);
  const struct zb_compare_row own = own_row(page);
  zb_text_print(
      page->text,
      "<section>\n<h2>Every method beside it</h2>\n<div class=\"wide\">\n<table>\n<thead><tr>"
      "<th>method</th><th>placement</th><th>status</th><th class=\"number\">%s</th>"
      "<th class=\"number\">bound</th><th class=\"number\">gap</th><th class=\"number\">bubble</th>"
      "<th class=\"number\">makespan</th><th class=\"number\">period</th>%s</tr></thead>\n<tbody>\n",
      zb_objective_word(compare->objective),
      page->profile->has_memory ? "<th class=\"number\">largest peak</th>" : "");
  put_row(page, &own, true, largest_ns);
  for (int k = 0; k < compare->count; k++) put_row(page, &compare->rows[k], false, largest_ns);
  zb_text_put(page->text, "</tbody>\n</table>\n</div>\n<p class=\"verdict\">");
  zb_text_markup(page->text, compare->verdict);
  zb_text_put(page->text, "</p>\n</section>\n\n");
}

static void put_frontier(const struct page *page) {
  if (!page->input->frontiers) return;
  zb_text_put(page->text, "<section>\n<h2>What more memory buys</h2>\n<figure>\n");
  zb_frontier_print_svg(page->input->frontiers, page->text);
  zb_text_put(page->text, "</figure>\n</section>\n\n");
}

static void put_origin(const struct page *page) {
  const char *const texts[] = {page->profile->source, page->profile->note};
  static const char *const words[] = {"Times and memory from: ", "Note: "};
  for (int k = 0; k < 2; k++) {
    if (!texts[k]) continue;
    zb_text_print(page->text, "<p class=\"soft small\">%s", words[k]);
    zb_text_markup(page->text, texts[k]);
    zb_text_put(page->text, "</p>\n");
  }
}

// Data.

static void put_int(const struct page *page, const char *before, int64_t value) {
  zb_text_put(page->text, before);
  zb_text_integer(page->text, value);
}

// One list a kind, one entry a stage, of what `of` says about such an op.
static void put_kinds(const struct page *page, const char *key,
                      int64_t (*of)(const struct zb_profile *, struct zb_op)) {
  zb_text_put(page->text, key);
  for (int kind = ZB_F; kind <= ZB_BW; kind++) {
    zb_text_put(page->text, kind ? ",[" : "[");
    for (int s = 0; s < page->profile->stages; s++)
      put_int(page, s ? "," : "", of(page->profile, (struct zb_op){s, 0, (enum zb_kind)kind}));
    zb_text_put(page->text, "]");
  }
  zb_text_put(page->text, "]");
}

static void put_device_data(const struct page *page, int d) {
  const struct zb_schedule *schedule = page->answer->schedule;
  const size_t first = schedule->first[d], end = schedule->first[d + 1];
  put_int(page, "{\"first\":", page->timeline->first_start_ns[d]);
  put_int(page, ",\"peak\":", page->timeline->peak_bytes[d]);
  put_int(page, ",\"fixed\":", page->profile->static_bytes[d]);
  if (page->profile->limit_bytes[d] == ZB_NO_LIMIT)
    zb_text_put(page->text, ",\"limit\":null");
  else
    put_int(page, ",\"limit\":", page->profile->limit_bytes[d]);
  zb_text_put(page->text, ",\"ops\":[");
  for (size_t i = first; i < end; i++) {
    const struct zb_op op = schedule->ops[i];
    const int64_t pass = (int64_t)op.stage * page->profile->microbatches + op.microbatch;
    put_int(page, i > first ? "," : "", 4 * pass + (int)op.kind);
  }
  zb_text_put(page->text, "],\"start\":[");
  for (size_t i = first; i < end; i++) put_int(page, i > first ? "," : "", page->timeline->start_ns[i]);
  zb_text_put(page->text, "],\"after\":[");
  for (size_t i = first; i < end; i++) {
    const uint32_t after = page->links.waited_for[i];
    put_int(page, i > first ? "," : "", after == ZB_NO_OP ? -1 : (int64_t)after);
  }
  zb_text_put(page->text, "]}");
}

static void put_data(const struct page *page) {
  const struct zb_profile *profile = page->profile;
  int64_t end_ns = zb_max(page->timeline->makespan_ns, 1);
  for (int d = 0; d < profile->devices; d++) {
    const int64_t begin_ns = page->answer->objective == ZB_MAKESPAN ? 0 : page->timeline->first_start_ns[d];
    end_ns = zb_max(end_ns, begin_ns + page->answer->bound_ns);
  }
  zb_text_print(page->text, "{\"objective\":\"%s\"", zb_objective_word(page->answer->objective));
  put_int(page, ",\"microbatches\":", profile->microbatches);
  put_int(page, ",\"bound\":", page->answer->bound_ns);
  put_int(page, ",\"end\":", end_ns);
  zb_text_put(page->text, ",\"chunks\":[");
  for (int s = 0; s < profile->stages; s++) put_int(page, s ? "," : "", profile->chunk_of[s]);
  put_kinds(page, "],\n\"times\":[", zb_op_time);
  if (profile->has_memory)
    put_kinds(page, ",\n\"bytes\":[", zb_op_memory);
  else
    zb_text_put(page->text, ",\n\"bytes\":null");
  zb_text_put(page->text, ",\n\"devices\":[");
  for (int d = 0; d < profile->devices; d++) {
    zb_text_put(page->text, d ? ",\n" : "\n");
    put_device_data(page, d);
  }
  zb_text_put(page->text, "\n]}\n");
}

// The page.

static void put_style(const struct page *page) {
  zb_text_add(page->text, (const char *)zb_report_css, zb_report_css_size);
}

static void put_script(const struct page *page) {
  zb_text_add(page->text, (const char *)zb_report_js, zb_report_js_size);
}

static const struct {
  const char *name;
  void (*put)(const struct page *page);
} slots[] = {
    {"title", put_title},       {"subtitle", put_subtitle},
    {"palette", put_paints},    {"style", put_style},
    {"tiles", put_tiles},       {"legend", put_legend},
    {"devices", put_devices},   {"comparison", put_comparison},
    {"frontier", put_frontier}, {"origin", put_origin},
    {"data", put_data},         {"script", put_script},
};

static void put_slot(const struct page *page, const char *name, size_t length) {
  for (size_t k = 0; k < sizeof slots / sizeof *slots; k++)
    if (strlen(slots[k].name) == length && strncmp(slots[k].name, name, length) == 0) slots[k].put(page);
}

static void put_page(const struct page *page) {
  const char *at = (const char *)zb_report_html, *end = at + zb_report_html_size;
  while (at < end) {
    const char *open = strstr(at, "{{"), *close = open ? strstr(open, "}}") : NULL; // the file ends in a NUL
    zb_text_add(page->text, at, (size_t)((close ? open : end) - at));
    if (!close) return;
    put_slot(page, open + 2, (size_t)(close - open) - 2);
    at = close + 2;
  }
}

enum zb_status zb_export_html(const struct zb_export_input *input, struct zb_export_output *output,
                              struct zb_error *error) {
  struct page page = {.input = input, .profile = input->answer->profile, .answer = input->answer};
  page.timeline = input->timeline;
  page.text = &output->text;
  enum zb_status status =
      zb_links_create(page.profile, page.answer->schedule, page.timeline, &page.links, error);
  if (status != ZB_OK) return status;
  put_page(&page);
  zb_links_free(&page.links);
  return zb_text_status(page.text, error);
}
