// Decodes leaf pages of SQLite tables (https://sqlite.org/fileformat2.html, sections 1.6 and 2).
//
// Rows of a table have few different headers (how each column is stored), so that where the wanted
// columns lie in a row is worked out once for each and remembered. And many have the same key as one
// not long before: then its bytes are the same, and tell its number without being decoded.
#include <stdlib.h>
#include <string.h>

#include "flamecore.h"

#define LEAF 13
#define REAL 7
#define RESERVED 10  // 10 and 11
#define BLOB 12
#define SMALLEST_ROW 6  // bytes: SQLite gives a row at least four, and two to its pointer
#define LONGEST_SHAPE 64  // bytes of a header that is remembered
#define SHAPES 256
#define HEADER_SEED 0xA0761D6478BD642Fu  // any that is irregular
#define AHEAD 4  // rows that are fetched before they are decoded
#define KEY_WORDS 12  // of the bytes of keys that are remembered: those with longer texts differ
#define KNOWN_KEYS 4096
#define VAIN 4096  // keys that were not remembered, beyond twice those that were, before it is given up

static const uint8_t kWidth[BLOB] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};

// Something in a row: `at` is from the beginning of its values, `slot` where it goes.
typedef struct {
  uint16_t at;
  uint16_t size;
  uint16_t slot;
} Field;

// What rows with the same header have in common. The slots of a row are those of its key, then a
// value for each column of its own.
typedef struct {
  uint8_t header[LONGEST_SHAPE];
  int64_t needs;  // bytes of values up to the last field
  int32_t owns, integers, texts;
  Field own[MOST_COLUMNS];      // integers in columns of their own
  Field integer[MOST_COLUMNS];  // of the key
  Field text[MOST_COLUMNS];
  Texts* numbers[MOST_COLUMNS];  // of each text
  int64_t slots[2 * MOST_COLUMNS];  // what is the same in all of them
  uint64_t serial;  // of all shapes, from 1 on
  int32_t words;    // that hold the bytes of the key; more than KEY_WORDS: it is not remembered
  uint16_t word[KEY_WORDS];  // where they begin
  uint64_t mask[KEY_WORDS];  // of their bytes that are the key's
} Shape;

// A key of a shape, and its number.
typedef struct {
  int64_t words[KEY_WORDS];
  int32_t number;
} KnownKey;

typedef struct {
  uint64_t keys[KEY_WORDS + 1];  // by which they are hashed
  uint64_t serial[KNOWN_KEYS];   // 0: there is none
  KnownKey known[KNOWN_KEYS];
  int64_t found, missed;
} KnownKeys;

typedef struct {
  const WantedColumn* columns;
  int32_t wanted;
  const RowKey* key;
  int64_t null;
  int64_t usable;
  int64_t row;
  int64_t last_rowid;
  int32_t rowid;  // its slot; -1: it is not wanted
  int32_t outs;
  int64_t* out[MOST_COLUMNS];
  uint8_t known[SHAPES];  // sizes of the headers; 0: nothing is remembered
  Shape* shapes;  // and one that is not remembered
  uint64_t parsed;
  KnownKeys* known_keys;
} Decoder;

// Reads a variable-length integer before `stop`; returns its length, 0 where it does not end.
static inline int varint(const uint8_t* at, const uint8_t* stop, uint64_t* value) {
  if (at < stop && *at < 0x80) {
    *value = *at;
    return 1;
  }
  uint64_t sum = 0;
  for (int i = 0; i < 8; i++) {
    if (at + i >= stop) return 0;
    sum = sum << 7 | (at[i] & 0x7F);
    if (at[i] < 0x80) {
      *value = sum;
      return i + 1;
    }
  }
  if (at + 8 >= stop) return 0;
  *value = sum << 8 | at[8];
  return 9;
}

static inline int64_t size_of(uint64_t type) {
  return type < BLOB ? kWidth[type] : (int64_t)((type - BLOB) >> 1);
}

static int has_column(const WantedColumn* wanted) {
  return wanted->kind == INTEGER || wanted->kind == ROWID;
}

// Notes how the column is given in rows where it is of this type. Returns whether it can be.
static int put_column(const WantedColumn* column, uint64_t type, Field field, int64_t null,
                      Shape* shape) {
  if (type == RESERVED || type == RESERVED + 1) return 0;
  if (column->kind == KEY_FILLED) {
    if (type) shape->slots[field.slot] = 1;
  } else if (column->kind == KEY_TEXT) {
    if (type == 0) return 1;
    if (type < BLOB || !column->texts) return 0;  // a number
    shape->numbers[shape->texts] = column->texts;
    shape->text[shape->texts++] = field;
  } else {
    if (type >= BLOB || type == REAL) return 0;
    if (!field.size)
      shape->slots[field.slot] = type ? (int64_t)type - 8 : null;
    else if (column->kind == INTEGER)
      shape->own[shape->owns++] = field;
    else
      shape->integer[shape->integers++] = field;
  }
  return 1;
}

// Adds bytes of the key, which lie behind those before: words go on from field to field.
static void add_key_bytes(Shape* shape, Field field, int32_t* end) {
  int64_t at = field.at, left = field.size;
  while (left > 0 && shape->words <= KEY_WORDS) {
    const int32_t last = shape->words - 1;
    const int64_t used = last >= 0 && at == *end ? at - shape->word[last] : 8;
    const int64_t size = used < 8 ? (left < 8 - used ? left : 8 - used) : (left < 8 ? left : 8);
    if (used < 8) {
      memset((uint8_t*)&shape->mask[last] + used, 0xFF, (size_t)size);
    } else if (shape->words++ < KEY_WORDS) {
      shape->word[last + 1] = (uint16_t)at;
      shape->mask[last + 1] = 0;
      memset(&shape->mask[last + 1], 0xFF, (size_t)size);
    }
    at += size;
    left -= size;
    *end = (int32_t)at;
  }
}

// Works out where the wanted columns lie; `header` is without its own length.
static int parse(Decoder* decoder, const uint8_t* header, const uint8_t* stop, Shape* shape) {
  int32_t place = -1, column = decoder->key->width, key_end = -1;
  uint64_t type = 0;
  int64_t begin = 0, end = 0;
  shape->owns = shape->integers = shape->texts = shape->words = 0;
  shape->serial = ++decoder->parsed;
  if (decoder->key->rows)
    memcpy(shape->slots, decoder->key->absent, (size_t)decoder->key->width * sizeof *shape->slots);
  for (int32_t i = 0; i < decoder->wanted; i++) {
    const WantedColumn* wanted = &decoder->columns[i];
    const int32_t slot = has_column(wanted) ? column++ : wanted->slot;
    if (wanted->kind == ROWID) continue;
    for (; place < wanted->place; place++) {
      const int length = varint(header, stop, &type);
      if (!length || type > INT64_MAX) return 0;  // written before the column was added
      header += length;
      begin = end;
      if (size_of(type) > UINT16_MAX - end) return 0;  // no page is as long
      end += size_of(type);
    }
    const Field field = {(uint16_t)begin, (uint16_t)(end - begin), (uint16_t)slot};
    if (!put_column(wanted, type, field, decoder->null, shape)) return 0;
    if (wanted->kind == KEY_INTEGER || wanted->kind == KEY_TEXT) add_key_bytes(shape, field, &key_end);
  }
  shape->needs = end;
  return 1;
}

// Returns the shape of a header of `size` bytes at `header`, NULL where it is damaged.
static const Shape* shape_of(Decoder* decoder, const uint8_t* header, int64_t size) {
  Shape* shape = &decoder->shapes[SHAPES];
  if (!size || size > LONGEST_SHAPE)
    return parse(decoder, header, header + size, shape) ? shape : NULL;
  const uint64_t place = hash_bytes(header, size, HEADER_SEED) % SHAPES;
  shape = &decoder->shapes[place];
  if (decoder->known[place] == size && are_same(shape->header, header, size)) return shape;
  decoder->known[place] = 0;
  if (!parse(decoder, header, header + size, shape)) return NULL;
  memcpy(shape->header, header, (size_t)size);
  decoder->known[place] = (uint8_t)size;
  return shape;
}

// Reads the eight bytes at `at`, of which the first `width` are a signed big-endian number.
static inline int64_t big_endian(const uint8_t* at, int width) {
  uint64_t value;
  memcpy(&value, at, 8);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  value = __builtin_bswap64(value);
#endif
  return (int64_t)value >> (64 - 8 * width);
}

static void put_columns(const Decoder* decoder, const Shape* shape, const uint8_t* values,
                        int64_t rowid) {
  const int32_t width = decoder->key->width;
  int64_t slots[MOST_COLUMNS];
  for (int32_t i = 0; i < decoder->outs; i++) slots[i] = shape->slots[width + i];
  for (int32_t i = 0; i < shape->owns; i++) {
    const Field field = shape->own[i];
    slots[field.slot - width] = big_endian(values + field.at, field.size);
  }
  if (decoder->rowid >= 0) slots[decoder->rowid - width] = rowid;
  for (int32_t i = 0; i < decoder->outs; i++) decoder->out[i][decoder->row] = slots[i];
}

// Returns the number of the key of a row, decoded.
static int32_t decode_key(const RowKey* key, const Shape* shape, const uint8_t* values) {
  int64_t slots[MOST_COLUMNS];
  for (int32_t i = 0; i < key->width; i++) slots[i] = shape->slots[i];
  for (int32_t i = 0; i < shape->integers; i++) {
    const Field field = shape->integer[i];
    slots[field.slot] = big_endian(values + field.at, field.size);
  }
  for (int32_t i = 0; i < shape->texts; i++) {
    const Field field = shape->text[i];
    const int32_t number = flamecore_texts_number(shape->numbers[i], values + field.at, field.size);
    if (number < 0) return number;
    slots[field.slot] = number;
  }
  return number_row(key->rows, slots);
}

// Returns the number of the key of a row, by its bytes where these have come before.
static int32_t number_key(const RowKey* key, const Shape* shape, const uint8_t* values,
                          KnownKeys* keys) {
  if (shape->words > KEY_WORDS || keys->missed > VAIN + 2 * keys->found)
    return decode_key(key, shape, values);
  int64_t words[KEY_WORDS];
  for (int32_t i = 0; i < shape->words; i++)
    words[i] = (int64_t)(word_at(values + shape->word[i], 8) & shape->mask[i]);
  const uint64_t place = hash_integers(words, shape->words, keys->keys) % KNOWN_KEYS;
  KnownKey* known = &keys->known[place];
  if (keys->serial[place] == shape->serial) {
    int32_t i = 0;
    while (i < shape->words && known->words[i] == words[i]) i++;
    if (i == shape->words) {
      keys->found++;
      return known->number;
    }
  }
  keys->missed++;
  const int32_t number = decode_key(key, shape, values);
  keys->serial[place] = number < 0 ? 0 : shape->serial;
  known->number = number;
  memcpy(known->words, words, (size_t)shape->words * sizeof *words);
  return number;
}

static int64_t put_row(const Decoder* decoder, const Shape* shape, const uint8_t* values,
                       int64_t rowid) {
  put_columns(decoder, shape, values, rowid);
  if (!decoder->key->rows) return 0;
  const int32_t number = number_key(decoder->key, shape, values, decoder->known_keys);
  decoder->key->number[decoder->row] = number;
  return number < 0 ? number : 0;
}

// Decodes a row; returns the bytes of the page that it takes.
static int64_t decode_cell(Decoder* decoder, const uint8_t* cell, const uint8_t* stop) {
  const uint8_t* begin = cell;
  uint64_t payload, rowid, header;
  int length = varint(cell, stop, &payload);
  if (!length || payload > (uint64_t)(decoder->usable - 35)) return REFUSED;  // goes on elsewhere
  cell += length;
  if (!(length = varint(cell, stop, &rowid))) return REFUSED;
  cell += length;
  if (decoder->row && (int64_t)rowid <= decoder->last_rowid) return REFUSED;
  decoder->last_rowid = (int64_t)rowid;
  if ((int64_t)payload > stop - cell) return REFUSED;
  const uint8_t* end = cell + payload;
  length = varint(cell, end, &header);
  if (!length || header > payload || header < (uint64_t)length) return REFUSED;
  const Shape* shape = shape_of(decoder, cell + length, (int64_t)header - length);
  if (!shape || shape->needs > (int64_t)(payload - header)) return REFUSED;
  const int64_t failed = put_row(decoder, shape, cell + header, (int64_t)rowid);
  return failed ? failed : end - begin;
}

static inline int64_t place_of(const uint8_t* page, int64_t cell) {
  return page[8 + 2 * cell] << 8 | page[9 + 2 * cell];
}

static int64_t decode_page(Decoder* decoder, const uint8_t* page, int64_t page_size, int64_t room) {
  const int64_t cells = page[3] << 8 | page[4];
  if (page[0] != LEAF || 8 + SMALLEST_ROW * cells > page_size) return REFUSED;
  if (decoder->row + cells > room) return REFUSED;
  int64_t left = decoder->usable - 8 - 2 * cells;
  for (int64_t i = 0; i < cells; i++, decoder->row++) {
    if (i + AHEAD < cells) __builtin_prefetch(page + place_of(page, i + AHEAD));
    const int64_t at = place_of(page, i);
    if (at >= page_size) return REFUSED;
    const int64_t size = decode_cell(decoder, page + at, page + page_size);
    if (size < 0) return size;
    left -= size;
    if (left < 0) return REFUSED;  // rows overlap: a few bytes would ask for gigabytes
  }
  return cells;
}

static void begin_columns(Decoder* decoder) {
  decoder->rowid = -1;
  for (int32_t i = 0; i < decoder->wanted; i++) {
    const WantedColumn* column = &decoder->columns[i];
    if (!has_column(column)) continue;
    if (column->kind == ROWID) decoder->rowid = decoder->key->width + decoder->outs;
    decoder->out[decoder->outs++] = column->out;
  }
}

static int64_t decode_pages(Decoder* decoder, const Pages* pages, int64_t room) {
  for (int64_t i = 0; i < pages->count; i++) {
    const uint8_t* page = pages->bytes + i * pages->page_size;
    const int64_t cells = decode_page(decoder, page, pages->page_size, room);
    if (cells < 0) return cells;
    if (!cells && pages->count > 1) return REFUSED;  // damaged: a page of another place
  }
  return decoder->row;
}

static int make_memory(Decoder* decoder) {
  decoder->shapes = malloc((SHAPES + 1) * sizeof *decoder->shapes);
  decoder->known_keys = malloc(sizeof *decoder->known_keys);
  if (!decoder->shapes || !decoder->known_keys) return 0;
  KnownKeys* keys = decoder->known_keys;
  make_keys(HEADER_SEED, KEY_WORDS, keys->keys);
  memset(keys->serial, 0, sizeof keys->serial);
  keys->found = keys->missed = 0;
  return 1;
}

int64_t flamecore_decode(const Pages* pages, const WantedColumn* columns, int32_t wanted,
                         const RowKey* key, int64_t null, int64_t room) {
  if (wanted > MOST_COLUMNS || key->width > MOST_COLUMNS) return REFUSED;
  Decoder decoder = {.columns = columns, .wanted = wanted, .key = key, .null = null};
  decoder.usable = pages->usable;
  begin_columns(&decoder);
  const int64_t rows = make_memory(&decoder) ? decode_pages(&decoder, pages, room) : NO_MEMORY;
  free(decoder.known_keys);
  free(decoder.shapes);
  return rows;
}
