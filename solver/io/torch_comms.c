// torch_comms.c - are the communication actions of a torch file complete, in order, and free of deadlock?
//
// The actions that a program has too (program.h) become one, and the program's simulation answers for the
// messages; what only torch has (gathering and freeing parameters, reducing gradients, waiting) is walked
// here. The dialect is the file's own: waits make it the one of torch 2.15, REDUCE_GRAD one of 2.10 and
// later.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/io/torch_read.h"
#include "solver/program/simulate.h"

static const int kind_of[ZB_TORCH_WORDS] = {
    [ZB_TORCH_F] = ZB_DO_F,
    [ZB_TORCH_I] = ZB_DO_B,
    [ZB_TORCH_W] = ZB_DO_W,
    [ZB_TORCH_B] = ZB_DO_BW,
    [ZB_TORCH_SEND_F] = ZB_DO_SEND_F,
    [ZB_TORCH_RECV_F] = ZB_DO_RECV_F,
    [ZB_TORCH_SEND_B] = ZB_DO_SEND_B,
    [ZB_TORCH_RECV_B] = ZB_DO_RECV_B,
    [ZB_TORCH_WAIT_SEND_F] = ZB_DO_WAIT_SEND_F,
    [ZB_TORCH_WAIT_SEND_B] = ZB_DO_WAIT_SEND_B,
    [ZB_TORCH_UNSHARD] = -1,
    [ZB_TORCH_RESHARD] = -1,
    [ZB_TORCH_REDUCE_GRAD] = -1,
    [ZB_TORCH_WAIT_REDUCE_GRAD] = -1,
};

static enum zb_status fail_at(struct zb_error *error, int row, struct zb_torch_action action,
                              const char *what) {
  char text[ZB_TORCH_TEXT];
  zb_torch_action_print(action, text);
  zb_fail(error, ZB_WRONG, "%s %s", text, what);
  if (error) {
    error->line = row;
    error->column = (int)action.cell;
  }
  return ZB_WRONG;
}

// Which of torch's own actions the file has at all: whoever has one needs it everywhere.
struct dialect {
  bool waits, reduces, shards;
};

static struct dialect find_dialect(const struct zb_torch_csv *csv) {
  struct dialect d = {false, false, false};
  for (size_t i = 0; i < csv->first[csv->ranks]; i++) {
    const enum zb_torch_word word = csv->actions[i].word;
    d.waits = d.waits || word == ZB_TORCH_WAIT_SEND_F || word == ZB_TORCH_WAIT_SEND_B ||
              word == ZB_TORCH_WAIT_REDUCE_GRAD;
    d.reduces = d.reduces || word == ZB_TORCH_REDUCE_GRAD;
    d.shards = d.shards || word == ZB_TORCH_UNSHARD || word == ZB_TORCH_RESHARD;
  }
  d.reduces = d.reduces || d.waits;
  return d;
}

// What a stage has come to.
struct stage_state {
  bool gathered, reduced;
  int32_t backwards; // whole ones and W, which end one
};

struct walk {
  const struct zb_file_orders *orders;
  struct dialect dialect;
  struct stage_state *stages; // [stages]
  unsigned char *sent;        // [stages * microbatches] bits of what is sent and not waited for
  int32_t reducing;           // the rank's stage whose reduction is not waited for, -1
  int64_t unwaited;           // sends of the rank
  int row;
  struct zb_error *error;
};

static enum zb_status step_shards(struct walk *w, struct zb_torch_action a) {
  struct stage_state *stage = &w->stages[a.stage];
  const bool gathers = a.word == ZB_TORCH_UNSHARD;
  if (gathers == stage->gathered)
    return fail_at(w->error, w->row, a,
                   gathers ? "comes when the stage is gathered already" : "without UNSHARD before it");
  stage->gathered = gathers;
  return ZB_OK;
}

static enum zb_status step_reduction(struct walk *w, struct zb_torch_action a) {
  struct stage_state *stage = &w->stages[a.stage];
  if (a.word == ZB_TORCH_WAIT_REDUCE_GRAD) {
    if (w->reducing != a.stage)
      return fail_at(w->error, w->row, a, "without a REDUCE_GRAD that is under way");
    w->reducing = -1;
    return ZB_OK;
  }
  if (stage->reduced) return fail_at(w->error, w->row, a, "comes twice");
  if (stage->backwards < w->orders->microbatches)
    return fail_at(w->error, w->row, a, "comes before the stage's last backward");
  if (w->dialect.shards && !stage->gathered) return fail_at(w->error, w->row, a, "comes after RESHARD");
  if (w->reducing >= 0) return fail_at(w->error, w->row, a, "comes while another reduction is under way");
  stage->reduced = true;
  if (w->dialect.waits) w->reducing = a.stage;
  return ZB_OK;
}

static enum zb_status step_send(struct walk *w, struct zb_torch_action a) {
  unsigned char *sent = &w->sent[(size_t)a.stage * (size_t)w->orders->microbatches + (size_t)a.microbatch];
  const bool forward = a.word == ZB_TORCH_SEND_F || a.word == ZB_TORCH_WAIT_SEND_F;
  const unsigned char bit = forward ? 1 : 2;
  if (a.word == ZB_TORCH_SEND_F || a.word == ZB_TORCH_SEND_B) {
    *sent |= bit;
    w->unwaited++;
    return ZB_OK;
  }
  if (!(*sent & bit)) return fail_at(w->error, w->row, a, "without a send that is under way");
  *sent &= (unsigned char)~bit;
  w->unwaited--;
  return ZB_OK;
}

static enum zb_status step(struct walk *w, struct zb_torch_action a) {
  if (a.stage >= w->orders->stages || w->orders->device_of[a.stage] != w->row - 1)
    return fail_at(w->error, w->row, a, "is in a row that does not compute its stage");
  if (zb_torch_word_numbered(a.word) && a.microbatch >= w->orders->microbatches)
    return fail_at(w->error, w->row, a, "is of a microbatch that is not computed");
  if (zb_torch_word_computes(a.word)) {
    struct stage_state *stage = &w->stages[a.stage];
    stage->backwards += a.word == ZB_TORCH_W || a.word == ZB_TORCH_B;
    if (w->dialect.shards && !stage->gathered)
      return fail_at(w->error, w->row, a, "computes on a stage that is not gathered: no UNSHARD before it");
    return ZB_OK;
  }
  if (a.word == ZB_TORCH_UNSHARD || a.word == ZB_TORCH_RESHARD) return step_shards(w, a);
  if (a.word == ZB_TORCH_REDUCE_GRAD || a.word == ZB_TORCH_WAIT_REDUCE_GRAD) return step_reduction(w, a);
  return a.word == ZB_TORCH_RECV_F || a.word == ZB_TORCH_RECV_B ? ZB_OK : step_send(w, a);
}

// What a row must have done by its end, told at its last action.
static enum zb_status end_row(struct walk *w, struct zb_torch_action last) {
  if (w->dialect.waits && w->unwaited > 0)
    return fail_at(w->error, w->row, last, "ends the row, but a send of it has no wait (torch 2.15)");
  if (w->reducing >= 0)
    return fail_at(w->error, w->row, last, "ends the row, but its REDUCE_GRAD has no wait (torch 2.15)");
  for (int s = 0; s < w->orders->stages; s++) {
    if (w->orders->device_of[s] != w->row - 1) continue;
    if (w->dialect.reduces && !w->stages[s].reduced)
      return fail_at(w->error, w->row, last, "ends the row, but a stage of it has no REDUCE_GRAD");
    if (w->stages[s].gathered)
      return fail_at(w->error, w->row, last, "ends the row, but a stage of it has no RESHARD");
  }
  return ZB_OK;
}

static enum zb_status walk_rows(const struct zb_torch_csv *csv, const struct zb_file_orders *orders,
                                struct zb_error *error) {
  struct walk w = {.orders = orders, .dialect = find_dialect(csv), .reducing = -1, .error = error};
  w.stages = calloc((size_t)orders->stages, sizeof *w.stages);
  w.sent = calloc((size_t)orders->stages * (size_t)orders->microbatches, 1);
  enum zb_status status = w.stages && w.sent ? ZB_OK : zb_fail_memory(error);
  for (int r = 0; r < csv->ranks && status == ZB_OK; r++) {
    w.row = r + 1;
    w.unwaited = 0;
    for (size_t i = csv->first[r]; i < csv->first[r + 1] && status == ZB_OK; i++)
      status = step(&w, csv->actions[i]);
    if (status == ZB_OK) status = end_row(&w, csv->actions[csv->first[r + 1] - 1]);
  }
  free(w.stages);
  free(w.sent);
  return status;
}

// A profile of the file's shape, whose times are all 0. NULL where no profile has that shape: then the file
// fits none, which zb_file_orders_place says.
static enum zb_status make_profile(const struct zb_file_orders *orders, struct zb_profile **profile,
                                   struct zb_error *error) {
  const int devices = orders->schedule->devices;
  struct zb_error why = {0};
  *profile = NULL;
  if (orders->stages % devices) return ZB_OK;
  enum zb_status status =
      zb_profile_create(devices, orders->stages / devices, orders->microbatches, ZB_LIST, profile, &why);
  if (status == ZB_OK) {
    for (int s = 0; s < orders->stages; s++) (*profile)->device_of[s] = orders->device_of[s];
    status = zb_profile_finish(*profile, &why);
  }
  if (status == ZB_OK) return ZB_OK;
  zb_profile_free(*profile);
  *profile = NULL;
  return status == ZB_BAD_INPUT ? ZB_OK : zb_fail(error, status, "%s", why.text);
}

// The cycle, instruction by instruction, each with its row and cell: as much of it as one line holds.
static void describe_cycle(const struct zb_program *program, const struct zb_run *run, const uint32_t *cell,
                           char *text, size_t size) {
  size_t used = 0;
  for (size_t k = 0; k <= run->cycle_length; k++) {
    const struct zb_wait_for *entry = &run->cycle[k % run->cycle_length];
    char name[ZB_INSTRUCTION_TEXT];
    zb_instruction_print(program->instructions[entry->instruction], name);
    const bool last = k == run->cycle_length;
    int length = snprintf(text + used, size - used, "%s (%d:%u)%s%s%s", name, entry->device + 1,
                          (unsigned)cell[entry->instruction], last ? "" : ", ",
                          last ? "" : zb_wait_word(entry->why), last ? "" : " ");
    if (length < 0 || (size_t)length >= size - used - 3) {
      strcpy(text + used, " ..");
      return;
    }
    used += (size_t)length;
  }
}

// The simulation names device and position: here they are a row and a cell.
static void place_error(const struct zb_program *program, const struct zb_run *run, const uint32_t *cell,
                        struct zb_error *error) {
  static const char form[] = "device %d, position %zu, %n";
  int device = 0, skip = 0;
  size_t position = 0;
  char text[sizeof error->text];
  if (!error) return;
  if (run->cycle_length > 0) {
    describe_cycle(program, run, cell, text, sizeof text - 40);
    device = run->cycle[0].device;
    position = run->cycle[0].instruction - program->first[device];
    zb_fail(error, ZB_WRONG, "it never finishes: %s", text);
  } else if (sscanf(error->text, form, &device, &position, &skip) == 2 && skip > 0) {
    snprintf(text, sizeof text, "%s", error->text + skip);
    zb_fail(error, ZB_WRONG, "%s", text);
  } else {
    return;
  }
  error->line = device + 1;
  error->column = (int)cell[program->first[device] + position];
}

static int peer_of(const struct zb_profile *profile, const struct zb_instruction *i) {
  const bool up = i->kind == ZB_DO_SEND_F || i->kind == ZB_DO_WAIT_SEND_F || i->kind == ZB_DO_RECV_B;
  const int other = i->stage + (up ? 1 : -1);
  return other < 0 || other >= profile->stages ? -1 : profile->device_of[other];
}

static enum zb_status simulate(const struct zb_torch_csv *csv, const struct zb_profile *profile,
                               enum zb_channels channels, struct zb_error *error) {
  const size_t actions = csv->first[csv->ranks];
  struct zb_program *program = NULL;
  struct zb_run run = {0};
  uint32_t *cell = calloc(actions + 1, sizeof *cell);
  enum zb_status status = cell ? zb_program_create(profile, actions, &program, error) : zb_fail_memory(error);
  if (status == ZB_OK) {
    size_t count = 0;
    for (int r = 0; r < csv->ranks; r++) {
      for (size_t k = csv->first[r]; k < csv->first[r + 1]; k++) {
        const struct zb_torch_action *a = &csv->actions[k];
        if (kind_of[a->word] < 0) continue;
        struct zb_instruction i = {
            (enum zb_instruction_kind)kind_of[a->word], a->stage, a->microbatch, -1, -1, -1, -1};
        if (!zb_torch_word_computes(a->word)) i.peer = peer_of(profile, &i);
        cell[count] = a->cell;
        program->instructions[count++] = i;
      }
      program->first[r + 1] = count;
    }
    status = zb_program_simulate(program, channels, false, &run, error);
    if (status == ZB_WRONG) place_error(program, &run, cell, error);
  }
  free(cell);
  zb_run_free(&run);
  zb_program_free(program);
  return status;
}

enum zb_status zb_torch_read_comms(const char *text, size_t size, struct zb_file_orders *orders,
                                   struct zb_text *notes, struct zb_error *error) {
  struct zb_torch_csv csv = {0};
  struct zb_profile *profile = NULL;
  enum zb_status status = zb_torch_csv_parse(text, size, true, &csv, error);
  if (status == ZB_OK) status = zb_torch_orders(&csv, orders, notes, error);
  if (status == ZB_OK) status = zb_file_orders_check(orders, error);
  if (status == ZB_OK) status = walk_rows(&csv, orders, error);
  if (status == ZB_OK) status = make_profile(orders, &profile, error);
  if (status == ZB_OK && profile) status = simulate(&csv, profile, orders->channels, error);
  zb_profile_free(profile);
  zb_torch_csv_free(&csv);
  return status;
}
