// The kernels against scalar.h, in both dtypes, at awkward sizes and addresses, in any order of blocks and
// threads.
//
// Tolerances. What is computed element by element differs by what another exp or square root may round to,
// 1e-6 of itself; a sum of n terms by what another order of adding may: 1e-6 of the sum of their magnitudes.
// In bf16 what is stored may fall to the next number, 1/128 away, and what is computed from that moves with
// it.
#include "tests/unit/kernel_trial.h"

static const struct {
  int rows, columns;
} shapes[] = {
    {1, 1},   {3, 3},    {5, 20},   {70, 33},  {9, 64},   {4, 257},
    {2, 300}, {3, 1032}, {300, 24}, {2, 8200}, {2, 8201},
};

static void try_shapes(const char *name, kernel_body *body) {
  for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
    try_kernel(name, body, shapes[k].rows, shapes[k].columns);
}

static size_t elements(const struct kernel_trial *t) { return (size_t)t->rows * (size_t)t->columns; }

// What a bf16 that has fallen to the next number moves a value of about `size` by; 0 in fp32.
static double slack(const struct kernel_trial *t, double size) {
  return t->dtype == ZB_BF16 ? size / 128 : 0;
}

static void embedding(struct kernel_trial *t) {
  enum { VOCABULARY = 11, SEQUENCE = 7 };
  size_t hidden = (size_t)t->columns, table_size = (VOCABULARY + SEQUENCE) * hidden;
  unsigned char *tokens = malloc((size_t)t->rows + 32);
  assert_non_null(tokens);
  // Most of them the same, some never; and behind the last, more of the same that is none of our business.
  for (int k = 0; k < t->rows + 32; k++)
    tokens[k] = (unsigned char)(k % 3 ? 4 : zb_random_mix(5, (uint64_t)k) % (VOCABULARY - 1));
  void *device_tokens = given_bytes(t, tokens, (size_t)t->rows + 32);

  float *table = numbers(t, ZB_FP32, table_size, 1), *out = blank(t, t->dtype, elements(t));
  WORKS(zb_cuda_embedding_forward(t->stream, t->dtype, device_tokens, given(t, table), t->rows, SEQUENCE,
                                  VOCABULARY, t->columns, room(t, out)));
  for (size_t k = 0; k < elements(t); k++)
    out[k] = table[tokens[k / hidden] * hidden + k % hidden] +
             table[(VOCABULARY + k / hidden % SEQUENCE) * hidden + k % hidden];
  becomes(t, "out", out, 0, 0);

  float *d_out = numbers(t, t->dtype, elements(t), 1), *gradient = numbers(t, ZB_FP32, table_size, 1);
  WORKS(zb_cuda_embedding_weights(t->stream, t->dtype, device_tokens, given(t, d_out), t->rows, SEQUENCE,
                                  VOCABULARY, t->columns, given(t, gradient)));
  for (int k = 0; k < t->rows; k++) {
    zb_add_row(d_out + (size_t)k * hidden, t->columns, gradient + tokens[k] * hidden);
    zb_add_row(d_out + (size_t)k * hidden, t->columns,
               gradient + (size_t)(VOCABULARY + k % SEQUENCE) * hidden);
  }
  becomes(t, "gradient", gradient, 0, 1e-6 * (1 + t->rows));
  free(tokens);
}

static void test_embedding(void **state) {
  (void)state;
  try_shapes("embedding", embedding);
}

static void *scratch_of(struct kernel_trial *t) {
  return room(t, blank(t, ZB_FP32, zb_cuda_column_scratch(t->rows, t->columns)));
}

static void download(struct kernel_trial *t, const void *device, size_t count, unsigned char **bits) {
  *bits = malloc(count * zb_dtype_bytes(t->dtype));
  assert_non_null(*bits);
  WORKS(cudaMemcpyAsync(*bits, device, count * zb_dtype_bytes(t->dtype), cudaMemcpyDeviceToHost, t->stream));
  WORKS(cudaStreamSynchronize(t->stream));
}

// which: 1 a bias, 2 a residual, 4 the sum goes elsewhere. What the weights' pass makes of `normal` is the
// same output to the bit.
static void norm_forward(struct kernel_trial *t, int which) {
  size_t count = elements(t), columns = (size_t)t->columns;
  float *in = numbers(t, t->dtype, count, 2), *bias = numbers(t, ZB_FP32, columns, 1);
  float *residual = numbers(t, t->dtype, count, 1), *gain = numbers(t, ZB_FP32, columns, 1),
        *shift = numbers(t, ZB_FP32, columns, 1);
  float *normal = blank(t, t->dtype, count), *out = blank(t, t->dtype, count);
  float *rstd = blank(t, ZB_FP32, (size_t)t->rows), *sum = which & 4 ? blank(t, t->dtype, count) : in;
  void *device_in = given(t, in), *device_sum = which & 4 ? room(t, sum) : which ? device_in : NULL;
  void *device_gain = given(t, gain), *device_shift = given(t, shift);
  void *device_normal = room(t, normal), *device_out = room(t, out);
  WORKS(zb_cuda_layernorm_forward(t->stream, t->dtype, device_in, which & 1 ? given(t, bias) : NULL,
                                  which & 2 ? given(t, residual) : NULL, device_sum, device_gain,
                                  device_shift, t->rows, t->columns, device_normal, room(t, rstd),
                                  device_out));
  void *again = room(t, blank(t, t->dtype, count)), *unused = given(t, blank(t, ZB_FP32, columns));
  WORKS(zb_cuda_layernorm_weights(t->stream, t->dtype, device_out, device_normal, device_gain, device_shift,
                                  t->rows, t->columns, unused, unused, again, scratch_of(t)));
  unsigned char *first, *second;
  download(t, device_out, count, &first);
  download(t, again, count, &second);
  expect(memcmp(first, second, count * zb_dtype_bytes(t->dtype)) == 0,
         "%s, %d x %d: not the same output again", t->name, t->rows, t->columns);
  free(first);
  free(second);
  for (size_t k = 0; k < count; k++) {
    float x = in[k];
    if (which & 1) x += bias[k % columns];
    if (which & 2) x += residual[k];
    sum[k] = stored(t->dtype, x);
  }
  for (int r = 0; r < t->rows; r++) {
    float *row = normal + (size_t)r * columns;
    zb_layernorm_row(sum + (size_t)r * columns, t->columns, row, rstd + r);
    for (size_t k = 0; k < columns; k++) row[k] = stored(t->dtype, row[k]);
    zb_affine_row(row, gain, shift, t->columns, out + (size_t)r * columns);
  }
  // Mean and variance are sums: of one column, the variance is that of rounding.
  double near = 1e-5 * (t->columns < 4 ? 100 : 1);
  if (which) becomes(t, "sum", sum, 0, 0);
  becomes(t, "normal", normal, near, near);
  becomes(t, "rstd", rstd, 1e-5, 0);
  becomes(t, "out", out, near, 2 * near + slack(t, 2));
}
static void norm_plain(struct kernel_trial *t) { norm_forward(t, 0); }
static void norm_biased(struct kernel_trial *t) { norm_forward(t, 1); }
static void norm_both(struct kernel_trial *t) { norm_forward(t, 3); }
static void norm_apart(struct kernel_trial *t) { norm_forward(t, 6); }

static void test_layernorm_forward(void **state) {
  (void)state;
  try_shapes("layernorm", norm_plain);
  try_shapes("layernorm of in + bias", norm_biased);
  try_shapes("layernorm of in + bias + residual", norm_both);
  try_shapes("layernorm of in + residual, elsewhere", norm_apart);
}

// where: 0 d_in apart and no residual, 1 d_in over d_out, 2 d_in over the residual.
static void norm_backward(struct kernel_trial *t, int where) {
  size_t count = elements(t), columns = (size_t)t->columns;
  float *d_out = numbers(t, t->dtype, count, 1), *gain = numbers(t, ZB_FP32, columns, 1);
  float *normal = numbers(t, t->dtype, count, 1.7), *rstd = numbers(t, ZB_FP32, (size_t)t->rows, 1);
  float *residual = numbers(t, t->dtype, count, 1), *d_in = blank(t, t->dtype, count);
  void *device_d_out = given(t, d_out), *device_residual = where ? given(t, residual) : NULL;
  void *to = where == 0 ? room(t, d_in) : where == 1 ? device_d_out : device_residual;
  WORKS(zb_cuda_layernorm_backward(t->stream, t->dtype, device_d_out, given(t, gain), given(t, normal),
                                   given(t, rstd), device_residual, t->rows, t->columns, to));
  if (where) memcpy(d_in, residual, count * sizeof *d_in);
  for (int r = 0; r < t->rows; r++) {
    size_t at = (size_t)r * columns;
    zb_layernorm_back_row(d_out + at, gain, normal + at, rstd[r], t->columns, d_in + at);
  }
  float *result = where == 0 ? d_in : where == 1 ? d_out : residual;
  memcpy(result, d_in, count * sizeof *d_in);
  becomes(t, "d_in", result, 1e-6, 1e-5);
}
static void norm_back_apart(struct kernel_trial *t) { norm_backward(t, 0); }
static void norm_back_over_d_out(struct kernel_trial *t) { norm_backward(t, 1); }
static void norm_back_over_residual(struct kernel_trial *t) { norm_backward(t, 2); }

static void test_layernorm_backward(void **state) {
  (void)state;
  try_shapes("layernorm backward", norm_back_apart);
  try_shapes("layernorm backward over d_out", norm_back_over_d_out);
  try_shapes("layernorm backward over the residual", norm_back_over_residual);
}

static void norm_weights(struct kernel_trial *t, bool again) {
  size_t count = elements(t), columns = (size_t)t->columns;
  float *d_out = numbers(t, t->dtype, count, 1), *normal = numbers(t, t->dtype, count, 1.7);
  float *gain = numbers(t, ZB_FP32, columns, 1), *shift = numbers(t, ZB_FP32, columns, 1);
  float *d_gain = numbers(t, ZB_FP32, columns, 1), *d_shift = numbers(t, ZB_FP32, columns, 1);
  float *out = blank(t, t->dtype, count);
  WORKS(zb_cuda_layernorm_weights(t->stream, t->dtype, given(t, d_out), given(t, normal),
                                  again ? given(t, gain) : NULL, again ? given(t, shift) : NULL, t->rows,
                                  t->columns, given(t, d_gain), given(t, d_shift),
                                  again ? room(t, out) : NULL, scratch_of(t)));
  for (int r = 0; r < t->rows; r++) {
    size_t at = (size_t)r * columns;
    zb_affine_row(normal + at, gain, shift, t->columns, out + at);
    zb_affine_gradient_row(d_out + at, normal + at, t->columns, d_gain, d_shift);
  }
  becomes(t, "d_gain", d_gain, 0, 1e-6 * (1 + 1.7 * t->rows));
  becomes(t, "d_shift", d_shift, 0, 1e-6 * (1 + t->rows));
  if (again) becomes(t, "out", out, 0, 0);
}
static void norm_weights_alone(struct kernel_trial *t) { norm_weights(t, false); }
static void norm_weights_again(struct kernel_trial *t) { norm_weights(t, true); }

static void bias_weights(struct kernel_trial *t) {
  float *d_out = numbers(t, t->dtype, elements(t), 1), *d_bias = numbers(t, ZB_FP32, (size_t)t->columns, 1);
  WORKS(zb_cuda_bias_weights(t->stream, t->dtype, given(t, d_out), t->rows, t->columns, given(t, d_bias),
                             scratch_of(t)));
  for (int r = 0; r < t->rows; r++) zb_add_row(d_out + (size_t)r * (size_t)t->columns, t->columns, d_bias);
  becomes(t, "d_bias", d_bias, 0, 1e-6 * (1 + t->rows));
}

static void test_column_sums(void **state) {
  (void)state;
  try_shapes("layernorm weights", norm_weights_alone);
  try_shapes("layernorm weights and output", norm_weights_again);
  try_shapes("bias weights", bias_weights);
  // More than one chunk of rows a thread, and more chunks than threads that add them.
  try_kernel("bias weights", bias_weights, 9001, 3);
  try_kernel("layernorm weights", norm_weights_alone, 700, 20);
}

static void bias(struct kernel_trial *t, bool with_residual) {
  float *x = numbers(t, t->dtype, elements(t), 1), *term = numbers(t, ZB_FP32, (size_t)t->columns, 1);
  float *residual = numbers(t, t->dtype, elements(t), 1);
  WORKS(zb_cuda_bias(t->stream, t->dtype, given(t, x), given(t, term),
                     with_residual ? given(t, residual) : NULL, t->rows, t->columns));
  for (int r = 0; r < t->rows; r++) zb_add_row(term, t->columns, x + (size_t)r * (size_t)t->columns);
  if (with_residual) zb_add_row(residual, (int)elements(t), x);
  becomes(t, "x", x, 0, 0);
}
static void bias_alone(struct kernel_trial *t) { bias(t, false); }
static void bias_and_residual(struct kernel_trial *t) { bias(t, true); }

static void bias_gelu(struct kernel_trial *t) {
  float *before = numbers(t, t->dtype, elements(t), 4), *term = numbers(t, ZB_FP32, (size_t)t->columns, 1);
  float *after = blank(t, t->dtype, elements(t));
  WORKS(zb_cuda_bias_gelu(t->stream, t->dtype, given(t, before), given(t, term), t->rows, t->columns,
                          room(t, after)));
  for (size_t k = 0; k < elements(t); k++) {
    before[k] = stored(t->dtype, before[k] + term[k % (size_t)t->columns]);
    after[k] = zb_gelu(before[k]);
  }
  becomes(t, "before", before, 0, 0);
  becomes(t, "after", after, 1e-6, 1e-9);
}

static void gelu_backward(struct kernel_trial *t) {
  float *d_after = numbers(t, t->dtype, elements(t), 1), *before = numbers(t, t->dtype, elements(t), 5);
  WORKS(
      zb_cuda_gelu_backward(t->stream, t->dtype, given(t, d_after), given(t, before), (int64_t)elements(t)));
  for (size_t k = 0; k < elements(t); k++) before[k] = d_after[k] * zb_gelu_slope(before[k]);
  becomes(t, "d_before", before, 1e-6, 1e-6);
}

static void copy(struct kernel_trial *t) {
  float *from = numbers(t, t->dtype, elements(t), 1), *to = blank(t, t->dtype, elements(t));
  WORKS(zb_cuda_copy(t->stream, given(t, from), room(t, to),
                     (int64_t)(elements(t) * zb_dtype_bytes(t->dtype))));
  memcpy(to, from, elements(t) * sizeof *to);
  becomes(t, "to", to, 0, 0);
}

static void test_pointwise(void **state) {
  (void)state;
  try_shapes("bias", bias_alone);
  try_shapes("bias and residual", bias_and_residual);
  try_shapes("bias and gelu", bias_gelu);
  try_shapes("gelu backward", gelu_backward);
  try_shapes("copy", copy);
}

// Random scores, in every other matrix so low that their exp is 0. Above the diagonal there are NaNs, and
// nobody looks.
static void softmax(struct kernel_trial *t) {
  int n = t->columns;
  float *scores = numbers(t, t->dtype, elements(t) * (size_t)n, 8);
  for (size_t k = 0; k < elements(t) * (size_t)n; k++) {
    if (k / ((size_t)n * (size_t)n) % 2 == 0) scores[k] = stored(t->dtype, scores[k] - 1000);
    if (k % (size_t)n > k / (size_t)n % (size_t)n) scores[k] = NAN;
  }
  void *device_scores = given(t, scores);
  WORKS(zb_cuda_softmax_forward(t->stream, t->dtype, device_scores, t->rows, n, 0.5f));
  for (int r = 0; r < t->rows * n; r++)
    zb_softmax_causal_row(scores + (size_t)r * (size_t)n, r % n + 1, n, 0.5f);
  becomes(t, "probability", scores, 1e-5, 1e-30);
}

static void softmax_backward(struct kernel_trial *t) {
  int n = t->columns;
  float *p = numbers(t, t->dtype, elements(t) * (size_t)n, 1),
        *d = numbers(t, t->dtype, elements(t) * (size_t)n, 1);
  for (size_t k = 0; k < elements(t) * (size_t)n; k++)
    if (k % (size_t)n > k / (size_t)n % (size_t)n) p[k] = d[k] = NAN;
  WORKS(zb_cuda_softmax_backward(t->stream, t->dtype, given(t, p), given(t, d), t->rows, n, 0.5f));
  for (int r = 0; r < t->rows * n; r++)
    zb_softmax_back_row(p + (size_t)r * (size_t)n, d + (size_t)r * (size_t)n, r % n + 1, n, 0.5f);
  becomes(t, "d_scores", d, 1e-6, 1e-6 * n);
}

static void test_softmax(void **state) {
  (void)state;
  static const int sizes[][2] = {{1, 1}, {2, 3}, {3, 20}, {2, 33}, {2, 64}, {1, 264}, {1, 257}};
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    try_kernel("softmax", softmax, sizes[k][0], sizes[k][1]);
    try_kernel("softmax backward", softmax_backward, sizes[k][0], sizes[k][1]);
  }
  const char *longer = getenv("ZB_LONG");
  if (!longer || !*longer) return;
  // Rows too long to be held: 270 MB.
  struct kernel_trial t = {.name = "softmax", .rows = 1, .columns = 8201};
  run_once(&t, softmax, 0, 1);
  run_once(&t, softmax, 1, 2);
  free(t.bits);
}

static void cross_entropy(struct kernel_trial *t) {
  float *logits = numbers(t, t->dtype, elements(t), 6), *loss = blank(t, ZB_FP32, 1);
  unsigned char *targets = malloc((size_t)t->rows);
  assert_non_null(targets);
  for (int r = 0; r < t->rows; r++)
    targets[r] =
        (unsigned char)(zb_random_mix(7, (uint64_t)r) % (uint64_t)(t->columns < 256 ? t->columns : 256));
  tensor_of(t, loss)->real = true;
  for (size_t k = 0; k < (size_t)t->columns; k++) logits[k] = stored(t->dtype, logits[k] - 1000);
  void *scratch = room(t, blank(t, ZB_FP32, (size_t)t->rows)), *device_loss = room(t, loss);
  void *device_targets = given_bytes(t, targets, (size_t)t->rows);
  WORKS(zb_cuda_cross_entropy(t->stream, t->dtype, given(t, logits), device_targets, t->rows, t->columns,
                              0.25f, device_loss, scratch));
  double sum = 0;
  for (int r = 0; r < t->rows; r++)
    sum +=
        (double)zb_cross_entropy_row(logits + (size_t)r * (size_t)t->columns, t->columns, targets[r], 0.25f);
  loss[0] = (float)sum;
  becomes(t, "loss", loss, 2e-6, 1e-6);
  becomes(t, "d_logits", logits, 1e-5, 1e-7);
  free(targets);
}

static void test_cross_entropy(void **state) {
  (void)state;
  try_shapes("cross-entropy", cross_entropy);
}

// The last element is what `strange` says, where that is not 0.
static void square_sum(struct kernel_trial *t, float strange, double size) {
  float *x = numbers(t, ZB_FP32, elements(t), size), *sum = blank(t, ZB_FP32, 1);
  tensor_of(t, sum)->real = true;
  if (strange != 0) x[elements(t) - 1] = strange;
  void *device_sum = room(t, sum), *scratch;
  float *partial = blank(t, ZB_FP32, zb_cuda_square_sum_scratch((int64_t)elements(t)));
  tensor_of(t, partial)->real = true;
  scratch = room(t, partial);
  WORKS(zb_cuda_square_sum(t->stream, given(t, x), (int64_t)elements(t), device_sum, scratch));
  double wanted = zb_square_sum(x, (int64_t)elements(t));
  // The values are float, the sum need not fit: both are scaled.
  sum[0] = (float)wanted;
  if (size > 1 && isfinite(wanted)) {
    double got;
    WORKS(cudaMemcpyAsync(&got, device_sum, sizeof got, cudaMemcpyDeviceToHost, t->stream));
    WORKS(cudaStreamSynchronize(t->stream));
    expect(wanted > (double)FLT_MAX && fabs(got - wanted) <= 1e-12 * wanted, "sum is %.17g, expected %.17g",
           got, wanted);
    becomes(t, "x", x, 0, 0);
    return;
  }
  becomes(t, "sum", sum, 1e-7, 0);
}
static void square_sum_plain(struct kernel_trial *t) { square_sum(t, 0, 1); }
static void square_sum_nan(struct kernel_trial *t) { square_sum(t, NAN, 1); }
static void square_sum_infinite(struct kernel_trial *t) { square_sum(t, -INFINITY, 1); }
static void square_sum_huge(struct kernel_trial *t) { square_sum(t, 0, 1e30); }

static void test_square_sum(void **state) {
  (void)state;
  try_shapes("square sum", square_sum_plain);
  try_shapes("square sum with a NaN", square_sum_nan);
  try_shapes("square sum with an infinity", square_sum_infinite);
  try_kernel("square sum of large numbers", square_sum_huge, 3, 700);
  try_kernel("square sum of nothing", square_sum_plain, 0, 0);
  try_kernel("square sum over several blocks", square_sum_plain, 9, 3001);
}

static void adamw(struct kernel_trial *t, bool back, bool shadowed) {
  const struct zb_adamw_step step = {.rate = 0.003f,
                                     .beta1 = 0.9f,
                                     .beta2 = 0.95f,
                                     .epsilon = 1e-8f,
                                     .shrink = 1 - 0.003f * 0.1f,
                                     .correct1 = 1 / (1 - 0.9f),
                                     .correct2 = 1 / (1 - 0.95f),
                                     .scale = 0.5f};
  size_t count = elements(t);
  float *gradient = numbers(t, ZB_FP32, count, 1), *value = numbers(t, ZB_FP32, count, 1);
  float *mean = numbers(t, ZB_FP32, count, 1), *square = numbers(t, ZB_FP32, count, 1);
  float *shadow = blank(t, ZB_BF16, count);
  for (size_t k = 0; k < count; k++) square[k] = square[k] * square[k] + 0.25f;
  WORKS((back ? zb_cuda_adamw_inverse
              : zb_cuda_adamw_step)(t->stream, step, given(t, gradient), (int64_t)count, given(t, value),
                                    given(t, mean), given(t, square), shadowed ? room(t, shadow) : NULL));
  for (size_t k = 0; k < count; k++) {
    if (back)
      zb_adamw_inverse(&step, gradient[k], value + k, mean + k, square + k);
    else
      zb_adamw_forward(&step, gradient[k], value + k, mean + k, square + k);
    shadow[k] = value[k];
  }
  becomes(t, "value", value, 1e-6, 1e-8);
  becomes(t, "mean", mean, 1e-6, 1e-8);
  becomes(t, "square", square, 1e-6, 0);
  if (shadowed) becomes(t, "shadow", shadow, 0, 0);
}
static void adamw_step(struct kernel_trial *t) { adamw(t, false, false); }
static void adamw_inverse(struct kernel_trial *t) { adamw(t, true, true); }
static void adamw_shadowed(struct kernel_trial *t) { adamw(t, false, true); }

static void shadow(struct kernel_trial *t) {
  float *from = numbers(t, ZB_FP32, elements(t), 1), *to = blank(t, ZB_BF16, elements(t));
  WORKS(zb_cuda_shadow(t->stream, given(t, from), (int64_t)elements(t), room(t, to)));
  for (size_t k = 0; k < elements(t); k++) to[k] = from[k];
  becomes(t, "to", to, 0, 0);
}

static void test_optimizer(void **state) {
  (void)state;
  try_shapes("adamw", adamw_step);
  try_shapes("adamw inverse", adamw_inverse);
  try_shapes("adamw with a shadow", adamw_shadowed);
  try_shapes("shadow", shadow);
}

// To the nearest, ties to even, overflow to infinity, one NaN.
static void test_bf16(void **state) {
  (void)state;
  static const struct {
    uint32_t from;
    uint16_t to;
  } cases[] = {
      {0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f808001, 0x3f81}, {0x3f818000, 0x3f82},
      {0x80000000, 0x8000}, {0x00000001, 0x0000}, {0x00018000, 0x0002}, {0x7f7fffff, 0x7f80},
      {0xff7f0000, 0xff7f}, {0x7f800000, 0x7f80}, {0xff800000, 0xff80}, {0xffc12345, 0x7fff},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    float from;
    memcpy(&from, &cases[k].from, sizeof from);
    expect_equal(zb_bf16_round(from).bits, cases[k].to, "rounded");
  }
  for (uint32_t bits = 0; bits < 65536; bits++) {
    struct zb_bf16 x = {(uint16_t)bits};
    if (!isnan(zb_bf16_value(x))) expect_equal(zb_bf16_round(zb_bf16_value(x)).bits, bits, "there and back");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bf16),
      cmocka_unit_test(test_pointwise),
      cmocka_unit_test(test_layernorm_forward),
      cmocka_unit_test(test_layernorm_backward),
      cmocka_unit_test(test_column_sums),
      cmocka_unit_test(test_softmax),
      cmocka_unit_test(test_cross_entropy),
      cmocka_unit_test(test_embedding),
      cmocka_unit_test(test_square_sum),
      cmocka_unit_test(test_optimizer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
