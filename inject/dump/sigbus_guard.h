// Keeps the program alive when somebody cuts the dump off.
#pragma once

namespace flame {

// With file_lock held: from now on a dump that somebody cuts off ends no program, whatever handler
// the program has set since it was last called.
void keep_sigbus_guard();

}  // namespace flame
