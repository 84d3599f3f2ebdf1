// Numbers of texts and of rows, orders, and joins: as by a look at everything that came before.
#include "flamecore.h"
#include "input.h"

#define MOST 64
#define LONGEST 80
#define WIDEST 4

typedef struct {
  uint8_t bytes[LONGEST];
  int64_t size;
} Text;

static void append(Text* text, const void* bytes, size_t size) {
  if (text->size + (int64_t)size > LONGEST) return;
  memcpy(text->bytes + text->size, bytes, size);
  text->size += (int64_t)size;
}

// Of single bytes and of the words that running numbers are made of.
static void take_text(Input* in, Text* text) {
  static const char* const kWords[] = {", seq = ",   ", op_id = ", ", stashed seq = ", "exec",
                                       ", sizes = ", "[(1,0)]",    ", input_op_ids = [", ", "};
  text->size = 0;
  for (uint32_t left = below(in, 12); left; left--) {
    const uint8_t byte = take_byte(in);
    if (byte < 128)
      append(text, &byte, 1);
    else
      append(text, kWords[byte % 8], strlen(kWords[byte % 8]));
  }
}

static int32_t number_exactly(Texts* texts, const Text* text) {
  uint8_t* exact = memory(text->size, 1);
  if (text->size) memcpy(exact, text->bytes, (size_t)text->size);
  const int32_t number = flamecore_texts_number(texts, exact, text->size);
  free(exact);
  require(number >= 0 && number < flamecore_texts_count(texts), "a text's number is one of them");
  return number;
}

static int same(const Text* one, const Text* other) {
  return one->size == other->size && !memcmp(one->bytes, other->bytes, (size_t)one->size);
}

static Text read_text(const Texts* texts, int32_t number) {
  Text text = {.size = 0};
  const uint8_t* place;
  const int64_t size = flamecore_texts_get(texts, number, &place);
  require(size <= LONGEST, "a text does not grow");
  append(&text, place, (size_t)size);
  return text;
}

static int is_left_of(const Text* part, const Text* whole) {
  int64_t at = 0;
  for (int64_t i = 0; i < whole->size && at < part->size; i++)
    at += whole->bytes[i] == part->bytes[at];
  return at == part->size;
}

static void check_texts(Input* in) {
  static const char kNothing[] = "\0", kExec[] = "exec\0";
  const char* kept[] = {NULL, kNothing, kExec};
  const char* strip = kept[below(in, 3)];
  Texts *texts = flamecore_texts_new(in->left, strip), *again = flamecore_texts_new(1, strip);
  static Text given[MOST];
  int32_t number[MOST];
  const int32_t count = 1 + (int32_t)below(in, MOST);
  for (int32_t i = 0; i < count; i++) {
    take_text(in, &given[i]);
    const int64_t known = flamecore_texts_count(texts);
    number[i] = number_exactly(texts, &given[i]);
    const Text read = read_text(texts, number[i]);
    require(strip ? is_left_of(&read, &given[i]) : same(&read, &given[i]), "texts read back");
    if (strip == kExec && given[i].size >= 4 && !memcmp(given[i].bytes, "exec", 4))
      require(same(&read, &given[i]), "a text that is kept is kept");
    require(flamecore_texts_count(texts) == known + (number[i] == known), "new ones come last");
    for (int32_t k = 0; k < i; k++) {
      const Text other = read_text(texts, number[k]);
      require((number[k] == number[i]) == same(&other, &read), "a number is a text");
    }
    const Text stripped = read_text(again, number_exactly(again, &read));
    require(same(&stripped, &read), "what is left has nothing to leave out");
  }
  flamecore_texts_free(texts);
  flamecore_texts_free(again);
}

typedef struct {
  void* column[WIDEST];
  int32_t size[WIDEST];
  int32_t width;
  int64_t count;
} Table;

static int64_t value_of(const Table* table, int32_t column, int64_t row) {
  if (table->size[column] == 8) return ((int64_t*)table->column[column])[row];
  if (table->size[column] == 4) return ((int32_t*)table->column[column])[row];
  return ((uint8_t*)table->column[column])[row];
}

static void set_value(Table* table, int32_t column, int64_t row, int64_t value) {
  if (table->size[column] == 8)
    ((int64_t*)table->column[column])[row] = value;
  else if (table->size[column] == 4)
    ((int32_t*)table->column[column])[row] = (int32_t)value;
  else
    ((uint8_t*)table->column[column])[row] = (uint8_t)value;
}

static Table take_table(Input* in) {
  static const int32_t kSizes[] = {1, 4, 8};
  Table table = {.width = 1 + (int32_t)below(in, WIDEST), .count = 1 + below(in, MOST)};
  for (int32_t k = 0; k < table.width; k++) {
    table.size[k] = kSizes[below(in, 3)];
    table.column[k] = memory(table.count, (size_t)table.size[k]);
  }
  for (int64_t i = 0; i < table.count; i++) {
    const uint32_t copied = below(in, 3);
    for (int32_t k = 0; k < table.width; k++)
      set_value(&table, k, i, copied && i ? value_of(&table, k, i / 2) : take_number(in));
  }
  return table;
}

static int64_t same_before(const Table* table, int64_t row) {
  for (int64_t i = 0; i < row; i++) {
    int32_t k = 0;
    while (k < table->width && value_of(table, k, i) == value_of(table, k, row)) k++;
    if (k == table->width) return i;
  }
  return -1;
}

static void check_values(const Rows* rows, const Table* table, int64_t row, int32_t number) {
  const int64_t* values = flamecore_rows_values(rows) + (int64_t)number * table->width;
  for (int32_t k = 0; k < table->width; k++)
    require(values[k] == value_of(table, k, row), "rows read back");
}

static void check_numbers(const Table* table, Rows* rows, const int32_t* number,
                          const int64_t* first, int64_t found) {
  int64_t known = 0;
  for (int64_t i = 0; i < table->count; i++) {
    const int64_t before = same_before(table, i);
    require(number[i] == (before < 0 ? known : number[before]), "a number is a row");
    if (before < 0) require(first[known++] == i, "the first row of a number");
    check_values(rows, table, i, number[i]);
  }
  require(known == found && known == flamecore_rows_count(rows), "no row is left out");
}

static void check_truncated(Input* in, const Table* table, Rows* rows, const int32_t* number) {
  const int64_t count = flamecore_rows_count(rows), left = below(in, (uint32_t)count + 1);
  int32_t* again = memory(table->count, sizeof *again);
  require(!flamecore_rows_truncate(rows, left), "numbers are forgotten");
  require(flamecore_rows_count(rows) == left, "as many as asked for");
  const void* const* columns = (const void* const*)table->column;
  require(flamecore_rows_number(rows, columns, table->size, table->count, INT32_MAX, again, NULL) ==
              count,
          "those that are left are known");
  for (int64_t i = 0; i < table->count; i++)
    if (number[i] < left) require(again[i] == number[i], "numbers that are left are as before");
  free(again);
}

// Negative where row `one` comes first by the last column that differs.
static int compare(const Table* table, int64_t one, int64_t other) {
  for (int32_t k = table->width - 1; k >= 0; k--) {
    const int64_t left = value_of(table, k, one), right = value_of(table, k, other);
    if (left != right) return left < right ? -1 : 1;
  }
  return one < other ? -1 : one > other;
}

static void check_order(const Table* table) {
  int64_t* order = memory(table->count, sizeof *order);
  const void* const* columns = (const void* const*)table->column;
  require(flamecore_order(columns, table->size, table->width, table->count, order) == table->count,
          "all rows are ordered");
  for (int64_t i = 0; i < table->count; i++)
    require(order[i] >= 0 && order[i] < table->count, "an order is of rows");
  for (int64_t i = 1; i < table->count; i++)
    require(compare(table, order[i - 1], order[i]) < 0, "no row comes before its time");
  free(order);
}

static void check_rows(Input* in) {
  Table table = take_table(in);
  check_order(&table);
  Rows* rows = flamecore_rows_new(table.width, in->left);
  int32_t* number = memory(table.count, sizeof *number);
  const int64_t limit = 1 + below(in, MOST);
  int64_t* first = memory(limit, sizeof *first);
  const void* const* columns = (const void* const*)table.column;
  const int64_t found =
      flamecore_rows_number(rows, columns, table.size, table.count, limit, number, first);
  if (found >= 0) {
    require(found <= limit, "there are no more than asked for");
    check_numbers(&table, rows, number, first, found);
    check_truncated(in, &table, rows, number);
  } else {
    int64_t different = 0;
    for (int64_t i = 0; i < table.count; i++) different += same_before(&table, i) < 0;
    require(found == REFUSED && different > limit, "only too many different ones are refused");
  }
  flamecore_rows_free(rows);
  free(number);
  free(first);
  for (int32_t k = 0; k < table.width; k++) free(table.column[k]);
}

typedef struct {
  int32_t* process;
  int64_t* id;
  int64_t count;
} GivenLaunches;

static GivenLaunches take_launches(Input* in) {
  const int64_t count = below(in, MOST + 1);
  GivenLaunches made = {memory(count, sizeof *made.process), memory(count, sizeof *made.id), count};
  for (int64_t i = 0; i < made.count; i++) {
    made.process[i] = (int32_t)below(in, 4) - 1;
    made.id[i] = take_number(in);
  }
  return made;
}

// The row of the call with these ids: the first from `begin` on, -1 for none.
static int64_t call_of(const GivenLaunches* calls, int64_t begin, int32_t process, int64_t id) {
  for (int64_t i = begin; process >= 0 && id > 0 && i < calls->count; i++)
    if (calls->process[i] == process && calls->id[i] == id) return i;
  return -1;
}

static void check_join(Input* in) {
  const GivenLaunches calls = take_launches(in), wanted = take_launches(in);
  int64_t* call = memory(wanted.count, sizeof *call);
  int twice = 0;
  for (int64_t i = 0; i < calls.count; i++)
    twice |= call_of(&calls, i + 1, calls.process[i], calls.id[i]) >= 0;
  const int64_t joined = flamecore_join(calls.process, calls.id, calls.count, wanted.process,
                                        wanted.id, wanted.count, call);
  require(joined == (twice ? REFUSED : wanted.count), "refused where two calls have the same ids");
  for (int64_t i = 0; !twice && i < wanted.count; i++)
    require(call[i] == call_of(&calls, 0, wanted.process[i], wanted.id[i]), "the call of its ids");
  free(call);
  free(calls.process);
  free(calls.id);
  free(wanted.process);
  free(wanted.id);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in = {data, size};
  switch (below(&in, 3)) {
    case 0: check_texts(&in); break;
    case 1: check_rows(&in); break;
    default: check_join(&in);
  }
  return 0;
}
