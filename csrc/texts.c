// Numbers texts in the order in which they first come: a hash table over an arena of their bytes.
// Running numbers of operators are left out, as names/nvtx.py does (`strip_running`).
#include <stdlib.h>
#include <string.h>

#include "flamecore.h"

#define FIRST_SLOTS 1024

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
  char* kept;  // strings one behind the other, an empty one last; NULL: texts are left as they are
  uint8_t* scratch;
  int64_t scratch_size;
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

static char* copy_strings(const char* strings) {
  size_t size = 1;
  for (const char* at = strings; *at; at += strlen(at) + 1) size += strlen(at) + 1;
  char* copy = malloc(size);
  if (copy) memcpy(copy, strings, size);
  return copy;
}

Texts* flamecore_texts_new(uint64_t seed, const char* kept) {
  Texts* texts = calloc(1, sizeof *texts);
  if (!texts) return NULL;
  texts->seed = seed;
  texts->mask = FIRST_SLOTS - 1;
  texts->slots = new_slots(FIRST_SLOTS);
  texts->kept = kept ? copy_strings(kept) : NULL;
  if (texts->slots && !kept == !texts->kept) return texts;
  flamecore_texts_free(texts);
  return NULL;
}

void flamecore_texts_free(Texts* texts) {
  free(texts->slots);
  free(texts->kept);
  free(texts->scratch);
  free(texts->places);
  free(texts->arena);
  free(texts);
}

int64_t flamecore_texts_count(const Texts* texts) { return texts->count; }

int64_t flamecore_texts_get(const Texts* texts, int64_t number, const uint8_t** place) {
  *place = texts->arena + texts->places[number].begin;
  return texts->places[number].size;
}

static int is_digit(uint8_t one) { return one >= '0' && one <= '9'; }

// Returns the end of the word that begins at `at`, NULL where another one does.
static const uint8_t* skip_word(const uint8_t* at, const uint8_t* stop, const char* word) {
  const size_t size = strlen(word);
  return (size_t)(stop - at) >= size && !memcmp(at, word, size) ? at + size : NULL;
}

// Whether an item can be left out that ends here: at the end, or where a list in front of it would
// not go on with what follows.
static int ends_item(const uint8_t* at, const uint8_t* stop) {
  if (at == stop) return 1;
  if (stop - at < 3 || at[0] != ',' || at[1] != ' ' || at[2] >= 0x80) return 0;
  return !(at[2] && strchr("[](-", at[2])) && !is_digit(at[2]);
}

static const uint8_t* skip_number(const uint8_t* at, const uint8_t* stop) {
  if (at < stop && *at == '-') at++;
  const uint8_t* first = at;
  while (at < stop && is_digit(*at)) at++;
  return at > first && ends_item(at, stop) ? at : NULL;
}

static int is_in_list(uint8_t one) { return one && (strchr("[]()-", one) || is_digit(one)); }

// A list of lists or pairs of numbers, which may end with the text.
static const uint8_t* skip_list(const uint8_t* at, const uint8_t* stop) {
  if (at == stop || *at++ != '[') return NULL;
  while (at < stop) {
    const uint8_t* next = at + 1;
    if (*at == ',') {
      if (next < stop && *next == ' ') next++;
      if (next == stop || !is_in_list(*next) || *next == ')') break;
    } else if (!is_in_list(*at)) {
      break;
    }
    at = next;
  }
  const uint8_t* rest = at;
  if (rest < stop && *rest == ',') rest++;
  if (rest < stop && *rest == ' ') rest++;
  if (rest == stop) return stop;
  return ends_item(at, stop) ? at : NULL;
}

// Returns the end of the running number that begins at `at`, NULL where none does.
static const uint8_t* skip_running(const uint8_t* at, const uint8_t* stop) {
  static const char* const kNumbers[] = {", op_id = ", ", seq = ", ", stashed seq = "};
  for (size_t i = 0; i < sizeof kNumbers / sizeof *kNumbers; i++) {
    const uint8_t* value = skip_word(at, stop, kNumbers[i]);
    if (value) return skip_number(value, stop);
  }
  const uint8_t* value = skip_word(at, stop, ", input_op_ids = ");
  return value ? skip_list(value, stop) : NULL;
}

static int is_kept(const Texts* texts, const uint8_t* text, int64_t size) {
  for (const char* at = texts->kept; *at; at += strlen(at) + 1)
    if (skip_word(text, text + size, at)) return 1;
  return 0;
}

// Leaves running numbers out of the text; returns 0 where there is no memory for that.
static int strip(Texts* texts, const uint8_t** text, int64_t* size) {
  if (!memchr(*text, '=', (size_t)*size) || is_kept(texts, *text, *size)) return 1;
  if (*size > texts->scratch_size) {
    uint8_t* scratch = realloc(texts->scratch, (size_t)*size);
    if (!scratch) return 0;
    texts->scratch = scratch;
    texts->scratch_size = *size;
  }
  const uint8_t *at = *text, *stop = *text + *size;
  int64_t used = 0;
  while (at < stop) {
    // Behind an item that ended so, leaving it out would change how that one ends.
    const int alone = at == *text || (at[-1] != ',' && at[-1] != ' ');
    const uint8_t* end = *at == ',' && alone ? skip_running(at, stop) : NULL;
    if (end)
      at = end;
    else
      texts->scratch[used++] = *at++;
  }
  if (used) {  // nothing left: it is called by all of it
    *text = texts->scratch;
    *size = used;
  }
  return 1;
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
  if (texts->used + (uint64_t)size >= texts->size) {  // there is one for an empty text, too
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

// Returns the number of a known text, -1 for others.
static int32_t find(const Texts* texts, const uint8_t* text, int64_t size, uint64_t hash) {
  for (uint64_t at = hash & texts->mask; texts->slots[at].number >= 0; at = (at + 1) & texts->mask) {
    if (texts->slots[at].hash != hash) continue;
    const Place place = texts->places[texts->slots[at].number];
    if (place.size == size && !memcmp(texts->arena + place.begin, text, (size_t)size))
      return texts->slots[at].number;
  }
  return -1;
}

int32_t flamecore_texts_number(Texts* texts, const uint8_t* text, int64_t size) {
  uint64_t hash = hash_bytes(text, size, texts->seed);
  int32_t known = find(texts, text, size, hash);
  if (known >= 0) return known;
  if (texts->kept) {  // only now: what is known has nothing to leave out
    const int64_t whole = size;
    if (!strip(texts, &text, &size)) return NO_MEMORY;
    if (size < whole) {
      hash = hash_bytes(text, size, texts->seed);
      known = find(texts, text, size, hash);
      if (known >= 0) return known;
    }
  }
  return add_text(texts, text, size, hash);
}
