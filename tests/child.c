#define _DEFAULT_SOURCE // wait4: the one call that tells a single child's memory
#include "tests/child.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool redirect(int to, const char *path, int flags) {
  int from = open(path, flags, 0666);
  return from >= 0 && dup2(from, to) >= 0 && close(from) == 0;
}

// Only what is safe between fork and exec. The alarm lives on through exec.
static void become(char *const argv[], const char *out_path, const char *err_path, unsigned limit_s) {
  if (redirect(STDIN_FILENO, "/dev/null", O_RDONLY) &&
      redirect(STDOUT_FILENO, out_path, O_WRONLY | O_CREAT | O_TRUNC) &&
      redirect(STDERR_FILENO, err_path, O_WRONLY | O_CREAT | O_TRUNC)) {
    alarm(limit_s);
    execv(argv[0], argv);
  }
  _exit(127);
}

bool child_run(char *const argv[], const char *out_path, const char *err_path, double limit_s,
               struct child *child) {
  double start = now_s();
  pid_t process = fork();
  if (process < 0) return false;
  if (process == 0) become(argv, out_path, err_path, (unsigned)ceil(limit_s));
  int status;
  struct rusage usage;
  while (wait4(process, &status, 0, &usage) < 0)
    if (errno != EINTR) return false;
  child->seconds = now_s() - start;
  child->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  child->peak_bytes = (int64_t)usage.ru_maxrss * 1024; // Linux counts in KiB
  return true;
}
