// search.c - root bound, dives, and then rounds of work units.
//
// A round is a fixed list of units that start from the same bound and schedule, except that those which look
// for schedules are one thread's, and each goes on from what the one before it found: what is better in one
// place adds to what is better in another. Threads take the others in order, and results are merged in the
// order of the list. A unit that closes the gap halts those after it, never those before it. So the outcome
// does not depend on the number of threads.
//
// Invariant: known.bound <= known.cost, and every target below known.bound is refuted by propagation or
// by the proof.
#include "solver/exact/search.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "solver/exact/root.h"
#include "solver/exact/unit.h"
#include "solver/model/bound.h"
#include "solver/model/number.h"

// Most states of one thread's table: 8 bytes each.
static const size_t table_states = (size_t)1 << 25;

// States swept a unit with a full share in the first round, and in the last that still grows. Rounds stay
// short, so that what one unit finds soon helps the others; only climbing trees, which begin anew in each, go
// on growing.
static const int64_t least_work = 1000000, most_work = 8000000, most_climb_work = INT64_MAX / 64;

// Rounds of the search for the span that a search for the period starts from.
enum { MOST_THREADS = 64, span_rounds = 4 };

// The units of a round: complementary ways to branch, and neighbourhoods. `share`: of a round's work, in
// sixteenths, halved for those that look for schedules while they find none.
static const struct {
  enum zb_unit_kind kind;
  enum zb_pick pick;
  bool more_first;
  int share;
  bool probing;
  int dive_every;
} portfolio[] = {
    {ZB_UNIT_FLOW_UP, ZB_PICK_SMALLEST, false, 256, false, 0},
    {ZB_UNIT_FLOW, ZB_PICK_SMALLEST, false, 96, false, 0},
    {ZB_UNIT_FRONT, ZB_PICK_SMALLEST, false, 64, false, 0},
    {ZB_UNIT_FRONT_UP, ZB_PICK_SMALLEST, false, 128, false, 0},
    {ZB_UNIT_CLIMB, ZB_PICK_SMALLEST, false, 4, false, 50},
    {ZB_UNIT_CLIMB, ZB_PICK_EARLIEST, false, 4, false, 50},
    {ZB_UNIT_RAISE, ZB_PICK_SMALLEST, false, 48, true, 300},
    {ZB_UNIT_CLIMB, ZB_PICK_SMALLEST, true, 4, false, 50},
    {ZB_UNIT_NEIGHBOUR, ZB_PICK_SMALLEST, false, 8, false, 0},
    {ZB_UNIT_NEIGHBOUR, ZB_PICK_SMALLEST, false, 8, false, 0},
};
enum {
  OWN_UNITS = sizeof portfolio / sizeof *portfolio,
  MOST_UNITS = OWN_UNITS + ZB_MOST_IMPROVERS,
  FIRST_LINKED = OWN_UNITS - 2 // it and those behind it go on from each other, but for improvers that do not
};

// Rounds before improvers and layers take part: most of what closes does so there, and by a tree. And rounds
// before trees probe, which takes long on large profiles: their first targets lie better once the cost has
// come down.
enum { PLAIN_ROUNDS = 1, UNPROBED_ROUNDS = 2 };

struct search {
  const struct zb_problem *problem;
  struct zb_known known;
  struct zb_orders best;
  struct zb_state root, ceiling;
  struct zb_proof proof;
  struct zb_worker *worker; // [workers]
  int workers;
  struct zb_halt halt;
  struct zb_unit unit[MOST_UNITS]; // the portfolio, then the problem's improvers
  int units;                       // that take part in this round
  int64_t nodes;
  int most_rounds;
};

static bool closed(const struct search *search) { return search->known.bound >= search->known.cost; }

static bool is_off(const struct search *search, enum zb_rule rule) {
  return (search->known.rules_off & ZB_RULE_BIT(rule)) != 0;
}

static bool out_of_time(const struct search *search) { return zb_halted(&search->halt); }

static void tell(const struct search *search, const char *what) {
  const int64_t tick = search->known.chain->tick_ns;
  const int64_t cost = search->known.cost == ZB_NO_COST ? INT64_MAX : search->known.cost * tick;
  if (search->problem->progress) {
    search->problem->progress(search->problem->progress_context, what, cost, search->known.bound * tick);
  }
}

// The orders in the first worker's trial, if they are better.
static enum zb_status take_trial(struct search *search, const char *what) {
  struct zb_worker *worker = &search->worker[0];
  int64_t cost_ns;
  const enum zb_status status =
      zb_timer_cost(&worker->timer, search->known.objective, &worker->trial, &cost_ns, NULL, NULL);
  if (status != ZB_OK) return status == ZB_FAILED ? status : ZB_OK;
  const int64_t cost = zb_chain_ticks(search->known.chain, cost_ns);
  if (cost >= search->known.cost) return ZB_OK;
  search->known.cost = cost;
  zb_orders_copy(&search->best, &worker->trial);
  tell(search, what);
  return ZB_OK;
}

// A few dives from a fixpoint.
static enum zb_status dive(struct search *search, struct zb_state *state, int dives) {
  if (is_off(search, ZB_RULE_DIVE)) return ZB_OK;
  uint64_t random = search->problem->seed * 2 + 1;
  const bool several = search->known.chain->chunked != NULL;
  for (int i = 0; i < dives && !closed(search); i++) {
    const struct zb_dive how = {.from = i % 4 == 3 || (several && i % 2 == 1) ? ZB_DIVE_FIRST : ZB_DIVE_LAST,
                                .preference = i % 2 + (i % 4 == 2 ? 2 : 0),
                                .tries = i < 2 ? 1 : 4,
                                .noise = i < 6 ? 0 : 16,
                                .stretches = several && i % 2 == 1 ? 24 : 1};
    const enum zb_sweep swept = zb_dive(state, &how, &random, &search->worker[0].trial);
    if (swept == ZB_SWEEP_STOPPED || swept == ZB_SWEEP_MEMORY) return ZB_OK;
    if (swept != ZB_SWEEP_KEPT) continue;
    const int64_t before = search->known.cost;
    const enum zb_status status = take_trial(search, "dive");
    if (status != ZB_OK || search->known.cost < before) return status;
  }
  return ZB_OK;
}

// Without a schedule: dives at rising targets, and if all fail one microbatch after another.
static enum zb_status first_schedule(struct search *search, struct zb_error *error) {
  struct zb_state *state = &search->worker[0].state;
  enum zb_status status = ZB_OK;
  for (int part = 10;
       part >= 2 && search->known.cost == ZB_NO_COST && status == ZB_OK && !out_of_time(search); part--) {
    zb_state_reset(state, search->known.bound + (search->known.bound >> part));
    const enum zb_sweep swept = zb_state_propagate(state);
    if (swept == ZB_SWEEP_KEPT) status = dive(search, state, 6);
    if (swept == ZB_SWEEP_MEMORY || swept == ZB_SWEEP_STOPPED) break;
  }
  if (search->known.cost == ZB_NO_COST && status == ZB_OK) {
    struct zb_schedule *schedule = NULL;
    status = zb_schedule_sequential(search->problem->profile, &schedule, error);
    if (status != ZB_OK) return status;
    zb_orders_from_schedule(search->known.chain, schedule, &search->worker[0].trial);
    zb_schedule_free(schedule);
    status = take_trial(search, "sequential");
  }
  return status == ZB_OK ? ZB_OK : zb_fail_memory(error);
}

// The fixpoint just below the cost, which all units derive theirs from; refuted, it closes the gap.
// Returns whether rounds can go on.
static bool lower_ceiling(struct search *search) {
  struct zb_state *state = &search->worker[0].state;
  const int64_t target = search->known.cost - 1;
  if (search->ceiling.target == target) return true;
  if (search->ceiling.target > target)
    zb_state_derive(state, &search->ceiling, target);
  else
    zb_state_reset(state, target);
  switch (zb_state_propagate(state)) {
  case ZB_SWEEP_KEPT:
    zb_state_derive(&search->ceiling, state, target);
    return true;
  case ZB_SWEEP_REFUTED:
    search->known.bound = search->known.cost;
    zb_proof_free(&search->proof);
    tell(search, "bound");
    return false;
  default:
    return false;
  }
}

// What one thread works through.
struct crew {
  struct search *search;
  struct zb_worker *worker;
  atomic_int *next, *closed_by;
};

static void note_closed(atomic_int *closed_by, int number) {
  int earliest = atomic_load(closed_by);
  while (number < earliest && !atomic_compare_exchange_weak(closed_by, &earliest, number)) {
  }
}

static bool is_linked(const struct search *search, int unit) {
  return unit >= FIRST_LINKED && !(unit >= OWN_UNITS && search->unit[unit].improver->alone);
}

static void *work(void *context) {
  struct crew *crew = context;
  struct search *search = crew->search;
  for (;;) {
    const int first = atomic_fetch_add(crew->next, 1);
    if (first >= search->units) return NULL;
    const bool linked = is_linked(search, first);
    if (linked && first != FIRST_LINKED) continue;
    struct zb_known known = search->known;
    for (int number = first; number < (linked ? search->units : first + 1); number++) {
      struct zb_unit *unit = &search->unit[number];
      if (is_linked(search, number) != linked) continue;
      zb_unit_run(unit, &known, crew->worker);
      if (unit->bound >= unit->cost) note_closed(crew->closed_by, number);
      if (unit->cost >= known.cost) continue;
      known.cost = unit->cost;
      known.best = &unit->orders;
    }
  }
}

static void run_units(struct search *search) {
  pthread_t thread[MOST_THREADS];
  struct crew crew[MOST_THREADS];
  atomic_int next = 0, closed_by = INT_MAX;
  int started = 0;
  for (int i = 0; i < search->units; i++)
    search->unit[i].halt = (struct zb_halt){search->halt.deadline, &closed_by, i};
  for (int i = 0; i < search->workers; i++)
    crew[i] = (struct crew){search, &search->worker[i], &next, &closed_by};
  for (int i = 1; i < search->workers; i++) {
    if (pthread_create(&thread[started], NULL, work, &crew[i]) != 0) break;
    started++;
  }
  work(&crew[0]);
  for (int i = 0; i < started; i++) pthread_join(thread[i], NULL);
}

static int first_share(const struct search *search, int unit) {
  return unit < OWN_UNITS ? portfolio[unit].share : search->problem->improver[unit - OWN_UNITS].share;
}

// In list order, up to the first unit that closed the gap.
static enum zb_status merge(struct search *search, struct zb_error *error) {
  struct zb_known *known = &search->known;
  for (int i = 0; i < search->units; i++) {
    struct zb_unit *unit = &search->unit[i];
    search->nodes += unit->nodes;
    if (unit->kind == ZB_UNIT_CLIMB || unit->kind == ZB_UNIT_NEIGHBOUR)
      unit->share = unit->cost < known->cost ? first_share(search, i) : (unit->share + 1) / 2;
    if (unit->status != ZB_OK) return zb_fail_memory(error);
    if (unit->barren > known->barren) known->barren = unit->barren;
    if (unit->bound > known->bound) {
      known->bound = unit->bound;
      zb_proof_free(&search->proof);
      search->proof = unit->proof;
      unit->proof = (struct zb_proof){0};
      tell(search, "bound");
    }
    if (unit->cost < known->cost) {
      known->cost = unit->cost;
      zb_orders_copy(&search->best, &unit->orders);
      tell(search, "schedule");
    }
    if (unit->bound >= unit->cost) break;
  }
  if (known->bound > known->cost) {
    return zb_fail(error, ZB_SELF_CHECK, "window: bound %lld above a schedule of cost %lld (in ticks)",
                   (long long)known->bound, (long long)known->cost);
  }
  return ZB_OK;
}

// The unit that raises the bound with fluid W, unless it has done all that it can.
static const struct zb_unit *flow_up(const struct search *search) {
  if (is_off(search, ZB_RULE_FLOW) || !zb_flow_front_applies(search->known.chain, search->known.objective))
    return NULL;
  for (int i = 0; i < OWN_UNITS; i++)
    if (portfolio[i].kind == ZB_UNIT_FLOW_UP) return search->unit[i].flow_done ? NULL : &search->unit[i];
  return NULL;
}

static void prepare_units(struct search *search, int round, int64_t work) {
  const bool plain = round < PLAIN_ROUNDS, chunked = search->known.chain->chunked != NULL;
  const struct zb_unit *up = flow_up(search);
  search->units = OWN_UNITS + (plain ? 0 : search->problem->improvers);
  for (int i = 0; i < search->units; i++) {
    struct zb_unit *unit = &search->unit[i];
    unit->kind = i < OWN_UNITS ? portfolio[i].kind : ZB_UNIT_IMPROVE;
    unit->work = (unit->kind == ZB_UNIT_CLIMB ? work : zb_min(work, most_work)) / 16 * unit->share;
    if (unit->kind >= ZB_UNIT_FRONT && unit->kind <= ZB_UNIT_FLOW_UP && plain) unit->work = 0;
    // With several stages a device layers that place whole W prove nothing, and those of F and B find more.
    const bool fronts = unit->kind == ZB_UNIT_FRONT || unit->kind == ZB_UNIT_FRONT_UP;
    if (chunked && fronts) unit->work /= 8;
    // What fluid W can prove comes first, mostly.
    if (up && (unit->kind == ZB_UNIT_FRONT_UP || (chunked && unit->kind == ZB_UNIT_RAISE && up->flow_rises)))
      unit->work /= 3;
    if (i >= OWN_UNITS) {
      unit->improver = &search->problem->improver[i - OWN_UNITS];
      continue;
    }
    const int dive_every = is_off(search, ZB_RULE_DIVE) ? 0 : portfolio[i].dive_every;
    const bool probing = portfolio[i].probing && round >= UNPROBED_ROUNDS && !is_off(search, ZB_RULE_PROBE);
    unit->rule =
        (struct zb_tree_rule){portfolio[i].pick, portfolio[i].more_first, INT64_MAX, dive_every, probing};
  }
}

static enum zb_status run_rounds(struct search *search, struct zb_error *error) {
  enum zb_status status = ZB_OK;
  // The first round takes about as long as the root bound did.
  int64_t work = zb_max(least_work, search->worker[0].lattice.work);
  for (int round = 0;
       round < search->most_rounds && status == ZB_OK && !closed(search) && !out_of_time(search); round++) {
    if (search->known.barren >= search->known.cost || !lower_ceiling(search)) break;
    prepare_units(search, round, work);
    run_units(search);
    status = merge(search, error);
    if (work < most_climb_work) work *= 2;
  }
  return status;
}

static enum zb_status open_search(struct search *search, struct zb_error *error) {
  const size_t p = (size_t)search->known.chain->devices;
  const int threads = search->problem->threads;
  const int useful = FIRST_LINKED + 1 + search->problem->improvers;
  const int wanted = threads < 1 ? 1 : threads > useful ? useful : threads;
  enum zb_status status = ZB_OK;
  search->worker = calloc((size_t)wanted, sizeof *search->worker);
  if (!search->worker) return zb_fail_memory(error);
  for (; status == ZB_OK && search->workers < wanted; search->workers++) {
    status = zb_worker_open(&search->known, table_states, &search->worker[search->workers], error);
    if (status != ZB_OK) break;
  }
  if (status != ZB_OK) return status;
  struct zb_lattice *lattice = &search->worker[0].lattice;
  lattice->halt = &search->halt;
  status = zb_state_open(search->known.chain, search->known.objective, lattice, &search->root, error);
  if (status == ZB_OK)
    status = zb_state_open(search->known.chain, search->known.objective, lattice, &search->ceiling, error);
  if (status == ZB_OK) status = zb_orders_create(search->known.chain, &search->best, error);
  search->ceiling.target = -1;
  search->root.rules_off = search->ceiling.rules_off = search->known.rules_off;
  for (int i = 0; i < OWN_UNITS + search->problem->improvers && status == ZB_OK; i++) {
    struct zb_unit *unit = &search->unit[i];
    unit->share = first_share(search, i);
    unit->random = (search->problem->seed + 1) * 1000003 + (uint64_t)i * 7919 + 1;
    unit->weight = malloc(p * sizeof *unit->weight);
    if (!unit->weight) return zb_fail_memory(error);
    for (size_t d = 0; d < p; d++) unit->weight[d] = 1;
    status = zb_orders_create(search->known.chain, &unit->orders, error);
    if (status == ZB_OK && i < OWN_UNITS && portfolio[i].kind == ZB_UNIT_RAISE)
      status = zb_state_open(search->known.chain, search->known.objective, lattice, &unit->state, error);
    unit->state.rules_off = search->known.rules_off;
  }
  return status;
}

static void close_search(struct search *search) {
  for (int i = 0; i < search->workers; i++) zb_worker_close(&search->worker[i]);
  free(search->worker);
  zb_state_close(&search->root);
  zb_state_close(&search->ceiling);
  zb_orders_free(&search->best);
  zb_proof_free(&search->proof);
  for (int i = 0; i < MOST_UNITS; i++) {
    free(search->unit[i].weight);
    zb_orders_free(&search->unit[i].orders);
    zb_proof_free(&search->unit[i].proof);
    zb_proof_free(&search->unit[i].tree_proof);
    zb_tree_free(&search->unit[i].tree);
    zb_state_close(&search->unit[i].state);
    zb_front_free(search->unit[i].front);
    zb_flow_front_free(search->unit[i].flow);
  }
}

// Orders repeat within their span, and with offsets fixed they are found much faster: the period's search
// starts from the orders of a short search for the span.
static enum zb_status start_from_span(struct search *search, const struct zb_schedule *incumbent,
                                      struct zb_error *error) {
  struct zb_problem problem = *search->problem;
  problem.objective = ZB_SPAN;
  problem.rounds = span_rounds;
  problem.progress = NULL;
  problem.improvers = 0;
  struct zb_chain *chain = NULL;
  enum zb_status status = zb_chain_create(problem.profile, 0, &chain, error);
  if (status != ZB_OK) return status;
  if (chain->chunked) chain->chunked->fluid = search->known.chain->chunked->fluid;
  struct zb_search_result found;
  status = zb_search_run(&problem, chain, incumbent, &found, error);
  if (status == ZB_OK) {
    if (found.cost != INT64_MAX) {
      zb_orders_copy(&search->worker[0].trial, &found.orders);
      status = take_trial(search, "span");
    }
    search->nodes += found.nodes;
    zb_search_result_free(&found);
  }
  zb_chain_free(chain);
  return status;
}

static enum zb_status run_search(struct search *search, const struct zb_schedule *incumbent,
                                 struct zb_error *error) {
  const struct zb_chain *chain = search->known.chain;
  enum zb_status status = ZB_OK;
  if (incumbent) {
    zb_orders_from_schedule(chain, incumbent, &search->worker[0].trial);
    status = take_trial(search, "start");
    if (status != ZB_OK) return zb_fail_memory(error);
  }
  const int64_t closed_form = zb_bound_closed_form(search->problem->profile, search->known.objective);
  const int64_t hint = is_off(search, ZB_RULE_HINT) ? 0 : zb_chain_ticks(chain, closed_form);
  const enum zb_sweep swept = zb_root_bound(&search->root, &search->worker[0].state, &search->ceiling, hint,
                                            search->known.cost, &search->known.bound);
  tell(search, "root");
  if (closed(search)) return ZB_OK;
  if (search->known.objective == ZB_PERIOD) {
    status = start_from_span(search, incumbent, error);
  } else if (swept == ZB_SWEEP_KEPT) {
    status = dive(search, &search->root, 8);
  }
  if (status == ZB_OK && search->known.cost == ZB_NO_COST) status = first_schedule(search, error);
  if (status != ZB_OK || swept != ZB_SWEEP_KEPT) return status;
  return run_rounds(search, error);
}

enum zb_status zb_search_run(const struct zb_problem *problem, const struct zb_chain *chain,
                             const struct zb_schedule *incumbent, struct zb_search_result *result,
                             struct zb_error *error) {
  struct search search = {.problem = problem,
                          .halt = {.deadline = &problem->deadline},
                          .most_rounds = problem->rounds > 0 ? problem->rounds : INT_MAX};
  search.known = (struct zb_known){.chain = chain,
                                   .profile = problem->profile,
                                   .objective = problem->objective,
                                   .rules_off = problem->rules_off,
                                   .cost = ZB_NO_COST,
                                   .best = &search.best,
                                   .ceiling = &search.ceiling};
  enum zb_status status = open_search(&search, error);
  if (status == ZB_OK) status = run_search(&search, incumbent, error);
  if (status == ZB_FAILED) zb_fail_memory(error); // the only way to fail in here
  if (status == ZB_OK) {
    *result = (struct zb_search_result){search.known.bound, search.known.cost, search.best, search.proof,
                                        search.nodes};
    search.best = (struct zb_orders){0};
    search.proof = (struct zb_proof){0};
  }
  close_search(&search);
  return status;
}

void zb_search_result_free(struct zb_search_result *result) {
  zb_orders_free(&result->orders);
  zb_proof_free(&result->proof);
}
