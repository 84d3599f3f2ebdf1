// The names of NVTX, with a way to forget them.
#include "forget.h"
#include "nvtx/shared/names.cpp"

// Not those that they name: handles may be anywhere.
void forget_names() {
  using namespace flame::nvtx;
  the<Names>() = Names();
}
