// gzip_zlib.c - unpacking with zlib. The only file that knows it.
#include <limits.h>
#define ZLIB_CONST
#include <zlib.h>

#include "solver/io/gzip.h"

enum { CHUNK = 1 << 16, GZIP_ONLY = 16 };

// Unpacks one member from what `stream` still has to read; BUF_ERROR: the input ends inside it.
static enum zb_status expand_member(z_stream *stream, size_t limit, struct zb_text *text,
                                    struct zb_error *error) {
  unsigned char chunk[CHUNK];
  int code;
  do {
    stream->next_out = chunk;
    stream->avail_out = sizeof chunk;
    code = inflate(stream, Z_NO_FLUSH);
    if (code == Z_MEM_ERROR) return zb_fail_memory(error);
    if (code == Z_BUF_ERROR || (code == Z_OK && stream->avail_in == 0 && stream->avail_out > 0))
      return zb_fail(error, ZB_BAD_INPUT, "the gzip file is cut short");
    if (code != Z_OK && code != Z_STREAM_END)
      return zb_fail(error, ZB_BAD_INPUT, "the gzip file is damaged%s%s", stream->msg ? ": " : "",
                     stream->msg ? stream->msg : "");
    const size_t got = sizeof chunk - stream->avail_out;
    if (text->size + got > limit)
      return zb_fail(error, ZB_BAD_INPUT, "unpacks to more than %zu MiB, the most that is read", limit >> 20);
    zb_text_add(text, (const char *)chunk, got);
    if (text->failed) return zb_fail_memory(error);
  } while (code != Z_STREAM_END);
  return ZB_OK;
}

enum zb_status zb_gzip_expand(const char *bytes, size_t size, size_t limit, struct zb_text *text,
                              struct zb_error *error) {
  z_stream stream = {0};
  if (size > UINT_MAX) return zb_fail(error, ZB_BAD_INPUT, "a gzip file of more than 4 GiB");
  if (inflateInit2(&stream, MAX_WBITS + GZIP_ONLY) != Z_OK) return zb_fail_memory(error);
  stream.next_in = (z_const Bytef *)bytes;
  stream.avail_in = (uInt)size;
  enum zb_status status = ZB_OK;
  while (status == ZB_OK && stream.avail_in > 0) {
    status = expand_member(&stream, limit, text, error);
    if (status == ZB_OK && inflateReset(&stream) != Z_OK)
      status = zb_fail(error, ZB_FAILED, "zlib cannot start again");
  }
  inflateEnd(&stream);
  return status;
}
