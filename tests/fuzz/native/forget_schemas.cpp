// The schemas of NVTX payloads, with a way to forget them.
#include "forget.h"
#include "nvtx/payload/schema.cpp"

void forget_schemas() {
  using namespace flame::nvtx;
  for (const auto& [key, schema] : the<Schemas>().all) delete schema;
  the<Schemas>() = Schemas();
}
