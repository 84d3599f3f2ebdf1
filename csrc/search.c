// Finds where moments stand among moments in order. What is looked for mostly lies near what was
// looked for just before on its lane: from there the steps double until they are too long.
#include <stdlib.h>

#include "flamecore.h"

typedef struct {
  const int64_t* time;
  int64_t low, high;  // of the lane
} Lane;

static inline int stands_before(int64_t one, int64_t time, int32_t after) {
  return one < time || (after && one == time);
}

// Returns the first place from `low` on, and before `high`, that does not stand before `time`.
static int64_t bisect(const int64_t* times, int64_t low, int64_t high, int64_t time, int32_t after) {
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (stands_before(times[middle], time, after)) low = middle + 1;
    else high = middle;
  }
  return low;
}

static int64_t search_from(const Lane* lane, int64_t at, int64_t time, int32_t after) {
  int64_t low = lane->low, high = lane->high;
  if (at < high && stands_before(lane->time[at], time, after)) {
    low = at + 1;
    for (int64_t step = 1; step < lane->high - low; step *= 2) {
      if (!stands_before(lane->time[low + step], time, after)) {
        high = low + step;
        break;
      }
      low += step + 1;
    }
  } else {
    high = at;
    for (int64_t step = 1; step < high - lane->low; step *= 2) {
      if (stands_before(lane->time[high - step], time, after)) {
        low = high - step + 1;
        break;
      }
      high -= step;
    }
  }
  return bisect(lane->time, low, high, time, after);
}

static int64_t end_of_lane(const int32_t* lanes, int64_t count, int64_t low, int32_t lane) {
  int64_t high = count;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (lanes[middle] <= lane) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Where each lane of the sorted moments begins, and where on it was looked last.
typedef struct {
  const Moments* sorted;
  int64_t* begin;
  int64_t* at;
  int32_t lanes;
  int32_t after;
} Search;

static int begin_search(Search* search) {
  const Moments* sorted = search->sorted;
  search->begin = malloc(((size_t)search->lanes * 2 + 1) * sizeof *search->begin);
  if (!search->begin) return 0;
  search->at = search->begin + search->lanes + 1;
  search->begin[0] = 0;
  for (int32_t lane = 0; lane < search->lanes; lane++) {
    search->at[lane] = search->begin[lane];
    search->begin[lane + 1] = sorted->lane ? end_of_lane(sorted->lane, sorted->count, search->begin[lane], lane)
                                           : sorted->count;
  }
  return 1;
}

// Returns the place on a lane that there is.
static inline int64_t search_lane(const Search* search, int32_t lane, int64_t time) {
  const Lane of = {search->sorted->time, search->begin[lane], search->begin[lane + 1]};
  return search->at[lane] = search_from(&of, search->at[lane], time, search->after);
}

int64_t flamecore_search(const Moments* sorted, const Moments* wanted, int32_t lanes, int32_t after,
                         int64_t* place) {
  Search search = {sorted, NULL, NULL, lanes, after};
  if (lanes < 1) return REFUSED;
  if (!begin_search(&search)) return NO_MEMORY;
  for (int64_t i = 0; i < wanted->count; i++) {
    const int32_t lane = wanted->lane ? wanted->lane[i] : 0;
    if (lane < 0 || lane >= lanes)
      place[i] = lane < 0 ? 0 : sorted->count;
    else
      place[i] = search_lane(&search, lane, wanted->time[i]);
  }
  free(search.begin);
  return wanted->count;
}

int64_t flamecore_last_open(const Moments* starts, const int64_t* ends, const Moments* wanted,
                            int32_t lanes, int32_t* open) {
  Search search = {starts, NULL, NULL, lanes, 1};
  if (lanes < 1 || starts->count > INT32_MAX) return REFUSED;
  if (!begin_search(&search)) return NO_MEMORY;
  for (int64_t i = 0; i < wanted->count; i++) {
    const int32_t lane = wanted->lane[i];
    const int64_t last = lane < 0 || lane >= lanes ? -1 : search_lane(&search, lane, wanted->time[i]) - 1;
    open[i] = last >= 0 && last >= search.begin[lane] && ends[last] >= wanted->time[i] ? (int32_t)last : -1;
  }
  free(search.begin);
  return wanted->count;
}
