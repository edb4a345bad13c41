// The stand-in's communicators: sends that wait for receives, groups, order, graphs, what goes wrong and how
// it is told. Ranks are of one thread here.
#include <nccl.h>

#include "tests/standin/standin.h"
#include "tests/unit/standin_unit.h"

enum { NUMBERS = 300 };

#define agreed(call)                                                                                         \
  do {                                                                                                       \
    ncclResult_t result_ = (call);                                                                           \
    if (result_)                                                                                             \
      fail_msg("seed %d: %s: %s: %s", seed, #call, ncclGetErrorString(result_), ncclGetLastError(NULL));     \
  } while (0)
#define answers(call, wanted)                                                                                \
  do {                                                                                                       \
    ncclResult_t result_ = (call);                                                                           \
    if (result_ != (wanted)) fail_msg("%s: %s, expected %s", #call, ncclGetErrorString(result_), #wanted);   \
  } while (0)

// Two ranks of one thread: opened in a group.
struct pair {
  ncclComm_t rank[2];
  cudaStream_t stream[2];
  int *number[2]; // [2 * NUMBERS]: to send, to receive
};

static struct pair open_pair(void) {
  struct pair pair;
  ncclUniqueId id;
  agreed(ncclGetUniqueId(&id));
  agreed(ncclGroupStart());
  for (int r = 0; r < 2; r++) {
    good(cudaSetDevice(r));
    pair.stream[r] = new_stream();
    pair.number[r] = new_numbers(2 * NUMBERS);
    agreed(ncclCommInitRank(&pair.rank[r], 2, id, r));
  }
  agreed(ncclGroupEnd());
  return pair;
}

static void close_pair(struct pair pair) {
  for (int r = 0; r < 2; r++) {
    good(cudaStreamSynchronize(pair.stream[r]));
    agreed(ncclCommDestroy(pair.rank[r]));
    good(cudaStreamDestroy(pair.stream[r]));
    good(cudaFree(pair.number[r]));
  }
}

static void test_a_send_waits(void **state) {
  (void)state;
  for (seed = 0; seed < seeds(); seed++) {
    begin((struct zb_standin){0});
    struct pair pair = open_pair();
    int from = seed % 2, to = !from, value = 5;
    good(cudaMemcpy(pair.number[from], &value, 4, cudaMemcpyHostToDevice));
    // One end stays where it is, whoever asks.
    bool send_first = seed % 4 < 2;
    if (send_first)
      agreed(ncclSend(pair.number[from], 1, ncclInt, to, pair.rank[from], pair.stream[from]));
    else
      agreed(ncclRecv(pair.number[to], 1, ncclInt, from, pair.rank[to], pair.stream[to]));
    int first = send_first ? from : to;
    for (int k = 0; k < 20; k++) gives(cudaStreamQuery(pair.stream[first]), cudaErrorNotReady);
    char text[1000];
    zb_standin_stuck(text, sizeof text);
    expect(strstr(text, send_first ? "number 0 of rank" : "from rank"), "%s", text);
    if (send_first)
      agreed(ncclRecv(pair.number[to], 1, ncclInt, from, pair.rank[to], pair.stream[to]));
    else
      agreed(ncclSend(pair.number[from], 1, ncclInt, to, pair.rank[from], pair.stream[from]));
    good(cudaStreamSynchronize(pair.stream[to]));
    expect(value_of(pair.number[to]) == 5, "seed %d: %d", seed, value_of(pair.number[to]));
    close_pair(pair);
    end_well();
  }
}

// An eager device runs at a call all that the call makes possible.
static void test_eager_runs_all(void **state) {
  (void)state;
  seed = 1;
  begin((struct zb_standin){.when = ZB_STANDIN_EAGER});
  struct pair pair = open_pair();
  agreed(ncclRecv(pair.number[1], 1, ncclInt, 0, pair.rank[1], pair.stream[1]));
  for (int digit = 1; digit < 6; digit++) append(pair.stream[1], pair.number[1], digit);
  zero(pair.stream[0], pair.number[0]);
  assert_int_equal(zb_standin_counts().kernels, 0);
  agreed(ncclSend(pair.number[0], 1, ncclInt, 1, pair.rank[0], pair.stream[0]));
  assert_int_equal(zb_standin_counts().kernels, 5);
  close_pair(pair);
  end_well();
}

// Both send first: neither goes on, and polling sees it. In a group both do.
static void test_two_senders(void **state) {
  (void)state;
  for (seed = 0; seed < seeds(); seed++) {
    begin((struct zb_standin){0});
    struct pair pair = open_pair();
    bool grouped = seed % 2;
    for (int r = 0; r < 2; r++) {
      good(cudaMemcpy(pair.number[r], &r, 4, cudaMemcpyHostToDevice));
      if (grouped) agreed(ncclGroupStart());
      agreed(ncclSend(pair.number[r], 1, ncclInt, !r, pair.rank[r], pair.stream[r]));
      agreed(ncclRecv(pair.number[r] + 1, 1, ncclInt, !r, pair.rank[r], pair.stream[r]));
      if (grouped) agreed(ncclGroupEnd());
    }
    int over = 0;
    for (int k = 0; k < 40; k++) over |= !cudaStreamQuery(pair.stream[0]) && !cudaStreamQuery(pair.stream[1]);
    expect(over == grouped, "seed %d: over %d", seed, over);
    for (int r = 0; r < 2; r++) {
      if (grouped)
        expect(value_of(pair.number[r] + 1) == !r, "seed %d: %d", seed, value_of(pair.number[r] + 1));
      else
        agreed(ncclCommAbort(pair.rank[r]));
    }
    // What was aborted is no more in anybody's way.
    for (int r = 0; r < 2 && !grouped; r++) {
      good(cudaStreamSynchronize(pair.stream[r]));
      good(cudaStreamDestroy(pair.stream[r]));
      good(cudaFree(pair.number[r]));
    }
    if (grouped) close_pair(pair);
    end_well();
  }
}

// Messages meet in order, whatever is in them.
static void test_order(void **state) {
  (void)state;
  for (seed = 0; seed < seeds(); seed++) {
    begin((struct zb_standin){0});
    struct pair pair = open_pair();
    for (int k = 0; k < 8; k++) good(cudaMemcpy(pair.number[0] + k, &k, 4, cudaMemcpyHostToDevice));
    // Rank 0's two in a group are rank 1's first and second.
    agreed(ncclGroupStart());
    agreed(ncclSend(pair.number[0] + 1, 1, ncclInt, 1, pair.rank[0], pair.stream[0]));
    agreed(ncclSend(pair.number[0] + 2, 2, ncclInt, 1, pair.rank[0], pair.stream[0]));
    agreed(ncclGroupEnd());
    agreed(ncclSend(pair.number[0] + 4, 1, ncclInt, 1, pair.rank[0], pair.stream[0]));
    agreed(ncclRecv(pair.number[1], 1, ncclInt, 0, pair.rank[1], pair.stream[1]));
    // One of two has come, and a group is over as a whole.
    for (int k = 0; k < 20; k++) gives(cudaStreamQuery(pair.stream[0]), cudaErrorNotReady);
    agreed(ncclRecv(pair.number[1] + 1, 2, ncclInt, 0, pair.rank[1], pair.stream[1]));
    agreed(ncclRecv(pair.number[1] + 3, 1, ncclInt, 0, pair.rank[1], pair.stream[1]));
    good(cudaStreamSynchronize(pair.stream[1]));
    for (int k = 0; k < 4; k++)
      expect(value_of(pair.number[1] + k) == k + 1, "seed %d: number %d is %d", seed, k,
             value_of(pair.number[1] + k));
    close_pair(pair);
    end_well();
  }
}

// One graph sends, another receives, each launched again and again; or a call receives what a graph sends.
static void test_in_graphs(void **state) {
  (void)state;
  for (seed = 0; seed < seeds(); seed++) {
    begin((struct zb_standin){0});
    struct pair pair = open_pair();
    cudaGraphExec_t executable[2];
    for (int r = 0; r < 2; r++) {
      cudaGraph_t graph;
      good(cudaSetDevice(r));
      zero(pair.stream[r], pair.number[r]);
      good(cudaStreamBeginCapture(pair.stream[r], cudaStreamCaptureModeThreadLocal));
      if (r) {
        agreed(ncclRecv(pair.number[r] + 1, 1, ncclInt, 0, pair.rank[r], pair.stream[r]));
        good(
            cudaMemcpyAsync(pair.number[r], pair.number[r] + 1, 4, cudaMemcpyDeviceToDevice, pair.stream[r]));
      } else {
        append(pair.stream[r], pair.number[r], 3);
        agreed(ncclSend(pair.number[r], 1, ncclInt, 1, pair.rank[r], pair.stream[r]));
      }
      good(cudaStreamEndCapture(pair.stream[r], &graph));
      good(cudaGraphInstantiate(&executable[r], graph, 0));
      good(cudaGraphDestroy(graph));
    }
    for (int launch = 0, wanted = 3; launch < 4; launch++, wanted = 10 * wanted + 3) {
      for (int k = 0; k < 2; k++) {
        int r = (launch + k) % 2;
        if (r && seed % 2)
          agreed(ncclRecv(pair.number[1], 1, ncclInt, 0, pair.rank[1], pair.stream[1]));
        else
          good(cudaGraphLaunch(executable[r], pair.stream[r]));
      }
      good(cudaStreamSynchronize(pair.stream[1]));
      expect(value_of(pair.number[1]) == wanted, "seed %d: %d", seed, value_of(pair.number[1]));
    }
    good(cudaStreamSynchronize(pair.stream[0]));
    good(cudaGraphExecDestroy(executable[0]));
    good(cudaGraphExecDestroy(executable[1]));
    close_pair(pair);
    end_well();
  }
}

// What goes wrong

static void test_duplicate(void **state) {
  (void)state;
  seed = 1;
  begin((struct zb_standin){0});
  ncclUniqueId id;
  ncclComm_t rank[2];
  agreed(ncclGetUniqueId(&id));
  agreed(ncclGroupStart());
  for (int r = 0; r < 2; r++) agreed(ncclCommInitRank(&rank[r], 2, id, r));
  answers(ncclGroupEnd(), ncclInvalidUsage);
  assert_string_equal(ncclGetLastError(NULL),
                      "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1000");
  assert_null(rank[0]);
  assert_null(rank[1]);
  end_well();
  begin((struct zb_standin){.patience_ms = 20});
  agreed(ncclGetUniqueId(&id));
  answers(ncclCommInitRank(&rank[0], 2, id, 2), ncclInvalidArgument);
  answers(ncclCommInitRank(&rank[0], 2, id, 0), ncclSystemError);
  end_badly("ncclCommInitRank waited for 20 ms");
}

// Exactly one side has an error; the other only stands still.
static void test_a_communicator_fails(void **state) {
  (void)state;
  for (seed = 0; seed < seeds(); seed++) {
    bool told = seed % 2, receive_first = seed / 2 % 2;
    // The send, which may not be the first; what waits already stands still as well.
    int which = 1 + (receive_first || seed / 4 % 2);
    begin((struct zb_standin){.fail_communicator = told ? which : 0, .vanish = told ? 0 : which});
    struct pair pair = open_pair();
    if (receive_first) agreed(ncclRecv(pair.number[1], 1, ncclInt, 0, pair.rank[1], pair.stream[1]));
    agreed(ncclSend(pair.number[0], 1, ncclInt, 1, pair.rank[0], pair.stream[0]));
    if (!receive_first && which == 2)
      agreed(ncclSend(pair.number[0], 1, ncclInt, 1, pair.rank[0], pair.stream[0]));
    if (!receive_first) agreed(ncclRecv(pair.number[1], 1, ncclInt, 0, pair.rank[1], pair.stream[1]));
    assert_int_equal(zb_standin_counts().faults, 1);
    ncclResult_t error[2];
    for (int k = 0; k < 20; k++)
      for (int r = 0; r < 2; r++) {
        gives(cudaStreamQuery(pair.stream[r]), cudaErrorNotReady);
        agreed(ncclCommGetAsyncError(pair.rank[r], &error[r]));
      }
    assert_int_equal(error[0], told ? ncclSystemError : ncclSuccess);
    assert_int_equal(error[1], ncclSuccess);
    if (told) answers(ncclSend(pair.number[0], 1, ncclInt, 1, pair.rank[0], pair.stream[0]), ncclSystemError);
    for (int r = 0; r < 2; r++) {
      agreed(ncclCommAbort(pair.rank[r]));
      good(cudaStreamSynchronize(pair.stream[r]));
      good(cudaStreamDestroy(pair.stream[r]));
      good(cudaFree(pair.number[r]));
    }
    end_well();
  }
}

// One that does not block says ncclInProgress, and may queue its messages only when it is asked.
static void test_in_progress(void **state) {
  (void)state;
  int early = 0, deferred = 0;
  for (seed = 0; seed < seeds(); seed++) {
    begin((struct zb_standin){0});
    struct pair pair;
    ncclUniqueId id;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    agreed(ncclGetUniqueId(&id));
    for (int r = 0; r < 2; r++) {
      ncclResult_t now;
      good(cudaSetDevice(r));
      pair.stream[r] = new_stream();
      pair.number[r] = new_numbers(2);
      answers(ncclCommInitRankConfig(&pair.rank[r], 2, id, r, &config), ncclInProgress);
      agreed(ncclCommGetAsyncError(pair.rank[r], &now));
      if (!r) assert_int_equal(now, ncclInProgress);
    }
    for (int r = 0; r < 2; r++) {
      ncclResult_t now = ncclInProgress;
      while (now == ncclInProgress) agreed(ncclCommGetAsyncError(pair.rank[r], &now));
      agreed(now);
    }
    for (int r = 0; r < 2; r++) {
      ncclResult_t now = r ? ncclRecv(pair.number[r], 1, ncclInt, 0, pair.rank[r], pair.stream[r])
                           : ncclSend(pair.number[r], 1, ncclInt, 1, pair.rank[r], pair.stream[r]);
      deferred += now == ncclInProgress;
      early += now == ncclInProgress && cudaStreamQuery(pair.stream[r]) == cudaSuccess;
      while (now == ncclInProgress) agreed(ncclCommGetAsyncError(pair.rank[r], &now));
      agreed(now);
    }
    close_pair(pair);
    end_well();
  }
  assert_true(deferred > seeds() / 4);
  assert_int_equal(early, deferred);
}

static void misuse(int which, struct pair pair) {
  ncclUniqueId id;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t alone;
  cudaStream_t other = new_stream();
  switch (which) {
  case 0:
    agreed(ncclSend(pair.number[0], 2, ncclInt, 1, pair.rank[0], pair.stream[0]));
    agreed(ncclRecv(pair.number[1], 1, ncclInt, 0, pair.rank[1], pair.stream[1]));
    good(cudaStreamSynchronize(pair.stream[1]));
    break;
  case 1:
    agreed(ncclSend(pair.number[0], 2, ncclInt, 1, pair.rank[0], pair.stream[0]));
    agreed(ncclCommDestroy(pair.rank[0]));
    break;
  case 2:
    answers(ncclSend(pair.number[0] + 2 * NUMBERS, 1, ncclInt, 1, pair.rank[0], pair.stream[0]),
            ncclInvalidArgument);
    break;
  case 3:
    answers(ncclSend(pair.number[0], 1, ncclInt, 1, pair.rank[0], pair.stream[1]), ncclInvalidUsage);
    break;
  case 4:
    agreed(ncclGetUniqueId(&id));
    answers(ncclCommInitRankConfig(&alone, 2, id, 0, &config), ncclInProgress);
    answers(ncclSend(pair.number[1], 1, ncclInt, 1, alone, pair.stream[1]), ncclInvalidArgument);
    break;
  case 5:
    good(cudaSetDevice(1));
    agreed(ncclSend(pair.number[1], 1, ncclInt, 0, pair.rank[1], pair.stream[1]));
    answers(ncclSend(pair.number[1], 1, ncclInt, 0, pair.rank[1], other), ncclInvalidUsage);
    break;
  case 6:
    agreed(ncclSend(pair.number[0], 1, ncclInt, 1, pair.rank[0], pair.stream[0]));
    good(cudaFree(pair.number[0]));
    agreed(ncclRecv(pair.number[1], 1, ncclInt, 0, pair.rank[1], pair.stream[1]));
    good(cudaStreamSynchronize(pair.stream[1]));
    break;
  case 7:
    agreed(ncclCommDestroy(pair.rank[0]));
    answers(ncclSend(pair.number[0], 1, ncclInt, 1, pair.rank[0], pair.stream[0]), ncclInvalidArgument);
    break;
  default:
    break; // a leak alone
  }
}

static void test_misuse(void **state) {
  (void)state;
  static const char *const words[] = {"ncclSend of rank 0 sends 8 bytes, ncclRecv of rank 1 takes 4",
                                      "rank 0 of device 0 still has messages queued",
                                      "ncclSend: 4 bytes from 2400 of device 0's memory of 2400 bytes",
                                      "a communicator of device 0 in a stream of device 1",
                                      "the call before on this communicator is still in progress",
                                      "another stream while messages are queued in one",
                                      "ncclSend: device 0's memory of 2400 bytes was freed",
                                      "a communicator that was destroyed",
                                      "not destroyed: rank 1 of a communicator of 2, device 1"};
  for (int which = 0; which < (int)(sizeof words / sizeof words[0]); which++) {
    seed = which;
    begin((struct zb_standin){0});
    misuse(which, open_pair());
    end_badly(words[which]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_send_waits),
      cmocka_unit_test(test_eager_runs_all),
      cmocka_unit_test(test_two_senders),
      cmocka_unit_test(test_order),
      cmocka_unit_test(test_in_graphs),
      cmocka_unit_test(test_duplicate),
      cmocka_unit_test(test_a_communicator_fails),
      cmocka_unit_test(test_in_progress),
      cmocka_unit_test(test_misuse),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
