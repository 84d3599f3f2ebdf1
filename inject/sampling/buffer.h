// Holds memory that CUPTI fills with PC samples, and writes it as Sample records.
#pragma once
#include <cupti_pcsampling.h>

#include <cstdint>
#include <memory>

namespace flame {

struct PcBuffer {
  CUpti_PCSamplingData data;
  std::unique_ptr<CUpti_PCSamplingPCData[]> pcs;
  std::unique_ptr<CUpti_PCSamplingStallReason[]> stalls;

  size_t reasons = 0;  // that there is room for, at each instruction

  bool allocate(size_t wanted);  // room for kPcs instructions with so many reasons each
  void clear();                  // so that old results are not taken for new ones
};

// Where samples were taken, and when: after `since`, until `time`.
struct SampleOrigin {
  uint32_t context;
  uint64_t since, time;
};

// One record for each reason that was seen at this instruction; there is room for `reasons`, and
// what has been written is taken away: a count that is too high leads to nothing.
void write_samples(const CUpti_PCSamplingPCData& pc, size_t reasons, const SampleOrigin& origin);

}  // namespace flame
