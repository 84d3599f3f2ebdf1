// Reads extended payloads: binary data of a program, which describes them by schemas and
// enumerations. The rules are those of nvtx3/nvToolsExtPayload.h.
#pragma once
#include <string>
#include <vector>

#include "nvtx/shared/event.h"
#include "nvtx/shared/nvtx3.h"

namespace flame::nvtx {

// Newer headers have these.
constexpr uint64_t kTypeRangeId = 67;

struct Entry {
  uint64_t flags;
  uint64_t type;    // predefined, or the id of a schema or an enumeration
  uint64_t detail;  // a length, or the index of the entry or payload that has it
  uint64_t offset;
  uint64_t time_domain;  // of a timestamp; 0: not said
  std::string name;

  bool has(uint64_t flag) const { return (flags & flag) == flag; }
  uint64_t array() const { return flags & (7 << 4); }
};

struct EnumValue {
  std::string name;
  uint64_t value;
  bool is_flag;
};

struct Schema {
  uint64_t type = 0;   // NVTX_PAYLOAD_SCHEMA_TYPE_*; 0: an enumeration
  uint64_t flags = 0;
  uint64_t size = 0;   // bytes; 0: that depends on the data
  uint64_t align = 1;
  uint64_t pack = 0;   // 0: not packed
  std::vector<Entry> entries;
  std::vector<EnumValue> values;

  bool is_enum() const { return type == 0; }
  bool is_union() const { return type >= NVTX_PAYLOAD_SCHEMA_TYPE_UNION; }
  bool is_static() const { return type == NVTX_PAYLOAD_SCHEMA_TYPE_STATIC; }
};

// nvtx/payload/schema.cpp

uint64_t register_schema(uint32_t domain, const nvtxPayloadSchemaAttr_t* attributes);  // 0: refused
uint64_t register_enum(uint32_t domain, const nvtxPayloadEnumAttr_t* attributes);
uint64_t new_dynamic_id();
const Schema* schema_of(uint32_t domain, uint64_t id);  // null: unknown
uint64_t element_size(uint32_t domain, uint64_t type);  // 0: unknown, or that depends on the data
uint64_t element_align(uint32_t domain, uint64_t type);
uint64_t place_of(const Schema& schema, size_t index, uint64_t cursor, uint64_t align);

// nvtx/payload/scalar.cpp: values of predefined types

bool is_string(uint64_t type);
bool is_character(uint64_t type);
bool is_pointer(const Entry& entry);  // what is in place is the address of the value
size_t scalar_size(uint64_t type);    // 0: not such a type
size_t unit_size(uint64_t type);      // of a character of a string
bool integer(uint64_t type, const void* data, uint64_t* value);  // sign extended
void append_scalar(std::string* json, uint64_t type, const void* data);
void append_text(std::string* json, uint64_t type, const void* units, size_t bytes);
std::string utf8(uint64_t type, const void* units, size_t bytes);  // up to a zero
void append_hex(std::string* json, const void* data, size_t size);

// nvtx/payload/json.cpp

constexpr size_t kMaxJson = 2048;  // of one payload; a bit more, to close what is open
void append_json(std::string* json, std::string_view text);
void append_number(std::string* json, uint64_t value);
void append_number(std::string* json, int64_t value);
void append_number(std::string* json, double value);
void append_number(std::string* json, float value);
void append_number(std::string* json, unsigned __int128 value, bool is_signed);

// nvtx/payload/payload.cpp

struct Times {  // of a deferred event
  int64_t begin = 0, end = 0;
  uint64_t begin_domain = 0, end_domain = 0;
  bool has_begin = false, has_end = false;
  uint64_t flags = 0;  // of the schema that has them
};

// Fills in what the payloads say: their values as JSON, and message, category and color.
void read_payloads(uint32_t domain, const nvtxPayloadData_t* payloads, size_t count, Event* event,
                   Times* times = nullptr);

}  // namespace flame::nvtx
