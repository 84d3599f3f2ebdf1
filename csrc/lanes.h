// Rows by lane (a thread), and in the order of their times.
#ifndef FLAMECORE_LANES_H
#define FLAMECORE_LANES_H

#include <stdint.h>

// Rows of each lane, in the order in which they are given: those of lane i from begin[i] on.
typedef struct {
  int64_t* begin;
  int32_t* rows;
} Lanes;

// Rows whose lane is not one of `lanes` are left out; without `lane` all are of lane 0. Returns 0
// where there is no memory.
int sort_by_lane(const int32_t* lane, int64_t count, int32_t lanes, Lanes* sorted);
void free_lanes(Lanes* lanes);

// What rows are sorted by: ascending `key`, then descending `tie` (NULL: none), then as they are.
typedef struct {
  const int64_t* key;
  const int64_t* tie;
} Order;

// Sorts what is not sorted yet; most lanes are. `scratch` has room for as many rows.
void sort_rows(const Order* order, int32_t* rows, int64_t count, int32_t* scratch);

#endif
