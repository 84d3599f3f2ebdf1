// Shares of values, times beside others, and what began last: as by a look at all that there is.
#include "flamecore.h"
#include "input.h"

#define MOST 40
#define LANES 3
#define LONGEST 16

typedef struct {
  int64_t* values;
  int64_t* weights;
  int32_t* unit;
  int64_t units;
  int64_t count;
} Given;

static int64_t take_amount(Input* in) {
  const int64_t number = take_number(in);
  return number < 0 && below(in, 8) ? -(number + 1) : number;
}

static Given take_units(Input* in) {
  Given made = {.units = below(in, MOST), .count = below(in, 100)};
  made.values = memory(made.units, sizeof *made.values);
  made.weights = memory(made.count, sizeof *made.weights);
  made.unit = memory(made.count, sizeof *made.unit);
  for (int64_t unit = 0; unit < made.units; unit++) made.values[unit] = take_amount(in);
  const int in_order = (int)below(in, 2);
  for (int64_t i = 0; i < made.count; i++) {
    made.weights[i] = take_amount(in);
    made.unit[i] = in_order ? (i ? made.unit[i - 1] : 0) + !below(in, 4) : (int32_t)below(in, MOST) - !below(in, 200);
  }
  return made;
}

// Returns whether one of two parts of a unit, the earlier one, is to be rounded up before the other.
static int comes_first(uint64_t value, uint64_t whole, const int64_t* weights, int64_t one, int64_t other) {
  const unsigned __int128 left = (unsigned __int128)value * (uint64_t)weights[one] % whole;
  const unsigned __int128 right = (unsigned __int128)value * (uint64_t)weights[other] % whole;
  return left != right ? left > right : one < other;
}

static void check_unit(const Given* made, int64_t unit, const int64_t* shares) {
  int64_t weights[100], parts[100], size = 0;
  for (int64_t i = 0; i < made->count; i++) {
    if (made->unit[i] != unit) continue;
    require(made->weights[i] >= 0, "no weight is below 0");
    weights[size] = made->weights[i];
    parts[size++] = shares[i];
  }
  const uint64_t value = (uint64_t)made->values[unit];
  uint64_t whole = 0, sum = 0;
  for (int64_t i = 0; i < size; i++) {
    whole += (uint64_t)weights[i];
    sum += (uint64_t)parts[i];
  }
  if (!size) return;
  require(sum == value, "parts add up");
  if (!whole) require((uint64_t)parts[0] == value, "the first has all where nothing weighs anything");
  for (int64_t i = 0; whole && i < size; i++) {
    const uint64_t least = (uint64_t)((unsigned __int128)value * (uint64_t)weights[i] / whole);
    const uint64_t up = (uint64_t)parts[i] - least;
    require(up <= 1, "a part is its quota, rounded");
    for (int64_t k = 0; up && k < size; k++) {
      const unsigned __int128 quota = (unsigned __int128)value * (uint64_t)weights[k];
      if ((uint64_t)parts[k] == (uint64_t)(quota / whole))
        require(comes_first(value, whole, weights, i, k), "the largest remainders are rounded up");
    }
  }
}

static void check_shares(Input* in) {
  const Given made = take_units(in);
  int64_t* shares = memory(made.count, sizeof *shares);
  const int64_t done = flamecore_apportion(made.values, made.units, made.unit, sizeof *made.unit,
                                           made.weights, made.count, shares);
  require(done == made.count || done == REFUSED, "all is shared out, or refused");
  for (int64_t i = 0; done >= 0 && i < made.count; i++)
    require(made.unit[i] >= 0 && made.unit[i] < made.units, "each part is of a unit");
  for (int64_t unit = 0; done >= 0 && unit < made.units; unit++) check_unit(&made, unit, shares);
  free(shares);
  free(made.values);
  free(made.weights);
  free(made.unit);
}

typedef struct {
  int32_t* lane;
  int64_t* start;
  int64_t* end;
  int64_t count;
} Spans;

static int64_t time_beside(const Spans* spans, int64_t row) {
  int64_t found = 0;
  for (int64_t time = spans->start[row]; time < spans->end[row]; time++) {
    int open = 0;
    for (int64_t i = 0; i < spans->count && !open; i++)
      open = i != row && spans->lane[i] == spans->lane[row] && spans->start[i] <= time && time < spans->end[i];
    found += open;
  }
  return found;
}

static void check_beside(Input* in) {
  Spans made = {.count = below(in, MOST)};
  made.lane = memory(made.count, sizeof *made.lane);
  made.start = memory(made.count, sizeof *made.start);
  made.end = memory(made.count, sizeof *made.end);
  const int far = !below(in, 8);
  int64_t now = 0;
  for (int64_t i = 0; i < made.count; i++) {
    made.lane[i] = (int32_t)below(in, LANES + 1) - 1;
    now += below(in, 4);
    made.start[i] = far ? take_number(in) : now;
    made.end[i] = far ? take_number(in) : now + below(in, LONGEST);
  }
  int64_t* beside = memory(made.count, sizeof *beside);
  const LaneSpans spans = {made.count, made.lane, made.start, made.end};
  const int64_t done = flamecore_times_beside(&spans, LANES - (int32_t)below(in, 2), beside);
  require(done == made.count || done == REFUSED, "all is measured, or refused");
  for (int64_t i = 0; !far && done >= 0 && i < made.count; i++)
    require(beside[i] == (made.lane[i] < 0 ? 0 : time_beside(&made, i)), "the time beside others");
  free(beside);
  free(made.lane);
  free(made.start);
  free(made.end);
}

static void check_last_open(Input* in) {
  const int64_t count = below(in, MOST), moments = below(in, MOST);
  int32_t *lane = memory(count, sizeof *lane), *on = memory(moments, sizeof *on);
  int64_t *start = memory(count, sizeof *start), *end = memory(count, sizeof *end);
  int64_t* time = memory(moments, sizeof *time);
  int32_t* open = memory(moments, sizeof *open);
  for (int64_t i = 0; i < count; i++) {
    const int fresh = i && !below(in, 6);
    lane[i] = i ? lane[i - 1] + (fresh && lane[i - 1] + 1 < LANES) : 0;
    const int64_t before = i && lane[i] == lane[i - 1] ? start[i - 1] : 0;
    start[i] = before + below(in, 5);
    end[i] = below(in, 20) ? start[i] + below(in, 6) : take_number(in);
  }
  for (int64_t i = 0; i < moments; i++) {
    on[i] = (int32_t)below(in, LANES + 2) - 1;
    time[i] = take_number(in);
  }
  const Moments starts = {count, lane, start}, wanted = {moments, on, time};
  require(flamecore_last_open(&starts, end, &wanted, LANES, open) == moments, "all are looked for");
  for (int64_t i = 0; i < moments; i++) {
    int64_t last = -1;
    for (int64_t k = 0; k < count; k++)
      if (lane[k] == on[i] && start[k] <= time[i]) last = k;
    require(open[i] == (last >= 0 && end[last] >= time[i] ? last : -1), "the last that began, if open");
  }
  free(lane);
  free(on);
  free(start);
  free(end);
  free(time);
  free(open);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in = {data, size};
  switch (below(&in, 3)) {
    case 0: check_beside(&in); break;
    case 1: check_shares(&in); break;
    default: check_last_open(&in);
  }
  return 0;
}
