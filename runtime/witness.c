// witness.c - fork, shared page, pipe.
#define _DEFAULT_SOURCE // MAP_ANONYMOUS
#include "runtime/witness.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared {
  struct zb_progress progress;
  bool dismissed;
};

struct zb_witness {
  struct shared *shared;
  int pipe; // never written to: its end is the news
  pid_t process;
};

// Connections that the launcher gave to the process must not outlive it here.
enum { DESCRIPTORS = 1024 };

static void watch(const struct shared *shared, int pipe) {
  setsid();
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  for (int k = 0; k < DESCRIPTORS; k++)
    if (k != pipe && k != STDERR_FILENO) close(k);
  char byte;
  while (read(pipe, &byte, 1) < 0 && errno == EINTR) {
  }
  if (shared->dismissed) _exit(0);
  struct zb_text text = {0};
  zb_text_put(&text, "zbreplay: ");
  zb_progress_print(&shared->progress, true, &text);
  zb_text_put(&text, ": this process was ended\n");
  // The one place beside the main program that prints: the main program is gone.
  if (text.data && write(STDERR_FILENO, text.data, text.size) < 0) _exit(1);
  _exit(0);
}

enum zb_status zb_witness_start(struct zb_witness **witness, struct zb_progress **progress,
                                struct zb_error *error) {
  struct zb_witness *made = calloc(1, sizeof *made);
  int ends[2] = {-1, -1};
  void *page = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (!made || page == MAP_FAILED || pipe(ends) != 0) goto failed;
  made->shared = page;
  made->shared->progress.device = -1;
  made->process = fork();
  if (made->process < 0) goto failed;
  if (made->process == 0) {
    close(ends[1]);
    watch(made->shared, ends[0]);
  }
  close(ends[0]);
  made->pipe = ends[1];
  *witness = made;
  *progress = &made->shared->progress;
  return ZB_OK;
failed:
  if (ends[0] >= 0) close(ends[0]);
  if (ends[1] >= 0) close(ends[1]);
  if (page != MAP_FAILED) munmap(page, sizeof(struct shared));
  free(made);
  return zb_fail(error, ZB_FAILED, "cannot start a witness process");
}

void zb_witness_dismiss(struct zb_witness *witness) {
  if (!witness) return;
  witness->shared->dismissed = true;
  close(witness->pipe);
  waitpid(witness->process, NULL, 0);
  free(witness);
}
