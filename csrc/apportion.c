// Splits whole numbers in proportion to weights, exact in sum.
#include <stdlib.h>

#include "flamecore.h"

#define FEW 1024  // comparisons that take less time than ordering

// A part of a unit: its row and, once what it has is rounded down, what that leaves.
typedef struct {
  int64_t row;
  uint64_t weight;
  uint64_t remainder;
} Part;

typedef struct {
  const void* unit;
  int32_t size;
  const int64_t* weights;
  int64_t count;
} Given;

// The largest remainder comes first, of equal ones the first row.
static int compare(const void* one, const void* other) {
  const Part *left = one, *right = other;
  if (left->remainder != right->remainder) return left->remainder < right->remainder ? 1 : -1;
  return left->row < right->row ? -1 : left->row > right->row;
}

// Adds 1 to those with the `left` largest remainders; there are more than that.
static void round_up(Part* parts, int64_t size, int64_t left, int64_t* shares) {
  if (left > FEW / size) {
    qsort(parts, (size_t)size, sizeof *parts, compare);
    for (int64_t i = 0; i < left; i++) shares[parts[i].row]++;
    return;
  }
  for (; left; left--) {
    Part* best = parts;
    for (int64_t i = 1; i < size; i++)
      if (parts[i].remainder > best->remainder) best = &parts[i];
    shares[best->row]++;
    best->remainder = 0;  // more than 0 are left as long as there is anything to round up
  }
}

static void split(uint64_t value, uint64_t whole, Part* parts, int64_t size, int64_t* shares) {
  const uint64_t each = value / whole, rest = value % whole;
  uint64_t left = rest;
  for (int64_t i = 0; i < size; i++) {
    uint64_t more, product;
    if (!__builtin_mul_overflow(rest, parts[i].weight, &product)) {
      more = product / whole;
      parts[i].remainder = product - more * whole;
    } else {
      const unsigned __int128 wide = (unsigned __int128)rest * parts[i].weight;
      more = (uint64_t)(wide / whole);
      parts[i].remainder = (uint64_t)(wide % whole);
    }
    shares[parts[i].row] = (int64_t)(each * parts[i].weight + more);
    left -= more;
  }
  if (left) round_up(parts, size, (int64_t)left, shares);
}

// Returns the sum of the weights of parts, or REFUSED where one is below 0, or it does not fit 63 bits.
static int64_t take_parts(const Given* given, const int32_t* rows, int64_t begin, int64_t size, Part* parts) {
  int64_t whole = 0;
  for (int64_t i = 0; i < size; i++) {
    const int64_t row = rows ? rows[begin + i] : begin + i, weight = given->weights[row];
    if (weight < 0 || __builtin_add_overflow(whole, weight, &whole)) return REFUSED;
    parts[i] = (Part){row, (uint64_t)weight, 0};
  }
  return whole;
}

// Sets where the parts of each unit begin. Returns how many the largest has, or REFUSED where there is
// no such unit; sets whether the parts are in order of their units.
static int64_t count_parts(const Given* given, int64_t units, int64_t* begin, int* in_order) {
  int64_t before = 0, most = 0;
  memset(begin, 0, ((size_t)units + 1) * sizeof *begin);
  for (int64_t row = 0; row < given->count; row++) {
    const int64_t unit = value_at(given->unit, given->size, row);
    if (unit < 0 || unit >= units) return REFUSED;
    *in_order &= unit >= before;
    before = unit;
    begin[unit + 1]++;
  }
  for (int64_t unit = 0; unit < units; unit++) {
    if (begin[unit + 1] > most) most = begin[unit + 1];
    begin[unit + 1] += begin[unit];
  }
  return most;
}

// Puts the rows in order of their units, which leaves `begin` at where the parts of each end.
static void order_rows(const Given* given, int64_t* begin, int32_t* rows) {
  for (int64_t row = 0; row < given->count; row++)
    rows[begin[value_at(given->unit, given->size, row)]++] = (int32_t)row;
}

static int64_t split_all(const Given* given, const int64_t* values, int64_t units, const int64_t* begin,
                         const int32_t* rows, Part* parts, int64_t* shares) {
  for (int64_t unit = 0; unit < units; unit++) {
    const int64_t low = rows ? (unit ? begin[unit - 1] : 0) : begin[unit];
    const int64_t size = (rows ? begin[unit] : begin[unit + 1]) - low;
    if (!size) continue;
    const int64_t whole = take_parts(given, rows, low, size, parts);
    if (whole < 0 || values[unit] < 0) return REFUSED;
    if (whole && size > 1) {
      split((uint64_t)values[unit], (uint64_t)whole, parts, size, shares);
      continue;
    }
    for (int64_t i = 0; i < size; i++) shares[parts[i].row] = i ? 0 : values[unit];
  }
  return given->count;
}

int64_t flamecore_apportion(const int64_t* values, int64_t units, const void* unit, int32_t size,
                            const int64_t* weights, int64_t count, int64_t* shares) {
  if (count > INT32_MAX) return REFUSED;
  const Given given = {unit, size, weights, count};
  int64_t* begin = malloc(((size_t)units + 1) * sizeof *begin);
  int in_order = 1;
  int64_t done = begin ? count_parts(&given, units, begin, &in_order) : NO_MEMORY;
  if (done >= 0) {
    Part* parts = malloc(((size_t)done + 1) * sizeof *parts);
    int32_t* rows = in_order ? NULL : malloc((size_t)count * sizeof *rows);
    if (rows) order_rows(&given, begin, rows);
    done = parts && (rows || in_order) ? split_all(&given, values, units, begin, rows, parts, shares)
                                       : NO_MEMORY;
    free(parts);
    free(rows);
  }
  free(begin);
  return done;
}
