// Pieces that nest, and the innermost: as by a look at every interval for each moment.
#include "flamecore.h"
#include "input.h"

#define MOST 30
#define LANES 3
#define DEEPEST 6
#define ROOM 200

typedef struct {
  int32_t lane[MOST];
  int64_t start[MOST], end[MOST];
  int32_t count;
} Given;

static int64_t take_time(Input* in) {
  const uint8_t byte = take_byte(in);
  return byte < 250 ? byte % 24 : take_number(in);
}

static Given take_given(Input* in) {
  Given given = {.count = (int32_t)below(in, MOST + 1)};
  for (int32_t i = 0; i < given.count; i++) {
    given.lane[i] = (int32_t)below(in, LANES + 1) - 1;
    given.start[i] = take_time(in);
    given.end[i] = take_time(in);
  }
  return given;
}

// Whether interval `one` comes before `other`: earlier, or longer, or given before it.
static int comes_before(const Given* given, int32_t one, int32_t other) {
  if (given->start[one] != given->start[other]) return given->start[one] < given->start[other];
  if (given->end[one] != given->end[other]) return given->end[one] > given->end[other];
  return one < other;
}

// Returns how many are open on `lane` at `time`, and sets the last of them.
static int32_t look(const Given* given, int32_t lane, int64_t time, int32_t* innermost) {
  int32_t count = 0;
  *innermost = -1;
  for (int32_t i = 0; i < given->count; i++) {
    if (given->lane[i] != lane || given->start[i] > time || given->end[i] <= time) continue;
    if (*innermost < 0 || comes_before(given, *innermost, i)) *innermost = i;
    count++;
  }
  return count;
}

static int32_t deepest_of(const Given* given) {
  int32_t most = 0, last;
  for (int32_t i = 0; i < given->count; i++) {
    if (given->lane[i] < 0 || given->end[i] <= given->start[i]) continue;
    const int32_t count = look(given, given->lane[i], given->start[i], &last);
    if (count > most) most = count;
  }
  return most;
}

static void check_pieces(const Given* given, const Nested* out, int64_t count) {
  uint64_t length = 0, cut = 0;
  for (int32_t i = 0; i < given->count; i++)
    if (given->lane[i] >= 0 && given->end[i] > given->start[i])
      length += (uint64_t)given->end[i] - (uint64_t)given->start[i];
  for (int64_t i = 0; i < count; i++) {
    const int32_t source = out->source[i], parent = out->parent[i];
    require(source >= 0 && source < given->count && given->lane[source] >= 0, "a piece is of one");
    require(out->start[i] < out->end[i], "no piece is empty");
    require(out->start[i] >= given->start[source] && out->end[i] <= given->end[source],
            "a piece is in its interval");
    require(parent >= -1 && parent < i, "what is around a piece comes before it");
    require(out->depth[i] == (parent < 0 ? 0 : out->depth[parent] + 1), "depths are counted");
    if (parent >= 0) {
      require(given->lane[out->source[parent]] == given->lane[source], "lanes are apart");
      require(out->start[parent] <= out->start[i] && out->end[i] <= out->end[parent],
              "a piece is in what is around it");
    }
    cut += (uint64_t)out->end[i] - (uint64_t)out->start[i];
  }
  require(length == cut, "pieces add up to their intervals");
}

static void check_moment(const Given* given, const Nested* nested, const Innermost* out,
                         int64_t count, int32_t lane, int64_t time) {
  int32_t innermost, found = -1;
  look(given, lane, time, &innermost);
  for (int64_t i = 0; i < count; i++) {
    const int32_t source = nested->source[out->piece[i]];
    if (given->lane[source] != lane || out->start[i] > time || out->end[i] <= time) continue;
    require(found < 0, "a moment is told once");
    found = source;
  }
  require(found == innermost, "the innermost is what began last");
}

static void check_innermost(const Given* given, const Nested* nested, int64_t count) {
  int32_t *lane = memory(count, sizeof *lane), *piece = memory(2 * count, sizeof *piece);
  int64_t *start = memory(2 * count, sizeof *start), *end = memory(2 * count, sizeof *end);
  for (int64_t i = 0; i < count; i++) lane[i] = given->lane[nested->source[i]];
  const LaneSpans spans = {count, lane, nested->start, nested->end};
  const Innermost out = {piece, start, end};
  const int64_t told = flamecore_innermost(&spans, LANES, DEEPEST, &out);
  require(told >= 0 && told <= 2 * count, "what nests is not refused");
  for (int64_t i = 0; i < told; i++)
    require(piece[i] >= 0 && piece[i] < count && start[i] < end[i], "a piece is one of them");
  for (int32_t on = 0; on < LANES; on++)
    for (int32_t i = 0; i < given->count; i++) {
      check_moment(given, nested, &out, told, on, given->start[i]);
      check_moment(given, nested, &out, told, on, given->end[i]);
    }
  free(lane);
  free(piece);
  free(start);
  free(end);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in = {data, size};
  const int32_t deepest = 1 + (int32_t)below(&in, DEEPEST);
  const int64_t room = below(&in, ROOM);
  const Given given = take_given(&in);
  int32_t* lane = copied(given.lane, given.count, 4);
  int64_t *start = copied(given.start, given.count, 8), *end = copied(given.end, given.count, 8);
  const Nested out = {room, memory(room, 4), memory(room, 8), memory(room, 8), memory(room, 4),
                      memory(room, 4)};
  const LaneSpans spans = {given.count, lane, start, end};
  const int64_t count = flamecore_nest(&spans, LANES, deepest, &out);
  require(count == REFUSED || (count >= 0 && count <= room), "there is room for all of them");
  if (deepest_of(&given) > deepest) require(count == REFUSED, "what nests too deeply is refused");
  if (count >= 0) {
    check_pieces(&given, &out, count);
    check_innermost(&given, &out, count);
  }
  // What may cross is refused, or told.
  int32_t* piece = memory(2 * given.count, 4);
  int64_t *from = memory(2 * given.count, 8), *to = memory(2 * given.count, 8);
  const Innermost told = {piece, from, to};
  require(flamecore_innermost(&spans, LANES, deepest, &told) <= 2 * given.count, "it ends");
  free(piece);
  free(from);
  free(to);
  free(out.source);
  free(out.start);
  free(out.end);
  free(out.parent);
  free(out.depth);
  free(lane);
  free(start);
  free(end);
  return 0;
}
