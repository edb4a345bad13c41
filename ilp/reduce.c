// reduce.c - elimination of columns from difference rows.
//
// Rows to - from >= lag over two columns that are not integer are arcs of a graph. A column in no other row
// goes when that does not leave more arcs than there were, its bounds having been passed on to its
// neighbours.
//
// Invariant: the arcs between two columns are one, with the largest lag, and none is implied by bounds.
#include "ilp/reduce.h"

#include <stdlib.h>
#include <string.h>

#include "solver/model/number.h"

struct arc {
  int from, to;
  int64_t lag;
  int next_out, next_in; // lists of the two columns, -1 ends
  bool alive;
};

struct graph {
  struct zb_ilp_program *program; // its column bounds move
  struct arc *arc;
  int arcs, room;
  int *out, *in; // [columns] heads of lists
  bool *pinned;  // [columns] in a row that is no arc, integer, or the cost
  bool *taken;   // [rows] the row became an arc
  bool failed;
};

static bool is_implied(const struct graph *g, int from, int to, int64_t lag) {
  return g->program->column[from].upper + lag <= g->program->column[to].lower;
}

static void add_arc(struct graph *g, int from, int to, int64_t lag) {
  if (g->failed || is_implied(g, from, to, lag)) return;
  for (int i = g->out[from]; i >= 0; i = g->arc[i].next_out) {
    if (g->arc[i].to != to || !g->arc[i].alive) continue;
    g->arc[i].lag = zb_max(g->arc[i].lag, lag);
    return;
  }
  if (g->arcs == g->room) {
    const int room = g->room ? 2 * g->room : 1024;
    struct arc *grown = realloc(g->arc, (size_t)room * sizeof *grown);
    if (!grown) {
      g->failed = true;
      return;
    }
    g->arc = grown;
    g->room = room;
  }
  g->arc[g->arcs] = (struct arc){from, to, lag, g->out[from], g->in[to], true};
  g->out[from] = g->in[to] = g->arcs++;
}

// Takes what bounds imply by now out of a column's lists; returns how many arcs are left.
static int clean(struct graph *g, int *head, bool outward) {
  int count = 0;
  for (int *link = head; *link >= 0;) {
    struct arc *arc = &g->arc[*link];
    if (arc->alive && is_implied(g, arc->from, arc->to, arc->lag)) arc->alive = false;
    if (arc->alive) {
      count++;
      link = outward ? &arc->next_out : &arc->next_in;
    } else {
      *link = outward ? arc->next_out : arc->next_in;
    }
  }
  return count;
}

static void read_rows(struct graph *g) {
  const struct zb_ilp_program *program = g->program;
  for (int i = 0; i < program->columns; i++) {
    g->out[i] = g->in[i] = -1;
    g->pinned[i] = program->column[i].integer || i == program->cost;
  }
  for (int r = 0; r < program->rows; r++) {
    const struct zb_ilp_row *row = &program->row[r];
    const struct zb_ilp_term *a = &program->term[row->first], *b = a + 1;
    const bool two = row[1].first - row->first == 2 && row->upper == ZB_ILP_ANY &&
                     row->lower != ZB_ILP_NONE && !program->column[a->column].integer &&
                     !program->column[b->column].integer;
    if (two && a->coefficient == 1 && b->coefficient == -1) {
      add_arc(g, b->column, a->column, row->lower);
    } else if (two && a->coefficient == -1 && b->coefficient == 1) {
      add_arc(g, a->column, b->column, row->lower);
    } else {
      for (size_t i = row->first; i < row[1].first; i++) g->pinned[program->term[i].column] = true;
      continue;
    }
    g->taken[r] = true;
  }
}

// New arcs that leaving the column out would make.
static int fill_of(const struct graph *g, int column) {
  int count = 0;
  for (int i = g->in[column]; i >= 0; i = g->arc[i].next_in) {
    for (int o = g->out[column]; o >= 0; o = g->arc[o].next_out)
      count += !is_implied(g, g->arc[i].from, g->arc[o].to, g->arc[i].lag + g->arc[o].lag);
  }
  return count;
}

struct removal {
  struct zb_reduction *reduction;
  size_t sources, room;
};

static void note_removal(struct graph *g, struct removal *removal, int column) {
  struct zb_reduction *reduction = removal->reduction;
  const int at = reduction->removed++;
  reduction->column[at] = column;
  reduction->lower[at] = g->program->column[column].lower;
  for (int i = g->in[column]; i >= 0; i = g->arc[i].next_in) {
    if (removal->sources == removal->room) {
      const size_t room = removal->room ? 2 * removal->room : 1024;
      struct zb_ilp_term *grown = realloc(reduction->source, room * sizeof *grown);
      if (!grown) {
        g->failed = true;
        return;
      }
      reduction->source = grown;
      removal->room = room;
    }
    reduction->source[removal->sources++] = (struct zb_ilp_term){g->arc[i].from, g->arc[i].lag};
  }
  reduction->first[at + 1] = removal->sources;
}

static void leave_out(struct graph *g, struct removal *removal, int column) {
  struct zb_ilp_column *bounds = g->program->column, *own = &bounds[column];
  for (int i = g->in[column]; i >= 0; i = g->arc[i].next_in)
    own->lower = zb_max(own->lower, bounds[g->arc[i].from].lower + g->arc[i].lag);
  for (int o = g->out[column]; o >= 0; o = g->arc[o].next_out)
    own->upper = zb_min(own->upper, bounds[g->arc[o].to].upper - g->arc[o].lag);
  note_removal(g, removal, column);
  for (int i = g->in[column]; i >= 0; i = g->arc[i].next_in) {
    struct zb_ilp_column *from = &bounds[g->arc[i].from];
    from->upper = zb_min(from->upper, own->upper - g->arc[i].lag);
  }
  for (int o = g->out[column]; o >= 0; o = g->arc[o].next_out) {
    struct zb_ilp_column *to = &bounds[g->arc[o].to];
    to->lower = zb_max(to->lower, own->lower + g->arc[o].lag);
  }
  for (int i = g->in[column]; i >= 0; i = g->arc[i].next_in) g->arc[i].alive = false;
  for (int o = g->out[column]; o >= 0; o = g->arc[o].next_out) g->arc[o].alive = false;
  for (int i = g->in[column]; i >= 0; i = g->arc[i].next_in) {
    for (int o = g->out[column]; o >= 0; o = g->arc[o].next_out)
      add_arc(g, g->arc[i].from, g->arc[o].to, g->arc[i].lag + g->arc[o].lag);
  }
  g->pinned[column] = true;
}

static void eliminate(struct graph *g, struct removal *removal) {
  for (bool again = true; again && !g->failed;) {
    again = false;
    for (int column = 0; column < g->program->columns && !g->failed; column++) {
      if (g->pinned[column]) continue;
      const int in = clean(g, &g->in[column], false), out = clean(g, &g->out[column], true);
      if (in * out > 64 || fill_of(g, column) > in + out) continue;
      leave_out(g, removal, column);
      again = true;
    }
  }
}

// The program anew: rows that were no arcs, then the arcs that are left.
static bool rebuild(struct graph *g, struct zb_ilp_program *to) {
  const struct zb_ilp_program *from = g->program;
  *to = (struct zb_ilp_program){.cost = from->cost, .contradiction = from->contradiction};
  for (int i = 0; i < from->columns; i++) {
    const struct zb_ilp_column *column = &from->column[i];
    zb_ilp_program_column(to, column->lower, column->upper, column->integer, column->name);
  }
  for (int r = 0; r < from->rows; r++) {
    const struct zb_ilp_row *row = &from->row[r];
    if (g->taken[r]) continue;
    for (size_t i = row->first; i < row[1].first; i++)
      zb_ilp_program_term(to, from->term[i].column, from->term[i].coefficient);
    zb_ilp_program_close(to, row->lower, row->upper, row->name);
  }
  for (int i = 0; i < g->arcs; i++) {
    const struct arc *arc = &g->arc[i];
    if (!arc->alive) continue;
    zb_ilp_program_term(to, arc->to, 1);
    zb_ilp_program_term(to, arc->from, -1);
    zb_ilp_program_close(to, arc->lag, ZB_ILP_ANY, "path");
  }
  return !to->failed;
}

enum zb_status zb_ilp_program_reduce(struct zb_ilp_program *program, struct zb_reduction *reduction,
                                     struct zb_error *error) {
  const size_t n = (size_t)program->columns, rows = (size_t)program->rows;
  *reduction = (struct zb_reduction){0};
  if (program->contradiction) return ZB_OK;
  struct graph g = {.program = program};
  struct zb_ilp_program reduced = {0};
  struct zb_ilp_column *columns = malloc(n * sizeof *columns);
  reduction->column = malloc(n * sizeof *reduction->column);
  reduction->first = calloc(n + 1, sizeof *reduction->first);
  reduction->lower = malloc(n * sizeof *reduction->lower);
  g.out = malloc(n * sizeof *g.out);
  g.in = malloc(n * sizeof *g.in);
  g.pinned = malloc(n * sizeof *g.pinned);
  g.taken = calloc(rows + 1, sizeof *g.taken);
  bool ok = columns && reduction->column && reduction->first && reduction->lower && g.out && g.in &&
            g.pinned && g.taken;
  if (ok) {
    memcpy(columns, program->column, n * sizeof *columns);
    struct removal removal = {.reduction = reduction};
    read_rows(&g);
    eliminate(&g, &removal);
    ok = !g.failed && rebuild(&g, &reduced);
    if (!ok) memcpy(program->column, columns, n * sizeof *columns);
  }
  if (ok) {
    zb_ilp_program_free(program);
    *program = reduced;
  } else {
    zb_ilp_program_free(&reduced);
    zb_reduction_free(reduction);
  }
  free(columns);
  free(g.arc);
  free(g.out);
  free(g.in);
  free(g.pinned);
  free(g.taken);
  return ok ? ZB_OK : zb_fail_memory(error);
}

void zb_reduction_free(struct zb_reduction *reduction) {
  free(reduction->column);
  free(reduction->first);
  free(reduction->source);
  free(reduction->lower);
  *reduction = (struct zb_reduction){0};
}

void zb_reduction_restore(const struct zb_reduction *reduction, double *value) {
  for (int i = reduction->removed - 1; i >= 0; i--) {
    double least = (double)reduction->lower[i];
    for (size_t k = reduction->first[i]; k < reduction->first[i + 1]; k++) {
      const double after = value[reduction->source[k].column] + (double)reduction->source[k].coefficient;
      if (after > least) least = after;
    }
    value[reduction->column[i]] = least;
  }
}
