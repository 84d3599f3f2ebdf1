#include "lanes.h"

#include <stdlib.h>
#include <string.h>

int sort_by_lane(const int32_t* lane, int64_t count, int32_t lanes, Lanes* sorted) {
  sorted->begin = calloc((size_t)lanes + 2, sizeof *sorted->begin);
  sorted->rows = malloc((size_t)(count + 1) * sizeof *sorted->rows);
  if (!sorted->begin || !sorted->rows) return 0;
  if (!lane) {
    for (int64_t i = 0; i < count; i++) sorted->rows[i] = (int32_t)i;
    sorted->begin[1] = count;
    return 1;
  }
  int64_t* next = sorted->begin + 1;  // that of lane i ends as the beginning of lane i + 1
  for (int64_t i = 0; i < count; i++)
    if (lane[i] >= 0 && lane[i] < lanes) next[lane[i] + 1]++;
  for (int32_t i = 0; i < lanes; i++) next[i + 1] += next[i];
  for (int64_t i = 0; i < count; i++)
    if (lane[i] >= 0 && lane[i] < lanes) sorted->rows[next[lane[i]]++] = (int32_t)i;
  return 1;
}

void free_lanes(Lanes* lanes) {
  free(lanes->begin);
  free(lanes->rows);
}

static inline int after(const Order* order, int32_t one, int32_t other) {
  if (order->key[one] != order->key[other]) return order->key[one] > order->key[other];
  return order->tie && order->tie[one] < order->tie[other];
}

static void merge(const Order* order, int32_t* rows, int64_t half, int64_t count, int32_t* scratch) {
  memcpy(scratch, rows, (size_t)half * sizeof *rows);
  int64_t left = 0, right = half, at = 0;
  while (left < half && right < count)
    rows[at++] = after(order, scratch[left], rows[right]) ? rows[right++] : scratch[left++];
  while (left < half) rows[at++] = scratch[left++];
}

void sort_rows(const Order* order, int32_t* rows, int64_t count, int32_t* scratch) {
  int64_t at = 1;
  while (at < count && !after(order, rows[at - 1], rows[at])) at++;
  if (at >= count) return;
  const int64_t half = count / 2;
  sort_rows(order, rows, half, scratch);
  sort_rows(order, rows + half, count - half, scratch);
  merge(order, rows, half, count, scratch);
}
