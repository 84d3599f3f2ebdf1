// Calls of NVTX as programs make them, right and wrong: the first argument says which. It prints
// what it was given back, one number a line.
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

void print(long long value) { printf("%lld\n", value); }

nvtxEventAttributes_t attributes(const char* message) {
  nvtxEventAttributes_t event = {};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = message;
  return event;
}

void push(nvtxDomainHandle_t domain, const char* message) {
  const nvtxEventAttributes_t event = attributes(message);
  print(nvtxDomainRangePushEx(domain, &event));
}

void every() {
  nvtxInitialize(nullptr);
  nvtxEventAttributes_t event = attributes("ex");
  event.category = 7;
  event.colorType = NVTX_COLOR_ARGB;
  event.color = 0xff336699;
  nvtxMarkEx(&event);
  nvtxMarkA("a");
  nvtxMarkW(L"wide: \u00e9\u4e16\U0001f525");
  print(nvtxRangePushEx(&event));
  print(nvtxRangePushA("a"));
  print(nvtxRangePushW(L"w"));
  for (int i = 0; i < 3; ++i) print(nvtxRangePop());
  const nvtxRangeId_t ids[] = {nvtxRangeStartEx(&event), nvtxRangeStartA("a"),
                               nvtxRangeStartW(L"w")};
  for (nvtxRangeId_t id : ids) nvtxRangeEnd(id);
  const nvtxDomainHandle_t domain = nvtxDomainCreateW(L"caf\u00e9");
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = nvtxDomainRegisterStringW(domain, L"registered \u00fc");
  nvtxDomainMarkEx(domain, &event);
  print(nvtxDomainRangePushEx(domain, &event));
  event.message.registered = nvtxDomainRegisterStringA(domain, "registered");
  nvtxDomainRangeEnd(domain, nvtxDomainRangeStartEx(domain, &event));
  print(nvtxDomainRangePop(domain));
  nvtxResourceAttributes_t resource = {};
  const nvtxResourceHandle_t handle = nvtxDomainResourceCreate(domain, &resource);
  print(handle != nullptr);
  nvtxDomainResourceDestroy(handle);
  nvtxDomainDestroy(domain);
}

void payload(int32_t type, uint64_t bits) {
  nvtxEventAttributes_t event = attributes("payload");
  event.payloadType = type;
  event.payload.ullValue = bits;
  nvtxMarkEx(&event);
}

void payloads() {
  for (int32_t type = 0; type < 9; ++type) payload(type, 0xfedcba9876543210);
  payload(-1, 1);
  payload(0x10001, 1);
}

void names() {
  nvtxNameOsThreadA(1234, "reader");
  nvtxNameOsThreadW(1235, L"\u00e9crivain");
  nvtxNameCategoryA(3, "three");
  nvtxNameCategoryW(4, L"four");
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
  nvtxDomainNameCategoryA(domain, 3, "drei");
  nvtxDomainNameCategoryW(domain, 4, L"vier");
  nvtxNameCuDeviceA(0, "first");
  nvtxNameCuDeviceW(1, L"second");
  nvtxNameCudaDeviceA(2, "third");
  nvtxNameCudaDeviceW(3, L"fourth");
  nvtxNameCuStreamA(nullptr, "a stream");
  nvtxNameCudaStreamA(nullptr, "a stream");
  nvtxNameCuContextA(nullptr, "a context");
}

// The structure as an older NVTX, or a program that forgets, fills it in.
void sizes() {
  for (uint16_t size = 0; size <= NVTX_EVENT_ATTRIB_STRUCT_SIZE; ++size) {
    nvtxEventAttributes_t event = attributes("whole");
    event.size = size;
    event.category = 9;
    event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    event.payload.llValue = size;
    event.colorType = NVTX_COLOR_ARGB;
    event.color = 5;
    auto* exact = static_cast<nvtxEventAttributes_t*>(malloc(size < 4 ? 4 : size));
    memcpy(exact, &event, size < 4 ? 4 : size);
    nvtxMarkEx(exact);
    free(exact);
  }
}

void nothing() {
  nvtxMarkEx(nullptr);
  nvtxMarkA(nullptr);
  nvtxMarkW(nullptr);
  print(nvtxRangePushEx(nullptr));
  print(nvtxRangePushA(nullptr));
  print(nvtxRangePushW(nullptr));
  for (int i = 0; i < 3; ++i) print(nvtxRangePop());
  nvtxRangeEnd(nvtxRangeStartA(nullptr));
  nvtxNameCategoryA(1, nullptr);
  nvtxNameOsThreadA(1, nullptr);
  print(nvtxDomainCreateA(nullptr) != nullptr);
  nvtxDomainCreateW(nullptr);
  nvtxEventAttributes_t event = attributes(nullptr);
  nvtxMarkEx(&event);
  event.messageType = NVTX_MESSAGE_TYPE_UNICODE;
  nvtxMarkEx(&event);
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  nvtxMarkEx(&event);
  event.message.registered = nvtxDomainRegisterStringA(nullptr, nullptr);
  nvtxMarkEx(&event);
  event.messageType = 99;
  event.message.ascii = reinterpret_cast<const char*>(8);
  nvtxMarkEx(&event);
  event.messageType = NVTX_MESSAGE_UNKNOWN;
  nvtxMarkEx(&event);
  nvtxDomainDestroy(nullptr);
}

void unbalanced() {
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("D");
  print(nvtxRangePop());
  print(nvtxDomainRangePop(domain));
  print(nvtxRangePushA("a"));
  print(nvtxDomainRangePop(domain));
  print(nvtxRangePop());
  print(nvtxRangePop());
  nvtxRangeEnd(0);
  nvtxRangeEnd(123456789);
  const nvtxRangeId_t id = nvtxRangeStartA("once");
  nvtxRangeEnd(id);
  nvtxRangeEnd(id);
  nvtxRangeStartA("never ended");
}

void interleaved() {
  const nvtxDomainHandle_t one = nvtxDomainCreateA("one"), two = nvtxDomainCreateA("two");
  push(one, "a");
  push(two, "b");
  push(one, "c");
  push(nullptr, "d");
  print(nvtxDomainRangePop(two));
  print(nvtxDomainRangePop(one));
  push(two, "e");
  print(nvtxDomainRangePop(one));
  print(nvtxRangePop());
  print(nvtxDomainRangePop(two));
}

void deep(int depth) {
  for (int i = 0; i < depth; ++i) print(nvtxRangePushA(std::to_string(i).c_str()));
  for (int i = 0; i < depth; ++i) print(nvtxRangePop());
  nvtxRangePushA("again");
  nvtxRangePop();
}

}  // namespace

int main(int, char** arguments) {
  const std::string which = arguments[1];
  if (which == "every") every();
  if (which == "payloads") payloads();
  if (which == "names") names();
  if (which == "sizes") sizes();
  if (which == "nothing") nothing();
  if (which == "unbalanced") unbalanced();
  if (which == "interleaved") interleaved();
  if (which == "deep") deep(atoi(arguments[2]));
}
