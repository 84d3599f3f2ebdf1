// Finds what was open at moments by going once through the intervals of each lane (a thread).
#include <stdlib.h>
#include <string.h>

#include "flamecore.h"
#include "lanes.h"

#define FIRST_NODES 4096

struct Paths {
  uint64_t seed;
  int32_t* parent;
  int32_t* frame;
  int64_t count, room;
  int32_t* slots;  // numbers of nodes, 0: free
  uint64_t mask;
};

Paths* flamecore_paths_new(uint64_t seed) {
  Paths* paths = calloc(1, sizeof *paths);
  if (!paths) return NULL;
  paths->seed = seed;
  paths->room = FIRST_NODES;
  paths->mask = 2 * FIRST_NODES - 1;
  paths->parent = malloc(FIRST_NODES * sizeof *paths->parent);
  paths->frame = malloc(FIRST_NODES * sizeof *paths->frame);
  paths->slots = calloc(paths->mask + 1, sizeof *paths->slots);
  if (!paths->parent || !paths->frame || !paths->slots) {
    flamecore_paths_free(paths);
    return NULL;
  }
  paths->parent[0] = paths->frame[0] = -1;
  paths->count = 1;
  return paths;
}

void flamecore_paths_free(Paths* paths) {
  free(paths->parent);
  free(paths->frame);
  free(paths->slots);
  free(paths);
}

int64_t flamecore_paths_count(const Paths* paths) { return paths->count; }
const int32_t* flamecore_paths_parent(const Paths* paths) { return paths->parent; }
const int32_t* flamecore_paths_frame(const Paths* paths) { return paths->frame; }

static inline uint64_t hash_node(const Paths* paths, int32_t parent, int32_t frame) {
  const int32_t node[] = {parent, frame};
  return hash_bytes((const uint8_t*)node, sizeof node, paths->seed);
}

static int grow(Paths* paths) {
  const int64_t room = 2 * paths->room;
  const uint64_t size = 2 * (paths->mask + 1);
  int32_t* parent = realloc(paths->parent, (size_t)room * sizeof *parent);
  if (parent) paths->parent = parent;
  int32_t* frame = realloc(paths->frame, (size_t)room * sizeof *frame);
  if (frame) paths->frame = frame;
  int32_t* slots = calloc(size, sizeof *slots);
  if (!parent || !frame || !slots || room > INT32_MAX) {
    free(slots);
    return 0;
  }
  for (int64_t i = 1; i < paths->count; i++) {
    uint64_t at = hash_node(paths, parent[i], frame[i]) & (size - 1);
    while (slots[at]) at = (at + 1) & (size - 1);
    slots[at] = (int32_t)i;
  }
  free(paths->slots);
  paths->slots = slots;
  paths->mask = size - 1;
  paths->room = room;
  return 1;
}

// Returns the node of `frame` below `parent`, new or known; NO_MEMORY where there is no room.
static int32_t node(Paths* paths, int32_t parent, int32_t frame) {
  uint64_t at = hash_node(paths, parent, frame) & paths->mask;
  for (; paths->slots[at]; at = (at + 1) & paths->mask) {
    const int32_t known = paths->slots[at];
    if (paths->parent[known] == parent && paths->frame[known] == frame) return known;
  }
  if (paths->count == paths->room) return grow(paths) ? node(paths, parent, frame) : NO_MEMORY;
  paths->parent[paths->count] = parent;
  paths->frame[paths->count] = frame;
  paths->slots[at] = (int32_t)paths->count;
  return (int32_t)paths->count++;
}

// What is open on a lane, outermost first.
typedef struct {
  int64_t* end;
  int32_t* frame;
  int32_t* path;  // of those up to here, as far as known
  int32_t depth, known, deepest;
} Open;

static int push(Open* open, int64_t start, int64_t end, int32_t frame) {
  while (open->depth && open->end[open->depth - 1] <= start) open->depth--;
  if (open->known > open->depth) open->known = open->depth;
  if (open->depth == open->deepest) return 0;
  if (open->depth && end > open->end[open->depth - 1]) return 0;  // they cross
  open->end[open->depth] = end;
  open->frame[open->depth++] = frame;
  return 1;
}

// Returns the path of what is still open at `time`.
static int32_t path_at(Paths* paths, Open* open, int64_t time) {
  while (open->depth && open->end[open->depth - 1] < time) open->depth--;
  if (open->known > open->depth) open->known = open->depth;
  int32_t path = open->known ? open->path[open->known - 1] : 0;
  for (; open->known < open->depth && path >= 0; open->known++) {
    path = node(paths, path, open->frame[open->known]);
    open->path[open->known] = path;
  }
  return path;
}

typedef struct {
  Paths* paths;
  const Intervals* intervals;
  const Moments* moments;
  Open open;
  int32_t* path;
} Sweep;

// Puts what starts at the very moment on top: it is open as well, however short.
static int32_t add_starting(Sweep* sweep, const int32_t* rows, int64_t count, int64_t time,
                            int32_t path) {
  const Intervals* all = sweep->intervals;
  int32_t room = sweep->open.deepest - sweep->open.depth;
  for (int64_t i = 0; i < count && all->start[rows[i]] == time && room && path >= 0; i++) {
    if (all->end[rows[i]] < time) break;  // and so do those behind it
    path = node(sweep->paths, path, all->frame[rows[i]]);
    room--;
  }
  return path;
}

// Opens what starts before `time`, as far as it nests; returns whether it does.
static int open_until(Sweep* sweep, const int32_t* rows, int64_t count, int64_t* next,
                      int64_t time) {
  const Intervals* all = sweep->intervals;
  for (; *next < count && all->start[rows[*next]] < time; ++*next) {
    const int32_t row = rows[*next];
    const int64_t start = all->start[row], end = all->end[row];
    if (end > start && !push(&sweep->open, start, end, all->frame[row])) return 0;
  }
  return 1;
}

// To the very end, so that intervals nested too deeply are told wherever they are.
static int64_t sweep_lane(Sweep* sweep, const int32_t* rows, int64_t count, const int32_t* wanted,
                          int64_t moments) {
  int64_t next = 0;
  int32_t path = 0;
  sweep->open.depth = sweep->open.known = 0;
  for (int64_t i = 0; i < moments; i++) {
    const int64_t time = sweep->moments->time[wanted[i]];
    if (i && time == sweep->moments->time[wanted[i - 1]]) {
      sweep->path[wanted[i]] = path;
      continue;
    }
    if (!open_until(sweep, rows, count, &next, time)) return REFUSED;
    path = path_at(sweep->paths, &sweep->open, time);
    path = add_starting(sweep, rows + next, count - next, time, path);
    if (path < 0) return path;
    sweep->path[wanted[i]] = path;
  }
  return open_until(sweep, rows, count, &next, INT64_MAX) ? 0 : REFUSED;
}

static int64_t sweep_lanes(Sweep* sweep, Lanes* ranges, Lanes* moments, int32_t lanes,
                           int32_t* scratch, uint8_t* refused) {
  const Order outer_first = {sweep->intervals->start, sweep->intervals->end};
  const Order by_time = {sweep->moments->time, NULL};
  for (int32_t lane = 0; lane < lanes; lane++) {
    int32_t* rows = ranges->rows + ranges->begin[lane];
    int32_t* wanted = moments->rows + moments->begin[lane];
    const int64_t count = ranges->begin[lane + 1] - ranges->begin[lane];
    const int64_t queries = moments->begin[lane + 1] - moments->begin[lane];
    if (!count) continue;
    sort_rows(&outer_first, rows, count, scratch);
    sort_rows(&by_time, wanted, queries, scratch);
    const int64_t failed = sweep_lane(sweep, rows, count, wanted, queries);
    if (failed == NO_MEMORY) return NO_MEMORY;
    if (!failed) continue;
    refused[lane] = 1;
    for (int64_t i = 0; i < queries; i++) sweep->path[wanted[i]] = 0;
  }
  return 0;
}

static int make_open(Open* open, int32_t deepest) {
  open->deepest = deepest;
  open->end = malloc((size_t)deepest * sizeof *open->end);
  open->frame = malloc((size_t)deepest * sizeof *open->frame);
  open->path = malloc((size_t)deepest * sizeof *open->path);
  return open->end && open->frame && open->path;
}

int64_t flamecore_open_at(Paths* paths, const Intervals* intervals, const Moments* moments,
                          int32_t lanes, int32_t deepest, int32_t* path, uint8_t* refused) {
  if (intervals->count > INT32_MAX || moments->count > INT32_MAX) return REFUSED;
  Sweep sweep = {paths, intervals, moments, {0}, path};
  Lanes ranges = {0}, wanted = {0};
  const int64_t most = intervals->count > moments->count ? intervals->count : moments->count;
  int32_t* scratch = malloc((size_t)(most + 1) * sizeof *scratch);
  int64_t result = NO_MEMORY;
  if (scratch && make_open(&sweep.open, deepest) &&
      sort_by_lane(intervals->lane, intervals->count, lanes, &ranges) &&
      sort_by_lane(moments->lane, moments->count, lanes, &wanted))
    result = sweep_lanes(&sweep, &ranges, &wanted, lanes, scratch, refused);
  free(scratch);
  free_lanes(&ranges);
  free_lanes(&wanted);
  free(sweep.open.end);
  free(sweep.open.frame);
  free(sweep.open.path);
  return result;
}
