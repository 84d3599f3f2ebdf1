// Checks whether the walk over private structs is right in this process.
#pragma once
#include "python/api.h"
#include "python/offsets.h"

namespace flame::python {

enum Verdict { kEqual, kDifferent, kNothingToCompare };

// Compares the stack of the calling thread, which holds the GIL, with what the public API says. If
// `offsets` are wrong, what they lead to is not there or means nothing: it is read with care.
Verdict check_walk(const Api& api, ThreadState* own, const Offsets& offsets);

}  // namespace flame::python
