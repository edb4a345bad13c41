// json.c - cJSON behind a scan that has already refused everything cJSON would misread.
//
// After the scan cJSON can fail for one reason only, memory: that is how its NULL is read. Its tree is
// linked lists, so children are walked and keys are compared by sorting, never by index.
#include "solver/io/json.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/io/json_read.h"

static const cJSON *inside(const struct zb_json *node) { return (const cJSON *)node; }
static const struct zb_json *outside(const cJSON *item) { return (const struct zb_json *)item; }

static int compare_keys(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Room to sort the keys of one object after another; grows to the largest.
struct keys {
  const char **names;
  size_t capacity;
};

static enum zb_status check_object(const struct zb_json *object, const struct zb_json_place *place,
                                   struct keys *keys, struct zb_error *error) {
  size_t count = zb_json_count(object);
  if (count < 2) return ZB_OK;
  if (count > keys->capacity) {
    const char **names = realloc(keys->names, count * sizeof *names);
    if (!names) return zb_fail_memory(error);
    keys->names = names;
    keys->capacity = count;
  }
  size_t i = 0;
  for (const struct zb_json *child = zb_json_first(object); child; child = zb_json_next(child))
    keys->names[i++] = zb_json_key(child);
  qsort(keys->names, count, sizeof *keys->names, compare_keys);
  for (i = 1; i < count; i++)
    if (strcmp(keys->names[i - 1], keys->names[i]) == 0) {
      struct zb_json_place repeated = {place, keys->names[i], 0};
      return zb_json_fail(error, ZB_BAD_INPUT, &repeated, "this key is written twice, expected once");
    }
  return ZB_OK;
}

// Every object in the tree; as deep as the scan allows.
static enum zb_status check_keys(const struct zb_json *node, const struct zb_json_place *place,
                                 struct keys *keys, struct zb_error *error) {
  enum zb_json_type type = zb_json_type(node);
  enum zb_status status = type == ZB_JSON_OBJECT ? check_object(node, place, keys, error) : ZB_OK;
  size_t index = 0;
  for (const struct zb_json *child = zb_json_first(node); child && status == ZB_OK;
       child = zb_json_next(child)) {
    if (inside(child)->child) {
      struct zb_json_place below = {place, type == ZB_JSON_OBJECT ? zb_json_key(child) : NULL, index};
      status = check_keys(child, &below, keys, error);
    }
    index++;
  }
  return status;
}

enum zb_status zb_json_parse(const char *text, size_t size, enum zb_json_literals literals,
                             struct zb_json **root, struct zb_error *error) {
  enum zb_status status = zb_json_scan(text, size, literals, error);
  if (status != ZB_OK) return status;
  struct zb_json *tree = (struct zb_json *)cJSON_ParseWithLength(text, size);
  if (!tree) return zb_fail_memory(error);
  struct keys keys = {NULL, 0};
  status = check_keys(tree, NULL, &keys, error);
  free(keys.names);
  if (status != ZB_OK) {
    zb_json_free(tree);
    return status;
  }
  *root = tree;
  return ZB_OK;
}

void zb_json_free(struct zb_json *root) { cJSON_Delete((cJSON *)root); }

enum zb_json_type zb_json_type(const struct zb_json *node) {
  const cJSON *item = inside(node);
  if (cJSON_IsObject(item)) return ZB_JSON_OBJECT;
  if (cJSON_IsArray(item)) return ZB_JSON_LIST;
  if (cJSON_IsString(item)) return ZB_JSON_STRING;
  if (cJSON_IsNumber(item)) return ZB_JSON_NUMBER;
  return cJSON_IsBool(item) ? ZB_JSON_BOOL : ZB_JSON_NULL;
}

const struct zb_json *zb_json_first(const struct zb_json *node) { return outside(inside(node)->child); }

const struct zb_json *zb_json_next(const struct zb_json *node) { return outside(inside(node)->next); }

size_t zb_json_count(const struct zb_json *node) {
  size_t count = 0;
  for (const cJSON *child = inside(node)->child; child; child = child->next) count++;
  return count;
}

const char *zb_json_key(const struct zb_json *node) { return inside(node)->string; }

const struct zb_json *zb_json_member(const struct zb_json *object, const char *key) {
  return outside(cJSON_GetObjectItemCaseSensitive(inside(object), key));
}

const char *zb_json_string(const struct zb_json *node) { return inside(node)->valuestring; }

double zb_json_number(const struct zb_json *node) { return inside(node)->valuedouble; }

// A literal of at most 15 significant digits comes back from its double with %.15g; an integer up to
// 2^53 is its double.
enum zb_decimal zb_json_scaled(const struct zb_json *node, int64_t scale, int64_t *value) {
  double number = zb_json_number(node);
  const double largest = (double)ZB_NUMBER_MAX;
  if (number >= -largest && number <= largest && (double)(int64_t)number == number) {
    int64_t whole = (int64_t)number, magnitude = whole < 0 ? -whole : whole;
    if (magnitude > ZB_NUMBER_MAX / scale) return ZB_DECIMAL_RANGE;
    *value = whole * scale;
    return ZB_DECIMAL_OK;
  }
  char text[40];
  snprintf(text, sizeof text, "%.15g", number);
  return zb_decimal_parse(text, scale, value);
}

void zb_json_print(const struct zb_json *node, struct zb_text *text) {
  char *printed = cJSON_PrintUnformatted(inside(node));
  if (printed)
    zb_text_put(text, printed);
  else
    text->failed = true;
  cJSON_free(printed);
}

static void print_bytes(const char *bytes, size_t count, struct zb_text *text) {
  zb_text_put(text, "\"");
  for (const char *c = bytes; c < bytes + count; c++) {
    if (*c == '"' || *c == '\\')
      zb_text_print(text, "\\%c", *c);
    else if ((unsigned char)*c < 0x20)
      zb_text_print(text, "\\u%04x", (unsigned)*c);
    else
      zb_text_add(text, c, 1);
  }
  zb_text_put(text, "\"");
}

void zb_json_print_string(const char *string, struct zb_text *text) {
  print_bytes(string, strlen(string), text);
}

void zb_json_print_lines(const char *lines, struct zb_text *text) {
  zb_text_put(text, "[");
  for (const char *line = lines; *line;) {
    const size_t length = strcspn(line, "\n");
    print_bytes(line, length, text);
    line += length + (line[length] == '\n');
    if (*line) zb_text_put(text, ", ");
  }
  zb_text_put(text, "]");
}
