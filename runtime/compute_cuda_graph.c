// compute_cuda_graph.c - a batch as a CUDA graph.
//
// The first batch is issued op by op, so that libraries have made what they make at first use. The second is
// captured from its beginning to the norm, where it runs as a graph, and each later one is that graph
// launched again: the same buffers, the same events, and the batch's data from where it always lies. The
// transport's messages are captured with the ops where they are enqueued in streams that events tie to this
// one; what is captured must come back to it before the norm.
#include "runtime/compute_cuda_parts.h"

enum zb_status zb_cuda_graph_begin(struct zb_cuda *cuda, struct zb_error *error) {
  if (!cuda->setup->graph) return ZB_OK;
  cuda->graph_mode = cuda->graph ? ZB_CUDA_REPEATS : cuda->batches++ == 0 ? ZB_CUDA_PLAIN : ZB_CUDA_CAPTURES;
  if (cuda->graph_mode == ZB_CUDA_CAPTURES)
    ZB_CUDA_TRY(cudaStreamBeginCapture(cuda->stream, cudaStreamCaptureModeThreadLocal), error);
  if (cuda->graph_mode == ZB_CUDA_REPEATS) {
    ZB_CUDA_TRY(cudaGraphLaunch(cuda->graph, cuda->stream), error);
    cuda->issued = cuda->marks;
  }
  return ZB_OK;
}

enum zb_status zb_cuda_graph_end(struct zb_cuda *cuda, struct zb_error *error) {
  if (cuda->graph_mode != ZB_CUDA_CAPTURES) return ZB_OK;
  cudaGraph_t captured = NULL;
  cuda->graph_mode = ZB_CUDA_PLAIN;
  ZB_CUDA_TRY(cudaStreamEndCapture(cuda->stream, &captured), error);
  cudaError_t code = cudaGraphInstantiate(&cuda->graph, captured, 0);
  cudaGraphDestroy(captured);
  if (code != cudaSuccess) return zb_cuda_fail(error, "cudaGraphInstantiate", code);
  ZB_CUDA_TRY(cudaGraphLaunch(cuda->graph, cuda->stream), error);
  return ZB_OK;
}
