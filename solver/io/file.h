// file.h - whole files in and out.
//
// Reading takes regular files, pipes and devices alike, up to a limit. Writing never leaves half a
// result: the bytes go to a temporary file beside the target, which replaces it only when every
// write, the sync and the close have succeeded. All errors carry the path.
#ifndef ZB_FILE_H
#define ZB_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "solver/io/text.h"
#include "solver/model/status.h"

#define ZB_RESULT_BYTES_MOST ((size_t)1 << 30) // of a schedule or a program; a profile's reader has its own

// Reads all of `path` ("-": standard input) into `text` (appended). BAD_INPUT when it cannot be
// opened, is a directory or has more than `limit` bytes; FAILED when reading breaks off or memory ends.
enum zb_status zb_file_read(const char *path, size_t limit, struct zb_text *text, struct zb_error *error);

// Replaces `path` by the text, or leaves it as it was and says why (FAILED). "-" and /dev/stdout are
// standard output; what is not a regular file (/dev/null, a pipe) is written directly. A new file's
// mode follows the umask, a replaced one keeps its mode; a symbolic link is written through. A text that
// has failed is refused before anything is touched.
enum zb_status zb_file_write(const char *path, const struct zb_text *text, struct zb_error *error);

// Whether zb_file_write(path) could begin now, so that a long run need not end in "no such directory".
enum zb_status zb_file_can_write(const char *path, struct zb_error *error);

// Replaces two files that belong together: `path`, which refers to `part_path`. Both are complete on disk
// under other names before either old file is touched, and at no time does `path` stand beside a part that is
// not its own: it may lack it for a moment. Both must be regular files or new.
enum zb_status zb_file_write_with_part(const char *path, const struct zb_text *text, const char *part_path,
                                       const struct zb_text *part, struct zb_error *error);

// Whether writing to `path` replaces or makes a regular file, rather than going to a pipe or a device.
bool zb_file_is_regular(const char *path);

// Whether both files are, or would be, in the same directory.
bool zb_file_beside(const char *path, const char *other);

// Puts `path`, which was read, into the error: shortened at the front if it is too long, "-" as <stdin>.
void zb_error_set_path(struct zb_error *error, const char *path);

#endif
