// export.c - the table of formats.
#include "solver/io/export.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "solver/io/chrome_trace.h"
#include "solver/io/gantt_svg.h"
#include "solver/io/megatron_layout.h"
#include "solver/io/node_list.h"
#include "solver/io/report_html.h"
#include "solver/io/schedule_json.h"
#include "solver/io/torch_write.h"

static enum zb_status write_schedule(const struct zb_export_input *input, struct zb_export_output *output,
                                     struct zb_error *error) {
  zb_answer_print(input->answer, &output->text);
  return zb_text_status(&output->text, error);
}

static const struct zb_export_format formats[] = {
    {"schedule", "our own schedule file, as solve writes it", 0, write_schedule},
    {"torch-csv", "compute actions of torch.distributed.pipelining, one row a rank", ZB_EXPORT_TARGET,
     zb_torch_write_compute},
    {"torch-comms-csv", "the same with communication actions, proven to finish", ZB_EXPORT_TARGET,
     zb_torch_write_comms},
    {"node-list", "local_order of the zero-bubble Megatron fork, as JSON", 0, zb_node_list_write},
    {"megatron-layout", "Megatron-LM's layout of --layers on the stages, without an order", ZB_EXPORT_LAYERS,
     zb_megatron_layout_write},
    {"chrome-trace", "a trace for Perfetto and chrome://tracing", 0, zb_export_chrome_trace},
    {"svg", "a picture: ops over time, memory below, the bound as a line", 0, zb_export_svg},
    {"html", "one page with everything: chart, devices, comparison, frontier", ZB_EXPORT_COMPARE,
     zb_export_html},
};

int zb_export_format_count(void) { return sizeof formats / sizeof *formats; }

const struct zb_export_format *zb_export_format_at(int index) { return &formats[index]; }

void zb_export_set(struct zb_export_output *output, const char *framework, const char *key,
                   const char *format, ...) {
  assert(output->setting_count < ZB_EXPORT_SETTINGS_MOST);
  struct zb_export_setting *setting = &output->settings[output->setting_count++];
  setting->framework = framework;
  setting->key = key;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(setting->value, sizeof setting->value, format, arguments);
  va_end(arguments);
}

void zb_export_output_free(struct zb_export_output *output) {
  zb_text_free(&output->text);
  zb_text_free(&output->notes);
}
