// The gate of a profile, what is measured of it, and the same model on another placement.
#include "solver/model/profile.h"

#include <string.h>

#include "solver/model/number.h"
#include "tests/instances.h"
#include "tests/unit/unit.h"

static const struct {
  int devices, chunks, microbatches;
  enum zb_placement placement;
  const char *refused; // start of the message; NULL: accepted
} shapes[] = {
    {1, 1, 1, ZB_CHAIN, NULL},
    {8, 1, 2, ZB_CHAIN, NULL},
    {1, 2, 1, ZB_V, NULL},
    {2, 2, 1, ZB_V, NULL},
    {1, 3, 1, ZB_LOOP, NULL},
    {4, 1, 3, ZB_LOOP, NULL},
    {65536, 1, 1, ZB_CHAIN, NULL},
    {0, 1, 1, ZB_CHAIN, "devices: 0,"},
    {-1, 1, 1, ZB_CHAIN, "devices: -1,"},
    {1, 0, 1, ZB_LOOP, "chunks: 0,"},
    {1, 1, 0, ZB_CHAIN, "microbatches: 0,"},
    {4, 2, 4, ZB_CHAIN, "placement: chain"},
    {4, 1, 4, ZB_V, "placement: v"},
    {4, 3, 4, ZB_V, "placement: v"},
    {65537, 1, 1, ZB_CHAIN, "devices: 65537"},
    {INT32_MAX, INT32_MAX, INT32_MAX, ZB_LOOP, "devices: "},
    {65536, 1, INT32_MAX, ZB_CHAIN, "microbatches: "},
};

static void test_shapes(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    struct zb_profile *p = NULL;
    struct zb_error error = {0};
    enum zb_status status = zb_profile_create(shapes[i].devices, shapes[i].chunks, shapes[i].microbatches,
                                              shapes[i].placement, &p, &error);
    const char *wanted = shapes[i].refused;
    expect(status == (wanted ? ZB_BAD_INPUT : ZB_OK), "shape %zu: status %s: %s", i, zb_status_word(status),
           error.text);
    if (wanted) expect(strncmp(error.text, wanted, strlen(wanted)) == 0, "shape %zu: \"%s\"", i, error.text);
    zb_profile_free(p);
  }
}

// 4 stages on 4 devices, everything legal and different.
static struct zb_profile *sound_profile(void) {
  struct zb_profile *p = NULL;
  assert_int_equal(zb_profile_create(4, 1, 5, ZB_CHAIN, &p, NULL), ZB_OK);
  for (int i = 0; i < 4; i++) {
    p->f_ns[i] = 10 + i;
    p->b_ns[i] = 20 + i;
    p->w_ns[i] = 30 + i;
    p->comm_forward_ns[i] = 1 + i;
    p->comm_backward_ns[i] = 5 + i;
    p->f_bytes[i] = 9;
    p->b_bytes[i] = -5;
    p->w_bytes[i] = -4;
  }
  p->has_memory = true;
  return p;
}

static void break_f(struct zb_profile *p) { p->f_ns[3] = -1; }
static void break_b(struct zb_profile *p) { p->b_ns[0] = -1; }
static void break_w(struct zb_profile *p) { p->w_ns[2] = INT64_MIN; }
static void break_bw(struct zb_profile *p) { p->has_bw = true, p->bw_ns[1] = -7; }
static void break_forward(struct zb_profile *p) { p->comm_forward_ns[0] = -1; }
static void break_backward(struct zb_profile *p) { p->comm_backward_ns[2] = -1; }
static void break_horizon(struct zb_profile *p) { p->w_ns[1] = ZB_NUMBER_MAX / 5; }
static void break_comm_horizon(struct zb_profile *p) { p->comm_forward_ns[1] = ZB_NUMBER_MAX; }
static void break_kept(struct zb_profile *p) { p->f_bytes[2] = -1, p->b_bytes[2] = 5; }
static void break_freed(struct zb_profile *p) { p->w_bytes[1] = 1, p->b_bytes[1] = -10; }
static void break_sum(struct zb_profile *p) { p->b_bytes[3] = 15; }
static void break_static(struct zb_profile *p) { p->static_bytes[1] = -3; }
static void break_limit(struct zb_profile *p) { p->limit_bytes[0] = -1; }
static void break_total(struct zb_profile *p) {
  p->f_bytes[3] = ZB_NUMBER_MAX / 5, p->b_bytes[3] = 4 - ZB_NUMBER_MAX / 5;
}
static void break_fixed(struct zb_profile *p) { p->static_bytes[3] = ZB_NUMBER_MAX; }
static void break_device(struct zb_profile *p) { p->placement = ZB_LIST, p->device_of[2] = 4; }
static void break_negative_device(struct zb_profile *p) { p->placement = ZB_LIST, p->device_of[0] = -1; }
static void break_balance(struct zb_profile *p) { p->placement = ZB_LIST, p->device_of[3] = 0; }

static const struct {
  void (*change)(struct zb_profile *p);
  const char *starts, *says;
} gate[] = {
    {break_f, "time.f[3]: ", "-1"},
    {break_b, "time.b[0]: ", "-1"},
    {break_w, "time.w[2]: ", "negative"},
    {break_bw, "time.bw[1]: ", "-7"},
    {break_forward, "time.comm.forward[0]: ", "-1"},
    {break_backward, "time.comm.backward[2]: ", "-1"},
    {break_horizon, "time.", "2^53"},
    {break_comm_horizon, "time.comm.forward[1]: ", "2^53"},
    {break_kept, "memory.f[2]: ", "-1"},
    {break_freed, "memory.w[1]: ", "1 B"},
    {break_sum, "memory: stage 3: ", "20 B"},
    {break_static, "memory.static[1]: ", "-3"},
    {break_limit, "memory.limit[0]: ", "-1"},
    {break_total, "memory.f[3]: ", "2^53"},
    {break_fixed, "memory.", "2^53"},
    {break_device, "placement[2]: ", "device 4"},
    {break_negative_device, "placement[0]: ", "device -1"},
    {break_balance, "placement[3]: ", "device 0"},
};

static void test_names(void **state) {
  (void)state;
  for (int devices = 1; devices <= 4; devices++)
    for (int chunks = 1; chunks <= 3; chunks++)
      for (int k = ZB_CHAIN; k <= ZB_V; k++) {
        struct zb_profile *p = NULL;
        if (zb_profile_create(devices, chunks, 2, (enum zb_placement)k, &p, NULL) != ZB_OK) continue;
        enum zb_placement name = (enum zb_placement)k;
        if (chunks == 1) name = ZB_CHAIN;
        if (devices == 1 && chunks == 2) name = ZB_LOOP;
        assert_int_equal(zb_placement_find(p->device_of, devices, p->stages), name);
        if (devices > 1) {
          const int first = p->device_of[0];
          p->device_of[0] = p->device_of[1];
          p->device_of[1] = first;
          assert_int_equal(zb_placement_find(p->device_of, devices, p->stages), ZB_LIST);
        }
        zb_profile_free(p);
      }
}

static void test_gate(void **state) {
  (void)state;
  struct zb_profile *p = sound_profile();
  assert_int_equal(zb_profile_finish(p, NULL), ZB_OK);
  zb_profile_free(p);
  for (size_t i = 0; i < sizeof gate / sizeof *gate; i++) {
    struct zb_error error = {0};
    p = sound_profile();
    gate[i].change(p);
    enum zb_status status = zb_profile_finish(p, &error);
    expect(status == ZB_BAD_INPUT && error.status == ZB_BAD_INPUT, "change %zu: accepted", i);
    expect(strncmp(error.text, gate[i].starts, strlen(gate[i].starts)) == 0 &&
               strstr(error.text, gate[i].says),
           "change %zu: \"%s\"", i, error.text);
    zb_profile_free(p);
  }
}

// Sums that are exactly 2^53 are still accepted.
static void test_gate_edges(void **state) {
  (void)state;
  struct zb_profile *p = NULL;
  assert_int_equal(zb_profile_create(1, 1, 2, ZB_CHAIN, &p, NULL), ZB_OK);
  p->has_bw = true;
  p->f_ns[0] = ZB_NUMBER_MAX / 2;
  p->f_bytes[0] = ZB_NUMBER_MAX / 2;
  p->b_bytes[0] = -ZB_NUMBER_MAX / 2;
  assert_int_equal(zb_profile_finish(p, NULL), ZB_OK);
  p->bw_ns[0] = 1;
  assert_int_equal(zb_profile_finish(p, NULL), ZB_BAD_INPUT);
  p->bw_ns[0] = 0;
  p->static_bytes[0] = 1;
  assert_int_equal(zb_profile_finish(p, NULL), ZB_BAD_INPUT);
  zb_profile_free(p);
}

// What finish derives: where stages stand, fused times, and no comm within a device.
static void test_finish(void **state) {
  (void)state;
  struct generate_random random = {21};
  for (int i = 0; i < 400; i++) {
    struct zb_profile *p = instance_profile(&random, (enum zb_placement)(i % ZB_PLACEMENT_COUNT), 5, 3);
    assert_non_null(p);
    assert_int_equal(p->stages, p->devices * p->chunks);
    for (int s = 0; s < p->stages; s++) {
      int d = p->device_of[s];
      assert_int_equal(p->stage_at[d * p->chunks + p->chunk_of[s]], s);
      if (p->placement == ZB_CHAIN || p->placement == ZB_LOOP) assert_int_equal(d, s % p->devices);
      if (p->placement == ZB_V) assert_int_equal(d, s < p->devices ? s : 2 * p->devices - 1 - s);
      if (!p->has_bw) expect_equal(p->bw_ns[s], p->b_ns[s] + p->w_ns[s], "bw");
      if (s == p->stages - 1 || d == p->device_of[s + 1]) {
        expect_equal(p->comm_forward_ns[s], 0, "comm within a device");
        expect_equal(p->comm_backward_ns[s], 0, "comm within a device");
      }
    }
    for (int d = 0; d < p->devices; d++)
      for (int k = 1; k < p->chunks; k++)
        assert_true(p->stage_at[d * p->chunks + k - 1] < p->stage_at[d * p->chunks + k]);
    zb_profile_free(p);
  }
}

static void test_measures(void **state) {
  (void)state;
  struct generate_random random = {22};
  for (int i = 0; i < 400; i++) {
    struct zb_profile *p = instance_profile(&random, (enum zb_placement)(i % ZB_PLACEMENT_COUNT), 5, 3),
                      *copy = NULL;
    assert_non_null(p);
    assert_int_equal(zb_profile_copy(p, &copy, NULL), ZB_OK);
    zb_profile_free(p);
    int64_t largest = 0;
    for (int d = 0; d < copy->devices; d++) {
      int64_t work = 0, kept = 0;
      for (int s = 0; s < copy->stages; s++) {
        if (copy->device_of[s] != d) continue;
        int64_t parts = copy->b_ns[s] + copy->w_ns[s];
        int64_t backward = parts < copy->bw_ns[s] ? parts : copy->bw_ns[s];
        expect_equal(zb_profile_backward_ns(copy, s), backward, "cheaper backward");
        expect_equal(zb_profile_gradient_ns(copy, s),
                     copy->b_ns[s] < copy->bw_ns[s] ? copy->b_ns[s] : copy->bw_ns[s], "earliest gradient");
        work += copy->microbatches * (copy->f_ns[s] + backward);
        kept += copy->f_bytes[s];
      }
      expect_equal(zb_profile_least_work(copy, d), work, "least work");
      expect_equal(zb_profile_least_peak(copy, d), copy->static_bytes[d] + kept, "least peak");
      if (kept > largest) largest = kept;
    }
    expect_equal(zb_profile_activation(copy), largest, "activation");
    zb_profile_free(copy);
  }
}

// Numbers of a stage that splitting and merging must conserve.
enum { FIELDS = 6 };

static void fields_of(const struct zb_profile *p, int stage, int64_t *values) {
  const int64_t all[FIELDS] = {p->f_ns[stage],    p->b_ns[stage],    p->w_ns[stage],
                               p->f_bytes[stage], p->b_bytes[stage], p->w_bytes[stage]};
  memcpy(values, all, sizeof all);
}

static int64_t hop(const struct zb_profile *chain, const int64_t *comm, int from, int to) {
  int64_t largest = 0;
  if (from - to == 1 || to - from == 1) return comm[from < to ? from : to];
  for (int k = 0; k < chain->devices - 1; k++) largest = zb_max(largest, comm[k]);
  return largest;
}

static void check_split(const struct zb_profile *chain, const struct zb_profile *parts) {
  for (int d = 0; d < chain->devices; d++) {
    int64_t whole[FIELDS], part[FIELDS], sum[FIELDS] = {0}, low[FIELDS], high[FIELDS];
    fields_of(chain, d, whole);
    for (int k = 0; k < parts->chunks; k++) {
      fields_of(parts, parts->stage_at[d * parts->chunks + k], part);
      for (int i = 0; i < FIELDS; i++) {
        sum[i] += part[i];
        low[i] = k == 0 ? part[i] : zb_min(low[i], part[i]);
        high[i] = k == 0 ? part[i] : zb_max(high[i], part[i]);
      }
    }
    for (int i = 0; i < FIELDS; i++) {
      expect_equal(sum[i], whole[i], "sum of the parts");
      expect(high[i] - low[i] <= 1, "device %d, number %d: parts from %lld to %lld", d, i, (long long)low[i],
             (long long)high[i]);
    }
  }
  for (int s = 0; s < parts->stages - 1; s++) {
    int from = parts->device_of[s], to = parts->device_of[s + 1];
    bool crosses = from != to;
    expect_equal(parts->comm_forward_ns[s], crosses ? hop(chain, chain->comm_forward_ns, from, to) : 0,
                 "forward comm of a hop");
    expect_equal(parts->comm_backward_ns[s], crosses ? hop(chain, chain->comm_backward_ns, from, to) : 0,
                 "backward comm of a hop");
  }
}

static void check_kept(const struct zb_profile *p, const struct zb_profile *derived) {
  assert_int_equal(derived->devices, p->devices);
  assert_int_equal(derived->microbatches, p->microbatches);
  assert_int_equal(derived->has_memory, p->has_memory);
  assert_int_equal(derived->has_bw, p->has_bw);
  assert_true(derived->samples == p->samples);
  assert_memory_equal(derived->limit_bytes, p->limit_bytes, (size_t)p->devices * sizeof(int64_t));
  assert_memory_equal(derived->static_bytes, p->static_bytes, (size_t)p->devices * sizeof(int64_t));
}

static void test_split(void **state) {
  (void)state;
  struct generate_random random = {23};
  for (int i = 0; i < 1000; i++) {
    struct zb_profile *chain = instance_profile(&random, ZB_CHAIN, 5, 3), *parts = NULL;
    assert_non_null(chain);
    enum zb_placement placement = i % 2 ? ZB_LOOP : ZB_V;
    int chunks = placement == ZB_V ? 2 : (int)generate_between(&random, 2, 5);
    assert_int_equal(zb_profile_derive(chain, placement, chunks, &parts, NULL), ZB_OK);
    assert_int_equal(parts->placement, placement);
    assert_int_equal(parts->chunks, chunks);
    check_kept(chain, parts);
    check_split(chain, parts);
    zb_profile_free(parts);
    zb_profile_free(chain);
  }
}

static void test_merge(void **state) {
  (void)state;
  struct generate_random random = {24};
  for (int i = 0; i < 1000; i++) {
    struct zb_profile *p = instance_profile(&random, i % 2 ? ZB_LOOP : ZB_V, 5, 3), *chain = NULL;
    assert_non_null(p);
    assert_int_equal(zb_profile_derive(p, ZB_CHAIN, 1, &chain, NULL), ZB_OK);
    check_kept(p, chain);
    for (int d = 0; d < p->devices; d++) {
      int64_t merged[FIELDS], part[FIELDS], sum[FIELDS] = {0};
      fields_of(chain, d, merged);
      for (int k = 0; k < p->chunks; k++) {
        fields_of(p, d * p->chunks + k, part);
        for (int f = 0; f < FIELDS; f++) sum[f] += part[f];
      }
      for (int f = 0; f < FIELDS; f++) expect_equal(merged[f], sum[f], "merged stage");
      int last = (d + 1) * p->chunks - 1; // its boundary to the next device's first
      if (d < p->devices - 1 && p->device_of[last] != p->device_of[last + 1]) {
        expect_equal(chain->comm_forward_ns[d], p->comm_forward_ns[last], "forward comm of a kept boundary");
        expect_equal(chain->comm_backward_ns[d], p->comm_backward_ns[last],
                     "backward comm of a kept boundary");
      }
    }
    zb_profile_free(chain);
    zb_profile_free(p);
  }
}

// As many chunks as before: the same stages in the same order, only elsewhere.
static void test_moved(void **state) {
  (void)state;
  struct generate_random random = {25};
  for (int i = 0; i < 600; i++) {
    struct zb_profile *p = instance_profile(&random, i % 2 ? ZB_LIST : ZB_V, 5, 3), *moved = NULL;
    assert_non_null(p);
    assert_int_equal(zb_profile_derive(p, ZB_LOOP, p->chunks, &moved, NULL), ZB_OK);
    check_kept(p, moved);
    for (int s = 0; s < p->stages; s++) {
      int64_t before[FIELDS], after[FIELDS];
      fields_of(p, s, before);
      fields_of(moved, s, after);
      assert_memory_equal(before, after, sizeof before);
      expect_equal(moved->bw_ns[s], p->bw_ns[s], "bw of a moved stage");
    }
    zb_profile_free(moved);
    zb_profile_free(p);
  }
}

// What costs the same at every boundary costs that on every hop that crosses devices, also on one whose two
// stages shared a device before.
static void test_uniform_comm(void **state) {
  (void)state;
  static const struct {
    enum zb_placement placement;
    int chunks;
  } targets[] = {{ZB_CHAIN, 1}, {ZB_LOOP, 2}, {ZB_LOOP, 3}, {ZB_V, 2}};
  struct generate_random random = {26};
  for (int i = 0; i < 600; i++) {
    struct zb_profile *p = instance_profile(&random, (enum zb_placement)(i % ZB_PLACEMENT_COUNT), 6, 2);
    assert_non_null(p);
    for (int s = 0; s < p->stages; s++) {
      p->comm_forward_ns[s] = 7;
      p->comm_backward_ns[s] = 9;
    }
    assert_int_equal(zb_profile_finish(p, NULL), ZB_OK);
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
      struct zb_profile *derived = NULL;
      assert_int_equal(zb_profile_derive(p, targets[t].placement, targets[t].chunks, &derived, NULL), ZB_OK);
      for (int s = 0; s < derived->stages - 1; s++) {
        bool crosses = derived->device_of[s] != derived->device_of[s + 1];
        expect(derived->comm_forward_ns[s] == (crosses ? 7 : 0) &&
                   derived->comm_backward_ns[s] == (crosses ? 9 : 0),
               "number %d, %s of %d x %d made %s: boundary %d costs %lld and %lld ns", i,
               zb_placement_word(p->placement), p->devices, p->chunks,
               zb_placement_word(targets[t].placement), s, (long long)derived->comm_forward_ns[s],
               (long long)derived->comm_backward_ns[s]);
      }
      zb_profile_free(derived);
    }
    zb_profile_free(p);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shapes),       cmocka_unit_test(test_names),  cmocka_unit_test(test_gate),
      cmocka_unit_test(test_gate_edges),   cmocka_unit_test(test_finish), cmocka_unit_test(test_measures),
      cmocka_unit_test(test_split),        cmocka_unit_test(test_merge),  cmocka_unit_test(test_moved),
      cmocka_unit_test(test_uniform_comm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
