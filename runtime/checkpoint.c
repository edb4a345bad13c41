// checkpoint.c - the file and its line.
#include "runtime/checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/gpt_unit.h"
#include "runtime/keep.h"
#include "solver/io/file.h"

static const char line_format[] = "zbsolve_checkpoint 1 step %" SCNd64 " made %" SCNd64
                                  " numbers %zu training %" SCNx64 " sum %" SCNx64 "%c";

uint64_t zb_digest_add(uint64_t digest, const void *bytes, size_t size) {
  const unsigned char *byte = bytes;
  for (size_t k = 0; k < size; k++) digest = (digest ^ byte[k]) * UINT64_C(0x100000001b3);
  return digest;
}

uint64_t zb_training_digest(const struct zb_training *training) {
  const struct zb_gpt *gpt = training->gpt;
  const struct zb_adamw *adamw = &gpt->adamw;
  struct zb_text text = {0};
  zb_text_print(&text, "%d %d %d %d %d %d %a %a %a %a %a %a %" PRIu64 " %" PRIu64 " %d %zu", gpt->blocks,
                gpt->hidden, gpt->heads, gpt->sequence, gpt->vocabulary, gpt->samples, adamw->rate,
                adamw->beta1, adamw->beta2, adamw->epsilon, adamw->decay, adamw->clip, training->seed,
                training->corpus->seed, training->microbatches, sizeof(zb_real));
  // Said only where it is not the usual, so that checkpoints are good for what they always were.
  if (training->dtype == ZB_BF16) zb_text_put(&text, " bf16");
  if (training->tf32) zb_text_put(&text, " tf32");
  uint64_t digest = zb_digest_add(ZB_DIGEST_START, text.data ? text.data : "", text.size);
  zb_text_free(&text);
  return zb_digest_add(digest, training->corpus->text.data, training->corpus->text.size);
}

size_t zb_checkpoint_place(const struct zb_gpt *gpt, int unit) {
  size_t count = 0;
  for (int u = 0; u < unit; u++) count += zb_unit_sizes(gpt, u).parameters;
  return count;
}

void zb_checkpoint_free(struct zb_checkpoint *checkpoint) {
  if (!checkpoint) return;
  free(checkpoint->values);
  free(checkpoint);
}

enum zb_status zb_checkpoint_create(const struct zb_training *training, struct zb_checkpoint **checkpoint,
                                    struct zb_error *error) {
  struct zb_checkpoint *made = calloc(1, sizeof *made);
  if (!made) return zb_fail_memory(error);
  made->count = zb_checkpoint_place(training->gpt, zb_gpt_units(training->gpt));
  made->values = zb_reals(3 * made->count);
  if (!made->values) {
    zb_checkpoint_free(made);
    return zb_fail_memory(error);
  }
  *checkpoint = made;
  return ZB_OK;
}

static void print_path(const char *directory, struct zb_text *path) {
  zb_text_print(path, "%s/checkpoint", directory);
}

static size_t bytes_of(const struct zb_checkpoint *checkpoint) {
  return 3 * checkpoint->count * sizeof *checkpoint->values;
}

static enum zb_status parse(const struct zb_text *file, const struct zb_training *training,
                            struct zb_checkpoint *checkpoint, struct zb_error *error) {
  size_t numbers, begin = 0;
  uint64_t digest, sum;
  char end = '\0';
  while (begin < file->size && file->data[begin] != '\n') begin++;
  if (begin == file->size ||
      sscanf(file->data, line_format, &checkpoint->step, &checkpoint->made, &numbers, &digest, &sum, &end) !=
          6 ||
      end != '\n')
    return zb_fail(error, ZB_BAD_INPUT, "not a checkpoint");
  begin++;
  if (digest != zb_training_digest(training) || numbers != 3 * checkpoint->count)
    return zb_fail(error, ZB_BAD_INPUT,
                   "a checkpoint of another model, optimizer, data, seed, dtype or number of microbatches");
  if (file->size - begin != bytes_of(checkpoint) || checkpoint->step < 0 || checkpoint->made < 0)
    return zb_fail(error, ZB_BAD_INPUT, "a damaged checkpoint: %zu bytes of numbers, expected %zu",
                   file->size - begin, bytes_of(checkpoint));
  memcpy(checkpoint->values, file->data + begin, bytes_of(checkpoint));
  if (zb_digest_add(ZB_DIGEST_START, checkpoint->values, bytes_of(checkpoint)) != sum)
    return zb_fail(error, ZB_BAD_INPUT, "a damaged checkpoint: its numbers are not those that were written");
  return ZB_OK;
}

enum zb_status zb_checkpoint_read(const char *directory, const struct zb_training *training,
                                  struct zb_checkpoint **checkpoint, struct zb_error *error) {
  struct zb_text path = {0}, file = {0};
  struct zb_checkpoint *read = NULL;
  *checkpoint = NULL;
  print_path(directory, &path);
  enum zb_status status = zb_text_status(&path, error);
  if (status != ZB_OK || access(path.data, F_OK) != 0) goto done;
  status = zb_file_read(path.data, SIZE_MAX / 2, &file, error);
  if (status == ZB_OK) status = zb_checkpoint_create(training, &read, error);
  if (status == ZB_OK) {
    status = parse(&file, training, read, error);
    if (status != ZB_OK && error) zb_error_set_path(error, path.data);
  }
done:
  zb_text_free(&path);
  zb_text_free(&file);
  if (status == ZB_OK)
    *checkpoint = read;
  else
    zb_checkpoint_free(read);
  return status;
}

enum zb_status zb_checkpoint_write(const char *directory, const struct zb_training *training,
                                   const struct zb_checkpoint *checkpoint, struct zb_error *error) {
  struct zb_text path = {0}, file = {0};
  print_path(directory, &path);
  zb_text_print(&file,
                "zbsolve_checkpoint 1 step %" PRId64 " made %" PRId64 " numbers %zu training %016" PRIx64
                " sum %016" PRIx64 "\n",
                checkpoint->step, checkpoint->made, 3 * checkpoint->count, zb_training_digest(training),
                zb_digest_add(ZB_DIGEST_START, checkpoint->values, bytes_of(checkpoint)));
  zb_text_add(&file, (const char *)checkpoint->values, bytes_of(checkpoint));
  enum zb_status status = zb_text_status(&path, error);
  if (status == ZB_OK) status = zb_file_write(path.data, &file, error);
  zb_text_free(&path);
  zb_text_free(&file);
  return status;
}

enum zb_status zb_checkpoint_prepare(const char *directory, struct zb_error *error) {
  struct zb_text path = {0};
  if (mkdir(directory, 0777) != 0 && errno != EEXIST) {
    if (error) zb_error_set_path(error, directory);
    return zb_fail(error, ZB_FAILED, "cannot make the directory: %s", strerror(errno));
  }
  print_path(directory, &path);
  enum zb_status status = zb_text_status(&path, error);
  if (status == ZB_OK) status = zb_file_can_write(path.data, error);
  zb_text_free(&path);
  return status;
}
