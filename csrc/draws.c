// Finds the medians of values that are drawn again and again.
#include <stdlib.h>

#include "flamecore.h"

// Adds how often a value was drawn, from the least one on, until half of those of each draw are
// reached: `place` counts the values before. Returns whether some are not.
#define COUNT_PLACES(type)                                                                            \
  static int count_##type(const type* restrict times, int64_t draws, type half, type* restrict reached, \
                          type* restrict place) {                                                     \
    type below = 0;                                                                                   \
    for (int64_t draw = 0; draw < draws; draw++) {                                                    \
      reached[draw] = (type)(reached[draw] + times[draw]);                                            \
      const type is_below = reached[draw] < half;                                                     \
      place[draw] = (type)(place[draw] + is_below);                                                   \
      below |= is_below;                                                                              \
    }                                                                                                 \
    return below;                                                                                     \
  }                                                                                                   \
  static int64_t places_##type(const type* times, const int64_t* order, int64_t rows, int64_t size,   \
                               int64_t draws, type half, type* place) {                               \
    type* reached = malloc((size_t)draws * sizeof *reached);                                          \
    if (!reached) return NO_MEMORY;                                                                   \
    int64_t row = 0;                                                                                  \
    for (; row < rows; row++, order += size, place += draws) {                                        \
      memset(reached, 0, (size_t)draws * sizeof *reached);                                            \
      memset(place, 0, (size_t)draws * sizeof *place);                                                \
      int64_t i = 0;                                                                                  \
      while (i < size && order[i] >= 0 && order[i] < size &&                                          \
             count_##type(times + order[i] * draws, draws, half, reached, place))                     \
        i++;                                                                                          \
      if (i < size && (order[i] < 0 || order[i] >= size)) break;                                      \
    }                                                                                                 \
    free(reached);                                                                                    \
    return row < rows ? REFUSED : rows;                                                               \
  }

COUNT_PLACES(uint8_t)
COUNT_PLACES(uint16_t)

int64_t flamecore_drawn_places(const void* times, int32_t width, const int64_t* order, int64_t rows,
                               int64_t size, int64_t draws, void* place) {
  const int64_t half = (size + 1) / 2;
  if (width == 1 && size <= UINT8_MAX)
    return places_uint8_t(times, order, rows, size, draws, (uint8_t)half, place);
  if (width == 2 && size <= UINT16_MAX)
    return places_uint16_t(times, order, rows, size, draws, (uint16_t)half, place);
  return REFUSED;
}
