// Reads how PC samples are taken: what FLAME_PC and the control socket can ask for.
#include "sampling/mode.h"

namespace flame {
namespace {

constexpr uint32_t kMinPeriod = 5, kMaxPeriod = 31;  // CUPTI samples every 2^period cycles

bool take(std::string_view* text, std::string_view word) {
  if (text->substr(0, word.size()) != word) return false;
  text->remove_prefix(word.size());
  return true;
}

// What stands behind the mode: nothing, or ":period".
bool read_period(std::string_view text, uint32_t* period) {
  if (text.empty()) return true;
  if (!take(&text, ":") || text.empty() || text.size() > 2) return false;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return false;
    *period = *period * 10 + uint32_t(digit - '0');
  }
  return *period >= kMinPeriod && *period <= kMaxPeriod;
}

}  // namespace

bool read_sampling_mode(std::string_view text, SamplingMode* mode) {
  *mode = {};
  if (text == "off") return true;
  SamplingMode wanted;
  if (take(&text, "continuous"))
    wanted.collection = CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS;
  else if (take(&text, "serialized"))
    wanted.collection = CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED;
  if (!wanted.collection || !read_period(text, &wanted.period)) return false;
  *mode = wanted;
  return true;
}

}  // namespace flame
