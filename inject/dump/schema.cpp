// Writes the layout of all records as JSON, from the same lists as the structs.
#include "dump/schema.h"

#include <cstdarg>
#include <cstdio>

#include "dump/dump.h"

namespace flame {
namespace {

struct Out {
  char* place;
  uint32_t room, size;
  bool first;
};

__attribute__((format(printf, 2, 3))) void print(Out* out, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int size = vsnprintf(out->place + out->size, out->room - out->size, format, arguments);
  va_end(arguments);
  if (size > 0 && out->size + uint32_t(size) < out->room) out->size += uint32_t(size);
}

void field(Out* out, const char* name, size_t size) {
  print(out, "%s[\"%s\",\"u%zu\"]", out->first ? "" : ",", name, size);
  out->first = false;
}

void begin_record(Out* out, const char* key, Type type, size_t size) {
  print(out, ",\"%s\":{\"type\":%u,\"size\":%zu,\"fields\":[", key, type, size);
  out->first = true;
}

}  // namespace

uint32_t write_schema(char* place, uint32_t room) {
  Out out = {place, room, 0, true};
  print(&out, "{\"format\":\"flame-dump\",\"version\":%u,\"records\":{", kVersion);
  print(&out, "\"text\":{\"type\":%u,\"size\":0,\"fields\":[]}", kText);
#define FLAME_FIELD(type, name) field(&out, #name, sizeof(type));
#define FLAME_RECORD(Struct, key, FIELDS, size) \
  begin_record(&out, #key, Struct::kType, size); \
  FIELDS(FLAME_FIELD)                           \
  print(&out, "]}");
  FLAME_RECORDS(FLAME_RECORD)
#undef FLAME_RECORD
#undef FLAME_FIELD
  print(&out, "}}");
  return out.size;
}

}  // namespace flame
