// Goes through pieces that nest, ordered by their depth, from outer to inner.
#include <stdlib.h>

#include "flamecore.h"

// Where a walk is. Those of a depth are one behind the other, from `next` to before `stop`.
typedef struct {
  const Pieces* pieces;
  int32_t deepest, depth;
  int32_t* open;  // outermost first
  int64_t *next, *stop;
} Walk;

static int begin_walk(Walk* walk, const Pieces* pieces, int32_t deepest) {
  const size_t room = (size_t)deepest + 1;
  *walk = (Walk){.pieces = pieces, .deepest = deepest};
  walk->open = malloc(room * sizeof *walk->open);
  walk->next = malloc(room * sizeof *walk->next);
  walk->stop = malloc(room * sizeof *walk->stop);
  return walk->open && walk->next && walk->stop;
}

static void end_walk(Walk* walk) {
  free(walk->open);
  free(walk->next);
  free(walk->stop);
}

// Finds the pieces of the lane of `first`, by depth; returns where they end. Refuses pieces that
// are not in order, nor one depth below the other.
static int64_t enter_lane(Walk* walk, int64_t first) {
  const Pieces* pieces = walk->pieces;
  const int32_t lane = pieces->lane[first];
  int32_t depths = 0;
  int64_t at = first;
  for (; at < pieces->count && pieces->lane[at] == lane; at++) {
    if (pieces->depth[at] == depths) {
      if (depths == walk->deepest) return REFUSED;
      walk->next[depths] = at;
      if (depths) walk->stop[depths - 1] = at;
      depths++;
    } else if (!depths || pieces->depth[at] != depths - 1 || pieces->start[at] < pieces->end[at - 1]) {
      return REFUSED;
    }
  }
  if (at < pieces->count && pieces->lane[at] < lane) return REFUSED;
  walk->stop[depths - 1] = at;
  for (; depths <= walk->deepest; depths++) walk->next[depths] = walk->stop[depths] = at;
  walk->depth = 0;
  return at;
}

// What a walk comes to: a piece that begins, or one that ends.
typedef struct {
  int32_t piece;
  int begins;
} Step;

// Returns 1 and the next step within a lane, 0 where there is none, REFUSED for a piece that is not
// within the one around it.
static inline int next_step(Walk* walk, Step* step) {
  const Pieces* pieces = walk->pieces;
  const int32_t depth = walk->depth, outer = depth ? walk->open[depth - 1] : -1;
  const int64_t next = walk->next[depth];
  if (next < walk->stop[depth] && (outer < 0 || pieces->start[next] < pieces->end[outer])) {
    if (pieces->parent[next] != outer) return REFUSED;
    if (outer >= 0 && (pieces->start[next] < pieces->start[outer] ||
                       pieces->end[next] > pieces->end[outer]))
      return REFUSED;
    if (pieces->end[next] < pieces->start[next]) return REFUSED;
    *step = (Step){(int32_t)next, 1};
    walk->open[walk->depth++] = (int32_t)walk->next[depth]++;
    return 1;
  }
  if (!depth) return 0;
  *step = (Step){outer, 0};
  walk->depth--;
  return 1;
}

// Whether all pieces of the lane were come to.
static int is_done(const Walk* walk) {
  for (int32_t depth = 0; depth < walk->deepest; depth++)
    if (walk->next[depth] < walk->stop[depth]) return 0;
  return 1;
}

static int64_t mark_lane(Walk* walk, const int32_t* shown, int32_t frames, int32_t* within,
                         uint8_t* alone) {
  const int32_t* frame = walk->pieces->frame;
  Step step;
  int more;
  while ((more = next_step(walk, &step)) > 0) {
    const int32_t own = frame[step.piece];
    if (own < 0 || own >= frames || shown[own] < 0 || shown[own] >= frames) return REFUSED;
    if (!step.begins)
      within[shown[own]]--;
    else
      alone[step.piece] = !within[shown[own]]++;
  }
  return more < 0 || !is_done(walk) ? REFUSED : 0;
}

int64_t flamecore_outermost_shown(const Pieces* pieces, int32_t deepest, const int32_t* shown,
                            int32_t frames, uint8_t* alone) {
  if (pieces->count > INT32_MAX) return REFUSED;
  Walk walk;
  int64_t result = NO_MEMORY;
  int32_t* within = calloc((size_t)frames + 1, sizeof *within);
  if (begin_walk(&walk, pieces, deepest) && within) {
    int64_t at = 0;
    for (result = 0; at < pieces->count && !result;) {
      at = enter_lane(&walk, at);
      result = at < 0 ? at : mark_lane(&walk, shown, frames, within, alone);
    }
    if (!result) result = pieces->count;
  }
  end_walk(&walk);
  free(within);
  return result;
}

// What was launched in pieces that are open: `at` of each is the first launch that is not told yet.
typedef struct {
  const Launches* launches;
  const LaunchedIn* out;
  int64_t first, last;  // those of the lane
  int64_t done;         // of them, before the next piece in no other
  int64_t* at;
} Sums;

static inline int64_t time_of(const Sums* sums, int64_t launch) {
  return sums->launches->time[sums->launches->row[launch]];
}

static inline void widen(const Sums* sums, int32_t piece, int64_t first, int64_t last) {
  if (first < sums->out->first[piece]) sums->out->first[piece] = first;
  if (last > sums->out->last[piece]) sums->out->last[piece] = last;
}

static inline void add(const Sums* sums, int32_t piece, int64_t launch) {
  const int64_t row = sums->launches->row[launch], start = sums->launches->start[row];
  widen(sums, piece, start, (int64_t)((uint64_t)start + (uint64_t)sums->launches->length[row]));
}

static void begin_piece(const Walk* walk, Sums* sums, int32_t piece) {
  const int32_t depth = walk->depth - 1;
  const int64_t start = walk->pieces->start[piece];
  int64_t* before = depth ? &sums->at[depth - 1] : &sums->done;
  for (; *before < sums->last && time_of(sums, *before) < start; ++*before)
    if (depth) add(sums, walk->open[depth - 1], *before);
  int64_t low = *before;  // what began with it may be of the piece before it, too
  while (low > sums->first && time_of(sums, low - 1) >= start) low--;
  sums->out->low[piece] = (int32_t)low;
  sums->out->first[piece] = INT64_MAX;
  sums->out->last[piece] = INT64_MIN;
  sums->at[depth] = low;
}

static void end_piece(const Walk* walk, Sums* sums, int32_t piece) {
  const int32_t depth = walk->depth;
  int64_t* at = &sums->at[depth];
  for (; *at < sums->last && time_of(sums, *at) <= walk->pieces->end[piece]; ++*at)
    add(sums, piece, *at);
  sums->out->high[piece] = (int32_t)*at;
  int64_t* before = depth ? &sums->at[depth - 1] : &sums->done;
  if (*before < *at) *before = *at;
  if (depth)
    widen(sums, walk->open[depth - 1], sums->out->first[piece], sums->out->last[piece]);
}

static int64_t sum_lane(Walk* walk, Sums* sums) {
  Step step;
  int more;
  while ((more = next_step(walk, &step)) > 0) {
    if (step.begins)
      begin_piece(walk, sums, step.piece);
    else
      end_piece(walk, sums, step.piece);
  }
  return more < 0 || !is_done(walk) ? REFUSED : 0;
}

// Finds the launches of a lane, which are in order, behind those of lanes before it.
static int64_t find_launches(Sums* sums, int32_t lane) {
  const Launches* launches = sums->launches;
  int64_t at = sums->last;
  while (at < launches->count && launches->lane[launches->row[at]] < lane) at++;
  sums->first = sums->done = at;
  for (; at < launches->count && launches->lane[launches->row[at]] == lane; at++)
    if (at > sums->first && time_of(sums, at) < time_of(sums, at - 1)) return REFUSED;
  sums->last = at;
  return 0;
}

static int are_by_lane(const Launches* launches) {
  for (int64_t at = 1; at < launches->count; at++)
    if (launches->lane[launches->row[at]] < launches->lane[launches->row[at - 1]]) return 0;
  return 1;
}

int64_t flamecore_launched(const Pieces* pieces, int32_t deepest, const Launches* launches,
                           const LaunchedIn* out) {
  if (pieces->count > INT32_MAX || launches->count > INT32_MAX) return REFUSED;
  if (!are_by_lane(launches)) return REFUSED;
  Walk walk;
  Sums sums = {.launches = launches, .out = out};
  sums.at = malloc(((size_t)deepest + 1) * sizeof *sums.at);
  int64_t result = NO_MEMORY;
  if (begin_walk(&walk, pieces, deepest) && sums.at) {
    int64_t at = 0;
    for (result = 0; at < pieces->count && !result;) {
      result = find_launches(&sums, pieces->lane[at]);
      if (result) break;
      at = enter_lane(&walk, at);
      result = at < 0 ? at : sum_lane(&walk, &sums);
    }
    if (!result) result = pieces->count;
  }
  end_walk(&walk);
  free(sums.at);
  return result;
}
