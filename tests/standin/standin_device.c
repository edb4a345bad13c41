// standin_device.c - what the devices say of themselves, and the names of errors.
#include <stdio.h>
#include <string.h>

#include "tests/standin/standin_parts.h"

cudaError_t cudaGetDeviceCount(int *count) {
  cudaError_t status = zb_standin_enter(ENTER_FAILS);
  *count = status ? 0 : (int)zb_standin_setup.devices;
  return zb_standin_leave(status);
}

static cudaError_t enter_for(int device) {
  cudaError_t status = zb_standin_enter(ENTER_FAILS);
  if (!status && (device < 0 || device >= zb_standin_setup.devices)) status = cudaErrorInvalidDevice;
  return status;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
  cudaError_t status = enter_for(device);
  if (!status) {
    memset(properties, 0, sizeof *properties);
    snprintf(properties->name, sizeof properties->name, "stand-in");
    properties->totalGlobalMem = (size_t)zb_standin_setup.memory_bytes;
    properties->major = 9;
    properties->multiProcessorCount = 4;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = 1024;
    properties->sharedMemPerBlock = 48 << 10;
    properties->pciBusID = zb_standin_gpu(device) + 1;
    properties->unifiedAddressing = 1;
    properties->asyncEngineCount = 2;
    properties->concurrentKernels = 1;
  }
  return zb_standin_leave(status);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
  static const struct {
    enum cudaDeviceAttr attribute;
    int value;
  } values[] = {{cudaDevAttrMaxThreadsPerBlock, 1024},
                {cudaDevAttrMultiProcessorCount, 4},
                {cudaDevAttrWarpSize, 32},
                {cudaDevAttrMaxSharedMemoryPerBlock, 48 << 10},
                {cudaDevAttrComputeCapabilityMajor, 9},
                {cudaDevAttrComputeCapabilityMinor, 0},
                {cudaDevAttrUnifiedAddressing, 1},
                {cudaDevAttrAsyncEngineCount, 2}};
  cudaError_t status = enter_for(device);
  if (!status) {
    status = cudaErrorInvalidValue;
    for (size_t k = 0; k < sizeof values / sizeof values[0]; k++)
      if (values[k].attribute == attribute) {
        *value = values[k].value;
        status = cudaSuccess;
      }
  }
  return zb_standin_leave(status);
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int size, int device) {
  cudaError_t status = enter_for(device);
  if (!status && size < 13) status = cudaErrorInvalidValue;
  if (!status) snprintf(id, (size_t)size, "0000:%02X:00.0", (unsigned)(zb_standin_gpu(device) + 1) & 0xff);
  return zb_standin_leave(status);
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  cudaError_t status = enter_for(device);
  if (!status && (peer < 0 || peer >= zb_standin_setup.devices)) status = cudaErrorInvalidDevice;
  if (!status) *can = device != peer;
  return zb_standin_leave(status);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  cudaError_t status = enter_for(peer);
  if (!status && flags) status = cudaErrorInvalidValue;
  if (!status && peer == zb_standin_current()) status = cudaErrorInvalidDevice;
  struct device_state *state = &zb_standin_device[zb_standin_current()];
  if (!status && state->peers >> peer & 1) status = cudaErrorPeerAccessAlreadyEnabled;
  if (!status) state->peers |= (uint64_t)1 << peer;
  return zb_standin_leave(status);
}

cudaError_t cudaDriverGetVersion(int *version) {
  zb_standin_enter(ENTER_SAFE);
  *version = zb_standin_setup.no_driver ? 0 : CUDART_VERSION;
  return zb_standin_leave(cudaSuccess);
}

cudaError_t cudaRuntimeGetVersion(int *version) {
  zb_standin_enter(ENTER_SAFE);
  *version = CUDART_VERSION;
  return zb_standin_leave(cudaSuccess);
}

// The words of those that the stand-in can give.
static const struct {
  cudaError_t error;
  const char *name, *text;
} words[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorIllegalState, "cudaErrorIllegalState",
     "the operation cannot be performed in the present state"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    {cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled",
     "peer access is already enabled"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const char *cudaGetErrorName(cudaError_t error) {
  for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
    if (words[k].error == error) return words[k].name;
  return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error) {
  for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
    if (words[k].error == error) return words[k].text;
  return "unrecognized error code";
}
