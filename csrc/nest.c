// Nests the intervals of each lane (a thread) by going once through them, and finds which of them
// is the innermost when.
#include <stdlib.h>

#include "flamecore.h"
#include "lanes.h"

#define SPARE 1024  // pieces besides two of each interval: of more numpy takes care

// What is left of an interval that was cut where one around it ended. Of those that go on at the
// same moment the one that began first, whose place is lower, is the outermost.
typedef struct {
  int64_t time;
  int64_t place;  // among the sorted rows
} Rest;

// Whoever takes the pieces is compiled into what finds them: calls would take a third of the time.
#define INTO_CALLER static inline __attribute__((always_inline))

// Takes each piece that there is, within `depth` others: those around it are the last of their depth.
typedef void (*Take)(void* to, int32_t depth, int32_t row, int64_t start, int64_t end);

typedef struct {
  const LaneSpans* spans;
  const int32_t* rows;  // of all lanes, in order
  int64_t* ends;        // of the pieces that are open, outermost first
  int32_t depth, deepest;
  Rest* rests;          // a heap, the first of them on top
  int64_t waiting, room;
  int64_t count, most;  // pieces so far, and at most
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
INTO_CALLER int64_t open_piece(Nest* nest, int64_t start, int64_t place, Take take, void* to) {
  const int32_t row = nest->rows[place];
  while (nest->depth && nest->ends[nest->depth - 1] <= start) nest->depth--;
  if (nest->depth == nest->deepest || nest->count == nest->most) return REFUSED;
  int64_t end = nest->spans->end[row];
  if (nest->depth && nest->ends[nest->depth - 1] < end) {
    end = nest->ends[nest->depth - 1];
    if (wait_until(nest, (Rest){end, place})) return NO_MEMORY;
  }
  nest->count++;
  take(to, nest->depth, row, start, end);
  nest->ends[nest->depth++] = end;
  return 0;
}

// Opens what goes on up to `time`, including: it is older than what begins then.
INTO_CALLER int64_t open_rests(Nest* nest, int64_t time, Take take, void* to) {
  while (nest->waiting && nest->rests[0].time <= time) {
    const Rest rest = take_first(nest);
    const int64_t failed = open_piece(nest, rest.time, rest.place, take, to);
    if (failed) return failed;
  }
  return 0;
}

INTO_CALLER int64_t nest_lane(Nest* nest, int64_t first, int64_t last, Take take, void* to) {
  nest->depth = 0;
  for (int64_t place = first; place < last; place++) {
    const int32_t row = nest->rows[place];
    const int64_t start = nest->spans->start[row];
    if (nest->spans->end[row] <= start) continue;
    int64_t failed = open_rests(nest, start, take, to);
    if (!failed) failed = open_piece(nest, start, place, take, to);
    if (failed) return failed;
  }
  return open_rests(nest, INT64_MAX, take, to);
}

// What there is to nest, lane by lane.
typedef struct {
  Lanes by_lane;
  int32_t* scratch;
  Nest nest;
} Work;

static int begin_work(Work* work, const LaneSpans* spans, int32_t lanes, int32_t deepest) {
  *work = (Work){.nest = {.spans = spans, .deepest = deepest}};
  work->nest.ends = malloc(((size_t)deepest + 1) * sizeof *work->nest.ends);
  work->scratch = malloc((size_t)(spans->count + 1) * sizeof *work->scratch);
  if (!work->nest.ends || !work->scratch) return 0;
  const int done = sort_by_lane(spans->lane, spans->count, lanes, &work->by_lane);
  work->nest.rows = work->by_lane.rows;
  return done;
}

static void end_work(Work* work) {
  free(work->nest.rests);
  free(work->nest.ends);
  free(work->scratch);
  free_lanes(&work->by_lane);
}

static void sort_lane(Work* work, int32_t lane) {
  const Order outer_first = {work->nest.spans->start, work->nest.spans->end};
  const int64_t first = work->by_lane.begin[lane], last = work->by_lane.begin[lane + 1];
  sort_rows(&outer_first, work->by_lane.rows + first, last - first, work->scratch);
}

INTO_CALLER int64_t nest_sorted(Work* work, int32_t lane, Take take, void* to) {
  return nest_lane(&work->nest, work->by_lane.begin[lane], work->by_lane.begin[lane + 1], take, to);
}

typedef struct {
  const Nested* out;
  int64_t count;
  int32_t* open;  // outermost first
} Listed;

static void list_piece(void* to, int32_t depth, int32_t row, int64_t start, int64_t end) {
  Listed* listed = to;
  const int64_t piece = listed->count++;
  listed->out->source[piece] = row;
  listed->out->start[piece] = start;
  listed->out->end[piece] = end;
  listed->out->parent[piece] = depth ? listed->open[depth - 1] : -1;
  listed->out->depth[piece] = depth;
  listed->open[depth] = (int32_t)piece;
}

int64_t flamecore_nest(const LaneSpans* spans, int32_t lanes, int32_t deepest, const Nested* out) {
  if (spans->count > INT32_MAX || out->room > INT32_MAX) return REFUSED;
  Work work;
  Listed listed = {.out = out};
  listed.open = malloc(((size_t)deepest + 1) * sizeof *listed.open);
  int64_t result = NO_MEMORY;
  if (begin_work(&work, spans, lanes, deepest) && listed.open) {
    work.nest.most = out->room;
    result = 0;
    for (int32_t lane = 0; lane < lanes && !result; lane++) {
      sort_lane(&work, lane);
      result = nest_sorted(&work, lane, list_piece, &listed);
    }
    if (!result) result = listed.count;
  }
  free(listed.open);
  end_work(&work);
  return result;
}

// Where the next piece of each depth goes; before that, how many there are.
typedef struct {
  const MadePieces* out;
  const int32_t* frame;
  int32_t lane, depths;
  int64_t* next;
  int32_t* open;
} ByDepth;

static void count_piece(void* to, int32_t depth, int32_t row, int64_t start, int64_t end) {
  (void)row, (void)start, (void)end;
  ByDepth* pieces = to;
  pieces->next[depth]++;
  if (depth >= pieces->depths) pieces->depths = depth + 1;
}

static void put_piece(void* to, int32_t depth, int32_t row, int64_t start, int64_t end) {
  ByDepth* pieces = to;
  const MadePieces* out = pieces->out;
  const int64_t piece = pieces->next[depth]++;
  out->lane[piece] = pieces->lane;
  out->depth[piece] = depth;
  out->frame[piece] = pieces->frame[row];
  out->start[piece] = start;
  out->end[piece] = end;
  out->parent[piece] = depth ? pieces->open[depth - 1] : -1;
  pieces->open[depth] = (int32_t)piece;
}

// Goes through the lane twice: where the pieces of a depth begin is known when those before are.
static int64_t nest_lane_by_depth(Work* work, ByDepth* pieces, int64_t room) {
  const int64_t before = work->nest.count;
  sort_lane(work, pieces->lane);
  int64_t failed = nest_sorted(work, pieces->lane, count_piece, pieces);
  const int64_t count = work->nest.count;
  int64_t begin = before;
  for (int32_t depth = 0; depth < pieces->depths; depth++) {
    const int64_t number = pieces->next[depth];
    pieces->next[depth] = begin;
    begin += number;
  }
  if (!failed && count <= room) {
    work->nest.count = before;
    failed = nest_sorted(work, pieces->lane, put_piece, pieces);
  }
  memset(pieces->next, 0, (size_t)pieces->depths * sizeof *pieces->next);
  return failed;
}

int64_t flamecore_nest_by_depth(const LaneSpans* spans, const int32_t* frame, int32_t lanes,
                                int32_t deepest, int64_t room, const MadePieces* out) {
  if (spans->count > INT32_MAX / 4) return REFUSED;
  Work work;
  ByDepth pieces = {.out = out, .frame = frame};
  pieces.next = calloc((size_t)deepest + 1, sizeof *pieces.next);
  pieces.open = malloc(((size_t)deepest + 1) * sizeof *pieces.open);
  int64_t result = NO_MEMORY;
  if (begin_work(&work, spans, lanes, deepest) && pieces.next && pieces.open) {
    work.nest.most = 2 * spans->count + SPARE;
    result = 0;
    for (; pieces.lane < lanes && !result; pieces.lane++)
      result = nest_lane_by_depth(&work, &pieces, room);
    if (!result) result = work.nest.count;
  }
  free(pieces.next);
  free(pieces.open);
  end_work(&work);
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

// Adds what one lane gives, whose rows are sorted, to the pieces before, of which there are `found`.
typedef int64_t AddLane(const LaneSpans* spans, const int32_t* rows, int64_t count,
                        const Innermost* out, int64_t found);

static int64_t add_each_lane(const LaneSpans* spans, int32_t lanes, const Order* order,
                             const Innermost* out, AddLane* add_lane) {
  if (spans->count > INT32_MAX) return REFUSED;
  Lanes by_lane = {0};
  int32_t* scratch = malloc((size_t)(spans->count + 1) * sizeof *scratch);
  int64_t found = NO_MEMORY;
  if (scratch && sort_by_lane(spans->lane, spans->count, lanes, &by_lane)) {
    found = 0;
    for (int32_t lane = 0; lane < lanes; lane++) {
      int32_t* rows = by_lane.rows + by_lane.begin[lane];
      const int64_t count = by_lane.begin[lane + 1] - by_lane.begin[lane];
      sort_rows(order, rows, count, scratch);
      found = add_lane(spans, rows, count, out, found);
    }
  }
  free(scratch);
  free_lanes(&by_lane);
  return found;
}

static int64_t add_outermost(const LaneSpans* spans, const int32_t* rows, int64_t count,
                             const Innermost* out, int64_t found) {
  int64_t reach = INT64_MIN;
  for (int64_t i = 0; i < count; i++) {
    const int64_t start = spans->start[rows[i]], end = spans->end[rows[i]];
    const int64_t begin = start > reach ? start : reach;
    if (end <= begin) continue;
    out->piece[found] = rows[i];
    out->start[found] = begin;
    out->end[found++] = reach = end;
  }
  return found;
}

static int64_t add_union(const LaneSpans* spans, const int32_t* rows, int64_t count,
                         const Innermost* out, int64_t found) {
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
  return found;
}

int64_t flamecore_outermost(const LaneSpans* spans, int32_t lanes, const Innermost* out) {
  const Order outer_first = {spans->start, spans->end};
  return add_each_lane(spans, lanes, &outer_first, out, add_outermost);
}

int64_t flamecore_union(const LaneSpans* spans, int32_t lanes, const Innermost* out) {
  const Order by_start = {spans->start, NULL};
  return add_each_lane(spans, lanes, &by_start, out, add_union);
}
