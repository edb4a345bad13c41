// See generate.h. Every choice is drawn in a fixed order from one generator, so that a change in one kind of
// profile leaves the other kind's sequence as it is.
#include "tests/generate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

uint64_t generate_bits(struct generate_random *random) {
  uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

int64_t generate_between(struct generate_random *random, int64_t low, int64_t high) {
  // The ranges here are far below 2^32, so the remainder's bias is far below anything a test could see.
  return low + (int64_t)(generate_bits(random) % (uint64_t)(high - low + 1));
}

static bool one_in(struct generate_random *random, int64_t n) { return generate_between(random, 1, n) == 1; }

static int64_t largest(int64_t a, int64_t b) { return a > b ? a : b; }

// A whole number of us around `mean_us`, off by at most `spread` thousandths, in ns.
static int64_t around(struct generate_random *random, int64_t mean_us, int64_t spread) {
  return mean_us * (1000 + generate_between(random, -spread, spread)) / 1000 * 1000;
}

static void fill_uneven(struct generated_profile *out, struct generate_random *random) {
  int p = out->devices = (int)generate_between(random, 4, 16);
  out->microbatches = (int)generate_between(random, p, 4 * (int64_t)p);
  int64_t spread = generate_between(random, 20, 400);
  int64_t f_us = generate_between(random, 8000, 12000);
  int64_t b_us = generate_between(random, f_us * 8 / 10, f_us * 12 / 10);
  int64_t w_us = generate_between(random, f_us * 4 / 10, f_us * 8 / 10);
  int64_t comm = generate_between(random, 0, f_us / 5) * 1000;
  int64_t kept = generate_between(random, 100, 900); // of the 1000 bytes of a forward, what W gives back
  int64_t limit = p * generate_between(random, 400, 2000);
  for (int i = 0; i < p; i++) {
    out->f[i] = around(random, f_us, spread);
    out->b[i] = around(random, b_us, spread);
    out->w[i] = around(random, w_us, spread);
    out->bw[i] = out->b[i] + out->w[i];
    out->comm_forward[i] = out->comm_backward[i] = comm;
    out->memory_f[i] = 1000;
    out->memory_b[i] = kept - 1000;
    out->memory_w[i] = -kept;
    out->limit[i] = limit;
    out->fixed[i] = 0;
  }
  out->has_limit = true;
}

static void fill_tiny(struct generated_profile *out, struct generate_random *random) {
  out->devices = (int)generate_between(random, 1, 3);
  out->microbatches = (int)generate_between(random, 1, 3);
  out->has_bw = one_in(random, 4);
  out->has_limit = !one_in(random, 8);
  bool has_zeros = one_in(random, 3);
  int64_t comm = one_in(random, 4) ? 0 : generate_between(random, 1, 10);
  for (int i = 0; i < out->devices; i++) {
    out->f[i] = has_zeros && one_in(random, 3) ? 0 : generate_between(random, 1, 10);
    out->b[i] = has_zeros && one_in(random, 3) ? 0 : generate_between(random, 1, 10);
    out->w[i] = has_zeros && one_in(random, 3) ? 0 : generate_between(random, 1, 10);
    int64_t split = out->b[i] + out->w[i];
    out->bw[i] = out->has_bw ? largest(0, split + generate_between(random, -4, 1)) : split;
    out->comm_forward[i] = generate_between(random, 0, comm);
    out->comm_backward[i] = generate_between(random, 0, comm);

    int64_t f = one_in(random, 12) ? 0 : generate_between(random, 1, 9);
    int64_t w = one_in(random, 6) ? generate_between(random, f, f + 3) : generate_between(random, 0, f);
    out->memory_f[i] = f;
    out->memory_b[i] = w - f;
    out->memory_w[i] = -w;
    out->fixed[i] = one_in(random, 6) ? generate_between(random, 0, 4) : 0;
    // What F, B, W one microbatch after the other needs; less is impossible where backward is never fused.
    int64_t least = largest(f, w);
    int64_t room = generate_between(random, 0, largest(1, least * out->microbatches - least));
    out->limit[i] = largest(0, out->fixed[i] + least + (one_in(random, 24) ? -1 : room));
  }
}

void generate_profile(struct generated_profile *profile, enum generate_kind kind, uint64_t seed,
                      uint64_t index) {
  *profile = (struct generated_profile){.seed = seed, .index = index, .kind = kind};
  // Two rounds spread neighbouring seeds and indices over the whole sequence.
  struct generate_random random = {seed};
  random.state = generate_bits(&random) ^ index;
  random.state = generate_bits(&random);
  if (kind == GENERATE_UNEVEN)
    fill_uneven(profile, &random);
  else
    fill_tiny(profile, &random);
}

struct writer {
  char *text;
  size_t size, length;
};

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
put(struct writer *to, const char *format, ...) {
  va_list values;
  va_start(values, format);
  size_t room = to->length < to->size ? to->size - to->length : 0;
  int length = vsnprintf(room > 0 ? to->text + to->length : NULL, room, format, values);
  va_end(values);
  to->length += (size_t)length;
}

static void put_list(struct writer *to, const char *key, const int64_t *values, int n, int64_t unit) {
  put(to, "\"%s\": [", key);
  for (int i = 0; i < n; i++) put(to, "%s%" PRId64, i > 0 ? ", " : "", values[i] / unit);
  put(to, "]");
}

size_t generate_json(const struct generated_profile *profile, char *text, size_t size) {
  const struct generated_profile *a = profile;
  struct writer to = {text, size, 0};
  bool tiny = a->kind == GENERATE_TINY;
  int n = a->devices;
  int64_t unit = tiny ? 1 : 1000;
  put(&to, "{\n  \"zbsolve_profile\": 1,\n  \"name\": \"%s %" PRIu64 "-%" PRIu64 "\",\n",
      tiny ? "tiny" : "uneven", a->seed, a->index);
  put(&to, "  \"source\": \"seeded generator, seed %" PRIu64 ", number %" PRIu64 "\",\n", a->seed, a->index);
  put(&to, "  \"devices\": %d,\n  \"microbatches\": %d,\n  \"chunks\": 1,\n  \"placement\": \"chain\",\n", n,
      a->microbatches);

  put(&to, "  \"time\": {\n    \"unit\": \"%s\",\n    ", tiny ? "ns" : "us");
  put_list(&to, "f", a->f, n, unit);
  put(&to, ",\n    ");
  put_list(&to, "b", a->b, n, unit);
  put(&to, ",\n    ");
  put_list(&to, "w", a->w, n, unit);
  if (a->has_bw) {
    put(&to, ",\n    ");
    put_list(&to, "bw", a->bw, n, unit);
  }
  if (tiny) {
    put(&to, ",\n    \"comm\": {");
    put_list(&to, "forward", a->comm_forward, n - 1, unit);
    put(&to, ", ");
    put_list(&to, "backward", a->comm_backward, n - 1, unit);
    put(&to, "}\n  },\n");
  } else {
    put(&to, ",\n    \"comm\": %" PRId64 "\n  },\n", a->comm_forward[0] / unit);
  }

  if (tiny) {
    put(&to, "  \"memory\": {\n    \"unit\": \"B\",\n    ");
    put_list(&to, "f", a->memory_f, n, 1);
    put(&to, ",\n    ");
    put_list(&to, "b", a->memory_b, n, 1);
    put(&to, ",\n    ");
    put_list(&to, "w", a->memory_w, n, 1);
    put(&to, ",\n    ");
    put_list(&to, "static", a->fixed, n, 1);
    put(&to, ",\n    ");
    if (a->has_limit)
      put_list(&to, "limit", a->limit, n, 1);
    else
      put(&to, "\"limit\": null");
    put(&to, "\n  }\n}\n");
  } else {
    put(&to, "  \"memory\": {\"unit\": \"B\", \"f\": %" PRId64 ", \"b\": %" PRId64 ", \"w\": %" PRId64,
        a->memory_f[0], a->memory_b[0], a->memory_w[0]);
    put(&to, ", \"limit\": %" PRId64 "}\n}\n", a->limit[0]);
  }
  return to.length;
}
