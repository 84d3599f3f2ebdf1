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

// What pieces are shown as, and the times of that.
typedef struct {
  const int32_t* shown;
  int32_t frames;
  int32_t* within;  // how many that are shown as each are open
  int64_t *own, *outer;
} Shown;

static inline void add_time(int64_t* sum, uint64_t time) { *sum = (int64_t)((uint64_t)*sum + time); }

static int64_t add_lane(Walk* walk, const Shown* of) {
  const Pieces* pieces = walk->pieces;
  Step step;
  int more;
  while ((more = next_step(walk, &step)) > 0) {
    const int32_t frame = pieces->frame[step.piece];
    if (frame < 0 || frame >= of->frames) return REFUSED;
    const int32_t shown = of->shown[frame];
    if (shown < 0 || shown >= of->frames) return REFUSED;
    if (!step.begins) {
      of->within[shown]--;
      continue;
    }
    const uint64_t length = (uint64_t)pieces->end[step.piece] - (uint64_t)pieces->start[step.piece];
    add_time(&of->own[shown], length);
    if (walk->depth > 1)
      add_time(&of->own[of->shown[pieces->frame[walk->open[walk->depth - 2]]]], 0 - length);
    if (!of->within[shown]++) add_time(&of->outer[shown], length);
  }
  return more < 0 || !is_done(walk) ? REFUSED : 0;
}

int64_t flamecore_shown_times(const Pieces* pieces, int32_t deepest, const int32_t* shown,
                              int32_t frames, int64_t* own, int64_t* outer) {
  if (pieces->count > INT32_MAX) return REFUSED;
  memset(own, 0, (size_t)frames * sizeof *own);
  memset(outer, 0, (size_t)frames * sizeof *outer);
  Walk walk;
  int64_t result = NO_MEMORY;
  const Shown of = {shown, frames, calloc((size_t)frames + 1, sizeof *of.within), own, outer};
  if (begin_walk(&walk, pieces, deepest) && of.within) {
    int64_t at = 0;
    for (result = 0; at < pieces->count && !result;) {
      at = enter_lane(&walk, at);
      result = at < 0 ? at : add_lane(&walk, &of);
    }
    if (!result) result = pieces->count;
  }
  end_walk(&walk);
  free(of.within);
  return result;
}

// What was launched in a piece that is open: from `low` on, of which `at` is the first that is not told
// yet; when the first of the others began, and the last ended.
typedef struct {
  int64_t low, at;
  int64_t first, last;
} Work;

// What was launched in the pieces that are open.
typedef struct {
  const Launches* launches;
  const LaunchedIn* out;
  int64_t* span;        // NULL: all of `out` is wanted
  int64_t first, last;  // those of the lane
  int64_t done;         // of them, before the next piece in no other
  Work* open;           // outermost first
} Sums;

static inline int64_t time_of(const Sums* sums, int64_t launch) {
  return sums->launches->time[sums->launches->row[launch]];
}

static inline void widen(Work* work, int64_t first, int64_t last) {
  if (first < work->first) work->first = first;
  if (last > work->last) work->last = last;
}

static inline void add(const Sums* sums, Work* work, int64_t launch) {
  const int64_t row = sums->launches->row[launch], start = sums->launches->start[row];
  widen(work, start, (int64_t)((uint64_t)start + (uint64_t)sums->launches->length[row]));
}

static void begin_piece(const Walk* walk, Sums* sums, int32_t piece) {
  Work* work = &sums->open[walk->depth - 1];
  const int in_other = walk->depth > 1;
  const int64_t start = walk->pieces->start[piece];
  int64_t* before = in_other ? &work[-1].at : &sums->done;
  for (; *before < sums->last && time_of(sums, *before) < start; ++*before)
    if (in_other) add(sums, &work[-1], *before);
  int64_t low = *before;  // what began with it may be of the piece before it, too
  while (low > sums->first && time_of(sums, low - 1) >= start) low--;
  *work = (Work){low, low, INT64_MAX, INT64_MIN};
}

static void tell_work(const Sums* sums, int32_t piece, const Work* work) {
  if (sums->span) {
    const uint64_t span = (uint64_t)work->last - (uint64_t)work->first;
    sums->span[piece] = work->at > work->low ? (int64_t)span : -1;
    return;
  }
  sums->out->low[piece] = (int32_t)work->low;
  sums->out->high[piece] = (int32_t)work->at;
  sums->out->first[piece] = work->first;
  sums->out->last[piece] = work->last;
}

static void end_piece(const Walk* walk, Sums* sums, int32_t piece) {
  Work* work = &sums->open[walk->depth];
  for (; work->at < sums->last && time_of(sums, work->at) <= walk->pieces->end[piece]; ++work->at)
    add(sums, work, work->at);
  tell_work(sums, piece, work);
  int64_t* before = walk->depth ? &work[-1].at : &sums->done;
  if (*before < work->at) *before = work->at;
  if (walk->depth) widen(&work[-1], work->first, work->last);
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

static int64_t find_launched(const Pieces* pieces, int32_t deepest, const Launches* launches,
                             const LaunchedIn* out, int64_t* span) {
  if (pieces->count > INT32_MAX || launches->count > INT32_MAX) return REFUSED;
  if (!are_by_lane(launches)) return REFUSED;
  Walk walk;
  Sums sums = {.launches = launches, .out = out, .span = span};
  sums.open = malloc(((size_t)deepest + 1) * sizeof *sums.open);
  int64_t result = NO_MEMORY;
  if (begin_walk(&walk, pieces, deepest) && sums.open) {
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
  free(sums.open);
  return result;
}

int64_t flamecore_launched(const Pieces* pieces, int32_t deepest, const Launches* launches,
                           const LaunchedIn* out) {
  return find_launched(pieces, deepest, launches, out, NULL);
}

int64_t flamecore_launched_spans(const Pieces* pieces, int32_t deepest, const Launches* launches,
                                 int64_t* span) {
  return find_launched(pieces, deepest, launches, NULL, span);
}
