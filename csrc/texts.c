// Numbers texts in the order in which they first come: a hash table over an arena of their bytes.
#include <stdlib.h>
#include <string.h>

#include "flamecore.h"

#define FIRST_SLOTS 1024
#define MOST_DIGITS 18

typedef struct {
  uint64_t hash;
  int32_t number;  // -1: free
} Slot;

typedef struct {
  uint64_t begin;
  int64_t size;
} Place;

struct Texts {
  uint64_t seed;
  int trims;
  uint8_t keeps[256];
  Slot* slots;
  uint64_t mask;
  Place* places;
  int64_t count, room;
  uint8_t* arena;
  uint64_t used, size;
};

static Slot* new_slots(uint64_t count) {
  Slot* slots = malloc(count * sizeof *slots);
  for (uint64_t i = 0; slots && i < count; i++) slots[i].number = -1;
  return slots;
}

Texts* flamecore_texts_new(uint64_t seed, const char* keep) {
  Texts* texts = calloc(1, sizeof *texts);
  if (!texts) return NULL;
  texts->seed = seed;
  texts->trims = keep != NULL;
  for (; keep && *keep; keep++) texts->keeps[(uint8_t)*keep] = 1;
  texts->mask = FIRST_SLOTS - 1;
  texts->slots = new_slots(FIRST_SLOTS);
  if (texts->slots) return texts;
  free(texts);
  return NULL;
}

void flamecore_texts_free(Texts* texts) {
  free(texts->slots);
  free(texts->places);
  free(texts->arena);
  free(texts);
}

int64_t flamecore_texts_count(const Texts* texts) { return texts->count; }

int64_t flamecore_texts_get(const Texts* texts, int64_t number, const uint8_t** place) {
  *place = texts->arena + texts->places[number].begin;
  return texts->places[number].size;
}

static inline uint64_t eight(const uint8_t* at) {
  uint64_t value;
  memcpy(&value, at, 8);
  return value;
}

static uint64_t hash_text(const uint8_t* text, int64_t size, uint64_t seed) {
  uint64_t hash = mix((uint64_t)size, seed), last = 0;
  for (; size >= 8; size -= 8, text += 8) hash = mix(eight(text) ^ hash, seed);
  memcpy(&last, text, (size_t)size);
  return mix(last ^ hash, seed + 1);
}

// Size of the text without ", op_id = 871" at its end, where what is before it decides its name.
static int64_t trim(const Texts* texts, const uint8_t* text, int64_t size) {
  static const char kMark[] = ", op_id = ";
  const int64_t mark = sizeof kMark - 1;
  int64_t at = size;
  if (size <= mark || texts->keeps[text[0]]) return size;
  while (at > 0 && size - at <= MOST_DIGITS && text[at - 1] >= '0' && text[at - 1] <= '9') at--;
  const int found = at < size && at > mark && !memcmp(text + at - mark, kMark, (size_t)mark);
  return found ? at - mark : size;
}

static int grow_slots(Texts* texts) {
  const uint64_t count = 2 * (texts->mask + 1);
  Slot* slots = new_slots(count);
  if (!slots) return 0;
  for (uint64_t i = 0; i <= texts->mask; i++) {
    if (texts->slots[i].number < 0) continue;
    uint64_t at = texts->slots[i].hash & (count - 1);
    while (slots[at].number >= 0) at = (at + 1) & (count - 1);
    slots[at] = texts->slots[i];
  }
  free(texts->slots);
  texts->slots = slots;
  texts->mask = count - 1;
  return 1;
}

static int make_room(Texts* texts, int64_t size) {
  if (texts->count == texts->room) {
    const int64_t room = texts->room ? 2 * texts->room : FIRST_SLOTS;
    Place* places = realloc(texts->places, (size_t)room * sizeof *places);
    if (!places) return 0;
    texts->places = places;
    texts->room = room;
  }
  if (texts->used + (uint64_t)size > texts->size) {
    const uint64_t wanted = 2 * texts->size + (uint64_t)size + (1 << 16);
    uint8_t* arena = realloc(texts->arena, wanted);
    if (!arena) return 0;
    texts->arena = arena;
    texts->size = wanted;
  }
  return 2 * (uint64_t)texts->count < texts->mask || grow_slots(texts);
}

static int32_t add_text(Texts* texts, const uint8_t* text, int64_t size, uint64_t hash) {
  if (texts->count == INT32_MAX) return REFUSED;
  if (!make_room(texts, size)) return NO_MEMORY;
  memcpy(texts->arena + texts->used, text, (size_t)size);
  texts->places[texts->count] = (Place){texts->used, size};
  texts->used += (uint64_t)size;
  uint64_t at = hash & texts->mask;
  while (texts->slots[at].number >= 0) at = (at + 1) & texts->mask;
  texts->slots[at] = (Slot){hash, (int32_t)texts->count};
  return (int32_t)texts->count++;
}

int32_t number_text(Texts* texts, const uint8_t* text, int64_t size) {
  if (texts->trims) size = trim(texts, text, size);
  const uint64_t hash = hash_text(text, size, texts->seed);
  for (uint64_t at = hash & texts->mask; texts->slots[at].number >= 0; at = (at + 1) & texts->mask) {
    if (texts->slots[at].hash != hash) continue;
    const Place place = texts->places[texts->slots[at].number];
    if (place.size == size && !memcmp(texts->arena + place.begin, text, (size_t)size))
      return texts->slots[at].number;
  }
  return add_text(texts, text, size, hash);
}
