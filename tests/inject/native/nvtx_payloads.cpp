// Marks and ranges with extended payloads of all kinds. A mark is named by what is in it.
#include <nvtx3/nvToolsExtPayload.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Entries = std::vector<nvtxPayloadSchemaEntry_t>;
nvtxDomainHandle_t domain;

uint64_t schema(const Entries& entries, uint64_t type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
                uint64_t size = 0, uint64_t pack = 0, uint64_t id = 0, uint64_t flags = 0) {
  nvtxPayloadSchemaAttr_t given = {};
  given.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                    NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                    NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_FLAGS;
  if (size) given.fieldMask |= NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE;
  if (pack) given.fieldMask |= NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ALIGNMENT;
  if (id) given.fieldMask |= NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
  given.type = type;
  given.flags = flags;
  given.entries = entries.data();
  given.numEntries = entries.size();
  given.payloadStaticSize = size;
  given.packAlign = pack;
  given.schemaId = id;
  return nvtxPayloadSchemaRegister(domain, &given);
}

nvtxPayloadSchemaEntry_t entry(uint64_t type, const char* name, uint64_t flags = 0,
                               uint64_t detail = 0, uint64_t offset = 0) {
  return {flags, type, name, nullptr, detail, offset, nullptr, nullptr};
}

void mark(const char* name, const std::vector<nvtxPayloadData_t>& payloads) {
  nvtxEventAttributes_t event = {};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = name;
  event.payloadType = NVTX_PAYLOAD_TYPE_EXT;
  event.reserved0 = static_cast<int32_t>(payloads.size());
  event.payload.ullValue = NVTX_POINTER_AS_PAYLOAD_ULLVALUE(payloads.data());
  nvtxDomainMarkEx(domain, &event);
}

template <class Value>
void mark_one(const char* name, uint64_t type, const Value& value) {
  mark(name, {{type, sizeof value, &value}});
}

#define PLAIN(type, value) mark_one(#type, NVTX_PAYLOAD_ENTRY_TYPE_##type, value)

void plain() {
  PLAIN(CHAR, 'c');
  PLAIN(UCHAR, uint8_t(200));
  PLAIN(SHORT, int16_t(-3));
  PLAIN(USHORT, uint16_t(65535));
  PLAIN(INT, -5);
  PLAIN(UINT, 4000000000u);
  PLAIN(LONG, -7l);
  PLAIN(ULONGLONG, 18446744073709551615ull);
  PLAIN(INT8, int8_t(-8));
  PLAIN(UINT8, uint8_t(8));
  PLAIN(INT64, int64_t(-64));
  PLAIN(FLOAT, 0.1f);
  PLAIN(DOUBLE, 0.1);
  PLAIN(LONGDOUBLE, 0.5l);
  PLAIN(SIZE, size_t(22));
  PLAIN(ADDRESS, uint64_t(0xdeadbeef));
  PLAIN(WCHAR, L'\u00e9');
  PLAIN(CHAR16, u'\u4e16');
  PLAIN(CHAR32, U'\U0001f525');
  PLAIN(BYTE, uint8_t(0xab));
  PLAIN(INT128, -(__int128(1) << 100));
  PLAIN(UINT128, (unsigned __int128)(1) << 127);
  PLAIN(FLOAT16, uint16_t(0xc500));
  PLAIN(BF16, uint16_t(0x3fc0));
  PLAIN(TF32, 1.5f);
  PLAIN(FLOAT32, 2.5f);
  const unsigned __int128 quad = (unsigned __int128)(0x4000921fb54442d1) << 64;  // pi, nearly
  PLAIN(FLOAT128, quad);
  PLAIN(PID_UINT32, 17u);
  PLAIN(TID_UINT64, uint64_t(18));
  PLAIN(NVTX_REGISTERED_STRING_HANDLE, nvtxDomainRegisterStringA(domain, "known"));
  PLAIN(CSTRING, "no zero needed");
  mark_one("numbers", NVTX_PAYLOAD_ENTRY_TYPE_INT16, "\1\0\2\0\3");
  mark_one("raw", NVTX_TYPE_PAYLOAD_SCHEMA_RAW, "\x01\x7f\xff");
  const double strange[] = {0.0 / 0.0, 1 / 0.0, -1 / 0.0};
  mark_one("strange", NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE, strange);
  mark("own size", {{NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, SIZE_MAX, "to its zero"}});
  mark("quoted", {{NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, SIZE_MAX, "\"\\\n\x01"}});
}

struct Inner {
  int16_t x;
  double y;
};

struct Outer {
  char letter;
  Inner inner;
  int32_t numbers[3];
  char text[8];
  const char* pointer;
  Inner inners[2];
  uint8_t kind;
  uint8_t flags;
  char32_t wide[4];
};

uint64_t enumeration(bool flags) {
  const nvtxPayloadEnum_t kinds[] = {{"copy", 1, 0}, {"set", 2, 0}};
  const nvtxPayloadEnum_t bits[] = {{"read", 1, 1}, {"write", 2, 1}};
  nvtxPayloadEnumAttr_t given = {};
  given.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES |
                    NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE;
  given.entries = flags ? bits : kinds;
  given.numEntries = 2;
  given.sizeOfEnum = 1;
  return nvtxPayloadEnumRegister(domain, &given);
}

uint64_t inner_schema() {
  return schema(
      {entry(NVTX_PAYLOAD_ENTRY_TYPE_INT16, "x"), entry(NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE, "y")});
}

// Nothing but the order is told: the offsets follow from the rules of alignment.
void structure() {
  const uint64_t inner = inner_schema();
  const uint64_t outer = schema({
      entry(NVTX_PAYLOAD_ENTRY_TYPE_CHAR, "letter"), entry(inner, "inner"),
      entry(NVTX_PAYLOAD_ENTRY_TYPE_INT32, "numbers", NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE, 3),
      entry(NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "text", 0, 8),
      entry(NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "pointer",
            NVTX_PAYLOAD_ENTRY_FLAG_POINTER | NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_ZERO_TERMINATED |
                NVTX_PAYLOAD_ENTRY_FLAG_DEEP_COPY),
      entry(inner, "inners", NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE, 2),
      entry(enumeration(false), "kind"), entry(enumeration(true), "flags"),
      entry(NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF32, "wide", 0, 4)});
  const Outer value = {
      'l', {1, 2.5}, {1, 2, 3}, "text", "far away", {{3, 4}, {5, 6}}, 2, 3, U"h\u00e9"};
  mark_one("structure", outer, value);
  mark("half of it", {{outer, offsetof(Outer, numbers) + 4, &value}});
  mark("size by schema", {{outer, SIZE_MAX, &value}});
  Outer odd = value;
  odd.kind = 9;
  odd.flags = 13;
  odd.pointer = reinterpret_cast<const char*>(8);
  mark_one("odd values", outer, odd);
  struct __attribute__((packed)) {
    char a;
    int32_t b;
  } packed = {'p', 77};
  mark_one("packed", schema({entry(NVTX_PAYLOAD_ENTRY_TYPE_CHAR, "a"),
                             entry(NVTX_PAYLOAD_ENTRY_TYPE_INT32, "b")},
                            NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, 5, 1),
           packed);
  mark_one("explicit", schema({entry(NVTX_PAYLOAD_ENTRY_TYPE_INT32, "last", 0, 0, 8),
                               entry(NVTX_PAYLOAD_ENTRY_TYPE_INT32, "hidden",
                                     NVTX_PAYLOAD_ENTRY_FLAG_HIDE, 0, 4),
                               entry(NVTX_PAYLOAD_ENTRY_TYPE_INT32, nullptr, 0, 0, 4)}),
           "\1\0\0\0\2\0\0\0\3\0\0");
  const int32_t far = 5;
  const int32_t* pointer = &far;
  mark_one("pointer", schema({entry(NVTX_PAYLOAD_ENTRY_TYPE_INT32, "value",
                                    NVTX_PAYLOAD_ENTRY_FLAG_POINTER)}),
           pointer);
}

void dynamic() {
  constexpr uint64_t kDynamic = NVTX_PAYLOAD_SCHEMA_TYPE_DYNAMIC;
  const uint64_t by_index = schema(
      {entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT8, "n"),
       entry(NVTX_PAYLOAD_ENTRY_TYPE_INT16, "values",
             NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_INDEX, 0),
       entry(NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "text",
             NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_ZERO_TERMINATED),
       entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT8, "after")},
      kDynamic);
  mark_one("by index", by_index, "\2\0\1\0\2\0text\0\11");
  mark_one("too short", by_index, "\7\0\1\0\2");
  const uint64_t shape = schema(
      {entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT8, "shape", NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE, 2),
       entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT8, "values",
             NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_INDEX, 0)},
      kDynamic);
  mark_one("of two dimensions", shape, "\2\3\1\2\3\4\5\6");
  const uint64_t elsewhere = schema({entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT8, nullptr,
                                           NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_PAYLOAD_INDEX, 1)},
                                    kDynamic);
  const uint64_t length = 3;
  mark("length elsewhere", {{elsewhere, 5, "\1\2\3\4\5"},
                            {NVTX_PAYLOAD_ENTRY_TYPE_UINT64, sizeof length, &length}});
  const char blob[] = "in the blob";
  const char* inside = blob + 3;
  mark("into a blob",
       {{schema({entry(NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, nullptr)}), sizeof inside, &inside},
        {NVTX_TYPE_PAYLOAD_SCHEMA_REFERENCED, 8, blob}});
}

void unions() {
  const uint64_t either = schema({entry(NVTX_PAYLOAD_ENTRY_TYPE_INT32, "whole"),
                                  entry(NVTX_PAYLOAD_ENTRY_TYPE_FLOAT, "real")},
                                 NVTX_PAYLOAD_SCHEMA_TYPE_UNION);
  const uint64_t selected = schema({entry(NVTX_PAYLOAD_ENTRY_TYPE_INT32, "which"),
                                    entry(either, "value", 0, 0)});
  struct {
    int32_t which;
    float value;
  } real = {1, 1.5f}, none = {2, 1.5f};
  mark_one("union", selected, real);
  mark_one("no member", selected, none);
}

void of_events() {
  const uint64_t about = schema(
      {entry(NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "message", NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE, 16),
       entry(NVTX_PAYLOAD_ENTRY_TYPE_CATEGORY, "category"),
       entry(NVTX_PAYLOAD_ENTRY_TYPE_COLOR_ARGB, "color"),
       entry(NVTX_PAYLOAD_ENTRY_TYPE_INT32, "value")});
  struct {
    char message[16];
    uint32_t category, color;
    int32_t value;
  } first = {"from payload", 4, 0xff00ff00, 1}, later = {"renamed", 5, 0xff0000ff, 2};
  const nvtxPayloadData_t begin = {about, sizeof first, &first};
  const nvtxPayloadData_t end = {about, sizeof later, &later};
  const int32_t more = 3;
  const uint64_t one = schema({entry(NVTX_PAYLOAD_ENTRY_TYPE_INT32, "more")});
  const nvtxPayloadData_t extra = {one, 4, &more};
  nvtxMarkPayload(domain, &begin, 1);
  printf("%d\n", nvtxRangePushPayload(domain, &begin, 1));
  printf("%d\n", nvtxRangePopPayload(domain, &extra, 1));
  nvtxRangeEndPayload(domain, nvtxRangeStartPayload(domain, &begin, 1), &end, 1);
  printf("%d\n", nvtxDomainIsEnabled(domain));
}

void deferred() {
  struct {
    nvtxSemanticsHeader_t header;
    uint64_t domain;
  } ours = {{24, 2, 1, nullptr}, NVTX_TIMESTAMP_TYPE_TOOL_PROVIDED},
    unknown = {{24, 2, 1, nullptr}, NVTX_TIMESTAMP_TYPE_CPU_TSC};
  auto begin = entry(NVTX_PAYLOAD_ENTRY_TYPE_INT64, "begin",
                     NVTX_PAYLOAD_ENTRY_FLAG_TIMESTAMP | NVTX_PAYLOAD_ENTRY_FLAG_RANGE_BEGIN);
  auto end = entry(NVTX_PAYLOAD_ENTRY_TYPE_INT64, "end",
                   NVTX_PAYLOAD_ENTRY_FLAG_TIMESTAMP | NVTX_PAYLOAD_ENTRY_FLAG_RANGE_END);
  const auto message = entry(NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "message",
                             NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE, 8);
  const auto value = entry(NVTX_PAYLOAD_ENTRY_TYPE_INT64, "value");
  begin.semantics = end.semantics = &ours.header;
  const uint64_t range = schema({begin, end, message, value}, NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, 0,
                                0, 0, NVTX_PAYLOAD_SCHEMA_FLAG_RANGE_PUSHPOP);
  begin.semantics = end.semantics = &unknown.header;
  const uint64_t foreign = schema({begin, end, message, value}, NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
                                  0, 0, 0, NVTX_PAYLOAD_SCHEMA_FLAG_RANGE_PUSHPOP);
  const int64_t now = nvtxTimestampGet();
  struct Event {
    int64_t begin, end;
    char message[8];
    int64_t value;
  } events[] = {{now, now + 10, "one", 1}, {now + 20, now + 50, "two", 2}};
  printf("%lld\n", static_cast<long long>(now));
  nvtxEventBatch_t batch = {};
  batch.eventSchemaId = range;
  batch.events = events;
  batch.size = sizeof events;
  nvtxEventBatchSubmit(domain, &batch);
  const nvtxPayloadData_t lost = {foreign, sizeof events[0], &events[0]};
  nvtxEventSubmit(domain, &lost, 1);
}

// Payloads that are not what they say.
void misleading() {
  const uint64_t pointer = schema({entry(NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, nullptr)});
  const uint64_t bad = 5;
  mark("into nothing",
       {{pointer, sizeof bad, &bad}, {NVTX_TYPE_PAYLOAD_SCHEMA_REFERENCED, 100, nullptr}});
}

// Behind an offset there is less than the whole.
void flexible() {
  nvtxSemanticsHeader_t* const none = nullptr;
  struct {
    nvtxSemanticsHeader_t header;
    uint64_t domain;
  } ours = {{24, 2, 1, none}, NVTX_TIMESTAMP_TYPE_TOOL_PROVIDED};
  auto at = entry(NVTX_PAYLOAD_ENTRY_TYPE_INT64, "at", NVTX_PAYLOAD_ENTRY_FLAG_TIMESTAMP);
  at.semantics = &ours.header;
  const uint64_t marks = schema({at, entry(NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "text")},
                                NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, 0, 0, 0,
                                NVTX_PAYLOAD_SCHEMA_FLAG_MARK);
  const char blob[] = "flexible, and what is not of it";
  const struct {
    int64_t at;
    const char* text;
  } event = {nvtxTimestampGet(), blob + 4};
  nvtxEventBatch_t batch = {};
  batch.eventSchemaId = marks;
  batch.events = &event;
  batch.size = sizeof event;
  batch.flexData = blob;
  batch.flexDataSize = 8;
  for (const size_t offset : {size_t{2}, size_t{8}, SIZE_MAX}) {
    batch.flexDataOffset = offset;
    nvtxEventBatchSubmit(domain, &batch);
  }
}

// Much more than is kept, in every direction.
void large() {
  const std::vector<int32_t> numbers(100000, 7);
  mark("long list", {{NVTX_PAYLOAD_ENTRY_TYPE_INT32, numbers.size() * 4, numbers.data()}});
  const std::string text(100000, 'x');
  mark("long text", {{NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, text.size(), text.data()}});
  const std::string no_text(100000, '\x80');
  mark("long text of no characters",
       {{NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, no_text.size(), no_text.data()}});
  mark("long blob", {{NVTX_TYPE_PAYLOAD_SCHEMA_RAW, text.size(), text.data()}});
  Entries many;
  std::vector<std::string> labels;
  for (int i = 0; i < 500; ++i) labels.push_back("entry " + std::to_string(i));
  for (const std::string& label : labels)
    many.push_back(entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT8, label.c_str()));
  mark("many entries", {{schema(many), text.size(), text.data()}});
  uint64_t inner = schema({entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT8, "leaf")});
  for (int i = 0; i < 40; ++i) inner = schema({entry(inner, "in")});
  mark("nested", {{inner, 1, "\5"}});
}

}  // namespace

int main() {
  domain = nvtxDomainCreateA("payloads");
  plain();
  structure();
  dynamic();
  unions();
  of_events();
  deferred();
  misleading();
  flexible();
  large();
}
