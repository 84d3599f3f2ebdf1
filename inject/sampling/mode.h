// Reads how PC samples are taken: what FLAME_PC and the control socket can ask for.
#pragma once
#include <cupti_pcsampling.h>

#include <cstdint>
#include <string_view>

namespace flame {

struct SamplingMode {
  CUpti_PCSamplingCollectionMode collection = CUPTI_PC_SAMPLING_COLLECTION_MODE_INVALID;  // off
  uint32_t period = 0;  // a sample every 2^period cycles, 0: CUPTI's own choice

  bool operator==(const SamplingMode& other) const {
    return collection == other.collection && period == other.period;
  }
};

// "off", "continuous" or "serialized", the last two also with ":period"; false: something else.
bool read_sampling_mode(std::string_view text, SamplingMode* mode);

}  // namespace flame
