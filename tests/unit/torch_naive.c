// See torch_naive.h.
#include "tests/unit/torch_naive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 8, ROW = 256, STAGES = 16, MICROBATCHES = 16, DIRECTIONS = 2 };

struct cell {
  int stage, microbatch;
  char word[24];
};

struct rank {
  struct cell cells[ROW];
  int count, at;
  int posted[ROW], post_count, post_at; // its channel
};

struct run {
  struct rank rank[RANKS];
  int ranks, stages, microbatches;
  int rank_of[STAGES];
  bool forward[STAGES][MICROBATCHES], gradient[STAGES][MICROBATCHES], whole[STAGES][MICROBATCHES],
      weights[STAGES][MICROBATCHES];
  bool sent[DIRECTIONS][STAGES][MICROBATCHES],
      arrived[DIRECTIONS][STAGES][MICROBATCHES]; // by receiving stage
  bool left[DIRECTIONS][STAGES][MICROBATCHES];   // by sending stage
  int next_loss;
  bool communicates, broken;
};

static bool load(const char *text, struct run *run) {
  for (int s = 0; s < STAGES; s++) run->rank_of[s] = -1;
  for (; *text; text++, run->ranks++) {
    if (run->ranks == RANKS) return false;
    struct rank *rank = &run->rank[run->ranks];
    for (;;) {
      struct cell *cell = &rank->cells[rank->count++];
      int length = 0;
      cell->microbatch = -1;
      if (rank->count == ROW) return false;
      if (sscanf(text, "%d%23[A-Z_]%n", &cell->stage, cell->word, &length) != 2) return false;
      text += length;
      if (*text >= '0' && *text <= '9') {
        if (sscanf(text, "%d%n", &cell->microbatch, &length) != 1) return false;
        text += length;
      }
      if (cell->stage < 0 || cell->stage >= STAGES || cell->microbatch >= MICROBATCHES) return false;
      if (cell->stage >= run->stages) run->stages = cell->stage + 1;
      if (cell->microbatch >= run->microbatches) run->microbatches = cell->microbatch + 1;
      if (run->rank_of[cell->stage] >= 0 && run->rank_of[cell->stage] != run->ranks) return false;
      run->rank_of[cell->stage] = run->ranks;
      run->communicates = run->communicates || strlen(cell->word) > 1;
      if (*text != ',') break;
      text++;
    }
    if (*text != '\n') return false;
  }
  return true;
}

static bool set(struct run *run, bool *flag) {
  run->broken = run->broken || *flag;
  *flag = true;
  return true;
}

// Whether stage `s` has what stage `from` made for it.
static bool has_input(const struct run *run, int direction, int s, int from, int j) {
  if (from < 0 || from >= run->stages) return true;
  const bool made = direction == 0 ? run->forward[from][j] : run->gradient[from][j];
  if (!run->communicates || run->rank_of[from] == run->rank_of[s]) return made;
  return run->arrived[direction][s][j];
}

static bool take(struct run *run, struct rank *rank) {
  const struct cell *cell = &rank->cells[rank->at];
  const int s = cell->stage, j = cell->microbatch;
  const char *word = cell->word;
  const int direction = strstr(word, "_F") ? 0 : 1;
  if (strcmp(word, "F") == 0) {
    if (!has_input(run, 0, s, s - 1, j)) return false;
    if (s == run->stages - 1 && j != run->next_loss++) run->broken = true;
    return set(run, &run->forward[s][j]);
  }
  if (strcmp(word, "B") == 0 || strcmp(word, "I") == 0) {
    if (!run->forward[s][j] || !has_input(run, 1, s, s + 1, j)) return false;
    if (*word == 'B') set(run, &run->whole[s][j]);
    return set(run, &run->gradient[s][j]);
  }
  if (strcmp(word, "W") == 0) {
    if (!run->gradient[s][j] || run->whole[s][j]) run->broken = true;
    return set(run, &run->weights[s][j]);
  }
  if (strncmp(word, "WAIT_SEND", 9) == 0) return run->left[direction][s][j];
  if (strncmp(word, "SEND", 4) == 0) {
    if (!(direction == 0 ? run->forward[s][j] : run->gradient[s][j])) run->broken = true;
    set(run, &run->sent[direction][s][j]);
  }
  if (strncmp(word, "SEND", 4) == 0 || strncmp(word, "RECV", 4) == 0)
    rank->posted[rank->post_count++] = rank->at;
  return true;
}

// The first message of each rank's channel leaves when the other end is first at its peer.
static bool transfer(struct run *run, struct rank *from) {
  if (from->post_at == from->post_count) return false;
  const struct cell *send = &from->cells[from->posted[from->post_at]];
  if (strncmp(send->word, "SEND", 4) != 0) return false;
  const int direction = strcmp(send->word, "SEND_F") == 0 ? 0 : 1;
  const int to = send->stage + (direction == 0 ? 1 : -1);
  if (to < 0 || to >= run->stages) return false;
  struct rank *peer = &run->rank[run->rank_of[to]];
  if (peer == from || peer->post_at == peer->post_count) return false;
  const struct cell *receive = &peer->cells[peer->posted[peer->post_at]];
  if (strcmp(receive->word, direction == 0 ? "RECV_F" : "RECV_B") != 0 || receive->stage != to ||
      receive->microbatch != send->microbatch)
    return false;
  set(run, &run->arrived[direction][to][send->microbatch]);
  run->left[direction][send->stage][send->microbatch] = true;
  from->post_at++;
  peer->post_at++;
  return true;
}

static bool is_whole(const struct run *run) {
  for (int r = 0; r < run->ranks; r++)
    if (run->rank[r].at < run->rank[r].count || run->rank[r].post_at < run->rank[r].post_count) return false;
  for (int s = 0; s < run->stages; s++)
    for (int j = 0; j < run->microbatches; j++)
      if (!run->forward[s][j] || !run->gradient[s][j] || run->whole[s][j] == run->weights[s][j]) return false;
  return run->stages > 0 && run->microbatches > 0;
}

bool torch_naive_runs(const char *text) {
  struct run *run = calloc(1, sizeof *run);
  bool runs = run && load(text, run);
  for (bool moved = runs; moved;) {
    moved = false;
    for (int r = 0; r < run->ranks; r++) {
      struct rank *rank = &run->rank[r];
      while (rank->at < rank->count && take(run, rank)) {
        rank->at++;
        moved = true;
      }
      while (transfer(run, rank)) moved = true;
    }
  }
  runs = runs && !run->broken && is_whole(run);
  free(run);
  return runs;
}
