// Orders rows by columns of integers: digit by digit, the last one first, in time linear in them.
// Orders and adds up values by their groups.
#include <stdlib.h>

#include "flamecore.h"

#define DIGIT 9  // bits: more places to write to than that cost more than another pass
#define DIGITS (64 / DIGIT + 1)
#define WORD 32
#define MOST_KEYS 32

// Rows in the lower half of each item, a word of their values in the upper one.
typedef struct {
  uint64_t* now;
  uint64_t* next;
  int64_t count;
} Items;

typedef struct {
  const void* values;
  int32_t size;
  int64_t low;
  uint64_t range;  // of the largest value above the lowest
  int ascends;     // row by row
} Column;

static Column measure(const void* values, int32_t size, int64_t count) {
  int64_t low = value_at(values, size, 0), high = low, before = low;
  int descents = 0;
  for (int64_t row = 1; row < count; row++) {
    const int64_t value = value_at(values, size, row);
    if (value < low) low = value;
    if (value > high) high = value;
    descents |= value < before;
    before = value;
  }
  return (Column){values, size, low, (uint64_t)high - (uint64_t)low, !descents};
}

// Returns whether the items are out of order.
static int set_words(const Items* items, const Column* column, int shift) {
  uint64_t before = 0;
  int unordered = 0;
  for (int64_t i = 0; i < items->count; i++) {
    const uint32_t row = (uint32_t)items->now[i];
    const uint64_t above = (uint64_t)value_at(column->values, column->size, row) - (uint64_t)column->low;
    const uint64_t word = above >> shift << WORD;
    unordered |= word < before;
    before = word;
    items->now[i] = word | row;
  }
  return unordered;
}

// Puts the items in order of a digit, of each of which there are as many as `place` says.
static void sort_by_digit(Items* items, int shift, uint64_t mask, int64_t* place) {
  int64_t begin = 0;
  for (uint64_t digit = 0; digit <= mask; digit++) {
    const int64_t count = place[digit];
    if (count == items->count) return;
    place[digit] = begin;
    begin += count;
  }
  for (int64_t i = 0; i < items->count; i++)
    items->next[place[items->now[i] >> shift & mask]++] = items->now[i];
  uint64_t* sorted = items->next;
  items->next = items->now;
  items->now = sorted;
}

static int bits_of(uint64_t range) {
  int bits = 0;
  for (; range; range >>= 1) bits++;
  return bits;
}

static void sort_by_bits(Items* items, int from, int bits) {
  const int digits = (bits + DIGIT - 1) / DIGIT, each = digits ? (bits + digits - 1) / digits : 0;
  const uint64_t mask = ((uint64_t)1 << each) - 1;
  int64_t place[DIGITS][1 << DIGIT] = {{0}};
  for (int64_t i = 0; i < items->count; i++)
    for (int digit = 0; digit < digits; digit++)
      place[digit][items->now[i] >> (from + digit * each) & mask]++;
  for (int digit = 0; digit < digits; digit++)
    sort_by_digit(items, from + digit * each, mask, place[digit]);
}

static void sort_by_column(Items* items, const Column* column) {
  const int all = bits_of(column->range);
  for (int word = 0; word < all; word += WORD)
    if (set_words(items, column, word)) sort_by_bits(items, WORD, all - word < WORD ? all - word : WORD);
}

// Returns how many bits the columns and a row have together.
static int bits_of_rows(const Column* columns, int32_t width, int64_t count) {
  int bits = bits_of((uint64_t)count - 1);
  for (int32_t k = 0; k < width && bits <= 64; k++) bits += bits_of(columns[k].range);
  return bits;
}

// Puts a column above the `shift` bits of the items that are set. Returns whether they are out of
// order.
static int add_column(const Items* items, const Column* column, int shift) {
  uint64_t before = 0;
  int unordered = 0;
  for (int64_t i = 0; i < items->count; i++) {
    const uint64_t above = (uint64_t)value_at(column->values, column->size, i) - (uint64_t)column->low;
    items->now[i] |= above << shift;
    unordered |= items->now[i] < before;
    before = items->now[i];
  }
  return unordered;
}

// Moves each item before those that are larger, unless they are so many in all that sorting by digits
// takes less time. Returns whether the items are in order.
static int sort_nearly_sorted(const Items* items) {
  int64_t moves = items->count;
  for (int64_t i = 1; i < items->count; i++) {
    const uint64_t item = items->now[i];
    int64_t place = i;
    for (; place && items->now[place - 1] > item && moves; place--, moves--)
      items->now[place] = items->now[place - 1];
    items->now[place] = item;
    if (!moves) return 0;
  }
  return 1;
}

// Orders the items by bits above the `row`, of which the `top` ones are of a column that counts most.
// Activities come by time: those of each thread, as it launched them, are in order, or nearly.
static void sort_lanes(Items* items, int row, int bits, int top) {
  if (top <= DIGIT && top < bits - row) {
    sort_by_bits(items, bits - top, top);
    if (sort_nearly_sorted(items)) return;
  }
  sort_by_bits(items, row, bits - row);
}

// Orders rows by all columns at once, which fit into an item with the row.
static void sort_together(Items* items, const Column* columns, int32_t width, int bits) {
  const int row = bits_of((uint64_t)items->count - 1);
  int shift = row, unordered = 0, top = 0;
  for (int32_t k = 0; k < width; k++) {
    if (!columns[k].range) continue;
    unordered = add_column(items, &columns[k], shift);
    top = bits_of(columns[k].range);
    shift += top;
  }
  if (unordered) sort_lanes(items, row, bits, top);
}

int64_t flamecore_order(const void* const* columns, const int32_t* sizes, int32_t width,
                        int64_t count, int64_t* order) {
  if (count > INT32_MAX || width > MOST_KEYS) return REFUSED;
  if (!count) return 0;
  uint64_t *const out = (uint64_t*)order, *const scratch = malloc((size_t)count * sizeof *scratch);
  if (!scratch) return NO_MEMORY;
  Items items = {out, scratch, count};
  for (int64_t row = 0; row < count; row++) out[row] = (uint64_t)row;
  Column measured[MOST_KEYS];
  int32_t used = 0;
  for (int32_t k = 0; k < width; k++) {
    measured[used] = measure(columns[k], sizes[k], count);
    if (used || !measured[used].ascends) used++;  // those before are in the order of rows
  }
  const int bits = bits_of_rows(measured, used, count);
  uint64_t row_mask = UINT32_MAX;
  if (bits <= 64) {
    sort_together(&items, measured, used, bits);
    row_mask = ((uint64_t)1 << bits_of((uint64_t)count - 1)) - 1;
  } else {
    for (int32_t k = 0; k < used; k++) sort_by_column(&items, &measured[k]);
  }
  for (int64_t row = 0; row < count; row++) out[row] = items.now[row] & row_mask;
  free(scratch);
  return count;
}

static int are_equal(const void* const* columns, const int32_t* sizes, int32_t width, int64_t one,
                     int64_t other) {
  for (int32_t k = 0; k < width; k++)
    if (value_at(columns[k], sizes[k], one) != value_at(columns[k], sizes[k], other)) return 0;
  return 1;
}

int64_t flamecore_number_runs(const void* const* columns, const int32_t* sizes, int32_t width,
                              const int64_t* order, int64_t count, int64_t size,
                              int32_t* number) {
  int64_t run = -1;
  for (int64_t i = 0; i < count; i++) {
    const int64_t row = order[i];
    if (row < 0 || row >= size || run == INT32_MAX) return REFUSED;
    if (!i || !are_equal(columns, sizes, width, row, order[i - 1])) run++;
    number[row] = (int32_t)run;
  }
  return run + 1;
}

// Returns whether the items are out of order, -1 where a group is not below `groups`.
static int set_groups(Items* items, const void* group, int32_t size, int64_t groups,
                      const Column* values, int shift, int64_t* counts) {
  uint64_t before = 0;
  int unordered = 0;
  for (int64_t i = 0; i < items->count; i++) {
    const int64_t of = value_at(group, size, i);
    if (of < 0 || of >= groups) return -1;
    counts[of]++;
    const uint64_t above = (uint64_t)value_at(values->values, values->size, i) - (uint64_t)values->low;
    const uint64_t item = (shift < 64 ? (uint64_t)of << shift : 0) | above;
    unordered |= item < before;
    before = item;
    items->now[i] = item;
  }
  return unordered;
}

int64_t flamecore_order_groups(const void* group, int32_t size, const int64_t* values,
                               int64_t count, int64_t groups, int64_t* ordered, int64_t* counts) {
  memset(counts, 0, (size_t)groups * sizeof *counts);
  if (!count) return 0;
  if (groups < 1) return REFUSED;
  const Column column = measure(values, sizeof *values, count);
  const int shift = bits_of(column.range), bits = shift + bits_of((uint64_t)groups - 1);
  if (bits > 64) return REFUSED;
  uint64_t* scratch = malloc((size_t)count * sizeof *scratch);
  if (!scratch) return NO_MEMORY;
  Items items = {(uint64_t*)ordered, scratch, count};
  const int unordered = set_groups(&items, group, size, groups, &column, shift, counts);
  if (unordered > 0) sort_by_bits(&items, 0, bits);
  const uint64_t mask = shift < 64 ? ((uint64_t)1 << shift) - 1 : ~(uint64_t)0;
  for (int64_t i = 0; unordered >= 0 && i < count; i++)
    ordered[i] = (int64_t)((items.now[i] & mask) + (uint64_t)column.low);
  free(scratch);
  return unordered < 0 ? REFUSED : count;
}

int64_t flamecore_sum_groups(const void* group, int32_t size, const int64_t* values,
                             int64_t count, int64_t groups, int64_t* sums) {
  memset(sums, 0, (size_t)groups * sizeof *sums);
  for (int64_t i = 0; i < count; i++) {
    const int64_t of = value_at(group, size, i);
    if (of < 0 || of >= groups) return REFUSED;
    sums[of] = (int64_t)((uint64_t)sums[of] + (uint64_t)values[i]);
  }
  return count;
}

int64_t flamecore_sum_above(const void* group, int32_t size, const int64_t* values, int64_t count,
                            int64_t groups, const int64_t* limits, int64_t* counts, int64_t* sums) {
  memset(counts, 0, (size_t)groups * sizeof *counts);
  memset(sums, 0, (size_t)groups * sizeof *sums);
  for (int64_t i = 0; i < count; i++) {
    const int64_t of = value_at(group, size, i);
    if (of < 0 || of >= groups) return REFUSED;
    if (values[i] <= limits[of]) continue;
    counts[of]++;
    sums[of] = (int64_t)((uint64_t)sums[of] + (uint64_t)values[i]);
  }
  return count;
}
