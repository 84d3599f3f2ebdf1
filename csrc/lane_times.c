// Measures what ran on lanes by going once through it, in order of its starts.
#include <stdlib.h>

#include "flamecore.h"

int64_t flamecore_lane_times(const LaneSpans* spans, int32_t lanes, const LaneTimes* out) {
  int64_t* begun = malloc(((size_t)lanes + 1) * sizeof *begun);
  if (!begun) return NO_MEMORY;
  for (int32_t lane = 0; lane < lanes; lane++) {
    begun[lane] = out->last[lane] = INT64_MIN;
    out->first[lane] = INT64_MAX;
    out->busy[lane] = 0;
  }
  int64_t row = 0;
  for (; row < spans->count; row++) {
    const int32_t lane = spans->lane[row];
    if (lane < 0) continue;
    const int64_t start = spans->start[row], end = spans->end[row];
    if (lane >= lanes || start < begun[lane] || end < start) break;
    begun[lane] = start;
    if (out->first[lane] == INT64_MAX) out->first[lane] = out->last[lane] = start;
    const int64_t from = start > out->last[lane] ? start : out->last[lane];
    if (end > from) out->busy[lane] = (int64_t)((uint64_t)out->busy[lane] + (uint64_t)end - (uint64_t)from);
    if (end > out->last[lane]) out->last[lane] = end;
  }
  free(begun);
  return row < spans->count ? REFUSED : row;
}

// What is open on a lane from the last start on: the end of what ends last, which is of `row`, and the
// end of all else.
typedef struct {
  int64_t since;
  int64_t last;
  int64_t other;
  int64_t row;
} Open;

// Takes from what ran last for how long it was open alone before `time`.
static void take_alone(const Open* open, int64_t time, int64_t* beside) {
  const int64_t from = open->since > open->other ? open->since : open->other;
  const int64_t to = time < open->last ? time : open->last;
  if (to > from) beside[open->row] = (int64_t)((uint64_t)beside[open->row] - ((uint64_t)to - (uint64_t)from));
}

int64_t flamecore_times_beside(const LaneSpans* spans, int32_t lanes, int64_t* beside) {
  Open* open = malloc(((size_t)lanes + 1) * sizeof *open);
  if (!open) return NO_MEMORY;
  for (int32_t lane = 0; lane < lanes; lane++) open[lane] = (Open){INT64_MIN, INT64_MIN, INT64_MIN, 0};
  int64_t row = 0;
  for (; row < spans->count; row++) {
    const int32_t lane = spans->lane[row];
    beside[row] = 0;
    if (lane < 0) continue;
    const int64_t start = spans->start[row], end = spans->end[row];
    if (lane >= lanes || start < open[lane].since || end < start) break;
    beside[row] = (int64_t)((uint64_t)end - (uint64_t)start);
    take_alone(&open[lane], start, beside);
    open[lane].since = start;
    if (end > open[lane].last) {
      open[lane].other = open[lane].last;
      open[lane].last = end;
      open[lane].row = row;
    } else if (end > open[lane].other) {
      open[lane].other = end;
    }
  }
  const int done = row == spans->count;
  for (int32_t lane = 0; done && lane < lanes; lane++) take_alone(&open[lane], INT64_MAX, beside);
  free(open);
  return done ? row : REFUSED;
}
