// Decodes leaf pages of SQLite tables (https://sqlite.org/fileformat2.html, sections 1.6 and 2).
//
// Rows of a table have few different headers (how each column is stored), so that where the wanted
// columns lie in a row is worked out once for each and remembered.
#include <string.h>

#include "flamecore.h"

#define LEAF 13
#define REAL 7
#define RESERVED 10  // 10 and 11
#define BLOB 12
#define SMALLEST_ROW 6  // bytes: SQLite gives a row at least four, and two to its pointer
#define LONGEST_SHAPE 64  // bytes of a header that is remembered
#define SHAPES 64

static const uint8_t kWidth[BLOB] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};

typedef struct {
  uint64_t type;
  int64_t at;  // from the beginning of the row's values
} Field;

typedef struct {
  uint8_t header[LONGEST_SHAPE];
  int64_t size;   // of the header; 0: nothing is remembered
  int64_t needs;  // bytes of values up to the last field
  Field fields[MOST_COLUMNS];
} Shape;

typedef struct {
  const WantedColumn* columns;
  int32_t wanted;
  const RowKey* key;
  int64_t null;
  int64_t usable;
  int64_t row;
  int64_t last_rowid;
  Shape shapes[SHAPES];
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

// Works out where the wanted columns lie; `header` is without its own length.
static int parse(const Decoder* decoder, const uint8_t* header, const uint8_t* stop, Shape* shape) {
  int32_t place = 0;
  int64_t at = 0;
  for (int32_t i = 0; i < decoder->wanted; i++) {
    if (decoder->columns[i].kind == ROWID) continue;
    if (i && decoder->columns[i].place == decoder->columns[i - 1].place) {
      shape->fields[i] = shape->fields[i - 1];
      continue;
    }
    for (;; place++) {
      uint64_t type;
      const int length = varint(header, stop, &type);
      if (!length || type > INT64_MAX) return 0;  // written before the column was added
      header += length;
      const int64_t size = size_of(type);
      if (at > INT64_MAX - size) return 0;
      if (place == decoder->columns[i].place) shape->fields[i] = (Field){type, at};
      at += size;
      if (place == decoder->columns[i].place) break;
    }
    place++;
  }
  shape->needs = at;
  return 1;
}

// Returns the shape of a header of `size` bytes at `header`, NULL where it is damaged.
static const Shape* shape_of(Decoder* decoder, const uint8_t* header, int64_t size, Shape* scratch) {
  if (!size || size > LONGEST_SHAPE)
    return parse(decoder, header, header + size, scratch) ? scratch : NULL;
  const uint64_t hash = hash_bytes(header, size, 0);
  Shape* shape = &decoder->shapes[hash % SHAPES];
  if (shape->size == size && !memcmp(shape->header, header, (size_t)size)) return shape;
  shape->size = 0;
  if (!parse(decoder, header, header + size, shape)) return NULL;
  memcpy(shape->header, header, (size_t)size);
  shape->size = size;
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

// Reads an integer of this type; returns whether it is one.
static inline int integer(const Decoder* decoder, uint64_t type, const uint8_t* at, int64_t* value) {
  if (type >= RESERVED || type == REAL) return 0;
  if (type == 0)
    *value = decoder->null;
  else if (type >= 8)
    *value = (int64_t)type - 8;
  else
    *value = big_endian(at, kWidth[type]);
  return 1;
}

static inline int64_t put_text(const WantedColumn* column, uint64_t type, const uint8_t* at,
                               int64_t* key) {
  if (type == 0) return 0;
  if (type < BLOB || !column->texts) return REFUSED;  // a number
  key[column->slot] = flamecore_texts_number(column->texts, at, size_of(type));
  return key[column->slot] < 0 ? key[column->slot] : 0;
}

static int64_t put_fields(const Decoder* decoder, const Shape* shape, const uint8_t* values,
                          int64_t rowid, int64_t* key) {
  for (int32_t i = 0; i < decoder->wanted; i++) {
    const WantedColumn* column = &decoder->columns[i];
    const uint64_t type = shape->fields[i].type;
    const uint8_t* at = values + shape->fields[i].at;
    int64_t failed = 0;
    if (column->kind == INTEGER)
      failed = -!integer(decoder, type, at, &column->out[decoder->row]);
    else if (column->kind == KEY_INTEGER)
      failed = -!integer(decoder, type, at, &key[column->slot]);
    else if (column->kind == KEY_TEXT)
      failed = put_text(column, type, at, key);
    else if (column->kind == ROWID)
      column->out[decoder->row] = rowid;
    else if (type == RESERVED || type == RESERVED + 1)
      failed = REFUSED;
    else if (type)
      key[column->slot] = 1;
    if (failed) return failed;
  }
  return 0;
}

static int64_t put_row(const Decoder* decoder, const Shape* shape, const uint8_t* values,
                       int64_t rowid) {
  const RowKey* given = decoder->key;
  int64_t key[MOST_COLUMNS];
  if (given->rows) memcpy(key, given->absent, (size_t)given->width * sizeof *key);
  const int64_t failed = put_fields(decoder, shape, values, rowid, key);
  if (failed || !given->rows) return failed;
  given->number[decoder->row] = number_row(given->rows, key);
  return given->number[decoder->row] < 0 ? given->number[decoder->row] : 0;
}

// Decodes a row; returns the bytes of the page that it takes.
static int64_t decode_cell(Decoder* decoder, const uint8_t* cell, const uint8_t* stop,
                           Shape* scratch) {
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
  const Shape* shape = shape_of(decoder, cell + length, (int64_t)header - length, scratch);
  if (!shape || shape->needs > (int64_t)(payload - header)) return REFUSED;
  const int64_t failed = put_row(decoder, shape, cell + header, (int64_t)rowid);
  return failed ? failed : end - begin;
}

static int64_t decode_page(Decoder* decoder, const uint8_t* page, int64_t page_size, int64_t room,
                           Shape* scratch) {
  const int64_t cells = page[3] << 8 | page[4];
  if (page[0] != LEAF || 8 + SMALLEST_ROW * cells > page_size) return REFUSED;
  if (decoder->row + cells > room) return REFUSED;
  int64_t left = decoder->usable - 8 - 2 * cells;
  for (int64_t i = 0; i < cells; i++, decoder->row++) {
    const int64_t at = page[8 + 2 * i] << 8 | page[9 + 2 * i];
    if (at >= page_size) return REFUSED;
    const int64_t size = decode_cell(decoder, page + at, page + page_size, scratch);
    if (size < 0) return size;
    left -= size;
    if (left < 0) return REFUSED;  // rows overlap: a few bytes would ask for gigabytes
  }
  return cells;
}

int64_t flamecore_decode(const Pages* pages, const WantedColumn* columns, int32_t wanted,
                         const RowKey* key, int64_t null, int64_t room) {
  Decoder decoder;
  Shape scratch = {0};
  if (wanted > MOST_COLUMNS || key->width > MOST_COLUMNS) return REFUSED;
  memset(&decoder, 0, sizeof decoder);
  decoder.columns = columns;
  decoder.wanted = wanted;
  decoder.key = key;
  decoder.null = null;
  decoder.usable = pages->usable;
  for (int64_t i = 0; i < pages->count; i++) {
    const uint8_t* page = pages->bytes + i * pages->page_size;
    const int64_t cells = decode_page(&decoder, page, pages->page_size, room, &scratch);
    if (cells < 0) return cells;
    if (!cells && pages->count > 1) return REFUSED;  // damaged: a page of another place
  }
  return decoder.row;
}
