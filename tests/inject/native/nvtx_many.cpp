// Names far more than anybody reads: domains, strings, categories, schemas, ranges that never end.
// Prints how much memory of its own the process has then, in KiB.
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

long own_memory() {
  char line[256];
  long kib = 0;
  FILE* file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file)) sscanf(line, "RssAnon: %ld", &kib);
  if (file) fclose(file);
  return kib;
}

nvtxEventAttributes_t named(nvtxStringHandle_t name) {
  nvtxEventAttributes_t event = {};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = name;
  return event;
}

std::string numbered(const char* what, int number) { return what + std::to_string(number); }

// The first and the last are used.
void domains(int count) {
  for (int i = 0; i < count; ++i) {
    const nvtxDomainHandle_t domain = nvtxDomainCreateA(numbered("domain ", i).c_str());
    if (i && i < count - 1) continue;
    const nvtxEventAttributes_t event = named(nvtxDomainRegisterStringA(domain, "in a domain"));
    if (nvtxDomainRangePushEx(domain, &event) || nvtxDomainRangePop(domain)) exit(1);
  }
}

void strings(int count) {
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("domain 0");
  for (int i = 0; i < count; ++i) {
    const nvtxStringHandle_t name = nvtxDomainRegisterStringA(domain, numbered("text ", i).c_str());
    const nvtxEventAttributes_t event = named(name);
    if (!i || i == count - 1) nvtxDomainMarkEx(domain, &event);
  }
}

void categories(int count) {
  for (int i = 0; i < count; ++i) nvtxNameCategoryA(i, numbered("category ", i).c_str());
}

void schemas(int count) {
  const std::string label(200, 'x');
  nvtxPayloadSchemaEntry_t entries[200] = {};
  for (auto& entry : entries) {
    entry.type = NVTX_PAYLOAD_ENTRY_TYPE_INT32;
    entry.name = label.c_str();
  }
  nvtxPayloadSchemaAttr_t schema = {};
  schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES;
  schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  schema.entries = entries;
  schema.numEntries = 200;
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("domain 0");
  for (int i = 0; i < count; ++i) nvtxPayloadSchemaRegister(domain, &schema);
}

void open_ranges(int count) {
  std::string text(30000, 'x');
  for (int i = 0; i < count; ++i) {
    memcpy(&text[0], numbered("", i % 10).c_str(), 1);
    nvtxRangeStartA(text.c_str());
    nvtxRangePushA(text.c_str());
  }
}

}  // namespace

int main(int, char** arguments) {
  const std::string what = arguments[1];
  const int count = atoi(arguments[2]);
  nvtxMarkA("begin");
  const long before = own_memory();
  if (what == "domains") domains(count);
  if (what == "strings") strings(count);
  if (what == "categories") categories(count);
  if (what == "schemas") schemas(count);
  if (what == "open ranges") open_ranges(count);
  printf("%ld\n", own_memory() - before);
  return 0;
}
