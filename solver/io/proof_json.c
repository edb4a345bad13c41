// proof_json.c - trees are long lists of short items, so they are read in one pass, without a tree of nodes.
//
// The scan has already seen that the text is JSON; the pass over it only has to tell what is there.
#include "solver/io/proof_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "solver/io/file.h"
#include "solver/io/json.h"
#include "solver/io/sha256.h"
#include "solver/model/number.h"

static const size_t proof_bytes_most = (size_t)1 << 31;

// Where the pass is. The text ends in a NUL.
struct pass {
  const char *at;
  size_t item; // its number, for messages
  const struct zb_profile *profile;
  enum zb_objective objective;
  struct zb_error *error;
};

static void skip_blanks(struct pass *pass) { pass->at += strspn(pass->at, " \t\r\n"); }

// The character that comes next, and whether it was `wanted`; then it is passed.
static bool take(struct pass *pass, char wanted) {
  skip_blanks(pass);
  if (*pass->at != wanted) return false;
  pass->at++;
  return true;
}

static enum zb_status fail_item(const struct pass *pass, const char *found) {
  return zb_fail(pass->error, ZB_BAD_INPUT,
                 "proof[%zu]: %s, expected 0, [\"n\", device, A, B, index, value], [\"fused\", device, "
                 "\"B\", \"\", index, value] or [\"offset\", device, \"\", \"\", 0, value]",
                 pass->item, found);
}

// A string of at most 15 bytes without escapes; every word of a proof is one.
static enum zb_status read_word(struct pass *pass, char word[16]) {
  if (!take(pass, '"')) return fail_item(pass, "not a string");
  size_t length = strcspn(pass->at, "\"\\");
  if (length > 15 || pass->at[length] == '\\') return fail_item(pass, "an unknown word");
  memcpy(word, pass->at, length);
  word[length] = '\0';
  pass->at += length + 1;
  return ZB_OK;
}

// Whole numbers of a proof may have 16 digits, as those of a schedule.
static bool parse_whole(const char *literal, int64_t *value) {
  const size_t length = strlen(literal);
  if (strspn(literal, "-0123456789") < length) return zb_decimal_parse(literal, 1, value) == ZB_DECIMAL_OK;
  if (length > 17) return false;
  *value = strtoll(literal, NULL, 10);
  return true;
}

static enum zb_status read_integer(struct pass *pass, const char *what, int64_t least, int64_t most,
                                   int64_t *value) {
  char literal[32];
  skip_blanks(pass);
  size_t length = strspn(pass->at, "+-.0123456789eE");
  if (length == 0) return fail_item(pass, "not a number");
  snprintf(literal, sizeof literal, "%.*s", (int)(length < sizeof literal ? length : sizeof literal - 1),
           pass->at);
  pass->at += length;
  if (length >= sizeof literal || !parse_whole(literal, value) || *value < least || *value > most)
    return zb_fail(pass->error, ZB_BAD_INPUT,
                   "proof[%zu]: %s %.24s, expected a whole number from %" PRId64 " to %" PRId64, pass->item,
                   what, literal, least, most);
  return ZB_OK;
}

static enum zb_status read_comma(struct pass *pass) {
  return take(pass, ',') ? ZB_OK : fail_item(pass, "not a list of six");
}

// With several stages a device a class has its stage's position before it, but for "W": those of all stages.
static bool read_class(const struct pass *pass, const char *word, uint8_t *class, int16_t *chunk) {
  static const char *const words[ZB_CLASS_COUNT] = {"F", "B", "W"};
  const size_t digits = strspn(word, "0123456789");
  const int chunks = pass->profile->chunks;
  *chunk = 0;
  if (digits > 0) {
    const long position = digits < 5 ? strtol(word, NULL, 10) : chunks;
    if (chunks == 1 || position >= chunks || (digits > 1 && word[0] == '0')) return false;
    *chunk = (int16_t)position;
  }
  for (uint8_t k = 0; k < ZB_CLASS_COUNT; k++) {
    if (strcmp(word + digits, words[k]) != 0) continue;
    if (chunks > 1 && digits == 0 && k != ZB_CLASS_W) return false;
    if (chunks > 1 && digits == 0) *chunk = ZB_CHUNK_ALL;
    *class = k;
    return true;
  }
  return false;
}

// Whether the start of a device against the one that feeds it is not known beforehand.
static bool has_offset(const struct pass *pass, int device) {
  const struct zb_profile *profile = pass->profile;
  const int first = profile->stage_at[device * profile->chunks];
  if (first == 0 || pass->objective == ZB_MAKESPAN) return false;
  return pass->objective == ZB_PERIOD || profile->chunk_of[first - 1] != 0;
}

// What is split, by its three words.
static enum zb_status classify(const struct pass *pass, const char *variable, const char *counted,
                               const char *starting, struct zb_proof_item *item) {
  if (strcmp(variable, "n") == 0 && read_class(pass, counted, &item->counted, &item->counted_chunk) &&
      read_class(pass, starting, &item->starting, &item->starting_chunk) &&
      (item->counted != item->starting || item->counted_chunk != item->starting_chunk) &&
      (item->starting != ZB_CLASS_W || item->counted != ZB_CLASS_W)) {
    item->kind = ZB_ITEM_COUNT;
    return ZB_OK;
  }
  if (strcmp(variable, "fused") == 0 && read_class(pass, counted, &item->counted, &item->counted_chunk) &&
      item->counted == ZB_CLASS_B && !*starting) {
    item->kind = ZB_ITEM_FUSED;
    return ZB_OK;
  }
  if (strcmp(variable, "offset") != 0 || *counted || *starting) return fail_item(pass, "an unknown variable");
  if (!has_offset(pass, item->device))
    return zb_fail(pass->error, ZB_BAD_INPUT,
                   "proof[%zu]: an offset that is fixed, expected one of a period's", pass->item);
  item->kind = ZB_ITEM_OFFSET;
  return ZB_OK;
}

// Of the class that starts, or of the backwards that may be fused; "W" counts those of all stages together.
static int64_t most_index(const struct pass *pass, const struct zb_proof_item *item) {
  if (item->kind == ZB_ITEM_OFFSET) return 0;
  const bool all = item->kind == ZB_ITEM_COUNT && item->starting_chunk == ZB_CHUNK_ALL;
  return (int64_t)pass->profile->microbatches * (all ? pass->profile->chunks : 1) - 1;
}

// The rest of a list whose bracket is passed.
static enum zb_status read_inner(struct pass *pass, struct zb_proof_item *item) {
  char variable[16], counted[16], starting[16];
  int64_t device = 0, index = 0;
  enum zb_status status = read_word(pass, variable);
  if (status == ZB_OK) status = read_comma(pass);
  if (status == ZB_OK) status = read_integer(pass, "device", 0, pass->profile->devices - 1, &device);
  if (status == ZB_OK) status = read_comma(pass);
  if (status == ZB_OK) status = read_word(pass, counted);
  if (status == ZB_OK) status = read_comma(pass);
  if (status == ZB_OK) status = read_word(pass, starting);
  if (status == ZB_OK) status = read_comma(pass);
  item->device = (int32_t)device;
  if (status == ZB_OK) status = classify(pass, variable, counted, starting, item);
  if (status == ZB_OK) status = read_integer(pass, "index", 0, most_index(pass, item), &index);
  if (status == ZB_OK) status = read_comma(pass);
  if (status == ZB_OK) status = read_integer(pass, "value", -1, ZB_NUMBER_MAX, &item->value);
  if (status == ZB_OK && !take(pass, ']')) status = fail_item(pass, "not a list of six");
  item->index = (int32_t)index;
  return status;
}

static enum zb_status read_item(struct pass *pass, struct zb_proof_item *item) {
  *item = (struct zb_proof_item){.kind = ZB_ITEM_LEAF};
  if (take(pass, '[')) return read_inner(pass, item);
  skip_blanks(pass);
  if (pass->at[0] != '0' || strspn(pass->at, "+-.0123456789eE") != 1)
    return fail_item(pass, "neither a leaf nor a split");
  pass->at++;
  return ZB_OK;
}

static enum zb_status add_item(struct zb_proof_list *list, size_t *capacity, const struct zb_proof_item *item,
                               struct zb_error *error) {
  if (list->count == *capacity) {
    const size_t more = *capacity ? 2 * *capacity : 64;
    struct zb_proof_item *grown =
        more <= SIZE_MAX / sizeof *grown ? realloc(list->item, more * sizeof *grown) : NULL;
    if (!grown) return zb_fail_memory(error);
    list->item = grown;
    *capacity = more;
  }
  list->item[list->count++] = *item;
  return ZB_OK;
}

enum zb_status zb_proof_parse(const char *text, size_t size, const struct zb_profile *profile,
                              enum zb_objective objective, struct zb_proof_list *list,
                              struct zb_error *error) {
  enum zb_status status = zb_json_scan(text, size, ZB_JSON_INTEGERS, error);
  if (status != ZB_OK) return status;
  struct pass pass = {text, 0, profile, objective, error};
  struct zb_proof_list read = {NULL, 0};
  size_t capacity = 0;
  if (!take(&pass, '[')) return zb_fail(error, ZB_BAD_INPUT, "proof: not a list, expected a proof tree");
  if (take(&pass, ']'))
    return zb_fail(error, ZB_WRONG, "proof: ends after 0 items with a half missing: the root");
  for (bool more = true; more && status == ZB_OK;) {
    struct zb_proof_item item;
    status = read_item(&pass, &item);
    if (status == ZB_OK) status = add_item(&read, &capacity, &item, error);
    pass.item++;
    more = take(&pass, ',');
  }
  if (status == ZB_OK)
    *list = read;
  else
    zb_proof_list_free(&read);
  return status;
}

// The path of the file `name` beside the schedule (owned), NULL when memory ends.
static char *beside(const char *schedule, const char *name) {
  const char *slash = strrchr(schedule, '/');
  const size_t folder = slash ? (size_t)(slash - schedule) + 1 : 0, size = folder + strlen(name) + 1;
  char *path = malloc(size);
  if (path) snprintf(path, size, "%.*s%s", (int)folder, schedule, name);
  return path;
}

static enum zb_status read_file(const char *path, const char *digest, const struct zb_answer *answer,
                                struct zb_proof_list *list, struct zb_error *error) {
  struct stat information;
  struct zb_text text = {0};
  char hex[ZB_SHA256_TEXT];
  if (stat(path, &information) != 0)
    return zb_fail(error, ZB_NOT_PROVEN, "holds, but its bound was not redone: there is no proof file %.200s",
                   path);
  enum zb_status status = zb_file_read(path, proof_bytes_most, &text, error);
  if (status != ZB_OK) return status;
  const char *bytes = text.data ? text.data : "";
  zb_sha256(bytes, text.size, hex);
  if (strcmp(hex, digest) != 0)
    status = zb_fail(error, ZB_WRONG, "proof.sha256 says %.64s, but %.200s has %s", digest, path, hex);
  else
    status = zb_proof_parse(bytes, text.size, answer->profile, answer->objective, list, error);
  if (status == ZB_BAD_INPUT) zb_error_set_path(error, path);
  zb_text_free(&text);
  return status;
}

enum zb_status zb_proof_load(const struct zb_answer *answer, const char *path, struct zb_proof_list *list,
                             struct zb_error *error) {
  *list = (struct zb_proof_list){0};
  if (!answer->proof) return ZB_OK;
  const size_t size = strlen(answer->proof);
  if (answer->proof[0] != '{')
    return zb_proof_parse(answer->proof, size, answer->profile, answer->objective, list, error);
  struct zb_json *reference = NULL;
  enum zb_status status = zb_json_parse(answer->proof, size, ZB_JSON_INTEGERS, &reference, error);
  if (status != ZB_OK) return status;
  const char *name = zb_json_string(zb_json_member(reference, "file"));
  char *file = NULL;
  if (!*name || strchr(name, '/'))
    status = zb_fail(error, ZB_BAD_INPUT,
                     "proof.file: \"%.60s\", expected the name of a file beside the schedule", name);
  else if (!(file = beside(path, name)))
    status = zb_fail_memory(error);
  else
    status = read_file(file, zb_json_string(zb_json_member(reference, "sha256")), answer, list, error);
  free(file);
  zb_json_free(reference);
  return status;
}

void zb_proof_print_reference(const char *name, const struct zb_text *file, struct zb_text *text) {
  char hex[ZB_SHA256_TEXT];
  zb_sha256(file->data, file->size, hex);
  zb_text_put(text, "{\"file\": ");
  zb_json_print_string(name, text);
  zb_text_print(text, ", \"sha256\": \"%s\"}", hex);
}
