// Reads what a program says of a range, a mark or its end from NVTX's attributes, keeps and writes
// it.
#include <cstring>

#include "flame.h"
#include "nvtx/nvtx.h"
#include "nvtx/payload/payload.h"
#include "nvtx/shared/names.h"
#include "nvtx/shared/utf8.h"

namespace flame::nvtx {
namespace {

// One byte more than is kept, so that a text that is cut can be told from one that just fits.
std::string_view bounded(const char* text) { return {text, strnlen(text, kMaxText + 1)}; }

// Bytes of the structure that hold whole fields: a type without its value is no use.
size_t whole_fields(size_t size) {
  constexpr size_t ends[] = {sizeof(nvtxEventAttributes_t),
                             offsetof(nvtxEventAttributes_t, messageType),
                             offsetof(nvtxEventAttributes_t, payloadType),
                             offsetof(nvtxEventAttributes_t, colorType),
                             offsetof(nvtxEventAttributes_t, category)};
  for (size_t end : ends)
    if (size >= end) return end;
  return 0;
}

void set_message(const nvtxEventAttributes_t& attributes, Event* event) {
  const nvtxMessageValue_t& message = attributes.message;
  switch (attributes.messageType) {
    case NVTX_MESSAGE_TYPE_ASCII: return read_message(message.ascii, event);
    case NVTX_MESSAGE_TYPE_UNICODE: return read_message(message.unicode, event);
    case NVTX_MESSAGE_TYPE_REGISTERED:
      event->registered = message.registered;
      if (message.registered) event->message = message.registered->value;
  }
}

// The rest of the union is not the program's: only the bits of its type are taken.
uint64_t payload_bits(const nvtxEventAttributes_t& attributes) {
  switch (attributes.payloadType) {
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT64:
    case NVTX_PAYLOAD_TYPE_INT64:
    case NVTX_PAYLOAD_TYPE_DOUBLE: return attributes.payload.ullValue;
    default: return attributes.payload.uiValue;
  }
}

void set_payload(uint32_t domain, const nvtxEventAttributes_t& attributes, Event* event) {
  const int32_t type = attributes.payloadType;
  if (type == NVTX_PAYLOAD_TYPE_EXT) {
    const auto* payloads = reinterpret_cast<const nvtxPayloadData_t*>(attributes.payload.ullValue);
    if (attributes.reserved0 > 0)
      read_payloads(domain, payloads, static_cast<size_t>(attributes.reserved0), event);
  } else if (type > NVTX_PAYLOAD_UNKNOWN && type <= NVTX_PAYLOAD_TYPE_FLOAT) {
    event->payload_type = static_cast<uint16_t>(type);
    event->payload = payload_bits(attributes);
  }
}

// Two objects are one; of an entry that both have, the later value counts.
std::string merged(const std::string& first, const std::string& second) {
  const bool objects = first.size() > 2 && first[0] == '{' && second.size() > 2 && second[0] == '{';
  if (objects) return first.substr(0, first.size() - 1) + "," + second.substr(1);
  return "[" + first + "," + second + "]";
}

}  // namespace

void read_message(const char* message, Event* event) {
  if (message) event->message = bounded(message);
}

void read_message(const wchar_t* message, Event* event) {
  if (!message) return;
  event->made = utf8(message);
  event->message = event->made;
}

void read_attributes(uint32_t domain, const nvtxEventAttributes_t* given, Event* event) {
  if (!given) return;
  nvtxEventAttributes_t known;
  const size_t size = whole_fields(given->size);
  if (size < sizeof known) {  // an older or a broken program
    memset(&known, 0, sizeof known);
    memcpy(&known, given, size);
    given = &known;
  }
  event->category = given->category;
  if (given->colorType == NVTX_COLOR_ARGB) event->color = given->color;
  set_message(*given, event);
  set_payload(domain, *given, event);
}

void remember(Span* span, uint32_t domain, const Event& event) {
  span->registered = event.registered;
  span->message.assign(event.registered ? std::string_view() : event.message);
  span->json.assign(event.json);
  span->payload = event.payload;
  span->payload_type = event.payload_type;
  span->domain = domain;
  span->category = event.category;
  span->color = event.color;
}

void extend(Span* span, const Event& event) {
  if (!event.message.empty()) {
    span->registered = event.registered;
    span->message.assign(event.message);
  }
  if (event.color) span->color = event.color;
  if (event.category) span->category = event.category;
  if (!event.json.empty())
    span->json = span->json.empty() ? event.json : merged(span->json, event.json);
  intern(span);
}

void intern(Span* span) {
  const uint32_t message = span->registered ? text_of(*span->registered) : text(span->message);
  span->name = range_name(message, span->domain, span->category);
  span->payload_text = span->json.empty() ? 0 : text(span->json);
  span->generation = generation();
}

void write(const Span& span, uint64_t end, RangeKind kind, uint32_t node,
           uint32_t end_tid) {
  Range record{};
  record.start = span.start;
  record.end = end;
  record.payload = span.payload;
  record.tid = span.tid;
  record.end_tid = end_tid;
  record.name = span.name;
  record.node = node;
  record.color = span.color;
  record.payload_text = span.payload_text;
  record.payload_type = span.payload_type;
  record.kind = kind;
  put(record);
}

}  // namespace flame::nvtx
