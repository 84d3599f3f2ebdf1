// Writes Sample records from memory that CUPTI has filled with PC samples.
#include "sampling/buffer.h"

#include <new>

#include "flame.h"

namespace flame {
namespace {

constexpr size_t kPcs = 4096;  // what is more comes in a second round

uint32_t span_of(const SampleOrigin& origin) {
  const uint64_t us = (origin.time - origin.since) / 1000 + 1;
  return us > UINT32_MAX ? 0 : static_cast<uint32_t>(us);
}

}  // namespace

// Sampling may begin, be refused and begin again, with other reasons then.
bool PcBuffer::allocate(size_t wanted) {
  if (pcs && wanted <= reasons) return true;
  pcs.reset();
  reasons = wanted;
  stalls.reset(new (std::nothrow) CUpti_PCSamplingStallReason[kPcs * reasons]());
  if (!stalls) return false;
  pcs.reset(new (std::nothrow) CUpti_PCSamplingPCData[kPcs]());
  if (!pcs) return false;
  for (size_t i = 0; i < kPcs; ++i) {
    pcs[i].size = sizeof pcs[i];
    pcs[i].stallReason = &stalls[i * reasons];
  }
  data.size = sizeof data;
  data.collectNumPcs = kPcs;
  data.pPcData = pcs.get();
  return true;
}

void PcBuffer::clear() {
  data.totalSamples = data.droppedSamples = data.nonUsrKernelsTotalSamples = 0;
  data.totalNumPcs = data.remainingNumPcs = 0;
  data.hardwareBufferFull = 0;
}

// CUPTI leaves it to us to free the name, but may share it with records of kernels that are still
// to come: it is left alone. There is one for each function, not for each sample.
void write_samples(const CUpti_PCSamplingPCData& pc, size_t reasons, const SampleOrigin& origin) {
  Sample sample{};
  sample.crc = pc.cubinCrc;
  sample.time = origin.time;
  sample.span = span_of(origin);
  sample.offset = pc.pcOffset;
  sample.function = pc.functionName ? text(pc.functionName) : 0;
  sample.correlation = pc.correlationId;
  sample.context = origin.context;
  for (size_t i = 0; i < pc.stallReasonCount && i < reasons; ++i) {
    CUpti_PCSamplingStallReason& seen = pc.stallReason[i];
    sample.reason = seen.pcSamplingStallReasonIndex;
    sample.samples = seen.samples;
    seen.samples = 0;
    if (sample.samples) put(sample);
  }
}

}  // namespace flame
