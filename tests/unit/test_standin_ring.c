// The stand-in's communicators between threads and between processes.
#include <nccl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/standin/standin.h"
#include "tests/unit/standin_unit.h"

enum { RANKS = 4, NUMBERS = 300, ROUNDS = 6 };

#define agreed(call)                                                                                         \
  do {                                                                                                       \
    ncclResult_t result_ = (call);                                                                           \
    if (result_)                                                                                             \
      fail_msg("seed %d: %s: %s: %s", seed, #call, ncclGetErrorString(result_), ncclGetLastError(NULL));     \
  } while (0)

// A ring, each rank sending on one stream what another has computed. Without the event it goes wrong.
static ncclUniqueId ring_id;

struct player {
  int rank, wrong;
  bool with_event;
  ncclResult_t result;
};

static void *play_ring(void *argument) {
  struct player *player = argument;
  int r = player->rank, *number, *host;
  bool failed = cudaSetDevice(r);
  cudaStream_t compute, carry;
  cudaEvent_t event;
  ncclComm_t ring;
  failed |= cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking);
  failed |= cudaStreamCreateWithFlags(&carry, cudaStreamNonBlocking);
  failed |= cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  failed |= cudaMalloc((void **)&number, 2 * NUMBERS * sizeof *number);
  failed |= cudaMallocHost((void **)&host, NUMBERS * sizeof *host);
  player->result = ncclCommInitRank(&ring, RANKS, ring_id, r);
  if (failed || player->result) return NULL;
  for (int k = 0; k < ROUNDS; k++) {
    for (int n = 0; n < NUMBERS; n++) host[n] = (r * ROUNDS + k) * NUMBERS + n;
    cudaMemcpyAsync(number, host, NUMBERS * sizeof *host, cudaMemcpyHostToDevice, compute);
    cudaEventRecord(event, compute);
    if (player->with_event) cudaStreamWaitEvent(carry, event, 0);
    ncclGroupStart();
    ncclSend(number, NUMBERS, ncclInt, (r + 1) % RANKS, ring, carry);
    ncclRecv(number + NUMBERS, NUMBERS, ncclInt, (r + RANKS - 1) % RANKS, ring, carry);
    ncclGroupEnd();
    cudaEventRecord(event, carry);
    cudaStreamWaitEvent(compute, event, 0);
    cudaMemcpyAsync(host, number + NUMBERS, NUMBERS * sizeof *host, cudaMemcpyDeviceToHost, compute);
    cudaStreamSynchronize(compute);
    for (int n = 0; n < NUMBERS; n++)
      player->wrong += host[n] != ((r + RANKS - 1) % RANKS * ROUNDS + k) * NUMBERS + n;
  }
  player->result = ncclCommDestroy(ring);
  cudaStreamDestroy(compute);
  cudaStreamDestroy(carry);
  cudaEventDestroy(event);
  cudaFree(number);
  cudaFreeHost(host);
  return NULL;
}

static int play_threads(bool with_event) {
  struct player player[RANKS];
  pthread_t thread[RANKS];
  int wrong = 0;
  agreed(ncclGetUniqueId(&ring_id));
  for (int r = 0; r < RANKS; r++) {
    player[r] = (struct player){.rank = r, .with_event = with_event};
    pthread_create(&thread[r], NULL, play_ring, &player[r]);
  }
  for (int r = 0; r < RANKS; r++) {
    pthread_join(thread[r], NULL);
    agreed(player[r].result);
    wrong += player[r].wrong > 0;
  }
  return wrong;
}

static void test_ring_of_threads(void **state) {
  (void)state;
  int shown = 0;
  for (seed = 0; seed < seeds() / 3; seed++) {
    begin((struct zb_standin){.devices = RANKS});
    int wrong = play_threads(true);
    expect(!wrong, "seed %d: %d ranks are wrong", seed, wrong);
    shown += play_threads(false) > 0;
    end_well();
  }
  expect(shown > seeds() / 30, "a send too early showed in %d of %d runs", shown, seeds() / 3);
}

// What exit code each rank's process has.
static void play_processes(int ranks, int (*play)(int rank), int *exit_codes) {
  pid_t child[RANKS];
  fflush(NULL);
  for (int r = 0; r < ranks; r++) {
    child[r] = fork();
    if (!child[r]) _exit(play(r));
  }
  for (int r = 0; r < ranks; r++) {
    int status = 0;
    waitpid(child[r], &status, 0);
    exit_codes[r] = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
}

static int ring_process(int rank) {
  struct player player = {.rank = rank, .with_event = true};
  begin((struct zb_standin){.devices = RANKS});
  play_ring(&player);
  if (player.result) return 1;
  if (player.wrong) return 2;
  return zb_standin_end(NULL, 0) ? 0 : 3;
}

static void test_ring_of_processes(void **state) {
  (void)state;
  for (seed = 0; seed < seeds() / 10; seed++) {
    int codes[RANKS];
    begin((struct zb_standin){0});
    agreed(ncclGetUniqueId(&ring_id));
    end_well();
    play_processes(RANKS, ring_process, codes);
    for (int r = 0; r < RANKS; r++)
      expect(codes[r] == 0, "seed %d: rank %d ended with %d", seed, r, codes[r]);
  }
}

// Rank 1 dies before it receives; rank 0 is told.
static int dying_process(int rank) {
  begin((struct zb_standin){0});
  cudaStream_t stream;
  ncclComm_t pair;
  int *number;
  if (cudaSetDevice(rank) || cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) ||
      cudaMalloc((void **)&number, 4) || ncclCommInitRank(&pair, 2, ring_id, rank))
    return 1;
  if (rank) {
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    return 0;
  }
  // It may be dead already.
  ncclResult_t sent = ncclSend(number, 1, ncclInt, 1, pair, stream);
  if (sent && sent != ncclRemoteError) return 2;
  ncclResult_t error = ncclSuccess;
  for (int waited = 0; waited < 5000 && !error; waited++) {
    if (!sent && cudaStreamQuery(stream) != cudaErrorNotReady) return 3;
    if (ncclCommGetAsyncError(pair, &error)) return 3;
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  if (error != ncclRemoteError) return 4;
  if (ncclCommAbort(pair) || cudaStreamSynchronize(stream)) return 5;
  cudaFree(number);
  cudaStreamDestroy(stream);
  return zb_standin_end(NULL, 0) ? 0 : 6;
}

// Two processes with one device between them.
static int duplicate_process(int rank) {
  begin((struct zb_standin){0});
  ncclComm_t pair;
  (void)rank;
  if (ncclCommInitRank(&pair, 2, ring_id, rank) != ncclInvalidUsage || pair) return 1;
  if (!strstr(ncclGetLastError(NULL), "rank 0 and rank 1 both on CUDA device 1000")) return 2;
  return zb_standin_end(NULL, 0) ? 0 : 3;
}

// The same on two machines is none.
static int apart_process(int rank) {
  begin((struct zb_standin){.host = rank});
  ncclComm_t pair;
  if (ncclCommInitRank(&pair, 2, ring_id, rank) || ncclCommDestroy(pair)) return 1;
  return zb_standin_end(NULL, 0) ? 0 : 2;
}

// What was sent arrives, although the sender is gone and it does not fit into a socket.
static int large_process(int rank) {
  enum { LARGE = 1 << 20 };
  begin((struct zb_standin){0});
  cudaStream_t stream;
  ncclComm_t pair;
  int *number;
  if (cudaSetDevice(rank) || cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) ||
      cudaMalloc((void **)&number, LARGE * sizeof *number) || ncclCommInitRank(&pair, 2, ring_id, rank))
    return 1;
  if (!rank) {
    for (int k = 0; k < LARGE; k++) number[k] = k;
    if (ncclSend(number, LARGE, ncclInt, 1, pair, stream)) return 2;
  } else if (ncclRecv(number, LARGE, ncclInt, 0, pair, stream)) {
    return 3;
  }
  if (cudaStreamSynchronize(stream) || ncclCommDestroy(pair)) return 4;
  for (int k = 0; k < LARGE; k++)
    if (number[k] != k) return 5;
  cudaFree(number);
  cudaStreamDestroy(stream);
  return zb_standin_end(NULL, 0) ? 0 : 6;
}

static void test_pairs_of_processes(void **state) {
  (void)state;
  int (*const plays[])(int) = {dying_process, duplicate_process, apart_process, large_process};
  for (int play = 0; play < 4; play++)
    for (seed = 0; seed < 3; seed++) {
      int codes[2];
      begin((struct zb_standin){0});
      agreed(ncclGetUniqueId(&ring_id));
      end_well();
      play_processes(2, plays[play], codes);
      for (int r = 0; r < 2; r++)
        expect(codes[r] == 0, "seed %d: play %d: rank %d ended with %d", seed, play, r, codes[r]);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      // First: a child starts threads of its own.
      cmocka_unit_test(test_ring_of_processes),
      cmocka_unit_test(test_pairs_of_processes),
      cmocka_unit_test(test_ring_of_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
