// What is open at moments: as by a look at every interval for each moment, lane by lane.
#include "flamecore.h"
#include "input.h"

#define MOST 40
#define LANES 3
#define DEEPEST 6

typedef struct {
  int32_t lane[MOST], frame[MOST];
  int64_t start[MOST], end[MOST];
  int32_t count;
} Spans;

static int64_t take_time(Input* in) {
  const uint8_t byte = take_byte(in);
  return byte < 250 ? byte % 24 : take_number(in);
}

static Spans take_spans(Input* in) {
  Spans spans = {.count = (int32_t)below(in, MOST + 1)};
  for (int32_t i = 0; i < spans.count; i++) {
    spans.lane[i] = (int32_t)below(in, LANES + 1) - 1;
    spans.frame[i] = (int32_t)below(in, 5);
    spans.start[i] = take_time(in);
    spans.end[i] = take_time(in);
  }
  return spans;
}

// Whether interval `one` comes before `other`: earlier, or longer, or given before it.
static int comes_before(const Spans* spans, int32_t one, int32_t other) {
  if (spans->start[one] != spans->start[other]) return spans->start[one] < spans->start[other];
  if (spans->end[one] != spans->end[other]) return spans->end[one] > spans->end[other];
  return one < other;
}

static int has_length(const Spans* spans, int32_t i) { return spans->start[i] < spans->end[i]; }

static int nests(const Spans* spans, int32_t lane, int32_t deepest) {
  for (int32_t i = 0; i < spans->count; i++) {
    int32_t depth = 0;
    if (spans->lane[i] != lane || !has_length(spans, i)) continue;
    for (int32_t k = 0; k < spans->count; k++) {
      if (spans->lane[k] != lane || !has_length(spans, k) || !comes_before(spans, k, i)) continue;
      if (spans->end[k] <= spans->start[i]) continue;
      if (spans->end[k] < spans->end[i]) return 0;
      depth++;
    }
    if (depth >= deepest) return 0;
  }
  return 1;
}

// Sets the frames that are open on `lane` at `time`, the outermost first; returns how many.
static int32_t look(const Spans* spans, int32_t lane, int64_t time, int32_t deepest, int32_t* frame) {
  int32_t found[MOST], count = 0;
  for (int32_t i = 0; i < spans->count; i++) {
    if (spans->lane[i] != lane || spans->start[i] > time || spans->end[i] < time) continue;
    int32_t at = count++;
    for (; at && comes_before(spans, i, found[at - 1]); at--) found[at] = found[at - 1];
    found[at] = i;
  }
  if (count > deepest) count = deepest;
  for (int32_t i = 0; i < count; i++) frame[i] = spans->frame[found[i]];
  return count;
}

static void check_path(const Paths* paths, int32_t path, const int32_t* frame, int32_t count) {
  const int32_t *parents = flamecore_paths_parent(paths), *frames = flamecore_paths_frame(paths);
  require(path >= 0 && path < flamecore_paths_count(paths), "a path is one of them");
  for (; count; path = parents[path])
    require(path && frames[path] == frame[--count], "what is open is what covers the moment");
  require(!path, "nothing else is open");
}

static void check_tree(const Paths* paths) {
  const int32_t *parents = flamecore_paths_parent(paths), *frames = flamecore_paths_frame(paths);
  const int64_t count = flamecore_paths_count(paths);
  require(parents[0] == -1 && frames[0] == -1, "the first path is empty");
  for (int64_t i = 1; i < count; i++) {
    require(parents[i] >= 0 && parents[i] < i, "a parent comes before its children");
    for (int64_t k = 1; count < 200 && k < i; k++)
      require(parents[k] != parents[i] || frames[k] != frames[i], "a path is there once");
  }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in = {data, size};
  const int32_t deepest = 1 + (int32_t)below(&in, DEEPEST);
  const Spans spans = take_spans(&in);
  const int64_t moments = below(&in, MOST);
  int32_t *lane = memory(moments, sizeof *lane), *path = memory(moments, sizeof *path);
  int64_t* time = memory(moments, sizeof *time);
  for (int64_t i = 0; i < moments; i++) {
    lane[i] = (int32_t)below(&in, LANES + 1) - 1;
    time[i] = take_time(&in);
    path[i] = 0;
  }
  Paths* paths = flamecore_paths_new(size);
  uint8_t refused[LANES] = {0};
  int32_t *lanes = copied(spans.lane, spans.count, 4), *frame = copied(spans.frame, spans.count, 4);
  int64_t *start = copied(spans.start, spans.count, 8), *end = copied(spans.end, spans.count, 8);
  const Intervals intervals = {spans.count, lanes, start, end, frame};
  const Moments wanted = {moments, lane, time};
  require(!flamecore_open_at(paths, &intervals, &wanted, LANES, deepest, path, refused), "it ends");
  for (int32_t i = 0; i < LANES; i++)
    require(refused[i] == !nests(&spans, i, deepest), "lanes that do not nest are refused");
  for (int64_t i = 0; i < moments; i++) {
    int32_t open[MOST], count = 0;
    if (lane[i] >= 0 && !refused[lane[i]]) count = look(&spans, lane[i], time[i], deepest, open);
    check_path(paths, path[i], open, count);
  }
  check_tree(paths);
  flamecore_paths_free(paths);
  free(lanes);
  free(frame);
  free(start);
  free(end);
  free(lane);
  free(path);
  free(time);
  return 0;
}
