// Implements NVTX's payload extension: its entry point, and the functions that it gives a copy of
// NVTX.

#include "nvtx/deferred.h"
#include "nvtx/nvtx.h"
#include "nvtx/payload/payload.h"
#include "nvtx/shared/lock.h"
#include "system/clock.h"

namespace flame::nvtx {
namespace {

uint64_t PayloadSchemaRegister(const Domain* domain, const nvtxPayloadSchemaAttr_t* given) {
  return safely(uint64_t(0), [&] { return register_schema(id_of(domain), given); });
}

uint64_t PayloadEnumRegister(const Domain* domain, const nvtxPayloadEnumAttr_t* given) {
  return safely(uint64_t(0), [&] { return register_enum(id_of(domain), given); });
}

template <class Result, class Work>
Result with_payloads(Result failed, const Domain* domain, const nvtxPayloadData_t* payloads,
                     size_t count, Work work, uint32_t lost = 0) {
  const auto with_event = [&] {
    Event event;
    read_payloads(id_of(domain), payloads, count, &event);
    return work(event);
  };
  return safely(failed, with_event, lost);
}

void MarkPayload(const Domain* domain, const nvtxPayloadData_t* payloads, size_t count) {
  with_payloads(0, domain, payloads, count,
                [&](const Event& event) { return mark(id_of(domain), event), 0; }, 1);
}

int RangePushPayload(const Domain* domain, const nvtxPayloadData_t* payloads, size_t count) {
  return with_payloads(NVTX_NO_PUSH_POP_TRACKING, domain, payloads, count,
                       [&](const Event& event) { return push(id_of(domain), event); }, 1);
}

int RangePopPayload(const Domain* domain, const nvtxPayloadData_t* payloads, size_t count) {
  return with_payloads(NVTX_NO_PUSH_POP_TRACKING, domain, payloads, count,
                       [&](const Event& event) { return pop(id_of(domain), &event); });
}

nvtxRangeId_t RangeStartPayload(const Domain* domain, const nvtxPayloadData_t* payloads,
                                size_t count) {
  return with_payloads(uint64_t(0), domain, payloads, count,
                       [&](const Event& event) { return start_range(id_of(domain), event); }, 1);
}

void RangeEndPayload(const Domain* domain, nvtxRangeId_t id, const nvtxPayloadData_t* payloads,
                     size_t count) {
  with_payloads(0, domain, payloads, count,
                [&](const Event& event) { return end_range(id, &event), 0; });
}

uint8_t DomainIsEnabled(const Domain*) { return 1; }

uint64_t TimeDomainRegister(const Domain*, const nvtxTimeDomainAttr_t* given) {
  return safely(uint64_t(0), [&] { return register_time_domain(given); });
}

int64_t TimestampGet() { return static_cast<int64_t>(now()); }

void EventSubmit(const Domain* domain, const nvtxPayloadData_t* payloads, size_t count) {
  safely([&] { submit(id_of(domain), payloads, count); });
}

void EventBatchSubmit(const Domain* domain, const nvtxEventBatch_t* batch) {
  safely([&] { submit(id_of(domain), batch); });
}

// Of a scope nothing is recorded, but events may refer to it.
uint64_t ScopeRegister(const Domain*, const nvtxScopeAttr_t* given) {
  if (given && given->structSize >= sizeof *given && given->scopeId) return given->scopeId;
  return safely(uint64_t(NVTX_SCOPE_NONE), [] { return new_dynamic_id(); });
}

struct Slot {
  size_t id;
  void (*function)();
};

#define FLAME_SLOT(name) {NVTX3EXT_CBID_nvtx##name, reinterpret_cast<void (*)()>(name)},

const Slot kSlots[] = {
    FLAME_SLOT(PayloadSchemaRegister) FLAME_SLOT(PayloadEnumRegister) FLAME_SLOT(MarkPayload)
    FLAME_SLOT(RangePushPayload) FLAME_SLOT(RangePopPayload) FLAME_SLOT(RangeStartPayload)
    FLAME_SLOT(RangeEndPayload) FLAME_SLOT(DomainIsEnabled) FLAME_SLOT(ScopeRegister)
    FLAME_SLOT(TimestampGet) FLAME_SLOT(TimeDomainRegister) FLAME_SLOT(EventSubmit)
    FLAME_SLOT(EventBatchSubmit)
};
#undef FLAME_SLOT

}  // namespace
}  // namespace flame::nvtx

// Called for every extension of every copy of NVTX. 0: it does nothing then.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(
    nvtxExtModuleInfo_t* module) {
  using namespace flame::nvtx;
  if (!module || module->moduleId != NVTX_EXT_PAYLOAD_MODULEID || !begin()) return 0;
  if (module->structSize < sizeof *module || !module->segmentsCount || !module->segments) return 0;
  nvtxExtModuleSegment_t& segment = module->segments[0];
  for (const Slot& slot : flame::nvtx::kSlots)
    if (slot.id < segment.slotCount)
      segment.functionSlots[slot.id] = reinterpret_cast<intptr_t>(slot.function);
  return 1;
}
