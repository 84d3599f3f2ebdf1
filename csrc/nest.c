// Nests the intervals of each lane (a thread) by going once through them, and finds which of them
// is the innermost when.
#include <stdlib.h>

#include "flamecore.h"
#include "lanes.h"

// What is left of an interval that was cut where one around it ended. Of those that go on at the
// same moment the one that began first, whose place is lower, is the outermost.
typedef struct {
  int64_t time;
  int64_t place;  // among the sorted rows
} Rest;

typedef struct {
  const LaneSpans* spans;
  const int32_t* rows;  // of all lanes, in order
  Nested out;
  int64_t count;        // pieces so far
  int32_t* open;        // pieces that are open, outermost first
  int32_t depth, deepest;
  Rest* rests;          // a heap, the first of them on top
  int64_t waiting, room;
} Nest;

static inline int goes_first(Rest one, Rest other) {
  return one.time != other.time ? one.time < other.time : one.place < other.place;
}

static int64_t wait_until(Nest* nest, Rest rest) {
  if (nest->waiting == nest->room) {
    const int64_t room = nest->room ? 2 * nest->room : 64;
    Rest* rests = realloc(nest->rests, (size_t)room * sizeof *rests);
    if (!rests) return NO_MEMORY;
    nest->rests = rests;
    nest->room = room;
  }
  int64_t at = nest->waiting++;
  for (; at && goes_first(rest, nest->rests[(at - 1) / 2]); at = (at - 1) / 2)
    nest->rests[at] = nest->rests[(at - 1) / 2];
  nest->rests[at] = rest;
  return 0;
}

static Rest take_first(Nest* nest) {
  const Rest first = nest->rests[0], last = nest->rests[--nest->waiting];
  int64_t at = 0;
  for (;;) {
    int64_t below = 2 * at + 1;
    if (below + 1 < nest->waiting && goes_first(nest->rests[below + 1], nest->rests[below])) below++;
    if (below >= nest->waiting || !goes_first(nest->rests[below], last)) break;
    nest->rests[at] = nest->rests[below];
    at = below;
  }
  nest->rests[at] = last;
  return first;
}

// Opens what there is of the interval at `place` from `start` on: up to its end, or to that of what
// it is in, where the rest of it waits.
static int64_t open_piece(Nest* nest, int64_t start, int64_t place) {
  const int32_t row = nest->rows[place];
  Nested* out = &nest->out;
  while (nest->depth && out->end[nest->open[nest->depth - 1]] <= start) nest->depth--;
  if (nest->depth == nest->deepest || nest->count == out->room) return REFUSED;
  const int32_t parent = nest->depth ? nest->open[nest->depth - 1] : -1;
  int64_t end = nest->spans->end[row];
  if (parent >= 0 && out->end[parent] < end) {
    end = out->end[parent];
    if (wait_until(nest, (Rest){end, place})) return NO_MEMORY;
  }
  const int32_t piece = (int32_t)nest->count++;
  out->source[piece] = row;
  out->start[piece] = start;
  out->end[piece] = end;
  out->parent[piece] = parent;
  out->depth[piece] = nest->depth;
  nest->open[nest->depth++] = piece;
  return 0;
}

// Opens what goes on up to `time`, including: it is older than what begins then.
static int64_t open_rests(Nest* nest, int64_t time) {
  while (nest->waiting && nest->rests[0].time <= time) {
    const Rest rest = take_first(nest);
    const int64_t failed = open_piece(nest, rest.time, rest.place);
    if (failed) return failed;
  }
  return 0;
}

static int64_t nest_lane(Nest* nest, int64_t first, int64_t last) {
  nest->depth = 0;
  for (int64_t place = first; place < last; place++) {
    const int32_t row = nest->rows[place];
    const int64_t start = nest->spans->start[row];
    if (nest->spans->end[row] <= start) continue;
    int64_t failed = open_rests(nest, start);
    if (!failed) failed = open_piece(nest, start, place);
    if (failed) return failed;
  }
  return open_rests(nest, INT64_MAX);
}

static int64_t nest_lanes(Nest* nest, const Lanes* lanes, int32_t number, int32_t* scratch) {
  const Order outer_first = {nest->spans->start, nest->spans->end};
  for (int32_t lane = 0; lane < number; lane++) {
    const int64_t first = lanes->begin[lane], last = lanes->begin[lane + 1];
    sort_rows(&outer_first, lanes->rows + first, last - first, scratch);
    const int64_t failed = nest_lane(nest, first, last);
    if (failed) return failed;
  }
  return nest->count;
}

int64_t flamecore_nest(const LaneSpans* spans, int32_t lanes, int32_t deepest, const Nested* out) {
  if (spans->count > INT32_MAX || out->room > INT32_MAX) return REFUSED;
  Lanes by_lane = {0};
  Nest nest = {.spans = spans, .out = *out, .deepest = deepest};
  nest.open = malloc((size_t)(deepest + 1) * sizeof *nest.open);
  int32_t* scratch = malloc((size_t)(spans->count + 1) * sizeof *scratch);
  int64_t result = NO_MEMORY;
  if (nest.open && scratch && sort_by_lane(spans->lane, spans->count, lanes, &by_lane)) {
    nest.rows = by_lane.rows;
    result = nest_lanes(&nest, &by_lane, lanes, scratch);
  }
  free(nest.rests);
  free(nest.open);
  free(scratch);
  free_lanes(&by_lane);
  return result;
}

// What is open on a lane up to `now`, and the pieces told so far.
typedef struct {
  const LaneSpans* spans;
  Innermost out;
  int64_t count, now;
  int32_t* open;
  int32_t depth, deepest;
} Sweep;

static void tell(Sweep* sweep, int64_t until) {
  if (sweep->now < until) {
    sweep->out.piece[sweep->count] = sweep->open[sweep->depth - 1];
    sweep->out.start[sweep->count] = sweep->now;
    sweep->out.end[sweep->count++] = until;
  }
  sweep->now = until;
}

static void close_until(Sweep* sweep, int64_t time) {
  while (sweep->depth) {
    const int64_t end = sweep->spans->end[sweep->open[sweep->depth - 1]];
    if (end > time) break;
    tell(sweep, end);
    sweep->depth--;
  }
}

static int64_t sweep_lane(Sweep* sweep, const int32_t* rows, int64_t count) {
  sweep->depth = 0;
  for (int64_t i = 0; i < count; i++) {
    const int64_t start = sweep->spans->start[rows[i]], end = sweep->spans->end[rows[i]];
    if (end <= start) continue;
    close_until(sweep, start);
    if (sweep->depth) {
      if (end > sweep->spans->end[sweep->open[sweep->depth - 1]]) return REFUSED;
      tell(sweep, start);
    }
    if (sweep->depth == sweep->deepest) return REFUSED;
    sweep->now = start;
    sweep->open[sweep->depth++] = rows[i];
  }
  close_until(sweep, INT64_MAX);
  return 0;
}

int64_t flamecore_innermost(const LaneSpans* spans, int32_t lanes, int32_t deepest,
                            const Innermost* out) {
  if (spans->count > INT32_MAX) return REFUSED;
  Lanes by_lane = {0};
  Sweep sweep = {.spans = spans, .out = *out, .deepest = deepest};
  sweep.open = malloc((size_t)(deepest + 1) * sizeof *sweep.open);
  int32_t* scratch = malloc((size_t)(spans->count + 1) * sizeof *scratch);
  int64_t result = NO_MEMORY;
  if (sweep.open && scratch && sort_by_lane(spans->lane, spans->count, lanes, &by_lane)) {
    const Order outer_first = {spans->start, spans->end};
    result = 0;
    for (int32_t lane = 0; lane < lanes && !result; lane++) {
      int32_t* rows = by_lane.rows + by_lane.begin[lane];
      const int64_t count = by_lane.begin[lane + 1] - by_lane.begin[lane];
      sort_rows(&outer_first, rows, count, scratch);
      result = sweep_lane(&sweep, rows, count);
    }
    if (!result) result = sweep.count;
  }
  free(sweep.open);
  free(scratch);
  free_lanes(&by_lane);
  return result;
}

int64_t flamecore_outermost(const LaneSpans* spans, int32_t lanes, const Innermost* out) {
  if (spans->count > INT32_MAX) return REFUSED;
  Lanes by_lane = {0};
  int32_t* scratch = malloc((size_t)(spans->count + 1) * sizeof *scratch);
  int64_t found = NO_MEMORY;
  if (scratch && sort_by_lane(spans->lane, spans->count, lanes, &by_lane)) {
    const Order outer_first = {spans->start, spans->end};
    found = 0;
    for (int32_t lane = 0; lane < lanes; lane++) {
      int32_t* rows = by_lane.rows + by_lane.begin[lane];
      const int64_t count = by_lane.begin[lane + 1] - by_lane.begin[lane];
      sort_rows(&outer_first, rows, count, scratch);
      int64_t reach = INT64_MIN;
      for (int64_t i = 0; i < count; i++) {
        const int64_t start = spans->start[rows[i]], end = spans->end[rows[i]];
        const int64_t begin = start > reach ? start : reach;
        if (end <= begin) continue;
        out->piece[found] = rows[i];
        out->start[found] = begin;
        out->end[found++] = reach = end;
      }
    }
  }
  free(scratch);
  free_lanes(&by_lane);
  return found;
}

int64_t flamecore_union(const LaneSpans* spans, int32_t lanes, const Innermost* out) {
  if (spans->count > INT32_MAX) return REFUSED;
  Lanes by_lane = {0};
  int32_t* scratch = malloc((size_t)(spans->count + 1) * sizeof *scratch);
  int64_t found = NO_MEMORY;
  if (scratch && sort_by_lane(spans->lane, spans->count, lanes, &by_lane)) {
    const Order by_start = {spans->start, NULL};
    found = 0;
    for (int32_t lane = 0; lane < lanes; lane++) {
      int32_t* rows = by_lane.rows + by_lane.begin[lane];
      const int64_t count = by_lane.begin[lane + 1] - by_lane.begin[lane];
      sort_rows(&by_start, rows, count, scratch);
      int64_t reach = INT64_MIN;
      for (int64_t i = 0; i < count; i++) {
        const int64_t start = spans->start[rows[i]], end = spans->end[rows[i]];
        if (!i || start > reach) {
          out->piece[found] = rows[i];
          out->start[found++] = start;
        }
        if (end > reach) reach = end;
        out->end[found - 1] = reach;
      }
    }
  }
  free(scratch);
  free_lanes(&by_lane);
  return found;
}
