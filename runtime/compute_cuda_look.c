// compute_cuda_look.c - what is there before anything is opened, and how failures read.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/compute_cuda_parts.h"
#include "solver/io/text.h"

// The oldest GPUs that kernels are compiled for: sm_80.
enum { OLDEST_MAJOR = 8 };

enum zb_status zb_cuda_fail(struct zb_error *error, const char *call, cudaError_t code) {
  return zb_fail(error, ZB_FAILED, "%.*s: %s", (int)strcspn(call, "("), call, cudaGetErrorString(code));
}

enum zb_status zb_cuda_fail_blas(struct zb_error *error, const char *call, cublasStatus_t code) {
  return zb_fail(error, ZB_FAILED, "%.*s: %s", (int)strcspn(call, "("), call, cublasGetStatusString(code));
}

// How many GPUs there are: at least one.
static enum zb_status count_gpus(int *gpus, struct zb_error *error) {
  cudaError_t code = cudaGetDeviceCount(gpus);
  const char *words = cudaGetErrorString(code);
  if (code == cudaErrorInsufficientDriver)
    return zb_fail(error, ZB_BAD_INPUT, "--backend cuda: no driver, or one too old (cudaGetDeviceCount: %s)",
                   words);
  if (code == cudaErrorNoDevice || (code == cudaSuccess && *gpus < 1))
    return zb_fail(error, ZB_BAD_INPUT, "--backend cuda: no GPU here (cudaGetDeviceCount: %s)", words);
  if (code != cudaSuccess) return zb_cuda_fail(error, "cudaGetDeviceCount", code);
  return ZB_OK;
}

enum zb_status zb_cuda_gpu_of(int seat, int *gpu, struct zb_error *error) {
  int gpus = 0;
  ZB_CUDA_PASS(count_gpus(&gpus, error));
  *gpu = seat % gpus;
  return ZB_OK;
}

static bool is_used(int gpu, int gpus, const struct zb_demand *need, int count) {
  for (int k = 0; k < count; k++)
    if (need[k].here && need[k].seat % gpus == gpu) return true;
  return false;
}

// GPUs of this process that can read each other's memory do; between others CUDA takes a copy over the host.
static enum zb_status make_peers(int gpu, int gpus, const struct zb_demand *need, int count,
                                 struct zb_error *error) {
  for (int other = 0; other < gpus; other++) {
    int can = 0;
    if (other == gpu || !is_used(other, gpus, need, count)) continue;
    ZB_CUDA_TRY(cudaDeviceCanAccessPeer(&can, gpu, other), error);
    if (!can) continue;
    ZB_CUDA_TRY(cudaSetDevice(gpu), error);
    cudaError_t code = cudaDeviceEnablePeerAccess(other, 0);
    if (code == cudaErrorPeerAccessAlreadyEnabled || code == cudaErrorTooManyPeers)
      cudaGetLastError(); // or the next kernel's launch would find it
    else if (code != cudaSuccess)
      return zb_cuda_fail(error, "cudaDeviceEnablePeerAccess", code);
  }
  return ZB_OK;
}

static void print_devices(const struct zb_demand *need, int count, int gpu, int gpus, struct zb_text *out) {
  int named = 0;
  for (int k = 0; k < count; k++)
    if (need[k].here && need[k].seat % gpus == gpu)
      zb_text_print(out, "%s%d", named++ ? ", " : "device ", need[k].device);
}

static enum zb_status look_at(int gpu, int gpus, const struct zb_training *training,
                              const struct zb_demand *need, int count, struct zb_error *error) {
  int64_t bytes = 0;
  for (int k = 0; k < count; k++)
    if (need[k].here && need[k].seat % gpus == gpu) bytes += need[k].bytes;
  if (bytes == 0) return ZB_OK;
  int major = 0;
  size_t unused = 0, total = 0;
  ZB_CUDA_TRY(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, gpu), error);
  if (major < OLDEST_MAJOR)
    return zb_fail(error, ZB_BAD_INPUT,
                   "--backend cuda: GPU %d has compute capability %d, expected %d or more", gpu, major,
                   OLDEST_MAJOR);
  ZB_CUDA_TRY(cudaSetDevice(gpu), error);
  ZB_CUDA_TRY(cudaMemGetInfo(&unused, &total), error);
  if (bytes <= (int64_t)unused) return ZB_OK;
  struct zb_text text = {0};
  print_devices(need, count, gpu, gpus, &text);
  zb_fail(error, ZB_BAD_INPUT,
          "out of memory: the model %s needs %" PRId64 " bytes of GPU %d for %s, which has %zu of %zu left",
          training->gpt->name, bytes, gpu, text.data ? text.data : "its devices", unused, total);
  zb_text_free(&text);
  return ZB_BAD_INPUT;
}

enum zb_status zb_cuda_look(const struct zb_training *training, const struct zb_demand *need, int count,
                            struct zb_error *error) {
  int gpus = 0;
  if (training->tf32 && training->dtype != ZB_FP32)
    return zb_fail(error, ZB_BAD_INPUT,
                   "--tf32: rounds the factors of fp32 products, and --dtype bf16 has none");
  ZB_CUDA_PASS(count_gpus(&gpus, error));
  for (int gpu = 0; gpu < gpus; gpu++) ZB_CUDA_PASS(look_at(gpu, gpus, training, need, count, error));
  for (int gpu = 0; gpu < gpus; gpu++)
    if (is_used(gpu, gpus, need, count)) ZB_CUDA_PASS(make_peers(gpu, gpus, need, count, error));
  return ZB_OK;
}
