// The functions of libflamecore, which flame/core/compiled calls: each does what numpy does beside
// it, row by row. Every input may be hostile: what is odd is refused, and numpy or SQLite decides.
//
// A function that returns a count returns one of these instead where there is none.
#ifndef FLAMECORE_H
#define FLAMECORE_H

#include <stdint.h>
#include <string.h>

#define FLAMECORE_ABI 10  // _ABI of flame/core/compiled/library.py: raise both together

#define REFUSED (-1)    // for the other implementation to do
#define NO_MEMORY (-2)

#define API __attribute__((visibility("default")))

API int32_t flamecore_abi(void);

// Texts and the numbers under which they first came.
typedef struct Texts Texts;

// `seed` keeps a file from choosing texts that collide. Where `kept` is not null, texts are the same
// that differ only in the running numbers of PyTorch's emit_nvtx (", seq = 5", ", op_id = 871",
// ", input_op_ids = [(867,0)]"), unless they begin with one of its strings; an empty one ends these.
API Texts* flamecore_texts_new(uint64_t seed, const char* kept);
API void flamecore_texts_free(Texts* texts);
API int64_t flamecore_texts_count(const Texts* texts);
// Sets the place of text `number` (0 to count - 1) and returns its size.
API int64_t flamecore_texts_get(const Texts* texts, int64_t number, const uint8_t** place);
// Returns the number of the text of `size` bytes, new or known.
API int32_t flamecore_texts_number(Texts* texts, const uint8_t* text, int64_t size);

// Rows of `width` integers, and the numbers under which they first came.
typedef struct Rows Rows;

API Rows* flamecore_rows_new(int32_t width, uint64_t seed);
API void flamecore_rows_free(Rows* rows);
API int64_t flamecore_rows_count(const Rows* rows);
API const int64_t* flamecore_rows_values(const Rows* rows);  // one row behind the other
// Numbers `count` rows of columns of integers of `sizes` bytes (1, 4, 8). Where `first` is not null,
// first[n] becomes the first of them that is numbered n. Returns how many different ones are known
// now; refuses beyond `limit`.
API int64_t flamecore_rows_number(Rows* rows, const void* const* columns, const int32_t* sizes,
                                  int64_t count, int64_t limit, int32_t* number, int64_t* first);
// Forgets all numbers from `count` on. Returns 0 or NO_MEMORY.
API int64_t flamecore_rows_truncate(Rows* rows, int64_t count);
// Returns the number of one row, new or known.
int32_t number_row(Rows* rows, const int64_t* row);

// How a wanted column is given: in a column of its own, or as one of the integers of a row's key.
enum { INTEGER = 0, ROWID = 1, KEY_INTEGER = 2, KEY_TEXT = 3, KEY_FILLED = 4 };

#define MOST_COLUMNS 32

typedef struct {
  int32_t place;  // in a row, of those stored; ascending over the columns wanted
  int32_t kind;
  int32_t slot;   // in the key
  int64_t* out;   // of INTEGER and ROWID: a value a row
  Texts* texts;   // of KEY_TEXT: the key has its number
} WantedColumn;

// Some columns of a row together, of which it has a number. KEY_FILLED sets its slot to 1 where
// there is a value.
typedef struct {
  Rows* rows;               // NULL: there is no key
  int32_t width;
  const int64_t* absent;    // the key of a row that has nothing
  int32_t* number;          // of each row
} RowKey;

// `count` leaf pages of an SQLite table, one behind the other, followed by 8 bytes that may be read.
typedef struct {
  const uint8_t* bytes;
  int64_t count;
  int64_t page_size;
  int64_t usable;
} Pages;

// Decodes the rows on `pages`; an integer that is NULL is given as `null`. Returns how many there
// are, at most `room`.
API int64_t flamecore_decode(const Pages* pages, const WantedColumn* columns, int32_t wanted,
                             const RowKey* key, int64_t null, int64_t room);

// Finds the row of the call with the process and correlation id of each activity, -1 for none.
// Refuses where two calls have the same.
API int64_t flamecore_join(const int32_t* process, const int64_t* correlation, int64_t calls,
                           const int32_t* wanted_process, const int64_t* wanted_correlation,
                           int64_t activities, int64_t* call);

// The paths of intervals found open: node 0 is the empty path, parents come before their children.
typedef struct Paths Paths;

API Paths* flamecore_paths_new(uint64_t seed);
API void flamecore_paths_free(Paths* paths);
API int64_t flamecore_paths_count(const Paths* paths);
API const int32_t* flamecore_paths_parent(const Paths* paths);
API const int32_t* flamecore_paths_frame(const Paths* paths);

typedef struct {
  int64_t count;
  const int32_t* lane;  // -1: unknown
  const int64_t* start;
  const int64_t* end;  // both included; before the start: left out
  const int32_t* frame;
} Intervals;

typedef struct {
  int64_t count;
  const int32_t* lane;  // -1: unknown, nothing is open
  const int64_t* time;
} Moments;

// Finds the path of the intervals that are open at each moment. `refused[lane]` is set for lanes
// whose intervals cross or are nested deeper than `deepest`; the paths of its moments are empty.
API int64_t flamecore_open_at(Paths* paths, const Intervals* intervals, const Moments* moments,
                              int32_t lanes, int32_t deepest, int32_t* path, uint8_t* refused);

// Intervals of lanes (threads), end exclusive; those of lane -1 and empty ones are left out.
typedef struct {
  int64_t count;
  const int32_t* lane;
  const int64_t* start;
  const int64_t* end;
} LaneSpans;

// Pieces of intervals that nest, by (lane, start, depth); `source` is the interval of each, `parent`
// the piece around it, -1 without any.
typedef struct {
  int64_t room;
  int32_t* source;
  int64_t* start;
  int64_t* end;
  int32_t* parent;
  int32_t* depth;
} Nested;

// Cuts `spans` into pieces that nest: one that outlives one opened before it is cut where that ends.
// Earlier starts are outer, then later ends, then earlier rows. Returns how many pieces there are;
// refuses more than `out` has room for, and those nested in `deepest` others.
API int64_t flamecore_nest(const LaneSpans* spans, int32_t lanes, int32_t deepest, const Nested* out);

// Pieces with the frame of each, by (lane, depth, start).
typedef struct {
  int32_t* lane;
  int32_t* depth;
  int32_t* frame;
  int64_t* start;
  int64_t* end;
  int32_t* parent;
} MadePieces;

// Does as `flamecore_nest`, and puts the pieces of each lane in order of their depth; `frame` is of the
// intervals. Returns how many pieces there are, of which none is made where `out` has less `room`;
// refuses more than about two of each interval.
API int64_t flamecore_nest_by_depth(const LaneSpans* spans, const int32_t* frame, int32_t lanes,
                                    int32_t deepest, int64_t room, const MadePieces* out);

typedef struct {
  int64_t count;
  const int32_t* lane;
  const int32_t* depth;
  const int32_t* frame;
  const int64_t* start;
  const int64_t* end;
  const int32_t* parent;
} Pieces;

// Sums the time of pieces by what their frames are `shown` as (of each of the `frames`, one of these):
// in which no piece inside was open, and of those in no other that is shown as the same. Returns how
// many pieces there are; refuses what is not ordered as above, nor nested.
API int64_t flamecore_shown_times(const Pieces* pieces, int32_t deepest, const int32_t* shown,
                                  int32_t frames, int64_t* own, int64_t* outer);

// Launches: rows of some columns, by lane and time. What was launched ran from `start` on, for
// `length`.
typedef struct {
  int64_t count;
  const int64_t* row;
  const int32_t* lane;
  const int64_t* time;
  const int64_t* start;
  const int64_t* length;
} Launches;

// What was launched in each piece: from `low` to before `high`; when the first of it began and the
// last ended.
typedef struct {
  int32_t* low;
  int32_t* high;
  int64_t* first;
  int64_t* last;
} LaunchedIn;

// Finds what was launched in each piece, from its start to its end, both included. Returns how many
// pieces there are; refuses what is not in order.
API int64_t flamecore_launched(const Pieces* pieces, int32_t deepest, const Launches* launches,
                               const LaunchedIn* out);

// Finds, as above, how long it took from when the first began that was launched in each piece to when
// the last ended; -1 where there is none.
API int64_t flamecore_launched_spans(const Pieces* pieces, int32_t deepest,
                                     const Launches* launches, int64_t* span);

// When which of some intervals was the innermost, or the outermost, by lane and time: two for each at
// most.
typedef struct {
  int32_t* piece;
  int64_t* start;
  int64_t* end;
} Innermost;

// Cuts the time of `spans`, which nest, by which of them is the innermost; of equal ones that is the
// last. Returns how many pieces there are; refuses intervals that cross, or nest too deeply.
API int64_t flamecore_innermost(const LaneSpans* spans, int32_t lanes, int32_t deepest,
                                const Innermost* out);

// Leaves of each of `spans` what reaches beyond those before it on its lane, which are of earlier
// starts, then later ends, then earlier rows. Returns how many are left, one for each at most.
API int64_t flamecore_outermost(const LaneSpans* spans, int32_t lanes, const Innermost* out);

// Puts together what is open on each lane, whatever else of it is: stretches that touch are one, and
// of each `piece` is the first of `spans`. Where `lane` is NULL all are of lane 0. Returns how many
// there are, one for each at most.
API int64_t flamecore_union(const LaneSpans* spans, int32_t lanes, const Innermost* out);

// Of each lane when the first of its intervals began and the last of them ended, INT64_MAX and
// INT64_MIN of none, and how long any was open.
typedef struct {
  int64_t* first;
  int64_t* last;
  int64_t* busy;
} LaneTimes;

// Measures what is open on each lane; what is of lane -1 is left out. Returns how many intervals there
// are; refuses those of a lane that do not come in order of their starts.
API int64_t flamecore_lane_times(const LaneSpans* spans, int32_t lanes, const LaneTimes* out);

// Measures for how long each interval was open beside others of its lane; 0 of lane -1. Returns how
// many intervals there are; refuses those of a lane that do not come in order of their starts.
API int64_t flamecore_times_beside(const LaneSpans* spans, int32_t lanes, int64_t* beside);

// Splits the value of each unit in proportion to the weights of its parts; `unit`, an integer of `size`
// bytes, says whose each is. Each share is its quota rounded down, or up for the largest remainders, of
// equal ones the first; where all parts weigh nothing the first has all. Returns how many parts there
// are; refuses other units, values and weights below 0, and sums of weights that do not fit 63 bits.
API int64_t flamecore_apportion(const int64_t* values, int64_t units, const void* unit, int32_t size,
                                const int64_t* weights, int64_t count, int64_t* shares);

// Finds the stable order of `count` rows by columns of integers of `sizes` bytes (1, 4, 8), the last
// of which counts most. Returns `count`.
API int64_t flamecore_order(const void* const* columns, const int32_t* sizes, int32_t width,
                            int64_t count, int64_t* order);

// Numbers the runs of rows that are equal in all columns of integers of `sizes` bytes: `number` of each
// of `count` places in `order`, which are below `size`, is from 0 on. Returns how many runs there are.
API int64_t flamecore_number_runs(const void* const* columns, const int32_t* sizes, int32_t width,
                                  const int64_t* order, int64_t count, int64_t size,
                                  int32_t* number);

// Finds how many of the `sorted` moments, by lane and time, stand before each of those wanted, or do
// not stand `after` it; none for lane -1. Those of lanes that are not below `lanes` stand after all
// others, and none of `sorted` is of one. Where `lane` is NULL all are of lane 0.
API int64_t flamecore_search(const Moments* sorted, const Moments* wanted, int32_t lanes,
                             int32_t after, int64_t* place);

// Finds which of some intervals, by lane and start, is open at each moment wanted, both ends included: of
// those of its lane that have begun the last one, if that has not ended; -1 of none.
API int64_t flamecore_last_open(const Moments* starts, const int64_t* ends, const Moments* wanted,
                                int32_t lanes, int32_t* open);

// Orders `count` values by their groups, of integers of `size` bytes below `groups`, and by
// themselves. Counts those of each group. Returns `count`; refuses others, and values that differ too
// much.
API int64_t flamecore_order_groups(const void* group, int32_t size, const int64_t* values,
                                   int64_t count, int64_t groups, int64_t* ordered, int64_t* counts);

// Adds up the values of each group, of integers of `size` bytes below `groups`; what does not fit 64
// bits wraps. Returns `count`; refuses other groups.
API int64_t flamecore_sum_groups(const void* group, int32_t size, const int64_t* values,
                                 int64_t count, int64_t groups, int64_t* sums);

// Counts and adds up the values of each group, of integers of `size` bytes below `groups`, that are
// above the limit of the group; sums that do not fit 64 bits wrap. Returns `count`; refuses other groups.
API int64_t flamecore_sum_above(const void* group, int32_t size, const int64_t* values,
                                int64_t count, int64_t groups, const int64_t* limits,
                                int64_t* counts, int64_t* sums);

// Finds the row of each group, of integers of `size` bytes below `groups`, with the least key, of equal
// ones the least of the `ties`, of equal ones the first, or the `last`; -1 of no rows. Returns `count`;
// refuses other groups.
API int64_t flamecore_first_of_groups(const void* group, int32_t size, const int64_t* keys,
                                      const int64_t* ties, int64_t count, int64_t groups, int32_t last,
                                      int64_t* row);

// Finds where in the `order` of each of some rows of `size` values, of which in each of the `draws` so
// many are drawn, half of those are reached: `times` are how often each value is, `draws` numbers of
// `width` bytes a value, and `place` becomes how many come before, as wide. Returns how many rows there
// are; refuses what is no order, and values of which there are more than such numbers.
API int64_t flamecore_drawn_places(const void* times, int32_t width, const int64_t* order,
                                   int64_t rows, int64_t size, int64_t draws, void* place);

// Summarizes the values of each group, of integers of `size` bytes below `groups`: `rows` becomes a row
// of `groups` numbers for how many it has, their sum, the least, for each of the `percents`,
// which ascend, the least that at least so many percent do not exceed, and the largest; 0 of no values.
// Sums that do not fit 64 bits wrap. Returns `count`; refuses other groups.
API int64_t flamecore_summarize_groups(const void* group, int32_t size, const int64_t* values,
                                       int64_t count, int64_t groups, const int32_t* percents,
                                       int32_t wanted, int64_t* rows);

// Returns a value of a column of integers of `size` bytes: 1 (unsigned), 4 or 8.
static inline int64_t value_at(const void* column, int32_t size, int64_t row) {
  if (size == 8) return ((const int64_t*)column)[row];
  return size == 4 ? ((const int32_t*)column)[row] : ((const uint8_t*)column)[row];
}

// Mixes two words, neither of which a file may know: where one is 0, the other does not count.
static inline uint64_t mix(uint64_t one, uint64_t other) {
  const __uint128_t product = (__uint128_t)one * other;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t word_at(const uint8_t* at, int64_t size) {
  uint64_t word = 0;
  memcpy(&word, at, (size_t)(size < 8 ? size : 8));
  return word;
}

// Returns whether bytes are the same; fewer than the C library needs to be quicker.
static inline int are_same(const uint8_t* one, const uint8_t* other, int64_t size) {
  if (size < 8) return !memcmp(one, other, (size_t)size);
  for (int64_t at = 0; at < size - 8; at += 8)
    if (word_at(one + at, 8) != word_at(other + at, 8)) return 0;
  return word_at(one + size - 8, 8) == word_at(other + size - 8, 8);
}

// Hashes bytes so that it takes the seed to find some that collide.
static inline uint64_t hash_bytes(const uint8_t* at, int64_t size, uint64_t seed) {
  uint64_t hash = mix((uint64_t)size ^ seed, 0x9E3779B97F4A7C15u), first = 0, last = 0;
  for (; size > 16; size -= 16, at += 16)
    hash = mix(word_at(at, 8) ^ seed, word_at(at + 8, 8) ^ hash);
  if (size >= 8) {
    first = word_at(at, 8);
    last = word_at(at + size - 8, 8);
  } else if (size >= 4) {
    uint32_t low, high;
    memcpy(&low, at, 4);
    memcpy(&high, at + size - 4, 4);
    first = low;
    last = high;
  } else if (size) {
    first = (uint64_t)at[0] << 16 | (uint64_t)at[size / 2] << 8 | at[size - 1];
  }
  return mix(mix(first ^ seed, last ^ hash) ^ seed, 0x9E3779B97F4A7C15u);
}

// Makes the `count` + 1 keys by which that many integers are hashed.
static inline void make_keys(uint64_t seed, int32_t count, uint64_t* keys) {
  for (uint64_t k = 0; k <= (uint64_t)count; k++)
    keys[k] = mix(seed ^ (k + 1) * 0xA0761D6478BD642Fu, seed ^ 0xE7037ED1A0B428DBu);
}

// Hashes integers as `hash_bytes` would: two by two, none of which waits for those before.
static inline uint64_t hash_integers(const int64_t* at, int32_t count, const uint64_t* keys) {
  uint64_t sum = 0;
  int32_t k = 0;
  for (; k + 1 < count; k += 2) sum += mix((uint64_t)at[k] ^ keys[k], (uint64_t)at[k + 1] ^ keys[k + 1]);
  if (k < count) sum += mix((uint64_t)at[k] ^ keys[k], keys[k + 1]);
  return mix(sum ^ keys[count], 0x9E3779B97F4A7C15u);
}

#endif
