// Pages of any bytes, and of rows that are nearly right, decoded by any plan of columns: numbers are
// within what there is, a page decodes alone as among others, and what is refused is forgotten.
#include "flamecore.h"
#include "input.h"

#define MOST_PAGES 4
#define MOST_WANTED 9
#define WIDEST 5
#define BEFORE 3
#define MOST_ROWS 400
#define LONGEST_CELL 400
#define NONE (-77)  // what an integer that is NULL is given as

static int put_varint(uint8_t* to, uint64_t value) {
  int size = 1;
  while (size < 9 && value >> (7 * size)) size++;
  if (value >> 56) size = 9;
  int i = size - 1;
  to[i] = (uint8_t)(size == 9 ? value : value & 0x7F);
  for (value >>= size == 9 ? 8 : 7; i--; value >>= 7) to[i] = (uint8_t)(value | 0x80);
  return size;
}

// Writes a row whose header and sizes are mostly true; returns its bytes.
static int64_t put_cell(Input* in, uint8_t* cell, int64_t rowid) {
  static const uint8_t kWidth[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};
  uint8_t header[64], record[LONGEST_CELL] = {0};
  int64_t size = 0, values = 0;
  for (uint32_t left = below(in, 9); left; left--) {
    const uint8_t byte = take_byte(in);
    const uint64_t type = byte < 200   ? byte % 20u
                          : byte < 240 ? 13 + 6 * (byte - 200u)
                                       : (uint64_t)take_number(in);
    values += type < 12 ? kWidth[type] : (int64_t)((type - 12) / 2 % 300);
    if (size + 9 < (int64_t)sizeof header && !(type >> 56)) size += put_varint(header + size, type);
  }
  int64_t at = put_varint(record, (uint64_t)size + 1);
  memcpy(record + at, header, (size_t)size);
  at += size;
  const int64_t there = values < 100 ? values : 100;
  for (int64_t left = there; left; left--) record[at++] = take_byte(in);
  const uint8_t kind = take_byte(in);
  const int64_t lie = kind < 200 ? 0 : kind < 240 ? values - there : take_number(in) % 300;
  int64_t begin = put_varint(cell, (uint64_t)(at + lie < 0 ? 0 : at + lie));
  begin += put_varint(cell + begin, (uint64_t)rowid);
  memcpy(cell + begin, record, (size_t)at);
  return begin + at;
}

static int64_t fill_page(Input* in, uint8_t* page, int64_t page_size, int64_t rowid) {
  const uint32_t cells = below(in, 24);
  uint8_t cell[2 * LONGEST_CELL];
  int64_t free_from = page_size;
  page[0] = 13;
  page[4] = 0;
  for (uint32_t i = 0; i < cells; i++) {
    rowid = (int64_t)((uint64_t)rowid + 1 + below(in, 3) * below(in, 200));
    const int64_t size = put_cell(in, cell, rowid);
    if (free_from - size < 8 + 2 * (i + 1)) break;
    free_from -= size;
    memcpy(page + free_from, cell, (size_t)size);
    page[8 + 2 * i] = (uint8_t)(free_from >> 8);
    page[9 + 2 * i] = (uint8_t)free_from;
    page[4] = (uint8_t)(i + 1);
  }
  for (uint32_t left = take_byte(in) < 200 ? 0 : below(in, 8); left; left--) {
    const uint32_t at = take_byte(in) << 8 | take_byte(in);
    page[at % page_size] = take_byte(in);
  }
  return rowid;
}

// Sets all pages, of exactly their size and the 8 bytes behind them.
static Pages take_pages(Input* in) {
  static const int64_t kSizes[] = {512, 64, 1024, 4096, 65536};
  Pages pages = {.count = 1 + below(in, MOST_PAGES), .page_size = kSizes[below(in, 5)]};
  pages.usable = pages.page_size - below(in, 30);
  const size_t size = (size_t)(pages.count * pages.page_size) + 8;
  uint8_t* bytes = memory((int64_t)size, 1);
  memset(bytes, take_byte(in), size);
  int64_t rowid = below(in, 2) ? take_number(in) : 0;
  for (int64_t i = 0; i < pages.count; i++) {
    uint8_t* page = bytes + i * pages.page_size;
    if (below(in, 8)) {
      rowid = fill_page(in, page, pages.page_size, rowid);
    } else {
      const uint32_t given = take_byte(in) << 2;
      take(in, page, given < pages.page_size ? given : (size_t)pages.page_size);
    }
  }
  pages.bytes = bytes;
  return pages;
}

typedef struct {
  WantedColumn columns[MOST_WANTED];
  int32_t wanted;
  int64_t absent[WIDEST];
  RowKey key;
  Texts* texts;
  int64_t room;
} Plan;

static Plan take_plan(Input* in) {
  static const char kNothing[] = "\0";
  Plan plan = {.wanted = (int32_t)below(in, MOST_WANTED + 1)};
  plan.key.width = (int32_t)below(in, WIDEST + 1);
  plan.texts = flamecore_texts_new(in->left, below(in, 2) ? kNothing : NULL);
  if (plan.key.width) plan.key.rows = flamecore_rows_new(plan.key.width, in->left);
  for (int32_t i = 0; i < plan.key.width; i++) plan.absent[i] = -1 - (int64_t)below(in, 3);
  int32_t place = 0;
  for (int32_t i = 0; i < plan.wanted; i++) {
    WantedColumn* column = &plan.columns[i];
    column->kind = (int32_t)below(in, plan.key.width ? 5 : 1);
    if (column->kind == ROWID || (!i && below(in, 2))) {  // those come first
      column->kind = i && plan.columns[i - 1].kind != ROWID ? INTEGER : ROWID;
    }
    if (column->kind == ROWID) {
      column->place = -1;
      continue;
    }
    place += (int32_t)below(in, 3);
    column->place = place;
    column->slot = plan.key.width ? (int32_t)below(in, (uint32_t)plan.key.width) : 0;
    column->texts = below(in, 16) ? plan.texts : NULL;
  }
  return plan;
}

static int64_t room_for(const Pages* pages, Input* in) {
  int64_t room = 0;
  for (int64_t i = 0; i < pages->count; i++) {
    const uint8_t* page = pages->bytes + i * pages->page_size;
    room += page[3] << 8 | page[4];
  }
  if (room > MOST_ROWS) room = MOST_ROWS;
  return below(in, 16) ? room : below(in, MOST_ROWS / 2);
}

static void make_columns(Plan* plan, int64_t room) {
  plan->room = room;
  plan->key.absent = plan->absent;
  plan->key.number = memory(plan->key.width ? room : 0, sizeof *plan->key.number);
  for (int32_t i = 0; i < plan->wanted; i++) {
    const int own = plan->columns[i].kind == INTEGER || plan->columns[i].kind == ROWID;
    plan->columns[i].out = own ? memory(room, sizeof *plan->columns[i].out) : NULL;
  }
}

static void free_columns(Plan* plan) {
  free(plan->key.number);
  for (int32_t i = 0; i < plan->wanted; i++) free(plan->columns[i].out);
}

static int64_t decode(const Plan* plan, const Pages* pages) {
  const int64_t rows =
      flamecore_decode(pages, plan->columns, plan->wanted, &plan->key, NONE, plan->room);
  require(rows >= REFUSED && rows <= plan->room, "there are no more rows than room for them");
  return rows;
}

static const uint8_t* take_varint(const uint8_t* at, uint64_t* value) {
  *value = 0;
  for (int i = 0; i < 8; i++, at++) {
    *value = *value << 7 | (*at & 0x7F);
    if (*at < 0x80) return at + 1;
  }
  *value = *value << 8 | *at;
  return at + 1;
}

// Checks that the rows of a page that was decoded have room beside each other.
static void check_room(const Pages* pages, int64_t number) {
  const uint8_t* page = pages->bytes + number * pages->page_size;
  const int64_t cells = page[3] << 8 | page[4];
  int64_t taken = 8 + 2 * cells;
  for (int64_t i = 0; i < cells; i++) {
    const uint8_t* cell = page + (page[8 + 2 * i] << 8 | page[9 + 2 * i]);
    uint64_t payload, rowid;
    const uint8_t* row = take_varint(take_varint(cell, &payload), &rowid);
    taken += row - cell + (int64_t)payload;
  }
  require(taken <= pages->usable, "rows do not overlap");
}

// Whether nothing but this column's texts stands in its slot.
static int has_texts_alone(const Plan* plan, int32_t column) {
  const WantedColumn* columns = plan->columns;
  for (int32_t i = 0; i < plan->wanted; i++)
    if (i != column && columns[i].kind >= KEY_INTEGER && columns[i].slot == columns[column].slot)
      return 0;
  return columns[column].kind == KEY_TEXT;
}

// Checks the numbers of all rows, and the numbers of texts that are in their keys.
static void check_numbers(const Plan* plan, int64_t rows) {
  const int64_t* values = plan->key.rows ? flamecore_rows_values(plan->key.rows) : NULL;
  for (int64_t i = 0; values && i < rows; i++) {
    const int32_t number = plan->key.number[i];
    require(number >= 0 && number < flamecore_rows_count(plan->key.rows), "a key is one of them");
    for (int32_t k = 0; k < plan->wanted; k++)
      if (has_texts_alone(plan, k))
        require(values[(int64_t)number * plan->key.width + plan->columns[k].slot] <
                    flamecore_texts_count(plan->texts),
                "a text is one of them");
  }
}

static void check_page_alone(Plan* plan, const Pages* pages, int64_t page, int64_t* row) {
  Plan alone = *plan;
  const uint8_t* bytes = pages->bytes + page * pages->page_size;
  const Pages one = {bytes, 1, pages->page_size, pages->usable};
  const int64_t known = plan->key.rows ? flamecore_rows_count(plan->key.rows) : 0;
  make_columns(&alone, bytes[3] << 8 | bytes[4]);
  const int64_t rows = decode(&alone, &one);
  require(rows == alone.room && *row + rows <= plan->room, "a page alone has as many rows");
  for (int32_t k = 0; k < plan->wanted && rows; k++)
    if (plan->columns[k].out)
      require(!memcmp(alone.columns[k].out, plan->columns[k].out + *row, 8 * (size_t)rows),
              "a page alone has the same values");
  if (plan->key.rows && rows) {
    require(!memcmp(alone.key.number, plan->key.number + *row, 4 * (size_t)rows), "the same keys");
    require(flamecore_rows_count(plan->key.rows) == known, "and no others");
  }
  *row += rows;
  free_columns(&alone);
}

static int64_t number_before(const Plan* plan, int32_t* number) {
  int64_t row[WIDEST] = {0};
  for (int32_t i = 0; plan->key.rows && i < BEFORE; i++) {
    row[0] = i % 2;
    number[i] = number_row(plan->key.rows, row);
  }
  return plan->key.rows ? flamecore_rows_count(plan->key.rows) : 0;
}

static void check_forgotten(const Plan* plan, int64_t known, const int32_t* number) {
  int32_t again[BEFORE] = {0};
  if (!plan->key.rows) return;
  require(!flamecore_rows_truncate(plan->key.rows, known), "keys are forgotten");
  require(flamecore_rows_count(plan->key.rows) == known, "as many as there were");
  number_before(plan, again);
  require(flamecore_rows_count(plan->key.rows) == known, "those before are known");
  require(!memcmp(number, again, sizeof again), "by their numbers");
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in = {data, size};
  Plan plan = take_plan(&in);
  const Pages pages = take_pages(&in);
  make_columns(&plan, room_for(&pages, &in));
  int32_t number[BEFORE] = {0};
  const int64_t known = number_before(&plan, number);
  const int64_t rows = decode(&plan, &pages);
  if (rows < 0) {
    check_forgotten(&plan, known, number);
  } else {
    check_numbers(&plan, rows);
    int64_t row = 0;
    for (int64_t i = 0; i < pages.count; i++) {
      check_room(&pages, i);
      check_page_alone(&plan, &pages, i, &row);
    }
  }
  free_columns(&plan);
  if (plan.key.rows) flamecore_rows_free(plan.key.rows);
  flamecore_texts_free(plan.texts);
  free((void*)pages.bytes);
  return 0;
}
