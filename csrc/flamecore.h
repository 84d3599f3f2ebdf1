// The functions of libflamecore, which flame/core/compiled calls: each does what numpy does beside
// it, row by row. Every input may be hostile: what is odd is refused, and numpy or SQLite decides.
//
// A function that returns a count returns one of these instead where there is none.
#ifndef FLAMECORE_H
#define FLAMECORE_H

#include <stdint.h>

#define FLAMECORE_ABI 1  // LAST_ABI of flame/core/compiled/library.py: raise both together

#define REFUSED (-1)    // for the other implementation to do
#define NO_MEMORY (-2)

#define API __attribute__((visibility("default")))

API int32_t flamecore_abi(void);

// Texts and the numbers under which they first came.
typedef struct Texts Texts;

// `seed` keeps a file from choosing texts that collide. Where `keep` (bytes) is not null, texts are
// the same that differ only in a running number at their end (", op_id = 871"), unless they begin
// with one of its bytes.
API Texts* flamecore_texts_new(uint64_t seed, const char* keep);
API void flamecore_texts_free(Texts* texts);
API int64_t flamecore_texts_count(const Texts* texts);
// Sets the place of text `number` (0 to count - 1) and returns its size.
API int64_t flamecore_texts_get(const Texts* texts, int64_t number, const uint8_t** place);
// Returns the number of the text of `size` bytes, new or known.
int32_t number_text(Texts* texts, const uint8_t* text, int64_t size);

enum { INTEGER = 0, TEXT = 1, FILLED = 2, ROWID = 3 };

// A column that is wanted of a table.
typedef struct {
  int32_t place;  // in a row, of those stored; ascending over the columns wanted
  int32_t kind;
  void* out;      // INTEGER, ROWID: int64_t, `null` for NULL; TEXT: int32_t, -1 for NULL;
                  // FILLED: uint8_t, set to 1 where there is a value, else left alone
  Texts* texts;   // of TEXT
} WantedColumn;

// Decodes the rows on `count` leaf pages of an SQLite table, which lie one behind the other in
// `pages`, followed by 8 bytes that may be read. Returns how many there are, at most `room`.
API int64_t flamecore_decode(const uint8_t* pages, int64_t count, int64_t page_size, int64_t usable,
                             WantedColumn* columns, int32_t wanted, int64_t null, int64_t room);

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

// Finds the row of the call with the process and correlation id of each activity, -1 for none.
// Refuses where two calls have the same.
API int64_t flamecore_join(const int32_t* process, const int64_t* correlation, int64_t calls,
                           const int32_t* wanted_process, const int64_t* wanted_correlation,
                           int64_t activities, int64_t* call);

// The paths of intervals found open: node 0 is the empty path, parents come before their children.
typedef struct Paths Paths;

API Paths* flamecore_paths_new(void);
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

// Mixes 64 bits with a key so that it takes the key to find values that collide.
static inline uint64_t mix(uint64_t value, uint64_t key) {
  const __uint128_t product = (__uint128_t)(value ^ key) * 0x9E3779B97F4A7C15u;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

#endif
