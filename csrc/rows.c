// Numbers rows of integers, and joins activities to calls, by hash tables of row numbers.
#include <stdlib.h>
#include <string.h>

#include "flamecore.h"

#define FIRST_SLOTS 1024
#define MOST_PROBES 64  // a row, on average: beyond, somebody has chosen the ids

int32_t flamecore_abi(void) { return FLAMECORE_ABI; }

typedef struct {
  uint32_t hash;
  int32_t number;  // -1: free
} Slot;

struct Rows {
  uint64_t keys[MOST_COLUMNS + 1];
  int32_t width;
  Slot* slots;
  uint64_t mask;
  int64_t* values;  // of the different rows, one behind the other
  int64_t count, room;
};

static Slot* new_slots(uint64_t count) {
  Slot* slots = malloc(count * sizeof *slots);
  for (uint64_t i = 0; slots && i < count; i++) slots[i].number = -1;
  return slots;
}

Rows* flamecore_rows_new(int32_t width, uint64_t seed) {
  Rows* rows = calloc(1, sizeof *rows);
  if (!rows || width < 1 || width > MOST_COLUMNS) {
    free(rows);
    return NULL;
  }
  make_keys(seed, width, rows->keys);
  rows->width = width;
  rows->mask = FIRST_SLOTS - 1;
  rows->slots = new_slots(FIRST_SLOTS);
  if (rows->slots) return rows;
  free(rows);
  return NULL;
}

void flamecore_rows_free(Rows* rows) {
  free(rows->slots);
  free(rows->values);
  free(rows);
}

int64_t flamecore_rows_count(const Rows* rows) { return rows->count; }
const int64_t* flamecore_rows_values(const Rows* rows) { return rows->values; }

static inline uint64_t hash_row(const Rows* rows, const int64_t* row) {
  return hash_integers(row, rows->width, rows->keys);
}

static inline size_t row_size(const Rows* rows) { return (size_t)rows->width * sizeof(int64_t); }

static inline int64_t* row_at(const Rows* rows, int64_t number) {
  return rows->values + number * rows->width;
}

static int make_slots(Rows* rows, uint64_t size) {
  Slot* slots = new_slots(size);
  if (!slots) return 0;
  for (int64_t i = 0; i < rows->count; i++) {
    const uint64_t hash = hash_row(rows, row_at(rows, i));
    uint64_t at = hash & (size - 1);
    while (slots[at].number >= 0) at = (at + 1) & (size - 1);
    slots[at] = (Slot){(uint32_t)(hash >> 32), (int32_t)i};
  }
  free(rows->slots);
  rows->slots = slots;
  rows->mask = size - 1;
  return 1;
}

static int32_t add_row(Rows* rows, const int64_t* row, uint64_t hash, uint64_t at) {
  if (rows->count == INT32_MAX) return REFUSED;
  if (rows->count == rows->room) {
    const int64_t room = rows->room ? 2 * rows->room : FIRST_SLOTS;
    int64_t* values = realloc(rows->values, (size_t)room * row_size(rows));
    if (!values) return NO_MEMORY;
    rows->values = values;
    rows->room = room;
  }
  memcpy(row_at(rows, rows->count), row, row_size(rows));
  rows->slots[at] = (Slot){(uint32_t)(hash >> 32), (int32_t)rows->count++};
  if (2 * (uint64_t)rows->count > rows->mask && !make_slots(rows, 4 * (rows->mask + 1))) return NO_MEMORY;
  return (int32_t)rows->count - 1;
}

int32_t number_row(Rows* rows, const int64_t* row) {
  const uint64_t hash = hash_row(rows, row);
  uint64_t at = hash & rows->mask;
  for (; rows->slots[at].number >= 0; at = (at + 1) & rows->mask) {
    const Slot slot = rows->slots[at];
    if (slot.hash == (uint32_t)(hash >> 32) &&
        are_same((const uint8_t*)row_at(rows, slot.number), (const uint8_t*)row,
                 (int64_t)row_size(rows)))
      return slot.number;
  }
  return add_row(rows, row, hash, at);
}

int64_t flamecore_rows_truncate(Rows* rows, int64_t count) {
  if (count >= rows->count) return 0;
  rows->count = count;
  return make_slots(rows, rows->mask + 1) ? 0 : NO_MEMORY;
}

int64_t flamecore_rows_number(Rows* rows, const void* const* columns, const int32_t* sizes,
                              int64_t count, int64_t limit, int32_t* number, int64_t* first) {
  int64_t row[MOST_COLUMNS];
  for (int64_t i = 0; i < count; i++) {
    for (int32_t k = 0; k < rows->width; k++) row[k] = value_at(columns[k], sizes[k], i);
    const int64_t known = rows->count;
    number[i] = number_row(rows, row);
    if (number[i] < 0) return number[i];
    if (rows->count > limit) return REFUSED;
    if (first && rows->count > known) first[known] = i;
  }
  return rows->count;
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
  while (size < (uint64_t)calls + (uint64_t)calls / 2) size *= 2;
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
