// Implements what NVTX calls: the entry point, and the functions that it gives to NVTX. A process
// may have several copies of it, one in every library that uses it: all share one state.
#include "nvtx/nvtx.h"

#include "flame.h"
#include "nvtx/deferred.h"
#include "nvtx/shared/lock.h"
#include "nvtx/shared/names.h"

namespace flame::nvtx {
namespace {

// What a message or attributes say.
struct ReadEvent : Event {
  explicit ReadEvent(const char* message) { read_message(message, this); }
  explicit ReadEvent(const wchar_t* message) { read_message(message, this); }
  ReadEvent(uint32_t domain, const nvtxEventAttributes_t* given) {
    read_attributes(domain, given, this);
  }
};

template <class Text>
std::string as_utf8(const Text* text) {
  const ReadEvent event(text);
  return std::string(event.message);
}

template <class... Given>
int push_event(uint32_t domain, Given... given) {
  return safely(NVTX_NO_PUSH_POP_TRACKING, [&] { return push(domain, ReadEvent(given...)); }, 1);
}

template <class... Given>
uint64_t start_event(uint32_t domain, Given... given) {
  return safely(uint64_t(0), [&] { return start_range(domain, ReadEvent(given...)); }, 1);
}

template <class... Given>
void mark_event(uint32_t domain, Given... given) {
  safely(0, [&] { return mark(domain, ReadEvent(given...)), 0; }, 1);
}

int pop_event(uint32_t domain) {
  return safely(NVTX_NO_PUSH_POP_TRACKING, [&] { return pop(domain, nullptr); });
}

template <class Text>
void name_resource(NameKind kind, uint32_t id, const Text* text) {
  safely([&] { name(kind, 0, id, as_utf8(text)); });
}

template <class Text>
void record_category(uint32_t domain, uint32_t category, const Text* text) {
  safely([&] { name_category(domain, category, as_utf8(text)); });
}

// The names below are NVTX's, without its prefix.

void MarkEx(const nvtxEventAttributes_t* given) { mark_event(0, 0, given); }
void MarkA(const char* message) { mark_event(0, message); }
void MarkW(const wchar_t* message) { mark_event(0, message); }
nvtxRangeId_t RangeStartEx(const nvtxEventAttributes_t* given) { return start_event(0, 0, given); }
nvtxRangeId_t RangeStartA(const char* message) { return start_event(0, message); }
nvtxRangeId_t RangeStartW(const wchar_t* message) { return start_event(0, message); }
void RangeEnd(nvtxRangeId_t id) { safely([&] { end_range(id, nullptr); }); }
int RangePushEx(const nvtxEventAttributes_t* given) { return push_event(0, 0, given); }
int RangePushA(const char* message) { return push_event(0, message); }
int RangePushW(const wchar_t* message) { return push_event(0, message); }
int RangePop() { return pop_event(0); }
void NameCategoryA(uint32_t category, const char* text) { record_category(0, category, text); }
void NameCategoryW(uint32_t category, const wchar_t* text) { record_category(0, category, text); }
void NameOsThreadA(uint32_t tid, const char* text) { name_resource(kThread, tid, text); }
void NameOsThreadW(uint32_t tid, const wchar_t* text) { name_resource(kThread, tid, text); }

void DomainMarkEx(const Domain* domain, const nvtxEventAttributes_t* given) {
  mark_event(id_of(domain), id_of(domain), given);
}

nvtxRangeId_t DomainRangeStartEx(const Domain* domain, const nvtxEventAttributes_t* given) {
  return start_event(id_of(domain), id_of(domain), given);
}

void DomainRangeEnd(const Domain*, nvtxRangeId_t id) { RangeEnd(id); }

int DomainRangePushEx(const Domain* domain, const nvtxEventAttributes_t* given) {
  return push_event(id_of(domain), id_of(domain), given);
}

int DomainRangePop(const Domain* domain) { return pop_event(id_of(domain)); }

// Nothing is recorded of resources, but a program may test the handle.
nvtxResourceHandle_t DomainResourceCreate(const Domain*, const nvtxResourceAttributes_t*) {
  static char any;
  return reinterpret_cast<nvtxResourceHandle_t>(&any);
}

void DomainNameCategoryA(const Domain* domain, uint32_t category, const char* text) {
  record_category(id_of(domain), category, text);
}

void DomainNameCategoryW(const Domain* domain, uint32_t category, const wchar_t* text) {
  record_category(id_of(domain), category, text);
}

template <class Text>
const RegisteredString* register_string(const Text* text) {
  const RegisteredString* none = nullptr;
  return safely(none, [&] { return registered(as_utf8(text)); });
}

const RegisteredString* DomainRegisterStringA(const Domain*, const char* text) {
  return register_string(text);
}

const RegisteredString* DomainRegisterStringW(const Domain*, const wchar_t* text) {
  return register_string(text);
}

template <class Text>
const Domain* create_domain(const Text* text) {
  const Domain* none = nullptr;
  return safely(none, [&] { return domain_named(as_utf8(text)); });
}

const Domain* DomainCreateA(const char* text) { return create_domain(text); }
const Domain* DomainCreateW(const wchar_t* text) { return create_domain(text); }

// A CUdevice is the ordinal. What number CUPTI has for a context or stream only CUDA could say.
void NameCuDeviceA(int device, const char* text) { name_resource(kDevice, uint32_t(device), text); }
void NameCuDeviceW(int device, const wchar_t* text) {
  name_resource(kDevice, uint32_t(device), text);
}

struct Callback {
  NvtxCallbackModule module;
  unsigned id;
  void (*function)();
};

#define FLAME_CALLBACK(module, name) \
  {NVTX_CB_MODULE_##module, NVTX_CBID_##module##_##name, reinterpret_cast<void (*)()>(name)},

const Callback kCallbacks[] = {
    FLAME_CALLBACK(CORE, MarkEx) FLAME_CALLBACK(CORE, MarkA) FLAME_CALLBACK(CORE, MarkW)
    FLAME_CALLBACK(CORE, RangeStartEx) FLAME_CALLBACK(CORE, RangeStartA)
    FLAME_CALLBACK(CORE, RangeStartW) FLAME_CALLBACK(CORE, RangeEnd)
    FLAME_CALLBACK(CORE, RangePushEx) FLAME_CALLBACK(CORE, RangePushA)
    FLAME_CALLBACK(CORE, RangePushW) FLAME_CALLBACK(CORE, RangePop)
    FLAME_CALLBACK(CORE, NameCategoryA) FLAME_CALLBACK(CORE, NameCategoryW)
    FLAME_CALLBACK(CORE, NameOsThreadA) FLAME_CALLBACK(CORE, NameOsThreadW)
    FLAME_CALLBACK(CORE2, DomainMarkEx) FLAME_CALLBACK(CORE2, DomainRangeStartEx)
    FLAME_CALLBACK(CORE2, DomainRangeEnd) FLAME_CALLBACK(CORE2, DomainRangePushEx)
    FLAME_CALLBACK(CORE2, DomainRangePop) FLAME_CALLBACK(CORE2, DomainResourceCreate)
    FLAME_CALLBACK(CORE2, DomainNameCategoryA) FLAME_CALLBACK(CORE2, DomainNameCategoryW)
    FLAME_CALLBACK(CORE2, DomainRegisterStringA) FLAME_CALLBACK(CORE2, DomainRegisterStringW)
    FLAME_CALLBACK(CORE2, DomainCreateA) FLAME_CALLBACK(CORE2, DomainCreateW)
    FLAME_CALLBACK(CUDA, NameCuDeviceA) FLAME_CALLBACK(CUDA, NameCuDeviceW)
    {NVTX_CB_MODULE_CUDART, NVTX_CBID_CUDART_NameCudaDeviceA,
     reinterpret_cast<void (*)()>(NameCuDeviceA)},
    {NVTX_CB_MODULE_CUDART, NVTX_CBID_CUDART_NameCudaDeviceW,
     reinterpret_cast<void (*)()>(NameCuDeviceW)},
};
#undef FLAME_CALLBACK

// A program of another version of NVTX may have fewer modules, or fewer functions in one.
void connect(const NvtxExportTableCallbacks& table, const Callback& callback) {
  NvtxFunctionTable functions = nullptr;
  unsigned size = 0;
  if (!table.GetModuleFunctionTable(callback.module, &functions, &size)) return;
  if (functions && callback.id < size && functions[callback.id])
    *functions[callback.id] = callback.function;
}

void set_version(NvtxGetExportTableFunc_t get_table) {
  const void* table = get_table(NVTX_ETID_VERSIONINFO);
  const auto* info = static_cast<const NvtxExportTableVersionInfo*>(table);
  if (info && info->struct_size >= sizeof *info && info->SetInjectionNvtxVersion)
    info->SetInjectionNvtxVersion(NVTX_VERSION);
}

void note_what_is_missing(bool last) {
  if (!last) return;
  safely([] {
    note_never_ended();
    note_left_open();
    note_untimed();
  });
}

void forget_parents_counts() {
  forget_left_open();
  forget_untimed();
}

bool prepare() {
  at_flush(note_what_is_missing);
  at_fork_child(forget_parents_counts);
  return lock_over_forks();
}

}  // namespace

bool begin() {
  if (!start()) return false;
  static const bool prepared = prepare();
  return prepared;
}

}  // namespace flame::nvtx

// Called once by every copy of NVTX; several may call at the same time. 0: NVTX does nothing then.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_table) {
  using namespace flame::nvtx;
  if (!get_table || !begin()) return 0;
  const auto* table = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  if (!table || table->struct_size < sizeof *table || !table->GetModuleFunctionTable) return 0;
  set_version(get_table);
  for (const Callback& callback : kCallbacks) connect(*table, callback);
  return 1;
}
