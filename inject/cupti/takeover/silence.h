// Notices that CUPTI does not report any more what is launched: another tool of the process has
// registered buffers of its own.
#pragma once
#include <cstdint>

namespace flame {

// What a thread has launched. It alone counts, all may read; what it counted stays when it ends.
struct Tally;
Tally* take_tally();  // of the calling thread from now on; where there is no memory, one for all such
void give_back(Tally* tally);

// Calls that put kernels on a GPU, by the number of their context: one begins; one has ended, and
// CUPTI is to report its work unless `in_vain`: it failed, or was only captured.
void work_begins(Tally* tally, uint32_t context);
void work_ends(Tally* tally, uint32_t context, bool in_vain);

// Around a call that waits for all work of a context: what was there to wait for, and success.
uint64_t work_given(uint32_t context);
void work_is_over(uint32_t context, uint64_t given);

// As CUPTI calls; the second also when recording begins.
void buffer_requested();
void buffer_completed();

// Around each flush, by one thread at a time.
struct Launches {
  uint64_t begun, given;  // so many in all; of `given` the call has ended
  bool over;              // all work of theirs is: a flush must bring it
};
Launches launches_so_far();
// Whether it has become clear with this flush; `last`: it was forced, so that nothing may be left.
bool records_are_missing(const Launches& before, bool last);

struct Silence {
  uint64_t since, launches;  // monotonic ns of CUPTI's last word; so many have begun after it
  bool from_the_start;       // that was when recording began
};
Silence silence();

}  // namespace flame
