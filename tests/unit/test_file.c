// test_file.c - texts, tables, quantities, and files: a write never leaves half a file.
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "solver/io/file.h"
#include "solver/io/json.h"
#include "solver/io/table.h"
#include "solver/io/units.h"

static char directory[] = "/tmp/zbsolve-test-XXXXXX";
static char target[PATH_MAX];

static int make_directory(void **state) {
  (void)state;
  strcpy(directory + sizeof directory - 7, "XXXXXX");
  if (!mkdtemp(directory)) return -1;
  snprintf(target, sizeof target, "%s/target.json", directory);
  return 0;
}

static size_t files_in_directory(bool remove_them) {
  DIR *stream = opendir(directory);
  size_t count = 0;
  assert_non_null(stream);
  for (struct dirent *entry; (entry = readdir(stream));) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    count++;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
    if (remove_them) remove(path);
  }
  closedir(stream);
  return count;
}

static int remove_directory(void **state) {
  (void)state;
  files_in_directory(true);
  return rmdir(directory);
}

static void assert_content(const char *path, const char *expected) {
  struct zb_text text = {0};
  assert_int_equal(zb_file_read(path, 1 << 20, &text, NULL), ZB_OK);
  assert_string_equal(text.data, expected);
  zb_text_free(&text);
}

static void write_string(const char *path, const char *string) {
  struct zb_text text = {0};
  struct zb_error error = {0};
  zb_text_put(&text, string);
  if (zb_file_write(path, &text, &error) != ZB_OK) fail_msg("%s: %s", error.path, error.text);
  zb_text_free(&text);
}

static unsigned mode_of(const char *path) {
  struct stat information;
  assert_int_equal(stat(path, &information), 0);
  return (unsigned)information.st_mode & 07777;
}

static void test_write(void **state) {
  (void)state;
  mode_t old_mask = umask(027);
  write_string(target, "first");
  umask(old_mask);
  assert_int_equal(mode_of(target), 0640);
  chmod(target, 0604);
  write_string(target, "second");
  assert_content(target, "second");
  assert_int_equal(mode_of(target), 0604);
  char link_path[PATH_MAX];
  snprintf(link_path, sizeof link_path, "%s/link", directory);
  assert_int_equal(symlink("target.json", link_path), 0);
  write_string(link_path, "third");
  assert_content(target, "third");
  struct stat information;
  assert_int_equal(lstat(link_path, &information), 0);
  assert_true(S_ISLNK(information.st_mode));
  write_string("/dev/null", "nowhere");
  assert_int_equal(files_in_directory(false), 2);
}

static void assert_write_fails(const char *path, const struct zb_text *text, const char *expected) {
  struct zb_error error = {0};
  assert_int_equal(zb_file_write(path, text, &error), ZB_FAILED);
  assert_string_equal(error.text, expected);
}

static void test_write_failures(void **state) {
  (void)state;
  write_string(target, "old");
  struct zb_text text = {0};
  zb_text_repeat(&text, "new ", 100000);
  assert_write_fails("/dev/full", &text, "cannot write: No space left on device");

  signal(SIGXFSZ, SIG_IGN);
  struct rlimit limit, small;
  getrlimit(RLIMIT_FSIZE, &limit);
  small = limit;
  small.rlim_cur = 100001; // a file that breaks off in the middle, as on a full disk
  setrlimit(RLIMIT_FSIZE, &small);
  assert_write_fails(target, &text, "cannot write: File too large");
  setrlimit(RLIMIT_FSIZE, &limit);
  assert_content(target, "old");
  assert_int_equal(files_in_directory(false), 1);

  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/missing/target.json", directory);
  assert_write_fails(path, &text, "cannot write: No such file or directory");
  assert_int_equal(zb_file_can_write(path, NULL), ZB_FAILED);
  assert_int_equal(zb_file_can_write(target, NULL), ZB_OK);
  snprintf(path, sizeof path, "%s/target.json/inside", directory);
  assert_write_fails(path, &text, "cannot write: Not a directory");
  assert_write_fails(directory, &text, "cannot write: Is a directory");
  assert_write_fails("", &text, "cannot write: No such file or directory");
  if (geteuid() != 0) {
    chmod(directory, 0500);
    assert_write_fails(target, &text, "cannot write: Permission denied");
    chmod(directory, 0700);
  }
  text.failed = true;
  assert_write_fails(target, &text, "out of memory");
  assert_content(target, "old");
  assert_int_equal(files_in_directory(false), 1);
  zb_text_free(&text);
}

static void test_read_failures(void **state) {
  (void)state;
  struct zb_text text = {0};
  struct zb_error error = {0};
  assert_int_equal(zb_file_read(target, 10, &text, &error), ZB_BAD_INPUT);
  assert_string_equal(error.path, target);
  assert_string_equal(error.text, "cannot open: No such file or directory");
  assert_int_equal(zb_file_read(directory, 10, &text, &error), ZB_BAD_INPUT);
  assert_string_equal(error.text, "cannot read: Is a directory");
  assert_int_equal(zb_file_read("/dev/zero", 1 << 20, &text, &error), ZB_BAD_INPUT);
  assert_string_equal(error.text, "larger than 1 MiB, the most that is read");
  zb_text_free(&text);
  char path[600];
  memset(path, 'a', sizeof path - 1);
  path[sizeof path - 1] = '\0';
  assert_int_equal(zb_file_read(path, 10, &text, &error), ZB_BAD_INPUT);
  assert_int_equal(strlen(error.path), sizeof error.path - 1);
}

static void test_quantities(void **state) {
  (void)state;
  static const struct {
    int64_t value;
    const char *time, *bytes;
  } cases[] = {
      {0, "0 ns", "0 B"},
      {-7, "-7 ns", "-7 B"},
      {1023, "1.023 us", "1023 B"},
      {18522, "18.522 us", "18.09 KiB"},
      {1152599000, "1152.599 ms", "1.07 GiB"},
      {1509949440, "1509.949 ms", "1.41 GiB"},
      {999999999, "1000.000 ms", "953.67 MiB"},
      {INT64_C(250000000000), "250.000 s", "232.83 GiB"},
      {INT64_C(1) << 53, "9007199.255 s", "8192.00 TiB"},
  };
  char text[ZB_QUANTITY_TEXT];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_string_equal(zb_time_text(cases[i].value, text), cases[i].time);
    assert_string_equal(zb_bytes_text(cases[i].value, text), cases[i].bytes);
  }
}

static void test_table(void **state) {
  (void)state;
  static const struct zb_column columns[] = {{"method", false}, {"bubble", true}, {"note", false}};
  struct zb_table table = {.columns = columns, .count = 3};
  zb_table_cell(&table, "zb-h1");
  zb_table_cell(&table, "%.4f", 0.1431);
  zb_table_cell(&table, "%s", "über");
  zb_table_cell(&table, "größer");
  zb_table_cell(&table, "%d", 7);
  struct zb_text text = {0};
  zb_table_print(&table, 2, &text);
  assert_string_equal(text.data, "  method  bubble  note\n"
                                 "  zb-h1   0.1431  über\n"
                                 "  größer       7\n");
  zb_text_free(&text);
  zb_table_free(&table);
}

static void test_text(void **state) {
  (void)state;
  struct zb_text text = {0};
  zb_text_repeat(&text, "ab", 1000);
  zb_text_print(&text, "%0500d", 1);
  assert_int_equal(text.size, 2500);
  assert_int_equal(strlen(text.data), 2500);
  text.failed = true;
  zb_text_put(&text, "more");
  assert_int_equal(text.size, 2500);
  assert_int_equal(zb_text_status(&text, NULL), ZB_FAILED);
  zb_text_clear(&text);
  zb_text_integer(&text, INT64_MIN);
  zb_text_integer(&text, 0);
  zb_text_integer(&text, INT64_MAX);
  assert_string_equal(text.data, "-922337203685477580809223372036854775807");
  zb_text_clear(&text);
  zb_json_print_string("a\"b\\c\n\x1f\xC3\xBC", &text);
  assert_string_equal(text.data, "\"a\\\"b\\\\c\\u000a\\u001f\xC3\xBC\"");
  zb_text_free(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_text),
      cmocka_unit_test(test_quantities),
      cmocka_unit_test(test_table),
      cmocka_unit_test_setup_teardown(test_write, make_directory, remove_directory),
      cmocka_unit_test_setup_teardown(test_write_failures, make_directory, remove_directory),
      cmocka_unit_test_setup_teardown(test_read_failures, make_directory, remove_directory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
