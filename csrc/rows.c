// Numbers rows of integers, and joins activities to calls, by hash tables of row numbers.
#include <stdlib.h>
#include <string.h>

#include "flamecore.h"

#define MOST_COLUMNS 32
#define MOST_PROBES 64  // a row, on average: beyond, somebody has chosen the ids

int32_t flamecore_abi(void) { return FLAMECORE_ABI; }

typedef struct {
  const void* const* columns;
  const int32_t* sizes;
  int32_t width;
  uint64_t seed;
} Rows;

static inline int64_t value_at(const void* column, int32_t size, int64_t row) {
  if (size == 8) return ((const int64_t*)column)[row];
  return size == 4 ? ((const int32_t*)column)[row] : ((const uint8_t*)column)[row];
}

static inline uint64_t hash_row(const Rows* rows, int64_t row) {
  uint64_t hash = rows->seed;
  for (int32_t i = 0; i < rows->width; i++)
    hash = mix((uint64_t)value_at(rows->columns[i], rows->sizes[i], row) ^ hash, rows->seed);
  return hash;
}

static inline int equal_rows(const Rows* rows, int64_t one, int64_t other) {
  for (int32_t i = 0; i < rows->width; i++) {
    const void* column = rows->columns[i];
    if (value_at(column, rows->sizes[i], one) != value_at(column, rows->sizes[i], other)) return 0;
  }
  return 1;
}

typedef struct {
  uint32_t hash;
  int32_t number;  // -1: free
} Slot;

static Slot* new_slots(uint64_t count) {
  Slot* slots = malloc(count * sizeof *slots);
  for (uint64_t i = 0; slots && i < count; i++) slots[i].number = -1;
  return slots;
}

static Slot* grow(const Rows* rows, Slot* old, uint64_t* mask, const int64_t* first, int64_t count) {
  const uint64_t size = 4 * (*mask + 1);
  free(old);
  Slot* slots = new_slots(size);
  for (int64_t i = 0; slots && i < count; i++) {
    const uint64_t hash = hash_row(rows, first[i]);
    uint64_t at = hash & (size - 1);
    while (slots[at].number >= 0) at = (at + 1) & (size - 1);
    slots[at] = (Slot){(uint32_t)(hash >> 32), (int32_t)i};
  }
  *mask = size - 1;
  return slots;
}

int64_t flamecore_number_rows(const void* const* columns, const int32_t* sizes, int32_t width,
                              int64_t count, int64_t limit, uint64_t seed, int32_t* number,
                              int64_t* first) {
  const Rows rows = {columns, sizes, width, seed};
  uint64_t mask = 1023;
  int64_t found = 0;
  if (count > INT32_MAX) return REFUSED;
  Slot* slots = new_slots(mask + 1);
  for (int64_t row = 0; slots && row < count; row++) {
    const uint64_t hash = hash_row(&rows, row);
    uint64_t at = hash & mask;
    const uint32_t high = (uint32_t)(hash >> 32);
    while (slots[at].number >= 0 &&
           !(slots[at].hash == high && equal_rows(&rows, first[slots[at].number], row)))
      at = (at + 1) & mask;
    if (slots[at].number < 0) {
      if (found == limit) {
        free(slots);
        return REFUSED;
      }
      first[found] = row;
      slots[at] = (Slot){high, (int32_t)found++};
      number[row] = (int32_t)(found - 1);
      if (2 * (uint64_t)found > mask) slots = grow(&rows, slots, &mask, first, found);
    } else {
      number[row] = slots[at].number;
    }
  }
  free(slots);
  return slots ? found : NO_MEMORY;
}

// Correlation ids ascend with time: what is near in time lies near in the table.
static inline uint64_t slot_of(int32_t process, int64_t correlation) {
  return (uint64_t)correlation + (uint64_t)process * 0x9E3779B97F4A7C15u;
}

static int fill(int32_t* table, uint64_t mask, const int32_t* process, const int64_t* correlation,
                int64_t calls) {
  int64_t probes = 0;
  for (int64_t row = 0; row < calls; row++) {
    if (process[row] < 0 || correlation[row] <= 0) continue;  // launches nothing
    uint64_t at = slot_of(process[row], correlation[row]) & mask;
    for (; table[at] >= 0; at = (at + 1) & mask) {
      const int32_t other = table[at];
      if (process[other] == process[row] && correlation[other] == correlation[row]) return 0;
      if (++probes > MOST_PROBES * (calls + 1)) return 0;
    }
    table[at] = (int32_t)row;
  }
  return 1;
}

int64_t flamecore_join(const int32_t* process, const int64_t* correlation, int64_t calls,
                       const int32_t* wanted_process, const int64_t* wanted_correlation,
                       int64_t activities, int64_t* call) {
  uint64_t size = 16;
  if (calls > INT32_MAX) return REFUSED;
  while (size < 2 * (uint64_t)calls) size *= 2;
  const uint64_t mask = size - 1;
  int32_t* table = malloc(size * sizeof *table);
  if (!table) return NO_MEMORY;
  memset(table, 0xFF, size * sizeof *table);
  int joined = fill(table, mask, process, correlation, calls);
  int64_t probes = 0;
  for (int64_t row = 0; joined && row < activities; row++) {
    const int32_t on = wanted_process[row];
    const int64_t id = wanted_correlation[row];
    call[row] = -1;
    if (on < 0 || id <= 0) continue;
    for (uint64_t at = slot_of(on, id) & mask; table[at] >= 0; at = (at + 1) & mask) {
      const int32_t found = table[at];
      if (process[found] == on && correlation[found] == id) {
        call[row] = found;
        break;
      }
      if (++probes > MOST_PROBES * (activities + 1)) {
        joined = 0;
        break;
      }
    }
  }
  free(table);
  return joined ? activities : REFUSED;
}
