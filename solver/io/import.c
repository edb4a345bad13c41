// import.c - the table of readers, and the way that all of them share.
#include "solver/io/import.h"

#include "solver/io/file.h"
#include "solver/io/node_list.h"
#include "solver/io/schedule_json.h"
#include "solver/io/torch_read.h"

// Larger than 32 devices x 256 microbatches in any format by a factor of ten.
static const size_t import_bytes_most = (size_t)1 << 26;

static enum zb_status read_schedule(const char *text, size_t size, struct zb_file_orders *orders,
                                    struct zb_text *notes, struct zb_error *error) {
  (void)notes;
  struct zb_answer answer = {0};
  enum zb_status status = zb_answer_read_text(text, size, &answer, error);
  if (status == ZB_OK && !answer.schedule)
    status = zb_fail(error, ZB_BAD_INPUT, "an %s answer has no schedule", zb_status_word(answer.status));
  if (status == ZB_OK) {
    const struct zb_schedule *from = answer.schedule;
    status = zb_file_orders_create(from->devices, from->first[from->devices], orders, error);
    for (int d = 0; status == ZB_OK && d < from->devices; d++) {
      for (size_t i = from->first[d]; i < from->first[d + 1]; i++) {
        orders->schedule->ops[i] = from->ops[i];
        orders->place[i] = (uint32_t)(i - from->first[d]);
      }
      orders->schedule->first[d + 1] = from->first[d + 1];
    }
    orders->places = ZB_PLACES_LISTS;
  }
  zb_answer_free(&answer);
  return status;
}

static const struct zb_import_format formats[] = {
    {"torch-csv", "compute actions of torch.distributed.pipelining, one row a rank", zb_torch_read_compute,
     false},
    {"torch-comms-csv", "the same with communication actions, proven to finish", zb_torch_read_comms, false},
    {"node-list", "local_order of the zero-bubble Megatron fork, as JSON", zb_node_list_read, false},
    {"schedule", "one of our own schedule files, for another profile too", read_schedule, true},
};

int zb_import_format_count(void) { return sizeof formats / sizeof *formats; }

const struct zb_import_format *zb_import_format_at(int index) { return &formats[index]; }

void zb_imported_free(struct zb_imported *imported) {
  zb_profile_free(imported->placed);
  zb_schedule_free(imported->schedule);
  zb_text_free(&imported->notes);
  *imported = (struct zb_imported){0};
}

enum zb_status zb_import_read_text(const struct zb_import_format *format, const char *text, size_t size,
                                   const struct zb_profile *profile, enum zb_channels channels,
                                   struct zb_imported *imported, struct zb_error *error) {
  struct zb_file_orders orders = {.channels = channels};
  struct zb_imported read = {0};
  bool derived = false;
  enum zb_status status = format->read(text, size, &orders, &read.notes, error);
  if (status == ZB_OK) status = zb_file_orders_check(&orders, error);
  if (status == ZB_OK) status = zb_file_orders_place(&orders, profile, &derived, &read.placed, error);
  if (status == ZB_OK) status = zb_file_orders_finish(&orders, read.placed, error);
  if (status == ZB_OK && derived)
    zb_text_print(&read.notes, "the profile has %d stages, the file %d: derived by %s stages\n",
                  profile->stages, orders.stages, orders.stages > profile->stages ? "splitting" : "merging");
  if (status == ZB_OK) status = zb_text_status(&read.notes, error);
  if (status == ZB_OK) {
    read.schedule = orders.schedule;
    orders.schedule = NULL;
    *imported = read;
  } else {
    zb_imported_free(&read);
  }
  zb_file_orders_free(&orders);
  return status;
}

enum zb_status zb_import_read(const struct zb_import_format *format, const char *path,
                              const struct zb_profile *profile, enum zb_channels channels,
                              struct zb_imported *imported, struct zb_error *error) {
  struct zb_text text = {0};
  enum zb_status status = zb_file_read(path, import_bytes_most, &text, error);
  if (status == ZB_OK)
    status = zb_import_read_text(format, text.data ? text.data : "", text.size, profile, channels, imported,
                                 error);
  if (status != ZB_OK && error && !error->path[0]) zb_error_set_path(error, path);
  zb_text_free(&text);
  return status;
}
