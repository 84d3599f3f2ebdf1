// Summarizes values by group. Percentiles are found without sorting: the values of a group are counted
// by bins, and only those in the bin of a percentile are looked at again.
#include <stdlib.h>

#include "flamecore.h"

#define FEW 24        // values that are sorted sooner than counted
#define MOST_PERCENTS 8
#define TURNS 4
#define FEW_GROUPS 64  // of more, values that follow each other are seldom of the same
#define STEPS 4       // bits of a value, below its highest one, that tell its bin
#define BINS ((65 - STEPS) << STEPS)
#define MOST_EXACT (1 << 16)  // bins of one value each: they stay in the cache

typedef struct {
  int64_t* values;
  int64_t* spare;  // room for as many
  int64_t count;
  int64_t low;
  uint64_t range;  // of the largest above the lowest
} Part;

// Ranks that are wanted of a part, which ascend, and where to put the values that have them.
typedef struct {
  int32_t count;
  int64_t rank[MOST_PERCENTS];
  int64_t* out[MOST_PERCENTS];
} Wanted;

typedef struct {
  uint32_t counts[MOST_EXACT];
  uint8_t target[BINS];  // the place of a bin among those that are looked at again
} Bins;

static inline uint64_t above(int64_t value, int64_t low) { return (uint64_t)value - (uint64_t)low; }

// Returns the bin of a number, each of which is 2^STEPS times as narrow as its numbers are large.
static inline uint32_t bin_of(uint64_t number) {
  const int highest = 63 - __builtin_clzll(number | 1), shift = highest > STEPS ? highest - STEPS : 0;
  return (uint32_t)(((uint64_t)shift << STEPS) + (number >> shift));
}

static void measure(Part* part) {
  int64_t low = part->values[0], high = low;
  for (int64_t i = 1; i < part->count; i++) {
    const int64_t value = part->values[i];
    low = value < low ? value : low;
    high = value > high ? value : high;
  }
  part->low = low;
  part->range = above(high, low);
}

static void sort_few(const Part* part, const Wanted* wanted) {
  int64_t* values = part->values;
  for (int64_t i = 1; i < part->count; i++) {
    const int64_t value = values[i];
    int64_t place = i;
    for (; place && values[place - 1] > value; place--) values[place] = values[place - 1];
    values[place] = value;
  }
  for (int32_t k = 0; k < wanted->count; k++) *wanted->out[k] = values[wanted->rank[k]];
}

// Finds values by counting each by itself.
static void select_exactly(const Part* part, const Wanted* wanted, Bins* bins) {
  memset(bins->counts, 0, ((size_t)part->range + 1) * sizeof *bins->counts);
  for (int64_t i = 0; i < part->count; i++) bins->counts[above(part->values[i], part->low)]++;
  int64_t before = 0;
  uint64_t bin = 0;
  for (int32_t k = 0; k < wanted->count; k++) {
    while (before + bins->counts[bin] <= wanted->rank[k]) before += bins->counts[bin++];
    *wanted->out[k] = (int64_t)((uint64_t)part->low + bin);
  }
}

// Counts the values by bins, and notes in which of these each rank lies: `inner` are the ranks in the
// first, the second … of them. Returns how many bins these are.
static int32_t find_bins(const Part* part, const Wanted* wanted, Bins* bins, Part* parts, Wanted* inner) {
  const size_t used = bin_of(part->range) + 1;
  memset(bins->counts, 0, used * sizeof *bins->counts);
  memset(bins->target, MOST_PERCENTS, used);
  for (int64_t i = 0; i < part->count; i++) bins->counts[bin_of(above(part->values[i], part->low))]++;
  int64_t before = 0, begin = 0;
  uint32_t bin = 0;
  int32_t found = 0;
  for (int32_t k = 0; k < wanted->count; k++) {
    while (before + bins->counts[bin] <= wanted->rank[k]) before += bins->counts[bin++];
    if (bins->target[bin] == MOST_PERCENTS) {
      parts[found] = (Part){part->spare + begin, part->values + begin, bins->counts[bin], 0, 0};
      begin += bins->counts[bin];
      inner[found].count = 0;
      bins->target[bin] = (uint8_t)found++;
    }
    Wanted* of = &inner[found - 1];
    of->rank[of->count] = wanted->rank[k] - before;
    of->out[of->count++] = wanted->out[k];
  }
  return found;
}

// Copies the values of the bins that are looked at again to their parts.
static void gather(const Part* part, const Bins* bins, const Part* parts, int32_t found) {
  int64_t* next[MOST_PERCENTS + 1];
  int64_t ignored;
  for (int32_t i = 0; i <= MOST_PERCENTS; i++) next[i] = i < found ? parts[i].values : &ignored;
  for (int64_t i = 0; i < part->count; i++) {
    const int64_t value = part->values[i];
    const uint8_t target = bins->target[bin_of(above(value, part->low))];
    *next[target] = value;
    next[target] += target < MOST_PERCENTS;
  }
}

// Finds the values that have the ranks wanted; those of the part do not stay where they are.
static void select_values(Part* part, const Wanted* wanted, Bins* bins) {
  if (part->count <= FEW) {
    sort_few(part, wanted);
    return;
  }
  if (part->range < MOST_EXACT && part->range <= (uint64_t)part->count) {
    select_exactly(part, wanted, bins);
    return;
  }
  Part parts[MOST_PERCENTS];
  Wanted inner[MOST_PERCENTS];
  const int32_t found = find_bins(part, wanted, bins, parts, inner);
  gather(part, bins, parts, found);
  for (int32_t i = 0; i < found; i++) {
    measure(&parts[i]);
    select_values(&parts[i], &inner[i], bins);
  }
}

// Groups of values: `next` is where the next value of each goes, in each of its turns. A value waits for
// the one before of the same group and turn, which is long ago where there are several.
typedef struct {
  const void* of;
  int32_t size;
  int64_t count;
  int32_t turns;
  uint32_t* next;
} Groups;

static inline uint32_t* next_of(const Groups* groups, int64_t of, int64_t row) {
  return groups->next + of * groups->turns + (row & (groups->turns - 1));
}

// Counts the values of each group. Returns 0 where one is of no group.
static int count_groups(const Groups* groups, int64_t values) {
  for (int64_t i = 0; i < values; i++) {
    const int64_t of = value_at(groups->of, groups->size, i);
    if (of < 0 || of >= groups->count) return 0;
    ++*next_of(groups, of, i);
  }
  return 1;
}

// Turns the counts of each group into the places where its values begin.
static void find_places(const Groups* groups, int64_t* counts) {
  uint32_t begin = 0;
  for (int64_t of = 0; of < groups->count; of++) {
    const uint32_t first = begin;
    for (int32_t turn = 0; turn < groups->turns; turn++) {
      uint32_t* next = next_of(groups, of, turn);
      const uint32_t number = *next;
      *next = begin;
      begin += number;
    }
    counts[of] = begin - first;
  }
}

// Puts the values of each group together, group behind group, and counts them.
static int64_t put_together(Groups* groups, const int64_t* values, int64_t count, int64_t* counts,
                            int64_t* kept) {
  groups->turns = groups->count <= FEW_GROUPS ? TURNS : 1;
  groups->next = calloc((size_t)(groups->count * groups->turns + 1), sizeof *groups->next);
  if (!groups->next) return NO_MEMORY;
  const int known = count_groups(groups, count);
  if (known) {
    find_places(groups, counts);
    for (int64_t i = 0; i < count; i++)
      kept[(*next_of(groups, value_at(groups->of, groups->size, i), i))++] = values[i];
  }
  free(groups->next);
  return known ? count : REFUSED;
}

static int64_t sum_of(const Part* part) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < part->count; i++) sum += (uint64_t)part->values[i];
  return (int64_t)sum;
}

// What is told of groups, a row of each: how many values, their sum, the least, the percentiles, and
// the largest.
typedef struct {
  int64_t* rows;
  int64_t groups;
  const int32_t* percents;
  int32_t wanted;
} Summaries;

static int64_t* at(const Summaries* of, int64_t row, int64_t group) {
  return of->rows + row * of->groups + group;
}

// Summarizes the values of a group that has some.
static void summarize(const Summaries* out, int64_t group, Part* part, Bins* bins) {
  Wanted wanted = {.count = out->wanted};
  for (int32_t k = 0; k < out->wanted; k++) {
    wanted.rank[k] = (part->count * out->percents[k] + 99) / 100 - 1;
    wanted.out[k] = at(out, 3 + k, group);
  }
  measure(part);
  *at(out, 1, group) = sum_of(part);
  *at(out, 2, group) = part->low;
  *at(out, 3 + out->wanted, group) = (int64_t)((uint64_t)part->low + part->range);
  select_values(part, &wanted, bins);
}

static int are_percents(const int32_t* percents, int32_t wanted) {
  int32_t before = 1;
  for (int32_t k = 0; k < wanted; k++) {
    if (percents[k] < before || percents[k] > 100) return 0;
    before = percents[k];
  }
  return 0 <= wanted && wanted <= MOST_PERCENTS;
}

// Summarizes the groups, whose values are `kept` together.
static int64_t summarize_all(const Summaries* out, int64_t* kept, int64_t count) {
  int64_t most = 0;
  for (int64_t of = 0; of < out->groups; of++) most = *at(out, 0, of) > most ? *at(out, 0, of) : most;
  Bins* bins = malloc(sizeof *bins);
  int64_t* spare = malloc((size_t)most * sizeof *spare);
  if (bins && spare) {
    for (int64_t of = 0; of < out->groups; of++) {
      Part part = {kept, spare, *at(out, 0, of), 0, 0};
      if (part.count) summarize(out, of, &part, bins);
      kept += part.count;
    }
  }
  const int64_t done = bins && spare ? count : NO_MEMORY;
  free(bins);
  free(spare);
  return done;
}

int64_t flamecore_summarize_groups(const void* group, int32_t size, const int64_t* values,
                                   int64_t count, int64_t groups, const int32_t* percents,
                                   int32_t wanted, int64_t* rows) {
  if (groups < 0 || count > UINT32_MAX || !are_percents(percents, wanted)) return REFUSED;
  const Summaries out = {rows, groups, percents, wanted};
  memset(rows, 0, (size_t)(groups * (4 + wanted)) * sizeof *rows);
  if (!count) return 0;
  int64_t* kept = malloc((size_t)count * sizeof *kept);
  if (!kept) return NO_MEMORY;
  Groups of = {group, size, groups, 1, NULL};
  int64_t done = put_together(&of, values, count, rows, kept);
  if (done >= 0) done = summarize_all(&out, kept, count);
  free(kept);
  return done;
}
