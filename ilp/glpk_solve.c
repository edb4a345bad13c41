// glpk_solve.c - the one file that sees GLPK.
//
// GLPK ends the process when it is misused or out of memory. Its error hook jumps back here instead, its
// terminal hook keeps what it would have printed, and its environment (one a thread) is thrown away
// afterwards, which frees all that the jump left behind.
//
// Times are scaled by a power of two, so that the largest is near a thousand: exactly, and to where GLPK's
// absolute tolerances of 1e-7 mean something. MIP presolve is off: the program is written without what it
// would remove, and hooks need the columns as they are. The clock and the stop flag are polled at every node,
// and the simplex method gets no more time than there is.
#include "ilp/glpk_solve.h"

#include <glpk.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/model/number.h"

struct job {
  const struct zb_ilp_program *program;
  const struct zb_mip_options *options;
  struct zb_mip_result *result;
  double unit;            // ticks of a time column's unit
  int64_t *lower, *upper; // [columns] of the current node
  int64_t *before_lower, *before_upper;
  double *value;       // [columns]
  int *index;          // [columns + 1] of a row being passed on
  double *coefficient; // [columns + 1]
  int relaxed_node;    // the hook has seen this node's relaxation
  bool pruned;         // this node's relaxation is of no interest
  bool ended;          // result->end says why
  jmp_buf escape;
};

static void escape(void *info) { longjmp(((struct job *)info)->escape, 1); }

// GLPK's last words are the reason for what comes next.
static int keep_text(void *info, const char *text) {
  struct job *job = info;
  const size_t length = strcspn(text, "\n");
  if (length > 0)
    snprintf(job->result->trouble, sizeof job->result->trouble, "GLPK: %.*s", (int)length, text);
  return 1;
}

static bool is_time(const struct job *job, int column) { return !job->program->column[column].integer; }

static void set_bounds(glp_prob *problem, const struct job *job, int column, int64_t lower, int64_t upper) {
  const double unit = is_time(job, column) ? job->unit : 1.0;
  glp_set_col_bnds(problem, column + 1, lower == upper ? GLP_FX : GLP_DB, (double)lower / unit,
                   (double)upper / unit);
}

static void load_row(glp_prob *problem, const struct job *job, int row) {
  const struct zb_ilp_program *program = job->program;
  const struct zb_ilp_row *at = &program->row[row];
  bool timed = false;
  for (size_t i = at->first; i < at[1].first; i++) timed |= is_time(job, program->term[i].column);
  const double scale = timed ? job->unit : 1.0;
  int length = 0;
  for (size_t i = at->first; i < at[1].first; i++) {
    const struct zb_ilp_term term = program->term[i];
    length++;
    job->index[length] = term.column + 1;
    job->coefficient[length] =
        (double)term.coefficient * (is_time(job, term.column) ? job->unit : 1.0) / scale;
  }
  glp_set_mat_row(problem, row + 1, length, job->index, job->coefficient);
  const bool lower = at->lower != ZB_ILP_NONE, upper = at->upper != ZB_ILP_ANY;
  const int type = lower && upper ? (at->lower == at->upper ? GLP_FX : GLP_DB) : lower ? GLP_LO : GLP_UP;
  glp_set_row_bnds(problem, row + 1, type, (double)at->lower / scale, (double)at->upper / scale);
}

static void load(glp_prob *problem, const struct job *job) {
  const struct zb_ilp_program *program = job->program;
  glp_set_obj_dir(problem, GLP_MIN);
  glp_add_cols(problem, program->columns);
  for (int i = 0; i < program->columns; i++) {
    if (program->column[i].integer) glp_set_col_kind(problem, i + 1, GLP_IV);
    set_bounds(problem, job, i, program->column[i].lower, program->column[i].upper);
  }
  glp_set_obj_coef(problem, program->cost + 1, 1.0);
  if (program->rows > 0) glp_add_rows(problem, program->rows);
  for (int i = 0; i < program->rows; i++) load_row(problem, job, i);
}

static void end_tree(struct job *job, glp_tree *tree, enum zb_mip_end end) {
  if (!job->ended) job->result->end = end;
  job->ended = true;
  glp_ios_terminate(tree);
}

static void read_values(struct job *job, glp_prob *problem, bool solution) {
  for (int i = 0; i < job->program->columns; i++) {
    const double value = solution ? glp_mip_col_val(problem, i + 1) : glp_get_col_prim(problem, i + 1);
    job->value[i] = is_time(job, i) ? value * job->unit : value;
  }
}

static void enter_node(struct job *job, glp_tree *tree) {
  const struct zb_ilp_program *program = job->program;
  const struct zb_mip_options *options = job->options;
  glp_prob *problem = glp_ios_get_prob(tree);
  job->pruned = false;
  if (options->most_nodes > 0 && job->result->nodes >= options->most_nodes) {
    end_tree(job, tree, ZB_MIP_NODES);
    return;
  }
  job->result->nodes++;
  if (!options->hooks.enter) return;
  const size_t bytes = (size_t)program->columns * sizeof *job->lower;
  for (int i = 0; i < program->columns; i++) {
    // Bounds of times are rounded outwards: GLPK may have moved them by less than a tick.
    const double unit = is_time(job, i) ? job->unit : 1.0;
    job->lower[i] = (int64_t)floor(glp_get_col_lb(problem, i + 1) * unit + 1e-6);
    job->upper[i] = (int64_t)ceil(glp_get_col_ub(problem, i + 1) * unit - 1e-6);
  }
  memcpy(job->before_lower, job->lower, bytes);
  memcpy(job->before_upper, job->upper, bytes);
  const enum zb_mip_answer answer = options->hooks.enter(options->hooks.context, job->lower, job->upper);
  if (answer == ZB_MIP_STOP) {
    end_tree(job, tree, ZB_MIP_STOPPED);
    return;
  }
  bool empty = answer == ZB_MIP_PRUNE;
  job->result->pruned += empty;
  for (int i = 0; i < program->columns && !empty; i++) {
    if (job->lower[i] > job->upper[i]) {
      empty = true;
    } else if (job->lower[i] != job->before_lower[i] || job->upper[i] != job->before_upper[i]) {
      set_bounds(problem, job, i, job->lower[i], job->upper[i]);
    }
  }
  if (empty) {
    // A cost below every end's least one leaves the node without a feasible point, at once.
    job->pruned = true;
    set_bounds(problem, job, program->cost, -1, -1);
  }
}

static void node_relaxed(struct job *job, glp_tree *tree) {
  const int node = glp_ios_curr_node(tree);
  if (node == job->relaxed_node || job->pruned || !job->options->hooks.relaxed) return;
  job->relaxed_node = node;
  read_values(job, glp_ios_get_prob(tree), false);
  const struct zb_mip_hooks *hooks = &job->options->hooks;
  if (hooks->relaxed(hooks->context, job->value) == ZB_MIP_STOP) end_tree(job, tree, ZB_MIP_STOPPED);
}

static void solution_found(struct job *job, glp_tree *tree) {
  const struct zb_mip_hooks *hooks = &job->options->hooks;
  if (!hooks->found) return;
  read_values(job, glp_ios_get_prob(tree), true);
  if (hooks->found(hooks->context, job->value) == ZB_MIP_STOP) end_tree(job, tree, ZB_MIP_STOPPED);
}

static bool is_late(const struct job *job) {
  return job->options->deadline && zb_deadline_passed(job->options->deadline);
}

static void on_event(glp_tree *tree, void *info) {
  struct job *job = info;
  if (job->ended) {
    glp_ios_terminate(tree);
    return;
  }
  if (is_late(job)) {
    end_tree(job, tree, ZB_MIP_TIME);
    return;
  }
  const int reason = glp_ios_reason(tree);
  if (reason == GLP_IPREPRO) enter_node(job, tree);
  if (reason == GLP_IROWGEN) node_relaxed(job, tree);
  if (reason == GLP_IBINGO) solution_found(job, tree);
}

static int milliseconds_left(const struct job *job) {
  const struct zb_deadline *deadline = job->options->deadline;
  const double left = deadline ? zb_deadline_left_s(deadline) * 1000.0 : 1e9;
  return left < 1.0 ? 1 : left > 1e9 ? 1000000000 : (int)left;
}

// Every code of both solvers, in our words.
static enum zb_mip_end end_of_code(int code) {
  switch (code) {
  case 0:
  case GLP_ENOPFS: // no feasible point
  case GLP_EMIPGAP:
    return ZB_MIP_DONE;
  case GLP_ETMLIM:
  case GLP_EITLIM:
    return ZB_MIP_TIME;
  case GLP_ESTOP:
    return ZB_MIP_STOPPED;
  default: // EBADB ESING ECOND EBOUND EFAIL EOBJLL EOBJUL ENODFS EROOT ENOFEAS ENOCVG EINSTAB EDATA ERANGE
    return ZB_MIP_TROUBLE;
  }
}

static void trouble(struct job *job, const char *where, int code) {
  job->result->end = ZB_MIP_TROUBLE;
  if (job->result->trouble[0] == '\0')
    snprintf(job->result->trouble, sizeof job->result->trouble, "GLPK: %s gave code %d", where, code);
}

static void branch_and_cut(struct job *job, glp_prob *problem) {
  const struct zb_mip_options *options = job->options;
  glp_iocp control;
  glp_init_iocp(&control);
  control.msg_lev = GLP_MSG_ERR;
  control.br_tech = GLP_BR_DTH;
  control.bt_tech = options->depth_first ? GLP_BT_DFS : GLP_BT_BLB;
  control.pp_tech = GLP_PP_ALL;
  control.tol_int = 1e-6;
  control.flip = GLP_ON;
  control.gmi_cuts = control.mir_cuts = control.cov_cuts = control.clq_cuts =
      options->cuts ? GLP_ON : GLP_OFF;
  control.tm_lim = milliseconds_left(job);
  control.cb_func = on_event;
  control.cb_info = job;
  const int code = glp_intopt(problem, &control);
  if (job->ended) return;
  job->result->end = end_of_code(code);
  if (job->result->end == ZB_MIP_TROUBLE) trouble(job, "branch and cut", code);
}

static void solve(struct job *job, glp_prob *problem) {
  load(problem, job);
  glp_smcp control;
  glp_init_smcp(&control);
  control.msg_lev = GLP_MSG_ERR;
  control.meth = GLP_DUALP; // the slack basis is dual feasible: only the cost costs
  control.r_test = GLP_RT_FLIP;
  // In stretches, so that the stop flag is seen between them.
  control.it_lim = 2000;
  int code;
  do {
    control.tm_lim = milliseconds_left(job);
    code = glp_simplex(problem, &control);
  } while (code == GLP_EITLIM && !is_late(job));
  const int status = glp_get_status(problem);
  if (code == 0 && status == GLP_OPT) {
    job->result->root = true;
    job->result->root_cost = glp_get_obj_val(problem) * job->unit;
    branch_and_cut(job, problem);
  } else if (code == 0 && (status == GLP_NOFEAS || status == GLP_INFEAS)) {
    job->result->end = status == GLP_NOFEAS ? ZB_MIP_DONE : ZB_MIP_TROUBLE;
    job->result->nodes = 1;
  } else {
    job->result->end = code == 0 ? ZB_MIP_TROUBLE : end_of_code(code);
  }
  if (job->result->end == ZB_MIP_TROUBLE) trouble(job, "the root relaxation", code);
}

// The job lives in the caller, so that nothing of this function's own is lost in the jump.
static void solve_protected(struct job *job) {
  if (setjmp(job->escape) == 0) {
    glp_term_hook(keep_text, job);
    glp_error_hook(escape, job);
    glp_prob *problem = glp_create_prob();
    solve(job, problem);
    glp_delete_prob(problem);
  } else {
    trouble(job, "a call", 0);
  }
  glp_free_env();
}

void zb_mip_solve(const struct zb_ilp_program *program, const struct zb_mip_options *options,
                  struct zb_mip_result *result) {
  *result = (struct zb_mip_result){.end = ZB_MIP_DONE};
  if (program->contradiction) return;
  const size_t n = (size_t)program->columns;
  struct job job = {.program = program, .options = options, .result = result, .unit = 1.0};
  for (double most = (double)program->column[program->cost].upper; most / job.unit > 1024.0;) job.unit *= 2.0;
  job.lower = malloc(4 * n * sizeof *job.lower);
  job.value = malloc((2 * n + 1) * sizeof *job.value);
  job.index = malloc((n + 1) * sizeof *job.index);
  if (job.lower && job.value && job.index) {
    job.upper = job.lower + n;
    job.before_lower = job.upper + n;
    job.before_upper = job.before_lower + n;
    job.coefficient = job.value + n;
    solve_protected(&job);
  } else {
    trouble(&job, "no memory for it", 0);
  }
  free(job.lower);
  free(job.value);
  free(job.index);
}

bool zb_mip_available(void) { return true; }

const char *zb_mip_version(void) { return glp_version(); }
