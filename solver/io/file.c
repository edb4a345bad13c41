// file.c - reading and atomic writing over POSIX descriptors.
//
// Invariant of writing: `path` names either the old file or the complete new one, and the temporary
// file is gone again whenever zb_file_write returns.
#define _XOPEN_SOURCE 700 // realpath
#include "solver/io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "solver/model/deadline.h"

enum { CHUNK = 1 << 16, TEMPORARY_TRIES = 100 };

void zb_error_set_path(struct zb_error *error, const char *path) {
  if (!error) return;
  if (strcmp(path, "-") == 0) path = "<stdin>";
  size_t size = strlen(path), room = sizeof error->path - 1;
  if (size <= room)
    snprintf(error->path, sizeof error->path, "%s", path);
  else
    snprintf(error->path, sizeof error->path, "...%s", path + (size - (room - 3)));
}

static enum zb_status fail_errno(struct zb_error *error, enum zb_status status, const char *path,
                                 const char *what) {
  int code = errno;
  zb_error_set_path(error, path);
  return zb_fail(error, status, "%s: %s", what, strerror(code));
}

static bool interrupted(void) { return errno == EINTR && !zb_stop_requested(); }

static enum zb_status read_all(int descriptor, size_t limit, const char *path, struct zb_text *text,
                               struct zb_error *error) {
  size_t total = 0;
  char chunk[CHUNK];
  for (;;) {
    ssize_t got = read(descriptor, chunk, sizeof chunk);
    if (got < 0 && interrupted()) continue;
    if (got < 0 && errno == EISDIR) return fail_errno(error, ZB_BAD_INPUT, path, "cannot read");
    if (got < 0) return fail_errno(error, ZB_FAILED, path, "cannot read");
    if (got == 0) return zb_text_status(text, error);
    total += (size_t)got;
    if (total > limit) {
      zb_error_set_path(error, path);
      return zb_fail(error, ZB_BAD_INPUT, "larger than %zu MiB, the most that is read", limit >> 20);
    }
    zb_text_add(text, chunk, (size_t)got);
    if (text->failed) return zb_fail_memory(error);
  }
}

enum zb_status zb_file_read(const char *path, size_t limit, struct zb_text *text, struct zb_error *error) {
  if (strcmp(path, "-") == 0) return read_all(STDIN_FILENO, limit, path, text, error);
  int descriptor;
  do descriptor = open(path, O_RDONLY | O_CLOEXEC);
  while (descriptor < 0 && interrupted());
  if (descriptor < 0) return fail_errno(error, ZB_BAD_INPUT, path, "cannot open");
  enum zb_status status = read_all(descriptor, limit, path, text, error);
  close(descriptor);
  return status;
}

static bool is_descriptor_name(const char *path) {
  static const char *const prefixes[] = {"/dev/fd/", "/dev/stdout", "/dev/stderr", "/proc/"};
  for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
    if (strncmp(path, prefixes[i], strlen(prefixes[i])) == 0) return true;
  return false;
}

static bool is_stdout(const char *path) { return strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0; }

static enum zb_status write_descriptor(int descriptor, const struct zb_text *text, const char *path,
                                       struct zb_error *error) {
  for (size_t written = 0; written < text->size;) {
    ssize_t put = write(descriptor, text->data + written, text->size - written);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail_errno(error, ZB_FAILED, path, "cannot write");
    written += (size_t)put;
  }
  return ZB_OK;
}

static enum zb_status write_stdout(const struct zb_text *text, struct zb_error *error) {
  if (fflush(stdout) != 0) return fail_errno(error, ZB_FAILED, "<stdout>", "cannot write");
  return write_descriptor(STDOUT_FILENO, text, "<stdout>", error);
}

static enum zb_status write_directly(const char *path, const struct zb_text *text, struct zb_error *error) {
  int descriptor = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (descriptor < 0) return fail_errno(error, ZB_FAILED, path, "cannot write");
  enum zb_status status = write_descriptor(descriptor, text, path, error);
  if (close(descriptor) != 0 && status == ZB_OK) status = fail_errno(error, ZB_FAILED, path, "cannot write");
  return status;
}

// The directory of `path` with its slash (owned), "" for the current one.
static char *directory_of(const char *path) {
  const char *slash = strrchr(path, '/');
  size_t size = slash ? (size_t)(slash - path) + 1 : 0;
  char *directory = malloc(size + 1);
  if (!directory) return NULL;
  memcpy(directory, path, size);
  directory[size] = '\0';
  return directory;
}

// Where a write to `path` goes. `real` is owned, with symbolic links resolved where the file exists.
struct target {
  char *real, *directory;
  bool direct, exists;
  mode_t mode;
};

static void target_free(struct target *target) {
  free(target->real);
  free(target->directory);
}

static enum zb_status find_target(const char *path, struct target *target, struct zb_error *error) {
  *target = (struct target){0};
  struct stat information;
  if (is_descriptor_name(path)) {
    target->direct = true;
    return ZB_OK;
  }
  if (stat(path, &information) == 0) {
    target->exists = true;
    target->mode = information.st_mode & 0777;
    if (S_ISDIR(information.st_mode)) {
      errno = EISDIR;
      return fail_errno(error, ZB_FAILED, path, "cannot write");
    }
    if (access(path, W_OK) != 0) return fail_errno(error, ZB_FAILED, path, "cannot write");
    if (!S_ISREG(information.st_mode)) {
      target->direct = true;
      return ZB_OK;
    }
    target->real = realpath(path, NULL);
  } else {
    if (errno != ENOENT) return fail_errno(error, ZB_FAILED, path, "cannot write");
    target->real = strdup(path);
  }
  target->directory = target->real ? directory_of(target->real) : NULL;
  enum zb_status status = ZB_OK;
  size_t size = target->real ? strlen(target->real) : 0;
  if (!target->directory) {
    status = errno == ENOMEM ? zb_fail_memory(error) : fail_errno(error, ZB_FAILED, path, "cannot write");
  } else if (size == 0 || target->real[size - 1] == '/') {
    errno = size == 0 ? ENOENT : EISDIR;
    status = fail_errno(error, ZB_FAILED, path, "cannot write");
  } else if (access(*target->directory ? target->directory : ".", W_OK | X_OK) != 0) {
    status = fail_errno(error, ZB_FAILED, path, "cannot write");
  }
  if (status != ZB_OK) target_free(target);
  return status;
}

enum zb_status zb_file_can_write(const char *path, struct zb_error *error) {
  if (strcmp(path, "-") == 0) return ZB_OK;
  struct target target;
  enum zb_status status = find_target(path, &target, error);
  if (status == ZB_OK) target_free(&target);
  return status;
}

// Creates a file of a new name in the directory. Returns its descriptor, -1 with errno set.
static int create_temporary(const char *directory, char *name, size_t room) {
  int descriptor = -1;
  errno = EEXIST;
  for (int attempt = 0; attempt < TEMPORARY_TRIES && descriptor < 0 && errno == EEXIST; attempt++) {
    snprintf(name, room, "%s.zbsolve-%ld-%d.tmp", directory, (long)getpid(), attempt);
    descriptor = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  }
  return descriptor;
}

// Writes the text to a new file in the target's directory, whose name (owned) is *temporary on success.
static enum zb_status write_temporary(const char *path, const struct target *target,
                                      const struct zb_text *text, char **temporary, struct zb_error *error) {
  size_t room = strlen(target->directory) + 64;
  char *name = malloc(room);
  if (!name) return zb_fail_memory(error);
  enum zb_status status = ZB_OK;
  int descriptor = create_temporary(target->directory, name, room);
  if (descriptor < 0) {
    status = fail_errno(error, ZB_FAILED, path, "cannot create a temporary file beside it");
    free(name);
    return status;
  }
  if (target->exists && fchmod(descriptor, target->mode) != 0)
    status = fail_errno(error, ZB_FAILED, path, "cannot set the mode");
  if (status == ZB_OK) status = write_descriptor(descriptor, text, path, error);
  if (status == ZB_OK && fsync(descriptor) != 0 && errno != EINVAL)
    status = fail_errno(error, ZB_FAILED, path, "cannot write");
  if (close(descriptor) != 0 && status == ZB_OK) status = fail_errno(error, ZB_FAILED, path, "cannot write");
  if (status == ZB_OK) {
    *temporary = name;
    return ZB_OK;
  }
  unlink(name);
  free(name);
  return status;
}

// Puts a temporary file in the target's place, or removes it and says why.
static enum zb_status move_in(const char *path, const struct target *target, const char *temporary,
                              struct zb_error *error) {
  if (rename(temporary, target->real) == 0) return ZB_OK;
  enum zb_status status = fail_errno(error, ZB_FAILED, path, "cannot rename the temporary file to it");
  unlink(temporary);
  return status;
}

static enum zb_status replace(const char *path, const struct target *target, const struct zb_text *text,
                              struct zb_error *error) {
  char *temporary = NULL;
  enum zb_status status = write_temporary(path, target, text, &temporary, error);
  if (status == ZB_OK) status = move_in(path, target, temporary, error);
  free(temporary);
  return status;
}

enum zb_status zb_file_write(const char *path, const struct zb_text *text, struct zb_error *error) {
  enum zb_status status = zb_text_status(text, error);
  if (status != ZB_OK) return status;
  if (is_stdout(path)) return write_stdout(text, error);
  struct target target;
  status = find_target(path, &target, error);
  if (status != ZB_OK) return status;
  status = target.direct ? write_directly(path, text, error) : replace(path, &target, text, error);
  target_free(&target);
  return status;
}

bool zb_file_is_regular(const char *path) {
  struct target target;
  if (is_stdout(path) || find_target(path, &target, NULL) != ZB_OK) return false;
  const bool direct = target.direct;
  target_free(&target);
  return !direct;
}

bool zb_file_beside(const char *path, const char *other) {
  char *directories[2] = {directory_of(path), directory_of(other)};
  struct stat found[2];
  bool same = directories[0] && directories[1];
  for (int i = 0; i < 2 && same; i++) same = stat(*directories[i] ? directories[i] : ".", &found[i]) == 0;
  same = same && found[0].st_dev == found[1].st_dev && found[0].st_ino == found[1].st_ino;
  free(directories[0]);
  free(directories[1]);
  return same;
}

// The old part goes first: from then on the main file lacks it, or is the new one and lacks the new part.
static enum zb_status move_both(const char *path, const struct target *main, const char *temporary,
                                const char *part_path, const struct target *part, const char *part_temporary,
                                struct zb_error *error) {
  if (part->exists && unlink(part->real) != 0 && errno != ENOENT) {
    enum zb_status status = fail_errno(error, ZB_FAILED, part_path, "cannot replace");
    unlink(temporary);
    unlink(part_temporary);
    return status;
  }
  enum zb_status status = move_in(path, main, temporary, error);
  if (status == ZB_OK) return move_in(part_path, part, part_temporary, error);
  unlink(part_temporary);
  return status;
}

enum zb_status zb_file_write_with_part(const char *path, const struct zb_text *text, const char *part_path,
                                       const struct zb_text *part, struct zb_error *error) {
  struct target targets[2] = {{0}, {0}};
  char *temporaries[2] = {NULL, NULL};
  enum zb_status status = zb_text_status(text, error);
  if (status == ZB_OK) status = zb_text_status(part, error);
  if (status == ZB_OK) status = find_target(path, &targets[0], error);
  if (status != ZB_OK) return status;
  status = find_target(part_path, &targets[1], error);
  if (status == ZB_OK) {
    if (targets[0].direct || targets[1].direct)
      status = zb_fail(error, ZB_FAILED, "%s: not a regular file", targets[0].direct ? path : part_path);
    if (status == ZB_OK) status = write_temporary(path, &targets[0], text, &temporaries[0], error);
    if (status == ZB_OK) status = write_temporary(part_path, &targets[1], part, &temporaries[1], error);
    if (status == ZB_OK)
      status = move_both(path, &targets[0], temporaries[0], part_path, &targets[1], temporaries[1], error);
    else if (temporaries[0])
      unlink(temporaries[0]);
    target_free(&targets[1]);
  }
  target_free(&targets[0]);
  free(temporaries[0]);
  free(temporaries[1]);
  return status;
}
