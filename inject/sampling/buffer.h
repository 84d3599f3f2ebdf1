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

  bool allocate(size_t reasons);  // room for kPcs instructions with so many reasons each
  void clear();                   // so that old results are not taken for new ones
};

// One record for each reason that was seen at this instruction.
void write_samples(const CUpti_PCSamplingPCData& pc, uint32_t context);

}  // namespace flame
