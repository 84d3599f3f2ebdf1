// Runs the thread that does what need not be done at once. `wake_helper` is in flame.h.
#pragma once

namespace flame {

bool start_helper();
bool finish_by_helper();      // false: there is none
bool flush_now();             // on that thread only; false: CUPTI is still at it
void lock_helper();
void unlock_helper();
void forget_helper();         // in a forked child

}  // namespace flame
