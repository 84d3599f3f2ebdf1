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
